"""Documents on their way into an index: checked tuples of the caller, split into passages, then encoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index.passages import Passages, passage_id, split_text
from colbert_prf.types import EncodedDocument

__all__ = [
    "Document",
    "EncodedDocuments",
    "TextDocuments",
    "documents_of_texts",
    "documents_of_vectors",
    "encode_documents",
    "split_documents",
]

TextDocuments: TypeAlias = Iterable[tuple[str, str] | tuple[str, str, Mapping[str, Any]]]
EncodedDocuments: TypeAlias = Iterable[
    tuple[str, EncodedDocument]
    | tuple[str, EncodedDocument, str | None]
    | tuple[str, EncodedDocument, Mapping[str, Any]]
    | tuple[str, EncodedDocument, str | None, Mapping[str, Any] | None]
]


class Document(NamedTuple):
    """A document for an index: its vectors, once its text is encoded, and what is kept beside them."""

    doc_id: str
    encoding: EncodedDocument | None
    text: str | None
    metadata: Mapping[str, Any] | None

    @property
    def encoded(self) -> EncodedDocument:
        """The vectors of a document that has been encoded."""
        assert self.encoding is not None, "the encoder has not seen the document yet"
        return self.encoding


def documents_of_texts(tuples: TextDocuments) -> Iterator[Document]:
    """Check tuples (doc_id, text) or (doc_id, text, metadata), and yield a document for each."""
    for given in _iterable(tuples, "tuples (doc_id, text)"):
        doc_id, text, metadata = _unpack(given, 2, 3, "(doc_id, text) or (doc_id, text, metadata)")
        if not isinstance(text, str):
            raise InputError(f"the text of document {doc_id!r} must be a string, found {type(text).__name__}")
        yield Document(doc_id, None, text, metadata)


def documents_of_vectors(tuples: EncodedDocuments) -> Iterator[Document]:
    """Check tuples (doc_id, EncodedDocument), perhaps with a text or metadata, and yield a document for each."""
    for given in _iterable(tuples, "tuples (doc_id, EncodedDocument)"):
        parts = _unpack(given, 2, 4, "(doc_id, EncodedDocument), perhaps with a text, perhaps with metadata")
        if isinstance(parts[2], Mapping) and parts[3] is None:
            parts = (*parts[:2], None, parts[2])
        document = Document(*parts)
        if not isinstance(document.encoding, EncodedDocument):
            raise InputError(
                f"document {document.doc_id!r} must be an EncodedDocument, found {type(document.encoding).__name__}"
            )
        if not isinstance(document.text, str | None):
            raise InputError(
                f"the text of document {document.doc_id!r} must be a string, found {type(document.text).__name__}"
            )
        yield document


def split_documents(documents: Iterable[Document], passages: Passages | None, encoder: Encoder) -> Iterator[Document]:
    """Split documents into passages, each with the metadata of its document; without ``passages`` change nothing."""
    if passages is None:
        yield from documents
        return
    fitted, tokenization = passages.fitted(encoder.tokenization), encoder.tokenization
    assert fitted.length is not None
    length = fitted.length - len(tokenization.document("").input_ids)  # without the markers
    stride = min(fitted.stride_of(fitted.length), length)
    for document in documents:
        text = document.text or ""
        for number, passage in enumerate(split_text(text, tokenization.offsets(text), length, stride)):
            yield Document(passage_id(document.doc_id, number), None, passage, document.metadata)


def encode_documents(documents: Iterable[Document], encoder: Encoder | None) -> Iterator[Document]:
    """Encode the text of each document; without an encoder the documents have vectors already.

    Only the documents that the encoder reads ahead are in memory.
    """
    if encoder is None:
        yield from documents
        return
    pending: deque[Document] = deque()

    def texts() -> Iterator[str]:
        for document in documents:
            pending.append(document)
            yield document.text or ""

    for encoding in encoder.encode_documents(texts()):
        yield pending.popleft()._replace(encoding=encoding)


def _iterable(documents: Any, expected: str) -> Iterable[Any]:
    if not isinstance(documents, Iterable):
        raise InputError(f"documents must be an iterable of {expected}, found {documents!r:.80}")
    return documents


def _unpack(given: Any, shortest: int, longest: int, expected: str) -> tuple[Any, ...]:
    """Check the parts that all tuples have, and fill the tuple up with None to the longest form."""
    if not isinstance(given, tuple | list) or not shortest <= len(given) <= longest:
        raise InputError(f"a document is {expected}, found {given!r:.80}")
    parts = (*given, *(None for _ in range(longest - len(given))))
    if not isinstance(parts[0], str):
        raise InputError(f"a document id must be a string, found {parts[0]!r}; convert it with str()")
    if parts[-1] is not None and not isinstance(parts[-1], Mapping):
        raise InputError(f"the metadata of document {parts[0]!r} must be a mapping, found {type(parts[-1]).__name__}")
    return parts
