"""Policies by their names: rules, planners, checkpoints, and what comes with PLATO."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from plato.domains.setups import Setup
from plato.domains.wildfire.config import WildfireConfig
from plato.domains.wildfire.game import Wildfire
from plato.domains.wildfire.heuristics import RULES
from plato.domains.wildfire.optimum import policy as optimal
from plato.domains.wildfire.planner import AssignmentPolicy
from plato.errors import PlatoError
from plato.game import Game, features_of
from plato.policies.checkpoint import (
    last_checkpoint,
    load_policy,
    refuse_another_game,
    trained_file,
)
from plato.policies.dicg import DicgActor
from plato.policies.pointer import PointerActor
from plato.policies.policy import Policy
from plato.policies.pretrained import PRETRAINED, is_pretrained
from plato.policies.rules import RulePolicy
from plato.tensors import read_header

OPTIMAL = "optimal"
"""The name of the best possible team, where a setup is small enough to solve."""
ANYWHERE = ("noop", "random")
"""The rules that know nothing of what they play."""
ASSIGNMENT = "assignment"
"""The name of the planner that knows the rules."""


Actions: TypeAlias = Literal["own", "sampled", "greedy"]
"""How trained policies take their actions: as their sources do (a pointer draws them,
the baselines take the likeliest), drawn wherever a policy can, or the likeliest."""


def called(text: str) -> tuple[str, str]:
    """What a row is called and which policy that is, from `POLICY` or `NAME=POLICY`."""
    name, equals, policy = text.partition("=")
    return (name, policy) if equals and "/" not in name else (text, text)


def named_policy(
    name: str, setup: Setup | Game[Any, Any], *, actions: Actions = "own"
) -> Policy[Any]:
    """The policy that goes by a name: a rule, the planner or the optimal one of a
    setup, one that comes with PLATO (`pretrained`, `pretrained:NAME`), a checkpoint or
    solution on disk, or the last policy of a finished run.

    A run of several trainings is named by the folder of one of them in `checkpoints`.
    """
    if name in RULES:
        _check_rule(name, setup)
        return RulePolicy(RULES[name])
    if name == ASSIGNMENT:
        return _planner(setup)
    if is_pretrained(name):
        file = trained_file(name, setup if isinstance(setup, Setup) else None)
        return acting(_trained(name, file, setup), actions)
    path = Path(name)
    if name != OPTIMAL and path.suffix != ".safetensors" and not path.is_dir():
        raise PlatoError(
            f"There is no policy named {name!r}; choose from: {', '.join(RULES)}, "
            f"{ASSIGNMENT}, {OPTIMAL}, {PRETRAINED}, or give the path of a checkpoint "
            f"(.safetensors) or of a run."
        )
    path = last_checkpoint(path)
    if name != OPTIMAL and read_header(path).get("kind") != optimal.KIND:
        return acting(_trained(name, path, setup), actions)
    if not isinstance(setup, Setup):
        raise PlatoError("The optimal policy is known for setups, not for any game.")
    if name == OPTIMAL:
        return optimal.solve_exactly(setup.config)
    return optimal.load_optimal(path, setup.config)


def _trained(name: str, path: Path, setup: Setup | Game[Any, Any]) -> Policy[Any]:
    """A trained policy, if what it looks at is what there is to see."""
    policy = load_policy(path)
    refuse_another_game(
        name, path, features_of(setup.game() if isinstance(setup, Setup) else setup)
    )
    return policy


def acting(policy: Policy[Any], actions: Actions) -> Policy[Any]:
    """A trained policy that takes its actions as asked.

    Those that never draw them (DGN, MOHITO) take the likeliest whatever is asked.
    """
    if isinstance(policy, PointerActor):
        return replace(policy, greedy=actions == "greedy")
    if isinstance(policy, DicgActor):
        return replace(policy, greedy=actions != "sampled")
    return policy


def _check_rule(name: str, setup: Setup | Game[Any, Any]) -> None:
    content = setup.content if isinstance(setup, Setup) else setup
    if name not in ANYWHERE and not isinstance(content, WildfireConfig | Wildfire):
        raise PlatoError(
            f"{name} is a rule of wildfire; elsewhere there are {', '.join(ANYWHERE)}."
        )


def _planner(setup: Setup | Game[Any, Any]) -> AssignmentPolicy:
    game = setup.game() if isinstance(setup, Setup) else setup
    if not isinstance(game, Wildfire):
        raise PlatoError("The assignment planner knows the rules of wildfire alone.")
    return AssignmentPolicy.from_rules(game.rules)
