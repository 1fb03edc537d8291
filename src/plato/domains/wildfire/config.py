"""The configuration of a wildfire game: frozen, validated, named as in the reference.

The groups and fields are those of free-range-zoo's wildfire, so that a configuration
written for it can be carried over field by field. Grids are tuples of rows.
"""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from plato.errors import PlatoError

IntGrid: TypeAlias = tuple[tuple[int, ...], ...]
FloatGrid: TypeAlias = tuple[tuple[float, ...], ...]
BoolGrid: TypeAlias = tuple[tuple[bool, ...], ...]


@dataclass(frozen=True)
class FireConfig:
    """Where fires are and how they grow, spread and die."""

    fire_types: IntGrid
    """Size of the fire each cell can carry (the power it takes); 0: never burns."""
    lit: BoolGrid
    """Cells that burn at the start."""
    num_fire_states: int
    """Intensities run from 0 (out) to num_fire_states - 1 (burnt out)."""
    ignition_temp: IntGrid
    """Intensity with which a cell starts to burn."""
    intensity_increase_probability: float
    intensity_decrease_probability: float
    extra_power_decrease_bonus: float
    """Added to the decrease probability per unit of power beyond the fire's size."""
    burnout_probability: float
    base_spread_rate: float
    max_spread_rate: float
    random_ignition_probability: float
    cell_size: float
    wind_direction: float
    """Radians, 0 to 2 pi."""
    initial_fuel: int
    """Ignitions a cell has in it (read only with stochastic.fire_fuel)."""
    burnout_clears_fuel: bool = False
    """A burnout takes all of a cell's fuel (releases before December 2025), not 1."""

    def __post_init__(self) -> None:
        _at_least("fire.num_fire_states", self.num_fire_states, 3)
        _at_least("fire.initial_fuel", self.initial_fuel, 0)
        _at_least("fire.base_spread_rate", self.base_spread_rate, 0)
        _positive("fire.max_spread_rate", self.max_spread_rate)
        _positive("fire.cell_size", self.cell_size)
        if not 0 <= self.wind_direction <= 2 * math.pi:
            raise PlatoError(
                f"fire.wind_direction must be between 0 and 2 pi radians, "
                f"not {self.wind_direction}."
            )
        for name in (
            "intensity_increase_probability",
            "intensity_decrease_probability",
            "burnout_probability",
            "random_ignition_probability",
        ):
            _probability(f"fire.{name}", getattr(self, name))
        self._validate_cells()

    def _validate_cells(self) -> None:
        shape = _grid_shape("fire.fire_types", self.fire_types)
        for name in ("lit", "ignition_temp"):
            _same_grid(f"fire.{name}", getattr(self, name), shape, "fire.fire_types")
        hottest = self.num_fire_states - 2
        for y, row in enumerate(self.fire_types):
            for x, size in enumerate(row):
                _at_least(f"fire.fire_types[{y}][{x}]", size, 0)
                if self.lit[y][x] and size == 0:
                    raise PlatoError(
                        f"fire.lit[{y}][{x}] is true, but fire.fire_types[{y}][{x}] "
                        f"is 0 (never burns); set one of the two right."
                    )
                if size and not 1 <= self.ignition_temp[y][x] <= hottest:
                    raise PlatoError(
                        f"fire.ignition_temp[{y}][{x}] must be from 1 to {hottest} "
                        f"(num_fire_states - 2), not {self.ignition_temp[y][x]}."
                    )


