"""MOHITO's learning rule against small computations of its own."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import plato
from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import Features, stack
from plato.learners.baseline_configs import MohitoLearning
from plato.learners.config import TrainConfig
from plato.learners.exploration import Explorer, transitions
from plato.learners.mohito import (
    MohitoNetworks,
    actor_loss,
    create_mohito,
    critic_loss,
    epsilon_at,
    goals,
    greedy,
    made_by,
    update_mohito,
)
from plato.learners.program import Program
from plato.learners.rollout import rollout, set_the_stage
from plato.policies.hypergraph import critic_graph
from plato.policies.mohito import MohitoActors, MohitoCritics, per_agent
from plato.policies.mohito_config import MohitoConfig

CONFIG = MohitoLearning(games=3, steps=4, gradients=2, batch=6, memory=30, warm_up=12)
NETWORK = MohitoConfig(hidden=3, layers=2)
RELEASED = replace(NETWORK, as_released=True)
FEATURES = Features(agent=4, task=4, actions=1)
KEYS = {"key": jax.random.key(1), "game_key": jax.random.key(2)}
TASKS = 5


def games(agents: int = 4, **fields):
    config = replace(load_setup("wildfire-3x3-S3").config, **fields)
    return stack([Wildfire.from_config(config, agents=agents, tasks=TASKS)] * 3)


def nothing_burns():
    setup = load_setup("wildfire-3x3-S0").config
    fire = replace(setup.fire, lit=((False,) * 3,) * 3)
    return {"fire": fire, "stochastic": replace(setup.stochastic, fire_fuel=False)}


@partial(jax.jit, static_argnums=(1, 2))
def some_networks(seed: int, network=NETWORK, agents: int = 3) -> MohitoNetworks:
    k_actors, k_critics = jax.random.split(jax.random.key(seed))
    return MohitoNetworks(
        MohitoActors.create(network, FEATURES, agents, key=k_actors),
        MohitoCritics(
            per_agent(network, FEATURES, agents, key=k_critics), network.as_released
        ),
    )


@pytest.fixture(scope="module")
def batch():
    """Six transitions; two of them are ends, and rewards differ."""

    @jax.jit
    def play(some):
        player = Explorer(some_networks(0).actors, jnp.ones(()))
        stage = set_the_stage(some, player, jax.random.key(2))
        return rollout(some, player, stage, jax.random.key(3), 12)

    _, experience = play(games())
    many = jax.tree.map(lambda leaf: leaf[::6], transitions(experience))
    reward = many.reward + jnp.asarray([3.0, -1.0, 0.0, 0.5, 2.0, -4.0])
    return replace(many, reward=reward, discount=jnp.asarray([1.0, 0, 1, 1, 0, 1]))


def one(tree, index: int):
    return jax.tree.map(lambda leaf: leaf[index], tree)


@jax.jit
def looked_at(actors: MohitoActors, critics: MohitoCritics, seen):
    """Of one moment: what actors compare, and what each critic makes of all nodes."""
    made = actors.hyperedges(seen)
    team = critic_graph(seen, made)
    nodes = jax.vmap(lambda network: network(team.graph))(critics.networks)
    return made.sum(axis=2), nodes.mean(axis=2)


def node_of(action: int) -> int:
    """NOOP, action 0, is the last hyperedge; the others are in order before it."""
    return TASKS if action == 0 else action - 1


def team_values(means: np.ndarray, actions) -> np.ndarray:
    """Each critic's Q: the three agents' nodes, of 6 hyperedges each, summed."""
    nodes = [6 * agent + node_of(int(actions[agent])) for agent in range(3)]
    return means[:, nodes].sum(axis=1)


def best_actions(sums: np.ndarray, seen) -> list[int]:
    best = []
    for agent, legal in enumerate(np.asarray(seen.action_mask)[:3]):
        offered = [int(action) for action in np.flatnonzero(legal)]
        at_nodes = [sums[agent, node_of(action)] for action in offered]
        best.append(offered[int(np.argmax(at_nodes))])
    return best


def expected_goals(batch, target: MohitoNetworks) -> np.ndarray:
    """Transition by transition: reward and, where it goes on, the target's value."""
    rows = []
    for i in range(len(batch.reward)):
        seen = one(batch.following, i)
        sums, means = map(np.asarray, looked_at(target.actors, target.critics, seen))
        ahead = team_values(means, best_actions(sums, seen))
        rows.append(float(batch.reward[i]) + 0.99 * float(batch.discount[i]) * ahead)
    return np.stack(rows)


