"""Advice: who learns many setups at once does as a specialist of each would, at first.

What one setup asks for may be wrong in another that looks the same, until they can be
told apart; learned from returns alone, the first lesson keeps the second from being
found. Specialists that have found theirs say what they would do at every moment the
learner gets into, and it is drawn towards that, less and less.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from plato.domains.setups import Setup
from plato.domains.wildfire.maps import SCATTERED, seen_at
from plato.errors import PlatoError
from plato.game import Observation, how_many, stack
from plato.learners.config import Maps
from plato.policies.checkpoint import load_actor, of_another_form, trained_file
from plato.policies.encoders import LSTMCell
from plato.policies.pointer import PointerActor


class Advisers(eqx.Module):
    """A specialist for each setup of a training, and the maps that they know."""

    actors: PointerActor
    """Stacked over setups."""
    home: Any = None
    """Wildfires as their setups have them, stacked over setups, where games are played
    on other maps."""
    maps: Maps = eqx.field(static=True, default="own")
    """What kind these are: nobody knows scattered ones."""

    def advice(self, seen: Observation, started: Bool[Array, "time game"]) -> "Advice":
        """What the specialists say; games come in equal blocks, by setups.

        One who remembers has not seen how games that are under way began, and says
        nothing about them: it is heard from where an episode `started`.
        """
        time, games, agents = seen.present.shape
        setups = how_many(self.actors)

        def blocks(leaf: Array) -> Array:
            return leaf.reshape(time, setups, games // setups, *leaf.shape[2:])

        def of_setup(actor: PointerActor, home: Any, seen: Observation, started):
            def along(seen: Observation, started: Bool[Array, " time"]):
                known = (
                    seen if home is None else jax.vmap(seen_at, (None, 0))(home, seen)
                )
                return actor.log_policies(known, started, actor.start(agents))

            return jax.vmap(along, in_axes=1, out_axes=1)(seen, started)

        each = jax.vmap(of_setup, in_axes=(0, 0, 1, 1), out_axes=1)
        blocked = jax.tree.map(blocks, seen)
        said = each(self.actors, self.home, blocked, blocks(started))
        known = jnp.ones((time, setups, games // setups), bool)
        if isinstance(self.actors.encode_query, LSTMCell):
            known = jnp.cumsum(blocks(started), axis=0) > 0
        if self.maps in SCATTERED:
            known = known.at[:, :, SCATTERED[self.maps]].set(False)
        return Advice(
            said.reshape(time, games, *said.shape[3:]), known.reshape(time, games)
        )


class Advice(eqx.Module):
    """What specialists would have done."""

    policy: Float[Array, "*time_game agent choice"]
    """As log-policies."""
    given: Bool[Array, "*time_game"]
    """Where they know the map."""


def adviser_files(names: Sequence[str], setups: Mapping[str, Setup]) -> dict[str, Path]:
    """Who advises on each setup: one for all of them, or one for each in turn."""
    if len(names) not in (1, len(setups)):
        raise PlatoError(
            f"There are {len(names)} advisers for {len(setups)} setups; name one for "
            f"all of them, or one for each in turn."
        )
    each = names if len(names) > 1 else [names[0]] * len(setups)
    return {
        setup: trained_file(name, setups[setup])
        for setup, name in zip(setups, each, strict=True)
    }


def load_advisers(
    files: Sequence[Path], homes: Sequence[Any] | None, maps: Maps = "own"
) -> Advisers:
    """One adviser for each setup.

    `homes` are the games of the setups, where those that are played were moved,
    or scattered.
    """
    actors = stack([load_actor(path) for path in files])
    return Advisers(actors, None if homes is None else stack(homes), maps)


def refuse_unfit(files: Sequence[Path]) -> None:
    """Refuses those of one configuration who cannot advise, or not together."""
    if other := of_another_form(files):
        raise PlatoError(
            f"The advisers {files[0]} and {other} differ in their networks; ask such "
            f"as were trained with the same."
        )
