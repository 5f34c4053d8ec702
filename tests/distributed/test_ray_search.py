"""Shards as actors of a real Ray cluster."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from sharded import RARE, answer_of, asked, make_index

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.errors import ClusterError, IndexFormatError, ShardError

PRF = ColbertPRF(feedback_docs=3, clusters=8, expansion_vectors=5)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    return make_index(tmp_path_factory.mktemp("ray") / "my.index")


@pytest.fixture(scope="module")
def searcher(index, ray_cluster):
    with DistributedSearcher(index.path, shards=2, cpus=0.5) as searcher:
        yield searcher


def test_actors_answer_as_one_machine_does(index, searcher):
    with Searcher(index) as alone:
        for seed, options in enumerate(
            [
                {},
                {"feedback": PRF},
                {"feedback": ColbertPRF(clusters=8, rerank=True)},
                {"where": {"source": "pond"}, "feedback": PRF},
                {"where": lambda metadata: metadata["year"] > 2000},
            ]
        ):
            query = asked(seed, RARE + seed)
            ranking = searcher.search(query, 10, **options)
            assert answer_of(ranking) == answer_of(alone.search(query, 10, **options))
            assert ranking.shards == (2, 2)
        assert searcher.explain(asked(1), "d2") == alone.explain(asked(1), "d2")
        queries = [asked(seed) for seed in range(20)]
        many = [answer_of(ranking) for ranking in searcher.search_many(queries, 10, feedback=PRF)]
        assert many == [answer_of(alone.search(query, 10, feedback=PRF)) for query in queries]


def test_too_few_cpus_are_refused_at_once(index, ray_cluster):
    with pytest.raises(ClusterError, match=r"5 shards of 3 CPUs need 15, the cluster has 4; give fewer shards"):
        DistributedSearcher(index.path, shards=5, cpus=3)


@pytest.mark.slow
def test_a_killed_shard_is_started_again_and_queries_are_right_or_refused(index, ray_cluster):
    """Both shards die, one after the other, while queries are under way."""
    with Searcher(index) as alone, DistributedSearcher(index.path, shards=2, cpus=0.5, timeout=60) as searcher:
        queries = [asked(seed, RARE + seed % 9) for seed in range(40)]
        expected = [answer_of(alone.search(query, 10, feedback=PRF)) for query in queries]
        for killed in (0, 1):
            rankings = searcher.search_many(queries, 10, feedback=PRF)
            answers = [answer_of(next(rankings))]
            os.kill(process_of(searcher, killed), signal.SIGKILL)
            answers += [answer_of(ranking) for ranking in rankings]
            assert answers == expected


@pytest.mark.slow
def test_a_shard_that_does_not_answer_is_an_error_or_left_out(index, ray_cluster):
    """A stopped process neither answers nor dies; when it goes on, the answer is whole again."""
    with Searcher(index) as alone, DistributedSearcher(index.path, shards=2, cpus=0.5, timeout=2) as searcher:
        whole, query = answer_of(alone.search(asked(1), 10)), asked(1)
        assert answer_of(searcher.search(query, 10)) == whole
        stopped = process_of(searcher, 1)
        os.kill(stopped, signal.SIGSTOP)
        try:
            with pytest.raises(ShardError, match=r"shard 2 of 2 \(segment-.*\) does not answer: it did"):
                searcher.search(query, 10)
            ranking = searcher.search(query, 10, partial=True)
            assert ranking.shards == (2, 1)
            snapshot, end = alone.index.snapshot, int(searcher.index.snapshot.asking.starts[1])
            first = [snapshot.doc_id(position) for position in range(end) if snapshot.live[position]]
            assert ranking.doc_ids == alone.search(query, 10, allowed=first).doc_ids
        finally:
            os.kill(stopped, signal.SIGCONT)
        deadline = time.monotonic() + 60
        while answer_of(searcher.search(query, 10, partial=True)) != whole:
            assert time.monotonic() < deadline


@pytest.mark.slow
def test_a_damaged_segment_is_named_by_a_shard_that_opens_it_again(tmp_path, ray_cluster):
    index = make_index(tmp_path / "my.index")
    with DistributedSearcher(index.path, shards=2, cpus=0.5, timeout=60) as searcher:
        searcher.search(asked(1), 10)
        damaged = index.path / index.segments[-1].info.name / "codes.npy"
        damaged.write_bytes(damaged.read_bytes()[:-9])
        os.kill(process_of(searcher, 1), signal.SIGKILL)
        with pytest.raises(IndexFormatError, match=r"codes\.npy"):
            searcher.search(asked(1), 10)


@pytest.mark.slow
def test_memory_stays_flat_over_two_thousand_queries(searcher, ray_cluster):
    """Neither Ray's store, nor the shards, nor this process keep anything of a query."""
    queries = [asked(seed) for seed in range(200)]

    def run(times: int) -> list[int]:
        for _ in range(times):
            for _ in searcher.search_many(queries, 10, feedback=PRF):
                pass
        return [resident(process) for process in (os.getpid(), process_of(searcher, 0), process_of(searcher, 1))]

    before, kept = run(2), stored(ray_cluster)
    grown = [later - earlier for earlier, later in zip(before, run(10), strict=True)]
    assert max(grown) < 12 << 20, grown
    assert stored(ray_cluster) <= kept


def process_of(searcher: DistributedSearcher, shard: int) -> int:
    """The process of an actor."""
    import ray

    def pid(_: object) -> int:
        return os.getpid()

    return ray.get(searcher.transport.actors[shard].__ray_call__.remote(pid))


def stored(ray) -> float:
    """Bytes in Ray's store of objects."""
    return ray.cluster_resources()["object_store_memory"] - ray.available_resources()["object_store_memory"]


def resident(process: int) -> int:
    """Bytes of memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
