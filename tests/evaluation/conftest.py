"""Runs that several tests compare, trained once."""

import pytest

from small_runs import trained


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory):
    """One training on 2×3 S2."""
    folder = tmp_path_factory.mktemp("runs") / "elsewhere"
    return trained(folder, setups=("wildfire-2x3-S2",), seeds=1)
