"""Policies in use: any sizes, few compilations, and the same in plain NumPy."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plato
from golden.write import VARIANTS as GOLDEN_VARIANTS
from golden.write import moment as golden_moment
from moments import VARIANTS
from plato import deploy
from plato.deploy import LEAST, SPARE, Room, export, load, room_for, work
from plato.errors import PlatoError
from plato.game import Features, power_of_two
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


def programs() -> int:
    """How many have been compiled for decisions."""
    compiled: Any = deploy._log_policy
    return compiled._cache_size()


def test_any_numbers_of_agents_and_tasks(tmp_path):
    path = checkpoint(
        tmp_path / "p.safetensors", ActorConfig(hidden=8), Features(3, 2, 1)
    )
    policy, before = load(path), programs()
    sizes = [(1, 0), (1, 1), (3, 4), (4, 3), (7, 30), (60, 9), (5, 32), (64, 16)]
    for agents, tasks in sizes:
        features, rows, options = moment(agents, tasks)
        decision = policy.decide(features, rows, options[:, :, 0])
        assert decision.probabilities.shape == (agents, 1 + tasks)
        np.testing.assert_allclose(decision.probabilities.sum(axis=1), 1, rtol=1e-5)
        taken = decision.probabilities[np.arange(agents), decision.actions]
        assert (taken > 0).all()
    assert programs() - before <= 4


def test_random_sizes_compile_a_handful(tmp_path):
    """And decide as a policy does that knows of no other moments."""
    config = ActorConfig(hidden=6, context="pointer")  # which no other test compiles
    path = checkpoint(tmp_path / "p.safetensors", config, Features(3, 2, 1))
    policy, before = load(path), programs()
    random = np.random.default_rng(0)
    sizes = random.integers((1, 0), (40, 200), (60, 2)).tolist()
    found = [policy.decide(*moment(*size, seed=i)) for i, size in enumerate(sizes)]
    assert programs() - before == len(policy._compiled) <= 7
    for i, size in list(enumerate(sizes))[::6]:
        alone = load(path).decide(*moment(*size, seed=i)).probabilities
        np.testing.assert_allclose(found[i].probabilities, alone, atol=1e-5)


def rooms_of(sizes) -> list[Room]:
    """Where moments of these sizes are decided, one after the other."""
    rooms, compiled = [], set()
    for agents, tasks in sizes:
        rooms.append(room_for(agents, tasks, compiled))
        compiled.add(rooms[-1])
    return rooms


def test_who_has_met_a_crowd_is_not_slow_with_a_few():
    crowd, few = rooms_of([(1000, 10_000), (3, 4)])
    assert crowd == (1024, 16_384)
    assert few == (8, 8)


def test_random_sizes_take_five_rooms():
    """On average; powers of two alone would take all 24 pairs of theirs, or nearly."""
    random = np.random.default_rng(0)
    sizes = random.integers((1, 0), (40, 200), (50, 60, 2)).tolist()
    rooms = [len(set(rooms_of(moments))) for moments in sizes]
    assert np.mean(rooms) < 5.5
    assert max(rooms) < 10


def test_rooms_grow_with_log_and_log():
    """Also where sizes are met in the worst order, and after a crowd: from 8 to 64
    agents and from 8 to 256 tasks it is 3 + 5 times."""
    slowly = [(2**i, 2**j) for i in range(7) for j in range(9)]
    assert len(set(rooms_of(slowly))) <= 10
    assert len(set(rooms_of([(1000, 10_000), *slowly]))) <= 11
    assert len(set(rooms_of(slowly[::-1]))) <= 5


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 20_000)), min_size=1))
def test_a_room_holds_its_moment_and_is_not_far_too_large(sizes):
    for (agents, tasks), room in zip(sizes, rooms_of(sizes), strict=True):
        own = Room(max(LEAST, power_of_two(agents)), max(LEAST, power_of_two(tasks)))
        assert room.joined(own) == room
        assert work(room) <= SPARE * work(own)


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
    ({"agents": np.zeros((0, 3))}, "options must be .*0.*6.*1.*not .*5.*6"),
    ({"agents": [[1, 2, 3], [1, 2]]}, "agents must have rows of equal length"),
    ({"agents": [["1", "2", "3"]] * 5}, "agents must hold numbers, not text"),
    ({"agents": [[1, 2, None]] * 5}, "agents must hold numbers, not object"),
    ({"agents": [[1, 2, 3j]] * 5}, "agents must hold numbers, not complex"),
    ({"agents": 3}, "agents must hold 3 features"),
    ({"agents": np.full((5, 3), 1e300)}, "agents must hold finite numbers; row 0"),
    ({"agents": np.ones((5, 4))}, "agents must hold 3 features for each agent; .*5.*4"),
    ({"agents": np.full((5, 3), np.nan)}, "agents must hold finite numbers; row 0"),
    ({"tasks": np.zeros((6, 5))}, "tasks must hold 2 features"),
    ({"tasks": np.diag([1, np.inf])}, "tasks must hold finite numbers; row 1"),
    ({"tasks": [[1, 2], [1]]}, "tasks must have rows of equal length"),
    ({"tasks": "tasks"}, "tasks must hold numbers, not text"),
    ({"options": [["no"] * 6] * 5}, r"options must hold booleans .* not text"),
    ({"options": [[True] * 6] * 4 + [[]]}, "options must have rows of equal length"),
    ({"options": np.full((5, 6), 2)}, r"options must hold booleans \(or 0 and 1\)"),
    ({"options": np.full((5, 6), np.nan)}, "options must hold booleans .* not nan"),
    ({"options": [[None] * 6] * 5}, "options must hold booleans .* not object"),
    ({"options": np.zeros((5, 5))}, "options must be .*5.*6.*1.*not .*5.*5"),
    ({"options": np.zeros((6, 5))}, "options must be .*5.*6.*1.*not .*6.*5"),
    ({"present": np.ones(6)}, "present must be .*5.*not .*6"),
    ({"present": ["yes"] * 5}, "present must hold booleans .* not text"),
    ({"present": [0.5] * 5}, "present must hold booleans .* not 0.5"),
    ({"sees_agents": np.ones((5, 6))}, "sees_agents must be .*5.*5.*not .*5.*6"),
    ({"sees_tasks": np.ones((6, 5))}, "sees_tasks must be .*5.*6.*not .*6.*5"),
    ({"public": np.ones(4)}, "public must be .*3.*not .*4"),
    ({"memory": (np.ones((5, 9)), np.ones((5, 9)), np.ones(5))}, "memory .* 5 .*8.*9"),
    ({"memory": (np.ones((5, 8)), np.ones((5, 8)))}, "memory .* 5 agents, .*8.*not"),
    ({"memory": (np.full((5, 8), np.nan),) * 2 + (np.ones(5),)}, "memory .* finite"),
    ({"memory": (np.ones((5, 8)),) * 2 + (np.full(5, 2),)}, "memory .* not 2"),
    ({"memory": (np.ones((5, 8)), "cell", np.ones(5))}, "memory must hold numbers"),
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


def test_what_is_no_array_at_all_is_refused(both):
    """Where no type checker has said so before."""
    _, alone = both
    with pytest.raises(ValueError, match="agents must hold numbers, not object"):
        alone.decide(None, [], [])
    with pytest.raises(ValueError, match="memory must be what the last decision gave"):
        alone.decide(*moment(5, 6), memory=5)


def test_memory_is_for_policies_that_remember(tmp_path):
    path = checkpoint(
        tmp_path / "p.safetensors", ActorConfig(hidden=8), Features(3, 2, 1)
    )
    export(path, tmp_path)
    memory = (np.zeros((5, 8)), np.zeros((5, 8)), np.ones(5))
    alone = load_numpy(tmp_path / "policy.npz")
    with pytest.raises(PlatoError, match="left out: this policy does not remember"):
        load(path).decide(*moment(5, 6), memory=memory)
    with pytest.raises(ValueError, match="left out: this policy does not remember"):
        alone.decide(*moment(5, 6), memory=memory)


@pytest.mark.parametrize("config", VARIANTS, ids=str)
@pytest.mark.parametrize("actions", [1, 3])
def test_nobody_decides_nothing(tmp_path, config, actions):
    """Also with memory, in short, and where there is nothing to do either."""
    path = checkpoint(tmp_path / "p.safetensors", config, Features(3, 2, actions))
    export(path, tmp_path)
    for policy in (load(path), load_numpy(tmp_path / "policy.npz")):
        memory = None
        for tasks in (4, 0):
            agents, rows, options = moment(0, tasks, actions)
            chosen, probabilities, memory = policy.decide(
                agents, rows, options, memory=memory
            )
            assert chosen.shape == (0,)
            assert probabilities.shape == (0, 1 + tasks * actions)
            short = policy.decide([], rows, [], sees_agents=[], greedy=True)
            assert short[1].shape == probabilities.shape
        assert (memory is None) == (config.encoder == "mlp")


def test_numbers_may_be_of_any_kind(both):
    """0 and 1 for booleans, whole numbers, and JAX's of 16 bits."""
    agents, tasks = np.arange(6).reshape(2, 3), np.arange(8).reshape(4, 2)
    options = np.eye(2, 4)
    for policy in both:
        _, expected, _ = policy.decide(agents.tolist(), tasks, options > 0)
        for kind in (np.float64, np.int8, np.bool_, jax.numpy.bfloat16):
            features = agents if kind is np.bool_ else agents.astype(kind)
            found = policy.decide(features, tasks, options.astype(kind))[1]
            np.testing.assert_array_equal(found, expected)


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
