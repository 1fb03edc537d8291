"""Evaluation of any policy on a setup, under either noise protocol."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

import jax
import numpy as np

from plato.configuration import whole_number
from plato.domains.setups import Setup, load_setup
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.heuristics import RULES
from plato.domains.wildfire.optimum import policy as optimal
from plato.domains.wildfire.paper_noise import with_paper_noise, with_paper_ties
from plato.domains.wildfire.planner import AssignmentPolicy
from plato.errors import PlatoError
from plato.evaluation.episodes import play_all
from plato.evaluation.metrics import EpisodeMetrics, episode_metrics, mean_and_std
from plato.game import Game, stack
from plato.policies.checkpoint import last_checkpoint, load_policy
from plato.policies.dicg import DicgActor
from plato.policies.pointer import PointerActor
from plato.policies.policy import Policy
from plato.policies.rules import RulePolicy, uniform
from plato.seeding import SEEDS, seed_keys
from plato.tensors import read_header

NoiseProtocol: TypeAlias = Literal["independent", "paper"]
"""`independent`: every seed its own noise. `paper`: one fixed stream in every episode,
the seed driving the policy alone, as behind the paper's tables."""

LARGEST_BATCH = 16_384
"""Episodes played at once; more are played one batch after the other."""


@dataclass(frozen=True)
class Evaluation:
    """The episodes of one policy on one setup."""

    setup: str
    policy: str
    noise: NoiseProtocol
    first_seed: int
    metrics: EpisodeMetrics

    @property
    def episodes(self) -> int:
        return len(self.metrics["return"])

    def to_json(self) -> dict[str, Any]:
        """Everything, per episode, as plain data."""
        summary = {}
        for name, values in self.metrics.items():
            mean, std = mean_and_std(values)
            summary[name] = {"mean": mean, "std": std, "episodes": values.tolist()}
        return {
            "setup": self.setup,
            "policy": self.policy,
            "noise": self.noise,
            "seeds": [self.first_seed, self.first_seed + self.episodes - 1],
            "metrics": summary,
        }


def evaluate(
    policy: str | Policy[Any],
    setup: str | Path | Setup | Game[Any, Any],
    *,
    episodes: int = 50,
    seed: int = 200,
    noise: NoiseProtocol = "independent",
    name: str | None = None,
) -> Evaluation:
    """Plays the episodes of seeds seed, seed + 1, … and measures them.

    `policy` is a policy or the name of one (see `named_policy`); `setup` a setup, its
    name or .toml file, or any game (under independent noise). `name` is what the
    results call the policy.
    """
    whole_number("episodes", episodes, 1)
    whole_number("seed", seed, 0, SEEDS - episodes)
    if noise not in get_args(NoiseProtocol):
        raise PlatoError(f"noise must be 'independent' or 'paper', not {noise!r}.")
    name = name or (policy if isinstance(policy, str) else type(policy).__name__)
    setup = setup if isinstance(setup, Setup | Game) else load_setup(setup)
    player = named_policy(policy, setup) if isinstance(policy, str) else policy
    if isinstance(setup, Game):
        if noise == "paper":
            raise PlatoError("noise='paper' is defined for setups, not for any game.")
        metrics = _measure(setup, lambda seeds: (player, False), seed, episodes)
        return Evaluation(type(setup).__name__, name, noise, seed, metrics)
    game, players = noisy_game(setup, noise), lambda seeds: (player, False)
    if noise == "paper":
        players = partial(_paper_players, player, setup.config)
    metrics = _measure(game, players, seed, episodes)
    return Evaluation(setup.name, name, noise, seed, metrics)


def noisy_game(setup: Setup, noise: NoiseProtocol) -> Game[Any, Any]:
    """The game of a setup under a noise protocol."""
    game = Wildfire.from_config(setup.config)
    return with_paper_noise(game, setup.config) if noise == "paper" else game


