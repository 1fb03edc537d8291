"""Cells done here: results that can be trusted, and nothing done twice or lost."""

import gzip
import json
import shutil
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from small_cells import AWAY, HOME, PAPER, SETTINGS, given, trained

import plato
from plato.domains.setups import load_setup
from plato.errors import PlatoError
from plato.evaluation.named import named_policy
from plato.experiments import work
from plato.experiments.cells import Cell, Row
from plato.experiments.chunks import covers, together
from plato.experiments.engines import ThisMachine, engine
from plato.experiments.listener import Listener
from plato.experiments.store import Store
from plato.experiments.work import do
from plato.policies.pretrained import pretrained_file
from plato.runs import train as loop

CELLS = [trained(42), trained(43), trained(42, by=PAPER), given()]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("results"))
    ThisMachine(stack=True).run(CELLS, store, Listener())
    return store


def found(store: Store, cell: Cell) -> dict[str, Any]:
    entry = store.find(cell)
    assert entry is not None
    return entry.data


def unchanging(data):
    """All of an entry but what may differ between two times of doing the same."""
    return {k: v for k, v in data.items() if k != "seconds"}


def test_results_are_those_of_the_policies_that_are_kept(store):
    """Read without our code, and played again by it."""
    for cell in CELLS[:2]:
        (path,) = (store.path / "cells").rglob(f"*{cell.fingerprint}.json.gz")
        data = json.loads(gzip.decompress(path.read_bytes()))
        assert data["cell"]["seed"] == cell.seed
        assert data["steps"] == 6 * 40
        assert data["environment"]["device"]
        assert set(data["setups"]) == {HOME, AWAY}
        chosen = named_policy(str(store.policy_file(cell)), load_setup(HOME))
        played = plato.evaluate(chosen, HOME, episodes=6, seed=10**6)
        assert data["score"] == pytest.approx(played.metrics["return"].mean())
        assert set(data["episodes"]) == {HOME, AWAY}
        for name in cell.plays:
            policy = named_policy(str(store.policy_file(cell)), load_setup(name))
            again = plato.evaluate(policy, name, episodes=6, seed=200)
            for metric, values in again.metrics.items():
                kept = data["episodes"][name][metric]
                np.testing.assert_allclose(kept, values[None], atol=6e-5)
    paper = found(store, CELLS[2])
    assert len(paper["chosen"]) == 3
    assert np.shape(paper["episodes"][HOME]["return"]) == (3, 6)
    assert not list(store.work.iterdir())


def test_what_is_done_is_not_done_again(store):
    def never(*_):
        raise AssertionError("done again")

    ThisMachine(stack=True, do=never).run(CELLS, store, Listener())
    ThisMachine(stack=False, do=never).run(CELLS, store, Listener())
    assert all(store.has(cell) for cell in CELLS)


def test_one_by_one_gives_what_many_at_once_gave(store, tmp_path):
    alone = Store(tmp_path)
    heard = []
    listener = Listener(done=lambda cell, entry: heard.append(cell))
    ThisMachine(stack=False).run([CELLS[1]], alone, listener)
    assert heard == [CELLS[1]]
    one, other = (found(s, CELLS[1]) for s in (alone, store))
    assert one["chosen"] == other["chosen"]
    np.testing.assert_allclose(one["curve"]["return"], other["curve"]["return"])
    for metric, rows in one["episodes"][HOME].items():
        np.testing.assert_allclose(rows, other["episodes"][HOME][metric], atol=1e-3)


def test_a_damaged_result_is_done_again(store, tmp_path):
    cell, copy = given(), Store(tmp_path)
    ThisMachine(stack=False).run([cell], copy, Listener())
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    path.write_bytes(path.read_bytes()[:50])
    assert copy.find(cell) is None
    ThisMachine(stack=False).run([cell], copy, Listener())
    both = (unchanging(found(s, cell)) for s in (copy, store))
    assert len({json.dumps(data, sort_keys=True) for data in both}) == 1


def test_a_training_that_was_cut_off_goes_on(store, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "pause_before_saving", lambda took: 0.0)
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0.0)

    class CutOffError(Exception):
        pass

    def cut(progress):
        if progress.update == 4:
            raise CutOffError

    with pytest.raises(CutOffError):
        list(do([CELLS[0]], tmp_path, cut))
    (spent,) = tmp_path.glob("*/seconds")
    before = float(spent.read_text())
    assert before > 0
    spent.write_text(f"{before + 1000}")
    heard = []
    ((_, entry),) = do([CELLS[0]], tmp_path, lambda p: heard.append(p.update))
    assert min(heard) > 3
    assert entry.data["seconds"]["training"] > before + 1000
    kept = found(store, CELLS[0])
    np.testing.assert_allclose(entry.data["curve"]["return"], kept["curve"]["return"])
    assert entry.data["chosen"] == kept["chosen"]
    assert not list(tmp_path.iterdir())


