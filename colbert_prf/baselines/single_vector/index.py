"""One vector per document in a folder: exact search, or a FAISS graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.single_vector.encoders import VectorEncoder, mean_vectors
from colbert_prf.errors import IndexFormatError, InputError, StorageError
from colbert_prf.index import Index
from colbert_prf.progress import progress_bar
from colbert_prf.storage.arrays import ArrayInfo, ArrayWriter, check_array, open_array, write_array
from colbert_prf.storage.blobs import Blobs, BlobWriter, blob_forms
from colbert_prf.storage.derived import open_derived, writing_derived
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.files import storage_errors
from colbert_prf.storage.forms import Form, check_forms
from colbert_prf.storage.identifiers import Identifiers, SeenIds, identifier_arrays, identifier_forms
from colbert_prf.storage.json_form import read_json, write_json
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writing
from colbert_prf.types import Vectors

__all__ = ["VectorIndex"]

KIND, VERSION = "colbert-prf index of single vectors", 1
NEIGHBOURS, EF_CONSTRUCTION = 32, 200
"""Of the graph: links of a node, and how widely a new node looks for its own."""
FOLDER = IndexLayout.segment_name(generation=1, number=0)
GRAPH = "hnsw.faiss"
ROWS = 1 << 14


@dataclass(frozen=True)
class _Manifest:
    """What the folder consists of; written last."""

    model: str
    num_documents: int
    dim: int
    files: dict[str, ArrayInfo]


class VectorIndex:
    """A vector for each document, memory-mapped; it is made whole and does not change.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._layout = IndexLayout.at(path)
        self._manifest = read_json(self._layout.manifest, _Manifest, kind=KIND, version=VERSION)
        check_forms(self._manifest.files, _forms(self._manifest), self._layout.folder(FOLDER))
        arrays = {name: open_array(self._file(name), info) for name, info in self._manifest.files.items()}
        self.vectors: Vectors = arrays["vectors"]
        self.doc_ids = Identifiers(arrays, folder=self._layout.folder(FOLDER))
        self._texts = None
        if "texts_blocks" in arrays:
            path_of_texts = self._file("texts_blocks")
            self._texts = Blobs(
                arrays["texts_blocks"], arrays["texts_offsets"], count=len(self.doc_ids), path=path_of_texts
            )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> VectorIndex:
        """Open an index; a missing or damaged file is an :class:`IndexFormatError` that names it."""
        return cls(path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        documents: Iterable[tuple[str, str]],
        encoder: VectorEncoder,
        *,
        texts: bool = True,
        progress: bool = True,
    ) -> VectorIndex:
        """Encode documents, one vector each.

        Parameters
        ----------
        path
            A new folder.
        documents
            Pairs of id and text, each id different. Read once.
        encoder
            What makes the vectors.
        texts
            Whether to keep the texts, compressed.
        progress
            Whether a bar may be shown.
        """
        folder = _Folder(path, texts=texts)
        with progress_bar("Encoding", total=length_hint(documents) or None, shown=progress) as advance:
            folder.write(encoder.name, encoder.encode_documents(folder.take(documents), progress=advance))
        return cls(path)

    @classmethod
    def create_from_index(
        cls, path: str | os.PathLike[str], index: Index, *, name: str, progress: bool = True
    ) -> VectorIndex:
        """Take the mean of each document's vectors in a ColBERT index, at unit length: nothing is encoded.

        Parameters
        ----------
        path
            A new folder.
        index
            With or without texts, which are kept if it has them.
        name
            Of the encoder of queries, that of :class:`MeanEncoder` over the model of the index.
        progress
            Whether a bar may be shown.
        """
        snapshot = index.snapshot
        live = np.flatnonzero(snapshot.live).tolist()
        folder = _Folder(path, texts=snapshot.manifest.settings.texts)
        documents = ((snapshot.doc_id(position), snapshot.text(position) or "") for position in live)
        with progress_bar("Averaging", total=len(live), shown=progress) as advance:

            def means() -> Iterator[Vectors]:
                for position, _ in zip(live, folder.take(documents), strict=True):
                    yield mean_vectors([snapshot.vectors(position)], index.dim)
                    advance(1)

            folder.write(name, means())
        return cls(path)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._layout.path

    @property
    def model(self) -> str:
        """The name of the encoder that made the vectors."""
        return self._manifest.model

    @property
    def num_documents(self) -> int:
        """How many documents there are."""
        return self._manifest.num_documents

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return self._manifest.dim

    def text(self, position: int) -> str | None:
        """The text of a document, where texts are kept."""
        return self._texts.text(position) if self._texts is not None else None

    def verify(self) -> None:
        """Check every byte against its checksum, the ids and the vectors; the graph can be made again and has none.

        Raises
        ------
        IndexFormatError
            Naming the first file that is not as it was written.
        """
        stored = VectorIndex(self.path)
        for name, info in stored._manifest.files.items():
            check_array(self._file(name), info)
        stored.doc_ids.check()
        for start in range(0, stored.num_documents, ROWS):
            if not np.isfinite(stored.vectors[start : start + ROWS]).all():
                raise IndexFormatError("a vector holds a NaN or an infinity", path=self._file("vectors"))
        for position in range(stored.num_documents):
            stored.text(position)

    def nearest(
        self, query: Vectors, k: int, *, exact: bool = True, ef: int = 256
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The documents with the largest inner product.

        Parameters
        ----------
        query
            Of shape (dim,).
        k
            How many.
        exact
            Whether to compare with every vector; else a graph (HNSW) is searched, which the first such search builds
            and keeps in the folder.
        ef
            How widely the graph is searched; at least ``k``.

        Returns
        -------
        positions, similarities
            Best first, of shape (k,) or as many as there are.
        """
        import faiss

        if query.shape != (self.dim,):
            raise InputError(f"the query has a vector of shape {query.shape}, the index of dim {self.dim}")
        k = min(k, self.num_documents)
        wanted = np.ascontiguousarray(query[None], dtype=np.float32)
        if exact:
            similarities, positions = faiss.knn(wanted, self.vectors, k, metric=faiss.METRIC_INNER_PRODUCT)
        else:
            parameters = faiss.SearchParametersHNSW(efSearch=max(ef, k))
            similarities, positions = self._graph.search(wanted, k, params=parameters)
        found = positions[0] >= 0
        # Equal similarities in the order of positions, whatever FAISS does.
        order = np.lexsort((positions[0][found], -similarities[0][found]))
        return positions[0][found][order], similarities[0][found][order]

    @cached_property
    def _graph(self) -> Any:
        import faiss

        path = self._layout.folder(FOLDER) / GRAPH
        try:
            with open_derived(path) as file:
                return faiss.read_index(faiss.PyCallbackIOReader(file.read))
        except (OSError, StorageError):
            pass  # not built yet, or damaged: it can be made again
        graph = faiss.IndexHNSWFlat(self.dim, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = EF_CONSTRUCTION
        for start in range(0, self.num_documents, ROWS):
            graph.add(np.ascontiguousarray(self.vectors[start : start + ROWS]))
        with suppress(OSError), writing_derived(path) as write:  # a folder that cannot be written is searched as well
            faiss.write_index(graph, faiss.PyCallbackIOWriter(write))
        return graph

    def _file(self, name: str) -> Path:
        return self._layout.array(self._layout.folder(FOLDER), name)


def _forms(manifest: _Manifest) -> dict[str, Form]:
    """The forms of all arrays; of texts where there are any."""
    count = manifest.num_documents
    forms = {"vectors": Form.of(np.float32, shape=(count, manifest.dim)), **identifier_forms(count)}
    return {**forms, **blob_forms("texts", count)} if "texts_blocks" in manifest.files else forms


class _Folder:
    """Writes a folder while documents and their vectors stream by; its manifest appears when all is on the disk."""

    def __init__(self, path: str | os.PathLike[str], *, texts: bool) -> None:
        self.layout = IndexLayout.at(path)
        with storage_errors(self.layout.path, "create"):
            self._require_empty()
        self.folder = self.layout.folder(FOLDER)
        self.doc_ids: list[str] = []
        self._seen = SeenIds()
        self._keeps_texts = texts
        self._texts: BlobWriter | None = None

    def _require_empty(self) -> None:
        if self.layout.manifest.exists() or self.layout.foreign():
            message = "the folder is not empty; open the index in it, or give a new folder"
            raise StorageError(message, path=self.layout.path)

    def take(self, documents: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Pass the texts on, keeping what the folder keeps of each document."""
        for doc_id, text in documents:
            if not self._seen.add(doc_id):
                raise InputError(f"the document id {doc_id!r} was given twice; ids must differ")
            self.doc_ids.append(doc_id)
            if self._texts is not None:
                self._texts.append(text.encode("utf-8", "surrogatepass"))
            yield text

    def write(self, model: str, vectors: Iterator[Vectors]) -> None:
        """Write the vectors, which draw on :meth:`take`, and all else."""
        with storage_errors(self.layout.path, "create"):
            self.layout.path.mkdir(parents=True, exist_ok=True)
        with writing(self.layout, "create"):
            self._require_empty()  # another writer may just have finished
            self.layout.remove_unused([])  # what a writer that failed left
            self.folder.mkdir()
            self._texts = BlobWriter(self.folder, "texts") if self._keeps_texts else None
            try:
                files, dim = self._written(vectors)
            finally:
                if self._texts is not None:
                    self._texts.close()
            sync_folder(self.folder)
            sync_folder(self.layout.path)
            manifest = _Manifest(model, len(self.doc_ids), dim, files)
            write_json(self.layout.manifest, manifest, kind=KIND, version=VERSION)

    def _written(self, vectors: Iterator[Vectors]) -> tuple[dict[str, ArrayInfo], int]:
        if (first := next(vectors, None)) is None:
            raise InputError("an index needs at least one document, found none")
        dim = int(first.shape[1])
        with ArrayWriter(self.layout.array(self.folder, "vectors"), np.float32, (dim,)) as rows:
            rows.append(first)
            for piece in vectors:
                rows.append(piece)
            files = {"vectors": rows.finish()}
        files |= self._texts.finish() if self._texts is not None else {}
        for name, array in identifier_arrays(self.doc_ids).items():
            files[name] = write_array(self.layout.array(self.folder, name), array)
        return files, dim
