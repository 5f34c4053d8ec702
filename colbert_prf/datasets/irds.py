"""Reach the datasets of `ir_datasets <https://ir-datasets.com>`_ by name; it is imported only here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from colbert_prf.datasets.records import Record, jsonable
from colbert_prf.errors import DatasetError

__all__ = ["irds_entries", "irds_records", "is_irds"]

_PREFIX = "irds:"
_TEXT_FIELDS = ("text", "body")  # not repeated in the metadata

Part: TypeAlias = Literal["docs", "queries", "qrels", "scoreddocs"]


def is_irds(name: str) -> bool:
    """Tell whether a source is the name of an ir_datasets dataset.

    Examples
    --------
    >>> is_irds("irds:vaswani"), is_irds("vaswani.tsv")
    (True, False)
    """
    return name.startswith(_PREFIX)


def irds_entries(name: str, part: Part) -> Iterator[Any]:
    """Iterate over one part of a dataset, downloading it if ir_datasets has to.

    Parameters
    ----------
    name
        ``irds:`` and the name, as in ``irds:msmarco-passage/trec-dl-2019/judged``.
    part
        Which of its iterators.
    """
    try:
        library = importlib.import_module("ir_datasets")
    except ImportError:
        raise DatasetError("reading an irds: name needs ir_datasets: pip install ir_datasets", path=name) from None
    try:
        dataset = library.load(name.removeprefix(_PREFIX))
    except KeyError:
        raise DatasetError("ir_datasets knows no such dataset; see https://ir-datasets.com", path=name) from None
    if not getattr(dataset, f"has_{part}")():
        raise DatasetError(f"this dataset has no {part}; choose another of https://ir-datasets.com", path=name)
    try:
        yield from getattr(dataset, f"{part}_iter")()
    except (OSError, RuntimeError) as error:
        raise DatasetError(f"ir_datasets could not provide the {part}: {error}", path=name) from error


def irds_records(name: str, part: Literal["docs", "queries"]) -> Iterator[Record]:
    """Read documents or queries as records; the position, from 1, stands for the line.

    The text is the ``default_text()`` of ir_datasets, or where a version lacks it, all fields of text in their order.
    """
    id_key = "doc_id" if part == "docs" else "query_id"
    for number, entry in enumerate(irds_entries(name, part), start=1):
        fields = dict(entry._asdict())
        record_id = fields.pop(id_key)
        if hasattr(entry, "default_text"):
            text = entry.default_text()
        else:
            text = " ".join(value for value in fields.values() if isinstance(value, str))
        metadata = {key: jsonable(value) for key, value in fields.items() if key not in _TEXT_FIELDS}
        yield Record(number, record_id, text, metadata)