def test_what_was_trained_together_is_not_trained_again(tmp_path, monkeypatch):
    """Killed after the first cell of four: those left are no rectangle any more."""
    other = "wildfire-2x3-S1"
    cells = [
        replace(trained(seed, on=setup), plays=(setup,))
        for setup in (HOME, other)
        for seed in (42, 43)
    ]
    store, heard = Store(tmp_path), []

    class KilledError(Exception):
        pass

    def kill(cell, entry):
        raise KilledError

    def never(*_):
        raise AssertionError("trained again")

    def hear(cell, entry):
        heard.append(entry.data["seconds"]["training"])
        assert list(store.work.iterdir())

    with pytest.raises(KilledError):
        ThisMachine(stack=True).run(cells, store, Listener(done=kill))
    assert [store.has(cell) for cell in cells] == [True, False, False, False]
    monkeypatch.setattr(work, "train", never)
    missing = [cell for cell in cells if store.find(cell) is None]
    ThisMachine(stack=True).run(missing, store, Listener(done=hear))
    assert all(store.find(cell) is not None for cell in cells)
    took = found(store, cells[0])["seconds"]["training"]
    assert heard == pytest.approx([took] * 3, abs=0.02)
    assert not list(store.work.iterdir())


def test_who_advises_stays_the_same_from_beginning_to_end(tmp_path):
    """A training that is under way when its adviser is replaced is of neither."""
    adviser, work = tmp_path / "adviser.safetensors", tmp_path / "work"
    shutil.copy(pretrained_file(HOME), adviser)
    learning = replace(SETTINGS.learning, advisers=(str(adviser),))
    cell = trained(row=Row("PLATO", replace(SETTINGS, learning=learning)))
    before, heard = cell.fingerprint, []

    def replaced(progress):
        shutil.copy(pretrained_file("wildfire-2x3-S1"), adviser)

    with pytest.raises(PlatoError, match="learns from was replaced while it was"):
        list(do([cell], work, replaced))
    # What is left in the folder is finished, and not taken for what is asked for now.
    ((_, entry),) = do([cell], work, lambda progress: heard.append(progress.update))
    assert min(heard) == 1
    assert entry.fingerprint == cell.fingerprint != before
    assert set(entry.data["cell"]["advisers"]) == {HOME}


def test_a_training_is_taken_for_the_cells_that_it_is_of():
    config = together([trained(43), trained(44)])
    assert covers(config, [trained(44)])
    assert covers(config, [trained(43), trained(44)])
    longer = replace(SETTINGS, learning=replace(SETTINGS.learning, updates=7))
    for cell in (
        trained(42),
        trained(45),
        trained(43, on="wildfire-2x3-S1"),
        trained(43, by=PAPER),
        trained(43, row=Row("PLATO", longer)),
        trained(43, row=Row("PLATO", replace(SETTINGS, game_seed=7))),
        replace(trained(43), trained_on=(HOME, "wildfire-2x3-S1")),
    ):
        assert not covers(config, [trained(44), cell])


def test_what_does_not_fit_is_split_and_goes_on(tmp_path):
    """A device whose memory holds one training at a time."""
    cells = [trained(42), trained(43), trained(42, on="wildfire-2x3-S1")]
    cells.append(trained(43, on="wildfire-2x3-S1"))
    tried, said = [], []

    def small_device(cells, work, report):
        tried.append(len(cells))
        if len(cells) > 1:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        yield cells[0], store_entry

    store = Store(tmp_path)
    store_entry = next(do([given()], tmp_path / "other"))[1]
    engine = ThisMachine(stack=True, do=small_device)
    engine.run(cells, store, Listener(says=said.append))
    assert tried == [4, 2, 1, 1, 2, 1, 1]
    assert all(map(store.has, cells))
    assert len(said) == 3
    assert "do not fit into this device's memory" in said[0]


def test_other_errors_are_not_taken_for_a_lack_of_memory(tmp_path):
    def broken(cells, work, report):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        ThisMachine(stack=True, do=broken).run(
            [trained(42), trained(43)], Store(tmp_path), Listener()
        )


def test_baselines_and_generalists_are_cells_too(tmp_path):
    from plato.learners.config import METHODS
    from plato.policies.baseline_configs import DicgConfig

    halves = METHODS["dicg"]
    learning = replace(
        halves.learning(), games=2, steps=10, updates=6, epochs=1, minibatches=1
    )
    networks = DicgConfig(hidden=8, policy=(8,), critic_hidden=8)
    dicg = Row("DICG", replace(SETTINGS, networks=networks, learning=learning))
    setups = (HOME, "wildfire-2x3-S1")
    together = replace(trained(), trained_on=setups, plays=(*setups, AWAY))
    store, cells = Store(tmp_path), [trained(row=dicg), together]
    ThisMachine(stack=True).run(cells, store, Listener())
    assert set(found(store, together)["episodes"]) == {*setups, AWAY}
    assert found(store, cells[0])["cell"]["training"]["method"] == "dicg"


def test_engines_by_name():
    assert engine("auto") == ThisMachine(stack=False)  # tests run on a CPU
    assert engine("gpu") == ThisMachine(stack=True)
