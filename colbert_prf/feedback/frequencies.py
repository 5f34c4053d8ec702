"""How common each token is in a collection, apart from any index: what σ needs where there are only texts."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.npyio import NpzFile

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError, StorageError
from colbert_prf.index import Index
from colbert_prf.index.collection import Collection
from colbert_prf.progress import progress_bar
from colbert_prf.storage.durable import write_atomically

__all__ = ["TokenFrequencies"]

FORMAT = 1
_ARRAYS = {"format", "num_documents", "document_frequencies", "collection_frequencies"}
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""What zipfile and NumPy raise on a damaged archive."""


@dataclass(frozen=True, eq=False)
class TokenFrequencies:
    """N, and N_t of every token t of a model's vocabulary.

    Parameters
    ----------
    num_documents
        N.
    document_frequencies
        N_t, in how many documents each token is, of shape (vocabulary_size,) or less: what is missing counts as 0.
    collection_frequencies
        How often each token occurs, of the same shape. Only ``weighting="ictf"`` needs it.

    Examples
    --------
    >>> frequencies = TokenFrequencies.count(["Goldfish grow.", "Bank rates grow, and grow."], progress=False)
    >>> frequencies.num_documents, int(frequencies.collection_frequencies.max())
    (2, 3)
    """

    num_documents: int
    document_frequencies: npt.NDArray[np.int64]
    collection_frequencies: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_documents", _whole_number(self.num_documents))
        documents = _counts("document_frequencies", self.document_frequencies)
        object.__setattr__(self, "document_frequencies", documents)
        if documents.max(initial=0) > self.num_documents:
            raise InputError(
                f"document_frequencies must be at most num_documents, found {documents.max()} of {self.num_documents}"
            )
        if self.collection_frequencies is None:
            return
        occurrences = _counts("collection_frequencies", self.collection_frequencies)
        object.__setattr__(self, "collection_frequencies", occurrences)
        if occurrences.shape != documents.shape or (occurrences < documents).any():
            raise InputError(
                "collection_frequencies must have the length of document_frequencies and be nowhere smaller: a token "
                "occurs at least once in each of its documents"
            )

    @classmethod
    def of(cls, index: Index | Collection) -> TokenFrequencies:
        """Copy the frequencies of an index."""
        collection = index.snapshot
        return cls(collection.num_documents, collection.document_frequencies, collection.collection_frequencies)

    @classmethod
    def count(cls, texts: Iterable[str], *, encoder: Encoder | None = None, progress: bool = True) -> TokenFrequencies:
        """Count the tokens of texts, which are cut and filtered as an index would; nothing is encoded.

        Parameters
        ----------
        texts
            Read one at a time: the whole is never held.
        encoder
            Whose tokenizer to use; the embedded model's if left out.
        progress
            Whether a bar may be shown on a terminal.

        Raises
        ------
        TextError
            If something is not a string.
        InputError
            If there are no texts.
        """
        tokenization = (encoder or Encoder.load()).tokenization
        documents = np.zeros(tokenization.vocabulary_size, dtype=np.int64)
        occurrences = np.zeros_like(documents)
        num_documents = 0
        with progress_bar("Counting tokens", shown=progress) as advance:
            for text in texts:
                tokenized = tokenization.document(text)
                token_ids, counts = np.unique(tokenized.input_ids[tokenized.has_vector], return_counts=True)
                documents[token_ids] += 1
                occurrences[token_ids] += counts
                num_documents += 1
                advance(1)
        return cls(num_documents, documents, occurrences)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.npz`` file, some 50 kB for 30,000 tokens, replacing one that is there.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        occurrences = self.collection_frequencies
        content = io.BytesIO()
        np.savez_compressed(
            content,
            format=FORMAT,
            num_documents=self.num_documents,
            document_frequencies=self.document_frequencies,
            # Never left out, so that an archive that lost a file is not taken for one that never had it.
            collection_frequencies=np.zeros(0, dtype=np.int64) if occurrences is None else occurrences,
        )
        try:
            write_atomically(Path(path), content.getvalue())
        except OSError as error:
            raise StorageError(f"token frequencies cannot be written ({error.strerror})", path=path) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TokenFrequencies:
        """Read a file written by :meth:`save`, checking its checksums; nothing in it is ever executed.

        Raises
        ------
        StorageError
            If it is missing, damaged, of another kind or of another format version.
        """
        arrays = _read(path)
        if set(arrays) != _ARRAYS:
            raise StorageError(
                f"not a file of token frequencies, found arrays {sorted(arrays)}; write one with TokenFrequencies.save",
                path=path,
            )
        if arrays["format"].tolist() != FORMAT:
            raise StorageError(
                f"token frequencies of format {arrays['format']}, this version reads {FORMAT}; count them again",
                path=path,
            )
        occurrences = arrays["collection_frequencies"] if arrays["collection_frequencies"].size else None
        try:
            return cls(arrays["num_documents"].item(), arrays["document_frequencies"], occurrences)
        except (InputError, ValueError) as error:
            raise StorageError(f"wrong token frequencies: {error}; count them again", path=path) from error


def _read(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an archive, whose checksums zipfile compares."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StorageError(f"token frequencies cannot be read ({error.strerror})", path=path) from error
    try:
        with NpzFile(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: np.asarray(array) for name, array in arrays.items()}
    except _UNREADABLE as error:
        raise StorageError(f"damaged, or not a .npz file ({error}); count the tokens again", path=path) from error


def _whole_number(value: Any) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return int(value)
    raise InputError(f"num_documents must be a whole number of at least 1, found {value!r}")


def _counts(name: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """A frozen copy of frequencies."""
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min(initial=0) < 0:
        raise InputError(
            f"{name} must be whole numbers, not negative, of shape (vocabulary_size,), found {found.dtype} of shape "
            f"{found.shape}" + (f", least {found.min()}" if found.dtype.kind in "iu" and found.size else "")
        )
    copy = found.astype(np.int64)
    copy.flags.writeable = False
    return copy
