"""What a fire and a firefighter are worth when help can be hired at a price.

A wildfire is a few fires and a few agents, tied together only by the rule that an agent
does one thing at a time (and by spread). Let every fight of agent n cost its fire a
price instead, and pay it to the agent: then each fire and each agent is a small
decision problem of its own, solved by backward induction. For any prices the values
add up to a bound on what the team can expect; the right prices make it least (the
Lagrangian relaxation of a weakly coupled process).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from plato.domains.wildfire.dynamics import Rules

ROUNDS = 300
"""Steps of the search for prices; more of them change no price that matters."""
FASTEST = 0.1
FIRST_LOG_PRICE = -1.0


class Sizes(eqx.Module):
    """The static sizes of the tables."""

    steps: int = eqx.field(static=True)
    burnt_out: int = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    """The most fights that a tank can hold."""


class Values(eqx.Module):
    """Expected worth by the number of steps to go, from 0 up."""

    fed: Float[Array, "togo task intensity"]
    """Of a cell, as if its neighbours that can burn always burned."""
    alone: Float[Array, "togo task intensity"]
    """Of a cell, as if fire never came over."""
    agent: Float[Array, "togo agent level"]
    """Of an agent with so many fights left."""


@eqx.filter_jit
def values(rules: Rules, sizes: Sizes) -> Values:
    """The values at the prices that make the bound least."""
    price = best_prices(rules, sizes)
    return Values(
        fed=fire_values(rules, sizes, price, spread_into(rules).sum(axis=1)),
        alone=fire_values(rules, sizes, price, jnp.zeros(rules.size.shape)),
        agent=agent_values(rules, sizes, price),
    )


def best_prices(rules: Rules, sizes: Sizes) -> Float[Array, " agent"]:
    """A price for a fight of each agent: the bound, convex in them, at its least."""
    intensity = jnp.where(rules.lit_at_start, rules.ignition_temp, 0)
    level = level_of(rules.suppressant_at_start, sizes.levels)
    inflow = spread_into(rules).sum(axis=1)

    def bound(log_price: Float[Array, " agent"]) -> Float[Array, ""]:
        price = jnp.exp(log_price)
        fires = fire_values(rules, sizes, price, inflow)[-1]
        agents = agent_values(rules, sizes, price)[-1]
        return jnp.sum(at(fires, intensity)) + jnp.sum(at(agents, level))

    optimiser = optax.adam(optax.cosine_decay_schedule(FASTEST, ROUNDS))

    def improve(carry, _):
        log_price, memory = carry
        step, memory = optimiser.update(jax.grad(bound)(log_price), memory)
        return (log_price + step, memory), None

    # Logarithms keep prices above 0: suppressant that is free would be wasted on
    # fights that change nothing.
    start = jnp.full(rules.power.shape, FIRST_LOG_PRICE)
    carry = (start, optimiser.init(start))
    (log_price, _), _ = jax.lax.scan(improve, carry, None, length=ROUNDS)
    return jnp.exp(log_price)


class Crews(eqx.Module):
    """What each cell can hire: nobody, the cheapest agent, the two cheapest, …"""

    power: Float[Array, "task crew"]
    cost: Float[Array, "task crew"]
    share: Float[Array, "task crew"]
    """The part of a put-out's reward that reaches the team."""


def crews(rules: Rules, price: Float[Array, " agent"]) -> Crews:
    """Agents in the order of their price for a unit of power, with the equipment that
    they start with; with equal powers no other crew can be better."""
    power = rules.power + rules.equipment_bonus[rules.equipment_at_start, 1]
    bonus = rules.equipment_bonus[rules.equipment_at_start, 2]
    able = in_range(rules, rules.reach + bonus).T & (power > 0)[None, :]
    per_unit = jnp.where(able, (price / jnp.where(power > 0, power, 1.0))[None, :], 0.0)
    order = jnp.argsort(jnp.where(able, per_unit, jnp.inf), axis=1)

    def adding_up(each: Float[Array, " agent"]) -> Float[Array, "task crew"]:
        mine = jnp.where(jnp.take_along_axis(able, order, axis=1), each[order], 0.0)
        return jnp.pad(jnp.cumsum(mine, axis=1), ((0, 0), (1, 0)))

    members = adding_up(jnp.ones_like(power))
    return Crews(adding_up(power), adding_up(price), share_of_putout(rules, members))


