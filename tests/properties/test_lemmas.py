"""The paper's lemmas and theorems about the actor and the critic, as properties."""

from functools import cache
from itertools import combinations, product
from typing import get_args, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moments import (
    FEATURES,
    ROWS,
    VARIANTS,
    actor_configs,
    changed,
    moments,
    observation,
    offered,
    rearranged,
    with_spare_rows,
    without,
)
from plato.game import Observation
from plato.policies.config import ActorConfig
from plato.policies.critic import GraphCritic
from plato.policies.pointer import PointerActor
from plato.policies.summaries import AgentPointer

CRITICS = [
    GraphCritic.create(
        ActorConfig(hidden=8, away=away), FEATURES, key=jax.random.key(1)
    )
    for away in ("removed", "flagged")
]


def close(one, other) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@cache
def build(config: ActorConfig, actions: int = FEATURES.actions) -> PointerActor:
    features = FEATURES._replace(actions=actions)
    actor = PointerActor.create(config, features, key=jax.random.key(0))
    # Scores far from uniform, so that a wrong one is seen.
    return jax.tree.map(lambda leaf: 3 * leaf, actor)


@jax.jit
def log_policy(actor: PointerActor, seen: Observation):
    return actor.log_policy(seen, actor.start(seen.agents.shape[0]))[0]


def logs(config: ActorConfig, seen: Observation) -> np.ndarray:
    """Log-policies, computed in arrays that fit all moments: one compilation each."""
    agents, tasks, actions = seen.options.shape
    roomy = with_spare_rows(seen, *ROWS, seed=0)
    result = np.asarray(log_policy(build(config, actions), roomy))
    assert np.isfinite(result).all()
    return result[:agents, : 1 + tasks * actions]


def policy(config: ActorConfig, seen: Observation) -> np.ndarray:
    return np.exp(logs(config, seen))


@jax.jit
def values(seen: Observation):
    return jnp.stack([critic(seen) for critic in CRITICS])


def test_the_actors_tried_here_show_every_pair_of_switches():
    """Whatever the defaults are, and none of them twice."""
    values = {
        name: (False, True) if kind is bool else get_args(kind)
        for name, kind in get_type_hints(ActorConfig).items()
        if kind is not int
    }
    for one, other in combinations(values, 2):
        found = {(getattr(c, one), getattr(c, other)) for c in VARIANTS}
        assert found == set(product(values[one], values[other])), (one, other)
    for size in ("heads", "depth"):
        assert len({getattr(config, size) for config in VARIANTS}) > 1
    assert len(set(VARIANTS)) == len(VARIANTS)


@given(actor_configs, moments(away=True), st.randoms(use_true_random=False))
def test_lemma_1_and_theorem_1_the_actor_does_not_depend_on_order(config, seen, random):
    agents, tasks = (list(range(n)) for n in seen.options.shape[:2])
    random.shuffle(agents)
    random.shuffle(tasks)
    moved = policy(config, rearranged(seen, np.array(agents), np.array(tasks, int)))
    choices = [0, *(1 + np.array(tasks, int))]
    close(moved, policy(config, seen)[agents][:, choices])


@given(moments(away=True), st.randoms(use_true_random=False))
def test_theorem_1_the_critic_does_not_depend_on_order(seen, random):
    agents, tasks = (list(range(n)) for n in seen.options.shape[:2])
    random.shuffle(agents)
    random.shuffle(tasks)
    moved = rearranged(seen, np.array(agents), np.array(tasks, int))
    one, other = (with_spare_rows(m, *ROWS, seed=0) for m in (seen, moved))
    close(values(one), values(other))


@given(actor_configs, moments(away=True), st.integers(0, 2**31))
def test_theorem_1_masked_rows_change_nothing(config, seen, seed):
    agents, tasks = seen.options.shape[:2]
    rubbish = with_spare_rows(seen, *ROWS, seed=seed)
    other = np.exp(np.asarray(log_policy(build(config), rubbish)))
    close(other[:agents, : tasks + 1], policy(config, seen))
    assert (other[:agents, tasks + 1 :] == 0).all()
    close(values(rubbish), values(with_spare_rows(seen, *ROWS, seed=0)))


@given(actor_configs, moments())
def test_task_openness_the_support_is_what_is_offered(config, seen):
    found, legal = logs(config, seen), offered(seen)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, rtol=1e-5)
    assert (np.exp(found[~legal]) == 0).all()
    assert (found[legal] > -1e4).all()