def expected_values(batch, networks: MohitoNetworks) -> np.ndarray:
    """Of what was done, with hyperedges as the actors now make them."""
    rows = []
    for i in range(len(batch.reward)):
        seen = one(batch.observation, i)
        _, means = looked_at(networks.actors, networks.critics, seen)
        rows.append(team_values(np.asarray(means), batch.actions[i]))
    return np.stack(rows)


def test_goals_are_the_reward_and_the_targets_value_of_what_follows(batch):
    target = some_networks(5)
    found = jax.jit(partial(goals, CONFIG))(target, batch, jax.random.key(0))
    np.testing.assert_allclose(found, expected_goals(batch, target), atol=1e-5)
    for end in (1, 4):
        np.testing.assert_allclose(found[end], batch.reward[end], atol=1e-6)


def test_critics_are_taught_the_squared_error(batch):
    networks = some_networks(6)
    goal = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    loss, metrics = jax.jit(critic_loss)(
        batch, jnp.asarray(goal), networks.actors, networks.critics
    )
    values = expected_values(batch, networks)
    errors = ((values - goal) ** 2).mean(axis=0)  # of each critic
    assert float(loss) == pytest.approx(errors.sum(), rel=1e-4)
    assert float(metrics["value_loss"]) == pytest.approx(errors.mean(), rel=1e-4)
    assert float(metrics["q"]) == pytest.approx(values.mean(), rel=1e-3, abs=1e-5)


def test_as_released_no_value_learns_of_its_own_reward(batch):
    released, intended = some_networks(5, RELEASED), some_networks(5)
    teach = jax.jit(partial(goals, CONFIG))
    plain, key = replace(batch, reward=jnp.zeros(6)), jax.random.key(0)
    # What is left of the goals without the value of what follows: the reward's part.
    part = np.asarray(teach(released, batch, key) - teach(released, plain, key))
    reward = np.asarray(batch.reward)
    np.testing.assert_allclose(part, np.full((6, 3), reward.mean()), atol=1e-5)
    part = np.asarray(teach(intended, batch, key) - teach(intended, plain, key))
    np.testing.assert_allclose(part, np.stack([reward] * 3, axis=1), atol=1e-5)

    # The released loss is over a table of all values and all rewards of the batch. Its
    # gradient for a value is what our goals give.
    values = np.random.default_rng(1).normal(size=6)
    ahead = np.asarray(teach(released, plain, key))[:, 0]
    table = values[None, :] - (reward[:, None] + ahead[None, :])
    ours = values - np.asarray(teach(released, batch, key))[:, 0]
    np.testing.assert_allclose(2 * table.sum(axis=0) / 36, 2 * ours / 6, atol=1e-5)
    # And there the values themselves are read from the first graph of the batch.
    loss = jax.jit(critic_loss)
    goal = jnp.zeros((6, 3))
    read = [
        float(loss(batch, goal, kind.actors, kind.critics)[0])
        for kind in (released, intended)
    ]
    assert read[0] != pytest.approx(read[1], rel=1e-3)


