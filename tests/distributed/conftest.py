"""One small local Ray for all tests of this folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

CPUS = 4


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[object]:
    """Ray with four logical CPUs and little memory; `connected()` uses it instead of starting another."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=CPUS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 << 20,
    )
    yield ray
    ray.shutdown()
