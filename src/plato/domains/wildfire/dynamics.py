"""The rules of wildfire: a pure function of (rules, state, actions, noise).

One function for each phase of a step, in the order in which they happen. Cells that can
never burn are not stored: a task row is a cell that can carry a fire, row by row of the
grid, so a wildfire task keeps its row for good and `burning` says whether it exists.

An event with probability p happens when its number, uniform on [0, 1), is less than p;
a rule that is switched off is therefore a probability of 1 or 0 in `Rules`.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.game import NOOP, Outcome

FIELD_NUMBERS = 3
AGENT_NUMBERS = 5


class Rules(eqx.Module):
    """A configuration as arrays, with its switches folded into the probabilities."""

    # Cells that can burn. Rows beyond them have size 0.
    cell: Float[Array, "task 2"]
    size: Int[Array, " task"]
    lit_at_start: Bool[Array, " task"]
    ignition_temp: Int[Array, " task"]
    putout_reward: Float[Array, " task"]
    burnout_reward: Float[Array, " task"]
    neighbours: Int[Array, "task 4"]
    """Rows of the cells north, east, south and west; its own row: no such cell."""

    # Agents. Rows beyond them are not on the roster.
    roster: Bool[Array, " agent"]
    position: Float[Array, "agent 2"]
    power: Float[Array, " agent"]
    reach: Float[Array, " agent"]
    suppressant_at_start: Float[Array, " agent"]

    burnt_out: Int[Array, ""]
    """The intensity of a burnt-out cell."""
    growth_probability: Float[Array, ""]
    burnout_probability: Float[Array, ""]
    suppression_probability: Float[Array, ""]
    suppression_bonus: Float[Array, ""]
    spread_rates: Float[Array, " 4"]
    ignition_probability: Float[Array, ""]
    uses_fuel: Bool[Array, ""]
    fuel_at_start: Int[Array, ""]
    burnout_clears_fuel: Bool[Array, ""]

    use_probability: Float[Array, ""]
    refill_probability: Float[Array, ""]
    equipment_bonus: Float[Array, "equipment 3"]
    """(capacity, power, range) of each equipment state, damaged first."""
    pristine: Int[Array, ""]
    equipment_at_start: Int[Array, ""]
    repair_probability: Float[Array, ""]
    degrade_probability: Float[Array, ""]
    critical_probability: Float[Array, ""]
    capacity_at_start: Float[Array, ""]
    switch_probability: Float[Array, ""]
    tanks: Float[Array, " tank"]
    tank_cumulative: Float[Array, " tank"]

    bad_attack_penalty: Float[Array, ""]
    termination_reward: Float[Array, ""]
    termination_kappa: Float[Array, ""]
    localize_putouts: Bool[Array, ""]
    show_bad_actions: Bool[Array, ""]
    public: Bool[Array, " 4"]
    max_steps: Int[Array, ""]


class WildfireState(eqx.Module):
    """The state of one game."""

    burning: Bool[Array, " task"]
    intensity: Int[Array, " task"]
    fuel: Int[Array, " task"]
    suppressant: Float[Array, " agent"]
    capacity: Float[Array, " agent"]
    equipment: Int[Array, " agent"]
    time: Int[Array, ""]
    burnouts: Int[Array, ""]
    over: Bool[Array, ""]


class WildfireNoise(eqx.Module):
    """The numbers of one step, uniform on [0, 1); of many steps or games, stacked."""

    field: Float[Array, "*batch task 3"]
    agent: Float[Array, "*batch agent 5"]


def draw_noise(key: PRNGKeyArray, agents: int, tasks: int) -> WildfireNoise:
    """Draws a step's numbers so that more rows leave those of the others alone.

    A row holds the numbers of one cell and of one agent. Counter-based generators give
    the first rows the same numbers whatever the number of rows: capacity has no say.
    """
    rows, columns = max(agents, tasks), FIELD_NUMBERS + AGENT_NUMBERS
    # In one row: small axes are unrolled, which takes seconds to compile.
    numbers = jax.random.uniform(key, (rows * columns,)).reshape(rows, columns)
    return WildfireNoise(
        numbers[:tasks, :FIELD_NUMBERS], numbers[:agents, FIELD_NUMBERS:]
    )


def initial_state(rules: Rules) -> WildfireState:
    """The start of every episode."""
    everyone = jnp.zeros_like(rules.suppressant_at_start)
    return WildfireState(
        burning=rules.lit_at_start,
        intensity=jnp.where(rules.lit_at_start, rules.ignition_temp, 0),
        fuel=jnp.where(rules.size > 0, rules.fuel_at_start, 0),
        suppressant=rules.suppressant_at_start,
        capacity=everyone + rules.capacity_at_start,
        equipment=jnp.zeros(everyone.shape, jnp.int32) + rules.equipment_at_start,
        time=jnp.zeros((), jnp.int32),
        burnouts=jnp.zeros((), jnp.int32),
        over=jnp.zeros((), bool),
    )


def reachable(rules: Rules, state: WildfireState) -> Bool[Array, "agent task"]:
    """The burning cells each agent can fight: in range, with suppressant left."""
    reach = rules.reach + equipment_bonus(rules, state.equipment)[:, 2]
    armed = rules.roster & (state.suppressant > 0)
    return _in_range(rules, reach) & armed[:, None] & state.burning[None, :]


def ever_offered(rules: Rules) -> Bool[Array, "agent task"]:
    """The cells that each agent may be offered in some state."""
    reach = rules.reach + rules.equipment_bonus[:, 2].max()
    near = _in_range(rules, reach) | rules.show_bad_actions
    return near & rules.roster[:, None] & (rules.size > 0)[None, :]


def _in_range(rules: Rules, reach: Float[Array, " agent"]) -> Array:
    # Floats on purpose: max(|a - b|, |c - d|) of integers is miscompiled for NVIDIA's
    # Hopper GPUs (seen with jax 0.11.2 on an H200; `plato verify` finds it).
    offset = jnp.abs(rules.position[:, None, :] - rules.cell[None, :, :])
    distance = jnp.maximum(offset[..., 0], offset[..., 1])
    return distance <= reach[:, None]


def offered(rules: Rules, state: WildfireState) -> Bool[Array, "agent task"]:
    """The cells each agent is offered: those in reach, or all that burn."""
    every = rules.roster[:, None] & state.burning[None, :]
    return jnp.where(rules.show_bad_actions, every, reachable(rules, state))


def transition(
    rules: Rules,
    state: WildfireState,
    actions: Int[Array, " agent"],
    noise: WildfireNoise,
) -> tuple[WildfireState, Outcome]:
    """One step: all agents act at once, then the fires move on."""
    before = state
    targets = actions[:, None] - 1 == jnp.arange(rules.size.shape[0])[None, :]
    hits = targets & reachable(rules, state)
    fights = hits.any(axis=1)
    attack = attack_power(rules, state, hits)

    state = use_suppressant(rules, state, fights, noise.agent[:, 0])
    state = wear_equipment(rules, state, noise.agent[:, 1])
    idle = rules.roster & (actions == NOOP)
    state, refilled = refill(rules, state, idle, noise.agent[:, 2])
    state = switch_tank(rules, state, refilled, noise.agent[:, 3], noise.agent[:, 4])
    state, burnouts = grow(rules, state, attack, noise.field[:, 0])
    state, putouts = suppress(rules, state, attack, noise.field[:, 1])
    state, new_fires = spread(rules, state, noise.field[:, 2])
    state, ended = end(rules, state)

    reward = rewards(rules, hits, putouts, burnouts)
    reward += jnp.where((actions != NOOP) & ~fights, rules.bad_attack_penalty, 0.0)
    reward += jnp.where(ended, termination_bonus(rules, before.burnouts), 0.0)

    ran_dry = (before.suppressant > 0) & (state.suppressant <= 0)
    events = {
        "burnouts": count(burnouts),
        "putouts": count(putouts),
        "new_fires": count(new_fires),
        "zero_suppressant": count(ran_dry),
    }
    state = replace(
        state, time=state.time + 1, burnouts=state.burnouts + events["burnouts"]
    )
    outcome = Outcome(
        reward=jnp.where(rules.roster, reward, 0.0),
        terminated=state.over,
        truncated=~state.over & (state.time >= rules.max_steps),
        events=events,
    )
    return state, outcome


def equipment_bonus(
    rules: Rules, equipment: Int[Array, " agent"]
) -> Float[Array, "agent 3"]:
    """The (capacity, power, range) bonuses of each agent's equipment."""
    return rules.equipment_bonus[equipment]


