"""Policies in use: any sizes, few compilations, and the same in plain NumPy."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import plato
from golden.write import VARIANTS as GOLDEN_VARIANTS
from golden.write import moment as golden_moment
from moments import VARIANTS
from plato import deploy
from plato.deploy import export, load
from plato.errors import PlatoError
from plato.game import Features
from plato.numpy_actor import load as load_numpy
from plato.policies.checkpoint import save_policy
from plato.policies.config import ActorConfig
from plato.policies.padded import PaddedShape
from plato.policies.pointer import PointerActor
from plato.tensors import read_header

GOLDEN = Path(__file__).parent / "golden"


def checkpoint(path, config: ActorConfig, features: Features):
    actor = PointerActor.create(config, features, key=jax.random.key(5))
    actor = jax.tree.map(lambda leaf: 2 * leaf, actor)
    save_policy(path, actor, config, PaddedShape(1, *features), {})
    return path


def moment(agents: int, tasks: int, actions: int = 1, seed: int = 0):
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(agents, 3)),
        random.normal(size=(tasks, 2)),
        random.random((agents, tasks, actions)) < 0.6,
    )


def test_any_numbers_of_agents_and_tasks(tmp_path):
    path = checkpoint(
        tmp_path / "p.safetensors", ActorConfig(hidden=8), Features(3, 2, 1)
    )
    policy = load(path)
    compiled: Any = deploy._log_policy
    sizes = [(1, 0), (1, 1), (3, 4), (4, 3), (7, 30), (60, 9), (5, 32), (64, 16)]
    for agents, tasks in sizes:
        features, rows, options = moment(agents, tasks)
        decision = policy.decide(features, rows, options[:, :, 0])
        assert decision.probabilities.shape == (agents, 1 + tasks)
        np.testing.assert_allclose(decision.probabilities.sum(axis=1), 1, rtol=1e-5)
        taken = decision.probabilities[np.arange(agents), decision.actions]
        assert (taken > 0).all()
    assert compiled._cached._cache_size() <= 7


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.safetensors")), ids=str)
def test_checkpoints_of_the_first_release_still_load(path):
    """And decide as they did when they were written, by configurations as written."""
    written = ActorConfig(**read_header(path)["actor"])
    assert written == GOLDEN_VARIANTS[path.stem]
    expected = json.loads(path.with_suffix(".json").read_text())
    found = load(path).decide(*golden_moment()).probabilities
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_run_stands_for_its_last_policy(tmp_path):
    run = tmp_path / "run"
    for name, hidden in (("000002", 4), ("000010", 8)):
        checkpoint(
            run / "checkpoints" / "one" / f"{name}.safetensors",
            ActorConfig(hidden=hidden),
            Features(3, 2, 1),
        )
    last = run / "checkpoints" / "one" / "000010.safetensors"
    seen = moment(2, 3)
    np.testing.assert_array_equal(
        plato.load(run).decide(*seen).probabilities,
        plato.load(last).decide(*seen).probabilities,
    )
    plato.export(run, tmp_path / "deployed")
    with np.load(tmp_path / "deployed" / "policy.npz") as weights:
        assert json.loads(str(weights["config"]))["hidden"] == 8
    with pytest.raises(PlatoError, match="holds no checkpoint"):
        plato.load(tmp_path / "deployed")


def test_greedy_takes_the_likeliest(tmp_path):
    path = checkpoint(
        tmp_path / "p.safetensors", ActorConfig(hidden=8), Features(3, 2, 1)
    )
    decision = load(path).decide(*moment(5, 6), greedy=True)
    assert (decision.actions == decision.probabilities.argmax(axis=1)).all()


@pytest.mark.parametrize("config", VARIANTS, ids=str)
@pytest.mark.parametrize("actions", [1, 3])
def test_the_numpy_actor_agrees(tmp_path, config, actions):
    """Step by step, with partial views, agents that leave and return, and memory."""
    features = Features(3, 2, actions)
    path = checkpoint(tmp_path / "p.safetensors", config, features)
    export(path, tmp_path / "out")
    plain, ours = load_numpy(tmp_path / "out" / "policy.npz"), load(path)
    for agents, tasks in ((1, 0), (1, 3), (4, 5)):
        first = second = None
        for step in range(4):
            now = moment(agents, tasks, actions, seed=10 * agents + step)
            view = {} if step == 0 else views(agents, tasks, seed=step)
            _, probabilities, first = plain.decide(*now, memory=first, **view)
            expected = ours.decide(*now, memory=second, **view)
            second = expected.memory
            np.testing.assert_allclose(probabilities, expected.probabilities, atol=1e-5)
            assert (first is None) == (config.encoder == "mlp")


def views(agents: int, tasks: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "present": random.random(agents) < 0.7,
        "sees_agents": (random.random((agents, agents)) < 0.6)
        | np.eye(agents, dtype=bool),
        "sees_tasks": random.random((agents, tasks)) < 0.6,
        "public": np.array([True, False, True]),
    }


def test_memory_moves_with_its_agent(tmp_path):
    """Rows may change places from one decision to the next, if memory's do, too."""
    config = ActorConfig(hidden=8, encoder="lstm")
    policy = load(checkpoint(tmp_path / "p.safetensors", config, Features(3, 2, 1)))
    memory = policy.decide(*moment(4, 3, seed=1)).memory
    agents, tasks, options = moment(4, 3, seed=2)
    usual = policy.decide(agents, tasks, options, memory=memory)
    order = np.array([2, 0, 3, 1])
    assert memory is not None
    moved = policy.decide(
        agents[order],
        tasks,
        options[order],
        memory=type(memory)(*(part[order] for part in memory)),
    )
    np.testing.assert_allclose(
        moved.probabilities, usual.probabilities[order], atol=1e-6
    )
    fresh = policy.decide(agents, tasks, options)
    assert np.abs(fresh.probabilities - usual.probabilities).max() > 1e-4
    assert "memory=Memory(hidden=(4, 8))" in repr(fresh)
    with pytest.raises(PlatoError, match="memory must hold a row for each of the 2"):
        policy.decide(agents[:2], tasks, options[:2], memory=memory)


