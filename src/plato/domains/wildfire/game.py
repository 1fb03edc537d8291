"""Wildfire as an open game: fires are tasks, agents with suppressant are present."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from plato.domains.wildfire import dynamics
from plato.domains.wildfire.config import FireConfig, WildfireConfig
from plato.domains.wildfire.dynamics import Rules, WildfireNoise, WildfireState
from plato.errors import PlatoError
from plato.game import Capacity, Game, Observation, Outcome

TASK_FEATURES = ("y", "x", "size", "intensity")
AGENT_FEATURES = ("y", "x", "power", "suppressant")


class Wildfire(Game[WildfireState, WildfireNoise]):
    """The game of one configuration, at any capacity that holds it."""

    rules: Rules

    @classmethod
    def from_config(
        cls, config: WildfireConfig, *, agents: int = 0, tasks: int = 0
    ) -> "Wildfire":
        """Builds the game; `agents` and `tasks` ask for more rows than it needs."""
        return cls(rules_from_config(config, agents, tasks))

    @property
    def capacity(self) -> Capacity:
        return Capacity(
            agents=self.rules.power.shape[-1],
            tasks=self.rules.size.shape[-1],
            actions=1,
        )

    @property
    def roster(self) -> Bool[Array, " agent"]:
        return self.rules.roster

    @property
    def horizon(self) -> Int[Array, ""]:
        return self.rules.max_steps

    def agent_name(self, index: int) -> str:
        return f"firefighter_{index + 1}"

    def initial(self, key: PRNGKeyArray) -> WildfireState:
        del key  # every episode of a setup starts alike
        return dynamics.initial_state(self.rules)

    def noise(self, key: PRNGKeyArray) -> WildfireNoise:
        agents, tasks, _ = self.capacity
        return dynamics.draw_noise(key, agents, tasks)

    def transition(
        self, state: WildfireState, actions: Int[Array, " agent"], noise: WildfireNoise
    ) -> tuple[WildfireState, Outcome]:
        return dynamics.transition(self.rules, state, actions, noise)

    def observe(self, state: WildfireState) -> Observation:
        rules = self.rules
        agents, tasks, _ = self.capacity
        present = rules.roster & (state.suppressant > 0)
        options = dynamics.offered(rules, state) & present[:, None]
        cells = [rules.cell[:, 0], rules.cell[:, 1], rules.size, state.intensity]
        places = [rules.position[:, 0], rules.position[:, 1]]
        return Observation(
            agents=jnp.stack(
                [*places, rules.power, state.suppressant], axis=1, dtype=jnp.float32
            ),
            present=present,
            tasks=jnp.stack(cells, axis=1, dtype=jnp.float32),
            exists=state.burning,
            public=rules.public,
            sees_agents=jnp.ones((agents, agents), bool),
            sees_tasks=jnp.ones((agents, tasks), bool),
            options=options[:, :, None],
        )


def rules_from_config(config: WildfireConfig, agents: int = 0, tasks: int = 0) -> Rules:
    """Turns a configuration into arrays with at least the given numbers of rows."""
    cells = config.fire_cells
    # An empty axis has no maximum, and a game without tasks is still a game.
    tasks = _rows("tasks", tasks, max(len(cells), 1))
    agents = _rows("agents", agents, len(config.agent.agents))
    arrays = _task_rows(config, tasks) | _agent_rows(config, agents) | _scalars(config)
    return Rules(**jax.device_put(arrays))


def _task_rows(config: WildfireConfig, tasks: int) -> dict[str, np.ndarray]:
    fire, reward = config.fire, config.reward
    cells = config.fire_cells
    at = {cell: row for row, cell in enumerate(cells)}
    neighbours = np.tile(np.arange(tasks, dtype=np.int32)[:, None], (1, 4))
    for row, (y, x) in enumerate(cells):
        around = ((y - 1, x), (y, x + 1), (y + 1, x), (y, x - 1))
        neighbours[row] = [at.get(cell, row) for cell in around]

    def per_cell(grid, dtype):
        return _pad([grid[y][x] for y, x in cells], tasks, dtype)

    putout = per_cell(reward.fire_rewards, np.float32)
    flat = np.full_like(putout, reward.burnout_penalty)
    return {
        "cell": _pad(np.reshape(cells, (-1, 2)), tasks, np.float32),
        "size": per_cell(fire.fire_types, np.int32),
        "lit_at_start": per_cell(fire.lit, bool),
        "ignition_temp": per_cell(fire.ignition_temp, np.int32),
        "putout_reward": putout,
        "burnout_reward": -putout if reward.burnout_penalty_scaled else flat,
        "neighbours": neighbours,
    }


def _agent_rows(config: WildfireConfig, agents: int) -> dict[str, np.ndarray]:
    agent = config.agent
    return {
        "roster": np.arange(agents) < len(agent.agents),
        "position": _pad(agent.agents, agents, np.float32),
        "power": _pad(agent.fire_reduction_power, agents, np.float32),
        "reach": _pad(agent.attack_range, agents, np.float32),
        "suppressant_at_start": _pad(agent.initial_suppressants, agents, np.float32),
    }


def _scalars(config: WildfireConfig) -> dict[str, np.ndarray]:
    fire, agent, reward = config.fire, config.agent, config.reward
    switch = config.stochastic
    special = switch.special_burnout_probability
    probabilities = {
        "growth_probability": (
            fire.intensity_increase_probability if switch.fire_increase else 1
        ),
        # The reference takes the plain growth probability here even where
        # `fire_increase` is off and growth otherwise certain.
        "burnout_probability": (
            fire.burnout_probability if special else fire.intensity_increase_probability
        ),
        "suppression_probability": (
            fire.intensity_decrease_probability if switch.fire_decrease else 1
        ),
        "suppression_bonus": (
            fire.extra_power_decrease_bonus if switch.fire_decrease else 0
        ),
        "spread_rates": spread_rates(
            fire, switch.fire_spread, switch.realistic_fire_spread
        ),
        "ignition_probability": (
            fire.random_ignition_probability if switch.random_fire_ignition else 0
        ),
        "use_probability": (
            agent.suppressant_decrease_probability if switch.suppressant_decrease else 1
        ),
        "refill_probability": (
            agent.suppressant_refill_probability if switch.suppressant_refill else 1
        ),
        "repair_probability": agent.repair_probability if switch.repair else 1,
        "degrade_probability": agent.degrade_probability if switch.degrade else 1,
        "critical_probability": (
            agent.critical_error_probability if switch.critical_error else 0
        ),
        "switch_probability": agent.tank_switch_probability
        if switch.tank_switch
        else 1,
        "equipment_bonus": agent.equipment_states,
        "capacity_at_start": agent.initial_capacity,
        "tanks": agent.possible_capacities,
        "tank_cumulative": np.cumsum(agent.capacity_probabilities, dtype=np.float32),
        "bad_attack_penalty": reward.bad_attack_penalty,
        "termination_reward": reward.termination_reward,
        "termination_kappa": reward.termination_kappa,
    }
    integers = {
        "burnt_out": fire.num_fire_states - 1,
        "fuel_at_start": fire.initial_fuel,
        "pristine": len(agent.equipment_states) - 1,
        "equipment_at_start": agent.initial_equipment_state,
        "max_steps": config.max_steps,
    }
    flags = {
        "uses_fuel": switch.fire_fuel,
        "burnout_clears_fuel": fire.burnout_clears_fuel,
        "localize_putouts": reward.localize_putouts,
        "show_bad_actions": config.show_bad_actions,
        "public": [
            True,
            True,
            config.observe_other_power,
            config.observe_other_suppressant,
        ],
    }
    return {
        **{name: np.asarray(v, np.float32) for name, v in probabilities.items()},
        **{name: np.asarray(v, np.int32) for name, v in integers.items()},
        **{name: np.asarray(v, bool) for name, v in flags.items()},
    }


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


def _rows(what: str, asked: int, needed: int) -> int:
    if asked and asked < needed:
        raise PlatoError(f"This setup has {needed} {what}; {asked} rows are too few.")
    return max(asked, needed)


def _pad(values, rows: int, dtype) -> np.ndarray:
    array = np.asarray(values, dtype)
    return np.concatenate(
        [array, np.zeros((rows - len(array), *array.shape[1:]), dtype)]
    )
