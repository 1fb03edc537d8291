"""A real Ray cluster of two workers, one of which is lost in the middle."""

import logging
import math
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from small_cells import given, trained

from plato import cluster as door
from plato.errors import PlatoError
from plato.experiments import cluster as module
from plato.experiments.cluster import Cluster
from plato.experiments.listener import Listener
from plato.experiments.store import Entry, Store

ray = pytest.importorskip("ray", reason="extra `cluster` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


def test_a_cluster_that_is_not_there(tmp_path):
    with pytest.raises(PlatoError, match="There is no Ray cluster at 127"):
        Cluster("127.0.0.1:1").run([given()], Store(tmp_path), Listener())


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """The address of a server that says one thing to everybody, and no more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        guests = []

        def serve() -> None:
            with suppress(OSError):  # it was closed
                while True:
                    guest, _ = server.accept()
                    guest.sendall(answer)
                    guests.append(guest)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for guest in guests:
            guest.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"", "timed out"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not Ray")],
)
def test_something_else_than_a_cluster_answers(tmp_path, monkeypatch, answer, words):
    """Ray itself would try for minutes."""
    monkeypatch.setattr(door, "KNOCK", 0.3)
    with answering(answer) as address, pytest.raises(PlatoError) as raised:
        Cluster(address).run([given()], Store(tmp_path), Listener())
    assert f"There is no Ray cluster at {address} (" in str(raised.value)
    assert words in str(raised.value)


def test_a_cluster_that_lets_nobody_in(tmp_path, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(door, "WELCOME", 0.2)
    monkeypatch.setattr(ray, "init", lambda **_: over.wait(60))
    with (
        answering(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])) as address,
        pytest.raises(PlatoError, match="it has let nobody in for 0 seconds"),
    ):
        Cluster(address).run([given()], Store(tmp_path), Listener())
    over.set()


def test_what_ray_says_when_it_cannot_connect(tmp_path, monkeypatch):
    def refuse(**_):
        raise ConnectionError("some trace\nversions differ")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(PlatoError, match=r"no Ray cluster at auto \(versions differ\)"):
        Cluster("auto").run([given()], Store(tmp_path), Listener())


def test_without_ray(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PlatoError, match=r"plato-marl\[cluster\]"):
        Cluster().run([given()], Store(tmp_path), Listener())


class Immediately:
    """Ray, as far as it is used, for tasks that take no time."""

    exceptions = ray.exceptions

    def __init__(self, store: Store) -> None:
        self.store, self.most = store, 0

    def cluster_resources(self):
        return {"CPU": 3.0}

    def remote(self, **_):
        return lambda task: self.Task()

    class Task:
        def remote(self, cell):
            return cell.seed

    def wait(self, running, timeout):
        self.most = max(self.most, len(running))
        with self.store.claimed([trained(seed) for seed in running]) as free:
            assert not free
        return running[:1], running[1:]

    def get(self, seed):
        cell = trained(seed)
        return Entry(cell.fingerprint, {"cell": cell.to_mapping()})


def test_only_some_cells_are_claimed_at_a_time(tmp_path, monkeypatch):
    """However many there are: each claim is an open file."""
    fake, store, heard = Immediately(Store(tmp_path)), Store(tmp_path), []
    monkeypatch.setattr(module, "connected", lambda address: nullcontext(fake))
    cells = [trained(seed) for seed in range(30)]
    store.add(cells[3], fake.get(3))
    with fake.store.claimed([cells[4]]):
        Cluster().run(cells, store, Listener(done=lambda c, _: heard.append(c.seed)))
    assert fake.most == 3 * module.AHEAD
    assert heard == [seed for seed in range(30) if seed not in (3, 4)]
    with fake.store.claimed(cells) as free:
        assert free == [cells[4]]


class Nodes(NamedTuple):
    """A running cluster, and the one of its two workers that can be done without."""

    cluster: Any
    spare: Any


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    from ray.cluster_utils import Cluster as LocalCluster

    cluster = LocalCluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False},
    )
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    _, spare = (cluster.add_node(num_cpus=1) for _ in range(2))
    cluster.wait_for_nodes()
    yield Nodes(cluster, spare)
    ray.shutdown()
    cluster.shutdown()


def test_a_real_cluster_answers_as_one(nodes):
    door._knock(nodes.cluster.address)


@pytest.mark.usefixtures("nodes")
def test_a_cell_that_cannot_be_done_does_not_harm_others(tmp_path):
    bad = replace(given(), plays=("wildfire-nowhere",))
    store, said = Store(tmp_path), []
    with pytest.raises(PlatoError, match="1 of 2 cells could not be done"):
        Cluster().run([bad, given()], store, Listener(says=said.append))
    assert store.has(given())
    assert not store.has(bad)
    assert "no setup named 'wildfire-nowhere'" in said[0]


@pytest.mark.usefixtures("nodes")
def test_trials_are_tasks_too():
    import plato
    from plato.tuning.cluster import scores_of_cluster
    from plato.tuning.spaces import SPACES, Choice

    middle = {
        name: of.sizes[0] if isinstance(of, Choice) else (of.low * of.high) ** 0.5
        for name, of in SPACES["dicg"].items()
    }
    setup = plato.load_setup("wildfire-2x3-S3")
    with scores_of_cluster(None) as scores:
        found = scores("dicg", setup, [middle] * 2, steps=1200, seed=42, validation=2)
    assert len(found) == 2
    assert found[0] == found[1]
    assert math.isfinite(found[0])


def test_a_worker_is_lost_and_nothing_else(nodes, tmp_path):
    """The last of those on the cluster: the worker stays lost."""
    cells = [trained(seed) for seed in range(42, 45)]
    store, heard = Store(tmp_path), []

    def hear(cell, entry):
        if not heard:
            # It is at work on a cell of its own now.
            nodes.cluster.remove_node(nodes.spare, allow_graceful=False)
        heard.append(cell)

    Cluster().run(cells, store, Listener(done=hear))
    assert sorted(map(str, heard)) == sorted(map(str, cells))
    assert all(map(store.has, cells))
    # Asked again, nothing is left to do.
    Cluster().run(cells, store, Listener(done=hear))
    assert len(heard) == len(cells)
