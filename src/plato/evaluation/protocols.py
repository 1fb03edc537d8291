"""How results are made: the paper's protocol, and the field's.

paper   The three best checkpoints of the second half of each training, by mean return
        on the seeds that are reported (200–249), play these seeds.
field   Trainings are the unit. The best checkpoint of each, by mean return on
        validation seeds that are never reported, plays the reported ones.

Trained across several setups, checkpoints are chosen by the mean over setups of their
return as a part of the largest there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from plato.configuration import whole_number
from plato.domains.setups import Setup, load_setup
from plato.errors import PlatoError
from plato.evaluation.contestants import Checkpoint, Contestant, Training
from plato.evaluation.evaluate import NoiseProtocol, evaluate
from plato.evaluation.metrics import EpisodeMetrics
from plato.evaluation.named import Actions, named_policy
from plato.learners.config import EVALUATION_SEEDS
from plato.policies.policy import Policy
from plato.seeding import SEEDS

ProtocolName: TypeAlias = Literal["field", "paper"]
Episodes: TypeAlias = dict[str, Float[np.ndarray, "policy episode"]]
"""For each metric, its value in every episode of every policy."""

VALIDATION = range(1_000_000, 1_000_050)
"""Seeds on which the field's protocol chooses checkpoints; never reported."""


@dataclass(frozen=True)
class Protocol:
    """All that decides how a policy's numbers come about."""

    name: ProtocolName
    noise: NoiseProtocol
    actions: Actions
    seeds: range
    """Those of the episodes that are reported."""
    choosing: range
    """Those of the episodes on which checkpoints are chosen."""
    chosen: int
    """Checkpoints that play for each training."""

    def candidates(self, training: Training) -> list[Checkpoint]:
        """The checkpoints of a training that may be chosen."""
        begin = training.updates / 2 if self.name == "paper" else 0
        return [c for c in training.checkpoints if c.update > begin]


_DEFAULTS = {
    "paper": Protocol("paper", "paper", "own", EVALUATION_SEEDS, EVALUATION_SEEDS, 3),
    "field": Protocol("field", "independent", "own", range(200, 1200), VALIDATION, 1),
}


def protocol(
    name: ProtocolName,
    *,
    noise: NoiseProtocol | None = None,
    actions: Actions = "own",
    seed: int | None = None,
    episodes: int | None = None,
) -> Protocol:
    """A protocol by its name; what is not given is the protocol's own choice."""
    default = _DEFAULTS[name]
    count = len(default.seeds) if episodes is None else episodes
    first = default.seeds.start if seed is None else seed
    whole_number("episodes", count, 1)
    whole_number("seed", first, 0, SEEDS - count)
    seeds = range(first, first + count)
    if name == "paper":
        choosing = seeds
    elif seeds.start < VALIDATION.stop and VALIDATION.start < seeds.stop:
        raise PlatoError(
            f"Seeds {_span(VALIDATION)} choose checkpoints and are never reported; "
            f"choose --seed and --episodes so that {_span(seeds)} does not meet them."
        )
    else:
        choosing = VALIDATION
    return replace(
        default,
        noise=noise or default.noise,
        actions=actions,
        seeds=seeds,
        choosing=choosing,
    )


@dataclass(frozen=True)
class Played:
    """The reported episodes of one training, or of a given policy."""

    seed: int | None
    """Of the training; None for a given policy."""
    updates: tuple[int, ...]
    """After how many updates the policies that played were kept."""
    metrics: Episodes


@dataclass(frozen=True)
class Result:
    """What one contestant did on one setup."""

    contestant: str
    setup: str
    trained_on: tuple[str, ...]
    """Empty for a given policy."""
    zero_shot: bool
    """Whether it was trained, but on other games."""
    played: tuple[Played, ...]

    def episodes(self, metric: str) -> Float[np.ndarray, " episode"]:
        """Every episode of every policy."""
        return np.concatenate([p.metrics[metric].ravel() for p in self.played])

    def by_seed(self, metric: str) -> Float[np.ndarray, " seed"]:
        """One number for each seed: the mean over the policies that played it."""
        rows = np.concatenate([p.metrics[metric] for p in self.played])
        return rows.mean(axis=0)

    def runs(self, metric: str) -> Float[np.ndarray, "run seed"]:
        """A row for each training: its policies' mean on each seed."""
        return np.stack([p.metrics[metric].mean(axis=0) for p in self.played])

    def by_training(self, metric: str) -> Float[np.ndarray, " run"]:
        """One number for each training: the mean over its episodes."""
        return np.asarray([p.metrics[metric].mean() for p in self.played])


@dataclass(frozen=True)
class Curve:
    """One training along its checkpoints, on the seeds that choose among them."""

    seed: int | None
    steps: tuple[int, ...]
    metrics: Episodes
    """A row for each checkpoint; for a given policy, its one."""