@pytest.mark.parametrize("network", [NETWORK, RELEASED])
def test_critics_come_to_know_the_rewards_unless_as_released(batch, network):
    networks = some_networks(8, network)
    optimiser = optax.adam(0.02)
    teach = jax.jit(partial(goals, replace(CONFIG, gamma=0.0)))
    goal = teach(networks, batch, jax.random.key(0))

    def step(carry, _):
        critics, state = carry
        gradient, _ = jax.grad(critic_loss, argnums=3, has_aux=True)(
            batch, goal, networks.actors, critics
        )
        change, state = optimiser.update(gradient, state)
        return (jax.tree.map(jnp.add, critics, change), state), None

    @jax.jit
    def error_after_learning(critics):
        carry = critics, optimiser.init(critics)
        (critics, _), _ = jax.lax.scan(step, carry, length=300)
        own = jnp.stack([batch.reward] * 3, axis=1)
        return critic_loss(batch, own, networks.actors, critics)[1]["value_loss"]

    unexplained = float(error_after_learning(networks.critics) / batch.reward.var())
    assert unexplained > 0.9 if network.as_released else unexplained < 0.1


def test_an_actor_pleases_its_own_critic_by_its_own_hyperedges(batch):
    """Two actors for three agents: the first also plays the third."""
    networks, seen = some_networks(7, agents=2), batch.observation
    taught = jax.jit(jax.value_and_grad(partial(actor_loss, "hard"), argnums=3))
    loss, gradient = taught(seen, networks.critics, jax.random.key(0), networks.actors)
    chosen, total = [], np.zeros(2)
    for i in range(6):
        moment = one(seen, i)
        looked = looked_at(networks.actors, networks.critics, moment)
        sums, means = map(np.asarray, looked)
        chosen.append(best_actions(sums, moment))
        total -= team_values(means, chosen[-1]) / 6
    assert float(loss) == pytest.approx(total.sum(), rel=1e-4)
    nodes = np.asarray([[node_of(int(a)) for a in row] for row in chosen])
    nodes += 6 * np.arange(3)[None, :]

    def own_loss(own, owner):
        """One owner's part: only its own network may change."""
        everyone = jax.tree.map(
            lambda all_of, mine: all_of.at[owner].set(mine),
            networks.actors.networks,
            own,
        )
        critic = one(networks.critics.networks, owner)

        def value(moment, nodes):
            made = MohitoActors(everyone).hyperedges(moment)
            return critic(critic_graph(moment, made).graph)[nodes].mean(1).sum()

        return -jax.vmap(value)(seen, jnp.asarray(nodes)).mean()

    own_gradient = jax.jit(jax.grad(own_loss))
    for owner in range(2):
        expected = own_gradient(one(networks.actors.networks, owner), owner)
        found = one(gradient.networks, owner)
        jax.tree.map(partial(np.testing.assert_allclose, atol=1e-5), found, expected)
        assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(found))


def test_a_soft_choice_weighs_its_own_hyperedges_by_their_sums(batch):
    """Two actors for three agents; what the other one's agents do is certain."""
    networks, seen = some_networks(7, agents=2), batch.observation
    arguments = seen, networks.critics, jax.random.key(0), networks.actors
    total = 0.0
    for i in range(6):
        moment = one(seen, i)
        looked = looked_at(networks.actors, networks.critics, moment)
        sums, means = map(np.asarray, looked)
        best = best_actions(sums, moment)
        for owner in range(2):
            for agent, legal in enumerate(np.asarray(moment.action_mask)[:3]):
                does = np.flatnonzero(legal) if agent % 2 == owner else [best[agent]]
                nodes = [node_of(int(action)) for action in does]
                chances = np.exp(sums[agent, nodes] - sums[agent, nodes].max())
                own = means[owner, 6 * agent + np.asarray(nodes)]
                total -= own @ chances / chances.sum() / 6
    assert float(jax.jit(partial(actor_loss, "soft"))(*arguments)) == pytest.approx(
        total, rel=1e-4
    )


