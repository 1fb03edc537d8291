"""MOHITO's learning rule: deterministic actors that give critics what they like.

Every agent has an actor and a critic of its own. Critics learn the value of what the
team does, from a replay memory and towards slowly following targets; they see the
hyperedges as the actors made them, and it is through these features, not through the
choice among them, that an actor learns what its critic values.

Networks that read as released also learn as released: their critics are taught the
mean reward of a batch in place of each transition's own.
"""

from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from plato.errors import PlatoError
from plato.game import Features, Game, Observation, WithinReach, how_many, select
from plato.learners.baseline_configs import Choice, MohitoLearning
from plato.learners.exploration import (
    Explorer,
    MemoryLearner,
    followed,
    play_and_learn,
)
from plato.learners.replay import Replay, Transition
from plato.masking import masked_softmax
from plato.policies.mohito import GraphNetwork, MohitoActors, MohitoCritics, per_agent
from plato.policies.mohito_config import MohitoConfig

Networks = TypeVar("Networks", MohitoActors, MohitoCritics)


class MohitoNetworks(eqx.Module):
    """All that is learned."""

    actors: MohitoActors
    critics: MohitoCritics


class Taught(eqx.Module):
    """What a gradient step changes."""

    networks: MohitoNetworks
    target: MohitoNetworks
    actor_state: Any
    """Of the optimisers, one for each network."""
    critic_state: Any
    steps: Int[Array, ""]
    """Gradient steps taken."""


