"""The subcommands: flags as fields, work in `run`."""

from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from tyro.conf import Positional, UseAppendAction

from plato.cli.console import console, report_error, set_up_jax
from plato.cli.typed import typed_flags, typed_of
from plato.errors import PlatoError
from plato.learners.config import (
    METHODS,
    CommonSettings,
    MappoConfig,
    MethodName,
    TrainConfig,
    TrainSettings,
)
from plato.policies.config import PAPER_FORM, ActorConfig

if TYPE_CHECKING:
    from plato.runs.folder import RunFolder

T = TypeVar("T")
Repeated: TypeAlias = Annotated[tuple[T, ...], UseAppendAction]


@dataclass(frozen=True)
class Setups:
    """List the setups, or show one: `plato setups show wildfire-3x3-S2`."""

    action: Positional[Literal["list", "show"]] = "list"
    """What to do."""
    name: Positional[str] = ""
    """The setup to show: its name, or the path of a .toml file."""
    out: Path | None = None
    """With show: a .toml file to write the setup to instead, for you to change."""

    def run(self) -> int:
        from plato.domains.setups import (
            load_setup,
            setup_names,
            setup_toml,
            write_setup,
        )
        from plato.domains.wildfire.drawing import draw_grid

        out = console()
        if self.action == "list":
            if self.name or self.out:
                name = self.name or "NAME"
                raise PlatoError(f"To see one setup: `plato setups show {name}`.")
            for name in setup_names():
                line = load_setup(name).config.description
                out.print(f"[bold]{name:26}[/] {line}", soft_wrap=True)
            return 0
        if not self.name:
            raise PlatoError("`plato setups show` needs the name of a setup.")
        config = load_setup(self.name).config
        if self.out is not None:
            write_setup(_new_toml(self.out), config)
            out.print(f"The setup: {self.out}", soft_wrap=True)
            return 0
        out.print(setup_toml(config), markup=False, soft_wrap=True)
        out.print(draw_grid(config, out.width))
        return 0


def _new_toml(path: Path) -> Path:
    """The path, if a setup can be written there and read from there."""
    if path.suffix != ".toml":
        raise PlatoError(f"{path}: a setup's file ends in .toml; name it so.")
    if path.exists():
        raise PlatoError(f"{path}: is there already; choose another --out.")
    return path


@dataclass(frozen=True)
class Evaluate:
    """Play seeded episodes of policies on setups and print the paper's metrics."""

    setup: Repeated[str]
    """A setup's name (see `plato setups`) or .toml file, or a game of your own
    (couriers.py:NAME); may be repeated."""
    policy: Repeated[str]
    """noop, random, weakest, strongest, weakest-released, strongest-released,
    assignment (a planner), optimal (solved exactly), pretrained (comes with PLATO;
    pretrained:NAME for a certain one), or the path of a checkpoint, of a solution or of
    a run; NAME=POLICY calls it NAME; may be repeated."""
    actions: Literal["own", "sampled", "greedy"] = "own"
    """How trained policies take them: as each method's source does (PLATO draws, the
    baselines take the likeliest), drawn wherever a policy can, or the likeliest."""
    episodes: int = 50
    """Episodes for each policy and setup."""
    seed: int = 200
    """Seed of the first episode; the others follow it."""
    noise: Literal["independent", "paper"] = "independent"
    """independent: every seed its own noise; paper: the paper's one fixed stream."""
    out: Path = Path("evaluation.json")
    """Where to write every metric of every episode."""

    def run(self) -> int:
        set_up_jax()
        from plato import __version__
        from plato.domains.setups import load_setup
        from plato.evaluation.evaluate import evaluate
        from plato.evaluation.named import called, named_policy
        from plato.evaluation.tables import evaluation_table
        from plato.files import writable, write_json

        if not self.setup or not self.policy:
            raise PlatoError("Name at least one --setup and one --policy.")
        setups = [load_setup(name) for name in self.setup]
        # All of them before the first is played: what is wrong is said at once.
        players = [
            (setup, name, named_policy(policy, setup, actions=self.actions))
            for setup in setups
            for name, policy in map(called, self.policy)
        ]
        writable(self.out)
        results = [
            evaluate(
                policy,
                setup,
                episodes=self.episodes,
                seed=self.seed,
                noise=self.noise,
                name=name,
            )
            for setup, name, policy in players
        ]
        out = console()
        out.print(evaluation_table(results, out.width))
        rows = [result.to_json() for result in results]
        write_json(self.out, {"plato": __version__, "evaluations": rows})
        out.print(f"Every episode: {self.out}", style="dim", soft_wrap=True)
        return 0


