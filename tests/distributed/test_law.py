"""The answer of shards is that of one machine over the same folder, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from sharded import RARE, answer_of, asked, documents, make_index

from colbert_prf import CentroidPRF, ColbertPRF, Index, Searcher
from colbert_prf.baselines.rerank.candidates import Candidates
from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.distributed.transport import LocalTransport

PRF = ColbertPRF(feedback_docs=3, clusters=8, expansion_vectors=5)
FEEDBACK = {
    "none": None,
    "ranker": PRF,
    "reranker": ColbertPRF(clusters=8, rerank=True),
    "depth": ColbertPRF(clusters=8, rerank=True, rerank_depth=30),
    "means": ColbertPRF(feedback_docs=3, clusters=8, clustering="kmeans", weighting="ictf"),
    "centroids": CentroidPRF(),
}


@pytest.fixture(scope="module", params=[2, 4, 16], ids=lambda bits: f"{bits}bits")
def index(tmp_path_factory, request) -> Index:
    return make_index(tmp_path_factory.mktemp("law") / "my.index", request.param)


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda shards: f"{shards}shards")
def pair(index, request):
    """One machine, and shards."""
    transport = LocalTransport(index.path, request.param)
    with Searcher(index) as alone, DistributedSearcher(index.path, transport=transport) as sharded:
        yield alone, sharded


def same(pair, query, *arguments, **options) -> None:
    alone, sharded = (answer_of(searcher.search(query, *arguments, **options)) for searcher in pair)
    assert sharded == alone
    assert alone[0]


@pytest.mark.parametrize("method", FEEDBACK.values(), ids=FEEDBACK)
@pytest.mark.parametrize("k", [1, 10, 300])
def test_rankings_scores_and_expansions_are_the_same(pair, k, method):
    for seed in range(3):
        same(pair, asked(seed, RARE + seed), k, feedback=method)


BUDGETS = [{"probes": 2}, {"rescore": 20}, {"exact": True}, {"probes": 1, "rescore": 5}]


@pytest.mark.parametrize("options", BUDGETS, ids=str)
def test_budgets(pair, options):
    for method in (None, PRF, FEEDBACK["reranker"]):
        same(pair, asked(7, RARE + 1), 10, feedback=method, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"where": {"year": {">=": 2010}, "source": "pond"}},
        {"where": lambda metadata: metadata["year"] == 2001},
        {"allowed": [f"d{number}" for number in range(200, 420) if number % 11 != 5]},
        {"allowed": ["d2", "d3"], "where": {"source": "garden"}},
    ],
    ids=["filter", "function", "ids", "both"],
)
def test_filters(pair, options):
    for method in (None, PRF):
        for probes in (None, 1):
            same(pair, asked(5, RARE), 10, feedback=method, probes=probes, **options)


def test_marked_documents_and_texts(pair):
    given = documents(seed=8, count=2, first=1)[1][1]
    marked = {"relevant": ["d850", "d2"], "non_relevant": ["d399", "d1"]}
    same(pair, asked(1), 10, feedback=PRF, **marked)
    same(pair, asked(1), 10, feedback=PRF, non_relevant=["d1"])
    same(pair, asked(1), 10, feedback=PRF, feedback_texts=[given], with_passages=True)
    same(pair, asked(1), 10, feedback=CentroidPRF(), feedback_texts=[given])


def test_many_queries(pair):
    queries = [asked(seed, RARE + seed % 9) for seed in range(12)]
    alone, sharded = (
        [answer_of(ranking) for ranking in searcher.search_many(iter(queries), 10, feedback=PRF)] for searcher in pair
    )
    assert sharded == alone


def test_scores_of_given_documents(pair):
    ids = ["d899", "d2", "d391", "d97", "d400"]
    alone, sharded = (Candidates(searcher, ids).scores(asked(6)).tobytes() for searcher in pair)
    assert sharded == alone


def test_explanations(pair):
    alone, sharded = pair
    for doc_id in ("d2", "d391", "d899"):
        assert sharded.explain(asked(4), doc_id) == alone.explain(asked(4), doc_id)


def test_what_the_collection_tells(pair):
    alone, sharded = (searcher.index.snapshot for searcher in pair)
    for name in ("document_frequencies", "collection_frequencies", "centroid_frequencies", "live"):
        assert getattr(sharded, name).tolist() == getattr(alone, name).tolist()
    assert sharded.score(asked(2)).tobytes() == alone.score(asked(2)).tobytes()
    positions = np.array([700, 3, 399, 380, 101])
    for ours, theirs in zip(sharded.vectors_of(positions), alone.vectors_of(positions), strict=True):
        assert theirs is None or ours.tobytes() == theirs.tobytes()
    for ours, theirs in zip(*(each.nearest_tokens(asked(3).vectors, 12) for each in (sharded, alone)), strict=True):
        assert ours.tobytes() == theirs.tobytes()
