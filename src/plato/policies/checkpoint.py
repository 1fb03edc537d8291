"""Policies on disk: one safetensors file that says how to rebuild what it holds."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import plato
from plato.configuration import from_mapping, to_mapping, whole_number
from plato.domains.setups import Setup, load_setup, public_in_all
from plato.errors import PlatoError
from plato.game import Features
from plato.policies.baseline_configs import DgnConfig, DicgConfig
from plato.policies.config import ActorConfig
from plato.policies.dgn import DgnActor
from plato.policies.dicg import DicgActor
from plato.policies.mohito import MohitoActors
from plato.policies.mohito_config import MohitoConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.policies.policy import Policy
from plato.policies.pretrained import is_pretrained, meant_by
from plato.tensors import named_leaves, read_header, read_tree, write_tree

POINTER = "pointer actor"


class Kind(NamedTuple):
    """A kind of trained policy: what describes it, and what builds it from that."""

    networks: type
    sizes: Callable[..., Any]
    create: Callable[..., Policy[Any]]
    """(networks, sizes, key=) to a new policy."""
    names: tuple[str, str] = ("networks", "shape")
    """What a header calls the two."""


def _mohito(networks: MohitoConfig, shape: PaddedShape, *, key: Any) -> MohitoActors:
    return MohitoActors.create(networks, shape.features, shape.agents, key=key)


def _features(**sizes: Any) -> Features:
    for name in Features._fields:
        whole_number(f"features.{name}", sizes.get(name), 1)
    return Features(**sizes)


KINDS = {
    POINTER: Kind(ActorConfig, _features, PointerActor.create, ("actor", "features")),
    "dicg actor": Kind(DicgConfig, PaddedShape, DicgActor.create),
    "dgn actor": Kind(DgnConfig, PaddedShape, DgnActor.create),
    "mohito actors": Kind(MohitoConfig, PaddedShape, _mohito),
}


def save_policy(
    path: Path,
    policy: Policy[Any],
    networks: Any,
    shape: PaddedShape,
    about: dict[str, Any],
    public: Sequence[bool] | None = None,
) -> None:
    """Writes a policy with what it was built from; `about` says where it comes from,
    `public` which features of an agent the others saw there."""
    name, kind = next((n, k) for n, k in KINDS.items() if k.networks is type(networks))
    sizes = shape.features._asdict() if name == POINTER else to_mapping(shape)
    described = zip(kind.names, (to_mapping(networks), sizes), strict=True)
    header = {"kind": name, "version": plato.__version__, **dict(described)}
    if public is not None:
        header["public"] = list(public)
    write_tree(path, policy, header | {"about": about})


def load_policy(path: Path) -> Policy[Any]:
    """Reads a trained policy of any kind back."""
    header = read_header(path)
    kind = KINDS.get(str(header.get("kind")))
    if kind is None:
        raise PlatoError(f"{path}: holds a {header.get('kind')!r}, not a policy.")
    try:
        networks, sizes = (_fields(header, name) for name in kind.names)
        config = from_mapping(kind.networks, networks, kind.names[0])
        blank = _blank(kind, config, kind.sizes(**sizes))
    except (PlatoError, TypeError, ValueError, OverflowError) as error:
        raise _unreadable(path, error) from None
    policy = read_tree(path, blank)
    _refuse_broken_numbers(path, policy)
    return jax.tree.map(jax.numpy.asarray, policy)


def _fields(header: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of a header that has fields of its own."""
    fields = header.get(name)
    if not isinstance(fields, dict):
        raise PlatoError(f"{name} must be a table of fields, not {fields!r}.")
    return fields


def _unreadable(path: Path, why: object) -> PlatoError:
    return PlatoError(f"{path}: has a header that cannot be read: {why}")


