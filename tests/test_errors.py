"""Errors cross processes as they were raised: `copy` takes them apart and puts them together as `pickle` does."""

from __future__ import annotations

from copy import copy

import pytest

from colbert_prf import errors

RAISED = [
    errors.ColbertPrfError("plain"),
    errors.InputError("a value"),
    errors.DatasetError("2 columns", path="corpus.tsv", line=3),
    errors.TextError("a text"),
    errors.ModelError("a model"),
    errors.ProjectionError("a projection"),
    errors.StorageError("a folder", path="my.index"),
    errors.IndexFormatError("a file", path="my.index/manifest.json"),
    errors.IndexLockedError("another writer", path="my.index"),
    errors.IndexMismatchError("another model", path="my.index"),
    errors.ServiceError("there is none", status=404, code="unknown_index"),
    errors.ClusterError("no cluster"),
    errors.ShardError("no answer", shards=[2]),
    errors.MissingExtraError("Working on a Ray cluster", extra="ray"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_on_the_other_side(error):
    again = copy(error)
    assert (type(again), str(again), again.args, vars(again)) == (type(error), str(error), error.args, vars(error))


def test_every_error_is_tested():
    kinds = {getattr(errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert {kind for kind in kinds if issubclass(kind, errors.ColbertPrfError)} == {type(error) for error in RAISED}
