"""Filters of metadata hold in every system; what each finds is worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from colbert_prf import EncodedDocument, Index, InputError
from colbert_prf.baselines import BM25, RM3, Fusion, LexicalIndex, RocchioFeedback, SingleVector, VectorIndex
from colbert_prf.baselines.lexical import Analyzer
from colbert_prf.storage.json_form import write_json
from tests.baselines.single_vector.test_single_vector import NumberEncoder

PLAIN = Analyzer(stop_words="none", stemmer="none")
DOCUMENTS = [
    ("x", "fish fish tank", {"year": 1999, "source": "pond"}),
    ("y", "fish bank", {"year": 2020}),
    ("z", "bank rates rates fell"),
    ("w", "fish fish fish pond", {"year": 2021, "source": "pond"}),
]
NUMBERS = [
    ("x", "1 0", {"year": 1999}),
    ("y", "0.8 0.6", {"year": 2020}),
    ("z", "0 1"),
    ("w", "-1 0", {"year": 2021}),
]
RECENT = {"year": {">=": 2020}}


@pytest.fixture
def lexical(tmp_path):
    return LexicalIndex.create(tmp_path / "my.lexical", DOCUMENTS, analyzer=PLAIN, progress=False)


@pytest.fixture
def single(tmp_path):
    return VectorIndex.create(tmp_path / "v", NUMBERS, encoder=NumberEncoder(), progress=False)


def vector_index(path):
    unit = EncodedDocument(np.array([1], np.int32), np.array([[1, 0]], np.float32))
    documents = [(name, unit, text, *metadata) for name, text, *metadata in DOCUMENTS]
    return Index.create_from_vectors(path, documents, texts=True, bits=16, progress=False)


def test_bm25_finds_what_the_filter_allows_with_the_scores_of_all_documents(lexical):
    system = BM25(lexical)
    scores = {hit.doc_id: hit.score for hit in system.search("fish")}
    assert set(scores) == {"x", "y", "w"}
    found = system.search("fish", where=RECENT)
    assert {hit.doc_id: hit.score for hit in found} == {name: scores[name] for name in ("w", "y")}
    assert [hit.metadata for hit in system.search("tank")] == [{"year": 1999, "source": "pond"}]
    assert system.search("fish", where={"source": {"exists": False}}).doc_ids == ["y"]
    assert system.search("fish", where=lambda metadata: metadata.get("year") == 1999).doc_ids == ["x"]


def test_a_system_has_a_filter_that_a_search_may_replace(lexical, single):
    for system, query in (
        (BM25(lexical, where=RECENT), "fish"),
        (SingleVector(single, NumberEncoder(), where=RECENT), "1 0"),
    ):
        assert set(system.search(query).doc_ids) == {"w", "y"}
        assert system.search(query, where={"year": 1999}).doc_ids == ["x"]
        assert "x" in system.search(query, where={}).doc_ids
        assert [ranking.doc_ids for ranking in system.search_many([query] * 2, 5, where={"year": 1999})] == [["x"]] * 2
        assert set(Fusion([system]).search(query).doc_ids) == {"w", "y"}


def test_term_feedback_learns_from_what_the_filter_allows(lexical):
    system = BM25(lexical, idf="lucene", feedback=RM3(feedback_docs=1, feedback_terms=3))
    assert system.search("fish").term_expansion.feedback == ("w",)
    filtered = system.search("fish", where={"year": {"<": 2021}})
    assert filtered.term_expansion.feedback == ("x",)
    assert set(filtered.doc_ids) <= {"x", "y"}
    explained = BM25(lexical, idf="lucene", feedback=system.feedback, where={"year": {"<": 2021}}).explain("fish", "x")
    assert explained.score == pytest.approx(filtered[0].score)


@pytest.mark.parametrize("exact", [True, False])
def test_single_vectors_by_hand(single, exact):
    system = SingleVector(single, NumberEncoder(), exact=exact)
    found = system.search("1 0.5", where=RECENT)
    assert [(hit.doc_id, round(hit.score, 5)) for hit in found] == [("y", 1.1), ("w", -1.0)]
    assert found[0].metadata == {"year": 2020}
    assert system.search("1 0.5", where={"year": {"<": 1900}}).doc_ids == []
    feedback = SingleVector(single, NumberEncoder(), exact=exact, feedback=RocchioFeedback(feedback_docs=1))
    assert feedback.search("1 0", where={"year": {"!=": 1999}}).doc_ids == ["y", "z", "w"]


def test_few_and_many_selected_vectors_are_found_alike(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((90, 2)).astype(np.float32)
    documents = [(str(n), f"{a} {b}", {"n": n}) for n, (a, b) in enumerate(vectors.tolist())]
    index = VectorIndex.create(tmp_path / "v", documents[:50], encoder=NumberEncoder(), progress=False)
    index.add(documents[50:])
    system, similarities = SingleVector(index, NumberEncoder()), vectors @ np.array([1, 0.5], np.float32)
    for end in (3, 11, 12, 60, 90):
        expected = [str(n) for n in np.argsort(-similarities[:end], kind="stable")[:20]]
        assert system.search("1 0.5", 20, where={"n": {"<": end}}).doc_ids == expected


def test_metadata_stays_through_all_changes(lexical, single):
    for index in (lexical, single):
        index.upsert([("y", "0 1", {"year": 2022}), ("n", "1 1")])
        index.delete(["x"])
        index.merge()
        index.verify()
        again = type(index).open(index.path)
        assert [again.metadata(name) for name in ("y", "n", "z", "w")][:3] == [{"year": 2022}, {}, {}]
        assert again.metadata("w")["year"] == 2021
        assert again.metadata(0) == again.metadata(again.doc_id(0))
        with pytest.raises(InputError, match="the index has no document 'x'"):
            again.metadata("x")


def test_a_lexical_index_follows_the_metadata_of_its_vectors(tmp_path):
    index = vector_index(tmp_path / "my.index")
    assert BM25(LexicalIndex.of(index, analyzer=PLAIN)).search("fish", where={"year": 2020}).doc_ids == ["y"]
    unit = EncodedDocument(np.array([1], np.int32), np.array([[1, 0]], np.float32))
    index.upsert_vectors([("y", unit, "fish bank", {"year": 1950})])  # the same text
    followed = LexicalIndex.of(index, analyzer=PLAIN)
    assert followed.metadata("y") == {"year": 1950}
    assert BM25(followed).search("fish", where={"year": {"<": 1999}}).doc_ids == ["y"]


def test_a_folder_of_version_1_gets_the_metadata_on_first_use(tmp_path):
    index = vector_index(tmp_path / "my.index")
    without = [(name, text) for name, text, *_ in DOCUMENTS]
    folder = index.path / "lexical"
    old = LexicalIndex.create(folder, without, analyzer=PLAIN, texts=False, progress=False)
    manifest = replace(old.snapshot.manifest, follows=index.generation)
    write_json(folder / "manifest.json", manifest, kind=manifest.KIND, version=1)
    assert old.metadata("x") == {}
    followed = LexicalIndex.of(index, analyzer=PLAIN)
    assert BM25(followed).search("fish", where={"year": 1999}).doc_ids == ["x"]


def test_an_unknown_field_names_those_there_are(lexical, single):
    for system in (BM25(lexical), SingleVector(single, NumberEncoder())):
        with pytest.raises(InputError, match=r"where: the index has no field 'yeer'; there are .*'year'"):
            system.search("1 0", where={"yeer": 3})
        with pytest.raises(InputError, match="where must be a filter"):
            system.search("1 0", where=["year"])


def test_damaged_metadata_is_found(single):
    path = next(single.path.glob("segment-*/metadata_blocks.npy"))
    content = bytearray(path.read_bytes())
    content[-3] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(Exception, match="metadata_blocks"):
        VectorIndex.open(single.path).verify()
