"""Protocols on real, small runs: who plays, on which seeds, and what is refused."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plato.domains.setups import Setup, load_setup
from plato.errors import PlatoError
from plato.evaluation import protocols
from plato.evaluation.comparison import compare
from plato.evaluation.contestants import (
    Checkpoint,
    Contestant,
    Training,
    common_setups,
    transfer_setups,
)
from plato.evaluation.evaluate import evaluate
from plato.evaluation.named import named_policy
from plato.evaluation.protocols import VALIDATION, Examiner, protocol
from plato.files import write_json
from plato.runs.trainings import contestants_of, trainings

HOME = load_setup("wildfire-2x3-S3")
AWAY = load_setup("wildfire-3x3-S3-transfer")


def returns(path: Path, setup, noise, first, episodes) -> np.ndarray:
    policy = named_policy(str(path), setup)
    result = evaluate(policy, setup, noise=noise, seed=first, episodes=episodes)
    return result.metrics["return"]


def test_a_run_folder_holds_trainings(additive):
    first, second = trainings(additive)
    assert (first.seed, second.seed) == (42, 43)
    assert first.names == ("wildfire-2x3-S3",)
    assert [c.update for c in first.checkpoints] == [1, 2, 3, 4, 5, 6]
    assert [c.steps for c in first.checkpoints] == [40, 80, 120, 160, 200, 240]


def test_the_papers_protocol_by_hand(additive):
    """Of updates 4, 5, 6 all three play, the best on seeds 200–249 first."""
    (method,) = contestants_of([str(additive)])
    result = Examiner(protocol("paper")).result(method, HOME)
    for played, training in zip(result.played, method.trainings, strict=True):
        worth = {
            c.update: returns(c.path, HOME, "paper", 200, 50)
            for c in training.checkpoints[3:]
        }
        ranked = sorted(worth, key=lambda u: (worth[u].mean(), u), reverse=True)
        assert played.updates == tuple(ranked)
        expected = np.stack([worth[update] for update in ranked])
        np.testing.assert_array_equal(played.metrics["return"], expected)
    assert len(result.episodes("return")) == 2 * 150
    rows = np.concatenate([played.metrics["return"] for played in result.played])
    np.testing.assert_allclose(result.by_seed("return"), rows.mean(axis=0))


def test_the_fields_protocol_by_hand(additive):
    """The best of all checkpoints on validation seeds plays the reported ones."""
    (method,) = contestants_of([str(additive)])
    result = Examiner(protocol("field", episodes=20)).result(method, HOME)
    for played, training in zip(result.played, method.trainings, strict=True):
        worth = {
            c: returns(c.path, HOME, "independent", 10**6, 50).mean()
            for c in training.checkpoints
        }
        best = max(worth, key=lambda c: (worth[c], c.update))
        assert played.updates == (best.update,)
        expected = returns(best.path, HOME, "independent", 200, 20)
        np.testing.assert_array_equal(played.metrics["return"][0], expected)
    means = [played.metrics["return"].mean() for played in result.played]
    np.testing.assert_allclose(result.by_training("return"), means)


def test_transfer_plays_what_was_chosen_at_home(additive):
    (method,) = contestants_of([str(additive)])
    examiner = Examiner(protocol("field", episodes=5))
    home, away = examiner.result(method, HOME), examiner.result(method, AWAY)
    assert [p.updates for p in home.played] == [p.updates for p in away.played]
    assert not home.zero_shot
    assert away.zero_shot
    assert away.trained_on == ("wildfire-2x3-S3",)


def chosen_by(table: dict[str, list[float]], monkeypatch) -> list[int]:
    """All updates, best first, when checkpoints have these returns on each setup."""

    def kept(examiner, checkpoint, setup, seeds):
        return {"return": np.full(len(seeds), table[setup.name][checkpoint.update - 1])}

    monkeypatch.setattr(Examiner, "_play_kept", kept)
    count = len(next(iter(table.values())))
    checkpoints = tuple(Checkpoint(u, u, Path("x")) for u in range(1, count + 1))
    training = Training(tuple(table), 1, count, checkpoints, Path("y"))
    examiner = Examiner(replace(protocol("field"), chosen=count))
    assert examiner.score(training, checkpoints[0]) == pytest.approx(
        np.mean([returns[0] for returns in table.values()])
    )
    return [checkpoint.update for checkpoint in examiner.choose(training)]


def test_no_setup_drowns_the_others(monkeypatch):
    """A little of 260 is worth less than half of 8; returns of 0 are no trouble."""
    home, away, third = HOME.name, AWAY.name, "wildfire-2x3-S2"
    table = {home: [260.0, 250.0, 240.0], away: [4.0, 8.0, -8.0], third: [0.0] * 3}
    assert chosen_by(table, monkeypatch) == [2, 1, 3]
    # Where all are losses, the smaller one is better.
    assert chosen_by({home: [-9.0, -3.0], away: [-1.0, -1.0]}, monkeypatch) == [2, 1]


def test_on_one_setup_the_mean_return_decides(monkeypatch):
    """However close two are; of equals, the later one."""
    close = np.nextafter(3.0, 4.0)
    table = {HOME.name: [1.0, -7.0, close, 3.0, 1.0, 5.0]}
    assert chosen_by(table, monkeypatch) == [6, 3, 4, 5, 1, 2]
    random = np.random.default_rng(0).normal(size=40).tolist()
    expected = sorted(range(1, 41), key=lambda u: random[u - 1], reverse=True)
    assert chosen_by({HOME.name: random}, monkeypatch) == expected


def test_nothing_is_played_twice(additive, monkeypatch):
    played = []

    def spy(policy, setup, **options):
        played.append((setup.name, options["seed"]))
        return evaluate(policy, setup, **options)

    monkeypatch.setattr(protocols, "evaluate", spy)
    (method,) = contestants_of([str(additive)])
    examiner = Examiner(protocol("paper", episodes=4))
    examiner.result(method, HOME)
    # Two trainings, three candidates each; the chosen ones have played already.
    assert played == [("wildfire-2x3-S3", 200)] * 6
    examiner.curves(method, HOME)
    assert len(played) == 12


def test_a_given_policy_just_plays():
    weakest = Contestant("weakest", policy="weakest")
    result = Examiner(protocol("field", episodes=7)).result(weakest, HOME)
    expected = evaluate("weakest", HOME, episodes=7).metrics["return"]
    np.testing.assert_array_equal(result.episodes("return"), expected)
    assert result.trained_on == ()
    assert not result.zero_shot


def test_greedy_reaches_the_policies(additive):
    (method,) = contestants_of([str(additive)])
    sampled, greedy = (
        Examiner(protocol("paper", episodes=10, actions=how)).result(method, HOME)
        for how in ("sampled", "greedy")
    )
    assert (sampled.episodes("return") != greedy.episodes("return")).any()
    # One stream of noise and no draws of its own: every episode is the same.
    assert np.ptp(greedy.played[0].metrics["return"], axis=1).tolist() == [0, 0, 0]


def test_protocols_have_their_own_noise_and_seeds():
    paper, field = protocol("paper"), protocol("field")
    assert (paper.noise, field.noise) == ("paper", "independent")
    assert protocol("paper", noise="independent").noise == "independent"
    assert paper.seeds == paper.choosing == range(200, 250)
    assert not set(field.seeds) & set(field.choosing)
    assert field.choosing == VALIDATION


@pytest.mark.parametrize(
    ("seed", "episodes"), [(10**6, 1), (10**6 - 100, 101), (10**6 + 49, 50)]
)
def test_validation_seeds_are_never_reported(seed, episodes):
    with pytest.raises(PlatoError, match="1000000–1000049 choose checkpoints"):
        protocol("field", seed=seed, episodes=episodes)
    assert protocol("paper", seed=seed, episodes=episodes).seeds.start == seed


def test_one_training_has_no_interval(elsewhere):
    methods, setup = contestants_of([str(elsewhere)]), load_setup("wildfire-2x3-S2")
    with pytest.raises(PlatoError, match=r"elsewhere: has one training .* --seeds 2"):
        Examiner(protocol("field")).check(methods, [setup])
    Examiner(protocol("paper")).check(methods, [setup])


def test_too_few_checkpoints_are_refused(additive):
    (method,) = contestants_of([str(additive)])
    few = [replace(t, checkpoints=t.checkpoints[::2]) for t in method.trainings]
    fewer = replace(method, trainings=tuple(few))
    with pytest.raises(PlatoError, match=r"kept 1 checkpoint\(s\) .* --checkpoints 6"):
        Examiner(protocol("paper")).check([fewer], [HOME])


def test_a_missing_checkpoint_is_named(additive, tmp_path):
    copy = shutil.copytree(additive, tmp_path / "copy")
    (copy / "checkpoints/wildfire-2x3-S3-seed43/000006.safetensors").unlink()
    with pytest.raises(PlatoError, match="seed43 after update 6 is missing"):
        contestants_of([str(copy)])
    with pytest.raises(PlatoError, match="is not the folder of a run"):
        contestants_of([str(tmp_path / "nothing")])


def test_names_of_methods(additive, elsewhere, tmp_path):
    twin = shutil.copytree(additive, tmp_path / "additive")
    plain = contestants_of([str(additive), str(elsewhere)])
    assert [c.name for c in plain] == ["additive", "elsewhere"]
    # Two folders of one name stay two methods.
    assert [c.name for c in contestants_of([str(additive), str(twin)])] == [
        str(additive),
        str(twin),
    ]
    (merged,) = contestants_of([f"PLATO={additive}", f"PLATO={elsewhere}"])
    assert merged.name == "PLATO"
    assert [t.seed for t in merged.trainings] == [42, 43, 42]
    with pytest.raises(PlatoError, match=r"seed 42 .* different seeds"):
        contestants_of([f"PLATO={additive}", f"PLATO={twin}"])
    with pytest.raises(PlatoError, match="Two rows are called"):
        contestants_of([str(additive), str(additive)])


def training(*setups: str, seed: int = 1) -> Training:
    return Training(setups, seed, 10, (Checkpoint(10, 10, Path("x")),), Path("y"))


def named(name: str) -> Setup:
    return replace(HOME, name=name)


def test_who_plays_a_setup():
    method = Contestant(
        "m",
        (
            training("wildfire-2x3-S2"),
            training("wildfire-2x3-S2", seed=2),
            training("wildfire-2x3-S3"),
        ),
    )
    assert len(method.trainings_for(named("wildfire-2x3-S2"))) == 2
    # Transfer goes by the degree of openness …
    assert len(method.trainings_for(named("wildfire-4x4-S3-transfer"))) == 1
    # … and is refused where that does not decide.
    with pytest.raises(PlatoError, match=r"m: has trainings on .*S0 is open"):
        method.trainings_for(named("wildfire-3x3-S0"))
    alone = Contestant("n", (training("wildfire-2x3-S2"),))
    assert len(alone.trainings_for(named("wildfire-3x3-S0"))) == 1
    assert len(alone.trainings_for(named("mine"))) == 1


def test_two_games_of_one_name_are_two():
    here = replace(training("a/town.toml"), digests=(named("town").digest,))
    there = replace(training("b/town.toml"), digests=("another",))
    older = training("town.toml", seed=2)
    both = Contestant("m", (here, there, older))
    assert both.trainings_for(named("town")) == (here, older)
    with pytest.raises(PlatoError, match=r"trainings on town, town, .* mine is open"):
        Contestant("m", (here, there)).trainings_for(named("mine"))
    assert Contestant("n", (there,)).trainings_for(named("town")) == (there,)
    assert here.was_on(named("town"))
    assert not there.was_on(named("town"))


def test_an_edited_setup_is_another_game(additive, tmp_path):
    edited = Setup(HOME.name, replace(HOME.config, max_steps=20))
    examiner = Examiner(protocol("paper", episodes=3))
    (method,) = contestants_of([str(additive)])
    examiner.check([method], [edited])
    away = examiner.result(method, edited)
    assert away.zero_shot
    assert not examiner.result(method, HOME).zero_shot
    # It was not what choosing the checkpoints at home had played before.
    played = away.played[0]
    path = method.trainings[0].checkpoints[played.updates[0] - 1].path
    alone = returns(path, edited, "paper", 200, 3)
    np.testing.assert_array_equal(played.metrics["return"][0], alone)
    with pytest.raises(PlatoError, match=r"Two different setups are called 'wildfire-"):
        compare([method], [HOME, edited], examiner)
    copy = shutil.copytree(additive, tmp_path / "copy")
    write_json(copy / "games.json", {HOME.name: edited.digest})
    with pytest.raises(PlatoError, match=r"2x3-S3: is not the game that .*copy was"):
        examiner.check(contestants_of([str(copy)]), [HOME])
    # Runs of older versions noted no more than the name.
    (copy / "games.json").unlink()
    (older,) = contestants_of([str(copy)])
    assert not examiner.result(older, edited).zero_shot


def test_where_methods_meet():
    both = Contestant("a", (training("wildfire-2x3-S3"), training("wildfire-2x3-S2")))
    one = Contestant("b", (training("wildfire-2x3-S2"),))
    other = Contestant("c", (training("wildfire-3x3-S2"),))
    rule = Contestant("noop", policy="noop")
    assert common_setups([both, one, rule]) == ["wildfire-2x3-S2"]
    assert common_setups([both]) == ["wildfire-2x3-S2", "wildfire-2x3-S3"]
    with pytest.raises(PlatoError, match=r"no setup in common \(a: .*; c: .*--setup"):
        common_setups([both, other])
    edited = Contestant("e", (replace(one.trainings[0], digests=("another",)),))
    with pytest.raises(PlatoError, match="no setup in common"):
        common_setups([one, edited])
    with pytest.raises(PlatoError, match="at least one run, or a --setup"):
        common_setups([rule])
    assert transfer_setups([one, other]) == [
        "wildfire-3x3-S2-transfer",
        "wildfire-4x4-S2-transfer",
        "wildfire-5x5-S2-transfer",
    ]
    with pytest.raises(PlatoError, match="transfers from the grids 2x3, 3x3"):
        transfer_setups([Contestant("d", (training("wildfire-4x4-S2"),))])
