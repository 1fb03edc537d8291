"""The probabilities in force: a rule that is switched off happens always or never."""

import math
from dataclasses import dataclass

from plato.domains.wildfire.config import FireConfig, WildfireConfig


@dataclass(frozen=True)
class Odds:
    """What each event's number is compared with."""

    growth: float
    burnout: float
    """Of growing once more at the last intensity."""
    suppression: float
    suppression_bonus: float
    """Added per unit of power beyond the fire's size."""
    spread: tuple[float, float, float, float]
    """From a burning neighbour in the north, east, south, west; may exceed 1."""
    ignition: float
    use: float
    refill: float
    repair: float
    degrade: float
    critical: float
    switch: float


def odds_in_force(config: WildfireConfig) -> Odds:
    """The configuration's probabilities with its switches folded in."""
    fire, agent, switch = config.fire, config.agent, config.stochastic
    north, east, south, west = spread_rates(
        fire, switch.fire_spread, switch.realistic_fire_spread
    )
    return Odds(
        growth=fire.intensity_increase_probability if switch.fire_increase else 1.0,
        # The reference takes the plain growth probability here even where
        # `fire_increase` is off and growth otherwise certain.
        burnout=(
            fire.burnout_probability
            if switch.special_burnout_probability
            else fire.intensity_increase_probability
        ),
        suppression=(
            fire.intensity_decrease_probability if switch.fire_decrease else 1.0
        ),
        suppression_bonus=(
            fire.extra_power_decrease_bonus if switch.fire_decrease else 0.0
        ),
        spread=(north, east, south, west),
        ignition=(
            fire.random_ignition_probability if switch.random_fire_ignition else 0.0
        ),
        use=(
            agent.suppressant_decrease_probability
            if switch.suppressant_decrease
            else 1.0
        ),
        refill=(
            agent.suppressant_refill_probability if switch.suppressant_refill else 1.0
        ),
        repair=agent.repair_probability if switch.repair else 1.0,
        degrade=agent.degrade_probability if switch.degrade else 1.0,
        critical=agent.critical_error_probability if switch.critical_error else 0.0,
        switch=agent.tank_switch_probability if switch.tank_switch else 1.0,
    )


def spread_rates(fire: FireConfig, spreads: bool, realistic: bool) -> list[float]:
    """The rate at which fire comes over from the north, east, south and west."""
    if not spreads or fire.base_spread_rate == 0:
        return [0.0] * 4
    if not realistic:
        return [fire.base_spread_rate] * 4
    per_cell = fire.base_spread_rate / fire.cell_size
    stretch = 1 - fire.base_spread_rate / fire.max_spread_rate
    angles = (0.0, 0.5 * math.pi, math.pi, 1.5 * math.pi)
    return [
        per_cell / (1 - math.cos(a - fire.wind_direction) * stretch) for a in angles
    ]
