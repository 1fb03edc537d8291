"""What pages say of the generalist that comes with PLATO: it is so, and beside whom.

Its numbers are those of the table in docs/training.md, which a few episodes are held
against; the specialists' are those of results/.
"""

import gzip
import json
import re
import tomllib

import numpy as np
import pytest

from plato.evaluation.evaluate import evaluate
from plato.experiments import suite
from plato.experiments.store import Store
from plato.learners.config import MappoConfig, TrainConfig
from plato.policies.pretrained import GENERALIST, pretrained_file
from plato.tensors import read_header
from said import COUNTS, RESULTS, named, optimum, prose, returns, text

NATIVE = [setup.removeprefix("wildfire-") for setup in suite.NATIVE]
PLAYED = 2000
"""Episodes behind each number of the table."""


def table() -> dict[str, tuple[float, float]]:
    """Its return on every setup, and the share of the optimum, as printed."""
    page = text("docs/training.md").partition("--policy pretrained:generalist`")[2]
    lines = re.findall(r"^\| (\d×\d)( transfer)? \|(.*)\|$", page, re.MULTILINE)[:6]
    return {
        f"{grid.replace('×', 'x')}-{level}{away.replace(' ', '-')}": (
            float(earned),
            float(share),
        )
        for grid, away, cells in lines
        for level, (earned, share) in zip(
            suite.LEVELS, re.findall(r"(\S+) \((\S+) %\)", cells), strict=True
        )
    }


UNSEEN = [setup for setup in table() if setup not in NATIVE]


def said(pattern: str, page: str = "training.md") -> tuple[str, ...]:
    found = re.search(pattern, prose(page))
    assert found, pattern
    return found.groups()


def trained(row: str, setup: str) -> list[list[float]]:
    """What a row's trainings earn on a setup: a list for each grid they come from."""
    return [
        list(own.values())
        for (protocol, name, home, where), own in returns().items()
        if home and (protocol, name, where) == ("field", row, setup)
    ]


def in_the_mean(row: str, setup: str) -> float:
    """From the grid that carries over best."""
    return float(max(map(np.mean, trained(row, setup))))


def ahead(row: str) -> list[str]:
    """Where its specialists are ahead of the generalist in the mean."""
    found = [s for s in UNSEEN if in_the_mean(row, s) > table()[s][0]]
    return [setup.removesuffix("-transfer") for setup in found]


def test_the_table_is_of_24_setups_with_its_shares():
    assert len(table()) == 24
    assert set(NATIVE) < set(table())
    for setup, (earned, share) in table().items():
        rounded = 0.051 + 100 * 0.005 / optimum(setup)  # both of them are
        assert 100 * earned / optimum(setup) == pytest.approx(share, abs=rounded)


@pytest.mark.parametrize(
    "setup", ["2x3-S1", "4x4-S1", "4x4-S3-transfer", "5x5-S0-transfer"]
)
def test_it_earns_what_is_printed(setup: str):
    played = evaluate(f"pretrained:{GENERALIST}", f"wildfire-{setup}", episodes=400)
    earned = played.metrics["return"]
    error = earned.std(ddof=1) * (1 / len(earned) + 1 / PLAYED) ** 0.5
    assert earned.mean() == pytest.approx(table()[setup][0], abs=4 * error)


def test_the_file_was_chosen_by_what_is_printed():
    """Its score is the mean share on the native setups, in other episodes."""
    chosen = read_header(pretrained_file(GENERALIST))["about"]["chosen"]
    printed = np.mean([table()[setup][1] for setup in NATIVE])
    assert 100 * chosen["score"] == pytest.approx(printed, abs=0.5)


def test_what_it_earns_at_home():
    least, most, but = said(
        r"At home it earns at least (\d+) % of what the \[specialists\]\(results\.md\) "
        r"earn in the mean of five trainings, and at least (\d+) % on all setups but "
        r"(.*?)\. "
    )
    parts = {s: 100 * table()[s][0] / in_the_mean("PLATO", s) for s in NATIVE}
    assert min(parts.values()) >= int(least)
    below = [setup for setup, part in parts.items() if part < int(most)]
    assert below == sorted(named(but))


def test_on_how_many_unseen_setups_it_is_ahead_of_the_specialists():
    count, *far, setup = said(
        r"it is ahead of PLATO's specialists on (\w+) of twelve setups: .*? Often it "
        r"is by far \((\S+) against (\S+) on (\S+ S\d)\)"
    )
    behind = ahead("PLATO")
    assert len(UNSEEN) == 12
    assert COUNTS[12 - len(behind)] == count
    assert compared(named(setup), 1) == [tuple(far)]
    # Where it is not, if anywhere.
    found = re.findall(r"and it is not on (.*?) \((.*?)\)", prose("training.md"))
    for places, numbers in found:
        own, theirs = (part.split(" and ") for part in numbers.split(" against "))
        assert behind == named(places)
        assert compared(behind, 2) == list(zip(own, theirs, strict=True))
    assert len(found) == bool(behind)


