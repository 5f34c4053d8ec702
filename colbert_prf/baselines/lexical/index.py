"""A lexical index on disk: the class users see."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import length_hint
from pathlib import Path
from typing import cast

from colbert_prf.baselines.lexical.analysis import Analyzer, Stemmer, StopWords
from colbert_prf.baselines.lexical.changes import (
    add_entries,
    create_lexical,
    delete_positions,
    follow_index,
    merge_lexical,
    text_checksum,
)
from colbert_prf.baselines.lexical.manifest import AnalyzerInfo
from colbert_prf.baselines.lexical.segment_writer import Entry
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.baselines.lexical.verification import verify_lexical
from colbert_prf.errors import InputError
from colbert_prf.index import Index
from colbert_prf.progress import progress_bar
from colbert_prf.storage.layout import IndexLayout

__all__ = ["LexicalIndex"]

FOLDER = "lexical"
"""Where a vector index keeps the lexical index of its texts."""


class LexicalIndex:
    """Documents as terms in a folder, memory-mapped: what BM25 searches.

    Make one with :meth:`of`, :meth:`create`, :meth:`create_from_terms` or :meth:`open`. Like :class:`Index`, it shows
    one generation, and a change is whole or absent whenever the power fails.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
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
        self._layout = IndexLayout.at(path)
        self._snapshot = LexicalSnapshot.open(self._layout)
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
        documents: Iterable[tuple[str, str]],
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
            Pairs of id and text; ids are any strings, each different. Read once.
        analyzer
            How a text is split into terms.
        texts
            Whether to keep the texts, compressed, for hits and re-rankers.
        progress
            Whether a bar may be shown.
        """
        analyzer = analyzer or Analyzer()
        entries = _entries(documents, analyzer)
        create_lexical(IndexLayout.at(path), _counted(entries, documents, progress), _info(analyzer), texts=texts)
        return cls(path)

    @classmethod
    def create_from_terms(
        cls,
        path: str | os.PathLike[str],
        documents: Iterable[tuple[str, Mapping[str, int]] | tuple[str, Mapping[str, int], str]],
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
            Ids and positive frequencies by term, and a text if texts are kept. Read once.
        analyzer
            How a query is split into terms; it must be what the terms were made with.
        texts
            Whether to keep the texts, compressed.
        progress
            Whether a bar may be shown.
        """
        entries = (_term_entry(*document) for document in documents)
        counted = _counted(entries, documents, progress)
        create_lexical(IndexLayout.at(path), counted, _info(analyzer or Analyzer()), texts=texts)
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
            How a text is split into terms; when it is not the one used before, all is made anew.
        progress
            Whether a bar may be shown.

        Raises
        ------
        InputError
            If the index keeps no texts.
        """
        layout = IndexLayout.at(index.snapshot.layout.path / FOLDER)
        wanted = analyzer or (cls(layout.path).analyzer if layout.manifest.is_file() else Analyzer())

        def entries(pairs: Iterable[tuple[str, str]]) -> Iterator[Entry]:
            return _counted(_entries(pairs, wanted), pairs, progress)

        follow_index(layout, index.snapshot, entries, _info(wanted))
        opened = cls(layout.path)
        opened._texts = index
        return opened

    def add(self, documents: Iterable[tuple[str, str]]) -> None:
        """Add documents, all of them or none; an id that is there is an :class:`InputError`."""
        add_entries(self._layout, _entries(documents, self.analyzer))
        self.reload()

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none; an unknown id is an :class:`InputError` that names it."""
        wanted = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        delete_positions(self._layout, lambda snapshot: snapshot.positions(wanted))
        self.reload()

    def merge(self) -> None:
        """Drop deleted documents and join the segments; rankings stay as they are."""
        merge_lexical(self._layout)
        self.reload()

    def verify(self) -> int:
        """Check every byte against its checksum and every array against the others; return the number of files.

        Raises
        ------
        IndexFormatError
            Naming the first file that is not as it was written.
        """
        return verify_lexical(LexicalSnapshot.open(self._layout))

    def reload(self) -> None:
        """See the newest generation."""
        self._snapshot = LexicalSnapshot.open(self._layout)

    @property
    def snapshot(self) -> LexicalSnapshot:
        """The generation this object shows: take it once where several calls must see the same."""
        return self._snapshot

    @property
    def path(self) -> Path:
        """The folder."""
        return self._layout.path

    @property
    def analyzer(self) -> Analyzer:
        """How texts and queries are split into terms."""
        return self._analyzer

    @property
    def num_documents(self) -> int:
        """Documents that are not deleted: N."""
        return self._snapshot.num_documents

    @property
    def generation(self) -> int:
        """How many times the index was changed, its creation included."""
        return self._snapshot.manifest.generation

    def document_frequency(self, term: str) -> int:
        """In how many live documents a term is."""
        return len(self._snapshot.postings(term).positions)

    def text(self, doc_id: str) -> str | None:
        """The text of a live document, where texts are kept, here or in the vector index it stands beside."""
        if self._texts is not None:
            vectors = self._texts.snapshot
            place = vectors.find(doc_id)
            return vectors.text(place) if place is not None else None
        place = self._snapshot.find(doc_id)
        return self._snapshot.text(place) if place is not None else None


def _info(analyzer: Analyzer) -> AnalyzerInfo:
    return AnalyzerInfo(analyzer.stop_words, analyzer.stemmer)


def _entries(documents: Iterable[tuple[str, str]], analyzer: Analyzer) -> Iterator[Entry]:
    for doc_id, text in documents:
        if not isinstance(doc_id, str) or not isinstance(text, str):
            raise InputError(f"a document is an id and a text, found {doc_id!r} and {type(text).__name__}")
        yield Entry(doc_id, Counter(analyzer.terms(text)), text_checksum(text), text)


def _term_entry(doc_id: str, frequencies: Mapping[str, int], text: str | None = None) -> Entry:
    for term, frequency in frequencies.items():
        if frequency < 1:
            raise InputError(f"the frequency of {term!r} in document {doc_id!r} must be at least 1, found {frequency}")
    return Entry(doc_id, frequencies, text_checksum(repr(sorted(frequencies.items()))), text)


def _counted(entries: Iterable[Entry], given: Iterable[object], progress: bool) -> Iterator[Entry]:
    """Pass entries on, showing how far they are."""
    with progress_bar("Indexing terms", total=length_hint(given) or None, shown=progress) as advance:
        for entry in entries:
            yield entry
            advance(1)
