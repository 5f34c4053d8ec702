"""What feedback reads of an index: vectors and tokens of documents, frequencies, and the tokens near a vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import ALONE, Workers
from colbert_prf.storage.arrays import rows_of
from colbert_prf.types import TokenIds, Vectors

if TYPE_CHECKING:
    from colbert_prf.kernels.sketches import Sketches

__all__ = ["FeedbackSource", "FeedbackVectors", "Glance", "NearTokens", "source_of", "sources_of"]

PROBES = 16
"""Most centroids looked at for the neighbours of a vector, in the order of υ·c + REACH·|υ|·radius(c), and only as long
as that is more than the similarity of the neighbours found so far."""
ENTRIES = 10
"""Feedback vectors nearest to a vector, at least, of whose centroids those are that are looked at, or neighbours."""
KEPT = 3
"""Vectors whose sketches are nearest, for each neighbour wanted, that are compared as they are stored."""


class FeedbackVectors(NamedTuple):
    """The vectors of some documents, side by side.

    ``positions`` (num_documents,) of the documents; for each vector ``vectors`` (n, dim), ``token_ids`` (n,), in
    ``documents`` (n,) the number of its document, in the order they were given, and in ``places`` (n,) its own there.
    ``codes`` (n,) are the centroids of the codec, -1 where there is none. ``weights`` (num_documents,), 1 on average,
    say how much each document counts; all alike if left out.
    """

    positions: npt.NDArray[np.int64]
    vectors: Vectors
    token_ids: TokenIds
    documents: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None = None

    def only(self, rows: npt.NDArray[np.int64]) -> FeedbackVectors:
        """Some of the vectors."""
        _, vectors, token_ids, documents, places, codes, weights = self
        return FeedbackVectors(
            self.positions, vectors[rows], token_ids[rows], documents[rows], places[rows], codes[rows], weights
        )


def sources_of(
    rows: npt.NDArray[np.int64], doc_ids: Sequence[str], feedback: FeedbackVectors
) -> tuple[tuple[str, int], ...]:
    """The document of some feedback vectors, by the ids of all documents, and their places in it."""
    owners = [doc_ids[document] for document in feedback.documents[rows].tolist()]
    return tuple(zip(owners, feedback.places[rows].tolist(), strict=True))


class NearTokens(NamedTuple):
    """The tokens of the nearest document vectors and how near these are, both of shape (num_vectors, count).

    Where there are no more, the token is -1 and the similarity minus infinity.
    """

    token_ids: TokenIds
    similarities: npt.NDArray[np.float32]

    def only(self, part: slice) -> NearTokens:
        """Those of some vectors, not copied."""
        return NearTokens(self.token_ids[part], self.similarities[part])


class Glance(NamedTuple):
    """What is seen of vectors at a glance: the tokens near each, and its ``entries`` (num_vectors, ...) to the index.

    These are the centroids of the feedback vectors nearest to it; -1 where there are no more.
    """

    near: NearTokens
    entries: npt.NDArray[np.int64]

    def of(self, numbers: npt.NDArray[np.int64]) -> Glance:
        """That of some vectors, copied."""
        near = NearTokens(self.near.token_ids[numbers], self.near.similarities[numbers])
        return Glance(near, self.entries[numbers])


class FeedbackSource(ABC):
    """One state of an index, as feedback sees it."""

    num_documents: int
    special_ids: frozenset[int]

    @property
    @abstractmethod
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many documents each token is, of shape (vocabulary_size,) or less."""

    @property
    @abstractmethod
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """How often each token occurs, of shape (vocabulary_size,) or less."""

    @abstractmethod
    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """The positions of documents; an unknown or deleted one is an :class:`InputError`."""

    @abstractmethod
    def find(self, doc_id: str) -> int | None:
        """The position of a document, if it is there."""

    @abstractmethod
    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """The ids of some documents."""

    @abstractmethod
    def has_vectors(self, position: int) -> bool:
        """Whether a document has any vector."""

    @abstractmethod
    def document(self, position: int) -> tuple[Vectors, TokenIds]:
        """The vectors and the tokens of a document."""

    def glance(self, vectors: Vectors, count: int, feedback: FeedbackVectors) -> Glance | None:
        """The tokens nearest to each vector among those of feedback; None where all are found as easily."""
        return None

    def look_closer(
        self, vectors: Vectors, glance: Glance, feedback: FeedbackVectors, workers: Workers = ALONE
    ) -> None:
        """Make what :meth:`glance` gave for some vectors what :meth:`nearest_tokens` gives for them, in place."""
        raise NotImplementedError("there is nothing to be seen at a glance")

    @abstractmethod
    def nearest_tokens(
        self, vectors: Vectors, count: int, feedback: FeedbackVectors, workers: Workers = ALONE
    ) -> NearTokens:
        """The tokens of the document vectors nearest to each vector: F_t(υ, r).

        Parameters
        ----------
        vectors
            Of shape (num_vectors, dim), of any length, and near some of feedback: in an index folder their neighbours
            are looked for from there.
        count
            Neighbours of each, r.
        feedback
            The vectors of some documents, which are compared in any case.
        workers
            What to compute with.

        Returns
        -------
        NearTokens
            Nearest first.
        """

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> FeedbackVectors:
        """The vectors of some documents."""
        parts = [self.document(position) for position in positions.tolist()]
        lengths = [len(tokens) for _, tokens in parts]
        return FeedbackVectors(
            positions,
            np.concatenate([vectors for vectors, _ in parts]),
            np.concatenate([tokens for _, tokens in parts]),
            np.repeat(np.arange(len(parts)), lengths),
            np.concatenate([np.arange(length) for length in lengths]),
            np.full(sum(lengths), -1),
        )


