"""What search and feedback read of documents is the same from a folder, of one or more segments, and from memory."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, Index, MemoryIndex
from colbert_prf.index import nearest_tokens
from colbert_prf.index.collection import Collection

COUNT = 60
GONE = ("d3", "d31")


@pytest.fixture(scope="module", params=[4, 16])
def pair(request, make_documents, tmp_path_factory) -> tuple[Collection, Collection]:
    """The same documents in three segments, two of them deleted, and in memory, with the vectors as stored."""
    documents = make_documents(COUNT)
    index = Index.create_from_vectors(
        tmp_path_factory.mktemp("collection") / "index", documents[:20], bits=request.param, progress=False
    )
    index.add_vectors(documents[20:45])
    index.add_vectors(documents[45:])
    index.delete(GONE)
    live = np.flatnonzero(index.snapshot.live).tolist()
    stored = [EncodedDocument(index.token_ids(place), _unit(index.vectors(place))) for place in live]
    return index.snapshot, MemoryIndex([index.doc_id(place) for place in live], stored)


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def some_ids() -> list[str]:
    return ["d50", "d2", "d59", "d21", "d20"]


def test_the_vectors_of_documents(pair):
    disk, memory = (each.vectors_of(each.positions(some_ids())) for each in pair)
    assert disk.vectors == pytest.approx(memory.vectors, abs=0.01)
    for name in ("token_ids", "documents", "token_positions"):
        assert getattr(disk, name).tolist() == getattr(memory, name).tolist()
    snapshot = pair[0]
    codes = [snapshot.locate(int(position)) for position in snapshot.positions(some_ids())]
    expected = [
        code
        for segment, place in codes
        for code in segment.columns["codes"][segment.offsets[place] : segment.offsets[place + 1]].tolist()
    ]
    assert disk.codes.tolist() == expected
    assert (memory.codes == -1).all()
    for each in pair:
        assert each.lengths(each.positions(some_ids())).tolist() == np.bincount(disk.documents).tolist()


def test_counts_and_ids(pair):
    disk, memory = pair
    assert disk.num_documents == memory.num_documents == COUNT - len(GONE)
    assert disk.live.sum() == memory.live.sum() == disk.num_documents
    for each in pair:
        assert each.find("d3") is None
        assert each.doc_ids_of(each.positions(some_ids())) == some_ids()
        assert each.snapshot is each
    assert disk.on_disk is disk
    assert memory.on_disk is None
    for name in ("document_frequencies", "collection_frequencies"):
        found, expected = getattr(disk, name), getattr(memory, name)
        assert found[: len(expected)].tolist() == expected.tolist()
        assert not found[len(expected) :].any()


@pytest.mark.parametrize("count", [1, 4, 10])
def test_the_nearest_tokens_are_those_of_comparing_with_all(pair, count):
    disk, memory = pair
    vectors = memory.vectors[::9] * np.float32(0.7)
    found, expected = disk.nearest_tokens(vectors, count), memory.nearest_tokens(vectors, count)
    assert found.similarities == pytest.approx(expected.similarities, abs=0.02)
    assert (np.diff(found.similarities, axis=1) <= 0).all()
    assert np.mean(found.token_ids == expected.token_ids) > 0.9  # two may be equally near, rounding aside


def test_the_nearest_tokens_are_the_same_in_blocks_of_any_size(pair, monkeypatch):
    disk, memory = pair
    vectors = memory.vectors[::9]
    expected = disk.nearest_tokens(vectors, 5)
    monkeypatch.setattr(nearest_tokens, "CODES_AT_ONCE", 32)
    monkeypatch.setattr(nearest_tokens, "VECTORS_AT_ONCE", 7)
    found = disk.nearest_tokens(vectors, 5)
    assert found.token_ids.tolist() == expected.token_ids.tolist()
    assert found.similarities == pytest.approx(expected.similarities, abs=1e-6)


def test_with_few_centroids_probed_every_neighbour_has_one_of_them(pair, monkeypatch):
    """With one probe for one vector, all neighbours have its centroid, and none of these is missed."""
    disk, memory = pair
    monkeypatch.setattr(nearest_tokens, "PROBES", 1)
    (vector,) = vectors = memory.vectors[:1]
    probed = np.flatnonzero(nearest_tokens.probed_centroids(disk.codec, vectors))
    assert len(probed) == 1
    documents = disk.vectors_of(np.flatnonzero(disk.live))
    products = documents.vectors[documents.codes == probed[0]] @ vector
    found = disk.nearest_tokens(vectors, len(products) + 1).similarities[0]
    assert found[:-1] == pytest.approx(np.sort(products)[::-1], abs=1e-5)
    assert np.isneginf(found[-1])


def test_more_neighbours_than_there_are_vectors(pair):
    for each in pair:
        total = int(each.lengths(np.flatnonzero(each.live)).sum())
        found = each.nearest_tokens(each.vectors_of(np.array([0])).vectors[:1], total + 5)
        assert (found.token_ids[0] >= 0).sum() == total
        assert np.isneginf(found.similarities[0, total:]).all()


def test_scores_and_similarities(pair):
    query = EncodedQuery(np.arange(3, dtype=np.int32), pair[1].vectors[:3], np.array([1, 0.5, 2], np.float32))
    scores = [each.score(query)[each.positions(some_ids())] for each in pair]
    assert scores[0] == pytest.approx(scores[1], abs=0.03)
    for each, expected in zip(pair, scores, strict=True):
        best = [each.similarities(int(place), query).max(axis=0) for place in each.positions(some_ids())]
        assert np.array(best) @ query.weights == pytest.approx(expected, abs=0.03)
