"""The store: what is kept, who may do what, and what happens to damaged files."""

import gzip
import json
import os
import shutil
from dataclasses import replace

import pytest
from small_cells import AWAY, HOME, PLATO, SETTINGS, given, trained

from plato.domains import setups
from plato.errors import PlatoError
from plato.evaluation.metrics import METRICS
from plato.experiments.cells import Row, setup_digests
from plato.experiments.store import Entry, Store


def episodes(**wrong) -> dict:
    """Six episodes of everything on a setup, but for what is given."""
    return {name: [[0.5] * 6] for name in METRICS} | wrong


def entry(cell, note: str = "first") -> Entry:
    data = {
        "format": 1,
        "fingerprint": cell.fingerprint,
        "cell": cell.to_mapping(),
        "code": {"plato": "0", "digest": "abc"},
        "environment": {"jax": "1", "device": "abacus"},
        "seconds": {"training": 2.0, "playing": 1.0},
        "chosen": [6],
        "steps": 240,
        "curve": {"steps": [40, 80], "return": [1.0, 2.0]},
        "episodes": {setup: episodes() for setup in cell.plays},
        "note": note,
    }
    return Entry(cell.fingerprint, data, b"weights")


def test_what_is_added_is_found_and_never_changed(tmp_path):
    store, cell = Store(tmp_path), trained()
    assert store.find(cell) is None
    store.add(cell, entry(cell))
    store.add(cell, entry(cell, "second"))
    found = store.find(cell)
    assert found is not None
    assert found.data["note"] == "first"
    assert [e.fingerprint for e in store.entries()] == [cell.fingerprint]
    assert store.policy_file(cell).read_bytes() == b"weights"
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    assert path.name.startswith("wildfire-2x3-S3-seed42-")
    assert json.loads(gzip.decompress(path.read_bytes()))["note"] == "first"


def test_cells_are_known_by_all_that_matters():
    cell = trained()
    assert cell.fingerprint == trained(row=Row("other name", SETTINGS)).fingerprint
    others = [
        trained(43),
        trained(on="wildfire-2x3-S1"),
        given(),
        given(Row("Weakest", policy="weakest")),
        trained(row=Row("PLATO", replace(SETTINGS, maps="moved"))),
    ]
    prints = {cell.fingerprint, *(other.fingerprint for other in others)}
    assert len(prints) == 6
    # It came after the first results, which know nothing of it.
    assert "maps" not in cell.to_mapping()["training"]
    assert cell.row == PLATO


@pytest.fixture
def weights(tmp_path):
    """A file that policies are named by; what is in it is nobody's affair here."""
    path = tmp_path / "weights.safetensors"
    path.write_bytes(b"as they are")
    return path


@pytest.mark.parametrize("role", ["advisers", "begin_with"])
def test_cells_are_known_by_what_they_learn_from(weights, role):
    """By what the file holds: another one under the same name is another cell."""
    named = (str(weights),) if role == "advisers" else str(weights)
    learning = replace(SETTINGS.learning, **{role: named})
    cell = trained(row=Row("PLATO", replace(SETTINGS, learning=learning)))
    before, other = cell.fingerprint, trained().fingerprint
    assert before != other
    weights.write_bytes(b"as they are now")
    assert cell.fingerprint != before
    assert trained().fingerprint == other
    weights.write_bytes(b"as they are")
    assert cell.fingerprint == before
    weights.unlink()
    with pytest.raises(PlatoError, match=r"weights\.safetensors: cannot be read \("):
        _ = cell.fingerprint


def test_cells_that_learn_from_nobody_do_not_say_so():
    """They are the cells that they were before anybody could."""
    known = {"row", "policy", "trained_on", "seed", "plays", "protocol", "training"}
    assert set(trained().to_mapping()) == set(given().to_mapping()) == known


@pytest.mark.parametrize(
    "content", [b"", b"not gzip", gzip.compress(b"{}", mtime=0), None]
)
def test_damaged_results_are_put_aside(tmp_path, content):
    store, cell = Store(tmp_path), trained()
    store.add(cell, entry(cell))
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    path.write_bytes(path.read_bytes()[:-20] if content is None else content)
    assert store.find(cell) is None
    assert not store.has(cell)
    (aside,) = store.damaged
    assert aside.exists()
    assert list(store.entries()) == []


