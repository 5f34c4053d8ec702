"""Long documents as overlapping passages, which begin and end at sentences.

The id of a passage is that of its document and a number: ``d7#0``, ``d7#1`` and so on. The number stands behind the
last ``#``, so that any document id serves.
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
    """How texts are split into passages.

    Parameters
    ----------
    length
        The most tokens of a passage, with the markers of the model; as many as the model takes if left out.
    stride
        About the number of tokens from the beginning of a passage to that of the next. If left out, it is half of the
        length, so that the end of one passage is in the middle of the next. A stride of ``length`` means no overlap.

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
        """Return the stride of passages of this length."""
        return self.stride or max(1, length // 2)

    def fitted(self, tokenization: Tokenization) -> Passages:
        """Return the same with length and stride filled in, checked against the lengths that the model takes."""
        least, most = len(tokenization.document("").input_ids) + 1, tokenization.settings.document_length
        length = self.length or most
        if not least <= length <= most:
            raise InputError(f"length of passages must be from {least} to {most} with this model, found {length}")
        return Passages(length, min(self.stride_of(length), length))


def passage_id(doc_id: str, number: int) -> str:
    """Return the id of a passage of a document."""
    return f"{doc_id}#{number}"


def document_of(passage: str) -> str:
    """Return the id of the document of a passage.

    >>> document_of(passage_id("a#1", 3))
    'a#1'
    """
    return passage.rpartition("#")[0]


def passages_named(doc_id: str, is_known: Callable[[str], bool]) -> list[str]:
    """List the ids of all passages of a document; they have no gap, because nobody can delete a single one."""
    return list(takewhile(is_known, (passage_id(doc_id, number) for number in count())))


def siblings_of(passage: str, is_known: Callable[[str], bool]) -> list[str]:
    """List the passages of the index that the first passage of a document replaces; none for a later passage.

    >>> siblings_of("a#0", {"a#0", "a#1", "b#0"}.__contains__), siblings_of("a#1", {"a#0", "a#1"}.__contains__)
    (['a#0', 'a#1'], [])
    """
    document = document_of(passage)
    return passages_named(document, is_known) if passage == passage_id(document, 0) else []


def split_text(text: str, offsets: Sequence[tuple[int, int]], length: int, stride: int) -> Iterator[str]:
    """Split a text into passages.

    Parameters
    ----------
    text
        The text.
    offsets
        The first and the last offset of each of its tokens.
    length, stride
        As in :class:`Passages`.

    Yields
    ------
    str
        The passages in order, at least one. Together they have all tokens, and none has more than ``length``. A
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
    num_tokens = len(offsets)
    characters = [0 if not token else len(text) if token == num_tokens else offsets[token][0] for token in breaks]
    start = previous_end = 0
    while True:
        end = bisect_right(breaks, breaks[start] + length) - 1
        if end > previous_end or not previous_end:  # otherwise the passage is part of the one before
            yield text[characters[start] : characters[end]].strip()
            previous_end = end
        if end == len(breaks) - 1:
            return
        start = max(bisect_right(breaks, breaks[start] + stride) - 1, start + 1)


def _breaks(text: str, offsets: Sequence[tuple[int, int]], length: int) -> list[int]:
    """List the tokens where a passage may begin, and the end of the text, at most ``length`` tokens apart."""
    starts = [start for start, _ in offsets]
    sentences = {bisect_left(starts, match.end()) for match in _SENTENCE_END.finditer(text)}
    breaks = [0]
    for sentence in sorted({*sentences, len(offsets)} - {0}):
        while sentence - breaks[-1] > length:
            earliest, latest = breaks[-1] + length // 2, breaks[-1] + length
            # Tokens of one word have no space between them; break before a word, if one begins in the second half.
            words = (n for n in range(latest, earliest, -1) if offsets[n - 1][1] < offsets[n][0])
            breaks.append(next(words, latest))
        breaks.append(sentence)
    return breaks
