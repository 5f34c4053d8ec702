"""Documents that count by a re-ranker's scores: numbers worked out by hand, and laws."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from colbert_prf import CentroidPRF, ColbertPRF, EncodedQuery, Hit, InputError, Ranking, Searcher
from colbert_prf.feedback.document_weights import document_weights

EAST = EncodedQuery(np.array([1], dtype=np.int32), np.array([[1, 0]], dtype=np.float32))
JUDGED = Ranking(EAST, (Hit("a", log(3)), Hit("d", 0.0), Hit("c", -1.0)))
"""Of the first two, a weighs 1.5 and d 0.5."""


def test_weights_worked_out_by_hand():
    assert document_weights([log(3), 0.0]).tolist() == pytest.approx([1.5, 0.5])
    assert document_weights([log(9), 0.0], temperature=2).tolist() == pytest.approx([1.5, 0.5])
    assert document_weights([5.0, 5.0, 5.0]).tolist() == pytest.approx([1, 1, 1])
    assert document_weights([1e4, 0.0]).tolist() == [2, 0]
    for scores, temperature in (([float("nan")], 1), ([float("inf"), 0.0], 1), ([1.0], 0)):
        with pytest.raises(InputError):
            document_weights(scores, temperature)


def test_sigma_worked_out_by_hand(plane):
    """a has vectors at 0, 0 and 90 degrees, d two at 120; each token is in two of five documents, ln 2.

    With three clusters each has the vectors of one document; with two the one at 90 joins those at 120, and the mean
    weight of the three is (1.5 + 0.5 + 0.5) / 3.
    """
    learned = {}
    for clusters in (3, 2):
        feedback = ColbertPRF(
            feedback_docs=2, clusters=clusters, expansion_vectors=3, clustering="kmeans-closest", beta=1
        )
        expansion = feedback.expand(EAST, JUDGED, plane, weighed=True)
        assert expansion.feedback == ("a", "d")
        learned[clusters] = {vector.token_id: vector.sigma / log(2) for vector in expansion.vectors}
    assert learned[3] == pytest.approx({1: 1.5, 3: 1.5, 4: 0.5})
    assert learned[2] == pytest.approx({1: 1.5, 4: 2.5 / 3})


def test_the_weighed_clusters_are_chosen(plane):
    feedback = ColbertPRF(feedback_docs=2, clusters=3, expansion_vectors=2, clustering="kmeans-closest")
    expansion = feedback.expand(EAST, JUDGED, plane, weighed=True)
    assert {vector.token_id for vector in expansion.vectors} == {1, 3}


@pytest.mark.parametrize("method", [ColbertPRF(feedback_docs=3), CentroidPRF()])
def test_equal_scores_change_nothing(open_index, goldfish, method):
    index = open_index(4)
    found = Searcher(index).search(goldfish, k=3)
    alike = Ranking(goldfish, tuple(Hit(doc_id, 7.0) for doc_id in found.doc_ids))
    weighed, plain = (method.expand(goldfish, alike, index, weighed=weighed) for weighed in (True, False))
    assert [vector.token_id for vector in weighed.vectors] == [vector.token_id for vector in plain.vectors]
    assert weighed.query.vectors == pytest.approx(plain.query.vectors, abs=1e-6)
    assert weighed.query.weights == pytest.approx(plain.query.weights, abs=1e-6)


@pytest.mark.parametrize("method", [ColbertPRF(feedback_docs=2, weight=0.5), CentroidPRF(feedback_docs=2)])
def test_a_document_that_weighs_nothing_adds_nothing(open_index, goldfish, method):
    """The other document has the sum of all weights, so what is added weighs as much in all."""
    index = open_index(4)
    sure = Ranking(goldfish, (Hit("fish1", 1e4), Hit("bank1", 0.0)))
    for vector in method.expand(goldfish, sure, index, weighed=True).vectors:
        if {doc_id for doc_id, _ in vector.sources} == {"bank1"}:
            assert vector.weight == 0
