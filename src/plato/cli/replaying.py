"""What `plato replay` and `plato watch` do."""

import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from plato.domains.setups import Setup
from plato.errors import PlatoError
from plato.evaluation.evaluate import NoiseProtocol
from plato.evaluation.named import Actions, called, named_policy
from plato.files import writable
from plato.policies.policy import Policy
from plato.replay.page import Replay, write_page
from plato.replay.pictures import needs_pillow, write_animation, write_strip
from plato.replay.recording import record
from plato.replay.terminal import frames

WRITERS = {".html": write_page, ".gif": write_animation, ".png": write_strip}


def players(
    named: Sequence[str], setup: Setup, actions: Actions
) -> list[tuple[str, Policy[Any]]]:
    """Policies with the names they go by, from `POLICY` or `NAME=POLICY`."""
    found: dict[str, Policy[Any]] = {}
    for name, policy in map(called, named):
        name = _short(policy) if name == policy else name
        if name in found:
            raise PlatoError(f"Two policies are called {name!r}; name one NAME=POLICY.")
        found[name] = named_policy(policy, setup, actions=actions)
    return list(found.items())


def write_replay(
    setup: Setup,
    policies: Sequence[str],
    out: Path,
    *,
    seed: int,
    noise: NoiseProtocol,
    actions: Actions,
    console: Console,
    then_open: bool = False,
) -> None:
    """Plays one episode of each policy and writes them as the file's name asks."""
    write = WRITERS.get(out.suffix)
    if write is None:
        raise PlatoError(f"{out}: a replay's file ends in {', '.join(WRITERS)}.")
    if not policies:
        raise PlatoError("Name at least one policy, as in `plato replay weakest`.")
    if out.suffix != ".html":
        needs_pillow()
    writable(out)
    with console.status("playing"):
        recordings = tuple(
            record(policy, setup, name=name, seed=seed, noise=noise)
            for name, policy in players(policies, setup, actions)
        )
        write(out, Replay(setup, seed, noise, recordings))
    for recording in recordings:
        last = recording.metrics["return"][-1]
        console.print(
            f"{recording.policy}: return {last:.2f} in {recording.steps} steps",
            soft_wrap=True,
            markup=False,
        )
    kilobytes = out.stat().st_size / 1000
    console.print(
        f"The replay: {out} ({kilobytes:,.0f} kB)", style="dim", soft_wrap=True
    )
    if then_open:
        webbrowser.open(out.resolve().as_uri())


def watch_episode(
    setup: Setup,
    policy: str,
    *,
    seed: int,
    noise: NoiseProtocol,
    actions: Actions,
    speed: float,
    console: Console,
) -> None:
    """Plays one episode in the terminal; into a pipe, every moment at once."""
    if not speed > 0:
        raise PlatoError(f"speed must be greater than 0, not {speed:g}.")
    ((name, player),) = players([policy], setup, actions)
    with console.status("playing"):
        recording = record(player, setup, name=name, seed=seed, noise=noise)
    title = f"{name} on {setup.name}, seed {seed}"
    moments = frames(recording, setup.config, title, console.width)
    if not console.is_terminal:
        for moment in moments:
            console.print(moment)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for moment in moments:
            live.update(moment, refresh=True)
            time.sleep(1 / speed)


def _short(policy: str) -> str:
    """A rule by its name, a checkpoint or a run by its file or folder."""
    path = Path(policy)
    return path.resolve().name if path.exists() else policy