def attack_power(
    rules: Rules, state: WildfireState, hits: Bool[Array, "agent task"]
) -> Float[Array, " task"]:
    """The power that meets each cell, summed over the agents that fight it."""
    power = rules.power + equipment_bonus(rules, state.equipment)[:, 1]
    return jnp.sum(jnp.where(hits, power[:, None], 0.0), axis=0)


def use_suppressant(
    rules: Rules,
    state: WildfireState,
    fights: Bool[Array, " agent"],
    number: Float[Array, " agent"],
) -> WildfireState:
    """Phase 1: a fight takes one unit, if its number says so."""
    uses = fights & (number < rules.use_probability)
    # Everyone is held at 0 here, also one whose last refill, with a large negative
    # bonus, went below.
    return replace(state, suppressant=jnp.maximum(state.suppressant - uses, 0))


def wear_equipment(
    rules: Rules, state: WildfireState, number: Float[Array, " agent"]
) -> WildfireState:
    """Phase 2: damaged equipment is repaired, the rest degrades or fails at once."""
    level = state.equipment
    damaged = level == 0
    # A single equipment state is both damaged and pristine; it stays what it is.
    pristine = (level == rules.pristine) & ~damaged
    repaired = damaged & (number < rules.repair_probability)
    failed = pristine & (number < rules.critical_probability)
    degraded = ~damaged & ~failed & (number < rules.degrade_probability)
    level = jnp.where(degraded, level - 1, level)
    level = jnp.where(failed, 0, level)
    return replace(state, equipment=jnp.where(repaired, rules.pristine, level))


