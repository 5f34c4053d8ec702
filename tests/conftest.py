"""What many tests share: the embedded encoder, and where the real data is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from colbert_prf import Encoder

# No test depends on how fast the machine is; under CI the same examples come every time.
settings.register_profile("untimed", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("untimed")

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return Encoder.load()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the collections in ../shared/data")
    return SHARED_DATA
