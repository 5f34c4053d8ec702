"""Encoded documents and queries, and the folder that keeps them: encoded once, then the same for every system.

::

    CACHE/
      cache.json                       the model that made the vectors; written last
      documents.vectors.npy            and .token_ids, .offsets, .names: the passages, one after the other
      dl19.*  dl20.*                   the queries of each year
      results/                         what search.py measured, see there

Needs NumPy alone, so that other engines can read it in an environment of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

YEARS = ("dl19", "dl20")
PARTS = ("vectors", "token_ids", "offsets", "names")


@dataclass(frozen=True, eq=False)
class Texts:
    """Encoded texts, one after the other: text ``i`` owns the rows ``offsets[i]:offsets[i + 1]``."""

    vectors: NDArray[np.float32]
    token_ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    names: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.int32], NDArray[np.float32]]]:
        for name, start, end in zip(self.names.tolist(), self.offsets, self.offsets[1:], strict=False):
            yield name, self.token_ids[start:end], self.vectors[start:end]

    def first(self, count: int) -> Texts:
        """The first texts."""
        end = self.offsets[min(count, len(self))]
        return Texts(self.vectors[:end], self.token_ids[:end], self.offsets[: count + 1], self.names[:count])

    def save(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            np.save(folder / f"{name}.{part}.npy", getattr(self, part))

    @classmethod
    def load(cls, folder: Path, name: str) -> Texts:
        """Read into memory: no system shall wait for the disk."""
        return cls(*(np.load(folder / f"{name}.{part}.npy") for part in PARTS))

    @classmethod
    def join(cls, parts: Iterable[tuple[str, NDArray[np.int32], NDArray[np.float32]]]) -> Texts:
        """From a name, token ids and vectors of each text."""
        names, token_ids, vectors = zip(*parts, strict=True)
        offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in token_ids])])
        return cls(np.concatenate(vectors), np.concatenate(token_ids), offsets, np.array(names))


def joined(parts: Sequence[Texts]) -> Texts:
    """Several as one."""
    return Texts.join(text for part in parts for text in part)


def filled_up(queries: Texts, num_vectors: int, *, seed: int = 0, noise: float = 0.5) -> Texts:
    """Fill queries up with noisy unit copies of their own vectors, taken in turn; longer queries stay as they are.

    ColBERT's own queries have 32 vectors, of which most, those of [MASK], lie near those of the words. The noise is a
    Gaussian vector of that mean length.
    """
    random = np.random.default_rng(seed)
    filled = []
    for name, token_ids, vectors in queries:
        taken = np.arange(max(0, num_vectors - len(vectors))) % len(vectors)
        gaussian = random.standard_normal((len(taken), vectors.shape[1]), dtype=np.float32)
        copies = vectors[taken] + np.float32(noise / np.sqrt(vectors.shape[1])) * gaussian
        copies /= np.linalg.norm(copies, axis=1, keepdims=True)
        filled.append((name, np.concatenate([token_ids, token_ids[taken]]), np.concatenate([vectors, copies])))
    return Texts.join(filled)


def open_cache(cache: Path, fingerprint: str, encode: Callable[[str], Texts]) -> tuple[Texts, dict[str, Texts]]:
    """Read the passages and the queries of each year, encoding first what is not there.

    Parameters
    ----------
    cache
        The folder.
    fingerprint
        Of the model; a cache made with another is refused.
    encode
        Encodes "documents", "dl19" or "dl20".
    """
    description = cache / "cache.json"
    if description.exists():
        found = json.loads(description.read_text(encoding="utf-8"))["fingerprint"]
        if found != fingerprint:
            sys.exit(f"{cache}: made with the model {found}, not {fingerprint}; remove it or give another --cache")
    else:
        for name in (*YEARS, "documents"):
            print(f"encoding {name} into {cache} ...", file=sys.stderr, flush=True)
            encode(name).save(cache, name)
        write_json(description, {"fingerprint": fingerprint})
    return Texts.load(cache, "documents"), {year: Texts.load(cache, year) for year in YEARS}


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def folder_bytes(folder: Path) -> int:
    """The size of all files under a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
