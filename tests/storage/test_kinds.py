"""What holds for every kind of index: after any changes it is a fresh one, and a reader sees the old or the new."""

from __future__ import annotations

import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_kinds import DIM, KINDS, Counts, contents

from colbert_prf import Index, InputError
from colbert_prf.baselines import BM25, LexicalIndex, SingleVector
from colbert_prf.baselines.single_vector import VectorIndex
from colbert_prf.errors import IndexFormatError, IndexMismatchError, StorageError
from colbert_prf.index import Verification
from colbert_prf.storage.json_form import _text

pytestmark = pytest.mark.filterwarnings("ignore::colbert_prf.errors.OutgrownCodecWarning")

START = [("a", "1 2 2"), ("b", "3"), ("c", "4 4 1")]
TEXTS = st.lists(st.integers(0, DIM - 1).map(str), min_size=1, max_size=4).map(" ".join)
SOME = st.dictionaries(st.sampled_from("abcdefgh"), TEXTS, min_size=1, max_size=4)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["add", "upsert", "upsert", "delete", "merge"]), SOME), min_size=1, max_size=6
)
QUERY = "1 2 4 4"


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    """Most of the time of these tests; that files are synced is tested in tests/index/test_durable.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def index(kind, tmp_path):
    return kind.create(tmp_path / "my.index", START)


def change(kind, index, living: dict[str, str], operation: str, some: dict[str, str]) -> dict[str, str]:
    """Change an index and the documents it should have, in the order of their positions, in the same way."""
    rest = {name: text for name, text in living.items() if name not in some}
    if operation == "merge":
        index.merge()
        return living
    if operation == "delete":
        index.delete([name for name in some if name in living])
        return rest
    if operation == "upsert":
        kind.upsert(index, list(some.items()))
        return {**rest, **some}
    new = {name: text for name, text in some.items() if name not in living}
    kind.add(index, list(new.items()))
    return {**living, **new}


def searches(index) -> list[list[tuple[str, float]]]:
    """What each way to search finds."""
    if isinstance(index, LexicalIndex):
        systems = [BM25(index)]
    elif isinstance(index, VectorIndex):
        systems = [SingleVector(index, Counts(), exact=exact) for exact in (True, False)]
    else:
        return []  # compared with a fresh build by tests/index/test_changes.py
    return [[(hit.doc_id, round(hit.score, 4)) for hit in system.search(QUERY)] for system in systems]


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=15, deadline=None)
@given(operations=OPERATIONS)
def test_after_any_changes_it_is_a_fresh_index(name, operations):
    kind = KINDS[name]
    with TemporaryDirectory() as folder:
        index = kind.create(f"{folder}/changed", START)
        living = dict(START)
        for operation, some in operations:
            before, generation = living, index.generation
            living = change(kind, index, living, operation, some)
            assert operation == "merge" or (index.generation > generation) == (
                living != before or operation == "upsert"
            )
            assert index.num_documents == len(living)
        expected = [(name, text, kind.expected(text)) for name, text in living.items()]
        assert contents(kind, index) == expected
        assert contents(kind, kind.open(index.path)) == expected
        assert index.verify().num_documents == len(living)
        found = searches(index)
        index.merge()
        assert contents(kind, index) == expected
        assert index.num_positions == len(living)
        assert searches(index) == found
        if living:
            fresh = kind.create(f"{folder}/fresh", list(living.items()))
            assert contents(kind, fresh) == expected
            assert searches(fresh) == found


def test_upsert_is_one_generation_whose_positions_follow_the_others(kind, index):
    kind.upsert(index, [("d", "5"), ("b", "6 6")])
    assert (index.generation, index.num_documents, index.num_positions) == (2, 4, 5)
    assert [name for name, _, _ in contents(kind, index)] == ["a", "c", "d", "b"]
    assert index.snapshot.text(index.snapshot.find("b")) == "6 6"
    kind.upsert(index, [])
    assert index.generation == 2


def test_verify_says_the_same_of_each(kind, index):
    index.delete(["a"])
    verified = index.verify()
    assert type(verified) is Verification
    num_files = sum(1 for path in index.path.rglob("*.*") if path.suffix in (".npy", ".json"))
    num_bytes = sum(path.stat().st_size for path in index.path.rglob("*.*") if path.suffix in (".npy", ".json"))
    expected = (2, 4) if isinstance(index, Index) else (2, 2)  # "3" and "4 4 1": a vector for each number
    assert verified == Verification(2, num_files, num_bytes, *expected)


def test_what_is_there_is_not_added_and_named(kind, index):
    with pytest.raises(InputError, match="the document 'b' is in the index already; to replace it use upsert"):
        kind.add(index, [("new", "1"), ("b", "2")])
    for put in (kind.add, kind.upsert):
        with pytest.raises(InputError, match="the document id 'new' was given twice; ids must differ"):
            put(index, [("new", "1"), ("new", "2")])
    assert contents(kind, kind.open(index.path)) == [(name, text, kind.expected(text)) for name, text in START]
    assert index.generation == 1


def test_a_stream_that_fails_changes_nothing(kind, index):
    def broken():
        yield from kind.documents([("a", "7"), ("new", "7")])
        raise OSError("the corpus ends here")

    with pytest.raises(OSError, match="ends here"):
        kind.upsert_documents(index, broken())
    assert contents(kind, kind.open(index.path)) == [(name, text, kind.expected(text)) for name, text in START]
    kind.upsert(index, [("a", "7")])  # what was left is no obstacle
    assert sorted(entry.name for entry in index.path.glob("segment-*")) == [
        "segment-000001-0000",
        "segment-000002-0000",
    ]


def test_a_reader_of_an_upserting_writer_always_has_every_document(kind, index):
    stop = threading.Event()

    def read() -> list[int]:
        """The version of "a" each time the index is opened."""
        seen = []
        while not stop.is_set():
            snapshot = kind.open(index.path).snapshot
            live = [snapshot.doc_id(position) for position in np.flatnonzero(snapshot.live).tolist()]
            assert sorted(live) == ["a", "b", "c"]
            texts = {snapshot.text(int(position)) for position in snapshot.positions(["a", "c"])}
            assert len(texts) == 1, "both are replaced at once"
            seen.append(int(texts.pop()))
        return seen

    kind.upsert(index, [("a", "0"), ("c", "0")])
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for version in range(1, 13):
                kind.upsert(index, [("a", str(version)), ("c", str(version))])
                if version % 4 == 0:
                    index.merge()
        finally:
            stop.set()
        seen = reading.result()
    assert seen == sorted(seen)
    assert index.snapshot.text(index.snapshot.find("a")) == "12"


def test_everything_can_be_deleted_and_the_index_used_again(kind, index):
    index.delete(["a", "b", "c"])
    index.merge()
    assert (index.num_positions, index.verify().num_documents) == (0, 0)
    assert all(found == [] for found in searches(index))
    kind.add(index, START)
    assert contents(kind, index) == [(name, text, kind.expected(text)) for name, text in START]


@pytest.mark.parametrize("other", KINDS)
def test_a_folder_of_another_kind_is_named(kind, index, other):
    if KINDS[other] is not kind:
        with pytest.raises(IndexFormatError, match=r"manifest\.json: not a colbert-prf .*: it is a 'colbert-prf "):
            KINDS[other].open(index.path)
    with pytest.raises(StorageError, match="there is an index in the folder already; add to it or upsert"):
        KINDS[other].create(index.path, START)


class TestSingleVectors:
    @pytest.fixture
    def kind(self):
        return KINDS["single"]

    def test_an_index_opened_without_its_encoder_is_searched_and_not_added_to(self, index):
        reader = VectorIndex.open(index.path)
        assert reader.nearest(Counts().encode_query("3"), 1)[1].tolist() == [1.0]
        with pytest.raises(InputError, match=r"opened without its encoder 'counts'; give it to VectorIndex\.open"):
            reader.upsert([("a", "1")])
        reader.delete(["a"])
        assert reader.num_documents == 2

    def test_the_encoder_must_be_that_of_the_index(self, index):
        class Other(Counts):
            name = "other"

        with pytest.raises(IndexMismatchError, match="the vectors were made with 'counts', not with 'other'"):
            VectorIndex.open(index.path, encoder=Other())

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (np.ones((2, 3), np.float32), "vectors of dim 3, the index has dim 8"),
            (np.ones((1, 8)), "made 1 vectors of 2"),
        ],
    )
    def test_vectors_that_do_not_fit_are_refused(self, index, rows, message):
        class Wrong(Counts):
            def encode_documents(self, texts, *, progress=None):
                list(texts)
                yield rows

        with pytest.raises(InputError, match=message):
            VectorIndex.open(index.path, encoder=Wrong()).add([("d", "1"), ("e", "2")])
        assert VectorIndex.open(index.path).verify().num_documents == 3

    def test_the_graph_is_of_the_segments_and_knows_what_is_deleted(self, index):
        def graphs():
            return sorted(path.parent.name for path in index.path.glob("derived-*/*"))

        first = searches(index)
        (kept,) = graphs()
        index.delete(["a"])
        assert [hits for hits in searches(index)[1] if hits[0] == "a"] == []
        assert graphs() == [kept]
        index.upsert([("a", "1 2 2")])
        assert graphs() == []
        assert [dict(found) for found in searches(index)] == [dict(found) for found in first]

    def test_a_folder_of_the_version_before_is_read_and_then_converted(self, index):
        file = index.path / "manifest.json"
        content = json.loads(file.read_text())["content"]
        (segment,) = content["segments"]
        old = {"model": "counts", "num_documents": 3, "dim": DIM, "files": segment["files"]}
        file.write_text(_text({"kind": "colbert-prf index of single vectors", "version": 1, "content": old}))
        opened = VectorIndex.open(index.path, encoder=Counts())
        assert opened.verify().num_documents == 3
        assert searches(opened) == searches(index)
        opened.add([("d", "1 1 1")])
        assert json.loads(file.read_text())["version"] == 2
        assert VectorIndex.open(index.path).num_documents == 4
        old["files"] = {}
        file.write_text(_text({"kind": "colbert-prf index of single vectors", "version": 1, "content": old}))
        with pytest.raises(IndexFormatError, match=r"vectors\.npy: the manifest does not know this file"):
            VectorIndex.open(index.path)


def test_deletions_of_a_lexical_index_made_before_are_read(tmp_path):
    index = KINDS["lexical"].create(tmp_path / "my.index", START)
    index.delete(["b"])
    folder = tmp_path / "my.index" / "deletions-000002"
    shutil.move(folder / "segment-000001-0000.deleted.npy", folder / "segment-000001-0000.npy")
    opened = LexicalIndex.open(index.path)
    assert [name for name, _, _ in contents(KINDS["lexical"], opened)] == ["a", "c"]
    assert opened.verify() == index.verify()
    opened.delete(["a"])
    assert opened.verify().num_documents == 1
