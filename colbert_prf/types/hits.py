"""The documents that a search retrieved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, overload

__all__ = ["Hit", "Hits"]


@dataclass(frozen=True)
class Hit:
    """One retrieved document: its id, its score, and the text and metadata that the index keeps of it.

    Text and metadata are read on access, because a run of a thousand hits rarely needs any. If documents were ranked
    by their passages, ``passage_id`` names the best passage, and text and metadata are those of this passage.

    Examples
    --------
    >>> hit = Hit("d1", 0.9, lambda: "Goldfish grow.", lambda: {"source": "garden"})
    >>> hit.text, hit.metadata
    ('Goldfish grow.', {'source': 'garden'})
    """

    doc_id: str
    score: float
    read_text: Callable[[], str | None] | None = field(default=None, repr=False, compare=False)
    read_metadata: Callable[[], dict[str, Any]] | None = field(default=None, repr=False, compare=False)
    passage_id: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str | None:
        """The text, or None if the index keeps no texts."""
        return self.read_text() if self.read_text is not None else None

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata; empty if the document has none."""
        return self.read_metadata() if self.read_metadata is not None else {}


class Hits(Sequence[Hit]):
    """A sequence that makes each hit on access, because few of a thousand hits are looked at.

    Parameters
    ----------
    doc_ids
        From best to worst.
    scores
        In the same order.
    read_text, read_metadata
        Read the text and the metadata of a document, given its rank from 0.
    passage_ids
        The best passage of each document, if documents were ranked by passages.

    Examples
    --------
    >>> hits = Hits(["d1", "d2"], [0.9, 0.5])
    >>> hits[-1], len(hits)
    (Hit(doc_id='d2', score=0.5), 2)
    """

    def __init__(
        self,
        doc_ids: Sequence[str],
        scores: Sequence[float],
        read_text: Callable[[int], str | None] | None = None,
        read_metadata: Callable[[int], dict[str, Any]] | None = None,
        passage_ids: Sequence[str] | None = None,
    ) -> None:
        self.doc_ids = doc_ids
        self.scores = scores
        self._read_text = read_text
        self._read_metadata = read_metadata
        self._passage_ids = passage_ids

    def __len__(self) -> int:
        return len(self.doc_ids)

    @overload
    def __getitem__(self, rank: int) -> Hit: ...

    @overload
    def __getitem__(self, rank: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, rank: int | slice) -> Hit | tuple[Hit, ...]:
        ranks = range(len(self))[rank]
        return self._hit(ranks) if isinstance(ranks, int) else tuple(map(self._hit, ranks))

    def __iter__(self) -> Iterator[Hit]:
        return map(self._hit, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _hit(self, rank: int) -> Hit:
        text = None if self._read_text is None else partial(self._read_text, rank)
        metadata = None if self._read_metadata is None else partial(self._read_metadata, rank)
        passage_id = self._passage_ids[rank] if self._passage_ids else None
        return Hit(self.doc_ids[rank], self.scores[rank], text, metadata, passage_id)