@given(actor_configs.filter(lambda c: c.context == "none"), moments(min_tasks=3))
def test_task_openness_log_odds_survive_a_third_task(config, seen):
    """Whether task 2 is there has no say in how tasks 0 and 1 compare."""
    everyone = np.arange(seen.options.shape[0])
    seen = changed(seen, options=np.ones(seen.options.shape, bool))
    fewer = rearranged(seen, everyone, np.arange(2))
    with_it, alone = logs(config, seen)[:, 1:3], logs(config, fewer)[:, 1:3]
    np.testing.assert_allclose(
        with_it[:, 0] - with_it[:, 1], alone[:, 0] - alone[:, 1], rtol=1e-3, atol=1e-4
    )


SEVERAL = 3
"""Actions of a task, where it has several."""


def choices_of(tasks: list[int] | range) -> np.ndarray:
    """The columns of a policy that belong to some tasks."""
    actions = np.arange(SEVERAL)
    return np.concatenate([[0], *(1 + SEVERAL * task + actions for task in tasks)])


@given(
    st.sampled_from([VARIANTS[0], *VARIANTS[3:7]]),
    moments(away=True, actions=SEVERAL),
    st.randoms(use_true_random=False),
)
def test_all_of_it_holds_where_tasks_offer_several_actions(config, seen, random):
    """Order, rubbish in spare rows and the support; and a key for each task-action."""
    agents, tasks = (list(range(n)) for n in seen.options.shape[:2])
    scores, legal = logs(config, seen), offered(seen)
    found = np.exp(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    assert (found[~legal] == 0).all()
    assert (scores[legal] > -1e4).all()
    random.shuffle(agents)
    random.shuffle(tasks)
    moved = rearranged(seen, np.array(agents), np.array(tasks, int))
    close(policy(config, moved), found[agents][:, choices_of(tasks)])
    rubbish = with_spare_rows(seen, *ROWS, seed=random.randrange(2**31))
    other = np.exp(np.asarray(log_policy(build(config, SEVERAL), rubbish)))
    close(other[: len(agents), : found.shape[1]], found)
    assert (other[: len(agents), found.shape[1] :] == 0).all()
    for row, options in zip(scores, np.asarray(seen.options), strict=True):
        for task in np.flatnonzero(options.all(axis=1)):
            assert np.ptp(row[1 + SEVERAL * task :][:SEVERAL]) > 0


@given(
    st.sampled_from([c for c in VARIANTS if c.context == "none"][:3]),
    moments(min_tasks=3, actions=SEVERAL),
)
def test_log_odds_of_task_actions_survive_a_third_task(config, seen):
    everyone = np.arange(seen.options.shape[0])
    seen = changed(seen, options=np.ones(seen.options.shape, bool))
    fewer = rearranged(seen, everyone, np.arange(2))
    columns = choices_of(range(2))[1:]
    with_it, alone = (logs(config, moment)[:, columns] for moment in (seen, fewer))
    np.testing.assert_allclose(
        with_it - with_it[:, :1], alone - alone[:, :1], rtol=1e-3, atol=1e-4
    )


@jax.jit
def looked_at(pointer: AgentPointer, seen: Observation):
    return pointer.weights(seen), pointer(seen)


def weights(pointer: AgentPointer, seen: Observation) -> np.ndarray:
    """Of every agent on every other, computed in arrays that fit all moments."""
    agents = seen.options.shape[0]
    found, _ = looked_at(pointer, with_spare_rows(seen, *ROWS, seed=0))
    return np.asarray(found)[:agents, :agents]


@given(
    moments(),
    st.integers(1, 2),
    st.integers(0, 4),
    st.sampled_from(["removed", "flagged"]),
)
def test_agent_openness_weights_survive_a_third_agent(seen, heads, leaves, away):
    """When one agent leaves, attention to the others keeps its proportions."""
    config = ActorConfig(hidden=8, heads=heads, away=away)
    pointer = build(config).team
    assert isinstance(pointer, AgentPointer)
    count = seen.options.shape[0]
    leaves %= count
    before, later = weights(pointer, seen), weights(pointer, without(seen, leaves))
    team = np.asarray(seen.sees_agents)
    assert (before[~team] == 0).all()
    for i in range(count):
        rest = [j for j in range(count) if j != leaves and team[i, j]]
        # One who is away itself looks for something else, where it is marked.
        if rest and (away == "removed" or i != leaves):
            kept = before[i, rest] / before[i, rest].sum(axis=0)
            left = later[i, rest] / later[i, rest].sum(axis=0)
            np.testing.assert_allclose(left, kept, rtol=1e-4, atol=1e-5)
        if away == "removed" and rest:
            np.testing.assert_allclose(later[i, rest].sum(axis=0), 1, rtol=1e-5)
    if away == "removed":
        assert (later[:, leaves] == 0).all()


@given(moments(full_view=True), st.integers(0, 4))
def test_an_agent_that_is_away_is_gone_or_flagged(seen, leaves):
    """Removed: as if it had never been. Flagged: its row still has a say."""
    agents, tasks = (np.arange(n) for n in seen.options.shape[:2])
    leaves %= len(agents)
    away = without(seen, leaves)
    rest = np.delete(agents, leaves)
    if len(rest):
        config = ActorConfig(hidden=8, away="removed")
        gone = policy(config, rearranged(seen, rest, tasks))
        close(policy(config, away)[rest], gone)
    flagged = build(ActorConfig(hidden=8, away="flagged")).team
    assert isinstance(flagged, AgentPointer)
    assert (weights(flagged, away) > 0).all()
    one, other = (with_spare_rows(moment, *ROWS, seed=0) for moment in (away, seen))
    heard = [looked_at(flagged, moment)[1][: len(agents)] for moment in (one, other)]
    assert (np.asarray(heard[0]) != np.asarray(heard[1])).any()


@given(actor_configs, moments())
def test_without_a_task_noop_is_certain(config, seen):
    nothing = changed(
        seen,
        exists=np.zeros(seen.exists.shape, bool),
        options=np.zeros(seen.options.shape, bool),
    )
    probabilities = policy(config, nothing)
    np.testing.assert_allclose(probabilities[:, 0], 1, rtol=1e-6)


EMPTY = observation(
    agents=np.zeros((2, 3), np.float32),
    roster=np.zeros(2, bool),
    present=np.zeros(2, bool),
    tasks=np.zeros((2, 2), np.float32),
    exists=np.zeros(2, bool),
    public=np.ones(3, bool),
    sees_agents=np.ones((2, 2), bool),
    sees_tasks=np.ones((2, 2), bool),
    options=np.zeros((2, 2, 1), bool),
)


@jax.jit
@jax.grad
def slopes_of_an_actor(actor: PointerActor):
    logs, _ = actor.log_policy(EMPTY, actor.start(2))
    return jnp.sum(jnp.where(EMPTY.action_mask, logs, 0.0))


@jax.jit
@jax.grad
def slopes_of_a_critic(critic: GraphCritic):
    return critic(EMPTY)


@given(actor_configs)
def test_nobody_and_nothing_is_a_moment_too(config):
    """No agent present, no task: finite values, and gradients that are finite."""
    assert np.isfinite(np.asarray(values(EMPTY))).all()
    for leaf in jax.tree.leaves(slopes_of_an_actor(build(config))):
        assert np.isfinite(np.asarray(leaf)).all()
    for leaf in jax.tree.leaves([slopes_of_a_critic(critic) for critic in CRITICS]):
        assert np.isfinite(np.asarray(leaf)).all()


@pytest.mark.parametrize("query", ["pointer", "statistics"])
def test_only_ego_tells_agents_apart_by_statistics(query):
    """Algorithm 1 as printed gives the same query to everyone who sees everything."""
    random = np.random.default_rng(0)
    seen = Observation(
        agents=jnp.asarray(random.normal(size=(3, 3)), jnp.float32),
        roster=jnp.ones(3, bool),
        present=jnp.ones(3, bool),
        tasks=jnp.asarray(random.normal(size=(4, 2)), jnp.float32),
        exists=jnp.ones(4, bool),
        public=jnp.ones(3, bool),
        sees_agents=jnp.ones((3, 3), bool),
        sees_tasks=jnp.ones((3, 4), bool),
        options=jnp.ones((3, 4, 1), bool),
    )
    config = ActorConfig(query=query, ego=False, context="none", hidden=8)
    actor = build(config)
    # What the query is made from: all that the encoder sees.
    query_rows = actor.summary(seen, actor.keys(seen))
    same = np.allclose(query_rows[0], query_rows[1], atol=1e-6)
    assert same == (query == "statistics")
