"""What commands that may use a cluster share."""

from plato.errors import PlatoError


def check_cluster(engine: str, address: str | None, gpus: float, tasks: str) -> None:
    """Refuses the flags of a cluster where none is asked for, and wrong ones."""
    if engine != "ray" and address is not None:
        raise PlatoError("--address is of a Ray cluster; add --engine ray.")
    if engine != "ray" and gpus:
        raise PlatoError(f"--gpus is for the {tasks} of a cluster; add --engine ray.")
    if not 0 <= gpus < float("inf"):
        raise PlatoError(f"--gpus must be 0 or more, not {gpus:g}.")
