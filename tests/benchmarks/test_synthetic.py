from __future__ import annotations

import numpy as np
import pytest
from synthetic import MEAN_LENGTH, PASSAGES_PER_BLOCK, Collection, zipf


@pytest.fixture(scope="module")
def collection():
    return Collection()


def test_vectors_have_unit_length_and_passages_some_eighty(collection):
    (block,) = collection.blocks(PASSAGES_PER_BLOCK)
    assert np.linalg.norm(block.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert len(block.vectors) == len(block.token_ids) == block.offsets[-1]
    assert np.diff(block.offsets).mean() == pytest.approx(MEAN_LENGTH, rel=0.05)
    assert block.token_ids.min() >= 0
    assert block.token_ids.max() < collection.num_types


def test_a_passage_is_the_same_whatever_their_number(collection):
    few = list(collection.blocks(PASSAGES_PER_BLOCK + 7))
    many = list(Collection().blocks(2 * PASSAGES_PER_BLOCK))
    assert len(few[1].offsets) == 8
    assert np.array_equal(few[0].vectors, many[0].vectors)
    assert np.array_equal(few[1].vectors, many[1].vectors[: few[1].offsets[-1]])
    assert not np.array_equal(many[0].vectors[:8], many[1].vectors[:8])
    assert not np.array_equal(next(Collection(seed=1).blocks(8)).vectors[:8], many[0].vectors[:8])


def test_vectors_of_one_token_are_near_each_other(collection):
    block = next(collection.blocks(PASSAGES_PER_BLOCK))
    most = block.vectors[block.token_ids == np.bincount(block.token_ids).argmax()][:100]
    others = block.vectors[: len(most)]
    assert (most @ most.T).mean() > (others @ others.T).mean() + 0.3


def test_queries_have_one_length(collection):
    queries = collection.queries(3, 32, 1000)
    assert queries.offsets.tolist() == [0, 32, 64, 96]


def test_ranks_follow_zipf():
    ranks = zipf(1000, (np.arange(100_000) + 0.5) / 100_000)
    counts = np.bincount(ranks, minlength=1000)
    assert len(counts) == 1000
    # Between 1 / (r + 2.7) and 1 / (r + 3.7), whose integral it is.
    assert counts[9] / counts[99] == pytest.approx(103.2 / 12.2, rel=0.05)