def test_by_soft_choices_actors_come_to_take_what_critics_value(batch):
    """Critics to whom NOOP is worth something, and nothing else."""
    networks, seen = some_networks(7), batch.observation

    class OfNoop(MohitoCritics):
        def value(self, network, graphs, actions):
            return jnp.sum(actions == 0, axis=1).astype(float)

        def expected(self, network, graphs, chances):
            return jnp.sum(chances[:, :, 0], axis=1)

    critics = OfNoop(networks.critics.networks, as_released=False)
    optimiser = optax.adam(0.02)

    def step(choice, carry, key):
        actors, state = carry
        loss = partial(actor_loss, choice, seen, critics, key)
        change, state = optimiser.update(jax.grad(loss)(actors), state)
        return (jax.tree.map(jnp.add, actors, change), state), None

    @partial(jax.jit, static_argnums=0)
    def taken(choice):
        keys = jax.random.split(jax.random.key(5), 100)
        carry = networks.actors, optimiser.init(networks.actors)
        (actors, _), _ = jax.lax.scan(partial(step, choice), carry, keys)
        return greedy(actors, keys[0], seen, made_by(actors, seen))

    assert (taken("soft") == 0).all()
    assert not (taken("hard") == 0).all()  # a choice among them has no slope


def test_it_learns():
    """By soft choices, the default, a short training leaves chance behind."""
    config = MohitoLearning(games=16, steps=10, updates=30, batch=32, warm_up=800)
    config = replace(config, epsilon_life=5000.0, target_every=1, target_rate=0.02)
    config = replace(config, actor_rate=2e-3, critic_rate=4e-3)
    name, network = "wildfire-3x3-S3", MohitoConfig(hidden=8, layers=2)
    some = stack([Wildfire.from_config(load_setup(name).config)] * config.games)
    create = partial(create_mohito, config, network, FEATURES, 3)
    learner = jax.jit(create)(some, **KEYS)
    step = jax.jit(partial(update_mohito, config))
    for _ in range(config.updates):
        learner, _ = step(some, learner, KEYS["key"], KEYS["game_key"])
    played = plato.evaluate(learner.taught.networks.actors, name, episodes=200)
    chance = plato.evaluate("random", name, episodes=200)
    assert played.metrics["return"].mean() > chance.metrics["return"].mean() + 15


def test_as_released_there_are_no_soft_choices():
    with pytest.raises(PlatoError, match="as_released goes with choice='hard'"):
        TrainConfig(
            setups=("wildfire-2x3-S3",),
            networks=RELEASED,
            learning=MohitoLearning(),
        )


def test_epsilon_falls_with_every_step_to_its_end():
    found = [
        float(epsilon_at(MohitoLearning(), jnp.asarray(steps)))
        for steps in (0, 60, 60_000, 1_000_000)
    ]
    expected = [0.9, 0.9 * 0.999, 0.9 / np.e, 0.001]
    assert found == pytest.approx(expected, rel=1e-4)


