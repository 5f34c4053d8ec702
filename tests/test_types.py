from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, Hit, InputError, Ranking
from colbert_prf.types import Hits


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def rows(*values: tuple[float, ...]) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_a_document_has_a_length_and_a_dim():
    document = EncodedDocument(ids(5, 9), rows((1, 0, 0), (0, 0.6, 0.8)))
    assert len(document) == 2
    assert document.dim == 3


def test_a_query_without_weights_weighs_each_vector_one():
    assert EncodedQuery(ids(5, 9), rows((1, 0), (0, 1))).weights.tolist() == [1, 1]


@pytest.mark.parametrize("wrap", [EncodedDocument, EncodedQuery])
@pytest.mark.parametrize(
    ("token_ids", "vectors", "message"),
    [
        (ids(5), rows((1, 0), (0, 1)), "found 1 ids and 2 vectors"),
        (ids(5), np.array([[1.0, 0.0]]), "found float64 of shape"),
        (ids(5), np.array([1.0, 0.0], dtype=np.float32), r"found float32 of shape \(2,\)"),
        (np.array([5]), rows((1, 0)), "found int64"),
        (
            [5],
            rows((1, 0)),
            r"token_ids must be an array, int32 .*, found list; convert with np\.asarray\(token_ids, dtype",
        ),
        (
            ids(5),
            [[1.0, 0.0]],
            r"vectors must be an array, float32 of shape \(num_tokens, dim\), found list; convert with",
        ),
        ((5,), rows((1, 0)), "found tuple"),
        (None, rows((1, 0)), "found NoneType"),
        (ids(5), None, "found NoneType"),
        (np.int32(5), rows((1, 0)), "found int32"),
        (np.array(5, np.int32), rows((1, 0)), r"found int32 of shape \(\)"),
        (ids(5), rows((np.nan, 0)), "NaN"),
        (ids(5), rows((np.inf, 0)), "infinity"),
    ],
)
def test_malformed_vectors_are_refused(wrap, token_ids, vectors, message):
    with pytest.raises(InputError, match=message):
        wrap(token_ids, vectors)


def test_document_vectors_must_have_unit_length():
    with pytest.raises(InputError, match=r"vector 1 has length 0\.5000; divide"):
        EncodedDocument(ids(5, 6), rows((1, 0), (0, 0.5)))


def test_query_vectors_may_be_shorter_for_feedback_adds_means():
    assert len(EncodedQuery(ids(5), rows((0.3, 0.4)))) == 1


def test_an_empty_document_is_a_value_but_an_empty_query_is_not():
    assert len(EncodedDocument(ids(), np.empty((0, 4), dtype=np.float32))) == 0
    with pytest.raises(InputError, match="at least one vector"):
        EncodedQuery(ids(), np.empty((0, 4), dtype=np.float32))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.array([1, 1], dtype=np.float32), "found 2 weights and 1 vectors"),
        (
            np.array([[1]], dtype=np.float32),
            r"must be an array, float32 of shape \(num_tokens,\), found float32 of shape",
        ),
        (
            [1.0],
            r"weights must be an array, float32 .*, found list; convert with np\.asarray\(weights, dtype=np\.float32",
        ),
        (None, "found NoneType"),
        ([], "found list"),
        (1.0, "found float;"),
        (np.array([1.0]), "found float64"),
        (np.array([-1], dtype=np.float32), "not negative, found -1"),
        (np.array([np.nan], dtype=np.float32), "finite"),
    ],
)
def test_malformed_weights_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        EncodedQuery(ids(5), rows((1, 0)), weights)


def test_values_are_frozen():
    hit = Hit("d1", 0.5)
    with pytest.raises(AttributeError):
        hit.score = 1.0  # type: ignore[misc]


def test_a_ranking_iterates_over_its_hits():
    ranking = Ranking(EncodedQuery(ids(5), rows((1, 0))), (Hit("b", 2.0), Hit("a", 1.0)))
    assert [hit.doc_id for hit in ranking] == ranking.doc_ids == ["b", "a"]
    assert len(ranking) == 2


def test_hits_made_when_looked_at_are_those_given():
    hits = Hits(["a", "b", "c"], [3.0, 2.0, 1.0], lambda number: f"text {number}")
    assert list(hits) == [Hit("a", 3.0), Hit("b", 2.0), Hit("c", 1.0)] == [hits[0], hits[1], hits[-1]]
    assert hits[1:] == (Hit("b", 2.0), Hit("c", 1.0))
    assert hits[2].text == "text 2"
    assert hits == (Hit("a", 3.0), Hit("b", 2.0), Hit("c", 1.0)) != hits[:2]
    assert hash(hits) == hash(tuple(hits))
    with pytest.raises(IndexError):
        hits[3]
    assert Ranking(EncodedQuery(ids(5), rows((1, 0))), hits).doc_ids == ["a", "b", "c"]


def test_a_query_from_a_vector_on_is_the_rest_of_it():
    query = EncodedQuery(np.array([7, 8, 9], np.int32), np.eye(3, dtype=np.float32), np.array([1, 2, 3], np.float32))
    rest = query.from_vector(1)
    assert isinstance(rest, EncodedQuery)
    assert (len(rest), rest.dim) == (2, 3)
    assert rest.token_ids.tolist() == [8, 9]
    assert rest.vectors.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert rest.weights.tolist() == [2, 3]


def test_vectors_are_added_to_a_query_and_taken_from_it():
    query = EncodedQuery(np.array([7], np.int32), np.eye(1, 2, dtype=np.float32))
    token_ids, vectors, weights = np.array([9], np.int32), np.array([[0, 1]], np.float32), np.array([0.5], np.float32)
    whole = query.with_vectors(token_ids, vectors, weights)
    assert (whole.token_ids.tolist(), whole.vectors.tolist(), whole.weights.tolist()) == (
        [7, 9],
        [[1, 0], [0, 1]],
        [1, 0.5],
    )
    again = EncodedQuery(whole.token_ids, whole.vectors, whole.weights)  # what was not checked would pass
    assert len(again.from_vector(1)) == 1
    assert np.array_equal(again.from_vector(1).vectors, vectors)
