"""A Ray cluster, for whatever has independent tasks. Extra: cluster."""

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from plato.errors import PlatoError

RETRIES = 3
"""Times that a task is begun anew after the worker that did it was lost."""
KNOCK = 5.0
"""Seconds in which a cluster must answer."""
WELCOME = 60.0
"""Seconds in which it must have let us in."""
PATIENCE = 1.0
"""Seconds to wait for news at a time, so that Ctrl-C is heard."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2, which Ray speaks, begins: with its settings, here none."""
SETTINGS = 4
"""What kind of frame the fourth byte of an answer must be."""


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
    answered = ours and address is not None and _knock(address)
    if ours:
        try:
            _join(ray, address)
        except (OSError, ValueError, RuntimeError) as error:
            closed = _closed if answered else _nobody
            raise closed(address or "this machine", error) from None
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def task(ray: Any, function: Callable[..., Any], gpus: float) -> Any:
    """A function as a task, with what it is given of a GPU."""
    options: dict[str, Any] = {"max_retries": RETRIES, "num_gpus": gpus}
    if 0 < gpus < 1:
        # Of several on one GPU, the first would take most of its memory.
        memory = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        options["runtime_env"] = {"env_vars": memory}
    return ray.remote(**options)(function)


def _knock(address: str) -> bool:
    """Refuses an address where nobody answers as Ray does; Ray itself would try for
    minutes. Whether somebody does: what names no port cannot be asked."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return False  # `auto`, or something that Ray knows about
    try:
        with socket.create_connection((host, int(port)), timeout=KNOCK) as door:
            # Encrypted, it begins otherwise.
            if not os.environ.get("RAY_USE_TLS"):
                _greet(door)
    except (OSError, OverflowError) as error:
        raise _nobody(address, error) from None
    return True


def _greet(door: socket.socket) -> None:
    """Refuses whoever does not speak HTTP/2."""
    door.sendall(HELLO)
    answer = b""
    while len(answer) < 4 and (more := door.recv(16)):
        answer += more
    if answer[3:4] != bytes([SETTINGS]):
        raise ConnectionError("what answers there is not Ray")


def _join(ray: Any, address: str | None) -> None:
    """Connects; where a cluster should be there already, in a time that has an end."""

    def connect() -> None:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)

    if address is None:
        connect()
        return
    failed: list[Exception] = []

    def attempt() -> None:
        try:
            connect()
        except Exception as error:
            failed.append(error)

    # Ray cannot be told to give up: a thread is left to it, and goes with the process.
    waiting = threading.Thread(target=attempt, daemon=True)
    waiting.start()
    waiting.join(WELCOME)
    if failed:
        raise failed[0]
    if waiting.is_alive():
        raise TimeoutError(f"it has let nobody in for {WELCOME:.0f} seconds")


def _nobody(address: str, error: Exception) -> PlatoError:
    return PlatoError(
        f"There is no Ray cluster at {address} ({first_line(error)}); start one with "
        f"`ray start --head`, and name it with --address."
    )


def _closed(address: str, error: Exception) -> PlatoError:
    return PlatoError(
        f"The Ray cluster at {address} did not let us in ({first_line(error)}); if it "
        f"has a token, as those of Ray 2.59 and later do, set RAY_AUTH_MODE=token."
    )


def first_line(error: Exception) -> str:
    """What an error of Ray comes down to: its traces end in the cause."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
