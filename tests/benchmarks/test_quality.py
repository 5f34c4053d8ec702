from __future__ import annotations

import math

import numpy as np
import pytest
from quality import exact_rankings, judged_quality, read_judgements, recall, rows
from systems import build, encoded_queries
from vectors import Texts


def test_recall_by_hand():
    exact = rows([np.array([1, 2, 3, 4]), np.array([5, 6])], 4)
    found = rows([np.array([2, 9, 1, 8]), np.array([6])], 4)
    assert recall(found, exact, 4) == pytest.approx((2 / 4 + 1 / 2) / 2)
    assert recall(found, exact, 1) == 0
    assert recall(exact, exact, 4) == 1


def test_exact_rankings_are_those_of_the_definition(tmp_path, random_texts):
    documents, queries = random_texts([5, 3, 8, 1, 4]), random_texts([2, 3], seed=1)
    scores = [[(query @ vectors.T).max(axis=1).sum() for _, _, vectors in documents] for _, _, query in queries]
    found = exact_rankings(documents, queries, tmp_path / "exact.npy")
    assert found.shape == (2, 1000)
    assert found[:, :5].tolist() == np.argsort(-np.array(scores), axis=1).tolist()
    assert (found[:, 5:] == -1).all()
    assert np.array_equal(exact_rankings(documents, queries, tmp_path / "exact.npy"), found)


@pytest.mark.parametrize("name", ["ours-4", "ours-16", "paper", "brute-force"])
def test_a_system_finds_documents_by_their_places(tmp_path, name, random_texts):
    documents = random_texts([5, 3, 8, 1, 4])
    system = build(name, documents, tmp_path / "index")
    for place, query in enumerate(encoded_queries(documents)):
        assert system.places(system.search(query, 2, 1))[0] == place
    assert system.num_bytes > 0


def test_judged_quality_by_hand(random_texts):
    documents, queries = random_texts([1] * 4), random_texts([1, 1], seed=1)
    queries = Texts(queries.vectors, queries.token_ids, queries.offsets, np.array(["q1", "q2"]))
    judgements = {"dl19": {"q1": {"t0": 3, "t1": 1, "t2": 2}}, "dl20": {"q2": {"t3": 2}}}
    found = judged_quality(rows([np.array([1, 0, 3, 2]), np.array([3])], 4), documents, queries, judgements)
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    assert found["dl19"]["ndcg@10"] == pytest.approx((1 + 3 / math.log2(3) + 2 / math.log2(5)) / ideal)
    assert found["dl19"]["map"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert found["dl20"] == {"ndcg@10": 1, "map": 1, "topics": 1}
    assert found["all"]["map"] == pytest.approx((0.5 + 1) / 2)
    assert found["all"]["topics"] == 2


def test_judgements_of_other_passages_are_left_out(data, random_texts):
    texts = random_texts([1] * 2)
    documents = Texts(texts.vectors, texts.token_ids, texts.offsets, np.array(["p0", "p1"]))
    assert read_judgements(data, documents) == {"dl19": {"q1": {"p1": 3, "p0": 1}}, "dl20": {}}
    documents = Texts(texts.vectors, texts.token_ids, texts.offsets, np.array(["p0", "p45"]))
    assert read_judgements(data, documents) == {"dl19": {}, "dl20": {"q3": {"p45": 2}}}


def test_every_topic_has_judgements_in_the_whole_pool(shared_data):
    from colbert_prf.datasets import read_corpus

    folder = shared_data / "msmarco-dl1920"
    names = np.array([doc_id for doc_id, _ in read_corpus(folder / "collection.tsv.gz")])
    empty = np.empty((0, 1), np.float32), np.empty(0, np.int32), np.zeros(len(names) + 1, np.int64)
    found = read_judgements(folder, Texts(*empty, names))
    assert {year: len(qrels) for year, qrels in found.items()} == {"dl19": 43, "dl20": 54}
