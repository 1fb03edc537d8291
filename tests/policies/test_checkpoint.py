"""Policies on disk: what cannot be a policy is refused in words, by its file."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from plato.errors import PlatoError
from plato.policies.checkpoint import load_policy, public_features, save_policy
from plato.policies.config import ActorConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.tensors import named_leaves, read_header

CONFIG, SHAPE = ActorConfig(hidden=4), PaddedShape(1, 3, 2)
GOOD = {"kind": "pointer actor", "actor": {"hidden": 4}}
GOOD |= {"features": {"agent": 3, "task": 2, "actions": 1}}


@pytest.fixture(scope="module")
def actor() -> PointerActor:
    return PointerActor.create(CONFIG, SHAPE.features, key=jax.random.key(0))


def written(path: Path, actor: PointerActor, header: Any) -> Path:
    """A checkpoint with any header."""
    tensors = {name: np.asarray(leaf) for name, leaf in named_leaves(actor)}
    save_file(tensors, path, metadata={"plato": json.dumps(header)})
    return path


def test_the_header_that_others_are_made_from_is_good(tmp_path, actor):
    path = written(tmp_path / "p.safetensors", actor, GOOD)
    jax.tree.map(np.testing.assert_array_equal, actor, load_policy(path))
    assert public_features(path) == [True] * 3


@pytest.mark.parametrize("header", [[], [1], "pointer actor", 3, None, True])
def test_a_header_that_is_no_table_is_refused(tmp_path, actor, header):
    path = written(tmp_path / "p.safetensors", actor, header)
    with pytest.raises(PlatoError, match=r"p\.safetensors: is not a checkpoint"):
        load_policy(path)


UNREADABLE = [
    ({"actor": [1]}, r"actor must be a table of fields, not \[1\]"),
    ({"actor": []}, r"actor must be a table of fields, not \[\]"),
    ({"actor": None}, "actor must be a table of fields, not None"),
    ({"actor": {"hidden": [4]}}, r"actor\.hidden must be a whole number"),
    ({"actor": {"width": 4}}, r"actor\.width is not a known field"),
    ({"features": 3}, "features must be a table of fields, not 3"),
    ({"features": {"agent": "3", "task": 2, "actions": 1}}, "agent must be a whole"),
    ({"features": {"agent": -3, "task": 2, "actions": 1}}, "agent must be from 1"),
    ({"features": {"agent": [3], "task": 2, "actions": 1}}, "agent must be a whole"),
    ({"features": {"agent": 3}}, r"features\.task must be a whole number, not None"),
]


@pytest.mark.parametrize(("change", "words"), UNREADABLE)
def test_a_header_that_makes_no_sense_is_refused(tmp_path, actor, change, words):
    path = written(tmp_path / "p.safetensors", actor, GOOD | change)
    with pytest.raises(PlatoError, match=rf"p\.safetensors: has a header .*{words}"):
        load_policy(path)


@pytest.mark.parametrize("kind", ["state", ["pointer actor"], None, {}])
def test_other_kinds_are_refused(tmp_path, actor, kind):
    path = written(tmp_path / "p.safetensors", actor, GOOD | {"kind": kind})
    with pytest.raises(PlatoError, match=r"p\.safetensors: holds a .*, not a policy"):
        load_policy(path)


@pytest.mark.parametrize("public", [5, "yes", [1, 0, 1], {"agent": True}])
def test_what_others_see_is_a_list_of_flags(tmp_path, actor, public):
    path = written(tmp_path / "p.safetensors", actor, GOOD | {"public": public})
    with pytest.raises(PlatoError, match="public must be a list of flags"):
        public_features(path)


@pytest.mark.parametrize("about", [None, [], "x", {"setups": 3}, {"setups": [3]}])
def test_a_policy_that_does_not_say_where_it_is_from_sees_all(tmp_path, actor, about):
    path = written(tmp_path / "p.safetensors", actor, GOOD | {"about": about})
    assert public_features(path) == [True] * 3


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path, actor, number):
    """One of them is enough, and it is named."""
    spoilt = actor.noop.at[1].set(number)
    broken = jax.tree.map(lambda x: spoilt if x is actor.noop else x, actor)
    path = tmp_path / "p.safetensors"
    save_policy(path, broken, CONFIG, SHAPE, {})
    assert read_header(path)["kind"] == "pointer actor"
    words = r"p\.safetensors: holds weights that are NaN or infinite \(noop\)"
    with pytest.raises(PlatoError, match=words):
        load_policy(path)
