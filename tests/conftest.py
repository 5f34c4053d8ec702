"""What many tests share: the embedded encoder, and where the real data is."""

from __future__ import annotations

from pathlib import Path

import pytest

from colbert_prf import Encoder

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return Encoder.load()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the collections in ../shared/data")
    return SHARED_DATA
