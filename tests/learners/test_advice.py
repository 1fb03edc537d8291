"""Advisers: each is asked about its own setup at home, and heeded less and less."""

import shutil
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool

from plato.domains.setups import Rows, load_setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.maps import moved, scattered
from plato.errors import PlatoError
from plato.game import Features, Observation, stack
from plato.learners.advice import adviser_files, load_advisers
from plato.learners.config import MappoConfig, TrainConfig
from plato.learners.mappo import Hyper, Rates, losses, prepare
from plato.learners.program import Program
from plato.learners.rollout import rollout, set_the_stage
from plato.masking import divergence
from plato.policies.checkpoint import load_actor, save_policy
from plato.policies.config import ActorConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.policies.pretrained import pretrained_file
from plato.runs.folder import RunFolder
from plato.runs.train import train

SETUPS = [load_setup(f"wildfire-{name}") for name in ("2x3-S1", "3x3-S2")]
NAMES = tuple(setup.name for setup in SETUPS)
ROOM = Rows(3, 5)


def twice(seen: Observation) -> tuple[Observation, Bool[Array, "time game"]]:
    """Two moments that look the same, the first of which is where all games begin."""
    moments = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), seen)
    return moments, jnp.zeros(moments.exists.shape[:2], bool).at[0].set(True)


def remembering(path: Path, seed: int = 0) -> Path:
    """An untrained policy with memory, as a file."""
    form, wildfires = ActorConfig(hidden=8, encoder="lstm"), Features(4, 4, 1)
    actor = PointerActor.create(form, wildfires, key=jax.random.key(seed))
    save_policy(path, actor, form, PaddedShape(1, *wildfires, 1), {})
    return path


def test_each_specialist_is_asked_about_its_own_setup_on_its_own_map():
    homes = [Wildfire.from_config(s.config, **ROOM._asdict()) for s in SETUPS]
    files = adviser_files(("pretrained",), {setup.name: setup for setup in SETUPS})
    advisers = load_advisers(list(files.values()), homes)
    random = np.random.default_rng(0)
    laid = [
        moved(stack([home] * 4), setup.config, random)
        for home, setup in zip(homes, SETUPS, strict=True)
    ]
    games = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *laid)
    seen = jax.vmap(lambda game: game.reset(jax.random.key(0))[1])(games)
    said = advisers.advice(*twice(seen)).policy
    assert said.shape == (2, 8, 3, 6)
    for setup, home, block in zip(
        SETUPS, homes, (said[:, :4], said[:, 4:]), strict=True
    ):
        actor = load_actor(pretrained_file(setup.name))
        own, _ = actor.log_policy(home.reset(jax.random.key(0))[1], None)
        for one in block.reshape(-1, *own.shape):
            np.testing.assert_allclose(np.exp(one), np.exp(own), atol=1e-5)


def test_nobody_advises_on_scattered_maps():
    (setup, _), room = SETUPS, Rows(4, 5)
    home = Wildfire.from_config(setup.config, **room._asdict())
    games = scattered(stack([home] * 6), setup.config, np.random.default_rng(0))
    seen = jax.vmap(lambda game: game.reset(jax.random.key(0))[1])(games)
    advisers = load_advisers([pretrained_file(setup.name)], [home], "scattered")
    advice = advisers.advice(
        jax.tree.map(lambda leaf: leaf[None], seen), jnp.ones((1, 6), bool)
    )
    assert advice.given.tolist() == [[True, True, True, False, True, True]]
    actor = load_actor(pretrained_file(setup.name))
    own, _ = actor.log_policy(home.reset(jax.random.key(0))[1], None)
    for one in advice.policy[0, jnp.array([0, 1, 2, 4, 5])]:
        np.testing.assert_allclose(np.exp(one), np.exp(own), atol=1e-5)