def test_a_single_wrong_bit_is_damage_too(tmp_path):
    store, cell = Store(tmp_path), trained()
    store.add(cell, entry(cell))
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    whole = path.read_bytes()
    for place in range(10, len(whole)):  # all but the header, which may say anything
        wrong = bytearray(whole)
        wrong[place] ^= 0x10
        path.write_bytes(wrong)
        if place == len(whole) - 9 and store.find(cell) is not None:
            continue  # the last byte before the checksum is filled up with anything
        assert store.find(cell) is None
        assert not path.exists()
    assert len(store.damaged) == 1  # each took the place of the one before


@pytest.mark.parametrize(
    "wrong",
    [
        {"episodes": {}},
        {"episodes": None},
        {"episodes": {HOME: episodes()}},  # it plays elsewhere, too
        {"episodes": {HOME: {}, AWAY: {}}},
        {"episodes": {HOME: {"return": [[0.5] * 6]}, AWAY: episodes()}},
        {"episodes": {s: episodes(burnouts=[[0.5] * 6, [0.5]]) for s in (HOME, AWAY)}},
        {"episodes": {s: episodes(putouts=[[0.5] * 6] * 2) for s in (HOME, AWAY)}},
        {"episodes": {s: episodes(x=[]) for s in (HOME, AWAY)}},
        {"episodes": {s: episodes(x=[["0.5"] * 6]) for s in (HOME, AWAY)}},
        {"fingerprint": "another"},
        {"cell": trained(43).to_mapping()},
        {"cell": {k: v for k, v in trained().to_mapping().items() if k != "protocol"}},
        {"setups": 3},
        # What a report shows beside episodes.
        {"code": {"plato": "0"}},
        {"code": {"plato": "0", "digest": None}},
        {"environment": {"jax": "1"}},
        {"environment": {"device": "abacus"}},
        {"environment": None},
        {"seconds": None},
        {"seconds": {"training": "long"}},
        {"steps": None},
        {"curve": None},
        {"curve": {"steps": [40, 80]}},
        {"curve": {"steps": [40, 80], "return": [1.0]}},
        {"chosen": []},
    ],
)
def test_results_that_are_not_all_of_a_cells_are_damaged(tmp_path, wrong):
    store, cell = Store(tmp_path), trained()
    made = entry(cell)
    made.data.update(wrong)
    store.add(cell, made)
    assert store.find(cell) is None
    assert not store.has(cell)
    assert len(store.damaged) == 1
    store.add(cell, entry(cell))
    assert store.find(cell) is not None


@pytest.mark.parametrize("field", ["seconds", "steps", "curve", "chosen"])
def test_a_result_that_lacks_what_a_report_shows_is_damaged(tmp_path, field):
    """Whoever looks at it first: who seeks it, or who counts all."""
    cell = trained()
    for look in (lambda s: s.find(cell), lambda s: next(s.entries(), None)):
        store, made = Store(tmp_path), entry(cell)
        del made.data[field]
        store.add(cell, made)
        assert look(store) is None
        assert len(store.damaged) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_no_result(tmp_path, number):
    store, cell = Store(tmp_path), trained()
    store.add(cell, entry(cell))
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(gzip.compress(text.replace("0.5", number, 1).encode(), mtime=0))
    assert store.find(cell) is None
    assert len(store.damaged) == 1


