"""DGN's learning rule: masked Q-learning with replay, and relations that last.

Every agent learns its own Q-values for the team's reward, from a replay memory and
towards a slowly following target network. A regulariser keeps the attention of the last
relation layer close to what it will be in the next moment.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from plato.game import Game
from plato.learners.baseline_configs import DgnLearning
from plato.learners.exploration import (
    Explorer,
    MemoryLearner,
    followed,
    play_and_learn,
)
from plato.learners.replay import Replay, Transition
from plato.masking import masked_mean
from plato.policies.baseline_configs import DgnConfig
from plato.policies.dgn import DgnActor, divergence
from plato.policies.padded import PaddedShape


class Taught(eqx.Module):
    """What a gradient step changes."""

    actor: DgnActor
    target: DgnActor
    optimiser: Any


def create_dgn(
    config: DgnLearning,
    network: DgnConfig,
    shape: PaddedShape,
    games: Game[Any, Any],
    *,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> MemoryLearner:
    """A new network, its copy as the target, and an empty memory."""
    actor = DgnActor.create(network, shape, key=key)
    parameters: Any = actor
    taught = Taught(actor, actor, _optimiser(config).init(parameters))
    return MemoryLearner.create(taught, actor, games, config.memory, game_key)


def update_dgn(
    config: DgnLearning,
    games: Game[Any, Any],
    learner: MemoryLearner,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> tuple[MemoryLearner, dict[str, Array]]:
    """Some steps of all games, and the gradient steps that go with them."""
    epsilon = epsilon_at(config, learner.update * config.games * config.steps)
    player = Explorer(learner.taught.actor, epsilon)
    step = partial(_gradient_step, config)
    return play_and_learn(config, games, learner, player, step, key, game_key)


def epsilon_at(config: DgnLearning, steps: Int[Array, ""]) -> Float[Array, ""]:
    """The chance to stray after so many steps: level at first, then falling."""
    whole = config.games * config.steps * config.updates
    progress = (steps - config.warm_up) / (config.epsilon_fall * whole)
    fallen = (config.epsilon - config.epsilon_end) * jnp.clip(progress, 0, 1)
    return config.epsilon - fallen


def _gradient_step(
    config: DgnLearning, replay: Replay, taught: Taught, key: PRNGKeyArray
) -> tuple[Taught, dict[str, Array]]:
    batch = replay.draw(key, config.batch)
    loss = partial(dgn_loss, config, taught.target, batch)
    (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(taught.actor)
    change, state = _optimiser(config).update(gradient, taught.optimiser)
    actor = jax.tree.map(jnp.add, taught.actor, change)
    target = followed(taught.target, actor, config.target_rate)
    return Taught(actor, target, state), metrics


def _optimiser(config: DgnLearning) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(config.max_norm),
        optax.rmsprop(
            config.rate, decay=0.99, eps=config.rmsprop_epsilon, eps_in_sqrt=False
        ),
    )


def dgn_loss(
    config: DgnLearning, target: DgnActor, batch: Transition, actor: DgnActor
) -> tuple[Float[Array, ""], dict[str, Array]]:
    """Squared errors of Q-values, and how far relations move from step to step.

    What was done must be known to the network: what is cut off has no Q-value.
    """
    now = jax.vmap(actor.q_values)(batch.observation)
    taken = jnp.take_along_axis(now.values, batch.actions[..., None], axis=-1)[..., 0]
    ahead = jax.vmap(target.q_values)(batch.following).values.max(axis=-1)
    goal = batch.reward[:, None] + config.gamma * batch.discount[:, None] * ahead
    roster = batch.observation.roster
    error = masked_mean((jax.lax.stop_gradient(goal) - taken) ** 2, roster)
    later = jax.vmap(actor.q_values)(batch.following).relations[:, -1]
    moved = jax.vmap(divergence)(now.relations[:, -1], jax.lax.stop_gradient(later))
    drift = masked_mean(moved, roster)
    metrics = {"value_loss": error, "drift": drift, "q": masked_mean(taken, roster)}
    return error + config.relation * drift, metrics
