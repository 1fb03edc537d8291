"""What and how to learn. Imports nothing heavy: the command line reads it."""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from plato.configuration import (
    divisor,
    from_mapping,
    real_number,
    to_mapping,
    whole_number,
)
from plato.errors import PlatoError
from plato.learners.baseline_configs import DgnLearning, DicgLearning, MohitoLearning
from plato.learners.budget import Budget
from plato.policies.baseline_configs import DgnConfig, DicgConfig
from plato.policies.config import ActorConfig
from plato.policies.mohito_config import MohitoConfig


@dataclass(frozen=True)
class MappoConfig(Budget):
    """How to learn."""

    games: int = 64
    """Games played side by side."""
    steps: int = 50
    """Steps of each game between two updates."""
    updates: int = 375
    """Rollouts, each followed by an update."""
    audition: float = 0.2
    """Part of the updates after which one of several beginnings is chosen."""
    epochs: int = 4
    """Passes over each rollout."""
    minibatches: int = 8
    """Gradient steps in a pass."""
    gamma: float = 0.98
    """Discount."""
    lam: float = 0.95
    """GAE's lambda."""
    clip: float = 0.2
    """PPO's clip range, for the policy's ratio and for (normalised) values."""
    entropy: float = 0.05
    """Weight of the entropy bonus at the start."""
    entropy_end: float = 0.001
    """The same at the end."""
    entropy_fall: Literal["geometric", "linear"] = "geometric"
    """How it falls in between."""
    actor_rate: float = 2e-3
    """Learning rate of the actor."""
    critic_rate: float = 2e-3
    """Learning rate of the critic."""
    rate_end: float = 0.05
    """What is left of both learning rates at the end; they fall linearly."""
    begin_with: str = ""
    """A trained policy to begin with, in place of new weights: a checkpoint, a run, or
    `pretrained:NAME`. Its critic is not kept, and begins anew."""
    critic_first: float = 0.0
    """Part of the training, at first, in which the critic learns alone: until it knows
    what the policy is worth that the training began with."""
    max_norm: float = 1.0
    """Norm to which each network's gradient is clipped."""
    adam_epsilon: float = 1e-5
    """Adam's epsilon, added to what it divides by, which may be 0."""
    restart: float = 0.0
    """Chance at every step, at the start, that a game is begun anew; it falls linearly
    to 0. Games that go downhill for good then do not crowd out their beginnings."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """What the networks compute in while they learn: bfloat16 is faster on a GPU.
    Weights, sums, policies and all that is saved are float32 either way."""
    value_normalisation: bool = True
    """Whether the critic learns returns in units of their running spread."""
    advisers: tuple[str, ...] = ()
    """Policies to do as, at first: one for all setups, or one for each in turn. Paths,
    or `pretrained` for what comes with PLATO for each setup."""
    advice: float = 1.0
    """Weight of doing as they would, at the start; it falls linearly to 0."""
    advised: float = 0.5
    """Part of the training after which they are not asked any more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epochs", "minibatches"):
            whole_number(name, getattr(self, name), 1)
        for name in ("gamma", "lam", "rate_end", "restart", "critic_first"):
            real_number(name, getattr(self, name), most=1)
        for name in ("entropy", "entropy_end", "actor_rate", "critic_rate", "advice"):
            real_number(name, getattr(self, name))
        for name in ("clip", "max_norm", "adam_epsilon"):
            real_number(name, getattr(self, name), above=True)
        real_number("advised", self.advised, above=True, most=1)
        if self.entropy_fall == "geometric" and bool(self.entropy) != bool(
            self.entropy_end
        ):
            raise PlatoError(
                f"entropy={self.entropy} cannot fall geometrically to "
                f"entropy_end={self.entropy_end}; choose two numbers above 0, or "
                f"entropy_fall linear."
            )


