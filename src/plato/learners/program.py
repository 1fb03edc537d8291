"""Training as compiled programs: runs (setups and seeds) are a batch axis of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import prod
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float

from plato.domains.setups import Rows, Setup
from plato.domains.wildfire.maps import MORE_FIRES, SCATTERED
from plato.errors import PlatoError
from plato.game import Game, WithinReach, features_of, stack
from plato.learners.advice import (
    Advisers,
    adviser_files,
    load_advisers,
    refuse_unfit,
)
from plato.learners.arena import Arena, joined
from plato.learners.beginnings import Contender, best
from plato.learners.config import RunName, TrainConfig
from plato.learners.kinds import Kind, compiled, of_run
from plato.learners.predecessors import load_predecessor
from plato.policies.checkpoint import refuse_another_game
from plato.policies.mohito_config import MohitoConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.policies.policy import Policy
from plato.seeding import keys_of

Result = TypeVar("Result")


class Program:
    """The compiled training of a configuration: `start`, then `advance` many times.

    Runs of about the same size share one program. Learners are one for each such group,
    stacked over its runs; metrics and policies come in the order of the runs.
    """

    def __init__(self, config: TrainConfig, setups: dict[str, Setup]) -> None:
        self.config = config
        self.runs = config.runs
        if config.advisers:
            own = {name: setups[name] for name in config.setups}
            refuse_unfit([*adviser_files(config.advisers, own).values()])
        rows = [_rows_of(run, setups) for run in self.runs]
        forms = _forms(config, setups, _room(rows))
        kinds = [[forms[name] for name in run.setups] for run in self.runs]
        self.groups = [
            Group(config, setups, [self.runs[i] for i in members])
            for members in grouped(rows, kinds)
        ]
        order = [self.runs.index(run) for group in self.groups for run in group.runs]
        self._place = np.argsort(order)
        self._compiled: set[Callable[..., Any]] = set()

    def start(self) -> list[Any]:
        """New learners for all runs."""
        return self._of_groups(Group.start, [() for _ in self.groups])

    def after(self, update: int) -> list[Any]:
        """What learners are like when so many updates are done: shapes, no numbers."""
        learners = [group.shapes() for group in self.groups]
        chosen = update >= self.config.learning.auditions
        return [learner[:1] if chosen else learner for learner in learners]

    def advance(
        self, learners: list[Any], update: int
    ) -> tuple[list[Any], dict[str, list[Array]]]:
        """The update of that number, from 1, for every run; uses up the learners given.

        Metrics are in parts, one for each group; `in_order` puts them together.
        """
        done = self._of_groups(Group.advance, [(one, update) for one in learners])
        parts = [metrics for _, metrics in done]
        return [one for one, _ in done], {k: [p[k] for p in parts] for k in parts[0]}

    def _of_groups(
        self, function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Result]:
        """A function of every group; at its first time, which compiles, all at once."""
        calls = [
            partial(function, group, *own)
            for group, own in zip(self.groups, arguments, strict=True)
        ]
        if function in self._compiled or len(calls) == 1:
            return [call() for call in calls]
        with ThreadPoolExecutor(len(calls)) as pool:
            done = [one.result() for one in [pool.submit(call) for call in calls]]
        self._compiled.add(function)
        return done

    def in_order(self, parts: list[Any]) -> np.ndarray:
        """One number for each run, from a metric's parts."""
        return np.concatenate(parts)[self._place]

    def policies(self, learners: list[Any]) -> list[tuple[Policy[Any], PaddedShape]]:
        """The policy of each run as it is now, and what it is built for."""
        found = [
            (policy, group.shape)
            for group, learner in zip(self.groups, learners, strict=True)
            for policy in group.policies(learner)
        ]
        return [found[i] for i in self._place]


