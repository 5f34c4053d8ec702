"""Long documents as overlapping passages, which begin and end at sentences.

A passage is called after its document: ``d7#0``, ``d7#1`` and so on. The number stands behind the last ``#``, so that
any document id serves.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import TYPE_CHECKING

from colbert_prf.errors import InputError

if TYPE_CHECKING:
    from colbert_prf.encoder.tokenization import Tokenization

__all__ = ["Passages", "document_of", "passage_id", "passages_named", "siblings_of", "split_text"]

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\s*\n\s*\n\s*")


@dataclass(frozen=True)
class Passages:
    """How texts are split.

    Parameters
    ----------
    length
        Tokens of a passage at most, the markers of the model among them; as many as the model takes if left out.
    stride
        From the beginning of a passage to that of the next, about, in tokens; half of the length if left out, so that
        what stands at the end of one passage stands in the middle of the next. As much as the length: no overlap.

    Examples
    --------
    >>> Passages(180).stride_of(180)
    90
    """

    length: int | None = None
    stride: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("length", self.length), ("stride", self.stride)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InputError(f"{name} of passages must be a whole number of at least 1, found {value!r}")
        if self.length is not None and self.stride is not None and self.stride > self.length:
            message = f"stride must be at most the length, {self.length}, found {self.stride}"
            raise InputError(f"{message}; what stands between two passages would be lost")

    def stride_of(self, length: int) -> int:
        """The stride where passages have this length."""
        return self.stride or max(1, length // 2)

    def fitted(self, tokenization: Tokenization) -> Passages:
        """The same with length and stride written out, checked against what the model takes."""
        least, most = len(tokenization.document("").input_ids) + 1, tokenization.settings.document_length
        length = self.length or most
        if not least <= length <= most:
            raise InputError(f"length of passages must be from {least} to {most} with this model, found {length}")
        return Passages(length, min(self.stride_of(length), length))


def passage_id(doc_id: str, number: int) -> str:
    """What a passage of a document is called."""
    return f"{doc_id}#{number}"


def document_of(passage: str) -> str:
    """The document of a passage.

    >>> document_of(passage_id("a#1", 3))
    'a#1'
    """
    return passage.rpartition("#")[0]


def passages_named(doc_id: str, is_known: Callable[[str], bool]) -> list[str]:
    """The passages of a document, of which no one can be deleted alone."""
    return list(takewhile(is_known, (passage_id(doc_id, number) for number in count())))


def siblings_of(passage: str, is_known: Callable[[str], bool]) -> list[str]:
    """The passages, known ones, that the first passage of a document replaces; none for a later one.

    >>> siblings_of("a#0", {"a#0", "a#1", "b#0"}.__contains__), siblings_of("a#1", {"a#0", "a#1"}.__contains__)
    (['a#0', 'a#1'], [])
    """
    document = document_of(passage)
    return passages_named(document, is_known) if passage == passage_id(document, 0) else []


def split_text(text: str, offsets: Sequence[tuple[int, int]], length: int, stride: int) -> Iterator[str]:
    """Split a text.

    Parameters
    ----------
    text
        The text.
    offsets
        Where each of its tokens begins and ends.
    length, stride
        As in :class:`Passages`.

    Yields
    ------
    str
        Parts of the text, in order; at least one. Each token is in one of them, and none has more than ``length``. A
        passage begins where a sentence does, or inside a sentence that is longer than a passage.

    Examples
    --------
    >>> offsets = [(0, 1), (2, 3), (3, 4), (5, 6), (6, 7), (8, 9), (10, 11), (11, 12)]
    >>> list(split_text("A b. C. D e.", offsets, length=5, stride=3))
    ['A b. C.', 'C. D e.']
    """
    if not offsets:
        yield text
        return
    breaks = _breaks(text, offsets, length)
    total = len(offsets)
    ends = [0 if not number else len(text) if number == total else offsets[number][0] for number in breaks]
    first = last = 0
    while True:
        end = bisect_right(breaks, breaks[first] + length) - 1
        if end > last or not last:
            yield text[ends[first] : ends[end]].strip()
            last = end
        if end == len(breaks) - 1:
            return
        # A passage that ends where the one before does is part of it.
        first = max(bisect_right(breaks, breaks[first] + stride) - 1, first + 1)


def _breaks(text: str, offsets: Sequence[tuple[int, int]], length: int) -> list[int]:
    """The tokens where a passage may begin, and the end; from one to the next are at most ``length``."""
    starts = [start for start, _ in offsets]
    sentences = {bisect_left(starts, match.end()) for match in _SENTENCE_END.finditer(text)}
    breaks = [0]
    for wanted in sorted({*sentences, len(offsets)} - {0}):
        while wanted - breaks[-1] > length:
            before, latest = breaks[-1], breaks[-1] + length
            # At a word, if one begins in the second half: a word has several tokens without a space between.
            words = (n for n in range(latest, before + length // 2, -1) if offsets[n - 1][1] < offsets[n][0])
            breaks.append(next(words, latest))
        breaks.append(wanted)
    return breaks
