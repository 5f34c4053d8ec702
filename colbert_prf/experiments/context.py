"""What the systems of an experiment are built from, on one collection: documents, models, indexes made once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import BinaryIO

from colbert_prf.datasets import read_corpus
from colbert_prf.datasets.irds import is_irds
from colbert_prf.datasets.opening import open_binary
from colbert_prf.encoder import Encoder
from colbert_prf.encoder.folder import EMBEDDED, ModelFolder
from colbert_prf.errors import InputError, StorageError
from colbert_prf.experiments.registry import Entry
from colbert_prf.index import Index
from colbert_prf.index.codec import DEFAULT_BITS
from colbert_prf.search.retriever import Retriever
from colbert_prf.search.searcher import Preset, Searcher

__all__ = ["Context", "digest_of_encoder", "digest_of_model", "file_digest", "slug"]


@cache
def digest_of_encoder(model: str | None) -> str:
    """What the encoder of an experiment holds, the embedded one if none is named; a name on the hub stays as it is."""
    folder = ModelFolder(EMBEDDED if model is None else Path(model))
    if folder.is_complete:
        return folder.query_fingerprint()
    return digest_of_model(folder.path) if folder.path.exists() else str(model)


def digest_of_model(path: str | Path) -> str:
    """A short name for a file, or for the files of a folder, that changes with every byte of them."""
    path, digest = Path(path), hashlib.sha256()
    for file in [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file()):
        with file.open("rb") as stream:
            digest.update(f"{file.relative_to(path)}\n{file_digest(stream)}\n".encode())
    return digest.hexdigest()[:16]


def file_digest(stream: BinaryIO) -> str:
    """A short name for the content of an open file."""
    digest = hashlib.sha256()
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()[:16]


def slug(text: str) -> str:
    """A file name that tells what a text was.

    Examples
    --------
    >>> slug("ColBERT-PRF Ranker (β = 1)"), slug("vaswani/collection.tsv.gz")
    ('ColBERT-PRF-Ranker-β-1', 'vaswani-collection.tsv.gz')
    """
    return re.sub(r"[^\w.+]+", "-", text).strip("-.") or "unnamed"


class Context:
    """A collection and the systems over it; everything is built when it is first asked for, and kept.

    Parameters
    ----------
    corpus
        What :func:`~colbert_prf.datasets.read_corpus` reads.
    name
        Of the corpus, in the names of files.
    folder
        Where indexes are kept, and whatever else a system builds.
    entries
        The systems by their names.
    bits
        Of the index, for systems that do not say.
    model
        The encoder of the index, for systems that do not say; the embedded model if left out.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> corpus = Path(folder.name, "corpus.tsv")
    >>> _ = corpus.write_text("a\\tGoldfish grow all their life.\\nb\\tBank rates fell.\\n")
    >>> context = Context(str(corpus), "fish", Path(folder.name), {"E2E": Entry("E2E", "colbert", {"bits": 4})})
    >>> context.system("E2E").search("do fish grow").doc_ids
    ['a', 'b']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        corpus: str,
        name: str,
        folder: Path,
        entries: Mapping[str, Entry],
        *,
        bits: int = DEFAULT_BITS,
        model: str | None = None,
    ) -> None:
        self.corpus = corpus
        self.name = name
        self.folder = folder
        self.entries = entries
        self.bits = bits
        self.model = model
        self._systems: dict[str, Retriever] = {}
        self._indexes: dict[tuple[int, str | None], Index] = {}
        self._searchers: dict[tuple[int, str | None, Preset | None, bool], Searcher] = {}

    def documents(self) -> Iterator[tuple[str, str]]:
        """The documents, ids and texts, read again each time; one without text is kept."""
        return ((document.doc_id, document.text) for document in read_corpus(self.corpus, empty="keep"))

    @cached_property
    def texts(self) -> dict[str, str]:
        """The text of each document by its id, all in memory."""
        return dict(self.documents())

    @cached_property
    def doc_ids(self) -> frozenset[str]:
        """The ids of all documents."""
        return frozenset(doc_id for doc_id, _ in self.documents())

    @cached_property
    def corpus_digest(self) -> str:
        """A short name that changes with every byte of the corpus; the name of a dataset of ir_datasets stays."""
        if is_irds(self.corpus):
            return self.corpus
        with open_binary(self.corpus) as stream:
            return file_digest(stream)

    @cached_property
    def encoder(self) -> Encoder:
        """The model of the index, for systems that encode something themselves."""
        return Encoder.load(self.model)

    def path(self, name: str) -> Path:
        """Where a system may keep something it has built from this corpus."""
        return self.folder / f"{slug(self.name)}.{name}"

    def is_built(self, path: Path) -> bool:
        """Whether there is an index of the corpus as it is.

        Raises
        ------
        StorageError
            If it was built, or begun, of the corpus as it was before. One without a note was laid there by hand, and is
            trusted.
        """
        note = _note_beside(path)
        if path.exists() and note.is_file() and note.read_text(encoding="utf-8") != self.corpus_digest:
            message = f"was built of {self.corpus} as it was before; remove it, or choose another folder"
            raise StorageError(message, path=path)
        return (path / "manifest.json").is_file()

    def note_building(self, path: Path) -> None:
        """Write down, beside an index that is about to be built, of what."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _note_beside(path).write_text(self.corpus_digest, encoding="utf-8")

    def index(self, bits: int | None = None, model: str | None = None) -> Index:
        """The index of the documents, built once and found again later; an interrupted build is continued."""
        key = bits or self.bits, model or self.model
        if key not in self._indexes:
            self._indexes[key] = self._open_index(*key)
        return self._indexes[key]

    def searcher(
        self,
        bits: int | None = None,
        *,
        preset: Preset | None = None,
        model: str | None = None,
        query_weights: bool = True,
    ) -> Searcher:
        """A searcher over the index; one for all systems that ask for the same."""
        key = bits or self.bits, model or self.model, preset, query_weights
        if key not in self._searchers:
            self._searchers[key] = Searcher(self.index(bits, model), preset=preset, query_weights=query_weights)
        return self._searchers[key]

    def system(self, name: str) -> Retriever:
        """The system of an entry, built once."""
        if name not in self.entries:
            raise InputError(f"there is no system {name!r}; there are {', '.join(self.entries)}")
        if name not in self._systems:
            entry = self.entries[name]
            self._systems[name] = entry.known_kind.make(self, entry.parameters, self.system)
        return self._systems[name]

    def _open_index(self, bits: int, model: str | None) -> Index:
        encoder = Encoder.load(model)
        path = self.path(f"{slug(model)}.{bits}.index" if model else f"{bits}.index")
        if self.is_built(path):
            return Index.open(path, encoder=encoder)
        self.note_building(path)
        return Index.create(path, self.documents(), encoder=encoder, bits=bits, resume=True)


def _note_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.corpus")
