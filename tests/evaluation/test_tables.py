"""Tables and files: layout, every format, and the paper's numbers beside ours."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from plato.domains.setups import load_setup
from plato.errors import PlatoError
from plato.evaluation.comparison import Comparison, compare
from plato.evaluation.contestants import Contestant
from plato.evaluation.evaluate import Evaluation
from plato.evaluation.export import FIELDS, to_csv, to_json, to_marl_eval
from plato.evaluation.fitting import fitting
from plato.evaluation.layout import Column, Entry, Report, Row, Table, report
from plato.evaluation.metrics import METRICS
from plato.evaluation.protocols import Examiner, protocol
from plato.evaluation.published import PaperCell, paper_cells
from plato.evaluation.rendering import console_tables, latex, markdown
from plato.evaluation.tables import evaluation_table
from plato.runs.trainings import contestants_of

SETUPS = [
    load_setup(f"wildfire-{grid}-{level}")
    for level in ("S2", "S3")
    for grid in ("2x3", "3x3")
]


@pytest.fixture(scope="module")
def paper() -> Comparison:
    """Rules on four setups, by the paper's protocol."""
    contestants = [Contestant(n, policy=n) for n in ("weakest", "noop")]
    examiner = Examiner(protocol("paper"))
    return compare(contestants, SETUPS, examiner, metrics=["return", "burnouts"])


@pytest.fixture(scope="module")
def transfer(additive):
    """A method and a rule on one transfer setup, by the field's protocol."""
    contestants = contestants_of([f"PLATO={additive}"])
    contestants.append(Contestant("noop", policy="noop"))
    examiner = Examiner(protocol("field", episodes=10, actions="greedy"))
    setup = load_setup("wildfire-3x3-S3-transfer")
    curves = {(c.name, setup.name): examiner.curves(c, setup) for c in contestants}
    return compare(contestants, [setup], examiner), curves


def test_setups_of_a_grid_stand_side_by_side(paper):
    returns, burnouts = report(paper).tables
    assert (returns.title, burnouts.title) == ("return", "burnouts")
    assert returns.columns == (
        Column("2×3", "S2"),
        Column("2×3", "S3"),
        Column("3×3", "S2"),
        Column("3×3", "S3"),
    )
    ((weakest, noop),) = returns.sections
    assert (weakest.label, noop.label) == ("weakest", "noop")
    assert weakest.entries[0] == Entry("64.00 ± 0.00", True)
    assert noop.entries[3] == Entry("-12.00 ± 0.00", False)


def test_metrics_of_a_single_setup_stand_side_by_side(transfer):
    comparison, _ = transfer
    values, aggregates, improvement = report(comparison).tables
    group = "trained on 2×3, tested (zero-shot) on wildfire-3x3-S3-transfer"
    assert {column.group for column in values.columns} == {group}
    assert [c.label for c in values.columns] == [m.label for m in METRICS.values()]
    assert [row.label for section in values.sections for row in section] == [
        "PLATO (2)",
        "noop",
    ]
    assert re.fullmatch(
        r"-?\d+\.\d\d \[\S+, \S+\]", values.sections[0][0].entries[0].text
    )
    assert next(c.label for c in aggregates.columns) == "IQM"
    assert improvement.sections[0][0].entries[0] == Entry("–")


def test_the_note_says_how_numbers_were_made(paper, transfer):
    note = report(paper).note
    for words in ("Paper's protocol", "seeds 200–249", "paper noise", "drawn"):
        assert words in note
    assert "p < 0.05/2 = 0.025" in note
    note = report(transfer[0]).note
    for words in (
        "Field's protocol",
        "1000000–1000049",
        "200–209",
        "independent",
        "greedy",
    ):
        assert words in note


def test_the_paper_beside_ours(paper, transfer):
    returns, burnouts = report(paper, "main").tables
    printed = {row.label: row.entries for row in returns.sections[-1]}
    assert printed["PLATO (paper)"][2] == Entry("112.83 ± 12.62", True)
    assert printed["MOHITO (paper)"][0] == Entry("8.08 ± 14.66", False)
    assert len(printed) == 8
    ablation = report(paper, "ablation").tables[0].sections[-1]
    assert [row.label for row in ablation] == [
        *("mlp+add (paper)", "mlp+dot (paper)"),
        *("lstm+add (paper)", "lstm+dot (paper)"),
    ]
    moved = report(transfer[0], "main").tables[0].sections[-1]
    assert moved[0].label == "PLATO (paper)"
    assert moved[0].entries[0] == Entry("4.95 ± 28.12", False)
    assert moved[0].entries[1] == Entry("–")  # no reward per fight in that table
    assert [row.label for row in burnouts.sections[-1]] == list(printed)


