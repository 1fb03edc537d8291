"""Games of one's own go through the same commands as wildfire."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import plato
from command_line import refused, run_plato
from parcels import Parcels
from plato.domains.setups import Rows, Setup, load_setup
from plato.learners.config import MappoConfig
from plato.learners.program import Program
from plato.runs.folder import RunFolder
from plato.runs.train import train
from small_runs import SMALL

TESTS = Path(__file__).parents[1]
SHORT = ["--games", 4, "--steps", 8, "--updates", 2]
SHORT += ["--epochs", 1, "--minibatches", 2, "--hidden", 8]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a user keeps a game."""
    source = (TESTS / "parcels.py").read_text()
    (tmp_path / "couriers.py").write_text(source)
    return tmp_path


def test_a_game_is_found_in_a_file_and_in_a_module(folder: Path) -> None:
    for name in (f"{folder}/couriers.py:parcels", "parcels:parcels"):
        setup = load_setup(name)
        assert type(setup.content).__name__ == "Parcels"
        assert setup.rows == Rows(agents=2, tasks=4)
        assert setup.game() is setup.content
        assert type(load_setup(name).content) is type(setup.content)
    assert load_setup("parcels:parcels").name == "parcels:parcels"
    assert load_setup(f"{folder}/couriers.py:parcels").name == "couriers:parcels"


def test_it_is_trained_evaluated_compared_and_resumed(folder: Path) -> None:
    where = ("--setup", "couriers.py:parcels")
    done = run_plato(folder, "train", *where, *SHORT, "--seeds", 2)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    assert run.name == "couriers-parcels"
    summary = (run / "SUMMARY.md").read_text()
    assert "carried" in summary
    assert "burnouts" not in summary
    page = (run / "summary.html").read_text()
    assert "--policy random" in page
    assert "plato replay" not in page
    first = run / "checkpoints" / "couriers.py-parcels-seed42"
    policies = ("--policy", "random", "--policy", first)
    played = run_plato(folder, "evaluate", *where, *policies, "--episodes", 5)
    assert played.returncode == 0, played.stderr
    assert "carried" in played.stdout
    results = json.loads((folder / "evaluation.json").read_text())["evaluations"]
    assert [row["setup"] for row in results] == ["couriers:parcels"] * 2
    compared = run_plato(folder, "compare", run, "--policy", "noop", "--episodes", 4)
    assert compared.returncode == 0, compared.stderr
    assert "return" in compared.stdout
    again = run_plato(folder, "train", "--resume", run)
    assert again.returncode == 0, again.stderr


def test_its_digest_knows_code_and_static_fields(folder: Path) -> None:
    before = load_setup(f"{folder}/couriers.py:parcels").digest
    assert load_setup(f"{folder}/couriers.py:parcels").digest == before
    source = (folder / "couriers.py").read_text()
    (folder / "couriers.py").write_text(source.replace("carried.sum() * 1.0", "2.0"))
    assert load_setup(f"{folder}/couriers.py:parcels").digest != before


class Tagged(Parcels):
    tag: Any = eqx.field(static=True)


def digest(chance: Any, tag: Any) -> str:
    return Setup("mine", Tagged(jnp.asarray(chance), jnp.asarray(7), tag)).digest


def test_its_digest_is_of_all_that_it_holds() -> None:
    games = [(0.0, "a"), (0.0, "b"), (0, "a"), ([0.0], "a"), (jax.random.key(0), "a")]
    assert len({digest(*game) for game in games}) == len(games)
    # Not of what is new in every process: addresses, and the order of sets.
    assert digest(0.0, object()) == digest(0.0, object())
    some, turned = frozenset([0, 8]), frozenset([8, 0])
    assert str(some) != str(turned)
    assert digest(0.0, some) == digest(0.0, turned)


KEYED = """
import jax
from parcels import Parcels, parcels

class Keyed(Parcels):
    def initial(self, key):
        return super().initial(key), key

    def observe(self, state):
        return super().observe(state[0])

    def transition(self, state, actions, noise):
        inner, outcome = super().transition(state[0], actions, noise)
        return (inner, jax.random.fold_in(state[1], 0)), outcome

def game():
    return Keyed(parcels().chance, parcels().limit)
"""


def test_a_game_with_random_keys_in_its_state_is_saved_and_resumed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "keyed.py").write_text(KEYED)
    learning = MappoConfig(games=4, steps=8, updates=2, epochs=1, minibatches=2)
    config = replace(SMALL, setups=(f"{folder}/keyed.py:game",), learning=learning)
    whole = RunFolder.create(folder / "whole", config)
    assert train(whole)
    cut = RunFolder.create(folder / "cut", config)
    step = Program.advance

    def stop(self: Program, learners: Any, update: int) -> Any:
        done = step(self, learners, update)
        signal.raise_signal(signal.SIGINT)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(Program, "advance", stop)
        assert not train(cut)
    assert train(cut)
    paths = [run.checkpoints(config.runs[0])[-1] for run in (whole, cut)]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_belongs_to_wildfire_is_refused_in_words(folder: Path) -> None:
    where = ("--setup", "couriers.py:parcels")
    refused(run_plato(folder, "evaluate", *where, "--policy", "weakest"), "rule of")
    refused(
        run_plato(folder, "evaluate", *where, "--policy", "optimal"),
        "couriers:parcels is not a wildfire",
    )
    refused(
        run_plato(folder, "train", *where, *SHORT, "--noise", "paper"), "not a wildfire"
    )
    refused(run_plato(folder, "train", *where, *SHORT, "--maps", "moved"), "other maps")
    refused(run_plato(folder, "replay", "random", *where), "not a wildfire")
    refused(run_plato(folder, "solve", "couriers.py:parcels"), "not a wildfire")
    refused(
        run_plato(
            folder, "compare", "--policy", "noop", *where, "--metric", "burnouts"
        ),
        "has no metric 'burnouts'",
    )


@pytest.mark.parametrize("policy", ["pretrained", "pretrained:wildfire-3x3-S3"])
def test_policies_of_other_games_are_refused(folder: Path, policy: str) -> None:
    asked = ("--setup", "couriers.py:parcels", "--policy", policy)
    refused(run_plato(folder, "evaluate", *asked), f"{policy} was trained for another")


def test_games_that_differ_in_size_are_not_trained_as_one(folder: Path) -> None:
    both = ("--setup", "couriers.py:parcels", "--setup", "wildfire-3x3-S1")
    refused(run_plato(folder, "train", *both, *SHORT), "arrays for 2 agents and 4")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.py:parcels", "nowhere.py: there is no such file"),
        ("no_such_module:parcels", "no_such_module: cannot be imported"),
        ("couriers.py:vans", "couriers.py: has nothing named 'vans'"),
        ("couriers.py:jnp", "is a module; it must be a plato.Game"),
        ("couriers.py:Parcels", "cannot be called without arguments"),
        ("broken.py:parcels", "broken.py: cannot be imported: NameError"),
    ],
)
def test_mistakes_are_named(folder: Path, name: str, words: str) -> None:
    (folder / "broken.py").write_text("undefined_name\n")
    refused(run_plato(folder, "evaluate", "--setup", name, "--policy", "noop"), words)


def test_adapters_take_it(folder: Path) -> None:
    games = plato.BatchedGame(f"{folder}/couriers.py:parcels", games=3)
    assert games.reset(seed=1).agents.shape == (3, 2, 2)
