"""One vector per document, read from a folder: exact search, or a FAISS graph."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError, StorageError, whole_number
from colbert_prf.kernels.topk import best_sorted
from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.blobs import blob_specs
from colbert_prf.storage.derived import open_derived, writing_derived
from colbert_prf.storage.identifiers import identifier_specs
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import Manifest, SegmentInfo
from colbert_prf.storage.metadata import metadata_specs
from colbert_prf.storage.segment import StoredSegment
from colbert_prf.storage.snapshot import StoredSnapshot
from colbert_prf.storage.verification import require, verify_metadata, verify_texts
from colbert_prf.types import Vectors

__all__ = ["VectorManifest", "VectorSegment", "VectorSnapshot", "verify_segment"]

NEIGHBOURS, EF_CONSTRUCTION = 32, 200
"""Of the graph: links of a node, and how widely a new node looks for its own."""
GRAPH = "hnsw.faiss"
FEW = 8
"""One document in so many, and fewer, are copied and compared by themselves; of more, the copy would cost too much."""
ROWS = 1 << 14
"""Vectors read at a time."""


def _from_version_1(content: dict[str, Any]) -> dict[str, Any]:
    """One segment that never changed, described by the manifest itself."""
    files = content.get("files")
    name = IndexLayout.segment_name(generation=1, number=0)
    segment = {"name": name, "num_documents": content.get("num_documents"), "files": files, "deletions": None}
    texts = isinstance(files, dict) and "texts_blocks" in files
    model = {"model": content.get("model"), "dim": content.get("dim")}
    return {"generation": 1, "segments": [segment], "texts": texts, **model}


@dataclass(frozen=True)
class VectorManifest(Manifest):
    """One generation of an index of single vectors."""

    KIND: ClassVar[str] = "colbert-prf index of single vectors"
    VERSION: ClassVar[int] = 2
    UPGRADES = {1: _from_version_1}  # noqa: RUF012 - a ClassVar of the base

    model: str
    texts: bool
    dim: int = 0
    """Components of a vector; 0 until the first are written."""

    def next(self, *, segments: tuple[SegmentInfo, ...], **changes: Any) -> VectorManifest:
        """The generation after this one."""
        dim = self.dim or segments[0].files["vectors"].shape[1]
        return super().next(segments=segments, **{"dim": dim, **changes})


class VectorSegment(StoredSegment):
    """A segment of an index of single vectors.

    Parameters
    ----------
    layout
        Of the index.
    info
        What the manifest says of it.
    dim
        Components of a vector.

    Attributes
    ----------
    vectors : array
        Float32 of shape (num_documents, dim).
    """

    def __init__(self, layout: IndexLayout, info: SegmentInfo, dim: int) -> None:
        count = info.num_documents
        specs = {"vectors": ArraySpec.of(np.float32, shape=(count, dim)), **identifier_specs(count)}
        texts = blob_specs("texts", count) if "texts_blocks" in info.files else {}
        super().__init__(layout, layout.folder(info.name), info, specs | texts | metadata_specs(info.files, count))
        self.vectors: Vectors = self.arrays["vectors"]


class VectorSnapshot(StoredSnapshot[VectorSegment]):
    """One generation of an index of single vectors."""

    MANIFEST = VectorManifest
    manifest: VectorManifest

    def _open_segments(self) -> list[VectorSegment]:
        return [VectorSegment(self.layout, info, self.manifest.dim) for info in self.manifest.segments]

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors by position, deleted ones included, of shape (num_positions, dim); a copy of several segments."""
        if len(self.segments) == 1:
            return self.segments[0].vectors
        empty = np.empty((0, self.manifest.dim), np.float32)
        return np.concatenate([empty, *(segment.vectors for segment in self.segments)])

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> Vectors:
        """Read the vectors of several documents, of shape (num_positions, dim)."""
        vectors = np.empty((len(positions), self.manifest.dim), np.float32)
        for segment, rows, local_positions in self.by_segment(positions):
            vectors[rows] = segment.vectors[local_positions]
        return vectors

    def nearest(
        self, query: Vectors, k: int, *, exact: bool = True, ef: int = 256, mask: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The live documents with the largest inner product; see :meth:`VectorIndex.nearest`.

        With a ``mask`` of shape (num_positions,), every document it selects is compared, and no other is found.
        """
        k, ef = (whole_number(name, value, least=0) for name, value in (("k", k), ("ef", ef)))
        if np.shape(query) != (self.manifest.dim,):
            raise InputError(f"the query has a vector of shape {np.shape(query)}, the index of dim {self.manifest.dim}")
        k, ef = min(k, self.num_documents), min(ef, self.num_positions)
        if not k:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        wanted = np.ascontiguousarray(query, dtype=np.float32)
        if not np.isfinite(wanted).all():
            raise InputError("the query holds a NaN or an infinity; encode the text again")
        if not exact and mask is None:
            return self._search_graph(wanted, k, ef)
        allowed = self.live if mask is None else self.live & mask
        selected = np.flatnonzero(allowed)
        if len(selected) * FEW < self.num_positions:
            similarities = self.vectors_of(selected) @ wanted
            order = best_sorted(similarities, k)
            return selected[order], similarities[order]
        similarities = np.concatenate([segment.vectors @ wanted for segment in self.segments])
        similarities[~allowed] = -np.inf
        positions = best_sorted(similarities, min(k, len(selected)))
        return positions, similarities[positions]

    def _search_graph(self, query: Vectors, k: int, ef: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        import faiss

        selector = None if self.live.all() else faiss.IDSelectorBitmap(np.packbits(self.live, bitorder="little"))
        parameters = faiss.SearchParametersHNSW(efSearch=max(ef, k), sel=selector)
        similarities, positions = self._graph.search(query[None], k, params=parameters)
        found = positions[0] >= 0
        # Equal similarities in the order of positions, whatever FAISS does.
        order = np.lexsort((positions[0][found], -similarities[0][found]))
        return positions[0][found][order], similarities[0][found][order]

    @cached_property
    def _graph(self) -> Any:
        """The graph over all segments: the one in the folder, or made now and kept there for the next reader."""
        import faiss

        path = self.layout.folder(self.manifest.derived) / GRAPH
        try:
            with open_derived(path) as file:
                return faiss.read_index(faiss.PyCallbackIOReader(file.read))
        except (OSError, StorageError):
            pass  # not built yet, or damaged: it can be made again
        graph = faiss.IndexHNSWFlat(self.manifest.dim, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = EF_CONSTRUCTION
        for segment in self.segments:
            for start in range(0, len(segment), ROWS):
                graph.add(np.ascontiguousarray(segment.vectors[start : start + ROWS]))
        with suppress(OSError), writing_derived(path) as write:  # a folder that cannot be written is searched as well
            faiss.write_index(graph, faiss.PyCallbackIOWriter(write))
        return graph


def verify_segment(snapshot: VectorSnapshot, segment: VectorSegment) -> None:
    """Refuse what no vector or text is; the bytes have been compared with their checksums.

    Raises
    ------
    IndexFormatError
        Naming the file.
    """
    for start in range(0, len(segment), ROWS):
        is_finite = bool(np.isfinite(segment.vectors[start : start + ROWS]).all())
        require(is_finite, segment, "vectors", "a vector holds a NaN or an infinity")
    verify_texts(segment, texts=snapshot.manifest.texts)
    verify_metadata(segment)
