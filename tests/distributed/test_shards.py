"""Generations, shards that do not answer, and bad input: within one process, so that each can be brought about."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from sharded import RARE, answer_of, asked, documents, make_index

from colbert_prf import ColbertPRF, Index, InputError, Passages, Searcher
from colbert_prf.distributed.division import check_division, divide
from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.distributed.shard import Shard
from colbert_prf.distributed.transport import LocalTransport, Lost
from colbert_prf.errors import IndexFormatError, ShardError

PRF = ColbertPRF(feedback_docs=3, clusters=8, expansion_vectors=5)


class FaultyTransport(LocalTransport):
    """Shards that may be silent, and that count what they are asked."""

    def __init__(self, folder: Path, num_shards: int) -> None:
        super().__init__(folder, num_shards)
        self.folder = folder
        self.silent: set[int] = set()
        self.silent_after: dict[int, int] = {}
        self.asked: Counter[str] = Counter()
        self.rounds = 0

    def send(self, shard, method, *arguments):
        self.asked[arguments[1] if method == "answer" else method] += 1
        if shard in self.silent_after:
            self.silent_after[shard] -= 1
            if self.silent_after[shard] < 0:
                self.silent.add(shard)
        return Lost("it is silent") if shard in self.silent else super().send(shard, method, *arguments)

    def collect(self, sent, timeout):
        self.rounds += 1
        return super().collect(sent, timeout)

    def restart(self, shard: int) -> None:
        """As Ray does it: a new process, which has nothing open."""
        self.shards[shard] = Shard(str(self.folder))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return make_index(tmp_path_factory.mktemp("made") / "my.index").path


@pytest.fixture
def index(made, tmp_path) -> Index:
    return Index.open(shutil.copytree(made, tmp_path / "my.index"))


@pytest.fixture
def transport(index) -> FaultyTransport:
    return FaultyTransport(index.path, 3)


@pytest.fixture
def searcher(index, transport):
    with DistributedSearcher(index, transport=transport) as searcher:
        yield searcher


def answers(searcher: Searcher) -> list[tuple]:
    return [answer_of(searcher.search(asked(seed, RARE), 10, feedback=PRF)) for seed in range(3)]


def alone(index: Index) -> list[tuple]:
    with Searcher(Index.open(index.path)) as searcher:
        return answers(searcher)


def test_segments_are_divided_into_runs_of_like_sizes(index):
    manifest = index.snapshot.manifest
    sizes = [40, 10, 30, 20, 20]
    sized = tuple(replace(manifest.segments[0], name=str(size), num_vectors=size) for size in sizes)
    divided = divide(replace(manifest, segments=sized), sizes, 3)
    assert [[segment.num_vectors for segment in part.segments] for part in divided] == [[40], [10, 30], [20, 20]]
    few = divide(replace(manifest, segments=sized[:2]), sizes[:2], 4)
    assert [len(part.segments) for part in few] == [1, 1, 0, 0]
    for count in range(1, 8):
        parts = divide(manifest, [1] * 5, count)
        assert len(parts) == count
        assert tuple(segment for part in parts for segment in part.segments) == manifest.segments
        assert all(part.segments for part in parts[: len(manifest.segments)])


def test_more_shards_than_segments_are_refused(index):
    with pytest.raises(InputError, match="shards must be at most the number of segments, 5, found 6"):
        check_division(index.snapshot.manifest, 6)
    with pytest.raises(InputError, match="shards must be at least 1, found 0"):
        check_division(index.snapshot.manifest, 0)


def test_shards_without_segments_answer_nothing_and_hurt_nobody(index):
    with DistributedSearcher(index, transport=LocalTransport(index.path, 7)) as searcher:
        assert answers(searcher) == alone(index)


def test_all_shards_move_to_the_newest_generation_together(index, searcher):
    before = alone(index)
    index.add_vectors(documents(seed=9, count=60, first=2000))
    index.delete(["d2", "d600"])
    assert answers(searcher) == before  # until it is told
    searcher.reload()
    assert answers(searcher) == alone(index) != before
    index.merge()
    searcher.reload()
    assert len(index.segments) == 1
    assert answers(searcher) == alone(index)


def test_a_search_under_way_ends_in_its_generation(index, searcher):
    before, options = alone(index)[0], {"feedback": PRF}
    query = asked(0, RARE)
    collection = searcher.index.snapshot
    index.delete(searcher.search(query, 3).doc_ids)
    searcher.reload()
    searcher.index._snapshot, newest = collection, searcher.index.snapshot
    assert answer_of(searcher.search(query, 10, **options)) == before
    searcher.index._snapshot = newest
    assert answer_of(searcher.search(query, 10, **options)) == alone(index)[0] != before


def test_a_restarted_shard_opens_the_generation_of_the_search(index, transport, searcher):
    before = alone(index)
    index.add_vectors(documents(seed=9, count=60, first=2000))
    transport.restart(1)
    assert answers(searcher) == before


def test_where_the_files_of_a_generation_are_gone_the_newest_is_searched(index, transport, searcher):
    index.delete(["d2"])
    index.merge()
    transport.restart(1)
    assert answers(searcher) == alone(index)
    assert searcher.index.generation == index.generation


def test_a_new_generation_that_a_shard_does_not_open_is_not_searched(index, transport, searcher):
    before = alone(index)
    index.delete(["d2"])
    transport.silent.add(2)
    with pytest.raises(ShardError, match="shard 3 of 3"):
        searcher.reload()
    transport.silent.clear()
    assert answers(searcher) == before


@pytest.mark.parametrize("feedback", [None, PRF], ids=["first pass", "feedback"])
def test_a_shard_that_falls_silent_anywhere_is_an_error_or_left_out(index, transport, searcher, feedback):
    """An answer without a shard is that of one machine which may find the documents of the others alone."""
    query, snapshot, live = asked(1, RARE), index.snapshot, index.snapshot.live
    start, end = searcher.index.snapshot.asking.starts[1:3]
    others = [snapshot.doc_id(at) for at in range(len(live)) if live[at] and not start <= at < end]
    with Searcher(index) as one:
        expected = answer_of(one.search(query, 10, feedback=feedback, allowed=others))
    transport.rounds = 0
    searcher.search(query, 10, feedback=feedback)
    rounds = transport.rounds
    for silent_after in range(rounds + 1):
        transport.silent_after = {1: silent_after}
        transport.silent.clear()
        ranking = searcher.search(query, 10, feedback=feedback, partial=True)
        assert ranking.shards in ((3, 2), (3, 3))
        if ranking.shards == (3, 2):
            assert answer_of(ranking) == expected
            with pytest.raises(ShardError, match=r"shard 2 of 3 \(segment-0+2-0+ to .*\) does not answer"):
                searcher.search(query, 10, feedback=feedback)
    assert ranking.shards == (3, 3)


def test_nothing_is_answered_where_no_shard_answers(transport, searcher):
    transport.silent |= {0, 1, 2}
    with pytest.raises(ShardError, match=r"shard 1 of 3 .* does not answer, nor do 2 others"):
        searcher.search(asked(1), 10, partial=True)


def test_documents_a_person_marked_are_not_left_out_in_silence(transport, searcher):
    transport.silent.add(2)
    with pytest.raises(ShardError, match="documents of it are needed"):
        searcher.search(asked(1), 10, partial=True, feedback=PRF, relevant=["d899"])


def test_a_damaged_file_is_named(index, transport, searcher):
    damaged = index.path / index.segments[-1].info.name / "list_offsets.npy"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    transport.restart(2)
    for partial in (False, True):
        with pytest.raises(IndexFormatError, match=r"list_offsets\.npy"):
            searcher.search(asked(1), 10, partial=partial)


def test_a_search_takes_few_round_trips(transport, searcher):
    """Every question goes to all shards at once: one for the candidates, few for what they leave open."""
    for feedback, most in ((None, 4), (ColbertPRF(rerank=True), 7), (ColbertPRF(), 9)):
        for seed in range(20):
            transport.rounds = 0
            searcher.search(asked(seed, RARE), 10, feedback=feedback)
            assert transport.rounds <= most


def test_passages_are_ranked_by_document_as_on_one_machine(tmp_path, encoder):
    texts = [(f"d{number}", f"Goldfish number {number} grows. " * (4 + number)) for number in range(8)]
    index = Index.create(tmp_path / "my.index", texts[:6], encoder=encoder, passages=Passages(16), progress=False)
    index.add(texts[6:])
    with (
        Searcher(index) as one,
        DistributedSearcher(index.path, transport=LocalTransport(index.path, 2), encoder=encoder) as searcher,
    ):
        for options in ({"group": "document"}, {"allowed": ["d7", "d2#1"]}, {"group": "document", "feedback": PRF}):
            expected, found = (each.search("how large do goldfish grow", 3, **options) for each in (one, searcher))
            assert answer_of(found) == answer_of(expected)


def test_bad_input_is_refused_as_by_one_machine(index, transport, searcher):
    with Searcher(index) as one:
        for options in (
            {"where": {"colour": "red"}},
            {"where": {"year": "garden"}},
            {"allowed": ["d2", "nowhere"]},
            {"k": 0},
            {"group": "document"},
            {"relevant": ["d2"]},
        ):
            refused = []
            for each in (one, searcher):
                with pytest.raises(InputError) as raised:
                    each.search(asked(1), **options)
                refused.append(str(raised.value))
            assert refused[0] == refused[1]
    for options, message in (
        ({"preset": "paper"}, "has no presets"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0, found 0"),
        ({"shards": 2}, "shards is 2, the transport has 3"),
        ({"in_flight": 0}, "in_flight must be at least 1"),
    ):
        with pytest.raises(InputError, match=message):
            DistributedSearcher(index, transport=transport, **options)
