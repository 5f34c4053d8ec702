"""Candidates of shards are those of one machine: what a search scores exactly, whether or not it changes a ranking."""

from __future__ import annotations

import numpy as np
import pytest
from sharded import RARE, asked, make_index

from colbert_prf import Index, Searcher
from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.distributed.transport import LocalTransport
from colbert_prf.kernels.workers import ALONE
from colbert_prf.search.budget import Budget, Execution
from colbert_prf.search.candidates import find_candidates
from colbert_prf.search.scorer import ScoredDocuments


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    return make_index(tmp_path_factory.mktemp("candidates") / "my.index")


@pytest.fixture(scope="module", params=[1, 3, 5], ids=lambda shards: f"{shards}shards")
def searcher(index, request):
    with DistributedSearcher(index.path, transport=LocalTransport(index.path, request.param)) as searcher:
        yield searcher


def begun(searcher: DistributedSearcher, query, k: int, **options):
    """A first pass under way, and its candidates."""
    chosen = searcher._changed(options)
    first = searcher._beginning(searcher.index.snapshot, query, chosen, None, Execution(ALONE))(k, 0)
    return first, first._candidates


def assert_same(found: ScoredDocuments, expected: ScoredDocuments) -> None:
    assert found.positions.tolist() == expected.positions.tolist()
    assert found.scores.tobytes() == expected.scores.tobytes()


@pytest.mark.parametrize("probes", [None, 2])
@pytest.mark.parametrize("seed", range(4))
def test_candidates_are_those_of_one_machine(index, searcher, seed, probes):
    """Every token below RARE is in some 180 of 900 documents: rare in a shard, at the limit in the collection."""
    query, k = asked(seed, RARE + seed), 10
    alone = find_candidates(index.snapshot, query, k, Budget(probes, 200, widen=True))
    first, candidates = begun(searcher, query, k, probes=probes)
    assert_same(candidates.with_rare_tokens(), alone.with_rare_tokens())
    chosen = alone.best(200).union(alone.with_rare_tokens())
    assert first.shortlist.positions.tolist() == chosen.positions.tolist()
    assert first.shortlist.approximate.tobytes() == chosen.scores.tobytes()
    finite = alone.approximate[np.isfinite(alone.approximate)]
    thresholds = np.quantile(finite, [0.99, 0.8, 0.75, 0.5, 0.6, 0.1, 0]).tolist()
    for descending in (True, False):
        _, candidates = begun(searcher, query, k, probes=probes)
        for least in sorted([*thresholds, -np.inf], reverse=descending):
            for most in (None, 20):
                given = {"besides": chosen.positions, "most": most}
                assert_same(candidates.at_least(least, **given), alone.at_least(least, **given))


@pytest.mark.parametrize("probes", [None, 1])
def test_extended_candidates_are_those_of_one_machine(index, searcher, probes):
    query, added = asked(3, RARE), asked(9, RARE + 1)
    alone = find_candidates(index.snapshot, query, 10, Budget(probes, 200, widen=True))
    first, candidates = begun(searcher, query, 10, probes=probes)
    given = {"besides": first.shortlist.positions}
    one, other = alone.extended(alone.scorer_of(added)), candidates.extended(candidates.scorer_of(added))
    for least in (float(np.median(alone.best(200).scores)), -np.inf):
        assert_same(other.at_least(least, **given), one.at_least(least, **given))


def test_scorers_compare_alike_whatever_came_along(index, searcher):
    """Scores that came with other answers are those that a shard gives when it is asked for them."""
    query = asked(2, RARE)
    alone = find_candidates(index.snapshot, query, 10, Budget(None, 200, widen=True)).scorer
    first, candidates = begun(searcher, query, 10)
    positions = np.arange(0, index.num_positions, 3)
    for chosen in (first.shortlist.positions, positions, positions[:0]):
        assert candidates.scorer.scores(chosen).tobytes() == alone.scores(chosen).tobytes()
        assert candidates.scorer.estimates(chosen).tobytes() == alone.estimates(chosen).tobytes()
    with Searcher(index) as one:
        assert searcher.search(query).scores == one.search(query).scores
