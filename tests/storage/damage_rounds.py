"""Flip bits of an index and use it; run by test_damage.py in a process of its own, which a wild read may kill.

``damage_rounds.py FOLDER KIND SEED``: for every array of a small index, flip bits at random places, the highest bits of
random elements, and the highest bit of every element. Each time everything an index does either works or raises an
error of ours; a merge that works leaves an index that verifies. KIND is ``lexical``, ``single``, or the bits of an
index of compressed vectors.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from index_kinds import KINDS, Counts

from colbert_prf import (
    CentroidPRF,
    ColbertPRF,
    ColbertPrfError,
    EncodedDocument,
    EncodedQuery,
    Feedback,
    Index,
    Retriever,
    Searcher,
)
from colbert_prf.baselines import BM25, RM3, AverageFeedback, SingleVector

DIM, VOCABULARY, K = 16, 50, 10


def encoded(seed: int, length: int) -> EncodedDocument:
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((length, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedDocument(draw.integers(0, VOCABULARY, length).astype(np.int32), vectors)


def documents(first: int, count: int) -> list[tuple]:
    return [
        (f"d{n}", encoded(n, n % 9), f"text {n}", {"number": n, "name": f"n{n % 3}"})
        for n in range(first, first + count)
    ]


def create(path: Path, kind: str) -> None:
    """Two segments and deletions; of compressed vectors also metadata, and documents without vectors."""
    if kind in KINDS:
        given = [(f"d{n}", f"{n % 7} {n % 5} {n % 3}") for n in range(80)]
        other = KINDS[kind].create(path, given[:40])
        KINDS[kind].add(other, given[40:])
        other.delete(["d3", "d50"])
        return
    index = Index.create_from_vectors(
        path, documents(0, 40), bits=int(kind), vocabulary_size=VOCABULARY, texts=True, progress=False
    )
    index.add_vectors(documents(40, 40))
    index.delete(["d3", "d50"])


def damages(array: np.ndarray, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Copies of an array, each with other bits flipped."""
    size = array.dtype.itemsize
    for place in draw.integers(0, array.nbytes, 2):
        yield _flipped(array, [place], 1 << int(draw.integers(8)))
    yield _flipped(array, [size * int(draw.integers(array.size)) + size - 1], 0x80)
    yield _flipped(array, np.arange(size - 1, array.nbytes, size), 0x80)


def _flipped(array: np.ndarray, places: list[int] | np.ndarray, bits: int) -> np.ndarray:
    damaged = array.copy()
    damaged.reshape(-1).view(np.uint8)[places] ^= np.uint8(bits)
    return damaged


def write(path: Path, array: np.ndarray) -> None:
    """Replace the data of a ``.npy`` file and leave its header as it is."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - array.nbytes] + array.tobytes())


class Attempts:
    """Keeps the tracebacks of what is neither a result nor an error of ours."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def __call__(self, action: Callable[..., object], *arguments: object) -> None:
        try:
            action(*arguments)
        except ColbertPrfError:
            pass
        except Exception:
            self.wrong.append(traceback.format_exc())


def merge(index: Any) -> None:
    index.merge()
    index.verify()


def use(path: Path, kind: str) -> list[str]:
    """Do everything with an index; give the tracebacks of what is neither a result nor an error of ours."""
    attempt = Attempts()
    if kind in KINDS:
        attempt(use_pairs, path, kind, attempt)
    else:
        attempt(use_vectors, path, attempt)
    return attempt.wrong


def use_pairs(path: Path, kind: str, attempt: Attempts) -> None:
    """Everything a lexical index or one of single vectors does."""
    index = KINDS[kind].open(path)
    if kind == "lexical":
        systems: list[Retriever] = [BM25(index), BM25(index, feedback=RM3())]
        for position in range(0, index.num_positions, 7):
            attempt(index.snapshot.term_frequencies, position)
        attempt(index.document_frequency, "3")
    else:
        systems = [SingleVector(index, Counts(), exact=exact, feedback=AverageFeedback()) for exact in (True, False)]

    def search(system: Retriever) -> None:
        for hit in system.search("1 2 2 3", K):
            attempt(getattr, hit, "text")

    for system in systems:
        attempt(search, system)
    for position in range(0, index.num_positions, 7):
        for take in (index.snapshot.doc_id, index.snapshot.text):
            attempt(take, position)
    attempt(index.delete, ["d7"])
    attempt(KINDS[kind].upsert, index, [("d9", "1 2"), ("new", "3")])
    attempt(merge, index)


def use_vectors(path: Path, attempt: Attempts) -> None:
    """Everything an index of compressed vectors does."""
    vectors = encoded(999, 5)
    query = EncodedQuery(vectors.token_ids, vectors.vectors)

    def score(index: Index) -> None:
        assert index.score(query).shape == (index.num_positions,)

    def read(index: Index, searcher: Searcher) -> None:
        for position in range(0, index.num_positions, 7):
            for take in (index.doc_id, index.text, index.metadata, index.vectors, index.token_ids):
                attempt(take, position)
            attempt(searcher.explain, query, f"d{position}")
        for code in range(index.codec.num_centroids):
            attempt(index.segments[0].documents_with_any, np.array([code]))
        attempt(index.segments[0].postings)

    def search(searcher: Searcher, probes: int | None, feedback: Feedback | None = None) -> None:
        ranking = searcher.search(query, K, probes=probes, feedback=feedback)
        assert len(ranking) <= K
        for hit in ranking:
            attempt(searcher.explain, query, hit.doc_id)

    def select(searcher: Searcher, where: dict) -> None:
        assert len(searcher.search(query, K, where=where)) <= K

    def use_open(index: Index) -> None:
        searcher = Searcher(index, threads=1)
        for probes in (None, 1, 1000):
            attempt(search, searcher, probes)
        for feedback in (ColbertPRF(), ColbertPRF(weighting="ictf"), CentroidPRF()):
            attempt(search, searcher, None, feedback)
        for where in ({"number": {">": 9}}, {"name": {"<=": "n1"}}):
            attempt(select, searcher, where)
        attempt(score, index)
        attempt(read, index, searcher)
        attempt(index.document_frequency, np.arange(VOCABULARY))
        attempt(index.delete, ["d7"])
        attempt(merge, index)

    use_open(Index.open(path))


def main(folder: Path, kind: str, seed: int) -> None:
    os.fsync = lambda descriptor: None  # most of the time, and not what is tested
    warnings.simplefilter("ignore")  # damaged float16 vectors overflow
    sound, path = folder / "sound", folder / "damaged"
    create(sound, kind)
    shutil.copytree(sound, path)
    assert use(path, kind) == [], "an index without damage must work"
    num_documents = KINDS.get(kind, Index).open(path).num_documents
    assert num_documents == (78 if kind in KINDS else 77), "deleting, replacing and merging must work"
    draw = np.random.default_rng(seed)
    for file in sorted(sound.glob("*/*.npy")):
        if "000002" in file.parts[-2]:
            continue  # one segment is enough
        name = file.relative_to(sound)
        for damaged in damages(np.load(file), draw):
            print(name, flush=True)  # the last line names the file of a crash
            shutil.rmtree(path)
            shutil.copytree(sound, path)
            write(path / name, damaged)
            if wrong := use(path, kind):
                sys.exit("\n".join([f"damaged: {name}", *wrong]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