class Group:
    """Runs of about the same size as one program: they are a batch axis of it."""

    def __init__(
        self,
        config: TrainConfig,
        setups: dict[str, Setup],
        runs: list[RunName],
        numbers: Mapping[str, Float[Array, " run"]] | None = None,
    ) -> None:
        """`numbers` are settings of the learning that differ from run to run."""
        self.config, self.runs = config, runs
        self._numbers = dict(numbers or {})
        rows = _room([_rows_of(run, setups) for run in runs])
        if config.maps in SCATTERED:
            rows = Rows(rows.agents, rows.tasks + MORE_FIRES)
        seeds = [config.game_seed + run.seed - config.seed for run in runs]
        played = [[setups[name] for name in run.setups] for run in runs]
        self.arena = Arena(config, played, rows, seeds)
        # Runs of one seed share their beginnings across setups, as the paper's did.
        self._keys = keys_of([run.seed for run in runs])
        self._game_keys = keys_of(seeds)
        self._advisers = stack([_advisers(config, setups, run, rows) for run in runs])
        self.shape = shape_of(of_run(self.arena.games, 0), rows, config)
        kind = Kind(
            config.networks,
            config.learning,
            self.shape,
            setups=len(runs[0].setups),
            mapped=len(runs) > 1,
            reach=_reach(self.arena.games, config),
        )
        self.method = kind.method()
        self._create, self._update, self._restage = compiled(kind)
        predecessors = stack([_predecessor(config, setups, run) for run in runs])
        self._begun_with = (
            self.arena.games,
            self._keys,
            self._game_keys,
            predecessors,
        )

    def start(self) -> list[Contender]:
        """New learners: as many as there are beginnings, each stacked over the runs."""
        like = self.shapes()[0]
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(self._compile_update, like)
            contenders = self._contenders(partial(self._create, *self._begun_with))
            ahead.result()
        return contenders

    def _compile_update(self, like: Contender) -> None:
        """Before it is called, for contenders of such shapes."""
        self._update.lower(*self._arguments(like)).compile()

    def shapes(self) -> list[Contender]:
        """What they are like, without numbers."""
        # One for all, by the program itself: it cannot be a part of another's trace.
        one = self._create.eval_shape(*self._begun_with, 0, 0)
        return jax.eval_shape(lambda one: self._contenders(lambda *_: one), one)

    def _contenders(self, create: Callable[[int, int], Any]) -> list[Contender]:
        # One after the other: mapped over many runs, the QR decompositions behind
        # orthogonal weights wait for each other forever on a CPU of few cores.
        runs, numbers = len(self.runs), range(self.config.learning.beginnings)
        return [
            Contender.create(
                joined([create(run, number) for run in range(runs)]), number, runs
            )
            for number in numbers
        ]

    def advance(
        self, contenders: list[Contender], update: int
    ) -> tuple[list[Contender], dict[str, Array]]:
        """The update of that number, from 1, for every run; uses up what is given.

        Metrics are those of the contender that does best.
        """
        if self.arena.turn_to(update):
            contenders = [self._on_other_maps(one, update) for one in contenders]
        done = [self._advance(contender) for contender in contenders]
        contenders = [contender for contender, _ in done]
        if len(contenders) == 1:
            return contenders, done[0][1]
        scores = [contender.score for contender in contenders]
        metrics = best(scores, [metrics for _, metrics in done])
        if update >= self.config.learning.auditions:
            contenders = [best(scores, contenders)]
        return contenders, metrics

    def _advance(self, contender: Contender) -> tuple[Contender, dict[str, Array]]:
        learner, metrics = self._update(*self._arguments(contender))
        return contender.after(learner, metrics), metrics

    def _on_other_maps(self, contender: Contender, update: int) -> Contender:
        """The same, but that games begin anew where there is another map."""
        learner = self._restage(
            self.arena.games,
            contender.learner,
            self._game_keys,
            contender.number,
            np.full(len(self.runs), update),
        )
        return contender._replace(learner=learner)

    def _arguments(self, contender: Contender) -> tuple[Any, ...]:
        """Those of the update."""
        return (
            self.arena.games,
            contender.learner,
            self._keys,
            self._game_keys,
            contender.number,
            self._numbers,
            self._advisers,
        )

    def policies(self, contenders: list[Contender]) -> list[Policy[Any]]:
        """The policy of each run as it is now, of the contender that does best."""
        found = [self.method.policy(contender.learner) for contender in contenders]
        stacked = jax.device_get(best([c.score for c in contenders], found))
        return [of_run(stacked, i) for i in range(len(self.runs))]