def player_at(
    policy: Policy[Any], setup: Setup, seed: int, noise: NoiseProtocol
) -> Policy[Any]:
    """The policy as `evaluate` lets it play the episode of one seed."""
    if noise == "independent" or not _breaks_recorded_ties(policy):
        return policy
    return with_paper_ties(policy.prefer, setup.config, seed)


Players: TypeAlias = Callable[[range], tuple[Policy[Any], bool]]
"""For some seeds, the policy that plays them, and whether it is one for each."""


def _measure(
    game: Game[Any, Any], players: Players, seed: int, episodes: int
) -> EpisodeMetrics:
    horizon = int(game.horizon)
    batches = []
    for first in range(seed, seed + episodes, LARGEST_BATCH):
        seeds = range(first, min(first + LARGEST_BATCH, seed + episodes))
        policy, per_episode = players(seeds)
        keys = seed_keys(first, len(seeds))
        tally = play_all(game, policy, keys, horizon, per_episode)
        batches.append(episode_metrics(jax.device_get(tally)))
    return {k: np.concatenate([batch[k] for batch in batches]) for k in batches[0]}


def _paper_players(
    policy: Policy[Any], config: WildfireConfig, seeds: range
) -> tuple[Policy[Any], bool]:
    if not _breaks_recorded_ties(policy):
        return policy, False
    return stack([with_paper_ties(policy.prefer, config, s) for s in seeds]), True


def _breaks_recorded_ties(policy: Policy[Any]) -> TypeGuard[RulePolicy]:
    """Rules break ties by their own stream, but for Random, which was not seeded."""
    return isinstance(policy, RulePolicy) and policy.prefer is not uniform


OPTIMAL = "optimal"
"""The name of the best possible team, where a setup is small enough to solve."""
ASSIGNMENT = "assignment"
"""The name of the planner that knows the rules."""


Actions: TypeAlias = Literal["own", "sampled", "greedy"]
"""How trained policies take their actions: as their sources do (a pointer draws them,
the baselines take the likeliest), drawn wherever a policy can, or the likeliest."""


def named_policy(
    name: str, setup: Setup | Game[Any, Any], *, actions: Actions = "own"
) -> Policy[Any]:
    """The policy that goes by a name: a rule, the planner or the optimal one of a
    setup, a checkpoint or solution on disk, or the last policy of a finished run.

    A run of several trainings is named by the folder of one of them in `checkpoints`.
    """
    if name in RULES:
        return RulePolicy(RULES[name])
    if name == ASSIGNMENT:
        return _planner(setup)
    path = Path(name)
    if name != OPTIMAL and path.suffix != ".safetensors" and not path.is_dir():
        raise PlatoError(
            f"There is no policy named {name!r}; choose from: {', '.join(RULES)}, "
            f"{ASSIGNMENT}, {OPTIMAL}, or give the path of a checkpoint (.safetensors) "
            f"or of a run."
        )
    path = last_checkpoint(path)
    if name != OPTIMAL and read_header(path).get("kind") != optimal.KIND:
        return acting(load_policy(path), actions)
    if not isinstance(setup, Setup):
        raise PlatoError("The optimal policy is known for setups, not for any game.")
    if name == OPTIMAL:
        return optimal.solve_exactly(setup.config)
    return optimal.load_optimal(path, setup.config)


def acting(policy: Policy[Any], actions: Actions) -> Policy[Any]:
    """A trained policy that takes its actions as asked.

    Those that never draw them (DGN, MOHITO) take the likeliest whatever is asked.
    """
    if isinstance(policy, PointerActor):
        return replace(policy, greedy=actions == "greedy")
    if isinstance(policy, DicgActor):
        return replace(policy, greedy=actions != "sampled")
    return policy


def _planner(setup: Setup | Game[Any, Any]) -> AssignmentPolicy:
    game = Wildfire.from_config(setup.config) if isinstance(setup, Setup) else setup
    if not isinstance(game, Wildfire):
        raise PlatoError("The assignment planner knows the rules of wildfire alone.")
    return AssignmentPolicy.from_rules(game.rules)
