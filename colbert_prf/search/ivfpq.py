"""The preset ``paper``: the search of the authors of ColBERT-PRF, to compare with.

1. a FAISS IVFPQ index over all vectors gives, from ``probes`` lists, the 1,000 nearest of each query vector;
2. every document one of these belongs to is scored by exact weighted MaxSim on its stored float16 vectors.

The index has 16 sub-quantisers of 8 bits and ``2^⌈log₂(8·√num_vectors)⌉`` lists, as in ColBERT [1]_, and is trained on
5 % of the vectors. Where that would leave a list fewer than 39 of them, there are fewer lists.

.. [1] Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
   BERT", SIGIR 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import StorageError
from colbert_prf.index.sampling import sample_vectors
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.workers import run
from colbert_prf.progress import progress_bar
from colbert_prf.search.budget import Execution
from colbert_prf.search.scorer import Mask, ScoredDocuments, StoredScorer
from colbert_prf.storage.derived import open_derived, writing_derived
from colbert_prf.types import EncodedQuery

__all__ = ["BITS", "PROBES", "PaperEngine", "build", "num_lists_for", "training_size_for"]

BITS = 16
"""Of an index that keeps the vectors themselves."""
PROBES = 10
NEAREST = 1000
"""k′: vectors per query vector."""

SUB_QUANTISERS, CODE_BITS = 16, 8
TRAINED_ON = 0.05
POINTS_PER_CENTROID = 39
"""Below which FAISS warns."""
SEED = 42
FILE = "paper-1.faiss"
"""The number counts the ways :func:`build` has worked: a file made in another way is not taken for one of ours."""
GROWTH = 4
SMALL = 1_000_000
"""Vectors up to which one thread builds: OpenMP's would spend their time waiting for each other at barriers."""


class PaperEngine:
    """Finds documents as the authors did; has the FAISS index of the segments it searched last.

    Many threads may search at once; the first one builds or opens the index and the others wait.

    Parameters
    ----------
    nearest
        k′, vectors per query vector.
    progress
        Whether a bar may be shown while the FAISS index is built.
    """

    def __init__(self, *, nearest: int = NEAREST, progress: bool = True) -> None:
        self.nearest = nearest
        self.progress = progress
        self._lock = Lock()
        self._opened: tuple[str, Any] | None = None

    def scored(
        self,
        snapshot: Snapshot,
        query: EncodedQuery,
        k: int,
        probes: int | None,
        execution: Execution,
        *,
        allowed: Mask = None,
    ) -> ScoredDocuments:
        """Every candidate with its exact score.

        ``probes`` are the lists of the FAISS index looked at for each query vector, 10 if left out. Where the nearest
        vectors belong to fewer than ``k`` documents and there are more, it looks at four times as many vectors and
        lists, and in the end at all documents.
        """
        mask = snapshot.live if allowed is None else snapshot.live & allowed
        positions = np.flatnonzero(mask)
        if len(positions) > k and snapshot.manifest.num_vectors:
            index = self._index(snapshot, execution)
            with execution.stage("candidates"):
                vectors = snapshot.codec.pad(query.vectors)
                positions = _candidates(index, vectors, k, mask, self.nearest, probes or PROBES, execution)
        with execution.stage("maxsim"):
            return ScoredDocuments(positions, StoredScorer(snapshot, query, execution.workers).scores(positions))

    def _index(self, snapshot: Snapshot, execution: Execution) -> Any:
        name = snapshot.manifest.derived
        opened = self._opened
        if opened is None or opened[0] != name:
            with execution.stage("prepare"), self._lock:
                opened = self._opened
                if opened is None or opened[0] != name:
                    opened = self._opened = name, _stored_or_built(snapshot, progress=self.progress)
        return opened[1]


def num_lists_for(num_vectors: int, num_trained: int) -> int:
    """How many lists there are: a power of two.

    >>> num_lists_for(687_000_000, 34_000_000), num_lists_for(789_043, 39_453), num_lists_for(3, 3)
    (262144, 512, 1)
    """
    wanted = math.ceil(math.log2(8 * math.sqrt(num_vectors)))
    trainable = math.floor(math.log2(max(1, num_trained / POINTS_PER_CENTROID)))
    return int(2 ** min(wanted, trainable))


def training_size_for(num_vectors: int) -> int:
    """How many vectors to train on: 5 %, or what 256 centroids of a sub-quantiser need.

    >>> training_size_for(1_000_000), training_size_for(20_000), training_size_for(100)
    (50000, 9984, 100)
    """
    return min(num_vectors, max(math.ceil(TRAINED_ON * num_vectors), POINTS_PER_CENTROID << CODE_BITS))


