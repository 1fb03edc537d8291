"""The page as a file: self-contained, small, whole."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from plato.pages.page import page as make_page
from plato.replay.packing import TYPES, Packer, index_kind
from plato.replay.page import replay_page


def datum(text: str, name: str) -> str:
    found = re.search(f'<script type="[^"]*" id="{name}">(.*?)</script>', text, re.S)
    assert found is not None
    return found[1]


def unpack(packed: str, place: dict) -> np.ndarray:
    """What the page's script does, in Python."""
    whole = np.frombuffer(zlib.decompress(base64.b64decode(packed)), np.uint8)
    kind = np.dtype(TYPES[place["type"]])
    size = place["length"] * kind.itemsize
    planes = whole[place["at"] : place["at"] + size].reshape(kind.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(kind)[:, 0]


def test_a_page_asks_for_nothing_outside_itself(replay):
    text = replay_page(replay)
    assert not re.search(r"https?://|@import|url\(|\bsrc=|fetch\(", text)
    assert text.count("<link") == text.count('href="data:,"') == 1
    assert len(text) < 200_000


def test_a_page_holds_the_recording(replay):
    text = replay_page(replay)
    about, packed = json.loads(datum(text, "about")), datum(text, "arrays")
    assert [p["name"] for p in about["policies"]] == ["<pointer>", "weakest", "optimal"]
    for policy, recording in zip(about["policies"], replay.recordings, strict=True):
        actions = unpack(packed, policy["arrays"]["actions"])
        assert actions.tolist() == recording.decisions.actions.reshape(-1).tolist()
        gains = unpack(packed, policy["metrics"]["return"])
        np.testing.assert_allclose(gains, recording.metrics["return"])
    choices = about["policies"][0]["choices"]
    total = unpack(packed, choices["probability"]).sum() / 65535
    decided = (unpack(packed, choices["kept"]) > 0).sum()
    assert total == pytest.approx(decided, rel=1e-4)
    assert about["policies"][1]["choices"] is None


def test_too_many_probabilities_leave_the_smallest_out(replay, monkeypatch):
    recording = replay.recordings[0]
    whole = int(recording.decisions.choices.kept.sum())
    monkeypatch.setattr("plato.replay.page.MOST_SHARES", whole - 1)
    text = replay_page(replay)
    about, packed = json.loads(datum(text, "about")), datum(text, "arrays")
    choices = about["policies"][0]["choices"]
    kept, counted = unpack(packed, choices["kept"]), unpack(packed, choices["counted"])
    assert kept.sum() < whole == counted.sum()
    likeliest = recording.decisions.choices.probability[:, :, : kept.max()].sum()
    total = unpack(packed, choices["probability"]).sum() / 65535
    assert total == pytest.approx(likeliest, rel=1e-4)


def test_arrays_of_all_kinds_come_back():
    packer = Packer()
    arrays = {
        "u1": np.asarray([[0, 255], [7, 1]]),
        "u2": np.asarray([65535, 256]),
        "u4": np.asarray([2**32 - 1]),
        "f4": np.asarray([0.1, -3.5, 1e9]),
    }
    places = {kind: packer.add(array, kind) for kind, array in arrays.items()}
    empty = packer.add(np.zeros((0, 3)), "u2")
    text = packer.text()
    for kind, array in arrays.items():
        expected = array.reshape(-1).astype(TYPES[kind])
        assert unpack(text, places[kind]).tolist() == expected.tolist()
    assert empty["length"] == 0
    assert [index_kind(n) for n in (255, 256, 65536)] == ["u1", "u2", "u4"]


def test_names_cannot_break_out_of_a_page():
    text = make_page(
        "<b>&", "<p>body</p>", scripts=["go();"], data={"x": ["</script>"]}
    )
    assert "<title>&lt;b&gt;&amp;</title>" in text
    assert json.loads(datum(text, "x")) == ["</script>"]
    assert text.count("</script>") == 2