def create_mohito(
    config: MohitoLearning,
    networks: MohitoConfig,
    features: Features,
    agents: int,
    games: Game[Any, Any],
    *,
    reach: WithinReach | None = None,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> MemoryLearner:
    """New networks for so many agents, their copies as targets, an empty memory."""
    if agents > games.capacity.agents:
        raise PlatoError(
            f"agents={agents}, but these games have rows for "
            f"{games.capacity.agents} only; train as many actors as there are agents."
        )
    k_actors, k_critics = jax.random.split(key)
    actors = MohitoActors.create(networks, features, agents, key=k_actors)
    valued_by = per_agent(networks, features, agents, key=k_critics)
    critics = MohitoCritics(valued_by, networks.as_released, reach)
    made = MohitoNetworks(actors, critics)
    parameters: Any = made
    taught = Taught(
        networks=made,
        target=made,
        actor_state=jax.vmap(_actor_optimiser(config).init)(parameters.actors),
        critic_state=jax.vmap(_critic_optimiser(config).init)(parameters.critics),
        steps=jnp.zeros((), jnp.int32),
    )
    return MemoryLearner.create(taught, actors, games, config.memory, game_key)


def update_mohito(
    config: MohitoLearning,
    games: Game[Any, Any],
    learner: MemoryLearner,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> tuple[MemoryLearner, dict[str, Array]]:
    """Some steps of all games, and the gradient steps that go with them."""
    epsilon = epsilon_at(config, learner.update * config.games * config.steps)
    player = Explorer(learner.taught.networks.actors, epsilon)
    step = partial(_gradient_step, config)
    return play_and_learn(config, games, learner, player, step, key, game_key)


def epsilon_at(config: MohitoLearning, steps: Int[Array, ""]) -> Float[Array, ""]:
    """The chance to stray after so many steps: it falls geometrically to its end."""
    fallen = config.epsilon * jnp.exp(-steps / config.epsilon_life)
    return jnp.maximum(fallen, config.epsilon_end)


def _gradient_step(
    config: MohitoLearning, replay: Replay, taught: Taught, key: PRNGKeyArray
) -> tuple[Taught, dict[str, Array]]:
    k_draw, k_goals, k_choose = jax.random.split(key, 3)
    batch = replay.draw(k_draw, config.batch)
    actors, critics = taught.networks.actors, taught.networks.critics

    goal = goals(config, taught.target, batch, k_goals)
    loss = partial(critic_loss, batch, goal, actors)
    (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(critics)
    optimiser = _critic_optimiser(config)
    critics, critic_state = _descend(optimiser, gradient, taught.critic_state, critics)

    # The critics that actors are to please are already those of after the step.
    loss = partial(actor_loss, config.choice, batch.observation, critics, k_choose)
    policy_loss, gradient = jax.value_and_grad(loss)(actors)
    optimiser = _actor_optimiser(config)
    actors, actor_state = _descend(optimiser, gradient, taught.actor_state, actors)

    networks, steps = MohitoNetworks(actors, critics), taught.steps + 1
    moved = followed(taught.target, networks, config.target_rate)
    target = select(steps % config.target_every == 0, moved, taught.target)
    metrics["policy_loss"] = policy_loss / how_many(critics.networks)
    return Taught(networks, target, actor_state, critic_state, steps), metrics


def _descend(
    optimiser: optax.GradientTransformation,
    gradient: Networks,
    state: Any,
    networks: Networks,
) -> tuple[Networks, Any]:
    """One step of every agent's network, each with an optimiser of its own."""
    slope: Any = gradient
    change, state = jax.vmap(optimiser.update)(slope, state)
    return jax.tree.map(jnp.add, networks, change), state


def _actor_optimiser(config: MohitoLearning) -> optax.GradientTransformation:
    return _optimiser(config, config.actor_rate)


def _critic_optimiser(config: MohitoLearning) -> optax.GradientTransformation:
    return _optimiser(config, config.critic_rate)


def _optimiser(config: MohitoLearning, rate: float) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(config.max_norm),
        optax.adam(rate, eps=config.adam_epsilon),
    )


def made_by(
    actors: MohitoActors, seen: Observation
) -> Float[Array, "batch agent hyperedge feat"]:
    """The hyperedges of many moments as actors make them."""
    return jax.vmap(actors.hyperedges)(seen)


def greedy(
    actors: MohitoActors,
    key: PRNGKeyArray,
    seen: Observation,
    hyperedges: Float[Array, "batch agent hyperedge feat"],
) -> Int[Array, "batch agent"]:
    """What everyone would do in these moments without exploring."""
    keys = jax.random.split(key, hyperedges.shape[0])
    return jax.vmap(actors.choose)(keys, seen, hyperedges)


def goals(
    config: MohitoLearning,
    target: MohitoNetworks,
    batch: Transition,
    key: PRNGKeyArray,
) -> Float[Array, "batch owner"]:
    """What each critic should have said: the targets go on from where a step led."""
    seen = batch.following
    hyperedges = made_by(target.actors, seen)
    actions = greedy(target.actors, key, seen, hyperedges)
    ahead = target.critics(target.critics.graphs(seen, hyperedges), actions)
    reward = batch.reward
    if target.critics.as_released:
        # It pairs every value with every reward of the batch; this has its gradient.
        reward = jnp.full_like(reward, reward.mean())
    return reward[:, None] + config.gamma * batch.discount[:, None] * ahead


def critic_loss(
    batch: Transition,
    goal: Float[Array, "batch owner"],
    actors: MohitoActors,
    critics: MohitoCritics,
) -> tuple[Float[Array, ""], dict[str, Array]]:
    """Squared errors of what was done, with hyperedges as the actors make them now.

    The sum over critics: each has parameters of its own.
    """
    seen = batch.observation
    team = critics.graphs(seen, made_by(actors, seen))
    values = critics(team, batch.actions)
    errors = jnp.mean((values - goal) ** 2, axis=0)
    return errors.sum(), {"value_loss": errors.mean(), "q": values.mean()}


def drawn(
    actors: MohitoActors,
    seen: Observation,
    hyperedges: Float[Array, "batch agent hyperedge feat"],
) -> Float[Array, "batch agent choice"]:
    """The chances of a softmax over the sums that agents choose by."""
    masks = jax.vmap(lambda one: one.action_mask)(seen)
    return masked_softmax(jax.vmap(actors.scores)(hyperedges), masks)


def actor_loss(
    choice: Choice,
    seen: Observation,
    critics: MohitoCritics,
    key: PRNGKeyArray,
    actors: MohitoActors,
) -> Float[Array, ""]:
    """How little the critics value what the actors would do.

    The sum over agents, of which each changes only its own hyperedges to please its own
    critic: the gradient for an actor is that of its own part. A soft choice weighs an
    agent's hyperedges by their sums, so that what is worth more is to sum up to more.
    """
    owners = how_many(critics.networks)
    hyperedges = made_by(actors, seen)
    actions = greedy(actors, key, seen, hyperedges)
    fixed = jax.lax.stop_gradient(hyperedges)
    plays = jnp.arange(hyperedges.shape[1]) % owners
    certain = jax.nn.one_hot(actions, hyperedges.shape[2])

    def value(network: GraphNetwork, owner: Int[Array, ""]) -> Float[Array, " batch"]:
        own = (plays == owner)[None, :, None, None]
        mine = jnp.where(own, hyperedges, fixed)
        team = critics.graphs(seen, mine)
        if choice == "hard":
            return critics.value(network, team, actions)
        chances = jnp.where(own[..., 0], drawn(actors, seen, mine), certain)
        return critics.expected(network, team, chances)

    values = jax.vmap(value)(critics.networks, jnp.arange(owners))
    return -values.mean(axis=1).sum()
