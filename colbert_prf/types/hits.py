"""The documents a search found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from colbert_prf.lazily import Lazily

__all__ = ["Hit", "Hits"]


@dataclass(frozen=True)
class Hit:
    """One retrieved document: its id and score, and what the index keeps of it, text and metadata.

    Text and metadata are read when they are asked for: a run of a thousand hits rarely needs any. Where documents
    were ranked by their passages, ``passage_id`` names the best, and text and metadata are those of the passage.

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
        """The text, or None where the index keeps no texts."""
        return self.read_text() if self.read_text is not None else None

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata; empty where there is none."""
        return self.read_metadata() if self.read_metadata is not None else {}


class Hits(Lazily[Hit]):
    """Hits that are made when they are looked at: of a thousand that a search finds, few are.

    Parameters
    ----------
    doc_ids
        From best to worst.
    scores
        In the same order.
    read_text, read_metadata
        Give the text and the metadata of a document by its number in this order.
    passage_ids
        The best passage of each document, where documents were ranked by them.

    Examples
    --------
    >>> hits = Hits(["d1", "d2"], [0.9, 0.5])
    >>> hits[0], len(hits)
    (Hit(doc_id='d1', score=0.9), 2)
    """

    def __init__(
        self,
        doc_ids: Sequence[str],
        scores: Sequence[float],
        read_text: Callable[[int], str | None] | None = None,
        read_metadata: Callable[[int], dict[str, Any]] | None = None,
        passage_ids: Sequence[str] | None = None,
    ) -> None:
        def hit(number: int) -> Hit:
            text = None if read_text is None else partial(read_text, number)
            metadata = None if read_metadata is None else partial(read_metadata, number)
            passage_id = passage_ids[number] if passage_ids else None
            return Hit(doc_ids[number], scores[number], text, metadata, passage_id)

        super().__init__(len(doc_ids), hit)
        self.doc_ids = doc_ids
        self.scores = scores
