"""The vectors of the paper's figure and the plane they are projected into."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import ColbertPRF, MemoryIndex, Searcher
from colbert_prf.plots.plane import feedback_plane, is_word

CORPUS = {
    "fish": "Goldfish grow all their life if the tank is large.",
    "pond": "A goldfish in a pond becomes larger than one in a bowl.",
    "bank": "The bank raised its rates again.",
}


@pytest.fixture(scope="module")
def searcher(encoder):
    return Searcher(MemoryIndex.create(CORPUS.items(), encoder=encoder, progress=False))


def test_of_the_shared_words_those_that_say_something_are_marked(encoder, searcher):
    text = "The tank fired if the gold was gone."
    query, method = encoder.encode_query("do goldfish grow"), ColbertPRF(clusters=4, expansion_vectors=4)
    plane = feedback_plane(searcher, query, [method], relevant=["fish"], compare=text)
    words = encoder.tokens(plane.comparison.document.token_ids)
    # "the" and "." are in two passages of three, "gold" as well; "tank" and "if" in one.
    assert [words[number] for number in plane.comparison.shared] == ["tank", "if"]
    assert [encoder.tokens(plane.feedback.token_ids)[number] for number in plane.comparison.twins] == ["if", "tank"]


def test_a_plane_is_that_of_query_and_passages(encoder, searcher):
    query = encoder.encode_query("do goldfish grow")
    plane = feedback_plane(searcher, query, [ColbertPRF(feedback_docs=2, clusters=6, expansion_vectors=6)])
    assert sorted(plane.doc_ids) == ["fish", "pond"]
    vectors = np.concatenate([query.vectors, plane.feedback.vectors])
    covariance = np.cov(vectors, rowvar=False, bias=True)
    points = plane.projection(vectors)
    assert np.var(points, axis=0) == pytest.approx(np.linalg.eigvalsh(covariance)[::-1][:2], rel=1e-4)


def test_words_are_told_from_augmentation(encoder):
    query = encoder.encode_query("do goldfish grow")
    spelled = np.array(encoder.tokens(query.token_ids))
    assert spelled[is_word(query, encoder)].tolist() == ["[CLS]", "[unused0]", "do", "gold", "##fish", "grow", "[SEP]"]
