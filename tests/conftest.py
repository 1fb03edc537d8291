"""Shapes and types are checked at run time in all tests, and warnings are errors."""

# isort: off
import compiling as compiling  # before JAX, which reads what it sets

from jaxtyping import install_import_hook

# Before anything of plato is imported: every annotated function is checked as it runs.
install_import_hook("plato", "typecheck.check")

import gc  # noqa: E402
import os  # noqa: E402
from functools import partial  # noqa: E402

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from browser import Browser, find_browser  # noqa: E402
from command_line import run_plato  # noqa: E402
from small_runs import trained  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")

# What is imported stays: it need not be looked through for garbage again and again,
# nor need the rest as often as small programs do.
gc.freeze()
gc.set_threshold(10_000)

settings.register_profile(
    "plato",
    deadline=None,  # the first example compiles
    derandomize=True,
    max_examples=int(os.environ.get("PLATO_EXAMPLES", "30")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("plato")

WITHOUT = "PLATO_WITHOUT_BROWSER"
NO_BROWSER = (
    "No Chromium was found, so no page can be tested. Install one (as root, "
    "`make browser` does; on Debian: apt-get install chromium), name one in "
    f"PLATO_BROWSER, or set {WITHOUT}=1 to go without these tests."
)


@pytest.fixture
def plato(tmp_path):
    """Runs `plato …` in an empty folder."""
    return partial(run_plato, tmp_path)


@pytest.fixture(scope="session")
def additive(tmp_path_factory):
    """Two trainings on 2×3 S3, which many tests compare."""
    return trained(tmp_path_factory.mktemp("runs") / "additive")


@pytest.fixture(scope="session")
def browser():
    """A page of a real browser, for whatever is to be looked at."""
    if find_browser() is None:
        if os.environ.get(WITHOUT):
            pytest.skip(NO_BROWSER)
        pytest.fail(NO_BROWSER)
    with Browser() as opened:
        yield opened