def shape_of(games: Game[Any, Any], rows: Rows, config: TrainConfig) -> PaddedShape:
    """What the networks of a training are built for, some of them in all of it."""
    seen = jax.eval_shape(
        jax.vmap(lambda game: game.reset(jax.random.key(0))[1]), games
    )
    return PaddedShape(
        agents=rows.agents,
        agent_features=seen.agents.shape[-1],
        task_features=seen.tasks.shape[-1],
        actions=games.capacity.actions,
        pad=getattr(config.networks, "pad", rows.tasks),
    )


def _reach(games: Game[Any, Any], config: TrainConfig) -> WithinReach | None:
    """What agents may be offered in some of a training's games, for MOHITO's critics.

    Other methods are not told, so that what is compiled for them fits games of other
    reach; nor is a training whose maps will be others. Those that are moved alone stay
    as they are: distances decide who reaches what.
    """
    others = config.new_maps > 0 and config.maps in SCATTERED
    if others or not isinstance(config.networks, MohitoConfig):
        return None
    found = np.any(_reaches(games), axis=(0, 1))
    if found.shape != (room := tuple(games.capacity[:2])):
        raise PlatoError(
            f"within_reach of this game has the shape {found.shape}, not {room}; "
            f"plato.check_game finds what else is wrong with it."
        )
    agents: list[list[bool]] = found.tolist()
    return tuple(tuple(tasks) for tasks in agents)


@jax.jit
@jax.vmap
@jax.vmap
def _reaches(game: Game[Any, Any]) -> Array:
    """Of every game of every run, in whatever shape a game says it."""
    return game.within_reach


MOST_PADDING = 2
"""For how many times its own tasks a run may be given room."""


def grouped(rows: Sequence[Rows], kinds: Sequence[Any]) -> list[list[int]]:
    """Which runs go together: from the largest down, those not much smaller.

    Only those of one kind can, whose arrays differ in nothing but rows.
    """
    groups: list[list[int]] = []
    for i in sorted(range(len(rows)), key=lambda i: (-prod(rows[i]), i)):
        alike = [group for group in groups if kinds[group[0]] == kinds[i]]
        if alike:
            room = _room([rows[j] for j in [*alike[-1], i]])
            fits = room.tasks <= MOST_PADDING * rows[i].tasks
            # Some methods build networks for a number of agents: it must be the same.
            if fits and room.agents == rows[i].agents:
                alike[-1].append(i)
                continue
        groups.append([i])
    return [sorted(group) for group in groups]


def _room(rows: Sequence[Rows]) -> Rows:
    """What holds all of them."""
    return Rows(max(row.agents for row in rows), max(row.tasks for row in rows))


def _rows_of(run: RunName, setups: dict[str, Setup]) -> Rows:
    """The rows for agents and tasks that a run's setups need."""
    return _room([setups[name].rows for name in run.setups])


def _forms(
    config: TrainConfig, setups: dict[str, Setup], room: Rows
) -> dict[str, tuple[Any, ...]]:
    """What setups must have in common to be stacked, given the same room."""
    forms = {name: setups[name].form(room) for name in config.setups}
    if config.noise != "paper":
        return forms
    # Its record is as long as an episode.
    return {
        name: (*form, setups[name].config.max_steps) for name, form in forms.items()
    }


def _advisers(
    config: TrainConfig, setups: dict[str, Setup], run: RunName, rows: Rows
) -> Advisers | None:
    """Who advises one run, if anybody does."""
    if not config.advisers:
        return None
    files = adviser_files(config.advisers, {n: setups[n] for n in config.setups})
    homes = [setups[name].game(rows) for name in run.setups]
    for name, home in zip(run.setups, homes, strict=True):
        refuse_another_game(str(files[name]), files[name], features_of(home))
    return load_advisers(
        [files[name] for name in run.setups],
        homes if config.maps != "own" else None,
        config.maps,
    )


def _predecessor(
    config: TrainConfig, setups: dict[str, Setup], run: RunName
) -> PointerActor | None:
    """What one run begins with, if it has no new weights."""
    if not config.begin_with:
        return None
    return load_predecessor(
        config.begin_with, config.networks, [setups[name] for name in run.setups]
    )
