"""One vector per document in a folder: the class users see."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from operator import length_hint

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.single_vector.encoders import VectorEncoder, mean_vectors
from colbert_prf.baselines.single_vector.segment_writer import Encode, merge_segments, write_documents
from colbert_prf.baselines.single_vector.snapshot import VectorManifest, VectorSnapshot, verify_segment
from colbert_prf.errors import IndexMismatchError, InputError
from colbert_prf.index import Index
from colbert_prf.index.documents import Document, TextDocuments, documents_of_texts
from colbert_prf.progress import progress_bar
from colbert_prf.storage.index import StoredIndex
from colbert_prf.storage.store import Store
from colbert_prf.types import Vectors

__all__ = ["VectorIndex"]


class VectorIndex(StoredIndex[VectorSnapshot]):
    """A vector for each document, memory-mapped.

    Make one with :meth:`create`, :meth:`create_from_index` or :meth:`open`. Like :class:`Index`, it shows one
    generation, and a change is whole or absent whenever the power fails.

    Parameters
    ----------
    path
        The folder.
    encoder
        What made the vectors; needed to add documents.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from colbert_prf.baselines.single_vector import MeanEncoder
    >>> from colbert_prf.encoder import Encoder
    >>> folder = TemporaryDirectory()
    >>> documents = [("fish", "Goldfish grow all their life."), ("bank", "The bank raised its rates.")]
    >>> index = VectorIndex.create(Path(folder.name, "my.vectors"), documents, encoder=MeanEncoder(Encoder.load()))
    >>> index.upsert([("bank", "A river bank."), ("tank", "A tank holds forty litres.")])
    >>> index.num_documents, index.generation, index.num_positions
    (3, 2, 4)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, encoder: VectorEncoder | None = None) -> None:
        super().__init__(path, VectorSnapshot, verify_segment)
        self._encoder = encoder
        if encoder is not None:
            self.check_encoder(encoder)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, encoder: VectorEncoder | None = None) -> VectorIndex:
        """Open an index.

        Parameters
        ----------
        path
            The folder.
        encoder
            What made the vectors; needed to add documents.

        Raises
        ------
        IndexFormatError
            Naming the file that is missing, damaged, foreign or of another format version.
        IndexMismatchError
            If the index was made with another encoder.
        """
        return cls(path, encoder=encoder)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        documents: TextDocuments,
        *,
        encoder: VectorEncoder,
        texts: bool = True,
        progress: bool = True,
    ) -> VectorIndex:
        """Encode documents, one vector each.

        Parameters
        ----------
        path
            A new folder.
        documents
            Tuples (doc_id, text) or (doc_id, text, metadata), as :meth:`Index.create` takes them. Read once.
        encoder
            What makes the vectors.
        texts
            Whether to keep the texts, compressed.
        progress
            Whether a bar may be shown.
        """
        with progress_bar("Encoding", total=length_hint(documents) or None, shown=progress) as advance:
            encode = partial(encoder.encode_documents, progress=advance)
            _create(path, documents_of_texts(documents), encode, model=encoder.name, texts=texts)
        return cls(path, encoder=encoder)

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
        documents = (
            Document(snapshot.doc_id(position), None, snapshot.text(position), snapshot.metadata(position))
            for position in live
        )
        with progress_bar("Averaging", total=len(live), shown=progress) as advance:

            def means(texts: Iterator[str]) -> Iterator[Vectors]:
                for position, _ in zip(live, texts, strict=True):
                    yield mean_vectors([snapshot.vectors(position)], index.dim)
                    advance(1)

            _create(path, documents, means, model=name, texts=snapshot.manifest.settings.texts)
        return cls(path)

    def add(self, documents: TextDocuments) -> None:
        """Encode and add documents, all or none; an id that is there is an :class:`InputError` that names it."""
        self._store.add(documents_of_texts(documents), partial(write_documents, encode=self._encode()))
        self.reload()

    def upsert(self, documents: TextDocuments) -> None:
        """Add documents, and replace those whose ids are there, in one generation; see :meth:`Index.upsert`."""
        self._store.add(documents_of_texts(documents), partial(write_documents, encode=self._encode()), replacing=True)
        self.reload()

    def merge(self) -> None:
        """Drop deleted documents and join the segments; the vectors stay as they are, to the last bit."""
        self._store.merge(merge_segments)
        self.reload()

    @property
    def model(self) -> str:
        """The name of the encoder that made the vectors."""
        return self._snapshot.manifest.model

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return self._snapshot.manifest.dim

    @property
    def vectors(self) -> Vectors:
        """The vectors by position, deleted ones included, of shape (num_positions, dim)."""
        return self._snapshot.vectors

    @property
    def doc_ids(self) -> list[str]:
        """The ids by position; deprecated: use :meth:`doc_id`."""
        warnings.warn("VectorIndex.doc_ids is deprecated; use doc_id(position)", DeprecationWarning, stacklevel=2)
        return [doc_id for segment in self._snapshot.segments for doc_id in segment.doc_ids]

    def nearest(
        self, query: Vectors, k: int, *, exact: bool = True, ef: int = 256
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The live documents with the largest inner product.

        Parameters
        ----------
        query
            Of shape (dim,).
        k
            How many.
        exact
            Whether to compare with every vector; else a graph (HNSW) is searched, which the first such search after
            documents were added or merged builds and keeps in the folder.
        ef
            How widely the graph is searched; at least ``k``.

        Returns
        -------
        positions, similarities
            Best first, of shape (k,) or as many as there are; equal similarities by position.
        """
        return self._snapshot.nearest(query, k, exact=exact, ef=ef)

    def check_encoder(self, encoder: VectorEncoder) -> None:
        """Refuse an encoder that did not make the vectors, as an :class:`IndexMismatchError`."""
        if self.model != encoder.name:
            raise IndexMismatchError(
                f"the vectors were made with {self.model!r}, not with {encoder.name!r}; give the encoder it was made "
                "with, or build it again",
                path=self.path,
            )

    def _encode(self) -> Encode:
        if self._encoder is None:
            message = f"{self.path} was opened without its encoder {self.model!r}; give it to VectorIndex.open"
            raise InputError(f"{message} to add documents")
        return self._encoder.encode_documents


def _create(
    path: str | os.PathLike[str], documents: Iterable[Document], encode: Encode, *, model: str, texts: bool
) -> None:
    empty = VectorManifest(0, (), model, texts)
    Store(path, VectorSnapshot).create(empty, documents, partial(write_documents, encode=encode))