def fire_values(
    rules: Rules,
    sizes: Sizes,
    price: Float[Array, " agent"],
    inflow: Float[Array, " task"],
) -> Float[Array, "togo task intensity"]:
    """Every cell's own decision problem: whom to hire, at which intensity and when."""
    crew = crews(rules, price)
    matched = crew.power >= rules.size[:, None]
    extra = crew.power - rules.size[:, None]
    shrinks = jnp.where(matched, suppression(rules, extra), 0.0)[:, :, None]
    intensities = jnp.arange(1, sizes.burnt_out)
    growth = growth_at(rules, intensities)
    grows = jnp.where(matched[:, :, None], 0.0, growth[None, None, :])
    ignites = jnp.clip(rules.ignition_probability + inflow, 0.0, 1.0)
    earned = crew.share * rules.putout_reward[:, None]

    def before(after: Float[Array, "task intensity"], _):
        lit = at(after, rules.ignition_temp)
        out = ignites * lit + (1 - ignites) * after[:, 0]
        # At each intensity from 1 up: one less, the same, one more.
        less = jnp.concatenate([out[:, None], after[:, 1:-2]], axis=1)[:, None, :]
        same = after[:, None, 1:-1]
        more = jnp.concatenate([after[:, 2:-1], rules.burnout_reward[:, None]], axis=1)
        value = shrinks * less + grows * more[:, None, :]
        value += (1 - shrinks - grows) * same - crew.cost[:, :, None]
        value = value.at[:, :, 0].add(shrinks[:, :, 0] * earned)
        best = jnp.max(value, axis=1)
        gone = jnp.zeros((best.shape[0], 1))
        value_now = jnp.concatenate([out[:, None], best, gone], axis=1)
        return value_now, value_now

    end = jnp.zeros((rules.size.shape[0], sizes.burnt_out + 1))
    _, earlier = jax.lax.scan(before, end, None, length=sizes.steps)
    return jnp.concatenate([end[None], earlier])


def agent_values(
    rules: Rules, sizes: Sizes, price: Float[Array, " agent"]
) -> Float[Array, "togo agent level"]:
    """Every agent's own decision problem: earn its price by a fight, or refill."""
    bonus = rules.equipment_bonus[rules.equipment_at_start, 0]
    full = refill_odds(rules, sizes.levels, rules.capacity_at_start, bonus)

    def before(after: Float[Array, "agent level"], _):
        filled = jnp.sum(after * full[None, :], axis=1)[:, None]
        rest = (
            rules.refill_probability * filled + (1 - rules.refill_probability) * after
        )
        spent, kept = after[:, :-1], after[:, 1:]
        fight = rules.use_probability * spent + (1 - rules.use_probability) * kept
        best = jnp.maximum(fight + price[:, None], rest[:, 1:])
        value_now = jnp.concatenate([rest[:, :1], best], axis=1)
        return value_now, value_now

    end = jnp.zeros((rules.power.shape[0], sizes.levels + 1))
    _, earlier = jax.lax.scan(before, end, None, length=sizes.steps)
    return jnp.concatenate([end[None], earlier])


def refill_odds(
    rules: Rules, levels: int, capacity: Float[Array, ""], bonus: Float[Array, ""]
) -> Float[Array, " level"]:
    """Where a refill that succeeds leaves an agent, with the tank that it may bring."""
    tanks = jnp.diff(rules.tank_cumulative, prepend=0.0)

    def onto(amount: Float[Array, " *row"]) -> Float[Array, "*row level"]:
        return jax.nn.one_hot(level_of(amount, levels), levels + 1)

    switched = jnp.sum(tanks[:, None] * onto(rules.tanks + bonus), axis=0)
    keeps = 1 - rules.switch_probability
    return rules.switch_probability * switched + keeps * onto(capacity + bonus)


def level_of(suppressant: Float[Array, " *row"], levels: int) -> Int[Array, " *row"]:
    """Fights left: a fight needs more than 0 and takes 1."""
    return jnp.clip(jnp.ceil(suppressant), 0, levels).astype(jnp.int32)


def suppression(rules: Rules, extra: Float[Array, " *row"]) -> Float[Array, " *row"]:
    """The probability that a fire shrinks under so much more power than its size."""
    probability = rules.suppression_probability + extra * rules.suppression_bonus
    return jnp.clip(probability, 0.0, 1.0)


def growth_at(rules: Rules, intensity: Int[Array, " *row"]) -> Float[Array, " *row"]:
    """The probability that a fire that is not matched grows."""
    last = intensity == rules.burnt_out - 1
    return jnp.where(last, rules.burnout_probability, rules.growth_probability)


def share_of_putout(
    rules: Rules, fighters: Float[Array, " *row"]
) -> Float[Array, " *row"]:
    """The part of a put-out's reward that the average agent gets."""
    team = jnp.maximum(jnp.sum(rules.roster), 1)
    return jnp.where(rules.localize_putouts, fighters / team, 1.0)


def spread_into(rules: Rules) -> Float[Array, "task 4"]:
    """The rate at which fire comes into each cell from its four sides."""
    own = jnp.arange(rules.size.shape[0])[:, None]
    return jnp.where(rules.neighbours != own, rules.spread_rates[None, :], 0.0)


def in_range(rules: Rules, reach: Float[Array, " agent"]) -> Bool[Array, "agent task"]:
    """The cells that agents could fight if they burned."""
    offset = jnp.abs(rules.position[:, None, :] - rules.cell[None, :, :])
    near = jnp.max(offset, axis=2) <= reach[:, None]
    return near & rules.roster[:, None] & (rules.size > 0)[None, :]


def at(
    table: Float[Array, "row column"], column: Int[Array, " row"]
) -> Float[Array, " row"]:
    """One entry of each row."""
    return jnp.take_along_axis(table, column[:, None], axis=1)[:, 0]