@dataclass(frozen=True)
class AgentConfig:
    """Where agents stand, what they carry and how their equipment wears."""

    agents: tuple[tuple[int, int], ...]
    """One (y, x) for each agent."""
    fire_reduction_power: tuple[float, ...]
    attack_range: tuple[int, ...]
    suppressant_states: int
    initial_suppressant: int | tuple[int, ...]
    """One number for all agents, or one for each."""
    suppressant_decrease_probability: float
    suppressant_refill_probability: float
    initial_equipment_state: int
    equipment_states: tuple[tuple[float, float, float], ...]
    """Rows of (capacity, power, range) bonuses, from damaged to pristine."""
    repair_probability: float
    degrade_probability: float
    critical_error_probability: float
    initial_capacity: int
    tank_switch_probability: float
    possible_capacities: tuple[float, ...]
    capacity_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        self._validate_team()
        self._validate_equipment()
        self._validate_tank()

    @property
    def initial_suppressants(self) -> tuple[int, ...]:
        """The initial suppressant of each agent."""
        if isinstance(self.initial_suppressant, int):
            return (self.initial_suppressant,) * len(self.agents)
        return self.initial_suppressant

    def _validate_team(self) -> None:
        if not self.agents:
            raise PlatoError("agent.agents is empty; place at least one agent.")
        for name in ("fire_reduction_power", "attack_range"):
            values = getattr(self, name)
            _one_each(f"agent.{name}", values, len(self.agents))
            for n, value in enumerate(values):
                _at_least(f"agent.{name}[{n}]", value, 0)
        _at_least("agent.suppressant_states", self.suppressant_states, 2)
        if not isinstance(self.initial_suppressant, int):
            _one_each(
                "agent.initial_suppressant", self.initial_suppressant, len(self.agents)
            )
        for amount in self.initial_suppressants:
            if not 0 <= amount <= self.suppressant_states:
                raise PlatoError(
                    f"agent.initial_suppressant must be from 0 to suppressant_states "
                    f"({self.suppressant_states}), not {amount}."
                )
        for name in (
            "suppressant_decrease_probability",
            "suppressant_refill_probability",
        ):
            _probability(f"agent.{name}", getattr(self, name))

    def _validate_equipment(self) -> None:
        if not self.equipment_states:
            raise PlatoError("agent.equipment_states is empty; give at least one row.")
        if not 0 <= self.initial_equipment_state < len(self.equipment_states):
            raise PlatoError(
                f"agent.initial_equipment_state must be from 0 to "
                f"{len(self.equipment_states) - 1} (a row of equipment_states), "
                f"not {self.initial_equipment_state}."
            )
        for name in (
            "repair_probability",
            "degrade_probability",
            "critical_error_probability",
        ):
            _probability(f"agent.{name}", getattr(self, name))
        total = self.degrade_probability + self.critical_error_probability
        if total > 1 + 1e-9:
            raise PlatoError(
                f"agent.degrade_probability + agent.critical_error_probability is "
                f"{total:g}; lower one so that they add up to at most 1."
            )

    def _validate_tank(self) -> None:
        _at_least("agent.initial_capacity", self.initial_capacity, 0)
        _probability("agent.tank_switch_probability", self.tank_switch_probability)
        if not self.possible_capacities:
            raise PlatoError("agent.possible_capacities is empty; give at least one.")
        if len(self.capacity_probabilities) != len(self.possible_capacities):
            raise PlatoError(
                f"agent.capacity_probabilities has {len(self.capacity_probabilities)} "
                f"entries; give one for each of the {len(self.possible_capacities)} "
                f"possible_capacities."
            )
        for i, capacity in enumerate(self.possible_capacities):
            _at_least(f"agent.possible_capacities[{i}]", capacity, 1)
        for i, probability in enumerate(self.capacity_probabilities):
            _probability(f"agent.capacity_probabilities[{i}]", probability)
        if not math.isclose(sum(self.capacity_probabilities), 1, abs_tol=1e-6):
            raise PlatoError(
                f"agent.capacity_probabilities must add up to 1, not "
                f"{sum(self.capacity_probabilities):g}."
            )


@dataclass(frozen=True)
class RewardConfig:
    """What putting out, burning out and finishing are worth."""

    fire_rewards: FloatGrid
    """Reward for putting out the fire of each cell."""
    bad_attack_penalty: float
    """Added to the reward of an agent that fights a task out of its reach."""
    burnout_penalty: float
    """Added to everyone's reward for each burnout (unless scaled)."""
    burnout_penalty_scaled: bool = False
    """A burnout costs what putting it out would have paid."""
    termination_reward: float = 0.0
    termination_kappa: float = 0.0
    """How much the termination reward shrinks with ln(burnouts + 1)."""
    localize_putouts: bool = False
    """Only agents that fought the cell in that step share its put-out reward."""

    def __post_init__(self) -> None:
        _grid_shape("reward.fire_rewards", self.fire_rewards)
        if self.burnout_penalty and self.burnout_penalty_scaled:
            raise PlatoError(
                f"reward.burnout_penalty is {self.burnout_penalty:g}, but "
                f"reward.burnout_penalty_scaled replaces it; set one of the two off."
            )


