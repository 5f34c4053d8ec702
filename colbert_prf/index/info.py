"""What an index consists of, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colbert_prf.index.catalogue import Catalogue
from colbert_prf.index.manifest import ModelInfo

__all__ = ["IndexInfo", "describe"]


@dataclass(frozen=True)
class IndexInfo:
    """What an index consists of, for people and for ``--json``."""

    path: str
    generation: int
    num_documents: int
    num_deleted: int
    num_vectors: int
    num_segments: int
    num_centroids: int
    dim: int
    bits: int
    vocabulary_size: int
    texts: bool
    model: ModelInfo
    num_bytes: dict[str, int]
    """The bytes on disk of each kind of file, largest first."""
    bytes_per_vector: float
    """The bytes of all files without texts and metadata, divided by the number of vectors, deleted ones included."""


def describe(snapshot: Catalogue[Any]) -> IndexInfo:
    """Describe an index without reading an array."""
    manifest, layout = snapshot.manifest, snapshot.layout
    sizes = {"manifest": layout.manifest.stat().st_size}
    for path, info in snapshot.array_files().items():
        kind = path.stem.split(".")[-1]
        sizes[kind] = sizes.get(kind, 0) + info.num_bytes
    num_stored = sum(segment.num_vectors for segment in manifest.segments)
    without_texts = sum(size for kind, size in sizes.items() if not kind.startswith(("texts_", "metadata_", "field_")))
    settings = manifest.settings
    return IndexInfo(
        path=str(layout.path),
        generation=manifest.generation,
        num_documents=manifest.num_documents,
        num_deleted=snapshot.num_positions - manifest.num_documents,
        num_vectors=manifest.num_vectors,
        num_segments=len(manifest.segments),
        num_centroids=manifest.codec.num_centroids,
        dim=settings.dim,
        bits=settings.bits,
        vocabulary_size=settings.vocabulary_size,
        texts=settings.texts,
        model=settings.model,
        num_bytes=dict(sorted(sizes.items(), key=lambda kind_and_size: -kind_and_size[1])),
        bytes_per_vector=without_texts / max(num_stored, 1),
    )
