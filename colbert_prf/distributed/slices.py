"""Slices of a corpus: files of texts that workers encode, each of them into one segment.

One process reads the corpus, because only one can tell that an id was given twice. It writes slices into the shared
folder, so that a worker whose work is done again needs nothing but the folder, and the corpus is read once and may be
anything: a compressed file that only the driver sees, or standard input.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import zstandard

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.documents import Document
from colbert_prf.storage.durable import write_atomically
from colbert_prf.storage.files import open_file
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.metadata import metadata_json

__all__ = ["PASSAGES_PER_SEGMENT", "Slice", "read_slice", "write_slices"]

PASSAGES_PER_SEGMENT = 50_000
"""About as many as fill a segment that one machine builds."""


@dataclass(frozen=True)
class Slice:
    """A run of documents in a file.

    Parameters
    ----------
    number
        Slices count from 0, in the order of the corpus.
    num_documents
        The number of its documents.
    digest
        A hash of the documents, which names the file.
    """

    number: int
    num_documents: int
    digest: str


def write_slices(layout: IndexLayout, documents: Iterable[Document], size: int) -> Iterator[Slice]:
    """Write documents as slices of ``size`` documents, the last one shorter, and yield each when it is on the disk."""
    remaining = iter(documents)
    number = 0
    while content := b"\n".join(_line(document) for document in islice(remaining, size)):
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        path = layout.slice(digest)
        if not path.exists():  # otherwise an interrupted build has written it
            write_atomically(path, zstandard.ZstdCompressor(level=1).compress(content))
        yield Slice(number, content.count(b"\n") + 1, digest)
        number += 1


def read_slice(layout: IndexLayout, digest: str, positions: Sequence[int] | None = None) -> Iterator[Document]:
    """Read the documents of a slice, or those at some positions in it.

    Raises
    ------
    IndexFormatError
        It names the file if it is missing or damaged.
    """
    path = layout.slice(digest)
    with open_file(path, missing="another driver has finished this build, or it was removed; start again") as file:
        try:
            content = zstandard.ZstdDecompressor().decompress(file.read())
        except zstandard.ZstdError as error:
            raise _damaged(layout, digest) from error
    if hashlib.blake2b(content, digest_size=8).hexdigest() != digest:
        raise _damaged(layout, digest)
    lines = content.split(b"\n")
    for position in range(len(lines)) if positions is None else positions:
        doc_id, text, metadata = json.loads(lines[position])
        yield Document(doc_id, None, text, metadata)


def _line(document: Document) -> bytes:
    """Write a document as a line of JSON in ASCII, which has every string, lone surrogates too."""
    given = json.dumps([document.doc_id, document.text])
    return given[:-1].encode() + b", " + (metadata_json(document.doc_id, document.metadata) or b"null") + b"]"


def _damaged(layout: IndexLayout, digest: str) -> IndexFormatError:
    return IndexFormatError("damaged; remove it, and continue with --resume", path=layout.slice(digest))