def compared(setups: list[str], digits: int) -> list[tuple[str, str]]:
    """What it earns on setups it has not seen, and PLATO's specialists in the mean."""
    return [
        (f"{table()[s][0]:.{digits}f}", f"{in_the_mean('PLATO', s):.{digits}f}")
        for s in (f"{setup}-transfer" for setup in setups)
    ]


def test_who_is_ahead_of_it():
    count, most, means = said(
        r"Single trainings of PLATO's are ahead of it on (\w+) of twelve, and of any "
        r"row on (\w+)\. (.*?) What it has not learned"
    )
    learners = {name for (of, name, home, _) in returns() if home and of == "field"}
    for rows, many in (({"PLATO"}, count), (learners, most)):
        best = {
            s: max(max(map(max, own)) for row in rows if (own := trained(row, s)))
            for s in UNSEEN
        }
        assert COUNTS[sum(best[s] > table()[s][0] for s in UNSEEN)] == many
    rows = re.findall(r"(DICG|DGN|MOHITO) on (.*?) \((.*?)\)", means)
    said_of = {
        row: (named(places), earned.split(" and ")) for row, places, earned in rows
    }
    for row in ("DICG", "DGN", "MOHITO"):
        earned = [f"{in_the_mean(row, f'{s}-transfer'):.2f}" for s in ahead(row)]
        assert (ahead(row), earned) == said_of.get(row, ([], []))
    forms = {row.name for part in ("ablation", "switches") for row in suite.ROWS[part]}
    found = {setup for row in forms - {"PLATO"} for setup in ahead(row)}
    forms_on = means.partition("other forms of PLATO on")[2].partition(".")[0]
    assert sorted(found) == named(forms_on)


def shipped() -> dict[str, float]:
    """What the specialists that come with PLATO earn; away from home, the better."""
    page = text("docs/training.md").partition("(`benchmarks/pretrained.py`)")[2]
    row = r"^\| (\d×\d)( transfer)?(?:, from \d×\d)? \|(.*)\|$"
    found: dict[str, float] = {}
    for grid, away, cells in re.findall(row, page, re.MULTILINE):
        returns = re.findall(r"(\S+) \(\S+ %\)", cells)
        for level, earned in zip(suite.LEVELS, returns, strict=True):
            setup = f"{grid.replace('×', 'x')}-{level}{away.replace(' ', '-')}"
            found[setup] = max(float(earned), found.get(setup, -np.inf))
    return found


def test_how_it_stands_beside_the_specialists_that_come_with_it():
    least, most, but, count, close, own, theirs = said(
        r"it earns at least (\d+) % at home, and at least (\d+) % on all setups but "
        r"(.*?), and it is ahead on (\w+) of twelve setups with maps never seen, on "
        r"(\S+ S\d) \((\S+) against (\S+)\) by no more than chance might give"
    )
    assert set(shipped()) == set(table())
    parts = {s: 100 * table()[s][0] / shipped()[s] for s in NATIVE}
    assert int(min(parts.values())) == int(least)
    assert [s for s in NATIVE if parts[s] < int(most)] == named(but)
    assert COUNTS[sum(table()[s][0] > shipped()[s] for s in UNSEEN)] == count
    (setup,) = (f"{place}-transfer" for place in named(close))
    # By chance: within two standard errors of 2,000 episodes of each.
    earned = evaluate(f"pretrained:{GENERALIST}", f"wildfire-{setup}", episodes=400)
    error = earned.metrics["return"].std(ddof=1) * (2 / PLAYED) ** 0.5
    assert 0 < table()[setup][0] - shipped()[setup] < 2 * error
    assert (f"{table()[setup][0]}", f"{shipped()[setup]}") == (own, theirs)


@pytest.mark.parametrize("way", [("3x3-S3", "5x5-S3-transfer"), ("2x3-S2", "2x3-S2")])
def test_specialists_earn_what_is_printed(way: tuple[str, str]):
    home, setup = way
    policy = f"pretrained:wildfire-{home}"
    earned = evaluate(policy, f"wildfire-{setup}", episodes=400).metrics["return"]
    error = earned.std(ddof=1) * (1 / len(earned) + 1 / PLAYED) ** 0.5
    assert earned.mean() == pytest.approx(shipped()[setup], abs=4 * error)


