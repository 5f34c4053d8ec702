"""A small index and servers over it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from colbert_prf import Index
from tests.server.serving import PASSAGES, WRITE, serving


@pytest.fixture(scope="session")
def built(tmp_path_factory, encoder) -> Path:
    path = tmp_path_factory.mktemp("server") / "built.index"
    Index.create(path, PASSAGES, encoder=encoder, bits=4, progress=False)
    return path


@pytest.fixture
def folder(built, tmp_path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(built, tmp_path / "fish.index"))


@pytest.fixture(scope="session")
def client(built):
    """Of a server without keys, which reads only."""
    with serving(built) as client:
        yield client


@pytest.fixture
def writable(folder):
    """Of a server that takes writes."""
    with serving(folder, write_key="write", patience=0.2) as client:
        client.headers.update(WRITE)
        yield client
