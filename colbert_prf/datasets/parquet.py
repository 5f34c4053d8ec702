"""Read the rows of a Parquet file, one record batch at a time; pyarrow is imported only here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import chain

from colbert_prf.datasets.opening import STANDARD_INPUT, open_binary
from colbert_prf.datasets.records import Keys, Record, jsonable, record_from_fields
from colbert_prf.errors import DatasetError

__all__ = ["parquet_records"]

_BATCH_ROWS = 1024


def parquet_records(name: str, keys: Keys) -> Iterator[Record]:
    """Read the rows of a Parquet file as records; the row number, from 1, stands for the line.

    Parameters
    ----------
    name
        A file; standard input cannot be read, because Parquet begins at its end.
    keys
        The names of the id and text columns; the other columns are metadata.
    """
    if name == STANDARD_INPUT:
        raise DatasetError("Parquet cannot be read from standard input; name a file", path=name)
    with open_binary(name) as stream:
        try:
            parquet = importlib.import_module("pyarrow.parquet")
            damage = importlib.import_module("pyarrow").ArrowException
        except ImportError:
            raise DatasetError("reading Parquet needs pyarrow: pip install pyarrow", path=name) from None
        try:
            batches = parquet.ParquetFile(stream).iter_batches(batch_size=_BATCH_ROWS)
            for number, row in enumerate(chain.from_iterable(batch.to_pylist() for batch in batches), start=1):
                yield record_from_fields({key: jsonable(value) for key, value in row.items()}, keys, name, number)
        except damage as error:
            reason = str(error).splitlines()[0]
            raise DatasetError(f"not a readable Parquet file ({reason}); fetch it again", path=name) from error
