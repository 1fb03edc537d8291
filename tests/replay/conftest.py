"""Replays that several tests look at."""

from pathlib import Path

import pytest

from decided_actors import decided_actor
from plato.domains.setups import load_setup
from plato.evaluation.named import named_policy
from plato.replay.page import Replay, write_page
from plato.replay.recording import record

SETUP = load_setup("wildfire-2x3-S3")


@pytest.fixture(scope="session")
def actor():
    return decided_actor()


@pytest.fixture(scope="session")
def replay(actor):
    """A pointer, a rule and the optimum on the same noise."""
    players = {"<pointer>": actor} | {
        name: named_policy(name, SETUP) for name in ("weakest", "optimal")
    }
    recordings = tuple(record(p, SETUP, name=n) for n, p in players.items())
    return Replay(SETUP, 200, "independent", recordings)


@pytest.fixture(scope="session")
def page(replay, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "replay.html"
    write_page(path, replay)
    return path
