"""The indexes a server has open: each by its name, each at its newest generation."""

from __future__ import annotations

import copy
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, cast, runtime_checkable

from colbert_prf.baselines.lexical import LexicalIndex
from colbert_prf.encoder import Encoder
from colbert_prf.errors import ColbertPrfError, InputError
from colbert_prf.feedback import ColbertPRF
from colbert_prf.index import Index
from colbert_prf.plots.plane import feedback_plane
from colbert_prf.search.searcher import Searcher
from colbert_prf.server.errors import ApiError
from colbert_prf.storage.layout import IndexLayout

__all__ = ["Generation", "Indexes", "ServedIndex"]

LOG = logging.getLogger("colbert_prf.server")
NUM_EXAMPLES, EXAMPLE_WORDS = 4, 8


@runtime_checkable
class Closes(Protocol):
    """What holds processes that must be ended."""

    def close(self) -> None:
        """End them."""


OpenSearcher: TypeAlias = Callable[[Path, Encoder | None], Searcher]
_Stamp = tuple[int, int, int]


class Generation:
    """One generation of an index, open for searching: a request takes it once and sees nothing of later writes.

    Parameters
    ----------
    searcher
        Over an index that was opened for this generation.
    """

    def __init__(self, searcher: Searcher) -> None:
        self.searcher = searcher
        self.index = cast(Index, searcher.index)
        self._lexical: LexicalIndex | None = None
        self._lock = threading.Lock()

    @property
    def number(self) -> int:
        """How many times the index was changed."""
        return self.index.generation

    def lexical(self) -> LexicalIndex:
        """The terms of the same documents; made on first use, kept in the folder of the index."""
        with self._lock:
            if self._lexical is None:
                self._lexical = LexicalIndex.of(self.index, progress=False)
            return self._lexical

    def warm(self, *, kernels: bool) -> None:
        """Search once with feedback, so that no request waits for a file to be read or, at first, a kernel compiled."""
        if not self.index.num_documents or self.index.encoder is None:
            return
        query, method = self.searcher.encode("warm"), ColbertPRF()
        ranking = self.searcher.search(query, 10, feedback=method)
        if kernels and len(ranking):
            self.searcher.explain(ranking.encoded_query, ranking.hits[0].doc_id)
            every = replace(method, expansion_vectors=method.clusters)
            _ = feedback_plane(self.searcher, query, [every]).projection


class ServedIndex:
    """An index by its name.

    Parameters
    ----------
    name
        What requests call it.
    path
        Its folder.
    examples
        Queries to try; the beginnings of some passages if left out.
    open_searcher
        Opens a searcher over the newest generation, given the folder and the model; on this machine if left out.
    """

    def __init__(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        examples: Sequence[str] = (),
        open_searcher: OpenSearcher | None = None,
    ) -> None:
        self.name = name
        self.path = Path(path)
        self.stale = False
        self._given = tuple(examples)
        self._open_searcher = open_searcher or _searcher_here
        self._examples: list[str] | None = None
        self._current: Generation | None = None
        self._encoder: Encoder | None = None
        self._stamp: _Stamp | None = None
        self._lock = threading.Lock()

    @property
    def state(self) -> Literal["ready", "loading", "stale"]:
        """Whether it can be searched, and is at its newest generation."""
        if self._current is None:
            return "loading"
        return "stale" if self.stale else "ready"

    @property
    def current(self) -> Generation:
        """The newest generation that is open."""
        if self._current is None:
            raise ApiError(503, "not_ready", f"the index {self.name!r} is being opened", "wait", retry_after=1)
        return self._current

    @property
    def is_open(self) -> bool:
        """Whether there is a generation."""
        return self._current is not None

    def refresh(self) -> None:
        """Open the newest generation, if it is not open: the old one is searched until the new one is warm.

        Raises
        ------
        ColbertPrfError
            If the folder cannot be opened.
        """
        with self._lock:
            stamp = self._stamped()
            if self._current is not None and stamp == self._stamp:
                return
            generation = Generation(self._open_searcher(self.path, self._model()))
            generation.warm(kernels=self._current is None)
            self._current, self._stamp, self.stale = generation, stamp, False

    def try_refresh(self) -> None:
        """Like :meth:`refresh`; if that fails the old generation stays, and the log says why."""
        try:
            self.refresh()
        except (ColbertPrfError, OSError) as error:
            if not self.stale:
                LOG.error("index %s: the newest generation cannot be opened: %s", self.name, error)
            self.stale = True

    def close(self) -> None:
        """End what searches the index elsewhere; there are no searches after that."""
        with self._lock:
            opener: object = self._open_searcher
            if isinstance(opener, Closes):
                opener.close()

    def writer(self) -> Index:
        """The index opened anew, to change it."""
        return self._opened()

    @property
    def layout(self) -> IndexLayout:
        """Where its files are."""
        return IndexLayout.at(self.path)

    @property
    def examples(self) -> list[str]:
        """Queries to try."""
        if self._given:
            return list(self._given)
        if self._examples is None:
            self._examples = _beginnings(self.current.index)
        return self._examples

    def _opened(self) -> Index:
        return Index.open(self.path, encoder=self._model())

    def _model(self) -> Encoder | None:
        """The model of the index, opened once; a search is one thread's work, as is a write."""
        if self._encoder is None and (encoder := Index.open(self.path).encoder) is not None:
            self._encoder = copy.copy(encoder)
            self._encoder.threads = 1  # type: ignore[attr-defined]
        return self._encoder

    def _stamped(self) -> _Stamp:
        status = self.layout.manifest.stat()
        return status.st_mtime_ns, status.st_ino, status.st_size


class Indexes(Mapping[str, ServedIndex]):
    """Indexes by name, in the order they were given.

    Parameters
    ----------
    served
        Each with a name of its own.
    """

    def __init__(self, served: Sequence[ServedIndex]) -> None:
        self._served = {index.name: index for index in served}
        if not served or len(self._served) < len(served):
            names = ", ".join(index.name for index in served) or "none"
            raise InputError(f"a server needs indexes with different names, found {names}; write NAME=INDEX")

    def __getitem__(self, name: str) -> ServedIndex:
        try:
            return self._served[name]
        except KeyError:
            message = f"there is no index {name!r}"
            raise ApiError(404, "unknown_index", message, "GET /v1/indexes lists the names") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)


def _searcher_here(path: Path, encoder: Encoder | None) -> Searcher:
    return Searcher(Index.open(path, encoder=encoder), threads=1, progress=False)


def _beginnings(index: Index) -> list[str]:
    """The first words of some passages, spread over the index."""
    live = index.snapshot.live.nonzero()[0]
    chosen = live[:: max(1, len(live) // NUM_EXAMPLES)][:NUM_EXAMPLES].tolist()
    texts = [index.text(position) or "" for position in chosen]
    return [" ".join(text.split()[:EXAMPLE_WORDS]) for text in texts if text.strip()]
