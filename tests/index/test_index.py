"""The class users see: texts in, everything back out."""

from __future__ import annotations

import errno
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, InputError, MemoryIndex, Searcher
from colbert_prf.errors import IndexFormatError, IndexMismatchError, StorageError
from colbert_prf.storage import store
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.verification import verify_snapshot

DOCUMENTS = [
    ("fish", "Goldfish grow all their life."),
    ("bank", "The bank raised its rates.", {"year": 2021, "tags": ["a", "ü"]}),
    ("empty", ""),
]


def nested(depth: int) -> dict:
    value: dict = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.fixture
def texts_index(tmp_path, encoder) -> Index:
    return Index.create(tmp_path / "my.index", DOCUMENTS, encoder=encoder, bits=16, progress=False)


def test_scores_are_those_of_the_memory_index(texts_index, encoder):
    memory = MemoryIndex.create([document[:2] for document in DOCUMENTS], encoder=encoder, progress=False)
    query = encoder.encode_query("do goldfish grow")
    assert texts_index.score(query) == pytest.approx(memory.score(query), abs=2e-3)


def test_texts_metadata_and_tokens_come_back(texts_index, encoder):
    assert [texts_index.text(p) for p in range(3)] == [document[1] for document in DOCUMENTS]
    assert [texts_index.metadata(p) for p in range(3)] == [{}, DOCUMENTS[1][2], {}]
    assert encoder.tokens(texts_index.token_ids(0))[2:5] == ["gold", "##fish", "grow"]
    assert texts_index.vocabulary_size == encoder.vocabulary_size
    assert texts_index.special_ids == encoder.special_ids


def test_the_model_is_found_again(texts_index, tmp_path, encoder):
    again = Index.open(tmp_path / "my.index")
    assert again.encoder.fingerprint == encoder.fingerprint
    again.add([("tank", "A tank holds forty litres.")])
    assert again.num_documents == 4


@pytest.fixture
def other_encoder(encoder, monkeypatch):
    class Other(type(encoder)):
        fingerprint = "0" * 32

    return Other(encoder.folder)


def test_another_model_is_refused_unless_forced(texts_index, tmp_path, other_encoder):
    with pytest.raises(IndexMismatchError, match=r"made with the model .* force=True"):
        Index.open(tmp_path / "my.index", encoder=other_encoder)
    assert Index.open(tmp_path / "my.index", encoder=other_encoder, force=True).encoder is other_encoder


def test_a_model_of_another_dim_is_refused_even_if_forced(index, encoder, tmp_path):
    with pytest.raises(IndexMismatchError, match=r"dim 8, the model .* has dim 96"):
        Index.open(tmp_path / "my.index", encoder=encoder, force=True)


def test_a_given_fingerprint_is_compared(tmp_path, make_document, encoder):
    documents = [("a", make_document(0, 3, dim=96))]
    Index.create_from_vectors(tmp_path / "i", documents, fingerprint="f" * 32, progress=False)
    with pytest.raises(IndexMismatchError, match="f" * 32):
        Index.open(tmp_path / "i", encoder=encoder)
    with pytest.raises(IndexMismatchError, match="f" * 32):
        _ = Index.open(tmp_path / "i").encoder


def test_an_index_of_vectors_has_no_model(index):
    assert index.encoder is None
    with pytest.raises(InputError, match="add_vectors"):
        index.add([("a", "text")])


def test_info_adds_up(index, tmp_path):
    info = index.info()
    on_disk = sum(file.stat().st_size for file in (tmp_path / "my.index").rglob("*") if file.is_file())
    assert sum(info.num_bytes.values()) == on_disk
    assert (info.num_documents, info.num_deleted, info.num_segments, info.bits, info.dim) == (10, 0, 1, 4, 8)
    index.delete(["d1"])
    assert (index.info().num_documents, index.info().num_deleted) == (9, 1)
    assert asdict(info)["model"] == {"fingerprint": None, "name": None, "source": None}


def test_verify_reports_what_it_checked(index):
    report = index.verify()
    assert (report.num_documents, report.num_vectors, report.generation) == (10, index.num_vectors, 1)
    assert report.num_bytes == sum(index.info().num_bytes.values())


def test_document_frequency_of_unknown_tokens_is_zero(index):
    assert index.document_frequency([-1, 50, 10**9]).tolist() == [0, 0, 0]
    assert index.document_frequency(np.array([[0, 1]])).shape == (1, 2)


