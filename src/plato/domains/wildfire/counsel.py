"""What the planner would do, said to learners: the advice for maps that nobody knows.

A planner judges by the state of a game. In all that can be seen of one it lacks little:
tanks and equipment are taken to be those of the start, and the game to be in its midst,
where the steps to go hardly matter any more. So it needs no table for every step, and
the planners of many maps, with crews and squads of limited size, can be stacked.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from plato.domains.wildfire.crews import Crews, Sizes, Values, crew_values, spread_into
from plato.domains.wildfire.dynamics import Rules, WildfireState
from plato.domains.wildfire.planner import AssignmentPolicy
from plato.domains.wildfire.squads import divisions_in
from plato.game import Observation, stack

LARGEST_CREW = 2
LARGEST_SQUAD = 256
"""Joint choices of a squad."""


class Counsel(eqx.Module):
    """The planner of a map, as an adviser; of many maps, stacked."""

    planner: AssignmentPolicy
    """With the values of two moments in the midst of a game, one step apart."""
    given: Bool[Array, "*map"]
    """Whether it advises: where fires neither spread nor come anew, a game is over so
    soon that its midst is nothing to judge by."""

    def log_policy(self, seen: Observation) -> Float[Array, "agent choice"]:
        """As that of an actor, but certain of what everyone should do."""
        rules = self.planner.rules
        everyone = jnp.ones_like(rules.power)
        tasks = seen.tasks[:, 3].astype(jnp.int32)
        state = WildfireState(
            burning=seen.exists,
            intensity=tasks,
            fuel=jnp.full_like(tasks, rules.fuel_at_start),
            suppressant=seen.agents[:, 3],
            capacity=everyone * rules.capacity_at_start,
            equipment=jnp.full_like(everyone, rules.equipment_at_start, jnp.int32),
            time=jnp.zeros((), jnp.int32),
            burnouts=jnp.zeros((), jnp.int32),
            over=jnp.zeros((), bool),
        )
        actions = self.planner.assign(state)
        taken = jax.nn.one_hot(actions, 1 + tasks.shape[0], dtype=bool)
        return jnp.where(taken, 0.0, jnp.finfo(jnp.float32).min)


def sizes_of(each: Iterable[Rules]) -> Sizes:
    """Sizes that hold the tables of all of them."""
    sizes = [Sizes.of(rules) for rules in each]
    return Sizes(
        max(one.steps for one in sizes),
        max(one.burnt_out for one in sizes),
        max(one.levels for one in sizes),
    )


def counsels(sizes: Sizes, each: Sequence[Rules]) -> Counsel:
    """Those for the rules of several maps with as many rows, stacked.

    `sizes` are some that hold theirs: what is compiled for one pile of maps serves
    another.
    """
    found = [divisions_in(rules, LARGEST_CREW, LARGEST_SQUAD) for rules in each]
    options, rules = stack(found), stack(each)
    worth = _in_the_midst(sizes, rules, options.crews)
    # One step to go, and none, are what the two moments are filed under.
    planned = eqx.tree_at(lambda r: r.max_steps, rules, jnp.ones_like(rules.max_steps))
    comes_back = jax.vmap(spread_into)(rules).sum(axis=(1, 2))
    comes_back += rules.ignition_probability
    return Counsel(
        AssignmentPolicy(planned, options, worth, sizes), given=comes_back > 0
    )


@partial(jax.jit, static_argnums=0)
def _in_the_midst(sizes: Sizes, rules: Rules, crews: Crews) -> Values:
    middle = sizes.steps // 2
    to_there = Sizes(middle + 1, sizes.burnt_out, sizes.levels)

    def of_map(rules: Rules, crews: Crews) -> Values:
        inflow = spread_into(rules).sum(axis=1)
        fed, alone = (
            crew_values(rules, to_there, crews, into)[middle:]
            for into in (inflow, jnp.zeros_like(inflow))
        )
        return Values(fed=fed, alone=alone)

    return jax.vmap(of_map)(rules, crews)
