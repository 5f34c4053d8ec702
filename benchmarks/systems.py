"""The systems that run in this process: the engine at several bits, its preset `paper`, and brute force in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from vectors import Texts, folder_bytes

from colbert_prf import EncodedDocument, EncodedQuery, Index, Ranking, Searcher
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.kernels.topk import best_sorted

LABELS = {
    **{f"ours-{bits}": f"colbert-prf, {bits} bits" for bits in (2, 4, 16)},
    "ours-4-hasty": "colbert-prf, 4 bits, rescore=1000",
    "paper": "colbert-prf, preset paper",
    "brute-force": "NumPy brute force",
}
"""Every system of this process, and how tables call it."""
HASTY = 1000
"""Documents that are scored exactly by a search in a hurry."""


@dataclass(frozen=True)
class System:
    """A system that is ready to search.

    Parameters
    ----------
    build_seconds, num_bytes
        What it took, from vectors in memory, and how large it is.
    search
        Takes a query, a cutoff and a number of threads; this is what is timed.
    places
        Turns what ``search`` gives into the places of documents in the collection, best first.
    depends_on_cutoff
        Whether the cutoff changes the work; if not, one measurement serves for all.
    """

    build_seconds: float
    num_bytes: int
    search: Callable[[EncodedQuery, int, int], object]
    places: Callable[[object], NDArray[np.int64]]
    depends_on_cutoff: bool = True


def build(name: str, documents: Texts, folder: Path) -> System:
    """Make a system ready."""
    if name == "brute-force":
        return brute_force(documents)
    if name == "paper":
        return engine(documents, folder, bits=16, preset="paper")
    bits, _, hasty = name.removeprefix("ours-").partition("-")
    return engine(documents, folder, bits=int(bits), hasty=bool(hasty))


def engine(
    documents: Texts, folder: Path, *, bits: int, preset: Literal["paper"] | None = None, hasty: bool = False
) -> System:
    """An index on disk and its searcher; built when it has answered a query, for a preset builds more at its first.

    A hasty one scores a thousand documents exactly, whatever k is, and so none to spare for k=1000.
    """
    query = EncodedQuery(documents.token_ids[:8], documents.vectors[:8])
    size = int(documents.token_ids.max()) + 1
    started = perf_counter()
    index = Index.create_from_vectors(
        folder, encoded(documents), bits=bits, vocabulary_size=size, progress=False, total=len(documents)
    )
    searcher = Searcher(index, preset=preset, progress=False)
    searcher.search(query, 1)
    seconds = perf_counter() - started
    place = {name: number for number, name in enumerate(documents.names.tolist())}

    def places(ranking: object) -> NDArray[np.int64]:
        assert isinstance(ranking, Ranking)
        return np.array([place[doc_id] for doc_id in ranking.doc_ids], dtype=np.int64)

    def search(query: EncodedQuery, k: int, threads: int) -> object:
        return searcher.search(query, k, threads=threads, rescore=HASTY if hasty else None)

    return System(seconds, folder_bytes(folder), search, places)


def brute_force(documents: Texts) -> System:
    """All similarities by a float32 matrix product, then the maximum of each document; BLAS has the threads."""

    def search(query: EncodedQuery, cutoff: int, threads: int) -> object:
        return best_sorted(maxsim(query.vectors, query.weights, documents.vectors, documents.offsets), cutoff)

    return System(0.0, documents.vectors.nbytes, search, np.asarray, depends_on_cutoff=False)


def encoded(documents: Texts) -> Iterator[tuple[str, EncodedDocument]]:
    """The documents as an index takes them."""
    return ((name, EncodedDocument(token_ids, vectors)) for name, token_ids, vectors in documents)


def encoded_queries(queries: Texts) -> list[EncodedQuery]:
    return [EncodedQuery(token_ids, vectors) for _, token_ids, vectors in queries]
