"""An index on disk: the class that users see."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import length_hint
from typing import TypeAlias

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError, whole_number
from colbert_prf.index.build_state import refuse_unfinished
from colbert_prf.index.builder import BuildOptions, create_index
from colbert_prf.index.changes import is_full, merge_segments, retrain_codec, write_documents
from colbert_prf.index.codec import DEFAULT_BITS, Codec
from colbert_prf.index.documents import (
    Document,
    EncodedDocuments,
    TextDocuments,
    documents_of_texts,
    documents_of_vectors,
    split_documents,
)
from colbert_prf.index.fit import warn_if_outgrown, warn_if_unfit
from colbert_prf.index.manifest import ModelInfo, SegmentInfo, Settings
from colbert_prf.index.model import check_model, load_model, settings_for
from colbert_prf.index.passages import Passages, document_of, passages_named, siblings_of
from colbert_prf.index.reader import IndexReader
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.index.verification import verify_segment
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.store import IdCheck

__all__ = ["Index"]

SegmentsWriter: TypeAlias = Callable[[Snapshot, Iterable[Document]], Sequence[SegmentInfo]]
DEFAULT_VOCABULARY = 1 << 16
"""The largest vocabulary of which a token id takes two bytes."""


class Index(IndexReader):
    """Documents as compressed vectors in a folder, memory-mapped.

    Make one with :meth:`create`, :meth:`create_from_vectors` or :meth:`open`. An :class:`Index` shows one generation:
    its own changes take it to the next, and :meth:`reload` shows the changes of others. A document's position counts
    from 0 over all segments; deleting leaves positions as they are, merging closes the gaps.

    Parameters
    ----------
    path
        The folder.
    encoder
        The model that made the vectors; opened on first use if left out.
    force
        Whether to take the encoder although another model made the vectors.

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
        """Open an index; the parameters are those of the class.

        Raises
        ------
        IndexFormatError
            It names a file that is missing, damaged, foreign or of another format version.
        IndexMismatchError
            If another model made the vectors.
        """
        return cls(path, encoder=encoder, force=force)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        documents: TextDocuments,
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
            Tuples (doc_id, text) or (doc_id, text, metadata), read once. Ids are any strings, all different; metadata
            is a mapping of anything that JSON can hold.
        encoder
            The embedded model if left out.
        bits
            Per component: 2, 4, or 16 for float16 vectors.
        texts
            Whether to keep the texts, compressed.
        passages
            Split texts, now and in later additions, into overlapping passages with the ids ``doc_id#0``, ``doc_id#1``
            and so on; ``upsert`` and ``delete`` take the ids of documents, and ``Searcher.search(...,
            group="document")`` ranks documents by their best passage.
        resume
            Continue an interrupted build; ``documents`` must begin with those already done, whose ids are compared.
        progress
            Whether progress bars may be shown.
        codec
            The codec of another index of the same model, instead of training one.
        total
            The number of documents, if known, for the time left; ``len(documents)`` if left out.
        seed
            The seed of the codec's training.

        Raises
        ------
        StorageError
            If there is something in the folder.
        InputError
            It names a document, or a setting, that cannot be used.
        """
        encoder = encoder or Encoder.load()
        settings = settings_for(encoder, bits, texts, passages)
        total = None if passages else total or length_hint(documents) or None
        options = BuildOptions(codec, resume, progress, total, seed)
        _check_ids(documents)
        _, split = _peek(split_documents(documents_of_texts(documents), settings.passages, encoder))
        create_index(path, settings, split, encoder=encoder, options=options)
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
        """Index vectors that were made elsewhere.

        Parameters
        ----------
        path
            A new folder.
        encoded
            Tuples (doc_id, EncodedDocument), perhaps with a text, perhaps with metadata; read once.
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
        first, documents = _peek(documents_of_vectors(encoded))
        bits, size = whole_number("bits", bits, least=1), vocabulary_size
        size = DEFAULT_VOCABULARY if size is None else whole_number("vocabulary_size", size, least=1)
        settings = Settings(first.encoded.dim, bits, size, _token_ids(special_ids), texts, ModelInfo(fingerprint))
        create_index(path, settings, documents, encoder=None, options=options)
        return cls(path)

    def add(self, documents: TextDocuments) -> None:
        """Encode and add documents, given as in :meth:`create`, all of them or none.

        An :class:`OutgrownCodecWarning` says that the index has grown far past what its codec was trained for, or that
        the added vectors are unlike its training vectors.

        Raises
        ------
        InputError
            If an id is in the index: replace the document with :meth:`upsert`, or delete it first.
        IndexLockedError
            If another writer is at work.
        """
        self._add(*self._from_texts(documents, "add"))

    def upsert(self, documents: TextDocuments) -> None:
        """Encode documents; add those with new ids, and replace those whose ids are in the index.

        All happens in one generation: a reader sees the old documents or the new ones. A replaced document loses its
        metadata and all its passages. See :meth:`add`.
        """
        self._add(*self._from_texts(documents, "upsert"), replacing=True)

    def add_vectors(self, encoded: EncodedDocuments) -> None:
        """Add vectors made elsewhere; see :meth:`create_from_vectors` and :meth:`add`."""
        self._add(documents_of_vectors(encoded), None)

    def upsert_vectors(self, encoded: EncodedDocuments) -> None:
        """Add or replace vectors made elsewhere; see :meth:`create_from_vectors` and :meth:`upsert`."""
        self._add(documents_of_vectors(encoded), None, replacing=True)

    def add_with(self, write: SegmentsWriter, documents: TextDocuments, *, replacing: bool = False) -> None:
        """Add or replace documents whose segments ``write`` makes, as the workers of a cluster do; see :meth:`add`.

        Parameters
        ----------
        write
            Takes a generation and documents, split into passages if the index has those, and writes them as segments
            of the next generation.
        documents
            As in :meth:`create`.
        replacing
            Whether a document replaces the one with its id; otherwise it is refused.
        """
        split, encoder = self._from_texts(documents, "upsert" if replacing else "add")
        self._add(split, encoder, replacing=replacing, write=write)

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none; an :class:`InputError` names an unknown id.

        In an index made with ``passages``, all passages of a document are deleted.
        """
        doc_ids = [doc_ids] if isinstance(doc_ids, str) else doc_ids
        if self._settings.passages is not None and isinstance(doc_ids, Iterable):
            self.reload()
            doc_ids = [passage for doc_id in doc_ids for passage in self._passages_of(doc_id)]
        super().delete(doc_ids)

    def merge(self, *, retrain: bool = False, reencode: bool = False, seed: int = 0) -> None:
        """Drop deleted documents and join small segments; the vectors stay the same, to the last bit.

        Parameters
        ----------
        retrain
            Also train a new codec for the present documents, and compress everything again: do this after adding far
            more than the codec was trained for. It starts from the decoded vectors, so a little precision is lost.
        reencode
            With ``retrain``: encode the kept texts again, which loses nothing and takes as long as a new build.
        seed
            The seed of the codec's training.
        """
        if reencode and not retrain:
            raise InputError("reencode=True needs retrain=True")
        if reencode and self.encoder is None:
            raise InputError("the index was made from vectors and has no model; merge without reencode=True")
        seed = whole_number("seed", seed, least=0)
        if retrain:
            retrain_codec(self._store, encoder=self.encoder if reencode else None, seed=seed)
        else:
            self._store.merge(merge_segments, is_full)
        self.reload()

    @property
    def encoder(self) -> Encoder | None:
        """The model of the index, opened on first use; None if the vectors were made elsewhere."""
        if self._encoder is None:
            self._encoder = load_model(self._store.layout, self._settings, force=self._force)
        return self._encoder

    def _from_texts(self, documents: TextDocuments, action: str) -> tuple[Iterator[Document], Encoder]:
        """Check and split the documents of a caller, and return them with the encoder that they need."""
        encoder = self.encoder
        if encoder is None:
            raise InputError(
                f"the index was made from vectors; {action} to it with {action}_vectors, or open it with an encoder"
            )
        return split_documents(documents_of_texts(documents), self._settings.passages, encoder), encoder

    def _add(
        self,
        documents: Iterable[Document],
        encoder: Encoder | None,
        *,
        replacing: bool = False,
        write: SegmentsWriter | None = None,
    ) -> None:
        write = write or partial(write_documents, encoder=encoder)
        old_names = {segment.info.name for segment in self._snapshot.segments}
        siblings = siblings_of if self._settings.passages is not None else None
        self._store.add(documents, write, replacing=replacing, siblings=siblings)
        self.reload()
        warn_if_outgrown(self.path, self._snapshot.manifest)
        added = [segment for segment in self._snapshot.segments if segment.info.name not in old_names]
        warn_if_unfit(self.path, added, self._snapshot.codec)

    def _passages_of(self, doc_id: str) -> list[str]:
        """List the passages of a document; an :class:`InputError` names one that the index does not have."""
        passage_ids = passages_named(doc_id, lambda passage: self._snapshot.find(passage) is not None)
        if not passage_ids:
            is_passage = self._snapshot.find(doc_id) is not None
            advice = f"; {doc_id!r} is a passage, delete its document {document_of(doc_id)!r}" if is_passage else ""
            raise InputError(f"the index has no document {doc_id!r}{advice}")
        return passage_ids


def _check_ids(documents: TextDocuments) -> None:
    """Refuse an id given twice before anything is encoded, if all documents are at hand."""
    if isinstance(documents, Sequence):
        for _ in IdCheck().checked(documents_of_texts(documents)):
            pass


def _token_ids(special_ids: Iterable[int]) -> tuple[int, ...]:
    if not isinstance(special_ids, Iterable):
        raise InputError(f"special_ids must be token ids, such as [101, 102], found {special_ids!r:.80}")
    return tuple(sorted(whole_number("a special token id", token_id, least=0) for token_id in special_ids))


def _peek(documents: Iterator[Document]) -> tuple[Document, Iterator[Document]]:
    """Return the first document and all documents, so that the first is checked before a folder is made."""
    first = next(documents, None)
    if first is None:
        raise InputError("an index needs at least one document, found none")
    return first, chain([first], documents)