def source_of(index: Index | Snapshot | MemoryIndex | FeedbackSource) -> FeedbackSource:
    """See an index as feedback does."""
    if isinstance(index, FeedbackSource):
        return index
    if isinstance(index, MemoryIndex):
        return MemorySource(index)
    return SnapshotSource(index.snapshot if isinstance(index, Index) else index)


class MemorySource(FeedbackSource):
    """Documents in memory: neighbours by comparing with every vector.

    Parameters
    ----------
    index
        The documents.
    """

    def __init__(self, index: MemoryIndex) -> None:
        self.index = index
        self.num_documents = index.num_documents
        self.special_ids = index.encoder.special_ids if index.encoder else frozenset()

    @cached_property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        documents = np.repeat(np.arange(self.num_documents), np.diff(self.index.offsets))
        size = int(self.index.token_ids.max(initial=0)) + 1
        return np.bincount(np.unique(documents * size + self.index.token_ids) % size, minlength=size)

    @cached_property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        return np.bincount(self.index.token_ids)

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        return self.index.positions(doc_ids)

    def find(self, doc_id: str) -> int | None:
        return self.index.doc_ids.index(doc_id) if doc_id in self.index.doc_ids else None

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        return self.index.doc_ids_of(positions)

    def has_vectors(self, position: int) -> bool:
        return bool(self.index.offsets[position] < self.index.offsets[position + 1])

    def document(self, position: int) -> tuple[Vectors, TokenIds]:
        rows = slice(self.index.offsets[position], self.index.offsets[position + 1])
        return self.index.vectors[rows], self.index.token_ids[rows]

    def nearest_tokens(
        self, vectors: Vectors, count: int, feedback: FeedbackVectors, workers: Workers = ALONE
    ) -> NearTokens:
        from colbert_prf.kernels.neighbours import nearest_definition

        found = nearest_definition(vectors, self.index.vectors, count)
        token_ids = np.where(found.rows < 0, -1, self.index.token_ids[found.rows]).astype(np.int32)
        return NearTokens(token_ids, found.similarities)


