"""Wildfire as a decision process in factors: a factor for each cell and each agent.

Given the joint action, cells grow and shrink and agents use, wear and refill each on
their own; only ignition looks at other cells, at those that burn after all that. Every
rule of the dynamics is here a second time, as probabilities instead of as events.
"""

import itertools
import math
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Int

from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import Rules
from plato.domains.wildfire.game import rules_from_config
from plato.domains.wildfire.optimum import ties
from plato.domains.wildfire.optimum.crew import Agent, Choice, Crew
from plato.domains.wildfire.optimum.fire import Cell, Fire
from plato.exact.induction import Size
from plato.exact.process import Process


@dataclass(frozen=True)
class Model:
    """The process of a configuration, and what its indices stand for."""

    process: Process
    cells: tuple[tuple[Cell, ...], ...]
    agents: tuple[tuple[Agent, ...], ...]
    actions: Int[np.ndarray, "action agent"]
    """What the agents do in each joint action, as the game numbers it."""
    knows_fuel: bool
    """Whether a cell's fuel can make a difference."""


def model_of(config: WildfireConfig) -> Model:
    """Builds the process; states are found by following what can happen."""
    rules, fires, crews, choices = _parts(config)
    joint = list(itertools.product(*choices))

    factors, modes = [], []
    for fire in fires:
        hits = [fire.hit(actions) for actions in joint]
        kinds = list(dict.fromkeys(hits))
        factors.append(fire.factor(kinds))
        modes.append([kinds.index(hit) for hit in hits])
    for n, crew in enumerate(crews):
        ways = [choice.way for choice in choices[n]]
        kinds = list(dict.fromkeys(ways))
        factors.append(crew.factor(kinds, len(crews)))
        modes.append([kinds.index(actions[n].way) for actions in joint])

    cells = tuple(fire.states for fire in fires)
    agents = tuple(crew.states for crew in crews)
    process = Process(
        factors=tuple(factors),
        actions=np.asarray(modes, np.int32).T,
        start=tuple(part.states.index(part.start) for part in (*fires, *crews)),
        horizon=config.max_steps,
        settle=ties.Ignition(rules, fires),
        over=ties.over(rules, fires, len(crews)),
        bonus=ties.bonus(rules, fires, len(crews)),
    )
    taken = [[choice.action for choice in actions] for actions in joint]
    knows_fuel = bool(rules.uses_fuel) and not all(fire.plenty for fire in fires)
    return Model(process, cells, agents, np.asarray(taken, np.int32), knows_fuel)


def size_of(config: WildfireConfig) -> Size:
    """What the exact solution of a configuration takes."""
    _, fires, crews, choices = _parts(config)
    widths = [fire.width for fire in fires] + [len(crew.states) for crew in crews]
    return Size(
        shape=tuple(len(part.states) for part in (*fires, *crews)),
        actions=math.prod(len(each) for each in choices),
        horizon=config.max_steps,
        widest=math.prod(widths),
    )


def _parts(
    config: WildfireConfig,
) -> "tuple[Rules, list[Fire], list[Crew], list[list[Choice]]]":
    rules: Rules = jax.device_get(rules_from_config(config))
    fires = [Fire(rules, x) for x in range(len(config.fire_cells))]
    crews = [Crew(rules, n) for n in range(len(config.agent.agents))]
    return rules, fires, crews, [crew.choices(len(fires)) for crew in crews]