def test_what_the_readme_says_of_it():
    share, count = said(
        r"`pretrained:generalist` earns (\S+) % of the optimum on average over the 12 "
        r"setups, and on (\w+) of twelve setups with maps that no policy has seen more "
        r"than PLATO's specialists do in the mean",
        "../README.md",
    )
    mean = 100 * np.mean([table()[s][0] / optimum(s) for s in NATIVE])
    assert f"{mean:.{len(share.partition('.')[2])}f}" == share
    assert COUNTS[12 - len(ahead("PLATO"))] == count


RECORD = RESULTS / "generalist"


def test_its_first_training_was_advised_throughout():
    (entry,) = Store(RECORD).entries()
    learning = entry.data["cell"]["training"]["learning"]
    flags = "--games {games} --updates {updates} --entropy-end {entropy_end}"
    assert flags.format(**learning) in text("docs/training.md")
    assert learning["advised"] == 1
    steps, seconds = said(r"(\d+) million steps, (\d+) s on one H200; 10 million")
    earned = said(
        r"throughout, came to (\S+) on 2×3 S1 and (\S+) on 4×4 S1, and to (\S+) and "
        r"(\S+) on S2 and S3 of 5×5, at full temperature"
    )
    took = entry.data["seconds"]["training"]
    assert (int(steps), int(seconds)) == (round(entry.data["steps"] / 1e6), round(took))
    setups = ("2x3-S1", "4x4-S1", "5x5-S2-transfer", "5x5-S3-transfer")
    played = [entry.data["episodes"][f"wildfire-{s}"]["return"] for s in setups]
    assert tuple(f"{np.mean(own):.1f}" for own in played) == earned


WENT_ON = {
    "second": "advised",
    "third": "second",
    "fourth": "third",
    "fifth": "third",
}
"""Its later trainings, and what each of them began with."""


def went_on(name: str) -> TrainConfig:
    table = tomllib.loads((RECORD / name / "config.toml").read_text())
    return TrainConfig.from_mapping(table)


def learned(name: str) -> MappoConfig:
    learning = went_on(name).learning
    assert isinstance(learning, MappoConfig)
    return learning


@pytest.mark.parametrize(("name", "before"), WENT_ON.items())
def test_its_later_trainings_went_on_from_there(name, before):
    config, learning = went_on(name), learned(name)
    commands = re.split(r"plato train|```", text("docs/training.md"))
    (command,) = (c for c in commands if f"--out runs/{name} " in c)
    command = command.replace("\\\n", "").replace("\n", " ")
    names = ("games", "epochs", "minibatches", "updates", "entropy", "entropy-end")
    names += ("critic-first",)
    flags = {n: getattr(learning, n.replace("-", "_")) for n in names}
    assert (
        float(command.partition("--actor-rate ")[2].split()[0]) == learning.actor_rate
    )
    assert ("--precision bfloat16 " in command) == (learning.precision == "bfloat16")
    assert ("--game-seed" in command) == (config.game_seed != TrainConfig.game_seed)
    levels = ("S0", "S1") if name == "fifth" else suite.LEVELS
    assert set(config.setups) == {s for s in suite.NATIVE if s.endswith(levels)}
    flags |= {"maps": config.maps, "new-maps": config.new_maps}
    flags |= {"begin-with": f"runs/{before}"}
    for flag, value in flags.items():
        assert f"--{flag} {value} " in f"{command} ", flag
    assert not config.advisers
    assert learning.begin_with == f"runs/{before}"
    packed = (RECORD / name / "metrics.jsonl.gz").read_bytes()
    rows = [json.loads(row) for row in gzip.decompress(packed).splitlines()]
    assert [row["update"] for row in rows] == [*range(1, learning.updates + 1)]


def test_the_steps_of_all_its_trainings():
    (first,) = Store(RECORD).entries()
    later = [learned(name).played(learned(name).updates) for name in WENT_ON]
    assert first.data["steps"] + sum(later) == suite.SHIPPED_STEPS
    steps = said(
        r"H200; (\d+) million, \d+ minutes [^;]*; (\d+) million, [^;]*; (\d+) million, "
        r"[^;]*; and (\d+) million, "
    )
    assert [int(n) for n in steps] == [round(n / 1e6) for n in later]


def test_it_is_the_mean_of_the_last_three():
    parts = said(r"--parts (\S+) (\S+) (\S+) --temperature 0\.25")
    about = read_header(pretrained_file(GENERALIST))["about"]
    updates = [learned(name).updates for name in ("third", "fourth", "fifth")]
    of = [(one["part"], one["update"]) for one in about["parts"]]
    assert of == list(zip(map(float, parts), updates, strict=True))
    assert about["temperature"] == 0.25
    assert about["setups"] == list(suite.NATIVE)
