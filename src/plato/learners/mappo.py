"""MAPPO: one shared pointer actor, one centralised critic, one pure update."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import Game, Observation, features_of
from plato.learners.advice import Advice, Advisers
from plato.learners.config import MappoConfig
from plato.learners.gae import next_values
from plato.learners.rollout import Experience, Stage, rollout, set_the_stage
from plato.learners.targets import Played, Scale, targets
from plato.masking import chosen, divergence, entropy, masked_mean
from plato.policies.config import ActorConfig
from plato.policies.critic import GraphCritic
from plato.policies.pointer import PointerActor


class Hyper(eqx.Module):
    """The numbers of a `MappoConfig` that no shape depends on, as data.

    Runs that differ in these alone can be mapped over in one program.
    """

    gamma: Float[Array, ""]
    lam: Float[Array, ""]
    clip: Float[Array, ""]
    entropy: Float[Array, ""]
    entropy_end: Float[Array, ""]
    actor_rate: Float[Array, ""]
    critic_rate: Float[Array, ""]
    rate_end: Float[Array, ""]
    critic_first: Float[Array, ""]
    max_norm: Float[Array, ""]
    adam_epsilon: Float[Array, ""]
    restart: Float[Array, ""]
    advice: Float[Array, ""]
    advised: Float[Array, ""]

    @classmethod
    def of(cls, config: MappoConfig) -> "Hyper":
        numbers = {f.name: getattr(config, f.name) for f in dataclasses.fields(cls)}
        return cls(**{k: jnp.asarray(v, jnp.float32) for k, v in numbers.items()})


class Networks(eqx.Module):
    """All that is learned."""

    actor: PointerActor
    critic: GraphCritic


class Learner(eqx.Module):
    """Everything an update changes."""

    networks: Networks
    optimiser: Any
    scale: Scale
    stage: Stage
    update: Int[Array, ""]


class Batch(eqx.Module):
    """A rollout ready to learn from: sequences of steps, `time` first."""

    observation: Observation
    memory: Any
    """Of each sequence at its beginning."""
    started: Bool[Array, "time sequence"]
    actions: Int[Array, "time sequence agent"]
    log_probability: Float[Array, "time sequence agent"]
    advantage: Float[Array, "time sequence"]
    value: Float[Array, "time sequence"]
    """Normalised, as the critic gave it when the games were played."""
    target: Float[Array, "time sequence"]
    advice: Advice | None = None
    """What advisers would have done."""


def create_learner(
    config: MappoConfig,
    actor_config: ActorConfig,
    games: Game[Any, Any],
    *,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
    setups: int = 1,
    predecessor: PointerActor | None = None,
) -> Learner:
    """New networks, and the first moments of all games (stacked).

    A `predecessor` is the actor to begin with, in place of a new one.
    """
    k_actor, k_critic = jax.random.split(key)
    features = features_of(jax.tree.map(lambda leaf: leaf[0], games))
    networks = Networks(
        predecessor or PointerActor.create(actor_config, features, key=k_actor),
        GraphCritic.create(actor_config, features, key=k_critic),
    )
    optimiser: Any = _optimiser(Hyper.of(config))
    return Learner(
        networks=networks,
        optimiser=(
            optimiser.init(flat(networks.actor)),
            optimiser.init(flat(networks.critic)),
        ),
        scale=Scale.create(setups),
        stage=set_the_stage(games, networks.actor, game_key),
        update=jnp.zeros((), jnp.int32),
    )


def update(
    config: MappoConfig,
    hyper: Hyper,
    games: Game[Any, Any],
    learner: Learner,
    key: PRNGKeyArray,
    game_key: PRNGKeyArray,
    setups: int = 1,
    advisers: Advisers | None = None,
) -> tuple[Learner, dict[str, Array]]:
    """One rollout and the gradient steps it feeds.

    Games come in equal blocks, one for each of their `setups`.
    """
    number = learner.update
    progress = number / max(config.updates - 1, 1)
    rates = Rates.at(config.entropy_fall, hyper, progress)
    stage, experience = rollout(
        games,
        lowered(config, learner.networks.actor),
        learner.stage,
        jax.random.fold_in(game_key, number),
        config.steps,
        rates.restart,
    )
    scale, batch = prepare(config, hyper, learner, stage, experience, setups, advisers)
    step = partial(_epoch, config, hyper, rates, batch)
    keys = jax.random.split(jax.random.fold_in(key, number), config.epochs)
    (networks, optimiser), metrics = jax.lax.scan(
        step, (learner.networks, learner.optimiser), keys
    )
    metrics = jax.tree.map(lambda leaf: leaf.mean(), metrics)
    metrics |= experience.report()
    metrics["value_std"] = scale.moments()[1].mean()
    following = Learner(networks, optimiser, scale, stage, number + 1)
    return following, metrics


def lowered(config: MappoConfig, network: Any) -> Any:
    """A network that computes in the precision asked for."""
    return jax.tree.map(lambda weight: weight.astype(config.precision), network)


class Rates(eqx.Module):
    """What changes in the course of training."""

    entropy: Float[Array, ""]
    actor: Float[Array, ""]
    critic: Float[Array, ""]
    restart: Float[Array, ""]
    advice: Float[Array, ""]

    @classmethod
    def at(cls, fall: str, hyper: Hyper, progress: Float[Array, ""]) -> "Rates":
        """Rates when a part `progress` of the training is done."""
        decline = 1 - (1 - hyper.rate_end) * progress
        left = hyper.entropy_end / jnp.maximum(hyper.entropy, 1e-12)
        entropies = {
            "geometric": hyper.entropy * left**progress,
            "linear": hyper.entropy * (1 - progress) + hyper.entropy_end * progress,
        }
        return cls(
            entropy=entropies[fall],
            actor=hyper.actor_rate * decline * (progress >= hyper.critic_first),
            critic=hyper.critic_rate * decline,
            restart=hyper.restart * (1 - progress),
            advice=hyper.advice * jnp.maximum(1 - progress / hyper.advised, 0.0),
        )


def prepare(
    config: MappoConfig,
    hyper: Hyper,
    learner: Learner,
    stage: Stage,
    experience: Experience,
    setups: int = 1,
    advisers: Advisers | None = None,
) -> tuple[Scale, Batch]:
    """Advantages and targets; sequences of one step where nothing is remembered.

    `stage` is where the games stand after the experience.
    """
    critic = jax.vmap(lowered(config, learner.networks.critic))
    raw = jax.vmap(critic)(experience.observation)
    played = Played(
        value=raw,
        following=next_values(critic, raw, stage, experience),
        reward=experience.reward,
        terminated=experience.terminated,
        done=experience.done,
        choice=has_choice(experience.observation),
    )
    scale, found = targets(
        learner.scale,
        played,
        hyper.gamma,
        hyper.lam,
        normalise=config.value_normalisation,
        setups=setups,
    )
    batch = Batch(
        observation=experience.observation,
        memory=learner.stage.memory,
        started=experience.started,
        actions=experience.actions,
        log_probability=experience.record,
        advice=advisers and advisers.advice(experience.observation, experience.started),
        **found._asdict(),
    )
    if batch.memory is None:
        batch = jax.tree.map(lambda leaf: leaf.reshape(1, -1, *leaf.shape[2:]), batch)
    return scale, batch


def has_choice(seen: Observation) -> Bool[Array, "*batch agent"]:
    """Agents that can do anything but NOOP; only these are taught."""
    return seen.options.any(axis=(-1, -2))


def _epoch(config: MappoConfig, hyper: Hyper, rates: Rates, batch: Batch, carry, key):
    sequences = batch.started.shape[1]
    order = jax.random.permutation(key, sequences)
    size = sequences // config.minibatches
    order = order[: size * config.minibatches].reshape(config.minibatches, size)

    def step(carry, which):
        # Memories have no time axis.
        part = jax.tree.map(lambda leaf: leaf[:, which], without_memory(batch))
        memory = jax.tree.map(lambda leaf: leaf[which], batch.memory)
        return _gradient_step(config, hyper, rates, part, memory, carry)

    return jax.lax.scan(step, carry, order)


def without_memory(batch: Batch) -> Batch:
    """The batch without the memories of its sequences."""
    return eqx.tree_at(lambda b: b.memory, batch, None, is_leaf=lambda x: x is None)


def _gradient_step(
    config: MappoConfig, hyper: Hyper, rates: Rates, batch: Batch, memory, carry
):
    networks, (actor_state, critic_state) = carry

    def loss(networks: Networks):
        in_precision = lowered(config, networks)
        return losses(hyper.clip, rates, batch, memory, in_precision)

    (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(networks)
    descend = partial(_descended, _optimiser(hyper))
    actor, actor_state, metrics["actor_norm"] = descend(
        networks.actor, gradient.actor, actor_state, rates.actor
    )
    critic, critic_state, metrics["critic_norm"] = descend(
        networks.critic, gradient.critic, critic_state, rates.critic
    )
    return (Networks(actor, critic), (actor_state, critic_state)), metrics


def _descended(
    optimiser: optax.GradientTransformation,
    network: Any,
    gradient: Any,
    state: Any,
    rate: Float[Array, ""],
) -> tuple[Any, Any, Float[Array, ""]]:
    """One step down, and how steep it was.

    All weights as one vector: a few large operations and not a few for each array.
    """
    slope, as_network = ravel_pytree(gradient)
    step, state = optimiser.update(slope, state)
    change = as_network(rate * jnp.asarray(step))
    return jax.tree.map(jnp.subtract, network, change), state, jnp.linalg.norm(slope)


def flat(network: Any) -> Float[Array, " weight"]:
    """All weights of a network as one vector."""
    return ravel_pytree(network)[0]


def _optimiser(hyper: Hyper) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(hyper.max_norm),  # pyright: ignore[reportArgumentType]
        optax.scale_by_adam(eps=hyper.adam_epsilon),  # pyright: ignore[reportArgumentType]
    )


def losses(
    clip: Float[Array, ""],
    rates: Rates,
    batch: Batch,
    memory: Any,
    networks: Networks,
) -> tuple[Float[Array, ""], dict[str, Array]]:
    """The clipped policy and value losses with the entropy bonus, and how far from
    the advice that was given."""
    log_policy = policy_along(networks.actor, batch, memory)
    choice = has_choice(batch.observation)
    taken = chosen(log_policy, batch.actions)
    change = jnp.where(choice, taken - batch.log_probability, 0.0)
    ratio = jnp.exp(change)
    advantage = jnp.broadcast_to(batch.advantage[..., None], ratio.shape)
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    gain = jnp.minimum(ratio * advantage, clipped * advantage)
    policy_loss = -masked_mean(gain, choice)
    masks = jax.vmap(jax.vmap(lambda seen: seen.action_mask))(batch.observation)
    spread = masked_mean(entropy(log_policy, masks), choice)

    value = jax.vmap(jax.vmap(networks.critic))(batch.observation)
    held = batch.value + jnp.clip(value - batch.value, -clip, clip)
    error = jnp.maximum((value - batch.target) ** 2, (held - batch.target) ** 2)
    value_loss = 0.5 * error.mean()

    metrics = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": spread,
        "kl": masked_mean(ratio - 1 - change, choice),
        "clipped": masked_mean((jnp.abs(ratio - 1) > clip).astype(jnp.float32), choice),
    }
    loss = policy_loss - rates.entropy * spread + value_loss
    if batch.advice is not None:
        apart = divergence(batch.advice.policy, log_policy, masks)
        told = choice & batch.advice.given[..., None]
        metrics["advice"] = masked_mean(apart, told)
        loss += rates.advice * metrics["advice"]
    return loss, metrics


def policy_along(
    actor: PointerActor, batch: Batch, memory: Any
) -> Float[Array, "time sequence agent choice"]:
    """Log-policies along sequences, memories begun anew with every episode."""
    along = jax.vmap(actor.log_policies, in_axes=(1, 1, 0), out_axes=1)
    return along(batch.observation, batch.started, memory)
