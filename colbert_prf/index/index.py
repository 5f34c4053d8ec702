"""An index on disk: the class users see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import length_hint

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index.build_state import refuse_unfinished
from colbert_prf.index.builder import BuildOptions, create_index
from colbert_prf.index.changes import is_full, merge_segments, retrain_codec, warn_if_outgrown, write_records
from colbert_prf.index.codec import DEFAULT_BITS, Codec
from colbert_prf.index.fit import warn_if_unfit
from colbert_prf.index.manifest import ModelInfo, Settings
from colbert_prf.index.model import check_model, load_model, model_info
from colbert_prf.index.passages import Passages, document_of, passages_named, siblings_of
from colbert_prf.index.reader import IndexReader
from colbert_prf.index.records import (
    Documents,
    EncodedDocuments,
    Record,
    passage_records,
    text_records,
    vector_records,
)
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.index.verification import verify_segment
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.store import Intake

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
    >>> index.num_documents, index.generation, index.metadata("tank")
    (2, 3, {'source': 'shop'})
    >>> index.upsert([("tank", "A tank holds fifty litres.")])  # replaced in one step
    >>> index.merge()
    >>> [index.doc_id(position) for position in range(index.num_documents)]
    ['fish', 'tank']
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, encoder: Encoder | None = None, force: bool = False) -> None:
        refuse_unfinished(IndexLayout.at(path))
        super().__init__(path, Snapshot, verify_segment)
        self._force = force
        self._encoder = encoder
        if encoder is not None:
            check_model(self._store.layout, self._settings, encoder, force=force)

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
        bits: int = DEFAULT_BITS,
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
            Per component: 2, 4, or 16 for float16 vectors.
        texts
            Whether to keep the texts, compressed.
        passages
            Split texts into overlapping passages, for documents longer than the model takes; they are then called
            ``doc_id#0``, ``doc_id#1`` and so on. What is added later is split in the same way, ``upsert`` and
            ``delete`` take the ids of documents, and ``Searcher.search(..., group="document")`` ranks documents by
            their best passage.
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
        _, records = _first(passage_records(text_records(documents), fitted, encoder))
        create_index(path, settings, records, encoder=encoder, options=options)
        return cls(path, encoder=encoder)

    @classmethod
    def create_from_vectors(
        cls,
        path: str | os.PathLike[str],
        encoded: EncodedDocuments,
        *,
        bits: int = DEFAULT_BITS,
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
        first, records = _first(vector_records(encoded))
        size, special = int(vocabulary_size or DEFAULT_VOCABULARY), tuple(sorted(map(int, special_ids)))
        settings = Settings(first.encoded.dim, int(bits), size, special, texts, ModelInfo(fingerprint))
        create_index(path, settings, records, encoder=None, options=options)
        return cls(path)

    def add(self, documents: Documents) -> None:
        """Encode and add documents, all of them or none; see :meth:`create` for what they are.

        An :class:`OutgrownCodecWarning` says when the index has grown far past what its codec was trained for, or when
        what was added is unlike what it was trained on.

        Raises
        ------
        InputError
            If an id is in the index: replace its document with :meth:`upsert`, or delete it first.
        IndexLockedError
            If another writer is at work.
        """
        encoder = self._model_for("add")
        self._add(passage_records(text_records(documents), self._settings.passages, encoder), encoder)

    def upsert(self, documents: Documents) -> None:
        """Encode documents; add those with new ids, and replace those whose ids are in the index.

        All in one generation: a reader sees each document as it was or as it is now, and never without it. What a
        document had before is gone, its metadata and all its passages too. See :meth:`add`.
        """
        encoder = self._model_for("upsert")
        records = passage_records(text_records(documents), self._settings.passages, encoder)
        self._add(records, encoder, replacing=True)

    def add_vectors(self, encoded: EncodedDocuments) -> None:
        """Add vectors made elsewhere; see :meth:`create_from_vectors` and :meth:`add`."""
        self._add(vector_records(encoded), None)

    def upsert_vectors(self, encoded: EncodedDocuments) -> None:
        """Add or replace vectors made elsewhere; see :meth:`create_from_vectors` and :meth:`upsert`."""
        self._add(vector_records(encoded), None, replacing=True)

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none; an unknown id is an :class:`InputError` that names it.

        Of an index made with ``passages``, all passages of a document are deleted.
        """
        doc_ids = [doc_ids] if isinstance(doc_ids, str) else doc_ids
        if self._settings.passages is not None:
            self.reload()
            doc_ids = [passage for doc_id in doc_ids for passage in self._passages_of(doc_id)]
        super().delete(doc_ids)

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
            retrain_codec(self._store, encoder=self.encoder if reencode else None, seed=seed)
        else:
            self._store.merge(merge_segments, is_full)
        self.reload()

    @property
    def encoder(self) -> Encoder | None:
        """The model of the index, opened on first use; None if its vectors were made elsewhere."""
        if self._encoder is None:
            self._encoder = load_model(self._store.layout, self._settings, force=self._force)
        return self._encoder

    def _model_for(self, action: str) -> Encoder:
        if self.encoder is None:
            raise InputError(
                f"the index was made from vectors; {action} to it with {action}_vectors, or open it with an encoder"
            )
        return self.encoder

    def _add(self, records: Iterable[Record], encoder: Encoder | None, *, replacing: bool = False) -> None:
        known = {segment.info.name for segment in self._snapshot.segments}
        siblings = siblings_of if self._settings.passages is not None else None
        self._store.add(records, partial(write_records, encoder=encoder), replacing=replacing, siblings=siblings)
        self.reload()
        warn_if_outgrown(self.path, self._snapshot.manifest)
        added = [segment for segment in self._snapshot.segments if segment.info.name not in known]
        warn_if_unfit(self.path, added, self._snapshot.codec)

    def _passages_of(self, doc_id: str) -> list[str]:
        """The passages of a document that is there."""
        found = passages_named(doc_id, lambda passage: self._snapshot.find(passage) is not None)
        if not found:
            known = self._snapshot.find(doc_id) is not None
            advice = f"; {doc_id!r} is a passage, delete its document {document_of(doc_id)!r}" if known else ""
            raise InputError(f"the index has no document {doc_id!r}{advice}")
        return found


def _check_ids(documents: Sequence[object]) -> None:
    """Refuse an id given twice before anything is encoded, where all documents are at hand."""
    for _ in Intake().checked(text_records(documents)):  # type: ignore[arg-type]
        pass


def _first(records: Iterator[Record]) -> tuple[Record, Iterator[Record]]:
    """Look at the first record before a folder is made."""
    first = next(records, None)
    if first is None:
        raise InputError("an index needs at least one document, found none")
    return first, chain([first], records)
