"""Re-rankers encode queries as their searcher does."""

from __future__ import annotations

import pytest

from colbert_prf import MemoryIndex, Searcher
from colbert_prf.baselines import ColbertReranker

TEXTS = ["Goldfish grow all their life.", "The bank of the river.", "A pond lets a goldfish grow larger."]


@pytest.mark.parametrize("query_weights", [True, False])
def test_the_scores_are_those_of_the_searcher(encoder, query_weights):
    index = MemoryIndex.create(zip("abc", TEXTS, strict=True), encoder=encoder)
    searcher = Searcher(index, query_weights=query_weights)
    reranked = ColbertReranker(Searcher(index), searcher).search("the goldfish", k=3)
    found = searcher.search("the goldfish", k=3)
    assert reranked.doc_ids == found.doc_ids
    assert [hit.score for hit in reranked] == pytest.approx([hit.score for hit in found], abs=1e-5)
