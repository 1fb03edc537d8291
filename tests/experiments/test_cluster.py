"""A real Ray cluster of two workers, one of which is lost in the middle."""

import logging
import math
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from small_cells import SETTINGS, given, trained

from plato import cluster as door
from plato.errors import PlatoError
from plato.experiments import board
from plato.experiments import cluster as module
from plato.experiments.board import Board, News, progress
from plato.experiments.cells import Row
from plato.experiments.cluster import Cluster
from plato.experiments.listener import Listener
from plato.experiments.store import Entry, Store
from plato.runs.train import Progress

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
        pytest.raises(PlatoError, match="it has let nobody in for 0 seconds") as said,
    ):
        Cluster(address).run([given()], Store(tmp_path), Listener())
    over.set()
    assert f"The Ray cluster at {address} did not let us in" in str(said.value)
    assert "set RAY_AUTH_MODE=token" in str(said.value)


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
        return lambda what: self.Said() if what is Board else self.Task()

    class Task:
        def remote(self, cell, board):
            return cell.seed

    class Said:
        """A board that nobody writes on."""

        def remote(self):
            return self

        @property
        def said(self):
            return self

    def wait(self, running, timeout):
        self.most = max(self.most, len(running))
        with self.store.claimed([trained(seed) for seed in running]) as free:
            assert not free
        return running[:1], running[1:]

    def get(self, seed, timeout=None) -> Any:
        if isinstance(seed, self.Said):
            return {}
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


def test_a_worker_that_learned_from_others_is_not_believed(tmp_path, monkeypatch):
    fake, store, said = Immediately(Store(tmp_path)), Store(tmp_path), []
    monkeypatch.setattr(module, "connected", lambda address: nullcontext(fake))
    monkeypatch.setattr(fake, "get", lambda *_, **__: Entry("another", {}))
    monkeypatch.setattr(module, "News", lambda *_: Silence())
    with pytest.raises(PlatoError, match="1 of 1 cells could not be done"):
        Cluster().run([trained(42)], store, Listener(says=said.append))
    assert "has other policies to learn from" in said[0]
    assert not store.has(trained(42))


class Silence:
    board = None

    def tell(self, asked):
        pass


def going(update: int, seconds_left: float = 5.0) -> Progress:
    """A training of six updates."""
    returns = np.asarray([10.0 * update])
    return Progress(update, 6, 100.0, seconds_left, {"kl": np.zeros(1)}, returns)


class OnBoard:
    """Ray, as far as a board needs it."""

    exceptions = ray.exceptions

    def __init__(self) -> None:
        self.written: dict[str, Progress | None] = {}
        self.lost = False

    def remote(self, **_):
        return lambda what: SimpleNamespace(remote=lambda: self)

    @property
    def said(self):
        return SimpleNamespace(remote=lambda: None)

    def get(self, reference, timeout):
        if self.lost:
            raise ray.exceptions.GetTimeoutError
        return self.written


def test_news_are_of_what_runs(monkeypatch):
    """Not of what waits for a worker."""
    monkeypatch.setattr(board, "PATIENCE", 0.0)
    dgn, weakest = Row("DGN", SETTINGS), Row("Weakest", policy="weakest")
    cells = [given(weakest), trained(42), trained(43), trained(42, dgn), trained(44)]
    fake, heard, shares = OnBoard(), [], []
    listener = Listener(
        lambda now: heard.append([str(cell) for cell in now]),
        lambda p: shares.append((p.update / p.updates, p.mean_return)),
    )
    news = News(fake, listener)
    news.tell(cells)
    assert not heard
    fake.written |= {str(cells[0]): None, str(cells[1]): None}
    news.tell(cells)
    assert heard == [[str(cells[1]), str(cells[0])]]  # what trains comes first
    assert not shares
    fake.written |= {str(cells[1]): going(3), str(cells[2]): None}
    fake.written |= {str(cells[3]): going(6, math.nan)}
    news.tell(cells[1:])
    assert heard[1:] == [list(map(str, cells[1:4]))]
    assert shares == [(0.5, "45.0")]  # half, nothing yet, and all of it
    fake.lost = True
    news.tell(cells[1:])
    fake.lost = False
    news.tell(cells[1:3])
    assert len(heard) == 3
    assert shares[1:] == [(0.25, "30.0")]


def test_trainings_of_several_workers_are_told_as_one():
    cells = [trained(42), trained(43)]
    assert progress(cells, dict.fromkeys(map(str, cells))) is None
    both = progress(cells, {str(cells[0]): going(2, 7.0), str(cells[1]): going(4, 3.0)})
    assert both is not None
    assert (both.update, both.updates) == (240, 480)
    assert (both.steps_per_second, both.seconds_left) == (200.0, 7.0)


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
    assert door._knock(nodes.cluster.address)


