"""Slices: what is written is read, and the name says what is in it."""

from __future__ import annotations

import json

import pytest
import zstandard

from colbert_prf.distributed.slices import read_slice, write_slices
from colbert_prf.errors import IndexFormatError, InputError
from colbert_prf.index.documents import Document
from colbert_prf.storage.layout import IndexLayout

DOCUMENTS = [
    Document("a", None, "plain", None),
    Document("\ud800", None, "a lone \udfff surrogate,\na line", {"n": 1, "list": ["é"]}),
    Document("", None, "", {}),
]


@pytest.fixture
def layout(tmp_path) -> IndexLayout:
    (tmp_path / "building").mkdir()
    return IndexLayout(tmp_path)


def test_documents_come_back_as_they_were(layout):
    slices = list(write_slices(layout, DOCUMENTS, 2))
    assert [(part.number, part.num_documents) for part in slices] == [(0, 2), (1, 1)]
    read = [document for part in slices for document in read_slice(layout, part.digest)]
    assert read == [*DOCUMENTS[:2], DOCUMENTS[2]._replace(metadata=None)]  # no metadata and empty metadata are one


def test_some_positions_of_a_slice_are_read_in_order(layout):
    (part,) = write_slices(layout, DOCUMENTS, 5)
    assert [document.doc_id for document in read_slice(layout, part.digest, [0, 2])] == ["a", ""]


def test_equal_documents_have_equal_names_and_others_have_not(layout):
    first, second, third = (
        next(write_slices(layout, [document], 1)).digest
        for document in (DOCUMENTS[0], DOCUMENTS[0], DOCUMENTS[0]._replace(text="other"))
    )
    assert first == second != third


def test_a_damaged_slice_is_named(layout):
    (part,) = write_slices(layout, DOCUMENTS, 5)
    path = layout.slice(part.digest)
    for content in (b"no zstd", zstandard.compress(json.dumps(["a", "other", None]).encode())):
        path.write_bytes(content)
        with pytest.raises(IndexFormatError, match=f"{path.name}: damaged"):
            list(read_slice(layout, part.digest))
    path.unlink()
    with pytest.raises(IndexFormatError, match=f"{path.name}: no such file"):
        list(read_slice(layout, part.digest))


def test_metadata_that_is_no_json_is_refused_with_its_document(layout):
    with pytest.raises(InputError, match="the metadata of document 'a' cannot be written as JSON"):
        list(write_slices(layout, [DOCUMENTS[0]._replace(metadata={"n": float("nan")})], 2))
