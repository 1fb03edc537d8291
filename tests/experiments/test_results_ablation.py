"""What docs/results.md says of encoder and scorer, recomputed from the cells."""

import re
from itertools import product

from plato.evaluation.protocols import ProtocolName
from plato.evaluation.published import paper_cells
from plato.evaluation.significance import (
    best_of,
    bonferroni,
    crossed_test,
    paired_test,
)
from plato.experiments import suite
from said import COUNTS, HARD, named, prose, trainings

FORMS = ("PLATO", "mlp+dot", "lstm+add", "lstm+dot")
"""PLATO is mlp+add."""
ENCODERS = (("lstm+add", "PLATO"), ("lstm+dot", "mlp+dot"))
"""Pairs that differ in the encoder alone; with memory comes first."""
SCORERS = (("PLATO", "mlp+dot"), ("lstm+add", "lstm+dot"))
NATIVE = [f"{grid}-{level}" for grid, level in product(suite.GRIDS, suite.LEVELS)]
UNSEEN = [f"{s}-transfer" for s in NATIVE if not s.startswith("2x3")]
"""What policies from 2×3 play zero-shot, in the paper's ablation, too."""


def said(pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, prose("results.md"))
    assert found, pattern
    return found.groups()


def home_of(setup: str) -> str:
    return "2x3" if setup.endswith("transfer") else setup[:3]


def difference(pair: tuple[str, str], setup: str, protocol: ProtocolName) -> int:
    """1 where the first of two forms is better beyond doubt, -1 where the second is.

    By the paper's tests, over episodes; or over trainings and episodes, p < 0.01.
    """
    one, other = (trainings(form, setup, home_of(setup), protocol) for form in pair)
    if protocol == "field":
        crossed = crossed_test(one, other)
        return (1 if crossed.difference > 0 else -1) if crossed.p < 0.01 else 0
    level = bonferroni(len(FORMS))
    paired = paired_test(one.mean(axis=0), other.mean(axis=0), level)
    return paired.favours if paired.p < level else 0


def differ(pairs, setups: list[str], protocol: ProtocolName) -> list[str]:
    """Where at least one of the pairs does."""
    return [s for s in setups if any(difference(pair, s, protocol) for pair in pairs)]


def significantly_best(setup: str) -> str | None:
    """Of the four forms, by the paper's tests."""
    by_seed = {
        form: trainings(form, setup, home_of(setup), "paper").mean(axis=0)
        for form in FORMS
    }
    family = best_of(by_seed, higher_is_better=True)
    return family.best if family.significant else None


def where_best(form: str, setups: list[str]) -> list[str]:
    found = [s for s in setups if significantly_best(s) == form]
    return [setup.removesuffix("-transfer") for setup in found]


def mean(form: str, setup: str) -> str:
    return f"{trainings(form, setup).mean():.1f}"


def test_the_ablation_with_own_noise():
    places = said(
        r"No form is better than PLATO's anywhere\*\* with p < 0.01. It is better than "
        r"mlp\+dot on (.*?), than lstm\+add on (.*?), and than lstm\+dot on (.*?)\. - "
    )
    for form, expected in zip(FORMS[1:], map(named, places), strict=True):
        found = {s: difference(("PLATO", form), s, "field") for s in NATIVE}
        assert -1 not in found.values()
        assert [s for s in NATIVE if found[s]] == sorted(expected)


def test_what_the_scorer_decides():
    place, *numbers = said(
        r"The scorer decides on (.*?)\*\*.*? with dot products, mlp is at (\S+) in "
        r"place of (\S+), and lstm at (\S+) in place of (\S+)\. "
    )
    (setup,) = named(place)
    dots = ("mlp+dot", "PLATO", "lstm+dot", "lstm+add")
    assert [mean(form, setup) for form in dots] == numbers
    assert [difference(pair, setup, "field") for pair in SCORERS] == [1, 1]
    place, *numbers = said(
        r"On (\S+ S1), which is of the same kind, lstm\+dot alone falls behind \((\S+) "
        r"in place of (\S+)\); with mlp the scorers are not told apart \((\S+) and "
        r"(\S+)\)"
    )
    (setup,) = named(place)
    forms = ("lstm+dot", "lstm+add", "mlp+dot", "PLATO")
    assert [mean(form, setup) for form in forms] == numbers
    assert [difference(pair, setup, "field") for pair in SCORERS] == [0, 1]


