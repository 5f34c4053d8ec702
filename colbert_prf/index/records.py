"""From what the caller gives to records: checked shapes, no id twice, texts encoded on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index.batch import Record
from colbert_prf.index.passages import Passages, passage_id, split_text
from colbert_prf.types import EncodedDocument

__all__ = [
    "Documents",
    "EncodedDocuments",
    "Item",
    "encode_items",
    "passage_items",
    "refuse_known",
    "text_items",
    "vector_items",
]

Documents: TypeAlias = Iterable[tuple[str, str] | tuple[str, str, Mapping[str, Any]]]
EncodedDocuments: TypeAlias = Iterable[
    tuple[str, EncodedDocument]
    | tuple[str, EncodedDocument, str | None]
    | tuple[str, EncodedDocument, Mapping[str, Any]]
    | tuple[str, EncodedDocument, str | None, Mapping[str, Any] | None]
]


class Item(NamedTuple):
    """A document as the caller gave it: its vectors, or only the text to make them of."""

    doc_id: str
    encoded: EncodedDocument | None
    text: str | None
    metadata: Mapping[str, Any] | None


def text_items(documents: Documents) -> Iterator[Item]:
    """Take (id, text) or (id, text, metadata)."""
    for given in documents:
        doc_id, text, metadata = _unpack(given, 2, 3, "(doc_id, text) or (doc_id, text, metadata)")
        if not isinstance(text, str):
            raise InputError(f"the text of document {doc_id!r} must be a string, found {type(text).__name__}")
        yield Item(doc_id, None, text, metadata)


def vector_items(documents: EncodedDocuments) -> Iterator[Item]:
    """Take (id, encoded document), then perhaps a text, then perhaps metadata."""
    for given in documents:
        parts = _unpack(given, 2, 4, "(doc_id, EncodedDocument), perhaps with a text, perhaps with metadata")
        if isinstance(parts[2], Mapping) and parts[3] is None:
            parts = (*parts[:2], None, parts[2])
        item = Item(*parts)
        if not isinstance(item.encoded, EncodedDocument):
            raise InputError(
                f"document {item.doc_id!r} must be an EncodedDocument, found {type(item.encoded).__name__}"
            )
        if not isinstance(item.text, str | None):
            raise InputError(f"the text of document {item.doc_id!r} must be a string, found {type(item.text).__name__}")
        yield item


def passage_items(items: Iterable[Item], passages: Passages | None, encoder: Encoder) -> Iterator[Item]:
    """Split texts into passages, each with the metadata of its document; as they are without a way to split them."""
    if passages is None:
        yield from items
        return
    fitted, tokenization = passages.fitted(encoder.tokenization), encoder.tokenization
    assert fitted.length is not None
    content = fitted.length - len(tokenization.document("").input_ids)
    for item in items:
        text = item.text or ""
        parts = split_text(text, tokenization.offsets(text), content, min(fitted.stride_of(fitted.length), content))
        for number, part in enumerate(parts):
            yield Item(passage_id(item.doc_id, number), None, part, item.metadata)


def refuse_known(items: Iterable[Item], is_new: Callable[[str], bool]) -> Iterator[Item]:
    """Pass items on, and refuse an id that is not new."""
    for item in items:
        if not is_new(item.doc_id):
            raise InputError(
                f"the document id {item.doc_id!r} was given twice or is in the index already; ids must differ: to "
                "replace a document, delete it first"
            )
        yield item


def encode_items(items: Iterable[Item], encoder: Encoder | None) -> Iterator[Record]:
    """Give each item its vectors; no more items wait than the encoder reads ahead."""
    if encoder is None:
        for item in items:
            assert item.encoded is not None, "without an encoder every item has vectors"
            yield Record(item.doc_id, item.encoded, item.text, item.metadata)
        return
    waiting: deque[Item] = deque()

    def texts() -> Iterator[str]:
        for item in items:
            waiting.append(item)
            yield item.text or ""

    for encoded in encoder.encode_documents(texts()):
        item = waiting.popleft()
        yield Record(item.doc_id, encoded, item.text, item.metadata)


def _unpack(given: Any, shortest: int, longest: int, expected: str) -> tuple[Any, ...]:
    """Fill up with None, after the checks that make a clear message."""
    if not isinstance(given, tuple | list) or not shortest <= len(given) <= longest:
        raise InputError(f"a document is {expected}, found {given!r:.80}")
    parts = (*given, *(None for _ in range(longest - len(given))))
    if not isinstance(parts[0], str):
        raise InputError(f"a document id must be a string, found {parts[0]!r}; convert it with str()")
    if parts[-1] is not None and not isinstance(parts[-1], Mapping):
        raise InputError(f"the metadata of document {parts[0]!r} must be a mapping, found {type(parts[-1]).__name__}")
    return parts
