"""Evaluation of any policy on a setup, under either noise protocol."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import jax

from plato.domains.setups import Setup, load_setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.heuristics import RULES
from plato.domains.wildfire.paper_noise import with_paper_noise, with_paper_ties
from plato.errors import PlatoError
from plato.evaluation.episodes import play_all, seed_keys
from plato.evaluation.metrics import EpisodeMetrics, episode_metrics, mean_and_std
from plato.game import stack
from plato.policies.policy import Policy
from plato.policies.rules import RulePolicy

NoiseProtocol: TypeAlias = Literal["independent", "paper"]
"""`independent`: every seed its own noise. `paper`: one fixed stream in every episode,
the seed driving the policy alone, as behind the paper's tables."""


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
    setup: str | Setup,
    *,
    episodes: int = 50,
    seed: int = 200,
    noise: NoiseProtocol = "independent",
) -> Evaluation:
    """Plays the episodes of seeds seed, seed + 1, … and measures them.

    `policy` is the name of a rule (see `RULES`) or a policy itself.
    """
    if episodes < 1:
        raise PlatoError(f"episodes must be at least 1, not {episodes}.")
    if not 0 <= seed <= 2**32 - episodes:
        raise PlatoError(f"seed must be from 0 to 2**32 - episodes, not {seed}.")
    setup = load_setup(setup) if isinstance(setup, str) else setup
    name = policy if isinstance(policy, str) else type(policy).__name__
    policy = named_policy(policy) if isinstance(policy, str) else policy
    game: Any = Wildfire.from_config(setup.config)
    per_episode = False
    if noise == "paper":
        game = with_paper_noise(game, setup.config)
        if isinstance(policy, RulePolicy) and name != "random":
            seeds = range(seed, seed + episodes)
            ties = [with_paper_ties(policy.prefer, setup.config, s) for s in seeds]
            policy, per_episode = stack(ties), True
    keys = seed_keys(seed, episodes)
    tally = play_all(game, policy, keys, setup.config.max_steps, per_episode)
    metrics = episode_metrics(jax.device_get(tally))
    return Evaluation(setup.name, name, noise, seed, metrics)


def named_policy(name: str) -> RulePolicy:
    """The policy that goes by a name."""
    if name not in RULES:
        raise PlatoError(
            f"There is no policy named {name!r}; choose from: {', '.join(RULES)}."
        )
    return RulePolicy(RULES[name])