EVALUATION_SEEDS = range(200, 250)
"""The paper's, which training has to leave alone."""
LONGEST_NAME = 100
"""Letters of setups' names in the names of files, which systems allow 255 or fewer."""
Networks: TypeAlias = ActorConfig | DicgConfig | DgnConfig | MohitoConfig
Learning: TypeAlias = MappoConfig | DicgLearning | DgnLearning | MohitoLearning
MethodName: TypeAlias = Literal["plato", "dicg", "dgn", "mohito"]
Maps: TypeAlias = Literal["own", "moved", "scattered", "strange"]
FEWEST_GAMES: dict[Maps, int] = {"own": 1, "moved": 2, "scattered": 4, "strange": 2}
"""Of each setup: with fewer, none would have another map than its setup's own."""


class MethodConfigs(NamedTuple):
    """The two halves of a method: which networks, and how they learn."""

    networks: type[Networks]
    learning: type[Learning]


METHODS: dict[MethodName, MethodConfigs] = {
    "plato": MethodConfigs(ActorConfig, MappoConfig),
    "dicg": MethodConfigs(DicgConfig, DicgLearning),
    "dgn": MethodConfigs(DgnConfig, DgnLearning),
    "mohito": MethodConfigs(MohitoConfig, MohitoLearning),
}


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """How a training is done, whatever the method and whatever it is done on."""

    fleet: bool = False
    """One policy for each setup instead of one across them all."""
    seeds: int = 1
    """Independent trainings, side by side."""
    seed: int = 42
    """Of parameters and algorithm; further trainings take the seeds after it."""
    game_seed: int = 300
    """Of the games that are played in training."""
    noise: Literal["independent", "paper"] = "independent"
    """Whether every episode has its own noise, or the paper's one stream."""
    maps: Maps = "own"
    """Of every second game (wildfires): its setup's own; that map turned, mirrored and
    moved at random, so that what is learned holds wherever things are; or half of them
    scattered, with its team or a smaller one and other numbers of fires, anywhere on
    grids up to 5×5; or all of them scattered (strange)."""
    new_maps: int = 0
    """After how many updates such games get other maps of the same kind; if 0, they
    keep their first ones."""
    checkpoints: int = 20
    """How many policies to keep along the way, evenly spaced."""


@dataclass(frozen=True, kw_only=True)
class TrainSettings(CommonSettings):
    """How a training is done, whatever it is done on."""

    networks: Networks = field(default_factory=ActorConfig)
    learning: Learning = field(default_factory=MappoConfig)

    @property
    def method(self) -> MethodName:
        """Whose settings these are."""
        return next(
            name
            for name, configs in METHODS.items()
            if isinstance(self.learning, configs.learning)
        )


