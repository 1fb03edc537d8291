"""Trials as tasks of a Ray cluster. Extra: cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from plato.cluster import PATIENCE, connected, first_line, task
from plato.errors import PlatoError
from plato.learners.config import TrainSettings
from plato.tuning.study import Run
from plato.tuning.trials import Ears, Found, scores


@contextmanager
def scores_of_cluster(address: str | None, gpus: float = 0.0) -> Iterator[Run]:
    """What `scores` does, with every trial a task of its own.

    `gpus` is what each is given of a GPU; Ray hides them from tasks that ask for none.
    """
    with connected(address) as ray:
        score = task(ray, score_elsewhere, gpus)

        def run(
            base: TrainSettings,
            setup: Any,
            trials: Sequence[Found],
            *,
            ears: Ears,
            **settings: Any,
        ) -> Iterator[tuple[int, float]]:
            running = {
                score.remote(base, setup, found, **settings): i
                for i, found in enumerate(trials)
            }
            ears.trains(list(running.values()), 0.0)
            yield from _as_they_come(ray, running, ears)

        yield run


def _as_they_come(
    ray: Any, running: dict[Any, int], ears: Ears
) -> Iterator[tuple[int, float]]:
    """Scores, one by one; what could not be done is said when all others are there."""
    failed: list[str] = []
    trials = len(running)
    while running:
        ready, _ = ray.wait(list(running), timeout=PATIENCE)
        for reference in ready:
            place = running.pop(reference)
            try:
                score, lines = ray.get(reference)
            except ray.exceptions.RayError as error:
                failed.append(first_line(error))
            else:
                for line in lines:
                    ears.says(line)
                yield place, score
    if failed:
        raise PlatoError(
            f"{len(failed)} of {trials} trials could not be done ({failed[0]}); the "
            f"others are kept, and the same command goes on."
        )


def score_elsewhere(
    base: Any, setup: Any, found: Found, **settings: Any
) -> tuple[float, list[str]]:
    """The task: a trial's score, and what there is to say of it."""
    said: list[str] = []
    ears = Ears(says=said.append)
    # What it may use beside its own core belongs to other tasks.
    ((_, score),) = scores(base, setup, [found], **settings, ears=ears, threads=1)
    return score, said
