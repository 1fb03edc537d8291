"""The assignment planner: who fights what, by expected gain under the known rules.

Each step it divides the team among the fires as if for the rest of the game, by the
exact values of fires with crews of their own (`crews`), and then takes the joint action
that is best for one step followed by that division. So an agent whose own fire is out
can help with another, and the division is made anew in every step. Where no fire
spreads, and up to what `crews` leaves out, that can only improve on the best division
made once and for all.

All divisions and joint actions are weighed (`squads`), so both choices are exact, as
long as they are few: in every shipped setup. The squads of a larger team choose one
after the other, each knowing what the others chose.

It knows the state (equipment, tanks, fuel, time) and the rules, and learns nothing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from plato.domains.wildfire.crews import (
    NOBODY,
    Sizes,
    Values,
    expected,
    fight,
    growth_at,
    level_of,
    refill_odds,
    rest,
    share_of_putout,
    spread_into,
    suppression,
    values,
)
from plato.domains.wildfire.dynamics import (
    Rules,
    WildfireState,
    equipment_bonus,
    reachable,
)
from plato.domains.wildfire.oracle import Oracle
from plato.domains.wildfire.squads import Divisions, Squads, divisions
from plato.game import NOOP

SWEEPS = 2
"""How often every squad chooses its actions, where there is more than one."""


class AssignmentPolicy(Oracle):
    """Assigns agents to fires by expected gain; ties go to the earlier choice."""

    rules: Rules
    options: Divisions
    worth: Values
    sizes: Sizes

    @classmethod
    def from_rules(cls, rules: Rules) -> "AssignmentPolicy":
        """The planner for a game with these rules."""
        sizes = Sizes.of(rules)
        options = divisions(rules, sizes)
        return cls(rules, options, values(rules, sizes, options.crews), sizes)

    def joint_action(self, state: WildfireState) -> Int[Array, " agent"]:
        return self.assign(self._own_rows(state))

    def assign(self, state: WildfireState) -> Int[Array, " agent"]:
        """The joint action for a state."""
        return self.step(self.outlook(state, self.divide(state)))

    def divide(self, state: WildfireState) -> Int[Array, " task"]:
        """The crew of each fire, if everyone kept to one for the rest of the game."""
        crews, unattended = self.options.crews, self.options.unattended
        togo = jnp.maximum(self.rules.max_steps - state.time, 1)
        levels = level_of(state.suppressant, self.sizes.levels)
        there = crews.members != NOBODY
        place = jnp.zeros_like(crews.fire)
        for member in range(crews.size):
            level = jnp.where(there[:, member], levels[crews.members[:, member]], 0)
            place = place * self.sizes.levels + level
        at = (togo, jnp.arange(place.shape[0]), state.intensity[crews.fire], place)
        lit = state.burning.astype(jnp.float32)
        feeding, fed_from = _sources(self.rules, lit, _can_burn(self.rules, state))
        feeding *= jnp.where(state.burning, 1.0, fed_from)
        alone = self.worth.alone[at]
        worth = alone + feeding[crews.fire] * (self.worth.fed[at] - alone)
        gain = worth - worth[unattended][crews.fire]

        def choose(chosen: Int[Array, " task"], squad: Squads):
            attended = squad.crews != unattended[None, :]
            taken = (chosen != unattended)[None, :]
            open_to = (squad.crews != NOBODY) & ~(attended & taken)
            total = jnp.sum(jnp.where(open_to, gain[squad.crews], -jnp.inf), axis=1)
            best = jnp.argmax(total)
            return jnp.where(attended[best], squad.crews[best], chosen), None

        chosen, _ = jax.lax.scan(choose, unattended, self.options.squads)
        return chosen

    def outlook(self, state: WildfireState, chosen: Int[Array, " task"]) -> "Outlook":
        """What one step can lead to, if the fires have these crews after it."""
        rules, levels = self.rules, self.sizes.levels
        togo = jnp.maximum(rules.max_steps - state.time - 1, 0)
        bonus = equipment_bonus(rules, state.equipment)
        level = jax.nn.one_hot(level_of(state.suppressant, levels), levels)
        odds = jax.vmap(refill_odds, in_axes=(None, None, 0, 0))
        full = odds(rules, levels, state.capacity, bonus[:, 0])
        moves = jnp.stack([rest(rules, level, full), fight(rules, level)], axis=1)
        members = self.options.crews.members[chosen]
        there = (members != NOBODY)[:, :, None, None]
        nowhere = jax.nn.one_hot(0, levels)[None, None, None, :]
        moves = jnp.where(there, moves[members], nowhere)[:, :, :, None, :]
        alone = expected(self.worth.alone[togo, chosen], moves)[:, :, 0, :]
        fed = expected(self.worth.fed[togo, chosen], moves)[:, :, 0, :]
        both = jnp.stack([alone, fed - alone], axis=-1)
        now = state.intensity
        above = jnp.minimum(now + 1, rules.burnt_out)
        below, out = jnp.maximum(now - 1, 0), jnp.zeros_like(now)
        rows = jnp.stack([below, now, above, rules.ignition_temp, out], axis=1)
        ahead = both[jnp.arange(now.shape[0])[:, None], rows]
        return Outlook(
            rules=rules,
            state=state,
            reach=reachable(rules, state),
            power=rules.power + bonus[:, 1],
            members=members,
            # What a joint action picks comes first: many are weighed.
            ahead=ahead.swapaxes(1, 2),
        )

    def step(self, outlook: "Outlook") -> Int[Array, " agent"]:
        """The joint action that is best for one step."""
        squads = self.options.squads

        def choose(actions: Int[Array, " agent"], squad: Squads):
            everyone = jnp.tile(actions, (squad.choices.shape[0], 1))
            joint = everyone.at[:, squad.members].set(squad.choices, mode="drop")
            return joint[jnp.argmax(jax.vmap(outlook.gain)(joint))], None

        actions = jnp.full(self.rules.roster.shape, NOOP, jnp.int32)
        for _ in range(1 if squads.members.shape[0] == 1 else SWEEPS):
            actions, _ = jax.lax.scan(choose, actions, squads)
        return actions

    def _own_rows(self, state: WildfireState) -> WildfireState:
        """The state without rows beyond those of the rules."""
        tasks, agents = self.rules.size.shape[0], self.rules.roster.shape[0]
        return WildfireState(
            burning=state.burning[:tasks],
            intensity=state.intensity[:tasks],
            fuel=state.fuel[:tasks],
            suppressant=state.suppressant[:agents],
            capacity=state.capacity[:agents],
            equipment=state.equipment[:agents],
            time=state.time,
            burnouts=state.burnouts,
            over=state.over,
        )


class Outlook(eqx.Module):
    """All that the gain of a joint action depends on."""

    rules: Rules
    state: WildfireState
    reach: Bool[Array, "agent task"]
    power: Float[Array, " agent"]
    members: Int[Array, "task member"]
    """The crew of each fire."""
    ahead: Float[Array, "task ways 5 2"]
    """What a fire is worth after the step, by who of its crew fought anything: if it
    is then one lower, the same, one higher, newly lit, or out; without spread, and how
    much more with it."""

    def gain(self, actions: Int[Array, " agent"]) -> Float[Array, ""]:
        """The expected worth of a joint action; minus infinity if it is not legal."""
        tasks = jnp.arange(self.rules.size.shape[0])
        hits = (actions[:, None] - 1 == tasks[None, :]) & self.reach
        legal = ((actions == NOOP) | hits.any(axis=1)).all()
        fights = (self.members != NOBODY) & (actions != NOOP)[self.members]
        digits = 2 ** jnp.arange(self.members.shape[1])[::-1]
        way = jnp.sum(fights * digits[None, :], axis=1)
        total = jnp.sum(self._fires(hits, self.ahead[tasks, way]))
        return jnp.where(legal, total, -jnp.inf)

    def _fires(
        self,
        hits: Bool[Array, "agent task"],
        ahead: Float[Array, "task 5 2"],
    ) -> Float[Array, " task"]:
        """What each cell is expected to pay in this step and to be worth after it."""
        rules, state = self.rules, self.state
        intensity, burns = state.intensity, state.burning
        attack = jnp.sum(jnp.where(hits, self.power[:, None], 0.0), axis=0)
        matched, extra = attack >= rules.size, attack - rules.size
        shrinks = jnp.where(burns & matched, suppression(rules, extra), 0.0)
        grows = jnp.where(burns & ~matched, growth_at(rules, intensity), 0.0)
        put_out = jnp.where(intensity == 1, shrinks, 0.0)
        burnt = jnp.where(intensity == rules.burnt_out - 1, grows, 0.0)
        still = jnp.where(burns, 1 - put_out - burnt, 0.0)

        inflow = jnp.sum(spread_into(rules) * still[rules.neighbours], axis=1)
        ignites = jnp.clip(rules.ignition_probability + inflow, 0.0, 1.0)
        can_burn = _can_burn(rules, state) * (1 - burnt)
        feeding, fed_from = _sources(rules, still, can_burn)

        lower, same, higher, lit = (
            ahead[:, k, 0] + feeding * ahead[:, k, 1] for k in range(4)
        )
        unlit = ahead[:, 4, 0] + feeding * fed_from * ahead[:, 4, 1]
        out = ignites * lit + (1 - ignites) * unlit
        fuel = state.fuel - burns
        out = jnp.where(~rules.uses_fuel | (fuel > 0), out, 0.0)

        fighters = jnp.sum(hits, axis=0, dtype=jnp.float32)
        pays = rules.putout_reward * share_of_putout(rules, fighters)
        down, up = shrinks - put_out, grows - burnt
        value = put_out * (pays + out) + burnt * rules.burnout_reward
        value += down * lower + up * higher + (still - down - up) * same
        is_out = ~burns & (intensity == 0) & (rules.size > 0)
        return jnp.where(is_out, out, value)


def _can_burn(rules: Rules, state: WildfireState) -> Float[Array, " task"]:
    """1 where a cell burns or may yet, 0 where it never will again."""
    return (state.intensity < rules.burnt_out).astype(jnp.float32)


def _sources(
    rules: Rules, burns: Float[Array, " task"], can_burn: Float[Array, " task"]
) -> tuple[Float[Array, " task"], Float[Array, " task"]]:
    """How much of what can spread into a cell has sources left, and the probability
    that any of its neighbours burns: without that nothing comes over for now."""
    rates = spread_into(rules)
    left = jnp.sum(rates * can_burn[rules.neighbours], axis=1)
    left /= jnp.maximum(jnp.sum(rates, axis=1), 1e-9)
    none = jnp.prod(jnp.where(rates > 0, 1 - burns[rules.neighbours], 1.0), axis=1)
    return left, 1 - none
