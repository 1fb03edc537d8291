"""Trials as tasks of a Ray cluster. Extra: cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from plato.cluster import RETRIES, connected, first_line
from plato.errors import PlatoError
from plato.tuning.trials import Found, scores


@contextmanager
def scores_of_cluster(address: str | None) -> Iterator[Callable[..., list[float]]]:
    """What `scores` does, with every trial a task of its own."""
    with connected(address) as ray:
        task = ray.remote(max_retries=RETRIES)(scores)

        def run(
            method: str, setup: Any, trials: Sequence[Found], **settings: Any
        ) -> list[float]:
            running = [task.remote(method, setup, [one], **settings) for one in trials]
            try:
                return [score for found in ray.get(running) for score in found]
            except ray.exceptions.RayError as error:
                raise PlatoError(
                    f"A trial could not be done ({first_line(error)}); those that were "
                    f"finished before are kept, and the same command goes on."
                ) from None

        yield run
