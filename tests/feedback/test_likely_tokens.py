"""P(t|υ): the tokens a vector may stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import ColbertPRF, Searcher
from colbert_prf.feedback.base import likely_tokens, most_likely


@given(
    st.lists(st.lists(st.integers(-1, 5), min_size=6, max_size=6), min_size=1, max_size=4), st.sets(st.integers(0, 5))
)
def test_the_most_likely_token_is_the_first_of_the_likely_ones(rows, special):
    neighbours = np.array(rows, dtype=np.int32)
    likely = [likely_tokens(row, frozenset(special)) for row in neighbours]
    assert most_likely(neighbours, frozenset(special)).tolist() == [found[0][0] if found else -1 for found in likely]


def test_those_of_a_mean_are_the_tokens_of_the_nearest_vectors_of_the_index(open_index, goldfish):
    index = open_index(4)
    feedback = ColbertPRF(clusters=6, expansion_vectors=4, clustering="kmeans")
    expansion = Searcher(index).search(goldfish, feedback=feedback).expansion
    assert len(expansion) == 4
    for vector, shown in zip(expansion.query.vectors[expansion.num_original :], expansion.vectors, strict=True):
        near = index.snapshot.nearest_tokens(vector[np.newaxis], 10).token_ids[0]
        assert shown.likely == likely_tokens(near, index.snapshot.special_ids)