def test_the_export_needs_nothing_but_numpy(tmp_path):
    path = checkpoint(
        tmp_path / "p.safetensors", ActorConfig(hidden=8), Features(3, 2, 1)
    )
    plato.export(path, tmp_path)
    program = (
        "import sys, policy; import numpy as np\n"
        "actor = policy.load('policy.npz')\n"
        "moment = np.ones((2, 3)), np.ones((4, 2)), np.ones((2, 4))\n"
        "actions, p, memory = actor.decide(*moment)\n"
        "assert p.shape == (2, 5) and actions.shape == (2,)\n"
        "assert not {'jax', 'equinox', 'plato', 'scipy'} & set(sys.modules)\n"
        "print('fine')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "fine", done.stderr


UNFIT = [
    ({"agents": np.zeros((0, 3))}, "at least one agent"),
    ({"agents": np.ones((5, 4))}, "agents must hold 3 features for each agent; .*5.*4"),
    ({"agents": np.full((5, 3), np.nan)}, "agents must hold finite numbers; row 0"),
    ({"tasks": np.zeros((6, 5))}, "tasks must hold 2 features"),
    ({"tasks": np.diag([1, np.inf])}, "tasks must hold finite numbers; row 1"),
    ({"options": np.zeros((5, 5))}, "options must be .*5.*6.*1.*not .*5.*5"),
    ({"options": np.zeros((6, 5))}, "options must be .*5.*6.*1.*not .*6.*5"),
    ({"present": np.ones(6)}, "present must be .*5.*not .*6"),
    ({"sees_agents": np.ones((5, 6))}, "sees_agents must be .*5.*5.*not .*5.*6"),
    ({"sees_tasks": np.ones((6, 5))}, "sees_tasks must be .*5.*6.*not .*6.*5"),
    ({"public": np.ones(4)}, "public must be .*3.*not .*4"),
    ({"memory": (np.ones((5, 9)), np.ones((5, 9)), np.ones(5))}, "memory .* 5 .*8.*9"),
    ({"memory": (np.ones((5, 8)), np.ones((5, 8)))}, "memory .* 5 agents, .*8.*not"),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A policy that remembers, and its export."""
    folder = tmp_path_factory.mktemp("both")
    config = ActorConfig(hidden=8, encoder="lstm")
    path = checkpoint(folder / "p.safetensors", config, Features(3, 2, 1))
    export(path, folder)
    return load(path), load_numpy(folder / "policy.npz")


@pytest.mark.parametrize(("change", "words"), UNFIT)
def test_what_does_not_fit_is_refused(both, change, words):
    moment_of = dict(zip(("agents", "tasks", "options"), moment(5, 6), strict=True))
    for policy, kind in zip(both, (PlatoError, ValueError), strict=True):
        with pytest.raises(kind, match=words):
            policy.decide(**moment_of | change)


def test_memory_may_be_a_plain_tuple(both):
    ours, alone = both
    _, _, memory = alone.decide(*moment(5, 6, seed=1))
    now = moment(5, 6, seed=2)
    _, expected, _ = alone.decide(*now, memory=memory)
    found = ours.decide(*now, memory=memory).probabilities
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_nothing_to_do_may_be_said_in_short(both):
    agents, _, _ = moment(2, 0)
    for policy in both:
        _, probabilities, _ = policy.decide(agents, [], [])
        np.testing.assert_array_equal(probabilities, np.ones((2, 1)))


def test_the_absent_and_the_unseen_are_offered_nothing(both):
    agents, tasks, _ = moment(2, 3)
    view = {"present": [True, False], "sees_tasks": [[True, False, True]] * 2}
    for policy in both:
        _, found, _ = policy.decide(agents, tasks, np.ones((2, 3)), **view)
        np.testing.assert_array_equal(found > 0, [[1, 1, 0, 1], [1, 0, 0, 0]])
