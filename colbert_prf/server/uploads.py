"""Documents that a request brings: JSON lines, written to a temporary file as they arrive, then read again."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from colbert_prf.datasets.corpus import read_corpus_with_metadata
from colbert_prf.errors import DatasetError, InputError
from colbert_prf.server.errors import ApiError

__all__ = ["Upload", "receive"]


class Upload:
    """Documents in a temporary file, which :meth:`close` removes.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_documents = 0

    def documents(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Ids, texts and metadata, in their order."""
        for (doc_id, text), metadata in read_corpus_with_metadata(self.path, format="jsonl"):
            yield doc_id, text, metadata

    def check(self) -> None:
        """Read everything once, before it is accepted.

        Raises
        ------
        ApiError
            400 with the number of the first bad line.
        """
        with self.path.open("rb") as file:
            beginning = file.read(4096).lstrip()
        if not beginning.startswith(b"{"):
            raise ApiError(
                400, "malformed_lines", "the body does not begin with a JSON object", "send one JSON object a line"
            )
        self.num_documents = 0
        try:
            for doc_id, _, metadata in self.documents():
                _refuse_unwritable(doc_id, metadata)
                self.num_documents += 1
        except DatasetError as error:
            message, _, hint = _without_name(error).partition("; ")
            raise ApiError(400, "malformed_lines", message, hint or "send one JSON object a line") from None

    def close(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


async def receive(chunks: AsyncIterator[bytes]) -> Upload:
    """Write a body to a temporary file as it arrives; memory holds one chunk."""
    descriptor, name = tempfile.mkstemp(prefix="colbert-prf-", suffix=".jsonl")
    upload = Upload(Path(name))
    try:
        with os.fdopen(descriptor, "wb") as file:
            async for chunk in chunks:
                file.write(chunk)
    except BaseException:
        upload.close()
        raise
    return upload


def _refuse_unwritable(doc_id: str, metadata: dict[str, Any]) -> None:
    """Refuse NaN, infinities and halves of surrogate pairs, which JSON cannot hold."""
    try:
        json.dumps(metadata, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise InputError(f"the metadata of {doc_id!r} cannot be written as JSON: {error}; repair it") from None


def _without_name(error: DatasetError) -> str:
    """The message without the name of the temporary file, which says nothing to the sender, and without flags."""
    message = str(error).removeprefix(str(error.path)).lstrip(",: ")
    return re.split("; (?:keep such documents|say what yours)", message)[0]
