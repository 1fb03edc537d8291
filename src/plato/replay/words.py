"""A recorded moment of a wildfire in words."""

from plato.domains.wildfire.config import WildfireConfig
from plato.replay.recording import Recording

MOST_EVENTS = 4
"""Events of one step that are told; further ones are counted."""
MOST_POINTED = 3


def event_in_words(config: WildfireConfig, kind: str, row: int) -> str:
    """One openness event."""
    if kind == "departure":
        return f"agent {row + 1} runs dry and leaves"
    if kind == "return":
        return f"agent {row + 1} is back"
    cell = config.fire_cells[row]
    return {
        "ignition": f"{cell} ignites",
        "spread": f"fire spreads to {cell}",
        "putout": f"{cell} is put out",
        "burnout": f"{cell} burns out",
    }[kind]


def happened(config: WildfireConfig, found: list[tuple[str, int]]) -> str:
    """The events of one step."""
    told = [event_in_words(config, *event) for event in found[:MOST_EVENTS]]
    if len(found) > MOST_EVENTS:
        told.append(f"{len(found) - MOST_EVENTS} more")
    return ", ".join(told) or "nothing came or went"


def moment_in_words(recording: Recording, time: int) -> str:
    """How many fires and agents there are."""
    sights = recording.sights
    fires, here = int(sights.exists[time].sum()), int(sights.present[time].sum())
    team = len(sights.state.suppressant[time])
    return f"{fires} fire{'s' * (fires != 1)}, {here} of {team} agents here"


def choice_in_words(config: WildfireConfig, choice: int) -> str:
    """What an agent may do."""
    return "NOOP" if choice == 0 else f"fire {config.fire_cells[choice - 1]}"


def pointing_in_words(
    recording: Recording, config: WildfireConfig, time: int, agent: int
) -> str:
    """Where an agent points: its likeliest choices, if the policy tells them."""
    shares = recording.decisions.choices
    if shares is None:
        return ""
    shown = min(int(shares.kept[time, agent]), MOST_POINTED)
    entries = zip(
        shares.index[time, agent, :shown].tolist(),
        shares.probability[time, agent, :shown].tolist(),
        strict=True,
    )
    return ", ".join(f"{choice_in_words(config, i)} {p:.1%}" for i, p in entries)