@dataclass(frozen=True)
class StochasticConfig:
    """Which of the probabilities apply; what is off happens always or never."""

    special_burnout_probability: bool
    suppressant_refill: bool
    suppressant_decrease: bool
    tank_switch: bool
    critical_error: bool
    degrade: bool
    repair: bool
    fire_increase: bool
    fire_decrease: bool
    fire_spread: bool
    realistic_fire_spread: bool
    random_fire_ignition: bool
    fire_fuel: bool

    def __post_init__(self) -> None:
        if self.realistic_fire_spread and not self.fire_spread:
            raise PlatoError(
                "stochastic.realistic_fire_spread is on without stochastic.fire_spread;"
                " turn fire_spread on too."
            )
        if self.critical_error and not self.degrade:
            raise PlatoError(
                "stochastic.critical_error is on without stochastic.degrade; turn "
                "degrade on too (a certain degradation leaves no room for an error)."
            )


@dataclass(frozen=True)
class WildfireConfig:
    """One wildfire setup: the grid, its fires, its team, and the rules in force."""

    grid_height: int
    grid_width: int
    fire: FireConfig
    agent: AgentConfig
    reward: RewardConfig
    stochastic: StochasticConfig
    observe_other_suppressant: bool = False
    observe_other_power: bool = False
    show_bad_actions: bool = False
    """Offer every burning cell, in reach or not."""
    max_steps: int = 100
    """Time limit; reaching it truncates a game, it does not terminate it."""
    description: str = ""
    evidence: str = ""
    """What is known of where this configuration comes from."""

    def __post_init__(self) -> None:
        _at_least("grid_height", self.grid_height, 1)
        _at_least("grid_width", self.grid_width, 1)
        _at_least("max_steps", self.max_steps, 1)
        shape = (self.grid_height, self.grid_width)
        _same_grid("fire.fire_types", self.fire.fire_types, shape, "the grid")
        _same_grid("reward.fire_rewards", self.reward.fire_rewards, shape, "the grid")
        for n, (y, x) in enumerate(self.agent.agents):
            if not (0 <= y < self.grid_height and 0 <= x < self.grid_width):
                raise PlatoError(
                    f"agent.agents[{n}] stands at ({y}, {x}), off the "
                    f"{self.grid_height}x{self.grid_width} grid; move it onto it."
                )
        base, most = self.fire.base_spread_rate, self.fire.max_spread_rate
        # Far below the maximum, the rate with the wind is no longer a number.
        fits = base == 0 or 1e-9 * most <= base <= most
        if self.stochastic.realistic_fire_spread and not fits:
            raise PlatoError(
                f"fire.base_spread_rate ({base:g}) must not exceed "
                f"fire.max_spread_rate ({most:g}), nor be a vanishing part of it."
            )

    @property
    def fire_cells(self) -> tuple[tuple[int, int], ...]:
        """The cells that can burn, row by row: every task there can be."""
        return tuple(
            (y, x)
            for y, row in enumerate(self.fire.fire_types)
            for x, size in enumerate(row)
            if size
        )


def _probability(path: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise PlatoError(f"{path} must be a probability from 0 to 1, not {value:g}.")


def _at_least(path: str, value: float, least: float) -> None:
    if value < least:
        raise PlatoError(f"{path} must be at least {least}, not {value:g}.")


def _positive(path: str, value: float) -> None:
    if value <= 0:
        raise PlatoError(f"{path} must be greater than 0, not {value:g}.")


def _one_each(path: str, values: tuple[Any, ...], agents: int) -> None:
    if len(values) != agents:
        raise PlatoError(
            f"{path} has {len(values)} entries; give one for each of the "
            f"{agents} agents."
        )


def _grid_shape(path: str, grid: tuple[tuple[Any, ...], ...]) -> tuple[int, int]:
    widths = {len(row) for row in grid}
    if len(widths) != 1 or 0 in widths:
        raise PlatoError(f"{path} must be a grid whose rows all have the same length.")
    return len(grid), widths.pop()


def _same_grid(
    path: str, grid: tuple[tuple[Any, ...], ...], shape: tuple[int, int], other: str
) -> None:
    height, width = _grid_shape(path, grid)
    if (height, width) != shape:
        raise PlatoError(
            f"{path} is {height}x{width}, but {other} is {shape[0]}x{shape[1]}; "
            f"make them the same size."
        )