def refill(
    rules: Rules,
    state: WildfireState,
    idle: Bool[Array, " agent"],
    number: Float[Array, " agent"],
) -> tuple[WildfireState, Bool[Array, " agent"]]:
    """Phase 3: an idle agent fills up to its tank and its equipment's bonus."""
    refilled = idle & (number < rules.refill_probability)
    full = state.capacity + equipment_bonus(rules, state.equipment)[:, 0]
    filled = jnp.where(refilled, full, state.suppressant)
    return replace(state, suppressant=filled), refilled


def switch_tank(
    rules: Rules,
    state: WildfireState,
    refilled: Bool[Array, " agent"],
    tank_number: Float[Array, " agent"],
    switch_number: Float[Array, " agent"],
) -> WildfireState:
    """Phase 4: with a refill may come another tank, as full or short as the old one."""
    below = rules.tank_cumulative[None, :] < tank_number[:, None]
    # Rounding may leave the last cumulative value below 1, hence the last tank at most.
    drawn = jnp.minimum(jnp.sum(below, axis=1), rules.tanks.shape[0] - 1)
    switched = refilled & (switch_number < rules.switch_probability)
    capacity = jnp.where(switched, rules.tanks[drawn], state.capacity)
    shift = capacity - state.capacity
    return replace(state, suppressant=state.suppressant + shift, capacity=capacity)


