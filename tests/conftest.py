"""Shapes and types are checked at run time in all tests, and warnings are errors."""

from jaxtyping import install_import_hook

# Before anything of plato is imported: every annotated function is checked as it runs.
install_import_hook("plato", "typecheck.check")

import os  # noqa: E402
from functools import partial  # noqa: E402

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from cache import CACHE  # noqa: E402
from command_line import run_plato  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
# Compiled programs are kept between runs: what tests wait for is mostly the compiler.
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

settings.register_profile(
    "plato",
    deadline=None,  # the first example compiles
    derandomize=True,
    max_examples=int(os.environ.get("PLATO_EXAMPLES", "30")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("plato")


@pytest.fixture
def plato(tmp_path):
    """Runs `plato …` in an empty folder."""
    return partial(run_plato, tmp_path)


QUICKLY_COMPILED = {
    "evaluation",
    "learners",
    "policies",
    "properties",
    "runs",
    "tuning",
}
"""Folders whose programs are many and small, and run for less time than they compile.

The others hold the dynamics to recorded numbers: they run what users run.
"""


@pytest.fixture(scope="module", autouse=True)
def compiled_quickly(request):
    """Compiles without most optimisations where that saves time."""
    quickly = request.path.parent.name in QUICKLY_COMPILED
    jax.config.update("jax_disable_most_optimizations", quickly)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
