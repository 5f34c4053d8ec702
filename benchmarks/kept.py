"""Collections that are encoded once by the embedded model and kept: CACHE/NAME.16.index, and compressed ones beside it.

Their vectors are those of the encoder as float16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from latency import report
from vectors import Texts

from colbert_prf import EncodedDocument, Index
from colbert_prf.datasets import read_corpus
from colbert_prf.demo import demo_passages

Passages = Sequence[tuple[str, str]]


def passages_of(data: Path, name: str) -> Passages:
    """Ids and texts of a collection: the demo corpus, or a folder of ``data``."""
    if name == "demo":
        return demo_passages()
    return [(doc_id, text) for doc_id, text in read_corpus(data / name / "collection.tsv.gz")]


def opened(cache: Path, data: Path, name: str, bits: int) -> Index:
    """An index of a collection, made where it is not there yet."""
    path = cache / f"{name}.{bits}.index"
    if path.exists():
        return Index.open(path)
    report(f"making {path} ...")
    if bits == 16:
        return Index.create(path, passages_of(data, name), bits=bits, progress=False)
    whole = opened(cache, data, name, 16)
    size, total = whole.vocabulary_size, whole.num_documents
    return Index.create_from_vectors(path, encoded(whole), bits=bits, vocabulary_size=size, progress=False, total=total)


def encoded(index: Index) -> Iterator[tuple[str, EncodedDocument]]:
    """The documents of an index."""
    for position in range(index.num_positions):
        yield index.doc_id(position), EncodedDocument(index.token_ids(position), index.vectors(position))


def texts_of(index: Index) -> Texts:
    """The documents of an index of 16 bits."""
    return Texts.join((doc_id, item.token_ids, item.vectors) for doc_id, item in encoded(index))
