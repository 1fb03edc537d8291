"""Recorded transitions of the reference environment, replayed exactly."""

import gzip
import json
from pathlib import Path

import pytest

from plato.domains.wildfire.conformance import read_trace, replay
from plato.errors import PlatoError

RECORDINGS = sorted(Path(__file__).parent.glob("*.json.gz"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name[:12])
def test_recording(path):
    trace = read_trace(path)
    alive = sum(not dead for step in trace.steps for dead in step["dead_before"])
    verdict = replay(trace)
    assert verdict.difference is None
    assert verdict.transitions == alive


def test_there_are_all_sixteen():
    assert len(RECORDINGS) == 16


@pytest.fixture
def recording() -> dict:
    return json.loads(gzip.decompress(RECORDINGS[15].read_bytes()))


def saved(data: dict, folder: Path) -> Path:
    path = folder / "changed.json"
    path.write_text(json.dumps(data))
    return path


def bump(value):
    return not value if isinstance(value, bool) else value + 1


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (
            ("initial", "state", "fires", 1, 0, 0),
            "at the start, game 1: state.fires[0]",
        ),
        (
            ("initial", "state", "fuel", 0, 1, 1),
            "at the start, game 0: state.fuel[1][1]",
        ),
        (
            ("steps", 2, "state", "intensity", 0, 1, 0),
            "after step 2, game 0: state.int",
        ),
        (("steps", 0, "state", "suppressants", 0, 1), "state.suppressants[1]"),
        (("steps", 0, "state", "capacity", 2, 0), "game 2: state.capacity[0]"),
        (("steps", 1, "state", "equipment", 0, 0), "state.equipment[0]"),
        (("steps", 1, "rewards", 0, 2), "rewards[2]"),
        (("steps", 1, "terminated", 0), "terminated is False here and True"),
        (("steps", 1, "dead_before", 0), "dead_before is False here and True"),
        (("steps", 1, "burnouts", 0), "burnouts is"),
        (("steps", 1, "putouts", 0), "putouts is"),
    ],
)
def test_a_changed_number_is_found_and_told(recording, tmp_path, where, words):
    place = recording
    for part in where[:-1]:
        place = place[part]
    place[where[-1]] = bump(place[where[-1]])
    verdict = replay(read_trace(saved(recording, tmp_path)))
    assert verdict.difference is not None
    assert words in verdict.difference
    assert "in the recording" in verdict.difference


def test_changed_offers_and_observations_are_found(recording, tmp_path):
    recording["steps"][0]["available"][0][0] = [[9, 9]]
    verdict = replay(read_trace(saved(recording, tmp_path)))
    assert "available[0]" in str(verdict.difference)
    recording["steps"][0]["available"] = recording["initial"]["available"]
    recording["initial"]["observations"]["firefighter_2"]["self"][0][3] += 1
    verdict = replay(read_trace(saved(recording, tmp_path)))
    assert "observations.firefighter_2.self[3]" in str(verdict.difference)


def test_broken_files_are_refused(recording, tmp_path):
    whole = RECORDINGS[0].read_bytes()
    short = tmp_path / "short.json.gz"
    short.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PlatoError, match=r"short\.json\.gz: is cut short or damaged"):
        read_trace(short)
    with pytest.raises(PlatoError, match="cannot be read"):
        read_trace(tmp_path / "none.json.gz")
    damaged = bytearray(whole)
    damaged[-6] ^= 0xFF  # the checksum
    (tmp_path / "sum.json.gz").write_bytes(damaged)
    with pytest.raises(PlatoError, match="is cut short or damaged"):
        read_trace(tmp_path / "sum.json.gz")
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(PlatoError, match="is cut short or damaged"):
        read_trace(tmp_path / "deep.json")
    (tmp_path / "list.json").write_text("[1, 2]")
    with pytest.raises(PlatoError, match="is not a wildfire recording"):
        read_trace(tmp_path / "list.json")


NOTHING = object()


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (("games",), 3.0, "games must be a whole number"),
        (("games",), 2, "initial.state.fires must hold 2 ×"),
        (("steps",), [], "steps is empty"),
        (("config", "fire", "lit"), 3, "config.fire.lit must be a list"),
        (("initial", "state"), {}, "initial.state.fires is missing"),
        (("initial", "state", "fires", 0), 3, "initial.state.fires must hold"),
        (("steps", 0), 7, "steps[0].state is missing"),
        (("steps", 1, "state"), NOTHING, "steps[1].state is missing"),
        (("steps", 1, "state", "fuel", 0, 0, 0), "x", "steps[1].state.fuel must hold"),
        (("steps", 1, "noise"), NOTHING, "steps[1].noise is missing"),
        (("steps", 1, "noise", "field", 0), "x", "steps[1].noise.field must hold"),
        (("steps", 1, "burnouts"), None, "steps[1].burnouts must hold"),
        (("steps", 1, "putouts"), NOTHING, "steps[1].putouts is missing"),
        (("steps", 1, "dead_before", 0), "x", "steps[1].dead_before must hold"),
        (("steps", 1, "rewards", 0), [1], "steps[1].rewards must hold"),
        (("steps", 1, "available", 0), {}, "steps[1].available must hold"),
        (("steps", 1, "actions", 0), [None], "steps[1].actions must hold"),
        (("steps", 1, "actions", 0, 0), 3, "steps[1].actions[0][0] is 3"),
        (("steps", 1, "actions", 0, 0), [9, 9], "steps[1].actions[0][0] is [9, 9]"),
        (("steps", 1, "observations"), [1], "steps[1].observations must hold"),
    ],
)
def test_a_recording_that_is_not_whole_is_refused(
    recording, tmp_path, where, value, words
):
    place = recording
    for part in where[:-1]:
        place = place[part]
    if value is NOTHING:
        del place[where[-1]]
    else:
        place[where[-1]] = value
    with pytest.raises(PlatoError) as caught:
        read_trace(saved(recording, tmp_path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_game_said_to_be_over_that_is_not_is_a_difference(recording, tmp_path):
    for step in recording["steps"]:
        step["dead_before"] = [True] * 3
    verdict = replay(read_trace(saved(recording, tmp_path)))
    assert "dead_before is False here and True" in str(verdict.difference)
