"""The ways to learn behind one interface: what a training asks of any of them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from jaxtyping import Array, PRNGKeyArray

from plato.game import Game, WithinReach
from plato.learners.advice import Advisers
from plato.learners.baseline_configs import DgnLearning, DicgLearning, MohitoLearning
from plato.learners.config import Learning, MappoConfig, Networks
from plato.learners.dgn import create_dgn, update_dgn
from plato.learners.dicg import create_dicg, update_dicg
from plato.learners.mappo import Hyper, create_learner, update
from plato.learners.mohito import create_mohito, update_mohito
from plato.policies.baseline_configs import DgnConfig, DicgConfig
from plato.policies.config import ActorConfig
from plato.policies.mohito_config import MohitoConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.policies.policy import Policy


class Create(Protocol):
    """Makes a learner for some games, which are stacked."""

    def __call__(
        self, games: Game[Any, Any], *, key: PRNGKeyArray, game_key: PRNGKeyArray
    ) -> Any: ...


class Method(NamedTuple):
    """A way to learn, its settings included. All of it is pure and can be mapped."""

    create: Create
    update: Callable[..., tuple[Any, dict[str, Array]]]
    """(games, learner, key, game key) to the next learner and metrics, with those of
    `Experience.report` among them."""
    policy: Callable[[Any], Policy[Any]]
    """What a learner would play with now."""


def method_of(
    networks: Networks,
    learning: Learning,
    shape: PaddedShape,
    setups: int = 1,
    reach: WithinReach | None = None,
    advisers: Advisers | None = None,
    predecessor: PointerActor | None = None,
) -> Method:
    """The method that goes with the settings, for games of a shape.

    Games come in equal blocks, one for each of their `setups`. MOHITO may be told what
    is within reach in them. PLATO may have advisers, and a predecessor to begin with.
    """
    match networks, learning:
        case ActorConfig(), MappoConfig():
            return Method(
                partial(
                    create_learner,
                    learning,
                    networks,
                    setups=setups,
                    predecessor=predecessor,
                ),
                partial(
                    update,
                    learning,
                    Hyper.of(learning),
                    setups=setups,
                    advisers=advisers,
                ),
                lambda learner: learner.networks.actor,
            )
        case DicgConfig(), DicgLearning():
            return Method(
                partial(create_dicg, learning, networks, shape),
                partial(update_dicg, learning),
                lambda learner: learner.networks.actor,
            )
        case DgnConfig(), DgnLearning():
            return Method(
                partial(create_dgn, learning, networks, shape),
                partial(update_dgn, learning),
                lambda learner: learner.taught.actor,
            )
        case MohitoConfig(), MohitoLearning():
            return Method(
                partial(
                    create_mohito,
                    learning,
                    networks,
                    shape.features,
                    shape.agents,
                    reach=reach,
                ),
                partial(update_mohito, learning),
                lambda learner: learner.taught.networks.actors,
            )
    raise TypeError(f"{type(learning)} does not teach {type(networks)}")
