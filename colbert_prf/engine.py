"""The search over a compressed index: centroid scores, candidates, centroid interaction, exact MaxSim.

1. scores of all centroids for all query vectors;
2. the documents of the best ``probes`` centroids of each query vector, or all documents;
3. centroid interaction, approximate weighted MaxSim from the codes alone: keep the best ``rescore``;
4. exact weighted MaxSim on the decoded vectors of these: keep the best ``k``.

Deleted and filtered documents are out from step 2 on, so ``k`` results come back when ``k`` exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.index.segment import Segment
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import Workers
from colbert_prf.types import EncodedQuery

if TYPE_CHECKING:
    from colbert_prf.kernels.exact import PackedVectors

__all__ = ["Effort", "Found", "default_probes", "default_rescore", "find", "packed_vectors"]

PROBE_EVERYTHING = 10_000_000
"""Up to so many vectors all documents pass through centroid interaction: it takes a nanosecond a vector."""


class Found(NamedTuple):
    """Positions of documents and their scores, best first; equal scores by position."""

    positions: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Effort:
    """How hard one search tries, and with what.

    Parameters
    ----------
    probes
        Centroids per query vector whose documents are candidates; None for all documents.
    rescore
        Documents scored exactly.
    threads, executor
        What to compute with; they do not change the result.
    timings
        Seconds per stage, filled in as the stages end.
    """

    probes: int | None
    rescore: int
    threads: int = 1
    executor: Executor | None = None
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def workers(self) -> Workers:
        """What the kernels take."""
        return {"threads": self.threads, "executor": self.executor}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        started = perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + perf_counter() - started


def default_rescore(k: int) -> int:
    """Documents to score exactly for ``k`` results: enough that recall is limited by the bits.

    >>> [default_rescore(k) for k in (1, 10, 100, 1000)]
    [200, 200, 500, 3200]
    """
    return max(200, min(5 * k, 3 * k + 200))


def default_probes(k: int, num_vectors: int) -> int | None:
    """Centroids to probe per query vector; None, all documents, for an index of up to ten million vectors.

    >>> default_probes(1000, 3_000_000), default_probes(10, 30_000_000), default_probes(1000, 30_000_000)
    (None, 2, 16)
    """
    if num_vectors <= PROBE_EVERYTHING:
        return None
    return 2 if k <= 10 else 4 if k <= 100 else 16


def find(
    snapshot: Snapshot, query: EncodedQuery, k: int, effort: Effort, *, allowed: npt.NDArray[np.bool_] | None = None
) -> Found:
    """Find the best documents of a generation.

    Parameters
    ----------
    snapshot
        The generation.
    query
        Of the index's dim.
    k
        How many.
    effort
        How hard to try.
    allowed
        Whether each position may be found, of shape (num_positions,).
    """
    from colbert_prf.kernels.interaction import byte_table, centroid_scores, interact
    from colbert_prf.kernels.topk import best_sorted

    with effort.stage("centroids"):
        vectors = snapshot.codec.pad(query.vectors)
        table = centroid_scores(snapshot.codec.centroids, vectors, **effort.workers)
        values = byte_table(table)
    with effort.stage("candidates"):
        chosen = _candidates(snapshot, values.values, len(query), k, effort.probes, allowed)
    with effort.stage("interaction"):
        approximate = [
            interact(values, query.weights, segment.columns["codes"], segment.offsets, documents, **effort.workers)
            for segment, documents in zip(snapshot.segments, chosen, strict=True)
        ]
        positions = _best_positions(snapshot, chosen, approximate, max(k, effort.rescore))
    with effort.stage("maxsim"):
        scores = _score(snapshot, query, vectors, table, positions, effort)
        order = best_sorted(scores, k)
    return Found(positions[order], scores[order])


def _candidates(
    snapshot: Snapshot,
    values: npt.NDArray[np.uint8],
    num_query_vectors: int,
    k: int,
    probes: int | None,
    allowed: npt.NDArray[np.bool_] | None,
) -> list[npt.NDArray[np.int64] | None]:
    """The candidates of each segment, ascending; None for all of its documents."""
    from colbert_prf.kernels.candidates import candidates, probed_centroids

    masks = [_mask(segment, start, allowed) for segment, start in zip(snapshot.segments, snapshot.starts, strict=False)]
    if probes is not None:
        centroids = probed_centroids(values, num_query_vectors, probes)
        found: list[npt.NDArray[np.int64] | None] = []
        for segment, mask in zip(snapshot.segments, masks, strict=True):
            seen = candidates(segment.lists, segment.list_offsets, centroids, len(segment))
            found.append(np.flatnonzero(seen if mask is None else seen & mask))
        if sum(len(documents) for documents in found if documents is not None) >= k:
            return found
    return [None if mask is None else np.flatnonzero(mask) for mask in masks]


def _mask(segment: Segment, start: int, allowed: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_] | None:
    """Which documents of a segment may be found; None for all."""
    mask = ~segment.deleted if segment.deleted.any() else None
    if allowed is None:
        return mask
    here = allowed[start : start + len(segment)]
    return here if mask is None else here & mask


def _best_positions(
    snapshot: Snapshot,
    chosen: list[npt.NDArray[np.int64] | None],
    approximate: list[npt.NDArray[np.float32]],
    count: int,
) -> npt.NDArray[np.int64]:
    """The positions of the best ``count`` approximate scores, ascending."""
    from colbert_prf.kernels.topk import best

    scores = np.concatenate(approximate)
    kept = best(scores, count)
    kept = kept[np.isfinite(scores[kept])]
    places = [
        (np.arange(len(segment)) if documents is None else documents) + start
        for segment, documents, start in zip(snapshot.segments, chosen, snapshot.starts, strict=False)
    ]
    return np.concatenate(places)[kept]


def _score(
    snapshot: Snapshot,
    query: EncodedQuery,
    vectors: npt.NDArray[np.float32],
    table: npt.NDArray[np.float32],
    positions: npt.NDArray[np.int64],
    effort: Effort,
) -> npt.NDArray[np.float32]:
    """Exact weighted MaxSim of some positions, ascending; of shape (num_positions,)."""
    from colbert_prf.kernels.exact import maxsim_of_packed, maxsim_of_vectors

    codec = snapshot.codec
    bounds = np.searchsorted(positions, snapshot.starts)
    parts = []
    for segment, start, first, last in zip(snapshot.segments, snapshot.starts, bounds, bounds[1:], strict=False):
        documents = positions[first:last] - start
        if codec.bits == 16:
            stored = segment.columns["vectors"]
            part = maxsim_of_vectors(query.vectors, query.weights, stored, segment.offsets, documents, **effort.workers)
        else:
            part = maxsim_of_packed(
                vectors,
                query.weights,
                table,
                codec.centroids,
                codec.residuals,
                packed_vectors(segment),
                documents,
                **effort.workers,
            )
        parts.append(part)
    return np.concatenate(parts)


def packed_vectors(segment: Segment) -> PackedVectors:
    """The compressed vectors of a segment, as the kernels take them."""
    from colbert_prf.kernels.exact import PackedVectors

    columns = segment.columns
    return PackedVectors(columns["codes"], columns["residuals"], columns["scales"], segment.offsets)