class SnapshotSource(FeedbackSource):
    """One generation of an index folder: neighbours through the inverted lists.

    Parameters
    ----------
    snapshot
        The generation.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.num_documents = snapshot.manifest.num_documents
        self.special_ids = frozenset(snapshot.manifest.settings.special_ids)

    @property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        return self.snapshot.document_frequencies

    @property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        return self.snapshot.collection_frequencies

    @property
    def centroid_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many documents each centroid of the codec is, of shape (num_centroids,)."""
        return self.snapshot.centroid_frequencies

    def codes(self, position: int) -> npt.NDArray[np.int64]:
        """The centroid of each vector of a document."""
        segment, place = self.snapshot.place(position)
        rows = slice(segment.offsets[place], segment.offsets[place + 1])
        return segment.columns["codes"][rows].astype(np.int64)

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        return self.snapshot.positions(doc_ids)

    def find(self, doc_id: str) -> int | None:
        return self.snapshot.find(doc_id)

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        return self.snapshot.doc_ids_of(positions)

    def has_vectors(self, position: int) -> bool:
        segment, place = self.snapshot.place(position)
        return bool(segment.offsets[place] < segment.offsets[place + 1])

    def document(self, position: int) -> tuple[Vectors, TokenIds]:
        return self.snapshot.vectors(position), self.snapshot.token_ids(position)

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> FeedbackVectors:
        owners = [self.snapshot.place(place) for place in positions.tolist()]
        if len(segments := {id(segment): segment for segment, _ in owners}) > 1:
            codes = np.concatenate([self.codes(place) for place in positions.tolist()])
            return super().vectors_of(positions)._replace(codes=codes)
        # All in one segment: decoded at once.
        (segment,) = segments.values()
        documents = np.array([place for _, place in owners])
        starts = segment.offsets[documents]
        lengths = segment.offsets[documents + 1] - starts
        rows, numbers = rows_of(starts, lengths), np.repeat(np.arange(len(documents)), lengths)
        codes = segment.columns["codes"][rows].astype(np.int64)
        return FeedbackVectors(
            positions, segment.decode_rows(rows), segment.tokens(rows), numbers, rows - starts[numbers], codes
        )

    def glance(self, vectors: Vectors, count: int, feedback: FeedbackVectors) -> Glance:
        from colbert_prf.kernels.neighbours import compare_all

        pad = self.snapshot.codec.pad
        rows, similarities = compare_all(pad(vectors), pad(feedback.vectors), max(count, ENTRIES))
        token_ids = np.where(rows < 0, np.int32(-1), feedback.token_ids[rows])[:, :count]
        near = NearTokens(np.ascontiguousarray(token_ids), np.ascontiguousarray(similarities[:, :count]))
        return Glance(near, np.where(rows < 0, -1, feedback.codes[rows]))

    def nearest_tokens(
        self, vectors: Vectors, count: int, feedback: FeedbackVectors, workers: Workers = ALONE
    ) -> NearTokens:
        glance = self.glance(vectors, count, feedback)
        self.look_closer(vectors, glance, feedback, workers)
        return glance.near

    def look_closer(
        self, vectors: Vectors, glance: Glance, feedback: FeedbackVectors, workers: Workers = ALONE
    ) -> None:
        from colbert_prf.kernels.parallel import run

        codec = self.snapshot.codec
        # What is made at its first use is made here, once, not by every thread.
        _, sketches = codec.neighbours, [segment.sketches for segment in self.snapshot.segments]
        padded = codec.pad(vectors)

        def of_range(start: int, stop: int) -> None:
            part = slice(start, stop)
            self._find_nearer(padded[part], sketches, feedback, glance.near.only(part), glance.entries[part])

        # Waking a thread takes as long as a step: each does all steps for its share of the vectors.
        run(of_range, len(vectors), **workers, ranges=1)

    def _find_nearer(
        self,
        vectors: Vectors,
        sketches: list[Sketches],
        feedback: FeedbackVectors,
        near: NearTokens,
        entries: npt.NDArray[np.int64],
    ) -> None:
        """Replace what is near some vectors by what is nearer in the index."""
        from colbert_prf.kernels.neighbours import nearest_sketches, settle
        from colbert_prf.kernels.probes import REACH, near_probes
        from colbert_prf.kernels.sketches import sketch_codec

        codec, count = self.snapshot.codec, near.token_ids.shape[1]
        coarse, floors = sketch_codec(codec.residuals), near.similarities[:, -1]
        probes = near_probes(codec.byte_centroids, codec.neighbours, entries, vectors, PROBES, REACH, floors)
        for segment, start, sketched in zip(self.snapshot.segments, self.snapshot.starts, sketches, strict=False):
            if not len(segment.token_ids):
                continue
            here = feedback.positions - start
            here = here[(here >= 0) & (here < len(segment))]
            seen = np.stack([segment.offsets[here], segment.offsets[here + 1]], axis=1)
            rows = nearest_sketches(
                vectors, probes, sketched, coarse, seen, segment.token_ids, *near, kept=KEPT * count
            ).rows
            products = codec.products(vectors, segment.columns, rows)
            segment.check_token(settle(rows, products, segment.token_ids, *near))