def test_no_pickle_and_no_object_anywhere(index, tmp_path):
    for file in (tmp_path / "my.index").rglob("*.npy"):
        np.load(file, allow_pickle=False)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=5),
            st.text(max_size=40),
            st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5) | st.none(), max_size=2),
        ),
        min_size=1,
        max_size=40,
        unique_by=lambda document: document[0],
    )
)
def test_any_strings_survive(tmp_path_factory, make_document, documents):
    path = tmp_path_factory.mktemp("strings") / "i"
    encoded = [(doc_id, make_document(i, 2), text, meta) for i, (doc_id, text, meta) in enumerate(documents)]
    index = Index.create_from_vectors(path, encoded, vocabulary_size=50, texts=True, progress=False)
    found = [(index.doc_id(p), index.text(p), index.metadata(p)) for p in range(index.num_documents)]
    assert found == documents
    assert index.positions([doc_id for doc_id, *_ in documents]).tolist() == list(range(len(documents)))
    index.verify()


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "at least one document"),
        ([("a", "x"), ("a", "y")], "'a' was given twice"),
        ([(1, "x")], "a document id must be a string, found 1"),
        ([("a", None)], "the text of document 'a' must be a string, found NoneType"),
        (["ab"], r"a document is \(doc_id, text\) or"),
        ([("a", "x", {}, 1)], r"a document is \(doc_id, text\) or"),
        ([("a", "x", [1])], "the metadata of document 'a' must be a mapping, found list"),
        ([("a", "x", {"y": {1, 2}})], "the metadata of document 'a' cannot be written as JSON"),
        ([("a", "x", {"y": float("nan")})], "the metadata of document 'a' cannot be written as JSON"),
        (
            [("a", "x", {"y": nested(3000)})],
            "the metadata of document 'a' is nested too deep to be written as JSON; make",
        ),
    ],
)
def test_bad_documents_are_refused(tmp_path, encoder, documents, message):
    with pytest.raises(InputError, match=message):
        Index.create(tmp_path / "i", documents, encoder=encoder, progress=False)
    with pytest.raises(IndexFormatError):
        Index.open(tmp_path / "i")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 3}, "bits must be one of"),
        ({"vocabulary_size": 10}, "a vocabulary of 10; give vocabulary_size"),
        ({"texts": True}, "has no text and the index keeps texts"),
    ],
)
def test_bad_settings_are_refused(tmp_path, make_document, options, message):
    with pytest.raises(InputError, match=message):
        Index.create_from_vectors(tmp_path / "i", [("a", make_document(1, 8))], progress=False, **options)


@pytest.mark.parametrize("more", [0, 1])
def test_a_first_document_without_a_dim_is_refused(tmp_path, make_documents, more):
    nothing = EncodedDocument(np.empty(0, np.int32), np.empty((0, 0), np.float32))
    with pytest.raises(InputError, match="dim must be at least 1, found 0; the first document must have the shape"):
        Index.create_from_vectors(tmp_path / "i", [("a", nothing), *make_documents(more)], progress=False)
    assert not (tmp_path / "i").exists()


def test_vectors_of_another_dim_are_refused(index, make_document):
    with pytest.raises(InputError, match="document 'x' has vectors of dim 5, the index of dim 8"):
        index.add_vectors([("x", make_document(0, 2, dim=5), "text")])
    with pytest.raises(InputError, match="document 'x' must be an EncodedDocument, found str"):
        index.add_vectors([("x", "text")])


def test_documents_without_vectors_are_kept_and_never_found(tmp_path, make_document, a_query):
    documents = [("none", make_document(0, 0)), ("some", make_document(1, 3)), ("nothing", make_document(2, 0))]
    index = Index.create_from_vectors(tmp_path / "i", documents, progress=False)
    assert np.isinf(index.score(a_query)).tolist() == [True, False, True]
    index.delete(["none"])
    index.merge()
    assert index.num_documents == 2
    index.verify()
    only = Index.create_from_vectors(tmp_path / "only", documents[:1], progress=False)
    assert (only.num_documents, only.num_vectors) == (1, 0)
    only.verify()


