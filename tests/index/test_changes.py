"""Adding, deleting and merging: what they change and what they leave alone."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colbert_prf import Index, InputError
from colbert_prf.errors import OutgrownCodecWarning
from colbert_prf.index import changes, segment_writer

pytestmark = pytest.mark.filterwarnings("ignore::colbert_prf.errors.OutgrownCodecWarning")

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 6)),
        st.tuples(st.just("upsert"), st.lists(st.integers(0, 99), min_size=1, max_size=4)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 99), min_size=1, max_size=4)),
        st.tuples(st.just("merge"), st.none()),
    ),
    max_size=6,
)


def build(path, documents, **options):
    return Index.create_from_vectors(path, documents, vocabulary_size=50, texts=True, progress=False, **options)


def apply(index, operation, value, living, make_documents, next_id):
    """Change the index and the list of living documents in the same way."""
    if operation == "add":
        new = make_documents(value, first=next_id)
        index.add_vectors(new)
        return living + new, next_id + value
    if operation == "upsert":
        names = {f"d{number % (next_id + 1)}" for number in value}
        new = [
            (name, *document[1:]) for name, document in zip(sorted(names), make_documents(4, first=500), strict=False)
        ]
        index.upsert_vectors(new)
        return [document for document in living if document[0] not in names] + new, next_id + 1
    if operation == "delete":
        gone = {living[number % len(living)][0] for number in value} if living else set()
        index.delete(sorted(gone))
        return [document for document in living if document[0] not in gone], next_id
    index.merge()
    return living, next_id


def counted(documents):
    """N_t, straight from the definition."""
    counts = np.zeros(50, dtype=np.int64)
    for _, encoded, *_ in documents:
        for token in set(encoded.token_ids.tolist()):
            counts[token] += 1
    return counts.tolist()


def assert_same_ranking(found, expected):
    """The stored bytes are equal; the last bit of a matrix product depends on how many rows are multiplied at once."""
    assert [doc_id for doc_id, _ in found] == [doc_id for doc_id, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(OPERATIONS, st.sampled_from([2, 16]), st.sampled_from([10, 1 << 22]))
def test_after_any_changes_the_index_is_a_fresh_build_with_the_same_codec(
    make_documents, contents, ranking_of, a_query, operations, bits, segment_vectors
):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (segment_writer, changes):
            patch.setattr(module, "SEGMENT_VECTORS", segment_vectors)
        living, next_id = make_documents(5), 5
        index = build(f"{folder}/changed", living, bits=bits)
        for operation, value in operations:
            living, next_id = apply(index, operation, value, living, make_documents, next_id)
            assert index.num_documents == len(living)
            assert index.document_frequency(np.arange(50)).tolist() == counted(living)
        assert index.num_vectors == sum(len(encoded) for _, encoded, *_ in living)
        before = ranking_of(index, a_query)
        index.merge()
        assert_same_ranking(ranking_of(index, a_query), before)
        assert index.verify().num_documents == len(living)
        if living:
            fresh = build(f"{folder}/fresh", living, bits=bits, codec=index.codec)
            assert contents(index) == contents(fresh)
            assert_same_ranking(ranking_of(index, a_query), ranking_of(fresh, a_query))
            assert index.document_frequency(np.arange(50)).tolist() == fresh.document_frequency(np.arange(50)).tolist()
            assert index.num_positions == fresh.num_documents


def test_adding_and_deleting_again_restores_the_ranking(index, make_documents, ranking_of, a_query):
    before = ranking_of(index, a_query)
    index.add_vectors(make_documents(5, first=10))
    assert len(ranking_of(index, a_query)) == 15
    index.delete([f"d{i}" for i in range(10, 15)])
    assert_same_ranking(ranking_of(index, a_query), before)


def test_a_deleted_document_scores_minus_infinity_and_keeps_its_position(index, a_query):
    index.delete(["d3"])
    scores = index.score(a_query)
    assert len(scores) == index.num_positions == 10
    assert np.flatnonzero(np.isinf(scores)).tolist() == [3]
    assert index.doc_id(4) == "d4"
    with pytest.raises(InputError, match="no document 'd3'"):
        index.positions(["d3"])


def test_a_deleted_id_can_be_added_again(index, make_document):
    index.delete(["d3"])
    index.add_vectors([("d3", make_document(77), "another text")])
    assert index.positions(["d3"]).tolist() == [10]
    assert index.text(10) == "another text"
    index.delete(["d3"])
    assert index.num_documents == 9
    index.merge()
    assert [index.doc_id(p) for p in range(9)] == [f"d{i}" for i in range(10) if i != 3]


@pytest.mark.parametrize("again", ["d3", "new"])
def test_an_id_that_is_there_is_refused_and_nothing_is_added(index, make_document, again):
    new = [("new", make_document(50), "text"), (again, make_document(51), "text")]
    expected = {"d3": "'d3' is in the index already; .*upsert.*delete it first", "new": "'new' was given twice"}[again]
    with pytest.raises(InputError, match=expected):
        index.add_vectors(new)
    assert (index.generation, index.num_documents) == (1, 10)
    assert Index.open(index.info().path).num_documents == 10


def test_deleting_is_all_or_nothing(index):
    with pytest.raises(InputError, match="no document 'absent'"):
        index.delete(["d1", "absent"])
    assert index.num_documents == 10
    index.delete(["d1", "d1"])
    assert index.num_documents == 9


def test_one_id_is_not_taken_for_its_letters(index, make_document):
    index.add_vectors([("d", make_document(50), "a"), ("1", make_document(51), "b")])
    index.delete("d1")
    assert index.positions(["d", "1"]).tolist() == [10, 11]


def test_changing_nothing_makes_no_generation(index):
    index.add_vectors([])
    index.delete([])
    index.merge()
    assert index.generation == 1


def test_everything_can_be_deleted_and_the_index_used_again(index, make_documents, a_query):
    index.delete([f"d{i}" for i in range(10)])
    assert index.num_documents == 0
    index.merge()
    assert index.num_positions == 0
    assert index.score(a_query).tolist() == []
    assert index.verify().num_vectors == 0
    index.add_vectors(make_documents(2))
    assert index.num_documents == 2


def test_a_full_segment_without_deletions_is_not_written_again(index, make_documents, monkeypatch):
    monkeypatch.setattr(changes, "SEGMENT_VECTORS", 20)
    index.add_vectors(make_documents(1, first=10))
    index.add_vectors(make_documents(1, first=11))
    first = index.segments[0].info.name
    index.merge()
    assert [segment.info.name for segment in index.segments] == [first, "segment-000004-0000"]


def test_old_files_are_removed(index, make_documents, tmp_path):
    index.add_vectors(make_documents(3, first=10))
    index.delete(["d1", "d11"])
    index.delete(["d2"])
    names = sorted(entry.name for entry in (tmp_path / "my.index").iterdir() if entry.is_dir())
    assert names == [
        "codec-000001",
        "deletions-000003",
        "deletions-000004",
        "segment-000001-0000",
        "segment-000002-0000",
    ]
    index.merge()
    names = sorted(entry.name for entry in (tmp_path / "my.index").iterdir() if entry.is_dir())
    assert names == ["codec-000001", "segment-000005-0000"]


def test_growing_far_past_the_codec_warns_and_retraining_helps(index, make_documents):
    assert index.codec.trained_for == index.num_vectors
    with pytest.warns(OutgrownCodecWarning, match=r"trained for 59: .*merge\(retrain=True\)"):
        index.add_vectors(make_documents(60, first=10))
    few = index.codec.num_centroids
    index.merge(retrain=True)
    assert index.codec.num_centroids > few
    assert index.codec.trained_for == index.num_vectors
    assert index.num_documents == 70
    assert index.verify().num_documents == 70
    index.delete(["d5"])
    assert index.num_documents == 69


def test_growing_a_little_does_not_warn(index, make_documents, recwarn):
    index.add_vectors(make_documents(10, first=10))
    assert not recwarn.list


def test_retraining_loses_little_and_drops_deleted_documents(tmp_path, make_documents, ranking_of, a_query):
    index = build(tmp_path / "i", make_documents(40), bits=4)
    index.delete(["d7"])
    before = dict(ranking_of(index, a_query))
    index.merge(retrain=True, seed=3)
    after = dict(ranking_of(index, a_query))
    assert index.num_positions == 39
    assert after == pytest.approx(before, abs=0.6)


def test_retraining_from_texts_is_a_fresh_build(tmp_path, encoder, ranking_of):
    documents = [(f"d{i}", f"a short text about the number {i}", {"i": i}) for i in range(12)]
    index = Index.create(tmp_path / "i", documents[:3], encoder=encoder, progress=False)
    index.add(documents[3:])
    index.merge(retrain=True, reencode=True)
    fresh = Index.create(tmp_path / "f", documents, encoder=encoder, codec=index.codec, progress=False)
    query = encoder.encode_query("seven")
    assert_same_ranking(ranking_of(index, query), ranking_of(fresh, query))
    assert index.metadata(11) == {"i": 11}


def test_what_retraining_needs(tmp_path, index, make_documents, encoder):
    with pytest.raises(InputError, match="reencode=True needs retrain=True"):
        index.merge(reencode=True)
    with pytest.raises(InputError, match="no model"):
        index.merge(retrain=True, reencode=True)
    bare = Index.create(tmp_path / "bare", [("a", "b")], encoder=encoder, texts=False, progress=False)
    with pytest.raises(InputError, match="keeps no texts"):
        bare.merge(retrain=True, reencode=True)