def test_of_every_setup_those_that_are_scattered_have_no_advice():
    """Games come in blocks, by setups, and are counted within each of them: with six
    of each, the fourth and the tenth are scattered, not every fourth of all."""
    homes = [Wildfire.from_config(s.config, **ROOM._asdict()) for s in SETUPS]
    random = np.random.default_rng(0)
    blocks = [
        scattered(stack([home] * 6), setup.config, random)
        for home, setup in zip(homes, SETUPS, strict=True)
    ]
    at_home = [
        (np.asarray(block.rules.size) == np.asarray(home.rules.size)).all(axis=1)
        for home, block in zip(homes, blocks, strict=True)
    ]
    games = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *blocks)
    seen = jax.vmap(lambda game: game.reset(jax.random.key(0))[1])(games)
    files = [pretrained_file(name) for name in NAMES]
    advisers = load_advisers(files, homes, "scattered")
    advice = advisers.advice(*twice(seen))
    assert np.flatnonzero(~np.concatenate(at_home)).tolist() == [3, 9]
    assert advice.given.tolist() == [np.concatenate(at_home).tolist()] * 2


def test_who_remembers_is_heard_from_the_beginning_of_an_episode(tmp_path):
    """Of what it would have remembered of the games under way nothing is known."""
    homes = [Wildfire.from_config(s.config, **ROOM._asdict()) for s in SETUPS]
    files = [remembering(tmp_path / f"{n}.safetensors", n) for n in range(2)]
    games = stack([home for home in homes for _ in range(2)])
    actors = [load_actor(path) for path in files]
    stage = set_the_stage(games, actors[0], jax.random.key(0))
    _, along = rollout(games, actors[0], stage, jax.random.key(1), 40)
    # As if all games had been under way when the sequence began.
    started = along.started.at[0].set(False)
    advice = load_advisers(files, None).advice(along.observation, started)
    begun = np.cumsum(started, axis=0) > 0
    assert 0 < begun.mean() < 1
    np.testing.assert_array_equal(advice.given, begun)
    for game in range(4):
        actor = actors[game // 2]
        moment = eqx.filter_jit(actor.log_policy)
        memory = actor.start(ROOM.agents)
        for time in range(40):
            if started[time, game]:
                memory = actor.start(ROOM.agents)
            seen = jax.tree.map(lambda leaf: leaf[time, game], along.observation)  # noqa: B023
            own, memory = moment(seen, memory)
            if begun[time, game]:
                np.testing.assert_allclose(
                    np.exp(advice.policy[time, game]), np.exp(own), atol=1e-5
                )


def test_what_was_not_advised_does_not_count():
    """A batch of four moments, of which the last had no advice."""
    config = MappoConfig(games=4, steps=1, minibatches=1, advisers=("pretrained",))
    training = TrainConfig(
        setups=NAMES[:1],
        maps="scattered",
        networks=ActorConfig(hidden=8),
        learning=config,
    )
    program = Program(training, {NAMES[0]: SETUPS[0]})
    (group,), ((contender,),) = program.groups, program.start()
    games, learner, advisers = (
        jax.tree.map(lambda leaf: leaf[0], tree)
        for tree in (group.arena.games, contender.learner, group._advisers)
    )
    stage, experience = rollout(
        games, learner.networks.actor, learner.stage, jax.random.key(0), 1
    )
    hyper = Hyper.of(config)
    _, batch = prepare(config, hyper, learner, stage, experience, 1, advisers)
    assert batch.advice is not None
    assert batch.advice.given.tolist() == [[True, True, True, False]]
    rates = Rates.at("linear", hyper, jnp.zeros(()))
    told = jax.jit(
        lambda batch: losses(hyper.clip, rates, batch, None, learner.networks)
    )
    other = eqx.tree_at(
        lambda b: b.advice.policy, batch, batch.advice.policy.at[:, 3].add(-3.0)
    )
    changed = eqx.tree_at(
        lambda b: b.advice.policy, batch, batch.advice.policy.at[:, 0].multiply(3.0)
    )
    (usual, _), (same, _), (differs, _) = map(told, (batch, other, changed))
    assert float(usual) == float(same) != float(differs)


def test_divergence_is_that_of_the_offered_choices():
    random, offered = np.random.default_rng(0), np.array([True, True, False, True])
    p, q = (random.dirichlet(np.ones(3)) for _ in range(2))
    logs = [np.full(4, np.finfo(np.float32).min, np.float32) for _ in range(2)]
    for log, one in zip(logs, (p, q), strict=True):
        log[offered] = np.log(one)
    said, done, mask = (jnp.asarray(array) for array in (*logs, offered))
    found = divergence(said, done, mask)
    assert float(found) == pytest.approx((p * np.log(p / q)).sum(), rel=1e-4)
    assert float(divergence(said, said, mask)) == 0


def test_they_are_listened_to_less_and_less():
    hyper = Hyper.of(MappoConfig(advice=2.0, advised=0.5))
    along = [
        float(Rates.at("linear", hyper, jnp.asarray(part)).advice)
        for part in (0.0, 0.25, 0.5, 1.0)
    ]
    assert along == pytest.approx([2.0, 1.0, 0.0, 0.0])


def learned(tmp_path, name: str, **learning) -> dict[str, list[float]]:
    config = TrainConfig(
        setups=NAMES,
        maps="moved",
        checkpoints=1,
        networks=ActorConfig(hidden=16, context="pointer"),
        learning=MappoConfig(
            games=16,
            steps=10,
            updates=30,
            minibatches=2,
            advisers=("pretrained",),
            **learning,
        ),
    )
    folder = RunFolder.create(tmp_path / name, config)
    assert train(folder)
    rows = folder.read_metrics(config.runs[0])
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_a_learner_comes_to_do_as_it_is_told(tmp_path):
    heeded = learned(tmp_path, "heeded", advice=50.0, advised=1.0)["advice"]
    ignored = learned(tmp_path, "ignored", advice=0.0)["advice"]
    assert heeded[-1] < 0.5 * heeded[0]
    assert heeded[-1] < 0.9 * ignored[-1]  # returns alone lead there, too, but later


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("pretrained",) * 3, "3 advisers for 2 setups"),
        (("pretrained", "odd.safetensors"), "odd.safetensors differ in their networks"),
        (("pretrained", "lstm.safetensors"), "lstm.safetensors differ in their"),
        (("nowhere.safetensors",), "nowhere.safetensors"),
        (("other.safetensors",), "other.safetensors was trained for another game"),
    ],
)
@pytest.mark.parametrize("fleet", [False, True])
def test_who_cannot_advise_is_refused(names, words, fleet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wildfires = Features(4, 4, 1)
    for name, config, features in (
        ("odd", ActorConfig(hidden=8), wildfires),
        ("other", ActorConfig(hidden=8), Features(5, 4, 1)),
    ):
        actor = PointerActor.create(config, features, key=jax.random.key(0))
        path = tmp_path / f"{name}.safetensors"
        save_policy(path, actor, config, PaddedShape(1, *features, 1), {})
    remembering(tmp_path / "lstm.safetensors")
    config = TrainConfig(
        setups=NAMES,
        fleet=fleet,
        learning=MappoConfig(games=4, minibatches=2, advisers=names),
    )
    with pytest.raises(PlatoError, match=words):
        Program(config, {setup.name: setup for setup in SETUPS})


def test_a_fleet_has_an_adviser_for_each(tmp_path):
    """As those of a fleet do, whose runs have a setup each."""
    files = [str(pretrained_file(name)) for name in NAMES]
    config = TrainConfig(
        setups=NAMES,
        fleet=True,
        networks=ActorConfig(hidden=8),
        learning=MappoConfig(
            games=4, steps=10, updates=2, minibatches=2, advisers=tuple(files)
        ),
    )
    program = Program(config, {setup.name: setup for setup in SETUPS})
    _, metrics = program.advance(program.start(), 1)
    assert (program.in_order(metrics["advice"]) > 0).all()


def test_a_run_does_not_go_on_with_other_advisers(tmp_path):
    path = tmp_path / "mine.safetensors"
    shutil.copy(pretrained_file(NAMES[0]), path)
    config = TrainConfig(
        setups=NAMES[:1],
        networks=ActorConfig(hidden=8),
        learning=MappoConfig(
            games=4, steps=10, updates=2, minibatches=2, advisers=(str(path),)
        ),
    )
    folder = RunFolder.create(tmp_path / "run", config)
    assert train(folder)
    assert train(folder)  # there is nothing left to do, and nothing has changed
    shutil.copy(pretrained_file(NAMES[1]), path)
    with pytest.raises(PlatoError, match="does not have the adviser that"):
        train(folder)
