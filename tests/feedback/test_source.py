"""What feedback reads of an index: vectors of documents in one or several segments, and the tokens near a vector."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import EncodedDocument, Index
from colbert_prf.feedback.base import likely_tokens, most_likely
from colbert_prf.feedback.source import FeedbackSource, MemorySource, SnapshotSource, sources_of


@pytest.fixture
def segmented(memory, encoder, tmp_path) -> Index:
    """The passages in three segments."""
    passages = [(doc_id, memory.text(place)) for place, doc_id in enumerate(memory.doc_ids)]
    index = Index.create(tmp_path / "index", passages[:5], encoder=encoder, bits=4, progress=False)
    index.add(passages[5:9])
    index.add(passages[9:])
    return index


@pytest.mark.parametrize(
    "wanted", [["fish3"], ["fish4", "fish1"], ["war2", "bank3", "war1"], ["fungus2", "fish1", "war1"]]
)
def test_the_vectors_of_documents_are_the_same_one_by_one_and_together(segmented, wanted):
    source = SnapshotSource(segmented.snapshot)
    places = source.positions(wanted)
    together, one_by_one = source.vectors_of(places), FeedbackSource.vectors_of(source, places)
    for mine, other in zip(together[:-1], one_by_one[:-1], strict=True):
        assert np.array_equal(mine, other)
    assert together.codes.tolist() == [code for place in places for code in source.codes(int(place))]
    ends = np.array([0, len(together.token_ids) - 1])
    assert sources_of(ends, wanted, together) == (
        (wanted[0], 0),
        (wanted[-1], len(source.document(int(places[-1]))[1]) - 1),
    )


@pytest.mark.parametrize("count", [1, 4, 10])
def test_neighbours_over_segments_are_those_of_comparing_with_all(segmented, memory, count):
    source, exact = SnapshotSource(segmented.snapshot), MemorySource(memory)
    feedback = source.vectors_of(source.positions(["fish1", "bank2"]))
    wanted = memory.vectors[::7] * np.float32(0.8)
    found, expected = source.nearest_tokens(wanted, count, feedback), exact.nearest_tokens(wanted, count, feedback)
    # Of 4 bits, and most: where the token is clear no further centroid is looked at.
    assert np.mean(np.abs(found.similarities - expected.similarities) < 0.05) > 0.85
    names = [most_likely(near.token_ids, source.special_ids) for near in (found, expected)]
    assert np.mean(names[0] == names[1]) > 0.85
    assert (np.diff(found.similarities, axis=1) <= 0).all()


def test_more_neighbours_than_there_are_vectors(plane, tmp_path):
    spans = zip(plane.doc_ids, plane.offsets[:-1], plane.offsets[1:], strict=True)
    documents = [(name, EncodedDocument(plane.token_ids[a:b], plane.vectors[a:b])) for name, a, b in spans]
    index = Index.create_from_vectors(tmp_path / "plane", documents, bits=4, progress=False)
    source = SnapshotSource(index.snapshot)
    found = source.nearest_tokens(plane.vectors[:1], 20, source.vectors_of(np.array([0])))
    assert sorted(found.token_ids[0].tolist()) == sorted([-1] * (20 - len(plane.token_ids)) + plane.token_ids.tolist())
    assert np.isneginf(found.similarities[0, len(plane.token_ids) :]).all()


@given(
    st.lists(st.lists(st.integers(-1, 5), min_size=6, max_size=6), min_size=1, max_size=4), st.sets(st.integers(0, 5))
)
def test_the_most_likely_token_is_the_first_of_the_likely_ones(rows, special):
    neighbours = np.array(rows, dtype=np.int32)
    likely = [likely_tokens(row, frozenset(special)) for row in neighbours]
    assert most_likely(neighbours, frozenset(special)).tolist() == [found[0][0] if found else -1 for found in likely]