def test_given_policies_have_no_training_to_show(tmp_path):
    store, cell = Store(tmp_path), given()
    made = entry(cell)
    for field in ("steps", "curve", "chosen"):
        del made.data[field]
    store.add(cell, made)
    assert store.find(cell) is not None


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """Edits the shipped setup HOME, or rather a copy of it."""
    folder = tmp_path / "setups"
    shutil.copytree(str(setups._shipped()), folder)
    monkeypatch.setattr(setups, "_shipped", lambda: folder)
    path = folder / f"{HOME}.toml"

    def edited(old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return edited


def test_results_of_a_setup_that_has_changed_do_not_count(tmp_path, edit):
    cell = trained()
    assert set(cell.setups) == {HOME, AWAY}
    made = entry(cell)
    made.data["setups"] = setup_digests(cell.setups)
    Store(tmp_path).add(cell, made)
    edit('description = "', 'description = "Said better: ')
    assert Store(tmp_path).find(cell) is not None
    edit("max_steps = ", "max_steps = 1")
    store = Store(tmp_path)
    assert store.find(cell) is None
    assert list(store.entries()) == []
    assert not store.has(cell)
    assert not store.damaged
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    assert store.changed == {path: HOME}
    with store.claimed([cell]) as mine:
        assert mine == [cell]
    edit("max_steps = 1", "max_steps = ")
    assert Store(tmp_path).find(cell) is not None


def test_what_is_done_anew_does_not_destroy_what_was_done_before(tmp_path, edit):
    cell, before = trained(), entry(trained())
    before.data["setups"] = setup_digests(cell.setups)
    Store(tmp_path).add(cell, before)
    edit("max_steps = ", "max_steps = 1")
    store, now = Store(tmp_path), entry(cell, "second")
    now.data["setups"] = setup_digests(cell.setups)
    assert store.find(cell) is None
    store.add(cell, replace(now, policy=b"other weights"))
    for one in (store, Store(tmp_path)):
        found = one.find(cell)
        assert found is not None
        assert found.data["note"] == "second"
        assert one.has(cell)
    (kept,) = (tmp_path / "outdated").rglob("*.json.gz")
    assert json.loads(gzip.decompress(kept.read_bytes()))["note"] == "first"
    (policy,) = (tmp_path / "outdated").rglob("*.safetensors")
    assert policy.read_bytes() == b"weights"


def test_what_cannot_be_read_now_is_not_damaged(tmp_path):
    store, cell = Store(tmp_path), trained()
    path = tmp_path / "cells" / f"{cell.key}.json.gz"
    path.mkdir(parents=True)
    with pytest.raises(PlatoError, match=rf"{cell.fingerprint}.*cannot be read \("):
        store.find(cell)
    assert path.exists()
    assert not store.damaged


def test_damaged_results_of_a_store_that_is_only_read_stay(tmp_path):
    store, cell = Store(tmp_path), trained()
    store.add(cell, entry(cell))
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    path.write_bytes(b"")
    (tmp_path / "damaged").write_text("in the way")
    for _ in range(2):
        assert store.find(cell) is None
        assert list(store.entries()) == []
        assert not store.has(cell)
    assert store.damaged == [path]
    assert path.exists()


def test_two_processes_meet_a_damaged_result(tmp_path, monkeypatch):
    store, cell = Store(tmp_path), trained()
    store.add(cell, entry(cell))
    (path,) = (tmp_path / "cells").rglob("*.json.gz")
    path.write_bytes(b"")
    replace_, moved = os.replace, []

    def second(one, other):
        replace_(one, other)  # the other process
        moved.append(other)
        replace_(one, other)

    monkeypatch.setattr(os, "replace", second)
    assert store.find(cell) is None
    assert moved[0].exists()
    assert not store.damaged  # the other one says so


def test_results_of_another_format_are_refused_and_stay(tmp_path):
    store, cell = Store(tmp_path), trained()
    made = entry(cell)
    made.data["format"] = 99
    store.add(cell, made)
    with pytest.raises(PlatoError, match="is of format 99"):
        store.find(cell)
    assert store.has(cell)


def test_nobody_does_what_another_is_doing(tmp_path):
    one, other = Store(tmp_path), Store(tmp_path)
    cells = [trained(42), trained(43), trained(44)]
    one.add(cells[0], entry(cells[0]))
    with one.claimed(cells[:2]) as mine:
        assert mine == [cells[1]]
        with other.claimed(cells) as theirs:
            assert theirs == [cells[2]]
    with other.claimed(cells) as theirs:
        assert theirs == cells[1:]


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "claims").write_text("in the way")
    with (
        pytest.raises(PlatoError, match="cannot be written"),
        Store(tmp_path).claimed([trained()]),
    ):
        pass