def grow(
    rules: Rules,
    state: WildfireState,
    attack: Float[Array, " task"],
    number: Float[Array, " task"],
) -> tuple[WildfireState, Bool[Array, " task"]]:
    """Phase 5: fires that are not matched grow, and burn out at the last intensity."""
    unmatched = state.burning & (state.intensity > 0) & (attack < rules.size)
    last = state.intensity == rules.burnt_out - 1
    probability = jnp.where(last, rules.burnout_probability, rules.growth_probability)
    grows = unmatched & (number < probability)
    intensity = state.intensity + grows
    burnouts = grows & (intensity >= rules.burnt_out)
    burnt_fuel = jnp.where(rules.burnout_clears_fuel, 0, jnp.maximum(state.fuel - 1, 0))
    state = replace(
        state,
        burning=state.burning & ~burnouts,
        intensity=intensity,
        fuel=jnp.where(burnouts, burnt_fuel, state.fuel),
    )
    return state, burnouts


def suppress(
    rules: Rules,
    state: WildfireState,
    attack: Float[Array, " task"],
    number: Float[Array, " task"],
) -> tuple[WildfireState, Bool[Array, " task"]]:
    """Phase 6: fires that are matched shrink, and are put out at intensity 0."""
    matched = state.burning & (state.intensity > 0) & (attack >= rules.size)
    extra = attack - rules.size
    probability = rules.suppression_probability + extra * rules.suppression_bonus
    shrinks = matched & (number < probability)
    intensity = state.intensity - shrinks
    putouts = shrinks & (intensity <= 0)
    state = replace(
        state,
        burning=state.burning & ~putouts,
        intensity=intensity,
        # Not held at 0, as in the reference: a cell lit without fuel goes below it.
        fuel=state.fuel - putouts,
    )
    return state, putouts


def spread(
    rules: Rules, state: WildfireState, number: Float[Array, " task"]
) -> tuple[WildfireState, Bool[Array, " task"]]:
    """Phase 7: cells catch fire from burning neighbours, or of themselves."""
    fuelled = ~rules.uses_fuel | (state.fuel > 0)
    can_burn = (rules.size > 0) & ~state.burning & (state.intensity == 0) & fuelled
    nearby = state.burning[rules.neighbours]
    rate = jnp.sum(jnp.where(nearby, rules.spread_rates[None, :], 0.0), axis=1)
    ignites = can_burn & ~state.over & (number < rate + rules.ignition_probability)
    state = replace(
        state,
        burning=state.burning | ignites,
        intensity=jnp.where(ignites, rules.ignition_temp, state.intensity),
    )
    return state, ignites


def end(rules: Rules, state: WildfireState) -> tuple[WildfireState, Bool[Array, ""]]:
    """Phase 9: over when nothing burns and, with fuel, nothing is left to burn.

    Over means that all cells are cleared: nothing ever burns again.
    """
    # No cell goes below -1, so that much of each is enough to know the sum's sign.
    fuel = jnp.sum(jnp.minimum(state.fuel, state.fuel.shape[0]))
    spent = ~rules.uses_fuel | (fuel <= 0)
    over = ~state.burning.any() & spent
    return replace(state, over=state.over | over), over & ~state.over


def rewards(
    rules: Rules,
    hits: Bool[Array, "agent task"],
    putouts: Bool[Array, " task"],
    burnouts: Bool[Array, " task"],
) -> Float[Array, " agent"]:
    """Phase 8: all share burnouts; put-outs too, or only those who fought them."""
    earned = jnp.where(putouts, rules.putout_reward, 0.0)
    lost = jnp.sum(jnp.where(burnouts, rules.burnout_reward, 0.0))
    shares = hits | ~rules.localize_putouts
    return jnp.sum(jnp.where(shares, earned[None, :], 0.0), axis=1) + lost


def termination_bonus(rules: Rules, burnouts: Int[Array, ""]) -> Float[Array, ""]:
    """What ending the game is worth, less for every burnout before its last step."""
    loss = rules.termination_kappa * jnp.log(burnouts + 1.0)
    return jnp.maximum(rules.termination_reward - loss, 0.0)


def count(mask: Bool[Array, " row"]) -> Int[Array, ""]:
    return jnp.sum(mask, dtype=jnp.int32)
