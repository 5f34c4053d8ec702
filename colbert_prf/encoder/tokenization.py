"""Text to token ids: markers, truncation, [MASK] augmentation and the skip list, as a model's settings say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from colbert_prf.encoder.settings import ModelSettings
from colbert_prf.encoder.text import valid_document, valid_query
from colbert_prf.errors import ModelError

__all__ = ["TokenSpans", "Tokenization", "Tokenized"]


class Tokenized(NamedTuple):
    """One text ready for the network; all three are of shape (num_tokens,)."""

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_]
    """Which tokens get a vector."""


class TokenSpans(NamedTuple):
    """Where the tokens of a document that get a vector stand in its text.

    Offsets count characters from 0, ends come after the last one; both are -1 for a token that is not in the text.
    """

    token_ids: npt.NDArray[np.int64]
    """Of shape (num_tokens,)."""
    tokens: npt.NDArray[np.int64]
    """Start and end of each token, of shape (num_tokens, 2)."""
    words: npt.NDArray[np.int64]
    """Start and end of the word that each token is a part of, of shape (num_tokens, 2)."""


class Tokenization:
    """A tokenizer that knows the two sides of a ColBERT model.

    Parameters
    ----------
    tokenizer
        Of the ``tokenizers`` library; its padding and truncation are replaced by the model's settings.
    settings
        The model's settings.
    """

    def __init__(self, tokenizer: Tokenizer, settings: ModelSettings) -> None:
        self.settings = settings
        # Truncation is a state of a Tokenizer: one for each side, so that threads never switch it.
        self._queries = _with_length(tokenizer, settings.query_length)
        self._documents = _with_length(tokenizer, settings.document_length)
        self._skipped = np.array(sorted(self._ids(settings.skip_tokens)), dtype=np.int64)
        self._augment_id = next(iter(self._ids([settings.augment_token])), 0) if settings.augment_to else 0

    @classmethod
    def from_file(cls, path: Path, settings: ModelSettings) -> Tokenization:
        """Read a ``tokenizer.json``."""
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelError(f"{path}: not a tokenizer file: {error}") from error
        return cls(tokenizer, settings)

    def save(self, path: Path) -> None:
        """Write a ``tokenizer.json``."""
        self._documents.save(str(path))

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token id."""
        return int(self._documents.get_vocab_size(with_added_tokens=True))

    @property
    def special_ids(self) -> frozenset[int]:
        """Token ids that carry no word: ``[CLS]``, ``[MASK]``, the markers."""
        return frozenset(self._ids(self.settings.special_tokens))

    def tokens(self, token_ids: Iterable[int]) -> list[str]:
        """Spell token ids, for people.

        An id outside the vocabulary is spelled ``[id 99999]``.
        """
        return [self._documents.id_to_token(int(i)) or f"[id {int(i)}]" for i in token_ids]

    def query(self, text: str) -> Tokenized:
        """Tokenize a query and fill it up with augmentation tokens; an empty one is a :class:`TextError`."""
        ids = _encode(self._queries, self.settings.query_prefix + valid_query(text))
        attention = np.ones_like(ids)
        if (filling := self.settings.augment_to - len(ids)) > 0:
            ids = np.pad(ids, (0, filling), constant_values=self._augment_id)
            attention = np.pad(attention, (0, filling), constant_values=int(self.settings.attend_to_augmentation))
        return Tokenized(ids, attention, np.ones(len(ids), dtype=np.bool_))

    def document(self, text: str) -> Tokenized:
        """Tokenize a document and mark the tokens of the skip list; an empty text keeps its markers."""
        ids = _encode(self._documents, self.settings.document_prefix + valid_document(text))
        return Tokenized(ids, np.ones_like(ids), ~np.isin(ids, self._skipped))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a whole text begins and ends, without markers and however long it is."""
        return list(self._whole.encode(valid_document(text), add_special_tokens=False).offsets)

    @cached_property
    def _whole(self) -> Tokenizer:
        copy = Tokenizer.from_str(self._documents.to_str())
        copy.no_truncation()
        return copy

    def spans(self, text: str) -> TokenSpans:
        """Where the tokens of :meth:`document` stand in ``text``, in which a lone surrogate is one character."""
        prefix, text = self.settings.document_prefix, valid_document(text)
        encoded = self._documents.encode(prefix + text)
        words: dict[int, tuple[int, int]] = {}
        for word, (start, end) in zip(encoded.word_ids, encoded.offsets, strict=True):
            if word is not None:
                first, last = words.get(word, (start, end))
                words[word] = min(first, start), max(last, end)
        offsets = encoded.offsets
        whole = [
            offset if word is None else words[word] for word, offset in zip(encoded.word_ids, offsets, strict=True)
        ]
        ids = np.array(encoded.ids, dtype=np.int64)
        tokens, wholes = (np.array(spans, dtype=np.int64).reshape(-1, 2) - len(prefix) for spans in (offsets, whole))
        outside = (
            np.array(encoded.special_tokens_mask, dtype=np.bool_) | (tokens[:, 0] < 0) | (tokens[:, 0] >= tokens[:, 1])
        )
        tokens[outside] = wholes[outside] = -1
        kept = ~np.isin(ids, self._skipped)
        return TokenSpans(ids[kept], tokens[kept], np.maximum(wholes[kept], -1))

    def _ids(self, tokens: Iterable[str]) -> set[int]:
        found = {token: self._documents.token_to_id(token) for token in tokens}
        if unknown := [token for token, token_id in found.items() if token_id is None]:
            raise ModelError(f"the model settings name tokens its tokenizer does not have: {unknown}")
        return {token_id for token_id in found.values() if token_id is not None}


def _with_length(tokenizer: Tokenizer, length: int) -> Tokenizer:
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_padding()
    copy.enable_truncation(length)
    return copy


def _encode(tokenizer: Tokenizer, text: str) -> npt.NDArray[np.int64]:
    return np.array(tokenizer.encode(text).ids, dtype=np.int64)
