"""MOHITO's learning rule against small computations of its own."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.errors import PlatoError
from plato.game import stack
from plato.learners.baseline_configs import MohitoLearning
from plato.learners.dgn import transitions
from plato.learners.mohito import (
    Explorer,
    MohitoNetworks,
    actor_loss,
    create_mohito,
    critic_loss,
    epsilon_at,
    goals,
    update_mohito,
)
from plato.learners.rollout import rollout
from plato.policies.hypergraph import critic_graph, observation_graphs
from plato.policies.mohito import MohitoActors, MohitoCritics, per_agent
from plato.policies.mohito_config import MohitoConfig
from plato.policies.pointer import Features

CONFIG = MohitoLearning(games=3, steps=4, gradients=2, batch=6, memory=30, warm_up=12)
NETWORK = MohitoConfig(hidden=3)
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
    player = Explorer(some_networks(0).actors, jnp.ones(()))
    learner = create_mohito(CONFIG, NETWORK, FEATURES, 3, games(), **KEYS)
    _, experience = jax.jit(partial(rollout, steps=12))(
        games(), player, learner.stage, jax.random.key(3)
    )
    many = jax.tree.map(lambda leaf: leaf[::6], transitions(experience))
    reward = many.reward + jnp.asarray([3.0, -1.0, 0.0, 0.5, 2.0, -4.0])
    return replace(many, reward=reward, discount=jnp.asarray([1.0, 0, 1, 1, 0, 1]))


def one(tree, index: int):
    return jax.tree.map(lambda leaf: leaf[index], tree)


@jax.jit
def looked_at(actors: MohitoActors, critics: MohitoCritics, seen):
    """Of one moment: what actors compare, and what each critic makes of all nodes."""
    graphs = observation_graphs(seen)
    made = actors.hyperedges(seen, graphs)
    team = critic_graph(seen, graphs, made)
    nodes = jax.vmap(lambda network: network(team.graph))(critics.networks)
    return made.sum(axis=2), nodes.mean(axis=2)


def node_of(action: int) -> int:
    """NOOP, action 0, is the last hyperedge; the others are in order before it."""
    return TASKS if action == 0 else action - 1


def team_values(means: np.ndarray, actions) -> np.ndarray:
    """Each critic's Q: the three agents' nodes, of 14 each without teammates, summed.

    An agent has 6 hyperedges, 6 tasks, 2 verbs and itself.
    """
    nodes = [15 * agent + node_of(int(actions[agent])) for agent in range(3)]
    return means[:, nodes].sum(axis=1)


def best_actions(sums: np.ndarray, seen) -> list[int]:
    legal = np.asarray(seen.action_mask)
    return [
        max(np.flatnonzero(legal[agent]), key=lambda a: sums[agent, node_of(a)])
        for agent in range(3)
    ]


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


@pytest.mark.parametrize("trained", [3, 2])
def test_an_actor_pleases_its_own_critic_by_its_own_hyperedges(batch, trained):
    """With two actors for three agents, the first also plays the third."""
    networks, seen = some_networks(7, agents=trained), batch.observation
    gradient = jax.jit(jax.grad(partial(actor_loss, seen), argnums=2))(
        networks.critics, jax.random.key(0), networks.actors
    )
    chosen, total = [], np.zeros(trained)
    for i in range(6):
        moment = one(seen, i)
        sums, means = map(
            np.asarray, looked_at(networks.actors, networks.critics, moment)
        )
        chosen.append(best_actions(sums, moment))
        total -= team_values(means, chosen[-1]) / 6
    loss = actor_loss(seen, networks.critics, jax.random.key(0), networks.actors)
    assert float(loss) == pytest.approx(total.sum(), rel=1e-4)

    def own_loss(own, owner: int):
        """One owner's part: only its own network may change."""
        everyone = jax.tree.map(
            lambda all_of, mine: all_of.at[owner].set(mine),
            networks.actors.networks,
            own,
        )
        nodes = jnp.asarray([[node_of(int(a)) for a in row] for row in chosen])
        nodes += 15 * jnp.arange(3)[None, :]
        critic = one(networks.critics.networks, owner)

        def value(moment, nodes):
            graphs = observation_graphs(moment)
            made = MohitoActors(everyone).hyperedges(moment, graphs)
            return critic(critic_graph(moment, graphs, made).graph)[nodes].mean(1).sum()

        return -jax.vmap(value)(seen, nodes).mean()

    for owner in range(trained):
        expected = jax.jit(jax.grad(partial(own_loss, owner=owner)))(
            one(networks.actors.networks, owner)
        )
        found = one(gradient.networks, owner)
        jax.tree.map(partial(np.testing.assert_allclose, atol=1e-5), found, expected)
        assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(found))


def test_epsilon_falls_with_every_step_to_its_end():
    found = [
        float(epsilon_at(MohitoLearning(), jnp.asarray(steps)))
        for steps in (0, 1, 1000, 100_000)
    ]
    expected = [0.9, 0.9 * 0.999, 0.9 * 0.999**1000, 0.001]
    assert found == pytest.approx(expected, rel=1e-4)