@dataclass(frozen=True, kw_only=True)
class _Common(CommonSettings):
    """What a configuration says beside its method's two halves."""

    setups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TrainConfig(TrainSettings):
    """All that a training depends on."""

    setups: tuple[str, ...]
    """What to train on."""

    def __post_init__(self) -> None:
        if not self.setups:
            raise PlatoError("setups is empty; name at least one.")
        whole_number("seeds", self.seeds, 1)
        whole_number("seed", self.seed, 0)
        whole_number("game_seed", self.game_seed, 0)
        whole_number("checkpoints", self.checkpoints, 1)
        whole_number("new_maps", self.new_maps, 0)
        if self.new_maps and self.maps == "own":
            raise PlatoError(
                f"new_maps={self.new_maps} is for games on other maps than their "
                f"setups' own; choose maps='moved' or another, or new_maps=0."
            )
        games = range(self.game_seed, self.game_seed + self.seeds)
        if set(games) & set(EVALUATION_SEEDS):
            raise PlatoError(
                f"game_seed={self.game_seed} with seeds={self.seeds} meets the seeds "
                f"of evaluation, {EVALUATION_SEEDS.start}–{EVALUATION_SEEDS.stop - 1}; "
                f"choose others, as the default, 300."
            )
        expected = METHODS[self.method].networks
        if not isinstance(self.networks, expected):
            raise PlatoError(
                f"{type(self.learning).__name__} teaches networks of "
                f"{expected.__name__}, not of {type(self.networks).__name__}."
            )
        if not self.fleet and self.learning.games % len(self.setups):
            raise PlatoError(
                f"games={self.learning.games} cannot be shared evenly by "
                f"{len(self.setups)} setups; try a multiple of {len(self.setups)}."
            )
        sharing = 1 if self.fleet else len(self.setups)
        fewest = sharing * FEWEST_GAMES[self.maps]
        if self.learning.games < fewest:
            raise PlatoError(
                f"games={self.learning.games} are too few for maps={self.maps!r}: none "
                f"of a setup's would be {self.maps}; choose games={fewest} or more."
            )
        if self.maps in ("scattered", "strange") and self.noise == "paper":
            raise PlatoError(
                "noise='paper' is a record of the agents and fires of each setup; on "
                "scattered maps there are others: choose noise='independent'."
            )
        (name, times), *_ = Counter(map(str, self.runs)).most_common(1)
        if times > 1:
            raise PlatoError(
                f"Two trainings would be called {name}; name every setup once, and "
                f"files so that they differ in more than / and -."
            )
        if isinstance(self.learning, MappoConfig):
            _check_minibatches(self.learning, self.networks)
        if isinstance(self.learning, MohitoLearning):
            _check_choice(self.learning, self.networks)

    @property
    def runs(self) -> list["RunName"]:
        """The trainings of this configuration, in the order of the batch axis."""
        groups = [(s,) for s in self.setups] if self.fleet else [self.setups]
        seeds = range(self.seed, self.seed + self.seeds)
        return [RunName(group, seed) for group in groups for seed in seeds]

    @property
    def advisers(self) -> tuple[str, ...]:
        """Whom learners ask at first, if anybody."""
        learning = self.learning
        return learning.advisers if isinstance(learning, MappoConfig) else ()

    @property
    def begin_with(self) -> str:
        """The trained policy that learners begin with, if any."""
        learning = self.learning
        return learning.begin_with if isinstance(learning, MappoConfig) else ""

    def to_mapping(self) -> dict[str, Any]:
        """As plain dicts, lists and scalars, the method's name among them."""
        return {"method": self.method} | to_mapping(self)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> "TrainConfig":
        """Reads that back; what is left out is as its method has it by default."""
        rest = _as_named_today(data)
        method = rest.pop("method", "plato")
        if method not in METHODS:
            raise PlatoError(
                f"method must be one of {', '.join(METHODS)}, not {method!r}."
            )
        halves: dict[str, Any] = {}
        for name, half in METHODS[method]._asdict().items():
            table = rest.pop(name, {})
            if not isinstance(table, Mapping):
                raise PlatoError(f"{name} must be a table of fields, not {table!r}.")
            halves[name] = from_mapping(half, table, name)
        common = from_mapping(_Common, rest)
        return cls(**vars(common), **halves)


def _as_named_today(data: Mapping[str, Any]) -> dict[str, Any]:
    """Reads what was written when maps were moved `anywhere`, or not at all."""
    rest = dict(data)
    if isinstance(rest.get("anywhere"), bool) and "maps" not in rest:
        rest["maps"] = "moved" if rest.pop("anywhere") else "own"
    return rest


def _check_choice(learning: MohitoLearning, networks: Networks) -> None:
    released = isinstance(networks, MohitoConfig) and networks.as_released
    if released and learning.choice == "soft":
        raise PlatoError(
            "as_released goes with choice='hard' alone (--choice hard): the released "
            "code's soft choices fail."
        )


def _check_minibatches(learning: MappoConfig, networks: Networks) -> None:
    recurrent = isinstance(networks, ActorConfig) and networks.encoder == "lstm"
    batch = learning.games if recurrent else learning.games * learning.steps
    of_what = "games" if recurrent else "steps"
    divisor("minibatches", learning.minibatches, batch, f"{of_what} of a rollout")


@dataclass(frozen=True)
class RunName:
    """One training: what it plays, and its seed."""

    setups: tuple[str, ...]
    seed: int

    def __str__(self) -> str:
        names = "+".join(setup.removesuffix(".toml") for setup in self.setups)
        if len(self.setups) > 1 and len(names) > LONGEST_NAME:
            digest = hashlib.sha256(names.encode()).hexdigest()[:8]
            names = f"{len(self.setups)}-setups-{digest}"
        return f"{re.sub('[/:]', '-', names)}-seed{self.seed}"
