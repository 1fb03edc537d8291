"""Whether MOHITO's actors come to prefer what their critics value.

    python benchmarks/mohito_ranking.py [--setups wildfire-2x3-S3] [--updates 2500]

An actor takes the hyperedge whose features sum up to most; what it is taught is to give
its hyperedges features that its critic likes. Nothing in that makes the sum grow with
the value. Printed are the mean returns of chance, of the actors, and of the critics:
each agent then takes what its critic values most while the others do as their actors
say. And, of the decisions in the memory, in how many an actor's choice is its critic's,
beside what chance would give.
"""

import argparse
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from environment import machine
from plato.domains.setups import load_setup
from plato.evaluation.evaluate import evaluate
from plato.game import Observation
from plato.learners.config import METHODS, TrainConfig
from plato.learners.kinds import of_run
from plato.learners.mohito import MohitoNetworks, made_by
from plato.learners.program import Program
from plato.policies.policy import Policy


class CriticsChoice(Policy[None]):
    """Every agent does what its critic values most."""

    networks: MohitoNetworks

    def start(self, agents: int) -> None:
        del agents

    def act(self, key, observation, memory):
        _, best = self.choices(key, observation)
        return best, memory

    def choices(self, key, seen: Observation):
        """What the actors do, and what their critics would have each of them do."""
        actors = self.networks.actors
        # A group of games has room for the largest, and these may be of a smaller one.
        critics = replace(self.networks.critics, reach=None)
        moment = jax.tree.map(lambda leaf: leaf[None], seen)
        hyperedges = made_by(actors, moment)
        team = critics.graphs(moment, hyperedges)
        actions = actors.choose(key, seen, hyperedges[0])
        everyone = jnp.arange(actions.shape[0])

        def value(agent, action):
            joint = jnp.where(everyone == agent, action, actions)
            own = jax.tree.map(lambda leaf: leaf[agent], critics.networks)
            return critics.value(own, team, joint[None])[0]

        of_actions = jax.vmap(value, in_axes=(None, 0))
        of_all = jax.vmap(of_actions, in_axes=(0, None))
        values = of_all(everyone, jnp.arange(seen.action_mask.shape[1]))
        best = jnp.argmax(jnp.where(seen.action_mask, values, -jnp.inf), axis=1)
        return actions, best.astype(jnp.int32)


@jax.jit
def agreement(networks: MohitoNetworks, seen: Observation):
    """Of the decisions between several things: hits of the actors, and of chance."""
    keys = jax.random.split(jax.random.key(0), seen.roster.shape[0])
    actions, best = jax.vmap(CriticsChoice(networks).choices)(keys, seen)
    offers = jax.vmap(lambda one: one.action_mask)(seen).sum(axis=2)
    free = offers > 1
    share = jnp.sum((actions == best) & free) / jnp.sum(free)
    return share, jnp.sum(jnp.where(free, 1 / offers, 0.0)) / jnp.sum(free)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setups", nargs="+", default=["wildfire-2x3-S3"])
    parser.add_argument("--updates", type=int, default=2500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--choice", choices=["soft", "hard"], default="soft")
    options = parser.parse_args()
    halves = METHODS["mohito"]
    learning = replace(
        halves.learning(), updates=options.updates, choice=options.choice
    )
    config = TrainConfig(
        setups=tuple(options.setups),
        fleet=True,
        seeds=options.seeds,
        networks=halves.networks(),
        learning=learning,
    )
    setups = {name: load_setup(name) for name in config.setups}
    program = Program(config, setups)
    learners = program.start()
    for update in range(1, options.updates + 1):
        learners, _ = program.advance(learners, update)
    steps = options.updates * learning.games * learning.steps
    print(f"MOHITO, {steps:,} steps, {options.episodes} episodes, {machine()}\n")
    print("| setup | seed | Random | actors | critics | agree | by chance |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for group, (contender,) in zip(program.groups, learners, strict=True):
        for i, run in enumerate(group.runs):
            learner = of_run(contender.learner, i)
            taught, replay = learner.taught, learner.replay
            seen = replay.draw(jax.random.key(1), 2000).observation
            agreed, chance = agreement(taught.networks, seen)

            def earned(policy, name=run.setups[0]) -> float:
                played = evaluate(policy, name, episodes=options.episodes)
                return float(np.mean(played.metrics["return"]))

            returns = [
                earned("random"),
                earned(taught.networks.actors),
                earned(CriticsChoice(taught.networks)),
            ]
            numbers = " | ".join(f"{one:.1f}" for one in returns)
            print(
                f"| {run.setups[0]} | {run.seed} | {numbers} "
                f"| {agreed:.0%} | {chance:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