def assert_same(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


def distance(left, right) -> float:
    leaves = jax.tree.leaves(
        jax.tree.map(lambda a, b: jnp.abs(a - b).max(), left, right)
    )
    return float(max(leaves))


@pytest.mark.parametrize("network", [NETWORK, RELEASED])
def test_updates_wait_then_learn_and_compile_once(network):
    """Four rounds of two gradient steps, learning from the second: six in all."""
    traces = 0
    config = replace(CONFIG, warm_up=24, target_every=4, max_norm=1e-3)

    def counted(*arguments):
        nonlocal traces
        traces += 1
        return update_mohito(config, *arguments)

    step, some = jax.jit(counted), games()
    first = learner = create_mohito(config, network, FEATURES, 3, some, **KEYS)
    learner, metrics = step(some, learner, *KEYS.values())
    assert_same(first.taught, learner.taught)
    assert all(np.isfinite(np.asarray(v)).all() for v in metrics.values())

    learner, _ = step(some, learner, *KEYS.values())
    taught = learner.taught
    assert int(taught.steps) == 2
    assert distance(taught.networks.actors, first.taught.networks.actors) > 0
    assert distance(taught.networks.critics, first.taught.networks.critics) > 0
    assert_same(taught.target, first.taught.target)
    for _ in range(2):
        learner, metrics = step(some, learner, *KEYS.values())
        assert all(np.isfinite(np.asarray(v)).all() for v in metrics.values())
    assert traces == 1
    assert (int(learner.taught.steps), int(learner.replay.size)) == (6, 30)
    moved = distance(learner.taught.target, first.taught.target)
    # Once, by 0.005 of the way that the networks had gone in four small steps.
    assert 0 < moved < 0.006 * 4 * config.critic_rate


def test_targets_follow_all_the_way_when_asked():
    config = replace(CONFIG, warm_up=0, target_every=2, target_rate=1.0)
    learner = create_mohito(config, NETWORK, FEATURES, 3, games(), **KEYS)
    learner, _ = jax.jit(partial(update_mohito, config))(
        games(), learner, *KEYS.values()
    )
    assert distance(learner.taught.target, learner.taught.networks) < 1e-6


def test_every_network_s_gradient_is_clipped_on_its_own():
    config = replace(CONFIG, warm_up=0, gradients=1, max_norm=1e-3)
    learner = create_mohito(config, NETWORK, FEATURES, 3, games(), **KEYS)
    learner, _ = jax.jit(partial(update_mohito, config))(
        games(), learner, *KEYS.values()
    )
    for state in (learner.taught.actor_state, learner.taught.critic_state):
        leaves = jax.tree.leaves(state[1][0].mu)  # a tenth of the first gradient
        norms = sum((leaf**2).reshape(3, -1).sum(axis=1) for leaf in leaves) ** 0.5
        np.testing.assert_allclose(norms, [1e-4] * 3, rtol=1e-3)


@pytest.mark.parametrize("fields", [{}, nothing_burns()])
@pytest.mark.parametrize("network", [NETWORK, RELEASED])
def test_nobody_and_nothing_give_numbers(fields, network):
    """A fourth network without an agent; games in which nothing is to be done."""
    config, some = replace(CONFIG, warm_up=0), games(**fields)
    first = learner = create_mohito(config, network, FEATURES, 4, some, **KEYS)
    step = jax.jit(partial(update_mohito, config))
    for _ in range(2):
        learner, metrics = step(some, learner, *KEYS.values())
    assert all(np.isfinite(np.asarray(v)).all() for v in metrics.values())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner.taught))
    nobody, before = (
        one(taught.networks.actors, 3) for taught in (learner.taught, first.taught)
    )
    assert_same(nobody, before)


def test_runs_are_a_batch_axis():
    config = replace(CONFIG, warm_up=0)
    keys = [{"key": jax.random.key(i), "game_key": jax.random.key(9)} for i in (3, 4)]
    some = games()
    alone = [create_mohito(config, NETWORK, FEATURES, 3, some, **k) for k in keys]
    step = partial(update_mohito, config)
    both, metrics = jax.jit(jax.vmap(step))(
        stack([some] * 2),
        stack(alone),
        *(jnp.stack([k[name] for k in keys]) for name in ("key", "game_key")),
    )
    expected, report = jax.jit(step)(some, alone[1], *keys[1].values())
    assert distance(one(both, 1).taught.networks, expected.taught.networks) < 1e-4
    assert {name: v.shape for name, v in metrics.items()} == dict.fromkeys(report, (2,))


def test_what_does_not_fit_is_refused():
    with pytest.raises(PlatoError, match="memory must be from 40"):
        MohitoLearning(memory=39)
    with pytest.raises(PlatoError, match="target_every must be from 1"):
        MohitoLearning(target_every=0)
    with pytest.raises(PlatoError, match="rows for 4 only"):
        create_mohito(CONFIG, NETWORK, FEATURES, 5, games(), **KEYS)
