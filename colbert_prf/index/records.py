"""From what the caller gives to records with vectors: checked shapes, texts encoded on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index.passages import Passages, passage_id, split_text
from colbert_prf.types import EncodedDocument

__all__ = [
    "Documents",
    "EncodedDocuments",
    "Record",
    "encode_records",
    "passage_records",
    "text_records",
    "vector_records",
]

Documents: TypeAlias = Iterable[tuple[str, str] | tuple[str, str, Mapping[str, Any]]]
EncodedDocuments: TypeAlias = Iterable[
    tuple[str, EncodedDocument]
    | tuple[str, EncodedDocument, str | None]
    | tuple[str, EncodedDocument, Mapping[str, Any]]
    | tuple[str, EncodedDocument, str | None, Mapping[str, Any] | None]
]


class Record(NamedTuple):
    """A document and what is kept beside its vectors; without these, its text is yet to be encoded."""

    doc_id: str
    document: EncodedDocument | None
    text: str | None
    metadata: Mapping[str, Any] | None

    @property
    def encoded(self) -> EncodedDocument:
        """The vectors, once there are any."""
        assert self.document is not None, "without an encoder every record has vectors"
        return self.document


def text_records(documents: Documents) -> Iterator[Record]:
    """Take (id, text) or (id, text, metadata)."""
    for given in documents:
        doc_id, text, metadata = _unpack(given, 2, 3, "(doc_id, text) or (doc_id, text, metadata)")
        if not isinstance(text, str):
            raise InputError(f"the text of document {doc_id!r} must be a string, found {type(text).__name__}")
        yield Record(doc_id, None, text, metadata)


def vector_records(documents: EncodedDocuments) -> Iterator[Record]:
    """Take (id, encoded document), then perhaps a text, then perhaps metadata."""
    for given in documents:
        parts = _unpack(given, 2, 4, "(doc_id, EncodedDocument), perhaps with a text, perhaps with metadata")
        if isinstance(parts[2], Mapping) and parts[3] is None:
            parts = (*parts[:2], None, parts[2])
        record = Record(*parts)
        if not isinstance(record.encoded, EncodedDocument):
            raise InputError(
                f"document {record.doc_id!r} must be an EncodedDocument, found {type(record.encoded).__name__}"
            )
        if not isinstance(record.text, str | None):
            raise InputError(
                f"the text of document {record.doc_id!r} must be a string, found {type(record.text).__name__}"
            )
        yield record


def passage_records(records: Iterable[Record], passages: Passages | None, encoder: Encoder) -> Iterator[Record]:
    """Split texts into passages, each with the metadata of its document; as they are without a way to split them."""
    if passages is None:
        yield from records
        return
    fitted, tokenization = passages.fitted(encoder.tokenization), encoder.tokenization
    assert fitted.length is not None
    content = fitted.length - len(tokenization.document("").input_ids)
    for record in records:
        text = record.text or ""
        parts = split_text(text, tokenization.offsets(text), content, min(fitted.stride_of(fitted.length), content))
        for number, part in enumerate(parts):
            yield Record(passage_id(record.doc_id, number), None, part, record.metadata)


def encode_records(records: Iterable[Record], encoder: Encoder | None) -> Iterator[Record]:
    """Give each record its vectors; no more records wait than the encoder reads ahead."""
    if encoder is None:
        yield from records
        return
    waiting: deque[Record] = deque()

    def texts() -> Iterator[str]:
        for record in records:
            waiting.append(record)
            yield record.text or ""

    for encoded in encoder.encode_documents(texts()):
        yield waiting.popleft()._replace(document=encoded)


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
