"""From a text to terms: words in lower case, without stop words, stemmed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Literal, get_args

from colbert_prf.baselines.lexical.stop_words import ENGLISH
from colbert_prf.errors import InputError

__all__ = ["Analyzer", "Stemmer", "StopWords"]

Stemmer = Literal["porter", "none"]
StopWords = Literal["english", "none"]

_WORD = re.compile(r"[^\W_]+")
_NOISE = re.compile(r"(.)\1{3}|(?:.*\d){5}")
"""Four equal characters in a row, or five digits: such words are left out, as Terrier does."""
MAX_LENGTH = 20
CACHED_WORDS = 1 << 20


@dataclass(frozen=True)
class Analyzer:
    """Splits a text into terms as Terrier's default pipeline does.

    A word is a run of letters and digits. One of more than 20 characters, with more than four digits or with four equal
    characters in a row is left out; so are stop words. The others are stemmed.

    Parameters
    ----------
    stop_words
        Words to leave out: ``"english"`` or ``"none"``.
    stemmer
        ``"porter"``, Porter's algorithm of 1980, or ``"none"``.

    Examples
    --------
    >>> Analyzer().terms("The goldfish are growing in an AAAAquarium; 12345 fishes!")
    ['goldfish', 'grow', 'fish']
    >>> Analyzer(stop_words="none", stemmer="none").terms("The goldfish are growing")
    ['the', 'goldfish', 'are', 'growing']
    """

    stop_words: StopWords = "english"
    stemmer: Stemmer = "porter"

    def __post_init__(self) -> None:
        for name, known in (("stop_words", get_args(StopWords)), ("stemmer", get_args(Stemmer))):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {known}, found {getattr(self, name)!r}")

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        if not isinstance(text, str):
            raise InputError(f"a text must be a string, found {type(text).__name__}")
        return [term for word in _WORD.findall(text.lower()) if (term := self._term(word))]

    def term(self, word: str) -> str:
        """The term of one word in lower case; empty if it is left out."""
        return self._term(word)

    @cached_property
    def _term(self) -> Callable[[str], str]:
        # A text has few different words: each is stemmed once.
        stop_words = ENGLISH if self.stop_words == "english" else frozenset()
        stem = _porter() if self.stemmer == "porter" else str

        @lru_cache(maxsize=CACHED_WORDS)
        def term(word: str) -> str:
            if len(word) > MAX_LENGTH or word in stop_words or _NOISE.search(word):
                return ""
            return stem(word)

        return term


def _porter() -> Callable[[str], str]:
    """Porter's stemmer, compiled where PyStemmer is installed."""
    from snowballstemmer import stemmer

    stem: Callable[[str], str] = stemmer("porter").stemWord
    lock = Lock()

    def alone(word: str) -> str:
        with lock:  # a stemmer keeps the word it works on
            return stem(word)

    return alone
