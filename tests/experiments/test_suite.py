"""The suite as data, and the chunks that its cells are put into."""

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from small_cells import trained

from plato.errors import PlatoError
from plato.experiments import cells, suite
from plato.experiments.cells import Cell
from plato.experiments.chunks import halves, stacked, together

BOTH = suite.protocols(["paper", "field"])


def test_every_cell_of_the_papers_tables_is_there_once():
    found = suite.cells(("given", "methods", "ablation"), BOTH, seeds=5)
    given = [cell for cell in found if not cell.trained_on]
    assert len(given) == 5 * 12 * 2
    # PLATO itself is the ablation's mlp+add: four methods and three more forms.
    assert len(found) - len(given) == 7 * 12 * 5 * 2
    assert len({cell.fingerprint for cell in found}) == len(found)
    assert len({cell.key for cell in found}) == len(found)
    plays = {cell.trained_on: cell.plays for cell in found if cell.trained_on}
    assert plays["wildfire-2x3-S1",] == (
        "wildfire-2x3-S1",
        "wildfire-3x3-S1-transfer",
        "wildfire-4x4-S1-transfer",
    )
    assert plays["wildfire-3x3-S0",][1:] == (
        "wildfire-4x4-S0-transfer",
        "wildfire-5x5-S0-transfer",
    )
    assert plays["wildfire-4x4-S3",] == ("wildfire-4x4-S3",)
    noises = {cell.protocol.name: cell.config().noise for cell in found[200:]}
    assert noises == {"paper": "paper", "field": "independent"}


def test_the_generalist_is_trained_on_everything_and_plays_everything():
    *shipped, cell = suite.cells(("generalist",), BOTH, seeds=1)
    assert cell.protocol.name == "field"
    assert cell.trained_on == suite.NATIVE
    assert len(cell.plays) == 12 + 12
    assert cell.config().learning.games % 12 == 0
    # So does the one that comes with PLATO, but that it is not trained.
    assert {one.row.name for one in shipped} == {suite.SHIPPED}
    assert [one.plays for one in shipped] == [(setup,) for setup in cell.plays]


def test_another_file_of_a_given_policy_is_another_cell(monkeypatch, tmp_path):
    """And a given policy that has none is what it always was."""
    found = suite.cells(("generalist", "given"), BOTH[-1:], seeds=1)
    shipped, noop = (
        next(cell for cell in found if cell.row.name == name)
        for name in (suite.SHIPPED, "NOOP")
    )
    assert "file" not in noop.to_mapping()
    before = shipped.fingerprint
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"another")
    monkeypatch.setattr(cells, "trained_file", lambda policy, setup: other)
    assert shipped.fingerprint != before


def test_part_of_a_training():
    (cell,) = suite.cells(
        ("methods",),
        BOTH[:1],
        methods=["PLATO"],
        setups=["wildfire-2x3-S0"],
        seeds=1,
        part_of_training=0.01,
    )
    assert cell.config().learning.updates == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"methods": ["QMIX"]}, "no row 'QMIX'"),
        ({"setups": ["wildfire-9x9-S1"]}, "not one of the paper's native setups"),
    ],
)
def test_what_is_not_in_the_suite_is_refused(arguments, words):
    with pytest.raises(PlatoError, match=words):
        suite.cells(("methods",), BOTH, **arguments)


@drawn(st.sets(st.tuples(st.sampled_from(suite.NATIVE), st.integers(42, 48))))
def test_chunks_hold_every_cell_once_and_are_trainings_of_one_program(which):
    cells = [trained(seed, on=setup) for setup, seed in sorted(which)]
    chunks = stacked(cells)
    assert sorted(str(cell) for chunk in chunks for cell in chunk) == sorted(
        map(str, cells)
    )
    for chunk in chunks:
        assert runs_of(chunk) == {(c.trained_on, c.seed) for c in chunk}
        if len(chunk) > 1:
            for half in halves(chunk):
                assert runs_of(half) == {(c.trained_on, c.seed) for c in half}
            assert sum(map(len, halves(chunk))) == len(chunk)


def runs_of(chunk: list[Cell]) -> set[tuple[tuple[str, ...], int]]:
    return {(run.setups, run.seed) for run in together(chunk).runs}


def test_a_single_cell_cannot_be_split():
    with pytest.raises(PlatoError, match="does not fit into this device's memory"):
        halves([trained()])
