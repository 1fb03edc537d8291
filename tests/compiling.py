"""How tests compile: what they wait for is mostly the compiler.

Imported before JAX, as it reads these settings when it is.
"""

import os
from pathlib import Path

# Each worker its own: JAX's cache is not safe against readers beside a writer.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")
CACHE = Path(".pytest_cache/jax").resolve() / WORKER

os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

AS_USERS_DO = dict(os.environ)
"""The environment of processes that compile what users run."""
FLAGS = "--xla_cpu_use_fusion_emitters=false"
CHEAP = "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true"
TO_LEARN = AS_USERS_DO | {
    "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {FLAGS} {CHEAP}"
}
"""That of processes whose programs run for about as long as they take to compile."""

# Most programs here run for less time than they take to compile.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
FLAGS = f"{FLAGS} --xla_cpu_parallel_codegen_split_count=1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"