@dataclass(frozen=True)
class Replay:
    """Write an episode as a web page to play back: `plato replay weakest optimal
    --setup wildfire-3x3-S3`.

    Several policies meet the same noise, side by side.
    """

    policy: Positional[tuple[str, ...]]
    """Policies as `plato evaluate` names them, or NAME=POLICY to call them NAME."""
    setup: str
    """A setup's name (see `plato setups`) or .toml file."""
    seed: int = 200
    """Seed of the episode."""
    noise: Literal["independent", "paper"] = "independent"
    """independent: the seed's own noise; paper: the paper's one fixed stream."""
    actions: Literal["own", "sampled", "greedy"] = "own"
    """How trained policies take them, as for `plato evaluate`."""
    out: Path = Path("replay.html")
    """The file to write: .html, or a picture, .gif (moving) or .png (a strip)."""
    open: bool = False
    """Open it in the browser."""

    def run(self) -> int:
        set_up_jax()
        from plato.cli.replaying import write_replay
        from plato.domains.setups import load_setup

        write_replay(
            load_setup(self.setup),
            self.policy,
            self.out,
            seed=self.seed,
            noise=self.noise,
            actions=self.actions,
            console=console(),
            then_open=self.open,
        )
        return 0


@dataclass(frozen=True)
class Watch:
    """Watch an episode in the terminal: `plato watch weakest --setup
    wildfire-3x3-S3`."""

    policy: Positional[str]
    """A policy as `plato evaluate` names it, or NAME=POLICY to call it NAME."""
    setup: str
    """A setup's name (see `plato setups`) or .toml file."""
    seed: int = 200
    """Seed of the episode."""
    noise: Literal["independent", "paper"] = "independent"
    """independent: the seed's own noise; paper: the paper's one fixed stream."""
    actions: Literal["own", "sampled", "greedy"] = "own"
    """How trained policies take them, as for `plato evaluate`."""
    speed: float = 2.0
    """Steps a second."""

    def run(self) -> int:
        set_up_jax()
        from plato.cli.replaying import watch_episode
        from plato.domains.setups import load_setup

        watch_episode(
            load_setup(self.setup),
            self.policy,
            seed=self.seed,
            noise=self.noise,
            actions=self.actions,
            speed=self.speed,
            console=console(),
        )
        return 0


