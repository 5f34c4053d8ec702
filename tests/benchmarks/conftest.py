"""Small encoded texts, and a data folder of the form the benchmarks read."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from vectors import Texts

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

PASSAGES = {
    f"p{number}": f"{subject} {verb} {place}."
    for number, (subject, verb, place) in enumerate(
        (subject, verb, place)
        for subject in ("A goldfish", "The old tank", "Every bank", "My neighbour's cat")
        for verb in ("grows slowly in", "was found near", "never leaves")
        for place in ("the pond", "a small bowl", "the army's camp", "the river", "the city")
    )
}


def _run_script(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a benchmark as a user does."""
    command = [sys.executable, BENCHMARKS / name, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def _random_texts(lengths: list[int], *, dim: int = 16, seed: int = 0) -> Texts:
    random = np.random.default_rng(seed)
    parts = []
    for number, length in enumerate(lengths):
        vectors = random.standard_normal((length, dim), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        parts.append((f"t{number}", random.integers(0, 50, length).astype(np.int32), vectors))
    return Texts.join(parts)


@pytest.fixture(scope="session")
def run_script() -> Callable[..., subprocess.CompletedProcess[str]]:
    return _run_script


@pytest.fixture(scope="session")
def random_texts() -> Callable[..., Texts]:
    return _random_texts


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty passages, two topics a year, and judgements."""
    folder = tmp_path_factory.mktemp("data")
    lines = "".join(f"{doc_id}\t{text}\n" for doc_id, text in PASSAGES.items())
    (folder / "collection.tsv.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "queries.dl19.tsv").write_text("q1\tgoldfish in a bowl\nq2\tbank near the river\n")
    (folder / "queries.dl20.tsv").write_text("q3\twhere is the cat\nq4\ttank of the army\n")
    (folder / "qrels.dl19.txt").write_text("q1 0 p1 3\nq1 0 p0 1\nq2 0 p38 2\n")
    (folder / "qrels.dl20.txt").write_text("q3 0 p45 2\nq3 0 p59 2\nq4 0 p17 3\n")
    return folder
