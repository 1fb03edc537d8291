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

from plato.game import Game, select
from plato.learners.baseline_configs import DgnLearning
from plato.learners.exploration import Explorer, empty_memory, transitions
from plato.learners.replay import Replay, Transition
from plato.learners.rollout import Stage, rollout, set_the_stage
from plato.masking import masked_mean
from plato.policies.baseline_configs import DgnConfig
from plato.policies.dgn import DgnActor, divergence
from plato.policies.padded import PaddedShape


class DgnLearner(eqx.Module):
    """Everything an update changes."""

    actor: DgnActor
    target: DgnActor
    optimiser: Any
    replay: Replay
    stage: Stage
    update: Int[Array, ""]


def create_dgn(
    config: DgnLearning,
    network: DgnConfig,
    shape: PaddedShape,
    games: Game[Any, Any],
    *,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> DgnLearner:
    """A new network, its copy as the target, and an empty memory."""
    actor = DgnActor.create(network, shape, key=key)
    parameters: Any = actor
    explorer = Explorer(actor, jnp.ones(()))
    stage = set_the_stage(games, explorer, game_key)
    return DgnLearner(
        actor=actor,
        target=actor,
        optimiser=_optimiser(config).init(parameters),
        replay=empty_memory(games, explorer, stage, config.memory),
        stage=stage,
        update=jnp.zeros((), jnp.int32),
    )


def update_dgn(
    config: DgnLearning,
    games: Game[Any, Any],
    learner: DgnLearner,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> tuple[DgnLearner, dict[str, Array]]:
    """Some steps of all games, and the gradient steps that go with them."""
    number = learner.update
    epsilon = epsilon_at(config, number * config.games * config.steps)
    stage, experience = rollout(
        games,
        Explorer(learner.actor, epsilon),
        learner.stage,
        jax.random.fold_in(game_key, number),
        config.steps,
    )
    replay = learner.replay.add(transitions(experience))
    keys = jax.random.split(jax.random.fold_in(key, number), config.gradients)
    carry = learner.actor, learner.target, learner.optimiser
    taught, metrics = jax.lax.scan(partial(_gradient_step, config, replay), carry, keys)
    # Nothing is learned before there is enough to learn from.
    actor, target, optimiser = select(replay.added >= config.warm_up, taught, carry)
    metrics = jax.tree.map(lambda leaf: leaf.mean(), metrics)
    metrics |= experience.report()
    metrics["epsilon"] = epsilon
    following = DgnLearner(actor, target, optimiser, replay, stage, number + 1)
    return following, metrics


def epsilon_at(config: DgnLearning, steps: Int[Array, ""]) -> Float[Array, ""]:
    """The chance to stray after so many steps: level at first, then falling."""
    whole = config.games * config.steps * config.updates
    progress = (steps - config.warm_up) / (config.epsilon_fall * whole)
    fallen = (config.epsilon - config.epsilon_end) * jnp.clip(progress, 0, 1)
    return config.epsilon - fallen


def _gradient_step(config: DgnLearning, replay: Replay, carry, key):
    actor, target, state = carry
    batch = replay.draw(key, config.batch)
    loss = partial(dgn_loss, config, target, batch)
    (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(actor)
    change, state = _optimiser(config).update(gradient, state)
    actor = jax.tree.map(jnp.add, actor, change)
    target = jax.tree.map(
        lambda slow, new: slow + config.target_rate * (new - slow), target, actor
    )
    return (actor, target, state), metrics


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
    """Squared errors of Q-values, and how far relations move from step to step."""
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
