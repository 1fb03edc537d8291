"""What a table has to say about how its numbers were made."""

from plato.evaluation.aggregates import COVERED
from plato.evaluation.comparison import Comparison
from plato.evaluation.significance import LEVEL, bonferroni


def fine_print(comparison: Comparison, *, beside_paper: bool) -> str:
    """The protocol, the seeds, the noise, the actions, and what is bold."""
    paper = comparison.protocol.name == "paper"
    lines = _paper(comparison) if paper else _field(comparison)
    if any(comparison.trainings(name)[1] > 1 for name in comparison.trained):
        lines.append("In brackets after a name: its trainings.")
    if beside_paper:
        lines.append("(paper): as the paper prints it, by its own protocol.")
    return " ".join(lines)


def _paper(comparison: Comparison) -> list[str]:
    protocol = comparison.protocol
    lines = ["Paper's protocol:"]
    if comparison.trained:
        lines.append(
            f"of each training, the {protocol.chosen} best checkpoints of its second "
            f"half by mean return on seeds {_span(protocol.choosing)};"
        )
    lines.append(
        f"mean ± sample standard deviation over the episodes (seeds "
        f"{_span(protocol.seeds)}); {_how(comparison)}"
    )
    if comparison.families:
        models = len(comparison.contestants)
        lines.append(
            f"Bold: significantly better than every other (Shapiro–Wilk-adaptive "
            f"two-sided paired test, p < {LEVEL}/{models} = {bonferroni(models):.4g})."
        )
    return lines


def _field(comparison: Comparison) -> list[str]:
    protocol = comparison.protocol
    lines = ["Field's protocol:"]
    if comparison.trained:
        lines.append(
            f"of each training, the best checkpoint by mean return on validation seeds "
            f"{_span(protocol.choosing)};"
        )
    lines.append(
        f"mean [95 % stratified bootstrap interval, {_drawn(comparison)}] on seeds "
        f"{_span(protocol.seeds)}; {_how(comparison)}"
    )
    lines += _short_of(comparison)
    if len(comparison.contestants) > 1:
        models = len(comparison.contestants)
        lines.append(
            f"Bold: better than every other (two-sided t-tests whose error is that "
            f"over trainings and over seeds together, p < {LEVEL}/{models} = "
            f"{bonferroni(models):.4g})."
        )
    if comparison.metrics[0] in comparison.summaries:
        lines.append(_scales(comparison))
    return lines


def _how(comparison: Comparison) -> str:
    taken = {
        "own": "actions as each method's source takes them (PLATO's drawn, the "
        "baselines' likeliest)",
        "sampled": "actions sampled",
        "greedy": "actions greedy",
    }[comparison.protocol.actions]
    return f"{comparison.protocol.noise} noise, {taken}."


def _drawn(comparison: Comparison) -> str:
    """What the bootstrap draws anew."""
    over = ["over trainings"] if comparison.trained else []
    if len(comparison.trained) < len(comparison.contestants):
        over.append("of a given policy over episodes" if over else "over episodes")
    return ", ".join(over)


def _short_of(comparison: Comparison) -> list[str]:
    """What intervals over few trainings are worth."""
    counts = sorted({n for c in comparison.trained for n in comparison.trainings(c)})
    cases = [f"{COVERED[n]} of 100 with {n}" for n in counts if n in COVERED]
    if not cases:
        return []
    return [
        f"Over few trainings such an interval is too short: it holds the mean of many "
        f"in about {', '.join(cases)} (normal scores)."
    ]


def _scales(comparison: Comparison) -> str:
    known = comparison.optimum if comparison.metrics[0] == "return" else {}
    ranged = [setup for setup in comparison.setups if setup not in known]
    parts = []
    if known:
        parts.append(f"shares of the optimal return ({', '.join(known)})")
    if ranged:
        where = f"{', '.join(ranged)}: " if known else ""
        parts.append(f"{where}0 the worst score on a setup, 1 the best, of this table")
    return f"Normalised: {'; '.join(parts)}."


def _span(seeds: range) -> str:
    return f"{seeds.start}–{seeds.stop - 1}"
