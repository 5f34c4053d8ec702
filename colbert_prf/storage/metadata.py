"""The metadata of documents, for every kind of index: JSON to read back, columns to filter by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colbert_prf.errors import InputError
from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.blobs import BlobWriter, blob_specs
from colbert_prf.storage.fields import Fields, field_specs

__all__ = ["MetadataWriter", "metadata_json", "metadata_specs"]


def metadata_json(doc_id: str, metadata: Mapping[str, Any] | None) -> bytes:
    """Write the metadata of a document as JSON; empty if it has none.

    Raises
    ------
    InputError
        It names the document whose metadata JSON cannot hold.

    Examples
    --------
    >>> metadata_json("d1", {"year": 2020}), metadata_json("d2", None)
    (b'{"year": 2020}', b'')
    """
    if not metadata:
        return b""
    try:
        # ASCII escapes lone surrogates, so that every string reads back as it was.
        return json.dumps(dict(metadata), allow_nan=False).encode("ascii")
    except RecursionError as error:
        problem = "is nested too deep to be written as JSON; make it flatter"
        raise InputError(f"the metadata of document {doc_id!r} {problem}") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"the metadata of document {doc_id!r} cannot be written as JSON: {error}") from error


def metadata_specs(files: Mapping[str, ArrayInfo], num_documents: int) -> dict[str, ArraySpec]:
    """Specify the arrays of the metadata of a segment, as far as the files exist."""
    specs = blob_specs("metadata", num_documents) if "metadata_blocks" in files else {}
    return specs | (field_specs() if "field_names" in files else {})


class MetadataWriter:
    """Writes the metadata of the documents of a segment; nothing if none has any.

    Parameters
    ----------
    folder
        The folder of the segment.
    columns
        Whether to write the columns that filters read.
    """

    def __init__(self, folder: Path, *, columns: bool = True) -> None:
        self._folder = folder
        self._columns = columns
        self._blobs: BlobWriter | None = None
        self._kept: list[bytes] = []
        self._num_documents = 0

    def append(self, blob: bytes) -> None:
        """Add the metadata of the next document, as :func:`metadata_json` gives it."""
        if self._blobs is None and blob:
            self._blobs = BlobWriter(self._folder, "metadata")
            for _ in range(self._num_documents):
                self._blobs.append(b"")
        if self._blobs is not None:
            self._blobs.append(blob)
        if self._columns:
            self._kept.append(blob)
        self._num_documents += 1

    def finish(self) -> dict[str, ArrayInfo]:
        """Write what is left, and describe the files."""
        if self._blobs is None:
            return {}
        files = self._blobs.finish()
        if self._columns:
            files |= Fields.of(json.loads(blob) if blob else {} for blob in self._kept).write(self._folder)
        return files

    def close(self) -> None:
        """Close the files without finishing them."""
        if self._blobs is not None:
            self._blobs.close()
