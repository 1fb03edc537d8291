"""Wildfire as an open game: fires are tasks, agents with suppressant are present."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from plato.domains.wildfire import dynamics
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.dynamics import Rules, WildfireNoise, WildfireState
from plato.domains.wildfire.odds import odds_in_force
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
    def within_reach(self) -> Bool[Array, "agent task"]:
        return dynamics.ever_offered(self.rules)

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
            roster=rules.roster,
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
    odds = odds_in_force(config)
    probabilities = {
        "growth_probability": odds.growth,
        "burnout_probability": odds.burnout,
        "suppression_probability": odds.suppression,
        "suppression_bonus": odds.suppression_bonus,
        "spread_rates": odds.spread,
        "ignition_probability": odds.ignition,
        "use_probability": odds.use,
        "refill_probability": odds.refill,
        "repair_probability": odds.repair,
        "degrade_probability": odds.degrade,
        "critical_probability": odds.critical,
        "switch_probability": odds.switch,
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
        "uses_fuel": config.stochastic.fire_fuel,
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


def _rows(what: str, asked: int, needed: int) -> int:
    if asked and asked < needed:
        raise PlatoError(f"This setup has {needed} {what}; {asked} rows are too few.")
    return max(asked, needed)


def _pad(values, rows: int, dtype) -> np.ndarray:
    array = np.asarray(values, dtype)
    return np.concatenate(
        [array, np.zeros((rows - len(array), *array.shape[1:]), dtype)]
    )