def test_where_the_paper_prints_nothing():
    uneven = load_setup("wildfire-2x3-S3-uneven")
    examiner = Examiner(protocol("paper", episodes=2))
    found = compare([Contestant("noop", policy="noop")], [uneven], examiner)
    with pytest.raises(PlatoError, match="prints no number for wildfire-2x3-S3-uneven"):
        report(found, "main")


def test_the_papers_data():
    assert paper_cells("native", "return", "4x4", "S2")["PLATO"] == PaperCell(
        228.81, 21.99, True
    )
    assert paper_cells("zero_shot", "return", "3x3->5x5", "S3")["DGN"].mean == 14.21
    assert paper_cells("zero_shot", "reward_per_fight", "3x3->5x5", "S3") == {}
    bold = [
        model
        for grid in ("2x3", "3x3", "4x4")
        for level in ("S0", "S1", "S2", "S3")
        for model, cell in paper_cells("native", "return", grid, level).items()
        if cell.bold
    ]
    assert bold == ["PLATO"] * 8


def printed(tables: Report, width: int) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width).print(console_tables(tables, width))
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 160])
def test_console_tables_fit_and_lose_nothing(paper, transfer, width):
    for comparison in (paper, transfer[0]):
        tables = report(comparison)
        lines = printed(tables, width)
        assert max(map(len, lines)) <= width
        text = "\n".join(lines)
        for table in tables.tables:
            for section in table.sections:
                for row in section:
                    assert all(entry.text in text for entry in row.entries)
        titles = [line for line in lines if line.rstrip().endswith(" protocol")]
        assert len(titles) >= len(tables.tables)


def test_the_console_stars_what_is_bold(paper):
    text = "\n".join(printed(report(paper), 160))
    assert "64.00 ± 0.00*" in text
    assert "-12.00 ± 0.00 " in text
    assert "Bold (*):" in text


def test_markdown(paper):
    text = markdown(report(paper))
    assert "**return, 2×3, paper protocol**" in text
    assert "| weakest | **64.00 ± 0.00** |" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 4
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def balanced(text: str) -> bool:
    depth = 0
    for character in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def test_latex_has_the_papers_layout(paper):
    text = latex(report(paper, "main"))
    assert balanced(text)
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == 2
    assert r"l|r|r||r|r@" in text
    assert r"\multicolumn{2}{c||}{2$\times$3} & \multicolumn{2}{c}{3$\times$3}" in text
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}" in text
    assert r"\textbf{64.00$\pm$0.00}" in text
    assert r"$-$12.00$\pm$0.00" in text
    assert "seeds 200--249" in text
    # Nothing that pdflatex would have to be taught.
    assert text.isascii()
    body = text.split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in rows} == {4}


def test_latex_escapes_what_names_may_hold():
    entries = (Entry("-1.00 [-2.00, 3.00]"),)
    row = Row(r"50%_a&b#{c}~^\$ [x]", entries)
    table = Table("", (Column("g_1", "NOOP %"),), ((row,),))
    text = latex(Report((table,), "paper protocol", "p < 1 – fine."))
    assert balanced(text)
    assert r"50\%\_a\&b\#\{c\}" in text
    assert r"$-$1.00 {[}$-$2.00, 3.00]" in text
    assert r"g\_1" in text
    assert text.isascii()


def test_csv(paper, transfer):
    lines = list(csv.DictReader(io.StringIO(to_csv(paper))))
    assert list(lines[0]) == list(FIELDS)
    assert len(lines) == 2 * 4 * 2
    first = lines[0]
    assert (first["protocol"], first["contestant"]) == ("paper", "weakest")
    assert (first["mean"], first["bold"], first["low"]) == ("64.0", "True", "")
    tested = [line for line in lines if line["p"]]
    assert {line["test"] for line in tested} <= {"t", "wilcoxon", "equal"}
    moved = next(iter(csv.DictReader(io.StringIO(to_csv(transfer[0])))))
    assert (moved["zero_shot"], moved["trainings"]) == ("True", "2")
    assert moved["trained_on"] == "wildfire-2x3-S3"
    assert float(moved["low"]) <= float(moved["mean"]) <= float(moved["high"])


