"""Tokenization of queries and documents: markers, truncation, [MASK] augmentation and the skip list of a model."""

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
    """A text as the network takes it; each array is of shape (num_tokens,)."""

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    has_vector: npt.NDArray[np.bool_]
    """Whether each token gets a vector: those of the skip list do not."""


class TokenSpans(NamedTuple):
    """The positions in the text of those tokens of a document that get a vector.

    Offsets count characters from 0, and an end is one more than the last character; both are -1 for a token that is not
    in the text.
    """

    token_ids: npt.NDArray[np.int64]
    """Of shape (num_tokens,)."""
    tokens: npt.NDArray[np.int64]
    """The start and end of each token, of shape (num_tokens, 2)."""
    words: npt.NDArray[np.int64]
    """The start and end of the word that each token is a part of, of shape (num_tokens, 2)."""


class Tokenization:
    """A tokenizer for the queries and the documents of a ColBERT model.

    Parameters
    ----------
    tokenizer
        A tokenizer of the ``tokenizers`` library; the settings replace its padding and truncation.
    settings
        The model's settings.
    """

    def __init__(self, tokenizer: Tokenizer, settings: ModelSettings) -> None:
        self.settings = settings
        # Truncation is a state of a Tokenizer, so queries and documents have one each, and threads never switch it.
        self._query_tokenizer = _with_length(tokenizer, settings.query_length)
        self._document_tokenizer = _with_length(tokenizer, settings.document_length)
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
        self._document_tokenizer.save(str(path))

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token id."""
        return int(self._document_tokenizer.get_vocab_size(with_added_tokens=True))

    @property
    def special_ids(self) -> frozenset[int]:
        """Token ids that carry no word: ``[CLS]``, ``[MASK]``, the markers."""
        return frozenset(self._ids(self.settings.special_tokens))

    def tokens(self, token_ids: Iterable[int]) -> list[str]:
        """Spell token ids, for people; an id outside the vocabulary is ``[id 99999]``."""
        return [self._document_tokenizer.id_to_token(int(i)) or f"[id {int(i)}]" for i in token_ids]

    def query(self, text: str) -> Tokenized:
        """Tokenize a query and pad it with augmentation tokens; an empty query is a :class:`TextError`."""
        ids = _encode(self._query_tokenizer, self.settings.query_prefix + valid_query(text))
        attention = np.ones_like(ids)
        if (padding := self.settings.augment_to - len(ids)) > 0:
            ids = np.pad(ids, (0, padding), constant_values=self._augment_id)
            attention = np.pad(attention, (0, padding), constant_values=int(self.settings.attend_to_augmentation))
        return Tokenized(ids, attention, np.ones(len(ids), dtype=np.bool_))

    def document(self, text: str) -> Tokenized:
        """Tokenize a document and mark the tokens of the skip list; an empty text keeps its markers."""
        ids = _encode(self._document_tokenizer, self.settings.document_prefix + valid_document(text))
        return Tokenized(ids, np.ones_like(ids), ~np.isin(ids, self._skipped))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each token of a whole text of any length, without markers."""
        return list(self._untruncated.encode(valid_document(text), add_special_tokens=False).offsets)

    @cached_property
    def _untruncated(self) -> Tokenizer:
        copy = Tokenizer.from_str(self._document_tokenizer.to_str())
        copy.no_truncation()
        return copy

    def spans(self, text: str) -> TokenSpans:
        """Find the tokens of :meth:`document` in ``text``, in which a lone surrogate is one character."""
        prefix, text = self.settings.document_prefix, valid_document(text)
        encoded = self._document_tokenizer.encode(prefix + text)
        offsets, word_ids = encoded.offsets, encoded.word_ids
        word_spans: dict[int, tuple[int, int]] = {}
        for word_id, (start, end) in zip(word_ids, offsets, strict=True):
            if word_id is not None:
                first, last = word_spans.get(word_id, (start, end))
                word_spans[word_id] = min(first, start), max(last, end)
        words = [
            offset if word_id is None else word_spans[word_id]
            for word_id, offset in zip(word_ids, offsets, strict=True)
        ]
        ids = np.array(encoded.ids, dtype=np.int64)
        tokens, whole = (np.array(spans, dtype=np.int64).reshape(-1, 2) - len(prefix) for spans in (offsets, words))
        outside = (
            np.array(encoded.special_tokens_mask, dtype=np.bool_) | (tokens[:, 0] < 0) | (tokens[:, 0] >= tokens[:, 1])
        )
        tokens[outside] = whole[outside] = -1
        has_vector = ~np.isin(ids, self._skipped)
        return TokenSpans(ids[has_vector], tokens[has_vector], np.maximum(whole[has_vector], -1))

    def _ids(self, tokens: Iterable[str]) -> set[int]:
        ids = {token: self._document_tokenizer.token_to_id(token) for token in tokens}
        if unknown := [token for token, token_id in ids.items() if token_id is None]:
            raise ModelError(f"the model settings name tokens its tokenizer does not have: {unknown}")
        return {token_id for token_id in ids.values() if token_id is not None}


def _with_length(tokenizer: Tokenizer, length: int) -> Tokenizer:
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_padding()
    copy.enable_truncation(length)
    return copy


def _encode(tokenizer: Tokenizer, text: str) -> npt.NDArray[np.int64]:
    return np.array(tokenizer.encode(text).ids, dtype=np.int64)
