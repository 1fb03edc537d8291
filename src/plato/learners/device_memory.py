"""What is too large for the memory of a device, and goes on in parts."""

from collections.abc import Callable

import jax


def fits(do: Callable[[], None]) -> bool:
    """Does something, and says whether this device's memory was large enough for it.

    If not, the error is let go at once, and with it all that it kept in memory.
    """
    try:
        do()
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return False
    return True


def in_two(trainings: int) -> str:
    """What to say when so many do not fit, and are split."""
    return (
        f"{trainings} trainings do not fit into this device's memory; they go on in "
        f"two parts."
    )