class Examiner:
    """Plays contestants by a protocol, and nothing twice."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._played: dict[tuple[Any, ...], EpisodeMetrics] = {}
        self._given: dict[tuple[str, str, str], Policy[Any]] = {}

    def check(self, contestants: Sequence[Contestant], setups: Sequence[Setup]) -> None:
        """Refuses what the protocol cannot be applied to, before anything is played."""
        for contestant in contestants:
            for setup in setups:
                if contestant.policy is not None:
                    self._policy(contestant, setup)
                trainings = contestant.trainings_for(setup)
                if self.protocol.name == "field" and len(trainings) == 1:
                    raise PlatoError(
                        f"{contestant.name}: has one training for {setup.name}, and "
                        f"intervals over trainings need at least two; train with "
                        f"--seeds 2 or more, or compare with --protocol paper."
                    )
                for training in trainings:
                    self._check_checkpoints(contestant, training)
                    _homes(training)

    def result(self, contestant: Contestant, setup: Setup) -> Result:
        """The reported episodes of a contestant on a setup."""
        seeds = self.protocol.seeds
        if contestant.policy is not None:
            policy = self._policy(contestant, setup)
            metrics = self._play(contestant.name, policy, setup, seeds)
            played = (Played(None, (), _stacked([metrics])),)
            return Result(contestant.name, setup.name, (), False, played)
        trainings = contestant.trainings_for(setup)
        played = tuple(self._played_by(training, setup) for training in trainings)
        source, away = trainings[0].names, not trainings[0].was_on(setup)
        return Result(contestant.name, setup.name, source, away, played)

    def curves(self, contestant: Contestant, setup: Setup) -> list[Curve]:
        """The learning curves of a contestant; a given policy has a single point."""
        seeds = self.protocol.choosing
        if contestant.policy is not None:
            policy = self._policy(contestant, setup)
            metrics = self._play(contestant.name, policy, setup, seeds)
            return [Curve(None, (0,), _stacked([metrics]))]
        return [
            Curve(
                seed=training.seed,
                steps=tuple(checkpoint.steps for checkpoint in training.checkpoints),
                metrics=_stacked(
                    [self._play_kept(c, setup, seeds) for c in training.checkpoints]
                ),
            )
            for training in contestant.trainings_for(setup)
        ]

    def choose(self, training: Training) -> list[Checkpoint]:
        """The best checkpoints of a training on what it was trained on, best first.

        Never on what they are going to be transferred to. Of equals, the later one.
        """
        candidates = self.protocol.candidates(training)
        returns = np.asarray([self._mean_returns(training, c) for c in candidates])
        share = dict(zip(candidates, shares(returns), strict=True))

        def worth(checkpoint: Checkpoint) -> tuple[float, float, int]:
            # Dividing may round two returns to one share: their scores still differ.
            score = self.score(training, checkpoint)
            return share[checkpoint], score, checkpoint.update

        return sorted(candidates, key=worth, reverse=True)[: self.protocol.chosen]

    def score(self, training: Training, checkpoint: Checkpoint) -> float:
        """The mean return of a checkpoint where it was trained."""
        return float(np.mean(self._mean_returns(training, checkpoint)))

    def _mean_returns(self, training: Training, checkpoint: Checkpoint) -> list[float]:
        """On each of the setups it was trained on, on the seeds that choose."""
        played = [
            self._play_kept(checkpoint, home, self.protocol.choosing)
            for home in _homes(training)
        ]
        return [float(np.mean(metrics["return"])) for metrics in played]

    def _policy(self, contestant: Contestant, setup: Setup) -> Policy[Any]:
        """A given policy; what its name stands for may depend on the setup."""
        key = (contestant.name, setup.name, setup.digest)
        if key not in self._given:
            given, actions = contestant.policy, self.protocol.actions
            assert given is not None
            self._given[key] = (
                named_policy(given, setup, actions=actions)
                if isinstance(given, str)
                else given
            )
        return self._given[key]

    def _played_by(self, training: Training, setup: Setup) -> Played:
        chosen = self.choose(training)
        metrics = [self._play_kept(c, setup, self.protocol.seeds) for c in chosen]
        updates = tuple(checkpoint.update for checkpoint in chosen)
        return Played(training.seed, updates, _stacked(metrics))

    def _play_kept(
        self, checkpoint: Checkpoint, setup: Setup, seeds: range
    ) -> EpisodeMetrics:
        key = (checkpoint.path, setup.name, setup.digest, seeds)
        if key not in self._played:
            path, actions = str(checkpoint.path), self.protocol.actions
            policy = named_policy(path, setup, actions=actions)
            self._play(checkpoint.path, policy, setup, seeds)
        return self._played[key]

    def _play(
        self, who: Any, policy: Policy[Any], setup: Setup, seeds: range
    ) -> EpisodeMetrics:
        key = (who, setup.name, setup.digest, seeds)
        if key not in self._played:
            result = evaluate(
                policy,
                setup,
                episodes=len(seeds),
                seed=seeds.start,
                noise=self.protocol.noise,
            )
            self._played[key] = result.metrics
        return self._played[key]

    def _check_checkpoints(self, contestant: Contestant, training: Training) -> None:
        kept, needed = len(self.protocol.candidates(training)), self.protocol.chosen
        if kept < needed:
            raise PlatoError(
                f"{contestant.name}: the training with seed {training.seed} kept "
                f"{kept} checkpoint(s) of its second half, and the paper's protocol "
                f"takes the best {needed}; train with --checkpoints {2 * needed} or "
                f"more."
            )


def shares(
    returns: Float[np.ndarray, "candidate setup"],
) -> Float[np.ndarray, " candidate"]:
    """Each candidate's returns as parts of the largest on their setup; their mean.

    With several setups none drowns the others. Where all returns are 0, so are parts.
    """
    largest = np.abs(returns).max(axis=0)
    return (returns / np.where(largest > 0, largest, 1.0)).mean(axis=1)


def _homes(training: Training) -> list[Setup]:
    """What a training was on; refused where a file says something else by now."""
    homes = [load_setup(setup) for setup in training.setups]
    for setup, home in zip(training.setups, homes, strict=True):
        if not training.was_on(home):
            raise PlatoError(
                f"{setup}: is not the game that {training.where} was trained on, where "
                f"its checkpoints are chosen; restore it, and give what is changed "
                f"another name."
            )
    return homes


def _stacked(episodes: Sequence[EpisodeMetrics]) -> Episodes:
    return {name: np.stack([e[name] for e in episodes]) for name in episodes[0]}


def _span(seeds: range) -> str:
    return f"{seeds.start}–{seeds.stop - 1}"
