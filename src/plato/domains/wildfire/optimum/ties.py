"""What ties cells together: ignition, and the end of the game."""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from plato.domains.wildfire.dynamics import Rules
from plato.domains.wildfire.optimum.fire import Fire


def over(rules: Rules, fires: list[Fire], agents: int) -> np.ndarray:
    """Where nothing burns and, with the fuel rule, nothing is left to burn."""
    axes = len(fires) + agents
    burning, fuel = np.zeros([1] * axes, bool), np.zeros([1] * axes, int)
    for axis, fire in enumerate(fires):
        burning = burning | _along(map(fire.burns, fire.states), axis, axes)
        most = rules.size.shape[0]
        left = (min(cell.fuel, most) for cell in fire.states)
        fuel = fuel + _along(left, axis, axes)
    return ~burning & (fuel <= 0) if rules.uses_fuel else ~burning


def bonus(rules: Rules, fires: list[Fire], agents: int) -> np.ndarray | None:
    """What ending the game is worth, by the cells burnt out before."""
    axes = len(fires) + agents
    burnt = np.zeros([1] * axes)
    for axis, fire in enumerate(fires):
        burnt = burnt + _along(map(fire.is_burnt_out, fire.states), axis, axes)
    loss = float(rules.termination_kappa) * np.log(burnt + 1)
    bonus = np.maximum(float(rules.termination_reward) - loss, 0.0)
    return bonus if np.any(bonus) else None


class Ignition:
    """The expectation over ignitions, given the cells that burn before them.

    A cell is first told apart by whether it has just ignited. Then the chances of one
    cell after the other are taken; what burnt before stays visible in all the others.
    """

    def __init__(self, rules: Rules, fires: list[Fire]) -> None:
        self.rules, self.fires = rules, fires
        self.catching = [fire for fire in fires if fire.can_catch_fire]

    def __call__(self, values: Float[Array, "*state"]) -> Float[Array, "*state"]:
        axes = values.ndim
        burning = {
            fire.x: _along(map(fire.burns, fire.states), fire.x, axes)
            for fire in self.fires
        }
        for fire in self.catching:
            able = list(filter(fire.can_ignite, fire.states))
            after = [*fire.states, *map(fire.ignited, able)]
            places = np.asarray([fire.states.index(cell) for cell in after])
            values = jnp.take(values, places, axis=fire.x)
            before = map(fire.burns, [*fire.states, *able])
            burning[fire.x] = _along(before, fire.x, axes)
        for fire in self.catching:
            values = self._expected(fire, values, self._chance(fire, burning))
            burning[fire.x] = _along(map(fire.burns, fire.states), fire.x, axes)
        return values

    def _chance(self, fire: Fire, burning: dict[int, np.ndarray]) -> np.ndarray:
        """Of catching fire, by what burns around it."""
        rules = self.rules
        axes = burning[fire.x].ndim
        chance = np.full([1] * axes, float(rules.ignition_probability))
        sides = zip(rules.neighbours[fire.x], rules.spread_rates, strict=True)
        for side, rate in sides:
            if side != fire.x:
                chance = chance + float(rate) * burning[int(side)]
        able = _along(map(fire.can_ignite, fire.states), fire.x, axes)
        return np.clip(chance, 0, 1) * able

    @staticmethod
    def _expected(
        fire: Fire, values: Float[Array, "..."], chance: np.ndarray
    ) -> Float[Array, "..."]:
        """One cell's states back from being told apart, by its chances."""
        states = fire.states
        able = list(filter(fire.can_ignite, states))
        lit = [
            len(states) + able.index(cell) if cell in able else s
            for s, cell in enumerate(states)
        ]
        out = jax.lax.slice_in_dim(values, 0, len(states), axis=fire.x)
        ignited = jnp.take(values, np.asarray(lit), axis=fire.x)
        spread = jnp.broadcast_to(jnp.asarray(chance, jnp.float32), out.shape)
        return out + spread * (ignited - out)


def _along(values: Iterable[float], axis: int, axes: int) -> np.ndarray:
    """Values of the states of one factor, shaped to be broadcast over all."""
    shape = [1] * axes
    shape[axis] = -1
    return np.asarray(list(values)).reshape(shape)
