"""ColbertPRF learns what Algorithm 2 of the paper says, written out in NumPy."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from colbert_prf import ColbertPRF, MemoryIndex, Searcher
from colbert_prf.feedback.definition import learn_definition
from colbert_prf.kernels.kmeans import kmeans


def everything(index):
    """Vectors, tokens and offsets of all documents."""
    if isinstance(index, MemoryIndex):
        return index.vectors, index.token_ids, index.offsets
    vectors = [index.vectors(position) for position in range(index.num_positions)]
    token_ids = [index.token_ids(position) for position in range(index.num_positions)]
    return np.concatenate(vectors), np.concatenate(token_ids), np.cumsum([0, *map(len, token_ids)])


def test_numbers_worked_out_by_hand(plane):
    """As in test_prf: the clusters of document a are (1, 0) and (0, 1), the tokens 1 and 3 are in two of five."""
    rows = np.array([[1, 0], [0, 1]], np.float32)
    found = learn_definition(
        *everything(plane), [0], cluster=lambda _: rows, neighbours=3, expansion_vectors=2, special_ids=()
    )
    assert [learned.token_id for learned in found] == [1, 3]
    assert [learned.sigma for learned in found] == pytest.approx([log(2), log(2)])
    assert np.array_equal([learned.vector for learned in found], rows)


def test_special_tokens_name_no_centroid(plane):
    """Without token 3 the nearest to (0, 1) is token 2 or 4; with all tokens special nothing is learned."""
    rows = np.array([[0, 1]], np.float32)
    arguments = {"cluster": lambda _: rows, "neighbours": 3, "expansion_vectors": 2}
    (learned,) = learn_definition(*everything(plane), [0], **arguments, special_ids={3})
    assert learned.token_id in (2, 4)
    assert learn_definition(*everything(plane), [0], **arguments, special_ids={1, 2, 3, 4}) == []


@pytest.mark.parametrize("bits", [None, 2, 4, 16])
@pytest.mark.parametrize("seed", [0, 1, 42])
@pytest.mark.parametrize("parameters", [{}, {"feedback_docs": 2, "clusters": 8, "expansion_vectors": 5}])
def test_a_search_learns_what_the_definition_says(memory, open_index, goldfish, bits, parameters, seed):
    """Both cluster with the package's k-means, which tests/kernels compares with its definition, and the same seed.

    In memory F_t compares with every vector. In an index folder it does so where the codec has few centroids, as here;
    ``docs/notes/defaults.md`` has how often it agrees where there are many.
    """
    index, method = (
        memory if bits is None else open_index(bits),
        ColbertPRF(clustering="kmeans", seed=seed, **parameters),
    )
    ranking = Searcher(index).search(goldfish, k=12, feedback=method)
    expected = learn_definition(
        *everything(index),
        index.positions(ranking.before.doc_ids[: method.feedback_docs]).tolist(),
        cluster=lambda rows: kmeans(rows, min(method.clusters, len(rows)), seed=seed).centroids,
        neighbours=method.neighbours,
        expansion_vectors=method.expansion_vectors,
        special_ids=memory.encoder.special_ids,
    )
    found = ranking.expansion
    assert [vector.token_id for vector in found.vectors] == [learned.token_id for learned in expected]
    assert [vector.sigma for vector in found.vectors] == pytest.approx([learned.sigma for learned in expected])
    added = found.query.vectors[found.num_original :]
    assert added == pytest.approx(np.stack([learned.vector for learned in expected]), abs=1e-5)
    total = sum(learned.sigma for learned in expected)
    weights = [method.strength.value * len(goldfish) * learned.sigma / total for learned in expected]
    assert found.query.weights[found.num_original :].tolist() == pytest.approx(weights, rel=1e-5)