def assert_same(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


def distance(left, right) -> float:
    leaves = jax.tree.leaves(
        jax.tree.map(lambda a, b: jnp.abs(a - b).max(), left, right)
    )
    return float(max(leaves))


def finite(tree) -> bool:
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("network", [NETWORK, RELEASED])
def test_updates_wait_then_learn_and_compile_once(network):
    """Two runs as one program; in the second there is nothing to do.

    Gradient steps count from the second round on; every second moves the targets. The
    fourth row is nobody, and so is the agent of the fourth networks.
    """
    traces = 0
    config = replace(CONFIG, warm_up=24, gradients=1, target_every=2, max_norm=1e-3)

    def counted(*arguments):
        nonlocal traces
        traces += 1
        return update_mohito(config, *arguments)

    step = jax.jit(jax.vmap(counted))
    some = [games(), games(**nothing_burns())]
    create = jax.jit(partial(create_mohito, config, network, FEATURES, 4))
    made = [create(g, **KEYS) for g in some]
    keys = [jnp.stack([key] * 2) for key in KEYS.values()]
    learners, reports = [stack(made)], []
    for _ in range(4):
        learner, metrics = step(stack(some), learners[-1], *keys)
        learners.append(learner)
        reports.append(metrics)
    assert traces == 1
    assert finite(reports)
    before, waited, second, third, last = (learner.taught for learner in learners)
    assert finite(last)
    assert_same(before, waited)
    for run in range(2):
        assert [int(t.steps[run]) for t in (second, third, last)] == [1, 2, 3]
    assert learners[-1].replay.added.tolist() == [48, 48]

    assert distance(second.networks.critics, before.networks.critics) > 1e-4
    assert distance(one(second.networks.actors, 0), one(before.networks.actors, 0)) > 0
    nobody, at_first = (
        jax.tree.map(lambda leaf: leaf[:, 3], taught.networks.actors)
        for taught in (last, before)
    )
    assert_same(nobody, at_first)

    # Each network's gradient is clipped by itself; Adam keeps a tenth of the first.
    for state, there in ((second.actor_state, 3), (second.critic_state, 4)):
        leaves = jax.tree.leaves(one(state[1][0].mu, 0))
        norms = sum((leaf**2).reshape(4, -1).sum(axis=1) for leaf in leaves) ** 0.5
        np.testing.assert_allclose(norms[:there], [1e-4] * there, rtol=1e-3)

    assert_same(second.target, before.target)
    assert_same(last.target, third.target)
    expected = jax.tree.map(
        lambda slow, new: np.asarray(slow) + 0.005 * (np.asarray(new) - slow),
        before.target,
        third.networks,
    )
    assert distance(third.target, expected) < 1e-6
    assert distance(third.target, before.target) > 2e-6


def test_what_does_not_fit_is_refused():
    with pytest.raises(PlatoError, match="memory must be from 240"):
        MohitoLearning(memory=239)
    with pytest.raises(PlatoError, match="epsilon_life must be above 0"):
        MohitoLearning(epsilon_life=0)
    with pytest.raises(PlatoError, match="target_every must be from 1"):
        MohitoLearning(target_every=0)
    with pytest.raises(PlatoError, match="rows for 4 only"):
        create_mohito(CONFIG, NETWORK, FEATURES, 5, games(), reach=None, **KEYS)


SOME = ("wildfire-2x3-S1", "wildfire-3x3-S0", "wildfire-3x3-S3")


@pytest.mark.parametrize("noise", ["independent", "paper"])
@pytest.mark.parametrize("fleet", [True, False])
def test_critics_have_room_for_what_is_within_reach_in_any_of_their_games(fleet, noise):
    """Of all runs of a program, and of all setups of a run."""
    setups = {name: load_setup(name) for name in SOME}
    learning = replace(CONFIG, games=6, memory=30)
    config = TrainConfig(
        setups=SOME, fleet=fleet, noise=noise, networks=NETWORK, learning=learning
    )
    expected = np.zeros((3, 4), bool)
    for setup in setups.values():
        near = np.asarray(setup.game().within_reach)
        expected[:, : near.shape[1]] |= near
    assert reaches(config) == [expected.tolist()]
    assert not expected.all()
    if noise == "independent":
        # Distances stay as they are, whatever the maps to come.
        moving = replace(config, maps="moved", new_maps=1)
        assert reaches(moving) == [expected.tolist()]


def test_on_scattered_maps_it_is_what_is_within_reach_there():
    config = TrainConfig(
        setups=SOME[-1:], maps="strange", networks=NETWORK, learning=CONFIG
    )
    setups = {SOME[-1]: load_setup(SOME[-1])}
    (group,) = Program(config, setups).groups
    games = jax.tree.map(lambda leaf: leaf[0], group.arena.games)
    near = np.asarray(jax.vmap(lambda game: game.within_reach)(games))
    assert reaches(config) == [near.any(axis=0).tolist()]
    assert (near != near[0]).any()
    # Their games will be others, and the memory is of old ones.
    assert reaches(replace(config, new_maps=1)) == [None]


def reaches(config: TrainConfig) -> list[Any]:
    program = Program(config, {name: load_setup(name) for name in config.setups})
    found = [
        group.shapes()[0].learner.taught.networks.critics.reach
        for group in program.groups
    ]
    return [reach and np.asarray(reach).tolist() for reach in found]
