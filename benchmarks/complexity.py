"""Theorem 2 on the clock: how time per step grows with agents and with tasks.

    python benchmarks/complexity.py

One moment of the default actor and critic, everyone in reach of everything: the most a
step can cost. The exponents are least-squares slopes of log time over log size, on the
larger half of the sizes, beside what the bound O(|N|² + |N||X|) allows.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from environment import machine
from plato.game import Features, Observation
from plato.policies.config import ActorConfig
from plato.policies.critic import GraphCritic
from plato.policies.pointer import PointerActor

FEATURES = Features(agent=4, task=4, actions=1)


def moment(agents: int, tasks: int) -> Observation:
    """Everyone is present, sees everything and may do everything."""
    keys = jax.random.split(jax.random.key(0))
    return Observation(
        agents=jax.random.normal(keys[0], (agents, FEATURES.agent)),
        roster=jnp.ones(agents, bool),
        present=jnp.ones(agents, bool),
        tasks=jax.random.normal(keys[1], (tasks, FEATURES.task)),
        exists=jnp.ones(tasks, bool),
        public=jnp.ones(FEATURES.agent, bool),
        sees_agents=jnp.ones((agents, agents), bool),
        sees_tasks=jnp.ones((agents, tasks), bool),
        options=jnp.ones((agents, tasks, 1), bool),
    )


def seconds(step: Callable[[Observation], Any], seen: Observation) -> float:
    """Of one step, the best of several, once compiled."""
    jax.block_until_ready(step(seen))
    best, begun = np.inf, time.perf_counter()
    while time.perf_counter() - begun < 1.0:
        start = time.perf_counter()
        jax.block_until_ready(step(seen))
        best = min(best, time.perf_counter() - start)
    return float(best)


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000, help="the most agents")
    parser.add_argument("--tasks", type=int, default=10_000, help="the most tasks")
    options = parser.parse_args()
    actor = PointerActor.create(ActorConfig(), FEATURES, key=jax.random.key(1))
    critic = GraphCritic.create(ActorConfig(), FEATURES, key=jax.random.key(2))
    parts: dict[str, Callable[[Observation], Any]] = {
        "actor": eqx.filter_jit(lambda seen: actor.log_policy(seen, None)[0]),
        "critic": eqx.filter_jit(critic),
    }
    teams = np.unique(np.geomspace(8, options.agents, 8).astype(int)).tolist()
    loads = np.unique(np.geomspace(8, options.tasks, 8).astype(int)).tolist()
    print(
        f"Time per step, default actor and critic, {machine()}, jax {jax.__version__}"
    )
    for name, step in parts.items():
        print(f"\n| agents | tasks | {name} |\n|---:|---:|---:|")
        by_team, by_load = [], []
        for agents in teams:
            by_team.append(seconds(step, moment(agents, 100)))
            print(f"| {agents} | 100 | {1e3 * by_team[-1]:.3g} ms |", flush=True)
        for tasks in loads:
            by_load.append(seconds(step, moment(100, tasks)))
            print(f"| 100 | {tasks} | {1e3 * by_load[-1]:.3g} ms |", flush=True)
        most = seconds(step, moment(options.agents, options.tasks))
        print(f"| {options.agents} | {options.tasks} | {1e3 * most:.4g} ms |")
        print(
            f"\n{name}: time grows as |N|^{exponent(teams, by_team):.2f} (bound 2) and "
            f"|X|^{exponent(loads, by_load):.2f} (bound 1)"
        )


if __name__ == "__main__":
    main()