def test_what_memory_does_with_own_noise():
    additive, *numbers, dot = said(
        r"with neither scorer is lstm better than mlp anywhere with p < 0.01\. With "
        r"additive scores it is worse on (.*?) \((\S+) in place of (\S+) on S3\), with "
        r"dot products on (.*?)\. "
    )
    for pair, expected in zip(ENCODERS, (additive, dot), strict=True):
        found = {s: difference(pair, s, "field") for s in NATIVE}
        assert 1 not in found.values()
        assert [s for s in NATIVE if found[s]] == sorted(named(expected))
    assert [mean(form, "4x4-S3") for form in ENCODERS[0]] == numbers


def test_who_is_best_on_one_stream():
    lstm, mlp = said(
        r"There lstm\+add is significantly best, by the paper's tests, on (.*?), and "
        r"mlp\+add on (.*?)\. "
    )
    assert where_best("lstm+add", NATIVE) == sorted(named(lstm))
    assert where_best("PLATO", NATIVE) == sorted(named(mlp))
    assert not where_best("mlp+dot", NATIVE)
    assert not where_best("lstm+dot", NATIVE)


def test_who_is_best_zero_shot():
    places = said(
        r"There mlp\+dot is significantly best on (.*?), lstm\+add on (.*?), and "
        r"lstm\+dot on (.*?)\. "
    )
    for form, expected in zip(("mlp+dot", "lstm+add", "lstm+dot"), places, strict=True):
        assert where_best(form, UNSEEN) == sorted(named(expected))
    assert not where_best("PLATO", UNSEEN)
    (place,) = said(
        r"with own noise, one difference that encoder or scorer makes is left with "
        r"p < 0.01: mlp\+dot over lstm\+dot on (.*?)\. "
    )
    left = {
        (pair, setup): direction
        for pair in (*ENCODERS, *SCORERS)
        for setup in UNSEEN
        if (direction := difference(pair, setup, "field"))
    }
    assert left == {(("lstm+dot", "mlp+dot"), f"{named(place)[0]}-transfer"): -1}


def test_the_papers_ablation_is_quoted_as_printed():
    """No significant difference on native setups; zero-shot, who is bold."""

    def bold(table, grids: str, level: str) -> list[str]:
        cells = paper_cells(table, "return", grids, level)
        assert len(cells) == len(FORMS)
        return [form for form, cell in cells.items() if cell.bold]

    for grid, level in product(suite.GRIDS, suite.LEVELS):
        assert not bold("ablation_native", grid, level)
    zero_shot = {
        f"{grid}-{level}": form
        for grid, level in product(("3x3", "4x4"), suite.LEVELS)
        for form in bold("ablation_zero_shot", f"2x3->{grid}", level)
    }
    assert zero_shot == {
        "3x3-S3": "lstm+add",
        "4x4-S0": "mlp+dot",
        "4x4-S3": "lstm+add",
    }
    (here,) = said(
        r"Zero-shot from 2×3, lstm\+add is significantly best on S3 of both grids, and "
        r"mlp\+dot on 4×4 S0 \| (\S+) is best on all three"
    )
    assert {significantly_best(f"{setup}-transfer") for setup in zero_shot} == {here}
    short = said(
        r"Zero-shot from 2×3, (\S+) is significantly best on S3 of both grids there, "
        r"and (\S+) here; on 4×4 S0 it is (\S+) there and here\."
    )
    assert short == ("lstm+add", here, "mlp+dot")


def test_where_encoder_and_scorer_make_a_difference_on_native_setups():
    paper, field = said(
        r"no: by the paper's tests both do on (.*?); with own noise, over trainings "
        r"\(p < 0.01\), one or both on (.*?) \|"
    )
    for pairs in (ENCODERS, SCORERS):
        assert differ(pairs, NATIVE, "paper") == sorted(named(paper))
    assert differ((*ENCODERS, *SCORERS), NATIVE, "field") == sorted(named(field))
    counts = said(r"by the same tests, both do on (\w+) of the (\w+) with S1–S3\.")
    assert counts == (COUNTS[len(named(paper))], COUNTS[len(HARD)])
