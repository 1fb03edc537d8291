"""Training as one compiled program: runs (setups and seeds) are a batch axis of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from plato.domains.setups import Setup
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.paper_noise import with_paper_noise
from plato.game import Game, stack
from plato.learners.config import TrainConfig
from plato.learners.mappo import Hyper, Learner, create_learner, update
from plato.seeding import seed_key


class Program:
    """The compiled training of a configuration: `start`, then `advance` many times."""

    def __init__(self, config: TrainConfig, setups: dict[str, Setup]) -> None:
        self.config = config
        self.runs = config.runs
        self.games = stack(
            [
                _games(config, [setups[name] for name in run.setups], setups)
                for run in self.runs
            ]
        )
        # Runs of one seed share their beginnings across setups, as the paper's did.
        self._keys = jnp.stack([seed_key(run.seed) for run in self.runs])
        self._game_keys = jnp.stack(
            [seed_key(config.game_seed + run.seed - config.seed) for run in self.runs]
        )
        self._hyper = Hyper.of(config.mappo)
        self._create = jax.jit(partial(_create, config))
        step = _over_runs(len(self.runs), partial(update, config.mappo, self._hyper))
        self._update = jax.jit(step, donate_argnums=1)

    @property
    def steps_per_update(self) -> int:
        """Environment steps of one `advance`, over all runs."""
        return self.config.mappo.games * self.config.mappo.steps * len(self.runs)

    def start(self) -> Learner:
        """New learners, one for each run, stacked."""
        # One after the other: mapped over many runs, the QR decompositions behind
        # orthogonal weights wait for each other forever on a CPU of few cores.
        arguments = (self.games, self._keys, self._game_keys)
        learners = [self._create(*of_run(arguments, i)) for i in range(len(self.runs))]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *learners)

    def advance(self, learner: Learner) -> tuple[Learner, dict[str, Array]]:
        """One update of every run; the learner given is used up."""
        return self._update(self.games, learner, self._keys, self._game_keys)


def of_run(tree: Any, index: int) -> Any:
    """One run's part of something stacked over runs."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _create(config: TrainConfig, games: Game[Any, Any], key: Any, game_key: Any):
    return create_learner(config.mappo, config.actor, games, key=key, game_key=game_key)


def _over_runs(runs: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Maps over the first axis; a single run is not mapped, which compiles faster."""
    if runs > 1:
        return jax.vmap(function)

    def single(*arguments: Any) -> Any:
        result = function(*of_run(arguments, 0))
        return jax.tree.map(lambda leaf: leaf[None], result)

    return single


def _games(
    config: TrainConfig, setups: list[Setup], everything: dict[str, Setup]
) -> Game[Any, Any]:
    """The games of one run, stacked: its setups in turn, all with the same capacity."""
    rows = {
        "agents": max(len(s.config.agent.agents) for s in everything.values()),
        "tasks": max(len(s.config.fire_cells) for s in everything.values()),
    }
    games: list[Game[Any, Any]] = []
    for setup in setups:
        game = Wildfire.from_config(setup.config, **rows)
        fixed = config.noise == "paper"
        games.append(with_paper_noise(game, setup.config) if fixed else game)
    each = config.mappo.games // len(setups)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, each, axis=0), stack(games))
