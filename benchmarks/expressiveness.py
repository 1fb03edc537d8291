"""What each form of the actor can express, apart from how well it is trained.

    python benchmarks/expressiveness.py [--setup wildfire-3x3-S3] [--steps 4000]

The optimal policy of a small setup is known exactly. Each form is taught to imitate it,
by supervised learning on states met along its way, and then plays. What a form cannot
say, no training will bring it to say.
"""

import argparse
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PRNGKeyArray

import plato
from plato.domains.setups import load_setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.optimum.policy import OptimalPolicy, solve_exactly
from plato.game import Observation, features_of
from plato.learners.mappo import has_choice
from plato.masking import masked_mean
from plato.policies.config import PAPER_FORM, ActorConfig
from plato.policies.pointer import PointerActor

FORMS = {
    "Algorithm 1": ActorConfig(**PAPER_FORM),
    "+ ego": replace(ActorConfig(**PAPER_FORM), ego=True),
    "pointer query, ego": ActorConfig(away="removed"),
    "the same, agents away flagged (default)": ActorConfig(),
    "removed, depth 2": ActorConfig(away="removed", depth=2),
    "removed, + task statistics": ActorConfig(context="statistics", away="removed"),
    "removed, + task pointer": ActorConfig(context="pointer", away="removed"),
    "task pointer, agents away flagged": ActorConfig(context="pointer"),
    "task pointer, removed, depth 2": ActorConfig(
        context="pointer", away="removed", depth=2
    ),
    "task pointer, removed, two heads": ActorConfig(
        context="pointer", away="removed", heads=2
    ),
    "task pointer, removed, dot scores": ActorConfig(
        context="pointer", away="removed", scorer="dot"
    ),
}
SLIPS = 0.05
"""Part of the actions that are random while collecting: what lies beside the way."""
BATCH, CHUNK = 512, 250


def collect(
    game: Wildfire, best: OptimalPolicy, key: PRNGKeyArray, episodes: int
) -> tuple[Observation, Int[Array, "moment agent"]]:
    """Moments, and what the best team does in them; at any time as half-way through."""
    halfway = best.table.shape[0] // 2

    def step(carry, key):
        state, seen = carry
        actions = best.actions[best.table[halfway, best.index(state)]]
        slip, which, noise = jax.random.split(key, 3)
        anything = jax.random.categorical(
            which, jnp.where(seen.action_mask, 0.0, -jnp.inf)
        )
        slips = jax.random.bernoulli(slip, SLIPS, actions.shape)
        taken = jnp.where(slips, anything, actions)
        state, following, _ = game.step(noise, state, taken.astype(jnp.int32))
        return (state, following), (seen, actions)

    def episode(key):
        keys = jax.random.split(key, best.table.shape[0])
        return jax.lax.scan(step, game.reset(key), keys)[1]

    met = jax.jit(jax.vmap(episode))(jax.random.split(key, episodes))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), met)


def imitate(
    config: ActorConfig, game: Wildfire, moments, steps: int
) -> tuple[PointerActor, float]:
    """The actor that is most like the best team, and its cross-entropy to it."""
    features = features_of(game)
    actor = PointerActor.create(config, features, key=jax.random.key(0))
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adam(optax.cosine_decay_schedule(1e-3, steps)),
    )
    count = moments[1].shape[0]

    def loss(actor: PointerActor, batch):
        seen, actions = batch
        logs, _ = jax.vmap(lambda one: actor.log_policy(one, None))(seen)
        taken = jnp.take_along_axis(logs, actions[..., None], axis=-1)[..., 0]
        return -masked_mean(taken, has_choice(seen))

    @jax.jit
    def chunk(carry, keys):
        def one(carry, key):
            actor, state = carry
            chosen = jax.random.randint(key, (BATCH,), 0, count)
            batch = jax.tree.map(lambda leaf: leaf[chosen], moments)
            value, gradient = jax.value_and_grad(loss)(actor, batch)
            change, state = optimiser.update(gradient, state)
            actor = jax.tree.map(jnp.add, actor, change)
            return (actor, state), value

        return jax.lax.scan(one, carry, keys)

    weights: Any = actor
    carry, losses = (actor, optimiser.init(weights)), jnp.zeros(1)
    for keys in jax.random.split(jax.random.key(1), (steps // CHUNK, CHUNK)):
        carry, losses = chunk(carry, keys)
    return carry[0], float(losses.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", default="wildfire-3x3-S3")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--episodes", type=int, default=2000)
    options = parser.parse_args()
    setup = load_setup(options.setup)
    game, best = Wildfire.from_config(setup.config), solve_exactly(setup.config)
    moments = collect(game, best, jax.random.key(2), 1000)
    optimum = float(best.value)
    print(f"{setup.name}: optimum {optimum:.2f}; imitated for {options.steps} steps at")
    print(f"hidden {options.hidden}, then {options.episodes} episodes\n")
    print("| form | cross-entropy | sampled | greedy | greedy / optimum |")
    print("|---|---:|---:|---:|---:|")
    for name, form in FORMS.items():
        config = replace(form, hidden=options.hidden)
        actor, left = imitate(config, game, moments, options.steps)
        returns = [
            plato.evaluate(policy, setup, episodes=options.episodes).metrics["return"]
            for policy in (actor, replace(actor, greedy=True))
        ]
        drawn, likeliest = (float(r.mean()) for r in returns)
        print(
            f"| {name.strip()} | {left:.3f} | {drawn:.1f} | {likeliest:.1f} | "
            f"{100 * likeliest / optimum:.0f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
