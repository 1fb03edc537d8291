"""`plato solve`: the exact optimum of a setup."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from plato.cli.console import console, set_up_jax
from plato.errors import PlatoError


@dataclass(frozen=True)
class Solve:
    """Find the best possible team of a setup, exactly: `plato solve wildfire-3x3-S3`.

    To play it, compare it, or look at it: --policy optimal.
    """

    setup: Positional[tuple[str, ...]]
    """Names of setups or .toml files."""
    memory_gb: float | None = None
    """Refuse what takes more than this (default: what the device has)."""
    out: Path | None = None
    """Where to keep the policy of a single setup (.safetensors)."""

    def run(self) -> int:
        set_up_jax()
        from rich.progress import track

        from plato.domains.setups import load_setup
        from plato.domains.wildfire.optimum.model import size_of
        from plato.domains.wildfire.optimum.policy import (
            memory_here,
            refuse_what_is_too_large,
            save_optimal,
            solve_exactly,
        )
        from plato.files import writable

        if not self.setup:
            raise PlatoError("Name at least one setup to solve.")
        if self.out is not None:
            if len(self.setup) > 1:
                raise PlatoError("--out keeps one policy; name a single setup with it.")
            if self.out.suffix != ".safetensors":
                raise PlatoError(f"{self.out}: a policy's file ends in .safetensors.")
            writable(self.out)
        setups = [load_setup(name) for name in self.setup]
        limit = memory_here() if self.memory_gb is None else int(self.memory_gb * 1e9)
        sizes = [size_of(setup.config) for setup in setups]
        for size in sizes:
            refuse_what_is_too_large(size, limit)
        out = console()
        for setup, size in zip(setups, sizes, strict=True):
            out.print(
                f"[bold]{setup.name}[/]: {size.states:,} states, {size.actions:,} "
                f"joint actions, {size.horizon} steps; about {_bytes(size.memory)} "
                f"and {size.operations:.1g} operations",
                soft_wrap=True,
            )
            begun = time.monotonic()
            steps = iter(
                track(
                    range(size.horizon),
                    console=out,
                    transient=True,
                    disable=not out.is_terminal,
                    description="backward induction",
                )
            )
            next(steps)

            def tick(_: int, steps: Iterator[int] = steps) -> None:
                next(steps, None)

            policy = solve_exactly(setup.config, memory=limit, report=tick)
            seconds = time.monotonic() - begun
            value = float(policy.value)
            out.print(f"  optimal expected return {value:.3f}  ({seconds:.1f} s)")
            if self.out is not None:
                save_optimal(self.out, policy, setup.config)
                out.print(f"  The policy: {self.out}", style="dim", soft_wrap=True)
        return 0


def _bytes(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count = count // 1000
    return f"{count:,} GB"