@pytest.mark.usefixtures("nodes")
def test_a_cell_that_cannot_be_done_does_not_harm_others(tmp_path):
    bad = replace(given(), plays=("wildfire-nowhere",))
    store, said = Store(tmp_path), []
    with pytest.raises(PlatoError, match="1 of 2 cells could not be done"):
        Cluster().run([bad, given()], store, Listener(says=said.append))
    assert store.has(given())
    assert not store.has(bad)
    assert any("no setup named 'wildfire-nowhere'" in line for line in said)


@pytest.mark.usefixtures("nodes")
def test_trials_are_tasks_too():
    """Those that are done are there, whatever becomes of the others."""
    import plato
    from plato.tuning.cluster import scores_of_cluster
    from plato.tuning.spaces import SPACES, Choice, defaults
    from plato.tuning.trials import Ears

    middle = {
        name: of.sizes[0] if isinstance(of, Choice) else (of.low * of.high) ** 0.5
        for name, of in SPACES["dicg"].items()
    }
    setup, heard = plato.load_setup("wildfire-2x3-S3"), []
    trials = [middle, middle | {"nonsense": 1.0}, middle]
    ears = Ears(lambda places, share: heard.append((places, share)))
    budget = {"steps": 1200, "seed": 42, "validation": 2, "ears": ears}
    with scores_of_cluster(None) as scores:
        answers = iter(scores(defaults("dicg"), setup, trials, **budget))
        found = dict(next(answers) for _ in range(2))
        with pytest.raises(PlatoError, match=r"1 of 3 trials could not .*nonsense"):
            next(answers)
    assert found.keys() == {0, 2}
    assert found[0] == found[2]
    assert math.isfinite(found[0])
    assert heard == [([0, 1, 2], 0.0)]


def test_what_trials_say_elsewhere_is_said_here(monkeypatch):
    from plato.tuning import cluster as tuning
    from plato.tuning.trials import Ears

    def too_large(*_, ears, **settings):
        ears.says("The trial does not fit.")
        yield 0, math.nan

    monkeypatch.setattr(tuning, "scores", too_large)
    fake = SimpleNamespace(
        wait=lambda references, timeout: (references, []),
        get=lambda reference: tuning.score_elsewhere("dicg", None, {}),
        exceptions=SimpleNamespace(RayError=RuntimeError),
    )
    said = []
    ((place, score),) = tuning._as_they_come(fake, {"trial": 3}, Ears(says=said.append))
    assert place == 3
    assert math.isnan(score)
    assert said == ["The trial does not fit."]


def test_trials_ask_for_what_they_are_given_of_a_gpu(monkeypatch):
    from plato.tuning import cluster as tuning

    asked = []
    fake = SimpleNamespace(
        remote=lambda **options: asked.append(options) or (lambda f: f)
    )
    monkeypatch.setattr(tuning, "connected", lambda address: nullcontext(fake))
    with tuning.scores_of_cluster("auto", 0.25):
        pass
    with tuning.scores_of_cluster("auto", 1.0):
        pass
    shared, whole = asked
    assert whole == {"max_retries": door.RETRIES, "num_gpus": 1.0}
    # Several on one GPU leave each other its memory.
    variables = shared.pop("runtime_env")["env_vars"]
    assert shared == whole | {"num_gpus": 0.25}
    assert variables == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def test_a_worker_is_lost_and_nothing_else(nodes, tmp_path):
    """The last of those on the cluster: the worker stays lost."""
    cells = [trained(seed) for seed in range(42, 45)]
    store, heard, begun, shares = Store(tmp_path), [], [], []

    def hear(cell, entry):
        if not heard:
            # It is at work on a cell of its own now.
            nodes.cluster.remove_node(nodes.spare, allow_graceful=False)
        heard.append(cell)

    listener = Listener(
        begun.append, lambda p: shares.append(p.update / p.updates), hear
    )
    Cluster().run(cells, store, listener)
    # Two workers: however many cells wait for one, no more than two run.
    assert begun
    assert max(map(len, begun)) <= 2
    assert shares
    assert all(0 < share <= 1 for share in shares)
    assert sorted(map(str, heard)) == sorted(map(str, cells))
    assert all(map(store.has, cells))
    # Asked again, nothing is left to do.
    Cluster().run(cells, store, Listener(done=hear))
    assert len(heard) == len(cells)
