"""The rules of wildfire once more, told cell by cell in plain Python.

Slow, and written without a look at `plato.domains.wildfire.dynamics`: a second opinion
for configurations that no recording covers. Whole grids, dictionaries, float32 numbers.
"""

import math

import numpy as np

from plato.domains.wildfire.config import WildfireConfig

f32 = np.float32


class GridSimulator:
    def __init__(self, config: WildfireConfig) -> None:
        self.config = config
        fire, agent = config.fire, config.agent
        self.cells = [
            (y, x) for y in range(config.grid_height) for x in range(config.grid_width)
        ]
        self.fires, self.intensity, self.fuel = {}, {}, {}
        for y, x in self.cells:
            size, lit = fire.fire_types[y][x], fire.lit[y][x]
            self.fires[y, x] = size if lit else -size
            self.intensity[y, x] = fire.ignition_temp[y][x] if lit else 0
            self.fuel[y, x] = fire.initial_fuel if size else 0
        initial = agent.initial_suppressant
        count = len(agent.agents)
        amounts = [initial] * count if isinstance(initial, int) else list(initial)
        self.suppressant = [f32(amount) for amount in amounts]
        self.capacity = [f32(agent.initial_capacity)] * count
        self.equipment = [agent.initial_equipment_state] * count
        self.burnouts, self.over = 0, False

    def bonus(self, n: int, column: int) -> float:
        return self.config.agent.equipment_states[self.equipment[n]][column]

    def can_fight(self, n: int, cell: tuple[int, int]) -> bool:
        (ay, ax), (y, x) = self.config.agent.agents[n], cell
        distance = max(abs(ay - y), abs(ax - x))
        reach = self.config.agent.attack_range[n] + self.bonus(n, 2)
        armed = bool(self.suppressant[n] > 0)
        return self.fires[cell] > 0 and distance <= reach and armed

    def step(self, actions, field, agent_numbers):
        """actions: a cell or None per agent; field[y, x][3]; agent_numbers[n][5]."""
        config, switch = self.config, self.config.stochastic
        agent, reward = config.agent, config.reward
        team = range(len(agent.agents))
        valid = {
            n: actions[n]
            for n in team
            if actions[n] is not None and self.can_fight(n, actions[n])
        }
        power = dict.fromkeys(self.cells, f32(0))
        for n, cell in valid.items():
            power[cell] += f32(agent.fire_reduction_power[n] + self.bonus(n, 1))
        for n in team:
            self._agent_phases(n, n in valid, actions[n] is None, agent_numbers[n])
        burnt = [c for c in self.cells if self._grows(c, power[c], field[c][0])]
        out = [c for c in self.cells if self._shrinks(c, power[c], field[c][1])]
        if not self.over:
            self._spread(field)
        ends = all(size <= 0 for size in self.fires.values()) and (
            not switch.fire_fuel or sum(self.fuel.values()) <= 0
        )

        def worth(cell):
            return f32(reward.fire_rewards[cell[0]][cell[1]])

        rewards = []
        for n in team:
            total = f32(0)
            for c in out:
                if not reward.localize_putouts or valid.get(n) == c:
                    total += worth(c)
            for c in burnt:
                scaled = reward.burnout_penalty_scaled
                total += -worth(c) if scaled else f32(reward.burnout_penalty)
            if actions[n] is not None and n not in valid:
                total += f32(reward.bad_attack_penalty)
            if ends and not self.over:
                loss = reward.termination_kappa * math.log(self.burnouts + 1)
                total += f32(max(0.0, reward.termination_reward - loss))
            rewards.append(total)
        self.burnouts += len(burnt)
        self.over = self.over or ends
        return rewards, len(burnt), len(out)

    def _agent_phases(self, n, fought, idle, u):
        agent, switch = self.config.agent, self.config.stochastic
        uses = not switch.suppressant_decrease or u[0] < f32(
            agent.suppressant_decrease_probability
        )
        self.suppressant[n] -= f32(fought and uses)
        self.suppressant[n] = max(self.suppressant[n], f32(0))
        self._wear(n, u[1])
        refills = not switch.suppressant_refill or u[2] < f32(
            agent.suppressant_refill_probability
        )
        if idle and refills:
            self.suppressant[n] = self.capacity[n] + f32(self.bonus(n, 0))
            self._switch_tank(n, u[3], u[4])

    def _wear(self, n, u):
        agent, switch = self.config.agent, self.config.stochastic
        best, level = len(agent.equipment_states) - 1, self.equipment[n]
        if level == 0:
            if not switch.repair or u < f32(agent.repair_probability):
                self.equipment[n] = best
        elif (
            level == best
            and switch.critical_error
            and u < f32(agent.critical_error_probability)
        ):
            self.equipment[n] = 0
        elif not switch.degrade or u < f32(agent.degrade_probability):
            self.equipment[n] = level - 1

    def _switch_tank(self, n, draw, chance):
        agent, switch = self.config.agent, self.config.stochastic
        cumulative, index = f32(0), len(agent.possible_capacities) - 1
        for i, p in enumerate(agent.capacity_probabilities):
            cumulative += f32(p)
            if cumulative >= draw:
                index = i
                break
        if not switch.tank_switch or chance < f32(agent.tank_switch_probability):
            missing = self.suppressant[n] - self.capacity[n]
            self.capacity[n] = f32(agent.possible_capacities[index])
            self.suppressant[n] = self.capacity[n] + missing

    def _grows(self, cell, power, u) -> bool:
        """Returns whether the cell burnt out."""
        fire, switch = self.config.fire, self.config.stochastic
        size = self.fires[cell]
        if size <= 0 or self.intensity[cell] <= 0 or power >= size:
            return False
        if self.intensity[cell] == fire.num_fire_states - 2:
            special = switch.special_burnout_probability
            chance = (
                fire.burnout_probability
                if special
                else fire.intensity_increase_probability
            )
        else:
            chance = fire.intensity_increase_probability if switch.fire_increase else 1
        if not u < f32(chance):
            return False
        self.intensity[cell] += 1
        if self.intensity[cell] < fire.num_fire_states - 1:
            return False
        self.fires[cell] = -size
        left = 0 if fire.burnout_clears_fuel else max(self.fuel[cell] - 1, 0)
        self.fuel[cell] = left
        return True

    def _shrinks(self, cell, power, u) -> bool:
        """Returns whether the cell was put out."""
        fire, switch = self.config.fire, self.config.stochastic
        size = self.fires[cell]
        if size <= 0 or self.intensity[cell] <= 0 or power < size:
            return False
        chance = f32(1)
        if switch.fire_decrease:
            extra = (power - f32(size)) * f32(fire.extra_power_decrease_bonus)
            chance = f32(fire.intensity_decrease_probability) + extra
        if not u < min(max(chance, f32(0)), f32(1)):
            return False
        self.intensity[cell] -= 1
        if self.intensity[cell] > 0:
            return False
        self.fires[cell] = -size
        self.fuel[cell] -= 1
        return True

    def _spread(self, field) -> None:
        fire, switch = self.config.fire, self.config.stochastic
        lit = {cell for cell in self.cells if self.fires[cell] > 0}
        for y, x in self.cells:
            cell = y, x
            fuelled = not switch.fire_fuel or self.fuel[cell] > 0
            if self.fires[cell] >= 0 or self.intensity[cell] != 0 or not fuelled:
                continue
            chance = f32(0)
            sides = ((y - 1, x), (y, x + 1), (y + 1, x), (y, x - 1))
            for side, neighbour in enumerate(sides):
                if switch.fire_spread and neighbour in lit:
                    chance += f32(self._rate(side))
            if switch.random_fire_ignition:
                chance += f32(fire.random_ignition_probability)
            if field[cell][2] < chance:
                self.fires[cell] = -self.fires[cell]
                self.intensity[cell] = fire.ignition_temp[y][x]

    def _rate(self, side: int) -> float:
        fire = self.config.fire
        if not self.config.stochastic.realistic_fire_spread:
            return fire.base_spread_rate
        if fire.base_spread_rate == 0:
            return 0.0
        angle = side * math.pi / 2
        stretch = 1 - fire.base_spread_rate / fire.max_spread_rate
        toward = math.cos(angle - fire.wind_direction)
        return (fire.base_spread_rate / fire.cell_size) / (1 - toward * stretch)
