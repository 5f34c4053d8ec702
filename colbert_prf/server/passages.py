"""Tokens of passages in their texts: what a page needs to shade words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.text import valid_document
from colbert_prf.feedback.given_texts import text_names
from colbert_prf.index import Index
from colbert_prf.types import TokenIds

__all__ = ["Passage", "Passages"]


class Passage(NamedTuple):
    """A document and where its vectors stand in its text: spans have -1 where a token is not in it."""

    text: str | None
    token_ids: TokenIds
    tokens: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]

    def span(self, position: int) -> dict[str, Any]:
        """Start and end of the token of a vector; both None if it is not in the text."""
        start, end = self.tokens[position].tolist()
        return {"start": None, "end": None} if start < 0 else {"start": start, "end": end}

    def word(self, position: int) -> str | None:
        """The word that the token of a vector is a part of."""
        start, end = self.words[position].tolist()
        return None if start < 0 or self.text is None else self.text[start:end]


class Passages:
    """The passages that one request looks at, each tokenized once.

    Parameters
    ----------
    index
        Where they are.
    encoder
        Its model.
    texts
        That feedback learned from, by the names an expansion gives them.
    """

    def __init__(self, index: Index, encoder: Encoder, texts: Sequence[str] = ()) -> None:
        self._index = index
        self._encoder = encoder
        self._known = {
            name: self._located(valid_document(text)) for name, text in zip(text_names(len(texts)), texts, strict=True)
        }

    def __getitem__(self, doc_id: str) -> Passage:
        if doc_id not in self._known:
            self._known[doc_id] = self._passage(doc_id)
        return self._known[doc_id]

    def _passage(self, doc_id: str) -> Passage:
        position = int(self._index.positions([doc_id])[0])
        token_ids, text = self._index.token_ids(position), self._index.text(position)
        nowhere = np.full((len(token_ids), 2), -1, dtype=np.int64)
        if text is None:
            return Passage(None, token_ids, nowhere, nowhere)
        passage = self._located(valid_document(text))
        if not np.array_equal(passage.token_ids, token_ids):  # vectors of another tokenizer, or of another text
            return Passage(passage.text, token_ids, nowhere, nowhere)
        return passage

    def _located(self, text: str) -> Passage:
        spans = self._encoder.tokenization.spans(text)
        return Passage(text, spans.token_ids.astype(np.int32), spans.tokens, spans.words)