def test_layout_names_every_file(index, tmp_path):
    layout = IndexLayout(tmp_path / "my.index")
    assert layout.foreign() == []
    (tmp_path / "my.index" / "segment-1").mkdir()
    assert layout.foreign() == ["segment-1"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux lists them")
def test_small_segments_keep_no_file_open(index, make_documents, tmp_path):
    for number in range(20):
        index.add_vectors(make_documents(1, first=100 + number))
    before = len(list(Path("/proc/self/fd").iterdir()))
    opened = [Index.open(tmp_path / "my.index") for _ in range(5)]
    assert len(opened[0].segments) == 21
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_metadata_may_follow_the_vectors_without_a_text(tmp_path, make_document):
    given = [("a", make_document(1), {"year": 1}), ("b", make_document(2), None, {"year": 2}), ("c", make_document(3))]
    index = Index.create_from_vectors(tmp_path / "my.index", given, progress=False)
    assert [index.metadata(position) for position in range(3)] == [{"year": 1}, {"year": 2}, {}]
    with pytest.raises(InputError, match="the text of document 'd' must be a string, found int"):
        index.add_vectors([("d", make_document(4), 5)])


def test_settings_may_be_numpys_numbers(tmp_path, make_documents):
    given = make_documents(3)
    size, special = np.int64(50), np.array([1, 0])
    index = Index.create_from_vectors(
        tmp_path / "my.index", given, bits=np.int64(4), vocabulary_size=size, special_ids=special, progress=False
    )
    assert (index.bits, index.vocabulary_size, index.special_ids) == (4, 50, {0, 1})


def test_a_seed_below_zero_and_a_file_in_the_way_are_refused(tmp_path, make_documents):
    with pytest.raises(InputError, match="seed must be at least 0, found -1"):
        Index.create_from_vectors(tmp_path / "my.index", make_documents(3), seed=-1, progress=False)
    assert not (tmp_path / "my.index").exists()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "my.index"):
        with pytest.raises(StorageError, match=r"cannot be made a folder \(.*\); name another"):
            Index.create_from_vectors(path, make_documents(3), progress=False)


def test_a_generation_that_was_replaced_while_it_was_verified_is_not_called_damaged(index, tmp_path, monkeypatch):
    index.delete(["d1"])
    real, calls = verify_snapshot, []

    def merged_meanwhile(snapshot, check):
        if not calls:
            Index.open(tmp_path / "my.index").merge()
        calls.append(snapshot.manifest.generation)
        return real(snapshot, check)

    monkeypatch.setattr(store, "verify_snapshot", merged_meanwhile)
    assert index.verify().num_documents == 9
    assert calls == [2, 3]


def test_a_relative_path_is_missed_after_the_current_folder_changed(index, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    opened = Index.open("my.index")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"my\.index: there is no such folder"):
        opened.delete(["d1"])
    assert list(Path().iterdir()) == []


def test_a_write_to_a_folder_that_is_gone_makes_no_new_one(index, tmp_path):
    shutil.rmtree(tmp_path / "my.index")
    with pytest.raises(StorageError, match=r"my\.index: there is no such folder"):
        index.delete(["d1"])
    assert not (tmp_path / "my.index").exists()


def test_a_full_disk_is_told_and_leaves_the_index_as_it_was(index, tmp_path, monkeypatch, contents):
    before = contents(index)

    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_arrays", full)
        with pytest.raises(StorageError, match="delete: No space left on device; what was there before is whole"):
            index.delete(["d1"])
    assert contents(Index.open(tmp_path / "my.index")) == before
    index.delete(["d1"])


def test_deleted_documents_are_not_asked_whether_they_may_be_found(index, a_query):
    index.delete([f"d{number}" for number in range(10) if number % 3])
    found = Searcher(index).search(a_query, where=lambda metadata: metadata["number"] > 0)
    assert sorted(found.doc_ids) == ["d3", "d6", "d9"]


def test_a_query_of_another_dim_is_not_explained(index):
    query = EncodedQuery(np.zeros(1, np.int32), np.eye(1, 4, dtype=np.float32))
    with pytest.raises(InputError, match="the query has vectors of dim 4, the index of dim 8"):
        Searcher(index).explain(query, "d1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 2.5}, "k must be a whole number, found 2.5"),
        ({"query": None}, "a query is a text or an EncodedQuery, found NoneType"),
        (
            {"k": 10**30},
            "k must be at most 2,147,483,647, found 1000000000000000000000000000000; the number of documents",
        ),
        ({"rescore": 10**30}, "rescore must be at most 2,147,483,647"),
        ({"probes": 2**63}, "probes must be at most 2,147,483,647"),
        ({"threads": 2**31}, "threads must be at most 2,147,483,647"),
        ({"feedback": 3}, r"feedback must be a feedback method such as ColbertPRF\(\), or its name, found 3"),
        ({"feedback": ColbertPRF}, "feedback must be a feedback method"),
        ({"relevant": None}, r"relevant must be a sequence of document ids, such as \['d1'\], found None"),
        ({"non_relevant": None}, "non_relevant must be a sequence of document ids"),
        ({"relevant": "d1", "feedback": ColbertPRF()}, "relevant must be a sequence of document ids"),
        ({"relevant": [3]}, "relevant must hold document ids, which are strings, found 3"),
        ({"relevant": [[]]}, "relevant must hold document ids"),
        ({"allowed": 3}, "allowed must be a sequence of document ids"),
    ],
)
def test_what_is_no_search_is_refused(index, a_query, options, message):
    with pytest.raises(InputError, match=message):
        Searcher(index).search(**{"query": a_query, **options})
