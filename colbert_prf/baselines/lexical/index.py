"""A lexical index on disk: the class users see."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import length_hint
from typing import Any, TypeAlias, cast

from colbert_prf.baselines.lexical.analysis import Analyzer, Stemmer, StopWords
from colbert_prf.baselines.lexical.changes import follow_index, merge_segments, text_checksum, write_entries
from colbert_prf.baselines.lexical.manifest import AnalyzerInfo, LexicalManifest
from colbert_prf.baselines.lexical.segment_writer import Entry
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.baselines.lexical.verification import verify_segment
from colbert_prf.errors import InputError
from colbert_prf.index import Index
from colbert_prf.index.documents import TextDocuments, documents_of_texts
from colbert_prf.progress import progress_bar
from colbert_prf.storage.index import StoredIndex
from colbert_prf.storage.metadata import metadata_json
from colbert_prf.storage.store import Store

__all__ = ["LexicalIndex"]

TermDocuments: TypeAlias = Iterable[
    tuple[str, Mapping[str, int]]
    | tuple[str, Mapping[str, int], str | None]
    | tuple[str, Mapping[str, int], str | None, Mapping[str, Any] | None]
]
FOLDER = "lexical"
"""Where a vector index keeps the lexical index of its texts."""


class LexicalIndex(StoredIndex[LexicalSnapshot]):
    """Documents as terms in a folder, memory-mapped: what BM25 searches.

    Make one with :meth:`of`, :meth:`create`, :meth:`create_from_terms` or :meth:`open`. Like :class:`Index`, it shows
    one generation, and a change is whole or absent whenever the power fails.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> documents = [("fish", "Goldfish grow all their life."), ("bank", "The bank raised its rates.")]
    >>> index = LexicalIndex.create(Path(folder.name, "my.lexical"), documents)
    >>> index.add([("tank", "A tank holds forty litres.")])
    >>> index.delete(["bank"])
    >>> index.num_documents, index.document_frequency("goldfish"), index.document_frequency("bank")
    (2, 1, 0)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, LexicalSnapshot, verify_segment)
        self._texts: Index | None = None
        info = self._snapshot.manifest.analyzer
        self._analyzer = Analyzer(cast(StopWords, info.stop_words), cast(Stemmer, info.stemmer))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> LexicalIndex:
        """Open a lexical index; a missing or damaged file is an :class:`IndexFormatError` that names it."""
        return cls(path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        documents: TextDocuments,
        *,
        analyzer: Analyzer | None = None,
        texts: bool = True,
        progress: bool = True,
    ) -> LexicalIndex:
        """Index texts, in memory bounded by a segment.

        Parameters
        ----------
        path
            A new folder.
        documents
            Tuples (doc_id, text) or (doc_id, text, metadata), as :meth:`Index.create` takes them. Read once.
        analyzer
            How a text is split into terms.
        texts
            Whether to keep the texts, compressed, for hits and re-rankers.
        progress
            Whether a bar may be shown.
        """
        analyzer = analyzer or Analyzer()
        entries = _entries(documents, analyzer)
        _create(path, _counted(entries, documents, progress), analyzer, texts=texts)
        return cls(path)

    @classmethod
    def create_from_terms(
        cls,
        path: str | os.PathLike[str],
        documents: TermDocuments,
        *,
        analyzer: Analyzer | None = None,
        texts: bool = False,
        progress: bool = True,
    ) -> LexicalIndex:
        """Index documents given as terms and their frequencies, such as those of a learned weighting.

        Parameters
        ----------
        path
            A new folder.
        documents
            Tuples (doc_id, positive frequencies by term), perhaps with a text, which is needed if texts are kept, and
            perhaps with metadata. Read once.
        analyzer
            How a query is split into terms; it must be what the terms were made with.
        texts
            Whether to keep the texts, compressed.
        progress
            Whether a bar may be shown.
        """
        entries = (_term_entry(*document) for document in documents)
        _create(path, _counted(entries, documents, progress), analyzer or Analyzer(), texts=texts)
        return cls(path)

    @classmethod
    def of(
        cls,
        index: Index,
        *,
        analyzer: Analyzer | None = None,
        progress: bool = True,
    ) -> LexicalIndex:
        """Open the lexical index that stands in the folder of a vector index, and bring it up to date.

        It is made from the texts the index keeps, on first use, and follows what is added and deleted: the documents
        and their ids are the same.

        Parameters
        ----------
        index
            An index that keeps texts.
        analyzer
            How a text is split into terms; if it is not the one used before, the index is made again.
        progress
            Whether a bar may be shown.

        Raises
        ------
        InputError
            If the index keeps no texts.
        """
        store = Store(index.path / FOLDER, LexicalSnapshot)
        wanted = analyzer or (cls(store.layout.path).analyzer if store.layout.manifest.is_file() else Analyzer())

        def entries(documents: TextDocuments) -> Iterator[Entry]:
            return _counted(_entries(documents, wanted), documents, progress)

        follow_index(store, index.snapshot, entries, _info(wanted))
        opened = cls(store.layout.path)
        opened._texts = index
        return opened

    def add(self, documents: TextDocuments) -> None:
        """Add documents, all of them or none; an id that is there is an :class:`InputError` that names it."""
        self._store.add(_entries(documents, self.analyzer), write_entries)
        self.reload()

    def upsert(self, documents: TextDocuments) -> None:
        """Add documents, and replace those whose ids are there, in one generation; see :meth:`Index.upsert`."""
        self._store.add(_entries(documents, self.analyzer), write_entries, replacing=True)
        self.reload()

    def merge(self) -> None:
        """Drop deleted documents and join the segments; rankings stay as they are."""
        self._store.merge(merge_segments)
        self.reload()

    @property
    def analyzer(self) -> Analyzer:
        """How texts and queries are split into terms."""
        return self._analyzer

    def document_frequency(self, term: str) -> int:
        """In how many live documents a term is."""
        return len(self._snapshot.postings(term).positions)

    def text(self, document: str | int) -> str | None:
        """Read the text of a document, by its id or position; None if no texts are kept."""
        return self.text_in(self._snapshot, self._position(document))

    def text_in(self, snapshot: LexicalSnapshot, position: int) -> str | None:
        """Read the text of a document of a generation.

        An index that stands beside a vector index reads it there; None if the document has been deleted there since.
        """
        if self._texts is None:
            return snapshot.text(position)
        vectors = self._texts.snapshot
        found = vectors.find(snapshot.doc_id(position))
        return None if found is None else vectors.text(found)