@dataclass(frozen=True, kw_only=True)
class Train(CommonSettings):
    """Train: `plato train --setup wildfire-3x3-S3`.

    Further settings are those of the method; `plato train --method dicg --help` shows
    DICG's.
    """

    method: MethodName = "plato"
    """What to train: PLATO, or one of its baselines."""
    networks: ActorConfig = field(default_factory=ActorConfig)
    learning: MappoConfig = field(default_factory=MappoConfig)
    setup: Repeated[str] = ()
    """A setup's name or .toml file, or a game of your own (couriers.py:NAME); may be
    repeated: one policy across them all."""
    out: Path | None = None
    """The folder of the run (default: runs/ and the setup's name)."""
    resume: Path | None = None
    """Continue the run in this folder; no other setting is read then."""
    config: Path | None = None
    """A TOML file of settings (as config.toml of a run); of the other flags only
    --setup and --out are read then."""
    paper_form: bool = False
    """PLATO as Algorithm 1 is printed: the query from statistics of those present,
    without one's own features or the tasks."""

    def run(self) -> int:
        set_up_jax()
        from plato.cli.training import train_and_show

        return train_and_show(self._folder(), console())

    def _folder(self) -> "RunFolder":
        from plato.configuration import read_toml
        from plato.domains.setups import load_setup
        from plato.learners.program import Program
        from plato.runs.folder import RunFolder

        if self.resume is not None:
            self._refuse_beside("resume")
            return self._resumed(RunFolder(self.resume))
        if self.config is not None:
            self._refuse_beside("config", "setup", "out")
            config = TrainConfig.from_mapping(self._settings(read_toml(self.config)))
        elif self.setup:
            settings = {f.name: getattr(self, f.name) for f in fields(TrainSettings)}
            if self.paper_form:
                settings["networks"] = self._paper_form()
            elif self._takes_networks_over():
                settings["networks"] = self._networks_begun_with()
            config = TrainConfig(setups=self.setup, **settings)
        else:
            raise PlatoError("Name at least one --setup, or a --config, or a --resume.")
        setups = {name: load_setup(name) for name in config.setups}
        names = [setup.name for setup in setups.values()]
        # Refuses what cannot be trained; then no folder is left behind.
        Program(config, setups).after(0)
        default = Path("runs") / (
            names[0].replace(":", "-") if len(names) == 1 else f"{len(names)}-setups"
        )
        if config.method != "plato":
            default = default.with_name(f"{default.name}-{config.method}")
        path = self.out or default
        if (path / "config.toml").exists() and RunFolder(path).config() == config:
            return RunFolder(path)  # the same command again goes on
        return RunFolder.create(path, config)

    def _takes_networks_over(self) -> bool:
        """Whether there is a policy to begin with, and no word on networks."""
        begun = isinstance(self.learning, MappoConfig) and self.learning.begin_with
        return bool(begun) and not typed_of(f.name for f in fields(ActorConfig))

    def _networks_begun_with(self) -> ActorConfig:
        """Those of the policy to begin with."""
        from plato.domains.setups import load_setup
        from plato.learners.predecessors import predecessor_file
        from plato.policies.checkpoint import networks_of

        first = self.setup[:1] if self.fleet else self.setup
        setups = [load_setup(name) for name in first]
        return networks_of(predecessor_file(self.learning.begin_with, setups))

    def _resumed(self, folder: "RunFolder") -> "RunFolder":
        """A run to go on with; says so where it may end with other roundings."""
        folder.config()  # refuses what is no run
        changed = [
            f"{name} {was}, now {is_now}"
            for name, (was, is_now) in folder.another_environment().items()
        ]
        if changed:
            console().print(
                f"This run was begun elsewhere ({'; '.join(changed)}): it goes on, but "
                f"may not end bit for bit as it would have there.",
                soft_wrap=True,
            )
        return folder

    def _refuse_beside(self, flag: str, *read: str) -> None:
        """Refuses settings that would not be read beside those of a file."""
        welcome = {f"--{name}" for name in (flag, *read)}
        given = [typed for typed in typed_flags() if typed not in welcome]
        if given:
            raise PlatoError(
                f"--{flag} reads all settings from a file; leave out what was given "
                f"beside it ({', '.join(given)})."
            )

    def _settings(self, read: dict[str, Any]) -> dict[str, Any]:
        """What a file says, for the setups that were named beside it, if any were."""
        return read | ({"setups": list(self.setup)} if self.setup else {})

    def _paper_form(self) -> ActorConfig:
        if self.method != "plato":
            raise PlatoError("--paper-form is a form of PLATO, not of a baseline.")
        if beside := typed_of(PAPER_FORM):
            raise PlatoError(
                f"--paper-form says what {', '.join(PAPER_FORM)} are; leave out "
                f"{', '.join(beside)}, or --paper-form."
            )
        return replace(self.networks, **PAPER_FORM)


def train_command(method: str) -> type[Train]:
    """`plato train` with the flags of one method."""
    if method == "plato" or method not in METHODS:
        return Train
    halves = METHODS[method]._asdict().items()
    kinds = [(name, half, field(default_factory=half)) for name, half in halves]
    made = make_dataclass("Train", kinds, bases=(Train,), frozen=True, kw_only=True)
    made.__doc__ = Train.__doc__
    return made


@dataclass(frozen=True)
class Verify:
    """Replay recorded transitions of the reference environment and compare exactly."""

    files: Positional[tuple[Path, ...]]
    """Recordings (.json.gz or .json)."""

    def run(self) -> int:
        set_up_jax()
        from plato.domains.wildfire.conformance import read_trace, replay

        if not self.files:
            raise PlatoError("Name at least one recording to verify.")
        out = console()
        checked = differing = unreadable = 0
        for path in self.files:
            try:
                verdict = replay(read_trace(path))
            except PlatoError as error:
                report_error(error)
                unreadable += 1
                continue
            line = f"{path}: {verdict.transitions} transitions agree"
            if verdict.difference:
                line += f", then a difference {verdict.difference}"
            out.print(line, markup=False, soft_wrap=True)
            checked += verdict.transitions
            differing += verdict.difference is not None
        out.print(
            f"{checked} transitions checked in {len(self.files)} file(s): "
            f"{differing} with a difference, {unreadable} unreadable.",
            soft_wrap=True,
        )
        return 2 if unreadable else 1 if differing else 0
