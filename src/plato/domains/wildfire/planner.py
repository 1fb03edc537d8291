"""The assignment planner: who fights what, by expected gain under the known rules.

Each step it weighs joint assignments of agents to fires. What one is worth is the
expected reward of the step and the values that fires and agents are then left with
(`prices`). It takes the best: of all of them where they are few, as in every shipped
setup; else block by block, each agent with those that share most fires with it, given
what the others do, which never makes an assignment worse.

It knows the state (equipment, tanks, fuel, time) and the rules, and learns nothing.
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from plato.domains.wildfire.dynamics import (
    Rules,
    WildfireState,
    equipment_bonus,
    reachable,
)
from plato.domains.wildfire.prices import (
    Sizes,
    Values,
    at,
    growth_at,
    in_range,
    level_of,
    refill_odds,
    share_of_putout,
    spread_into,
    suppression,
    values,
)
from plato.errors import PlatoError
from plato.game import NOOP, Observation, ReplayedState
from plato.policies.policy import Policy

LARGEST_BLOCK = 4096
"""Joint choices of a block of agents that are weighed at once."""
SWEEPS = 3
"""How often every block is improved, where there is more than one."""


class Blocks(eqx.Module):
    """Groups of agents, and every joint choice of each group."""

    members: Int[Array, "block member"]
    choices: Int[Array, "block joint member"]


class AssignmentPolicy(Policy[None]):
    """Assigns agents to fires by expected gain; ties go to the earlier choice."""

    rules: Rules
    worth: Values
    blocks: Blocks

    @classmethod
    def from_rules(cls, rules: Rules) -> "AssignmentPolicy":
        """The planner for a game with these rules."""
        widest = rules.reach + jnp.max(rules.equipment_bonus[:, 2])
        reach = np.asarray(in_range(rules, widest))
        return cls(rules, values(rules, _sizes(rules)), _blocks(reach))

    def start(self, agents: int) -> None:
        del agents

    def act(
        self, key: PRNGKeyArray, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        raise PlatoError(
            "The assignment planner must see the whole state of the game; evaluate "
            "it, or call act_knowing."
        )

    def act_knowing(
        self, key: PRNGKeyArray, state: Any, observation: Observation, memory: None
    ) -> tuple[Int[Array, " agent"], None]:
        del key, memory
        state = state.inner if isinstance(state, ReplayedState) else state
        actions = self.assign(self._own_rows(state))
        spare = observation.present.shape[0] - actions.shape[0]
        return jnp.pad(actions, (0, spare)), None

    def assign(self, state: WildfireState) -> Int[Array, " agent"]:
        """The best assignment found."""
        moment = _moment(self.rules, self.worth, state)
        score = jax.vmap(moment.gain)

        def improve(actions: Int[Array, " agent"], block: Blocks):
            everyone = jnp.tile(actions, (block.choices.shape[0], 1))
            candidates = everyone.at[:, block.members].set(block.choices)
            return candidates[jnp.argmax(score(candidates))], None

        actions = jnp.full(self.rules.roster.shape, NOOP, jnp.int32)
        for _ in range(1 if self.blocks.members.shape[0] == 1 else SWEEPS):
            actions, _ = jax.lax.scan(improve, actions, self.blocks)
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


class Moment(eqx.Module):
    """All that the gain of an assignment depends on, at one state."""

    rules: Rules
    state: WildfireState
    reach: Bool[Array, "agent task"]
    power: Float[Array, " agent"]
    if_idle: Float[Array, " agent"]
    """What an agent is worth after NOOP, and after a fight."""
    if_fighting: Float[Array, " agent"]
    fed: Float[Array, "task intensity"]
    alone: Float[Array, "task intensity"]

    def gain(self, actions: Int[Array, " agent"]) -> Float[Array, ""]:
        """The expected worth of an assignment; minus infinity if it is not legal."""
        targets = actions[:, None] - 1 == jnp.arange(self.rules.size.shape[0])[None, :]
        hits = targets & self.reach
        legal = ((actions == NOOP) | hits.any(axis=1)).all()
        team = jnp.where(actions == NOOP, self.if_idle, self.if_fighting)
        total = jnp.sum(self._fires(hits)) + jnp.sum(team)
        return jnp.where(legal, total, -jnp.inf)

    def _fires(self, hits: Bool[Array, "agent task"]) -> Float[Array, " task"]:
        """What each cell is expected to pay in this step and to be worth after it."""
        rules, state = self.rules, self.state
        intensity, burns = state.intensity, state.burning
        attack = jnp.sum(jnp.where(hits, self.power[:, None], 0.0), axis=0)
        matched = attack >= rules.size
        shrinks = jnp.where(
            burns & matched, suppression(rules, attack - rules.size), 0.0
        )
        grows = jnp.where(burns & ~matched, growth_at(rules, intensity), 0.0)
        put_out = jnp.where(intensity == 1, shrinks, 0.0)
        burnt = jnp.where(intensity == rules.burnt_out - 1, grows, 0.0)
        still = jnp.where(burns, 1 - put_out - burnt, 0.0)

        rates = spread_into(rules)
        inflow = jnp.sum(rates * still[rules.neighbours], axis=1)
        ignites = jnp.clip(rules.ignition_probability + inflow, 0.0, 1.0)
        # Of what spread adds to a cell's worth, the part whose sources can still burn;
        # a cell that is out needs one that does burn, or nothing will come over.
        alive = jnp.where(intensity >= rules.burnt_out, 0.0, 1 - burnt)
        feeding = jnp.sum(rates * alive[rules.neighbours], axis=1)
        feeding /= jnp.maximum(jnp.sum(rates, axis=1), 1e-9)
        none_lit = jnp.prod(
            jnp.where(rates > 0, 1 - still[rules.neighbours], 1.0), axis=1
        )

        def worth(where: Int[Array, " task"], fed: Float[Array, " task"]):
            alone = at(self.alone, where)
            return alone + fed * (at(self.fed, where) - alone)

        out = ignites * worth(rules.ignition_temp, feeding)
        nowhere = jnp.zeros_like(intensity)
        out += (1 - ignites) * worth(nowhere, feeding * (1 - none_lit))
        fuel = state.fuel - burns
        out = jnp.where(~rules.uses_fuel | (fuel > 0), out, 0.0)

        fighters = jnp.sum(hits, axis=0, dtype=jnp.float32)
        pays = rules.putout_reward * share_of_putout(rules, fighters)
        value = put_out * (pays + out) + burnt * rules.burnout_reward
        value += (shrinks - put_out) * worth(jnp.maximum(intensity - 1, 0), feeding)
        up = jnp.minimum(intensity + 1, rules.burnt_out)
        value += (grows - burnt) * worth(up, feeding)
        value += (still - (shrinks - put_out) - (grows - burnt)) * worth(
            intensity, feeding
        )
        is_out = ~burns & (intensity == 0) & (rules.size > 0)
        return jnp.where(is_out, out, value)


def _moment(rules: Rules, worth: Values, state: WildfireState) -> Moment:
    togo = jnp.maximum(rules.max_steps - state.time - 1, 0)
    later = worth.agent[togo]
    levels = later.shape[1] - 1
    bonus = equipment_bonus(rules, state.equipment)
    level = level_of(state.suppressant, levels)
    kept, spent = at(later, level), at(later, jnp.maximum(level - 1, 0))
    odds = jax.vmap(refill_odds, in_axes=(None, None, 0, 0))
    filled = jnp.sum(later * odds(rules, levels, state.capacity, bonus[:, 0]), axis=1)
    refill, use = rules.refill_probability, rules.use_probability
    return Moment(
        rules=rules,
        state=state,
        reach=reachable(rules, state),
        power=rules.power + bonus[:, 1],
        if_idle=refill * filled + (1 - refill) * kept,
        if_fighting=use * spent + (1 - use) * kept,
        fed=worth.fed[togo],
        alone=worth.alone[togo],
    )


def _sizes(rules: Rules) -> Sizes:
    most = jnp.max(rules.equipment_bonus[:, 0]) + jnp.maximum(
        jnp.max(rules.tanks), rules.capacity_at_start
    )
    most = jnp.maximum(most, jnp.max(rules.suppressant_at_start))
    return Sizes(
        steps=int(rules.max_steps),
        burnt_out=int(rules.burnt_out),
        levels=max(math.ceil(float(most)), 1),
    )


def _blocks(reach: Bool[np.ndarray, "agent task"]) -> Blocks:
    """One block of all agents if its joint choices are few enough, else one for each
    agent: as many of those that share most fires with it as fit."""
    agents = len(reach)
    options = [[NOOP, *(np.flatnonzero(row) + 1)] for row in reach]
    sizes = sorted((len(choices) for choices in options), reverse=True)
    together = sum(math.prod(sizes[:k]) <= LARGEST_BLOCK for k in range(1, agents + 1))
    if math.prod(sizes) <= LARGEST_BLOCK:
        groups = [list(range(agents))]
    else:
        shared = reach.astype(int) @ reach.T
        np.fill_diagonal(shared, agents * reach.shape[1] + 1)  # itself first of all
        closest = np.argsort(-shared, axis=1, kind="stable")
        groups = np.sort(closest[:, : max(together, 1)], axis=1).tolist()
    joint = [list(itertools.product(*(options[n] for n in group))) for group in groups]
    most = max(map(len, joint))
    # Blocks are scanned, so all have as many rows: the first, NOOP for all, again.
    rows = [choices + choices[:1] * (most - len(choices)) for choices in joint]
    return Blocks(jnp.asarray(groups, jnp.int32), jnp.asarray(rows, jnp.int32))
