"""What all subcommands share: the console and the set-up of JAX."""

import os
import sys
from pathlib import Path

from rich.console import Console

from plato.errors import PlatoError

WIDTH_WHEN_PIPED = 160


def console() -> Console:
    """Prints to the terminal at its width, and to pipes and files wide enough."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=WIDTH_WHEN_PIPED)


def report_error(error: Exception) -> None:
    """One sentence on standard error, and no traceback."""
    print(f"plato: {error}", file=sys.stderr)


def set_up_jax() -> None:
    """Keeps compiled programs in the user's cache, so that the next start is fast."""
    import warnings

    import jax

    # A cached program that cannot be read is compiled again; nobody need know.
    warnings.filterwarnings("ignore", "Error .* persistent compilation cache")
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        cache = Path(home) / "plato" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    try:
        jax.devices()
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise PlatoError(f"JAX finds no device to run on: {reason}") from None
