"""What a fire is worth with a crew of its own: exact values by backward induction.

If every agent gave itself to one fire for the rest of the game, a wildfire would fall
apart into small decision problems, one for each fire and its crew: who of them fights
and who refills, by the fire's intensity and their suppressant. There are few of them,
and their values, added up, are what the team earns by keeping to such a division.

Left out: wear of equipment, fuel that runs out, and the reward for ending the game.
Fires that spread couple cells; there are values for both ends, a cell whose neighbours
always burn and one whose neighbours never do.
"""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from plato.domains.wildfire.dynamics import Rules

NOBODY = -1


class Sizes(eqx.Module):
    """The static sizes of the tables."""

    steps: int = eqx.field(static=True)
    burnt_out: int = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    """The most fights that a tank can hold, and one more: none left."""

    @classmethod
    def of(cls, rules: Rules) -> "Sizes":
        drawn = np.diff(np.asarray(rules.tank_cumulative), prepend=0.0) > 0
        tanks = np.asarray(rules.tanks)[drawn & (float(rules.switch_probability) > 0)]
        full = max([float(rules.capacity_at_start), *tanks.tolist()])
        full += float(jnp.max(rules.equipment_bonus[:, 0]))
        most = max(full, float(jnp.max(rules.suppressant_at_start)), 1.0)
        return cls(int(rules.max_steps), int(rules.burnt_out), math.ceil(most) + 1)


class Crews(eqx.Module):
    """Fires and who gives himself to them."""

    fire: Int[Array, " crew"]
    members: Int[Array, "crew member"]
    """In the order of agents; NOBODY where a crew is smaller."""

    @property
    def size(self) -> int:
        return self.members.shape[1]


class Values(eqx.Module):
    """Expected worth of fires with their crews, by the number of steps to go.

    The last axis goes through the levels of suppressant of all members.
    """

    fed: Float[Array, "togo crew intensity levels"]
    """As if the neighbours of the cell always burned."""
    alone: Float[Array, "togo crew intensity levels"]
    """As if fire never came over."""


@eqx.filter_jit
def values(rules: Rules, sizes: Sizes, crews: Crews) -> Values:
    """The values of all crews, at both ends of what spread can do."""
    inflow = spread_into(rules).sum(axis=1)
    return Values(
        fed=crew_values(rules, sizes, crews, inflow),
        alone=crew_values(rules, sizes, crews, jnp.zeros_like(inflow)),
    )


def crew_values(
    rules: Rules, sizes: Sizes, crews: Crews, inflow: Float[Array, " task"]
) -> Float[Array, "togo crew intensity levels"]:
    """Backward induction, with the equipment and tanks that agents start with."""
    fire, size = crews.fire, rules.size[crews.fire][:, None]
    team = ways(crews.size)
    attack = power_of(rules, crews) @ team.T
    matched = attack >= size
    shrinks = jnp.where(matched, suppression(rules, attack - size), 0.0)
    grows = jnp.where(
        matched[:, None, :],
        0.0,
        growth_at(rules, jnp.arange(1, sizes.burnt_out))[None, :, None],
    )
    fighters = jnp.broadcast_to(team.sum(axis=1)[None, :], attack.shape)
    earned = shrinks * share_of_putout(rules, fighters)
    earned *= rules.putout_reward[fire][:, None]
    ignites = jnp.clip(rules.ignition_probability + inflow, 0.0, 1.0)[fire][:, None]
    lost = rules.burnout_reward[fire][:, None, None, None]
    armed = _armed(sizes.levels, crews.size)[None, None, :, :]
    moves = _moves(rules, sizes, crews)
    # crew, intensity, levels, who fights: the axes of everything below.
    shrinks, grows = shrinks[:, None, None, :], grows[:, :, None, :]

    def before(after: Float[Array, "crew intensity levels"], _):
        then = expected(after, moves)
        lit = then[jnp.arange(fire.shape[0]), rules.ignition_temp[fire]]
        out = ignites[:, :, None] * lit + (1 - ignites[:, :, None]) * then[:, 0]
        # At each intensity from 1 up: one less, the same, one more.
        less = jnp.concatenate([out[:, None], then[:, 1:-2]], axis=1)
        more = jnp.concatenate(
            [then[:, 2:-1], jnp.broadcast_to(lost, out[:, None].shape)], axis=1
        )
        value = shrinks * less + grows * more + (1 - shrinks - grows) * then[:, 1:-1]
        value = value.at[:, 0].add(earned[:, None, :])
        best = jnp.max(jnp.where(armed, value, -jnp.inf), axis=3)
        # Where nothing burns all rest, the first of the ways.
        rest = out[:, None, :, 0]
        now = jnp.concatenate([rest, best, jnp.zeros_like(rest)], axis=1)
        return now, now

    shape = (fire.shape[0], sizes.burnt_out + 1, sizes.levels**crews.size)
    end = jnp.zeros(shape)
    _, earlier = jax.lax.scan(before, end, None, length=sizes.steps)
    return jnp.concatenate([end[None], earlier])


