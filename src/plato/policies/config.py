"""Which pointer actor to build. Imports nothing heavy: the command line reads it."""

from dataclasses import dataclass
from typing import Any, Literal

from plato.configuration import whole_number


@dataclass(frozen=True)
class ActorConfig:
    """Which member of the family of pointer actors."""

    encoder: Literal["mlp", "lstm"] = "mlp"
    """What turns the team's summary into the query: an MLP, or an LSTM over time."""
    scorer: Literal["additive", "dot"] = "additive"
    """How a query and a key make a score."""
    query: Literal["pointer", "statistics"] = "pointer"
    """How the team is summed up: by pointing at agents, or by their statistics."""
    ego: bool = True
    """Whether the deciding agent's own features join the query."""
    away: Literal["flagged", "removed"] = "flagged"
    """Whether agents that are away stay in the team, marked as away, or leave it (the
    paper)."""
    context: Literal["none", "statistics", "pointer"] = "none"
    """What of the tasks it sees joins the query (not in the paper): nothing, their
    statistics, or what the deciding agent points at among them, by its own features."""
    hidden: int = 128
    """Width of all layers."""
    depth: int = 1
    """Layers of each encoder of agents and tasks."""
    heads: int = 1
    """Pointers into the team (query pointer)."""

    def __post_init__(self) -> None:
        for name, most in {"hidden": 2**14, "depth": 64, "heads": 1024}.items():
            whole_number(f"actor.{name}", getattr(self, name), 1, most)


PAPER_FORM: dict[str, Any] = {
    "query": "statistics",
    "ego": False,
    "away": "removed",
    "context": "none",
}
"""What makes an actor that of the paper's Algorithm 1."""