def build(snapshot: Snapshot, *, seed: int = SEED, progress: Callable[[int], object] = lambda count: None) -> Any:
    """Make the FAISS index of a generation; its ids are the positions of the documents, deleted ones included.

    Parameters
    ----------
    snapshot
        With at least one vector that is not deleted.
    seed
        Of the sample and of k-means.
    progress
        Called with the number of vectors just added.
    """
    import faiss

    dim, num_vectors = snapshot.manifest.settings.dim, snapshot.manifest.num_vectors
    sample = sample_vectors(snapshot.segments, training_size_for(num_vectors), dim=dim, seed=seed)
    sample = snapshot.codec.pad(sample)
    stored = sum(segment.info.num_vectors for segment in snapshot.segments)
    width = sample.shape[1]
    num_lists = num_lists_for(stored, len(sample))
    quantiser = faiss.IndexFlatIP(width)
    index = faiss.IndexIVFPQ(quantiser, width, num_lists, SUB_QUANTISERS, CODE_BITS, faiss.METRIC_INNER_PRODUCT)
    for clustering in (index.cp, index.pq.cp):
        clustering.seed = seed
        clustering.min_points_per_centroid = 1  # no warning on standard error: a small index has no more to give
    # A sub-quantiser wants as many vectors as it has centroids; fewer are repeated.
    sample = np.resize(sample, (max(len(sample), 1 << CODE_BITS), width))
    with _openmp_threads(1 if stored <= SMALL else None):
        index.train(sample)
        for first, segment in zip(snapshot.starts, snapshot.segments, strict=False):
            for start, end in segment.ranges():
                vectors = snapshot.codec.pad(segment.vectors(start, end))
                lengths = np.diff(segment.offsets[start : end + 1])
                index.add_with_ids(vectors, np.repeat(np.arange(first + start, first + end), lengths))
                progress(len(vectors))
    return index


@contextmanager
def _openmp_threads(count: int | None) -> Iterator[None]:
    """Let FAISS use so many threads in this block; OpenMP keeps the number per calling thread, so no other sees it."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _stored_or_built(snapshot: Snapshot, *, progress: bool) -> Any:
    """The FAISS index from its file; without a sound one it is built, and stored where the folder can be written."""
    import faiss

    path = snapshot.layout.folder(snapshot.manifest.derived) / FILE
    try:
        with open_derived(path) as file:
            return faiss.read_index(faiss.PyCallbackIOReader(file.read))
    except (OSError, StorageError, RuntimeError):  # the last: of a FAISS whose format this one does not know
        pass
    stored = sum(segment.info.num_vectors for segment in snapshot.segments)
    with progress_bar("Building the FAISS index", total=stored, unit="vectors", shown=progress) as advance:
        index = build(snapshot, progress=advance)
    try:
        with writing_derived(path) as write:
            faiss.write_index(index, faiss.PyCallbackIOWriter(write))
    except OSError:
        pass  # a folder that cannot be written, or is full, or is gone: the index in memory serves as well
    return index


def _candidates(
    index: Any,
    vectors: npt.NDArray[np.float32],
    k: int,
    mask: npt.NDArray[np.bool_],
    nearest: int,
    probes: int,
    execution: Execution,
) -> npt.NDArray[np.int64]:
    """The documents of the nearest vectors, ascending: at least ``k`` if so many may be found."""
    import faiss

    selector = None if mask.all() else faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
    num_allowed = np.count_nonzero(mask)
    while True:
        parameters = faiss.SearchParametersIVF(nprobe=min(probes, index.nlist), sel=selector)
        positions = np.unique(_nearest(index, vectors, min(nearest, index.ntotal), parameters, execution))
        positions = positions[positions >= 0]  # FAISS fills up with -1
        if len(positions) >= k:
            return positions
        probes, nearest = GROWTH * probes, GROWTH * nearest
        if nearest >= num_allowed:  # scoring all is no more work than looking further
            return np.flatnonzero(mask)


def _nearest(
    index: Any, vectors: npt.NDArray[np.float32], nearest: int, parameters: Any, execution: Execution
) -> npt.NDArray[np.int64]:
    """The documents of the nearest vectors of each vector, of shape (num_vectors, nearest).

    One vector a call: FAISS shares out the vectors of a call among OpenMP threads, so for one it starts none, and their
    number, which is for the whole process to choose, is left alone. Searching only reads, so many threads may call.
    """
    positions = np.empty((len(vectors), nearest), np.int64)

    def of_range(start: int, stop: int) -> None:
        for row in range(start, stop):
            positions[row] = index.search(vectors[row : row + 1], nearest, params=parameters)[1][0]

    run(of_range, len(vectors), **execution.workers)
    return positions