def expected(
    after: Float[Array, "crew intensity levels"],
    moves: Float[Array, "crew member 2 now level"],
) -> Float[Array, "crew intensity levels_now ways"]:
    """The expectation over the members' next levels, for each way to fight or rest.

    `moves` has, for resting and for fighting, the odds of the next level from some
    levels now.
    """
    crew, members, _, now, level = moves.shape
    rows = after.shape[1]
    value = after
    for member in range(members):
        value = value.reshape(crew, rows, level, -1)
        value = jnp.einsum("cilr,cwnl->cirnw", value, moves[:, member])
    value = value.reshape(crew, rows, *(now, 2) * members)
    axes = [2 + 2 * m for m in range(members)] + [3 + 2 * m for m in range(members)]
    value = value.transpose(0, 1, *axes)
    return value.reshape(crew, rows, now**members, 2**members)


def ways(members: int) -> Float[Array, "ways member"]:
    """Who fights, in each of the ways a crew can divide itself; nobody first."""
    return jnp.asarray(list(itertools.product((0.0, 1.0), repeat=members)))


def _armed(levels: int, members: int) -> Bool[Array, "levels ways"]:
    """Whether all who fight have something to fight with."""
    level = np.asarray(list(itertools.product(range(levels), repeat=members)))
    fights = np.asarray(list(itertools.product((False, True), repeat=members)))
    return jnp.asarray(((level[:, None, :] > 0) | ~fights[None, :, :]).all(axis=2))


def _moves(
    rules: Rules, sizes: Sizes, crews: Crews
) -> Float[Array, "crew member 2 now level"]:
    """Of every member, from every level; who is not there stays where he is."""
    stay = jnp.eye(sizes.levels)
    bonus = rules.equipment_bonus[rules.equipment_at_start, 0]
    full = refill_odds(rules, sizes.levels, rules.capacity_at_start, bonus)
    both = jnp.stack([rest(rules, stay, full[None, :]), fight(rules, stay)])
    there = (crews.members != NOBODY)[:, :, None, None, None]
    return jnp.where(there, both[None, None], stay[None, None, None])


def rest(
    rules: Rules, level: Float[Array, "row level"], full: Float[Array, "#row level"]
) -> Float[Array, "row level"]:
    """Where a step without a fight leaves agents that are at a level."""
    filled = jnp.broadcast_to(full, level.shape)
    return rules.refill_probability * filled + (1 - rules.refill_probability) * level


def fight(rules: Rules, level: Float[Array, "row level"]) -> Float[Array, "row level"]:
    """Where a fight leaves them: one level down, if it is used."""
    empty = level[:, :1] + level[:, 1:2]
    used = jnp.concatenate([empty, level[:, 2:], jnp.zeros_like(empty)], axis=1)
    return rules.use_probability * used + (1 - rules.use_probability) * level


def refill_odds(
    rules: Rules, levels: int, capacity: Float[Array, ""], bonus: Float[Array, ""]
) -> Float[Array, " level"]:
    """Where a refill that succeeds leaves an agent, with the tank that it may bring."""
    tanks = jnp.diff(rules.tank_cumulative, prepend=0.0)

    def onto(amount: Float[Array, " *row"]) -> Float[Array, "*row level"]:
        return jax.nn.one_hot(level_of(amount, levels), levels)

    switched = jnp.sum(tanks[:, None] * onto(rules.tanks + bonus), axis=0)
    keeps = 1 - rules.switch_probability
    return rules.switch_probability * switched + keeps * onto(capacity + bonus)


def level_of(suppressant: Float[Array, " *row"], levels: int) -> Int[Array, " *row"]:
    """Fights left: a fight needs more than 0 and takes 1."""
    return jnp.clip(jnp.ceil(suppressant), 0, levels - 1).astype(jnp.int32)


def power_of(rules: Rules, crews: Crews) -> Float[Array, "crew member"]:
    """The power of each member."""
    power = rules.power + rules.equipment_bonus[rules.equipment_at_start, 1]
    return jnp.where(crews.members == NOBODY, 0.0, power[crews.members])


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
