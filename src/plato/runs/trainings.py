"""What run folders hold, as contestants of a comparison."""

from collections.abc import Sequence
from pathlib import Path

from plato.errors import PlatoError
from plato.evaluation.contestants import Checkpoint, Contestant, Training
from plato.learners.config import RunName, TrainConfig
from plato.runs.folder import RunFolder


def contestants_of(runs: Sequence[str]) -> list[Contestant]:
    """Methods from `RUN` or `NAME=RUN`; runs of one NAME are trainings of one method.

    A run without a name is a method of its own, called by its folder.
    """
    methods: dict[str, list[Path]] = {}
    folders = [Path(text).resolve().name for text in runs if not _name(text)]
    for text in runs:
        if name := _name(text):
            path = Path(text.removeprefix(f"{name}="))
        else:
            path = Path(text)
            folder = path.resolve().name
            name = folder if folders.count(folder) == 1 else text
            if name in methods:
                raise PlatoError(f"Two rows are called {name!r}; name one NAME=RUN.")
        methods.setdefault(name, []).append(path)
    return [_method(name, paths) for name, paths in methods.items()]


def _method(name: str, paths: Sequence[Path]) -> Contestant:
    found = [training for path in paths for training in trainings(path)]
    seen: dict[tuple[tuple[str, ...], int], Training] = {}
    for training in found:
        twin = seen.setdefault((training.names, training.seed), training)
        if twin is not training:
            raise PlatoError(
                f"{name}: seed {training.seed} on {'+'.join(training.names)} is in "
                f"{twin.where} and in {training.where}; trainings of one method are "
                f"independent only with different seeds."
            )
    return Contestant(name, trainings=tuple(found))


def trainings(path: Path) -> list[Training]:
    """The trainings of a run folder, which must be finished."""
    folder = RunFolder(path)
    config = folder.config()
    return [_training(folder, config, run) for run in config.runs]


def _training(folder: RunFolder, config: TrainConfig, run: RunName) -> Training:
    updates, games = config.learning.updates, folder.games()
    checkpoints = tuple(
        Checkpoint(int(path.stem), config.learning.played(int(path.stem)), path)
        for path in folder.checkpoints(run)
    )
    if not checkpoints or checkpoints[-1].update < updates:
        last = checkpoints[-1].update if checkpoints else 0
        raise PlatoError(
            f"{folder.path}: the checkpoint of {run} after update {updates} is missing "
            f"(the last one is of update {last}); `plato train --resume "
            f"{folder.path}` finishes a run that was stopped."
        )
    return Training(
        setups=run.setups,
        seed=run.seed,
        updates=updates,
        checkpoints=checkpoints,
        where=folder.path,
        digests=tuple(games[setup] for setup in run.setups) if games else (),
    )


def _name(text: str) -> str:
    """The NAME of `NAME=RUN`; empty for a plain path, which may hold a `=` too."""
    name, equals, _ = text.partition("=")
    return name if equals and not Path(text).exists() else ""
