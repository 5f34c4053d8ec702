"""An index on disk: the class users see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import length_hint

from colbert_prf.encoder import Encoder
from colbert_prf.errors import IndexFormatError, InputError
from colbert_prf.index.build_state import refuse_unfinished
from colbert_prf.index.builder import BuildOptions, create_index
from colbert_prf.index.changes import add_items, delete_documents, merge_segments, retrain_codec, warn_if_outgrown
from colbert_prf.index.codec import Codec
from colbert_prf.index.manifest import Manifest, ModelInfo, Settings
from colbert_prf.index.model import check_model, load_model, model_info
from colbert_prf.index.passages import Passages, document_of, passages_named
from colbert_prf.index.reader import IndexReader
from colbert_prf.index.records import (
    Documents,
    EncodedDocuments,
    Item,
    passage_items,
    refuse_known,
    text_items,
    vector_items,
)
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.index.verification import Verification, verify_snapshot
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout

__all__ = ["Index"]

DEFAULT_VOCABULARY = 1 << 16
"""The largest for which a token id takes two bytes."""


class Index(IndexReader):
    """Documents as compressed vectors in a folder, memory-mapped.

    Make one with :meth:`create`, :meth:`create_from_vectors` or :meth:`open`. An :class:`Index` shows one generation:
    its own changes take it to the next, those of others only :meth:`reload` does. A document's position counts from 0
    over all segments; deleting leaves positions as they are, merging closes the gaps.

    Parameters
    ----------
    path
        The folder.
    encoder
        The model its vectors are of; opened when needed if left out.
    force
        Whether vectors of another model may be mixed in.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> documents = [("fish", "Goldfish grow all their life."), ("bank", "The bank raised its rates.")]
    >>> index = Index.create(Path(folder.name, "my.index"), documents, bits=4)
    >>> index.add([("tank", "A tank holds forty litres.", {"source": "shop"})])
    >>> index.delete(["bank"])
    >>> index.num_documents, index.generation, index.metadata(2)
    (2, 3, {'source': 'shop'})
    >>> index.merge()
    >>> [index.doc_id(position) for position in range(index.num_documents)]
    ['fish', 'tank']
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, encoder: Encoder | None = None, force: bool = False) -> None:
        self._layout = IndexLayout.at(path)
        self._force = force
        self._encoder = encoder
        refuse_unfinished(self._layout)
        super().__init__(Snapshot.open(self._layout))
        if encoder is not None:
            check_model(self._layout, self._settings, encoder, force=force)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, encoder: Encoder | None = None, force: bool = False) -> Index:
        """Open an index.

        Parameters
        ----------
        path
            The folder.
        encoder
            The model its vectors are of; opened when needed if left out.
        force
            Take the encoder although the index was made with another.

        Raises
        ------
        IndexFormatError
            Naming the file that is missing, damaged, foreign or of another format version.
        IndexMismatchError
            If the index was made with another model.
        """
        return cls(path, encoder=encoder, force=force)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        documents: Documents,
        *,
        encoder: Encoder | None = None,
        bits: int = 2,
        texts: bool = True,
        passages: Passages | None = None,
        resume: bool = False,
        progress: bool = True,
        codec: Codec | None = None,
        total: int | None = None,
        seed: int = 0,
    ) -> Index:
        """Encode documents and index them, in bounded memory (see :mod:`colbert_prf.index.builder`).

        Parameters
        ----------
        path
            A new folder.
        documents
            Tuples (doc_id, text) or (doc_id, text, metadata); ids are any strings, each different; metadata is whatever
            JSON can hold. Read once.
        encoder
            The embedded model if left out.
        bits
            Per component: 1, 2, 4, 8, or 16 for float16 vectors.
        texts
            Whether to keep the texts, compressed.
        passages
            Split texts into overlapping passages, for documents longer than the model takes; they are then called
            ``doc_id#0``, ``doc_id#1`` and so on. What is added later is split in the same way, ``delete`` takes the ids
            of documents, and ``Searcher.search(..., group="document")`` ranks documents by their best passage.
        resume
            Continue an interrupted build; ``documents`` must begin with those already done, whose ids are compared.
        progress
            Whether bars may be shown.
        codec
            That of another index of the same model, instead of training one.
        total
            The number of documents, if known, for the time left; taken from ``len(documents)`` where there is one.
        seed
            Of the codec's training.

        Raises
        ------
        StorageError
            If there is something in the folder.
        InputError
            If a document cannot be used; it is named.
        """
        encoder = encoder or Encoder.load()
        special_ids = tuple(sorted(encoder.special_ids))
        fitted = passages.fitted(encoder.tokenization) if passages else None
        settings = Settings(encoder.dim, bits, encoder.vocabulary_size, special_ids, texts, model_info(encoder), fitted)
        total = None if passages else total or length_hint(documents) or None
        options = BuildOptions(codec, resume, progress, total, seed)
        if isinstance(documents, Sequence):
            _check_ids(documents)
        _, items = _first(passage_items(text_items(documents), fitted, encoder))
        create_index(IndexLayout.at(path), settings, items, encoder=encoder, options=options)
        return cls(path, encoder=encoder)

    @classmethod
    def create_from_vectors(
        cls,
        path: str | os.PathLike[str],
        encoded: EncodedDocuments,
        *,
        bits: int = 2,
        vocabulary_size: int | None = None,
        fingerprint: str | None = None,
        special_ids: Iterable[int] = (),
        texts: bool = False,
        resume: bool = False,
        progress: bool = True,
        codec: Codec | None = None,
        total: int | None = None,
        seed: int = 0,
    ) -> Index:
        """Index vectors made elsewhere.

        Parameters
        ----------
        path
            A new folder.
        encoded
            Tuples (doc_id, EncodedDocument), then a text if there is one, then metadata if there is any. Read once.
        bits, texts, resume, progress, codec, total, seed
            As in :meth:`create`.
        vocabulary_size
            One more than the largest token id; 65,536 if left out.
        fingerprint
            Of the model that made the vectors; without it any model of the same dim is accepted.
        special_ids
            Token ids that carry no word.
        """
        options = BuildOptions(codec, resume, progress, total or length_hint(encoded) or None, seed)
        first, items = _first(vector_items(encoded))
        assert first.encoded is not None
        size, special = int(vocabulary_size or DEFAULT_VOCABULARY), tuple(sorted(map(int, special_ids)))
        settings = Settings(first.encoded.dim, int(bits), size, special, texts, ModelInfo(fingerprint))
        create_index(IndexLayout.at(path), settings, items, encoder=None, options=options)
        return cls(path)

    def add(self, documents: Documents) -> None:
        """Encode and add documents, all of them or none; see :meth:`create` for what they are.

        Raises
        ------
        InputError
            If an id is in the index: delete it first.
        IndexLockedError
            If another writer is at work.
        """
        if self.encoder is None:
            raise InputError("the index was made from vectors; add to it with add_vectors, or open it with an encoder")
        items = passage_items(text_items(documents), self._settings.passages, self.encoder)
        add_items(self._layout, items, encoder=self.encoder)
        self.reload()
        warn_if_outgrown(self._layout.path, self._snapshot.manifest)

    def add_vectors(self, encoded: EncodedDocuments) -> None:
        """Add vectors made elsewhere; see :meth:`create_from_vectors` and :meth:`add`."""
        add_items(self._layout, vector_items(encoded), encoder=None)
        self.reload()
        warn_if_outgrown(self._layout.path, self._snapshot.manifest)

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none; an unknown id is an :class:`InputError` that names it."""
        doc_ids = [doc_ids] if isinstance(doc_ids, str) else doc_ids
        if self._settings.passages is not None:
            self.reload()
            doc_ids = [passage for doc_id in doc_ids for passage in self._passages_of(doc_id)]
        delete_documents(self._layout, doc_ids)
        self.reload()

    def merge(self, *, retrain: bool = False, reencode: bool = False, seed: int = 0) -> None:
        """Drop deleted documents and join small segments; what is kept stays as it is, to the last bit.

        Parameters
        ----------
        retrain
            Also train a new codec for the documents there are now, and compress everything anew: after adding far more
            than the codec was trained for. It starts from the decoded vectors, so a little precision is lost.
        reencode
            With ``retrain``: encode the kept texts again, which loses nothing and takes as long as a new build.
        seed
            Of the codec's training.
        """
        if reencode and not retrain:
            raise InputError("reencode=True needs retrain=True")
        if reencode and self.encoder is None:
            raise InputError("the index was made from vectors and has no model; merge without reencode=True")
        if retrain:
            retrain_codec(self._layout, encoder=self.encoder if reencode else None, seed=seed)
        else:
            merge_segments(self._layout)
        self.reload()

    def verify(self) -> Verification:
        """Check every byte against its checksum and every array against the others.

        Raises
        ------
        IndexFormatError
            Naming the first file that is not as it was written.
        """
        while True:
            snapshot = Snapshot.open(self._layout)
            try:
                return verify_snapshot(snapshot)
            except IndexFormatError:
                # A writer may have published another generation meanwhile and removed the files of this one.
                if Manifest.read(self._layout.manifest).generation == snapshot.manifest.generation:
                    raise

    def _passages_of(self, doc_id: str) -> list[str]:
        """The passages of a document that is there."""
        found = passages_named(doc_id, lambda passage: self._snapshot.find(passage) is not None)
        if not found:
            known = self._snapshot.find(doc_id) is not None
            advice = f"; {doc_id!r} is a passage, delete its document {document_of(doc_id)!r}" if known else ""
            raise InputError(f"the index has no document {doc_id!r}{advice}")
        return found

    def reload(self) -> None:
        """See the newest generation."""
        self._snapshot = Snapshot.open(self._layout)

    @property
    def encoder(self) -> Encoder | None:
        """The model of the index, opened on first use; None if its vectors were made elsewhere."""
        if self._encoder is None:
            self._encoder = load_model(self._layout, self._settings, force=self._force)
        return self._encoder


def _check_ids(documents: Sequence[object]) -> None:
    """Refuse an id given twice before anything is encoded, where all documents are at hand."""
    seen = SeenIds()
    for _ in refuse_known(text_items(documents), seen.add):  # type: ignore[arg-type]
        pass


def _first(items: Iterator[Item]) -> tuple[Item, Iterator[Item]]:
    """Look at the first item before a folder is made."""
    first = next(items, None)
    if first is None:
        raise InputError("an index needs at least one document, found none")
    return first, chain([first], items)
