"""A Ray cluster, for whatever has independent tasks. Extra: cluster."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plato.errors import PlatoError

RETRIES = 3
"""Times that a task is begun anew after the worker that did it was lost."""
KNOCK = 5.0
"""Seconds in which a cluster must answer."""
PATIENCE = 1.0
"""Seconds to wait for news at a time, so that Ctrl-C is heard."""


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster for as long as the context lasts."""
    try:
        import ray
    except ImportError:
        raise PlatoError(
            "A cluster needs Ray; install it with: pip install 'plato-marl[cluster]'"
        ) from None
    ours = not ray.is_initialized()
    if ours and address is not None:
        _knock(address)
    if ours:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise _nobody(address or "this machine", error) from None
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def _knock(address: str) -> None:
    """Refuses an address where nobody answers; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # `auto`, or something that Ray knows about
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK).close()
    except (OSError, OverflowError) as error:
        raise _nobody(address, error) from None


def _nobody(address: str, error: Exception) -> PlatoError:
    return PlatoError(
        f"There is no Ray cluster at {address} ({first_line(error)}); start one with "
        f"`ray start --head`, and name it with --address."
    )


def first_line(error: Exception) -> str:
    """What an error of Ray comes down to: its traces end in the cause."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