def _create(path: str | os.PathLike[str], entries: Iterable[Entry], analyzer: Analyzer, *, texts: bool) -> None:
    empty = LexicalManifest(0, (), _info(analyzer), texts)
    Store(path, LexicalSnapshot).create(empty, entries, write_entries)


def _info(analyzer: Analyzer) -> AnalyzerInfo:
    return AnalyzerInfo(analyzer.stop_words, analyzer.stemmer)


def _entries(documents: TextDocuments, analyzer: Analyzer) -> Iterator[Entry]:
    for document in documents_of_texts(documents):
        text, metadata = document.text or "", metadata_json(document.doc_id, document.metadata)
        yield Entry(document.doc_id, Counter(analyzer.terms(text)), text_checksum(text, metadata), text, metadata)


def _term_entry(
    doc_id: str, frequencies: Mapping[str, int], text: str | None = None, metadata: Mapping[str, Any] | None = None
) -> Entry:
    for term, frequency in frequencies.items():
        if frequency < 1:
            raise InputError(f"the frequency of {term!r} in document {doc_id!r} must be at least 1, found {frequency}")
    encoded = metadata_json(doc_id, metadata)
    return Entry(doc_id, frequencies, text_checksum(repr(sorted(frequencies.items())), encoded), text, encoded)


def _counted(entries: Iterable[Entry], given: Iterable[object], progress: bool) -> Iterator[Entry]:
    """Pass entries on, showing how far they are."""
    with progress_bar("Indexing terms", total=length_hint(given) or None, shown=progress) as advance:
        for entry in entries:
            yield entry
            advance(1)
