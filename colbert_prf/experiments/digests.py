"""Short names for files and models that change with every byte of them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import BinaryIO

from colbert_prf.encoder.folder import EMBEDDED, ModelFolder

__all__ = ["digest_of_encoder", "digest_of_model", "file_digest"]


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