def _refuse_broken_numbers(path: Path, policy: Policy[Any]) -> None:
    """Refuses a policy that was trained into NaN: it would choose without a word."""
    for name, leaf in named_leaves(policy):
        if not np.isfinite(leaf).all():
            raise PlatoError(
                f"{path}: holds weights that are NaN or infinite ({name}); choose an "
                f"earlier checkpoint, or train again."
            )


@cache
def _blank(kind: Kind, config: Any, built_for: Any) -> Policy[Any]:
    """A policy of shapes without numbers; the checkpoints of a training share it."""
    return jax.eval_shape(
        lambda key: kind.create(config, built_for, key=key), jax.random.key(0)
    )


def trained_for(path: Path) -> Features:
    """The features of agents and tasks, and the actions, that a policy knows."""
    header = read_header(path)
    if header.get("kind") == POINTER:
        return Features(**header["features"])
    return PaddedShape(**header["shape"]).features


def refuse_another_game(name: str, path: Path, there: Features) -> None:
    """Refuses a trained policy that looks at something else than there is to see."""
    known = trained_for(path)
    if known != there:
        raise PlatoError(
            f"{name} was trained for another game: {_counted(known)}. Here are "
            f"{_counted(there)}; train a policy for it (plato train)."
        )


def _counted(features: Features) -> str:
    return (
        f"{features.agent} features of an agent, {features.task} of a task, and "
        f"{features.actions} action(s) for each"
    )


def load_actor(path: Path) -> PointerActor:
    """Reads a pointer actor back."""
    policy = load_policy(path)
    if not isinstance(policy, PointerActor):
        raise PlatoError(
            f"{path}: holds a {read_header(path)['kind']}; this is for pointers only."
        )
    return policy


def of_another_form(files: Sequence[Path]) -> Path | None:
    """The first of some policies whose networks are not as those of the first one."""
    form = networks_of(files[0])
    return next((path for path in files[1:] if networks_of(path) != form), None)


def networks_of(path: Path) -> ActorConfig:
    """Which pointer actor a file holds."""
    load_actor(path)  # refuses what is none
    return from_mapping(ActorConfig, read_header(path)["actor"])


def public_features(path: Path) -> list[bool]:
    """Which features of an agent the others saw while a pointer actor was trained.

    Checkpoints of the first releases do not say: for them it is what their setups show,
    and everything where those are unknown, gone, or games in Python.
    """
    header = read_header(path)
    features = header["features"]["agent"]
    public = header.get("public") or _public_of_setups(header) or [True] * features
    if not isinstance(public, list) or not all(isinstance(f, bool) for f in public):
        raise _unreadable(path, f"public must be a list of flags, not {public!r}.")
    if len(public) != features:
        raise _unreadable(
            path,
            f"public has {len(public)} flags for the {features} features of an agent.",
        )
    return public


def _public_of_setups(header: dict[str, Any]) -> list[bool] | None:
    about = header.get("about")
    names = about.get("setups") if isinstance(about, dict) else None
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        return None
    if any(":" in name for name in names):  # code is not run to read a header
        return None
    try:
        return public_in_all([load_setup(name) for name in names])
    except PlatoError:
        return None


def trained_file(name: str, setup: Setup | None = None) -> Path:
    """Where a trained policy is: a checkpoint, a run with one training, or what comes
    with PLATO (`pretrained` may mean another on every setup)."""
    if is_pretrained(name):
        return meant_by(name, setup.name if setup and setup.shipped else "")
    return last_checkpoint(Path(name))


def last_checkpoint(path: Path) -> Path:
    """A checkpoint itself, or the last one of a run with one training."""
    if path.is_file() or not path.is_dir():
        return path
    found = sorted(path.rglob("*.safetensors"))
    policies = [p for p in found if p.name != "state.safetensors"]
    folders = {p.parent for p in policies}
    if len(folders) != 1:
        what = "no checkpoint" if not folders else f"{len(folders)} trainings"
        raise PlatoError(
            f"{path}: holds {what}; name a .safetensors file, or the folder of one "
            f"training in its checkpoints/."
        )
    return policies[-1]
