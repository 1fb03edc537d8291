"""Where tests keep compiled programs between runs."""

import os
from pathlib import Path

# Each worker its own: JAX's cache is not safe against readers beside a writer.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")
CACHE = Path(".pytest_cache/jax").resolve() / WORKER
