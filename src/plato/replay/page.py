"""Recordings of one setup as one self-contained web page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plato.domains.setups import Setup
from plato.domains.wildfire.game import Wildfire
from plato.evaluation.evaluate import NoiseProtocol
from plato.evaluation.metrics import METRICS
from plato.files import write_text
from plato.pages.page import asset, page
from plato.replay.packing import Packer, index_kind
from plato.replay.recording import Recording
from plato.replay.shares import Shares
from plato.replay.wildfire import drawn_of, events_of, scene_of

SCRIPTS = (
    *("unpack.js", "marks.js", "wildfire.js", "panels.js"),
    *("timeline.js", "inspector.js", "player.js"),
)
WHOLE = 2**16 - 1
"""What stands for a probability of 1."""
MOST_SHARES = 2_500_000
"""Probabilities of each kind in one page, which keeps it below 10 MB."""


@dataclass(frozen=True)
class Replay:
    """What was played on one setup with one seed, by one policy or several."""

    setup: Setup
    seed: int
    noise: NoiseProtocol
    recordings: tuple[Recording, ...]

    @property
    def title(self) -> str:
        return f"{self.setup.name}, seed {self.seed}"


def write_page(path: Path, replay: Replay) -> None:
    """Writes the page of a replay."""
    write_text(path, replay_page(replay))


def replay_page(replay: Replay) -> str:
    """The page of a replay: its markup, style and scripts, and all arrays."""
    packer = Packer()
    telling = [r for r in replay.recordings if r.decisions.choices is not None]
    most = MOST_SHARES // max(len(telling), 1)
    about = {
        "setup": replay.setup.name,
        "description": replay.setup.config.description,
        "seed": replay.seed,
        "noise": replay.noise,
        "agents": _agent_names(replay.setup),
        "metrics": _metrics(replay.recordings[0]),
        "scene": scene_of(replay.setup.config),
        "policies": [_policy(r, replay.setup, packer, most) for r in replay.recordings],
    }
    here = "plato.replay"
    return page(
        f"Replay of {replay.title}",
        asset(here, "template.html"),
        styles=[asset(here, "replay.css")],
        scripts=[asset(here, name) for name in SCRIPTS],
        data={"about": about, "arrays": packer.text()},
    )


def _agent_names(setup: Setup) -> list[str]:
    game = Wildfire.from_config(setup.config)
    return [game.agent_name(i) for i in range(len(setup.config.agent.agents))]


def _metrics(recording: Recording) -> list[dict[str, Any]]:
    """The metrics in the order of the tables, then those that only this game counts."""
    counted = recording.metrics
    known = [name for name in METRICS if name in counted]
    further = [name for name in counted if name not in METRICS]
    labels = {name: METRICS[name].label for name in known}
    return [{"name": n, "label": labels.get(n, n)} for n in known + further]


def _policy(
    recording: Recording, setup: Setup, packer: Packer, most: int
) -> dict[str, Any]:
    """One policy's episode: all of its arrays, packed."""
    config = setup.config
    cells, team = len(config.fire_cells), len(config.agent.agents)
    sights, decisions = recording.sights, recording.decisions
    arrays = {
        "exists": packer.add(sights.exists[:, :cells], "u1"),
        "present": packer.add(sights.present[:, :team], "u1"),
        "actions": packer.add(decisions.actions[:, :team], index_kind(cells)),
    }
    for name, array in drawn_of(recording, config).items():
        whole = np.issubdtype(array.dtype, np.integer)
        kind = index_kind(int(array.max(initial=0))) if whole else "f4"
        arrays[name] = packer.add(array, kind)
    events = events_of(recording, config)
    return {
        "name": recording.policy,
        "steps": recording.steps,
        "arrays": arrays,
        "metrics": {n: packer.add(v, "f4") for n, v in recording.metrics.items()},
        "choices": _shares(decisions.choices, team, packer, most),
        "attention": _shares(decisions.attention, team, packer, most),
        "events": {
            "kinds": list(events.kinds),
            "time": packer.add(events.time, index_kind(recording.steps)),
            "kind": packer.add(events.kind, "u1"),
            "row": packer.add(events.row, index_kind(max(cells, team))),
        },
    }


def _shares(
    shares: Shares | None, team: int, packer: Packer, most: int
) -> dict[str, Any] | None:
    """Rows of different lengths, one after the other, each in the order of entries."""
    if shares is None:
        return None
    kept, counted = shares.kept[:, :team], np.asarray(shares.counted)[:, :team]
    # The largest come first: where there are too many, all agents lose the smallest.
    while kept.sum() > most:
        kept = np.minimum(kept, kept.max() - 1)
    index, probability = shares.index[:, :team], shares.probability[:, :team]
    meant = np.arange(index.shape[2]) < kept[:, :, None]
    order = np.argsort(np.where(meant, index, np.iinfo(np.int32).max), axis=2)
    index = np.take_along_axis(index, order, axis=2)[meant]
    probability = np.take_along_axis(probability, order, axis=2)[meant]
    largest = int(index.max(initial=0))
    return {
        "kept": packer.add(kept, "u1"),
        "counted": packer.add(counted, index_kind(int(counted.max(initial=0)))),
        "index": packer.add(index, index_kind(largest)),
        "probability": packer.add(np.rint(probability * WHOLE), "u2"),
    }
