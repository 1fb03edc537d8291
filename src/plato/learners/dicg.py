"""DICG's learning rule: PPO on the joint policy, advantages trajectory by trajectory.

As in the method's own code, but for two things that we do for all methods alike: a time
limit cuts an episode and does not end it, so its value is counted on; and the graph
convolutions are trained (unless the networks say that they are frozen).
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import Game, Observation
from plato.learners.baseline_configs import DicgLearning
from plato.learners.gae import advantages, next_values
from plato.learners.rollout import Experience, Stage, rollout, set_the_stage
from plato.masking import chosen, entropy
from plato.policies.baseline_configs import DicgConfig
from plato.policies.dicg import DicgActor, FlatCritic, SummedCritic, dicg_critic
from plato.policies.padded import PaddedShape


class DicgNetworks(eqx.Module):
    """All that is learned."""

    actor: DicgActor
    critic: FlatCritic | SummedCritic


class DicgLearner(eqx.Module):
    """Everything an update changes."""

    networks: DicgNetworks
    optimiser: Any
    stage: Stage
    update: Int[Array, ""]


class DicgBatch(eqx.Module):
    """A rollout ready to learn from."""

    observation: Observation
    actions: Int[Array, "time game agent"]
    log_probability: Float[Array, "time game"]
    """Of the joint action."""
    advantage: Float[Array, "time game"]
    returns: Float[Array, "time game"]
    """Discounted, as far as they were seen; beyond that what the critic expects."""


def create_dicg(
    config: DicgLearning,
    networks: DicgConfig,
    shape: PaddedShape,
    games: Game[Any, Any],
    *,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> DicgLearner:
    """New networks, and the first moments of all games (stacked)."""
    k_actor, k_critic = jax.random.split(key)
    made = DicgNetworks(
        DicgActor.create(networks, shape, key=k_actor),
        dicg_critic(networks, shape, key=k_critic),
    )
    actor, critic = _optimisers(config)
    parameters: Any = made
    return DicgLearner(
        networks=made,
        optimiser=(actor.init(parameters.actor), critic.init(parameters.critic)),
        stage=set_the_stage(games, made.actor, game_key),
        update=jnp.zeros((), jnp.int32),
    )


def update_dicg(
    config: DicgLearning,
    games: Game[Any, Any],
    learner: DicgLearner,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
) -> tuple[DicgLearner, dict[str, Array]]:
    """One rollout and the gradient steps it feeds."""
    number = learner.update
    stage, experience = rollout(
        games,
        learner.networks.actor,
        learner.stage,
        jax.random.fold_in(game_key, number),
        config.steps,
    )
    batch = prepare_dicg(config, learner.networks, stage, experience)
    # One order for all epochs: games as a whole, always in the same company.
    order = jax.random.permutation(jax.random.fold_in(key, number), config.games)
    groups = jnp.tile(order.reshape(config.minibatches, -1), (config.epochs, 1))
    step = partial(_gradient_step, config, batch)
    carry = learner.networks, learner.optimiser
    (networks, optimiser), metrics = jax.lax.scan(step, carry, groups)
    metrics = jax.tree.map(lambda leaf: leaf.mean(), metrics)
    metrics |= experience.report()
    return DicgLearner(networks, optimiser, stage, number + 1), metrics


def prepare_dicg(
    config: DicgLearning, networks: DicgNetworks, stage: Stage, experience: Experience
) -> DicgBatch:
    """Advantages and returns, with the values from before the update."""

    def critic(seen: Observation) -> Float[Array, " game"]:
        return jax.vmap(lambda one: networks.critic(one).mean)(seen)

    value = jax.vmap(critic)(experience.observation)
    ahead = next_values(critic, value, stage, experience)
    estimate = partial(
        advantages,
        experience.reward,
        value,
        ahead,
        experience.terminated,
        experience.done,
        config.gamma,
    )
    return DicgBatch(
        observation=experience.observation,
        actions=experience.actions,
        log_probability=experience.record.sum(axis=-1),
        advantage=standardised(estimate(config.lam), experience.started),
        returns=estimate(1.0) + value,
    )


def standardised(
    advantage: Float[Array, "time game"], started: Bool[Array, "time game"]
) -> Float[Array, "time game"]:
    """Advantages with mean 0 and spread 1 within each trajectory."""
    steps, games = advantage.shape
    number = jnp.cumsum(started, axis=0) + (steps + 1) * jnp.arange(games)[None, :]
    number = number.reshape(-1)

    def mean(values: Float[Array, "time game"]) -> Float[Array, "time game"]:
        flat = jnp.stack([values.reshape(-1), jnp.ones(steps * games)], axis=1)
        total = jax.ops.segment_sum(flat, number, (steps + 1) * games)[number]
        return (total[:, 0] / total[:, 1]).reshape(steps, games)

    offset = advantage - mean(advantage)
    return offset / jnp.sqrt(mean(offset**2) + 1e-8)


def _gradient_step(config: DicgLearning, batch: DicgBatch, carry, chosen):
    networks, (actor_state, critic_state) = carry
    part = jax.tree.map(lambda leaf: leaf[:, chosen], batch)
    loss = partial(dicg_losses, config, part)
    (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(networks)
    actor, critic = _optimisers(config)
    actor_step, actor_state = actor.update(gradient.actor, actor_state)
    critic_step, critic_state = critic.update(gradient.critic, critic_state)
    change: Any = DicgNetworks(actor_step, critic_step)  # pyright: ignore[reportArgumentType]
    networks = jax.tree.map(jnp.add, networks, change)
    return (networks, (actor_state, critic_state)), metrics


def _optimisers(
    config: DicgLearning,
) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
    """Adam for both; only the policy's gradient is clipped."""
    adam = optax.adam(config.rate, eps=config.adam_epsilon)
    return optax.chain(optax.clip_by_global_norm(config.max_norm), adam), adam


def dicg_losses(
    config: DicgLearning, batch: DicgBatch, networks: DicgNetworks
) -> tuple[Float[Array, ""], dict[str, Array]]:
    """The joint policy's clipped loss, its entropy, and the critic's likelihood."""
    each = jax.vmap(jax.vmap(lambda seen: networks.actor.log_policy(seen, None)[0]))
    log_policy = each(batch.observation)
    taken = chosen(log_policy, batch.actions).sum(axis=-1)
    change = taken - batch.log_probability
    ratio = jnp.exp(change)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    gain = jnp.minimum(ratio * batch.advantage, clipped * batch.advantage)
    masks = jax.vmap(jax.vmap(lambda seen: seen.action_mask))(batch.observation)
    roster = batch.observation.roster
    spread = jnp.sum(jnp.where(roster, entropy(log_policy, masks), 0.0)) / roster.sum()
    belief = jax.vmap(jax.vmap(networks.critic))(batch.observation)
    value_loss = -belief.log_density(batch.returns).mean()
    metrics = {
        "policy_loss": -gain.mean(),
        "value_loss": value_loss,
        "entropy": spread,
        "kl": (ratio - 1 - change).mean(),
        "clipped": (jnp.abs(ratio - 1) > config.clip).mean(),
    }
    return -gain.mean() - config.entropy * spread + value_loss, metrics