def test_json_holds_everything(paper, transfer):
    data = json.loads(json.dumps(to_json(paper), allow_nan=False))
    assert data["protocol"]["name"] == "paper"
    assert data["protocol"]["seeds"] == [200, 249]
    assert len(data["families"]) == 8
    assert data["families"][0]["tests"]["noop"]["p"] < 1e-6
    data = json.loads(json.dumps(to_json(transfer[0]), allow_nan=False))
    learned = data["results"][0]
    assert learned["contestant"] == "PLATO"
    assert [t["seed"] for t in learned["trainings"]] == [42, 43]
    assert len(learned["trainings"][0]["episodes"]["return"][0]) == 10
    summary = data["summaries"]["return"]
    assert set(summary["aggregates"]["PLATO"]) == {
        *("IQM", "mean", "median", "optimality gap")
    }
    assert len(summary["profiles"]["PLATO"]["thresholds"]) == 101


def test_marl_eval(transfer):
    comparison, curves = transfer
    data = json.loads(json.dumps(to_marl_eval(comparison, curves)))
    algorithms = data["wildfire"]["wildfire-3x3-s3-transfer"]
    assert list(algorithms) == ["PLATO", "noop"]
    for runs in algorithms.values():
        assert list(runs) == ["seed_42", "seed_43"]
        for steps in runs.values():
            assert list(steps) == [
                *(f"step_{i}" for i in range(1, 7)),
                "absolute_metrics",
            ]
            assert steps["step_2"]["step_count"] == 80
            assert len(steps["step_2"]["return"]) == 50
            assert len(steps["absolute_metrics"]["return"]) == 10
            assert set(steps["absolute_metrics"]) == set(METRICS)
    assert len({str(s) for s in algorithms["PLATO"].values()}) == 2


def test_marl_eval_needs_matching_trainings(paper, transfer):
    comparison, curves = transfer
    uneven = dict(curves)
    key = ("PLATO", "wildfire-3x3-S3-transfer")
    first, second = curves[key]
    with pytest.raises(PlatoError, match="name at least one run"):
        to_marl_eval(paper, {})
    uneven[key] = [first, replace(second, steps=second.steps[:-1])]
    with pytest.raises(PlatoError, match="same number of trainings"):
        to_marl_eval(comparison, uneven)


LONG = "runs/wildfire-3x3-S3/checkpoints/wildfire-3x3-S3-seed43/000002.safetensors"


@pytest.fixture(scope="module")
def evaluations():
    """Made up: every metric of two policies on two setups is about 50."""
    random = np.random.default_rng(0)
    return [
        Evaluation(
            setup,
            policy,
            "independent",
            200,
            {name: random.normal(50, 10, 50) for name in METRICS},
        )
        for setup in ("wildfire-2x3-S2", "wildfire-3x3-S3-transfer")
        for policy in ("plato seed 42", LONG)
    ]


def shown_at(width: int, evaluations: Sequence[Evaluation]) -> list[str]:
    out = Console(width=width, file=io.StringIO(), highlight=False)
    out.print(evaluation_table(evaluations, width))
    return out.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("width", [80, 88, 100, 120, 160])
def test_an_evaluation_breaks_no_name_and_no_number(evaluations, width):
    lines = shown_at(width, evaluations)
    assert max(map(len, lines)) <= width
    text = [line.strip() for line in lines]
    for setup in ("wildfire-2x3-S2", "wildfire-3x3-S3-transfer"):
        assert text.count(setup) == 1
    numbers = len(METRICS) * (3 if width == 160 else 1)  # with ± and what follows
    ours = [line.split() for line in text if line.startswith("plato seed 42 ")]
    assert [len(words) for words in ours] == [3 + numbers] * 2
    # What is too long for the first column stands above its numbers.
    assert text.count(LONG) == 2
    assert len(text[text.index(LONG) + 1].split()) == numbers


def test_an_evaluation_has_parts_where_even_means_do_not_fit(evaluations):
    lines = shown_at(48, evaluations[:1])
    heads = [line.split() for line in lines if "return" in line or "burnouts" in line]
    assert heads == [
        ["return", "fight", "NOOP", "%"],
        ["burnouts", "putouts", "ran", "dry"],
    ]
    assert sum(line.startswith("   plato seed 42 ") for line in lines) == 3


def test_columns_stand_side_by_side_while_there_is_room():
    assert fitting([5, 5, 5, 20, 5], 10) == [
        range(2),
        range(2, 3),
        range(3, 4),
        range(4, 5),
    ]
    assert fitting([5, 5], 10) == [range(2)]
