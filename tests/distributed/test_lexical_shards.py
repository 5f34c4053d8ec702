"""BM25 over shards is BM25 over the same folder, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import Index
from colbert_prf.baselines.lexical import BM25, LexicalIndex
from colbert_prf.baselines.lexical.rm3 import RM3
from colbert_prf.distributed.lexical import DistributedBM25
from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.distributed.transport import LocalTransport

WORDS = "goldfish tank water bank rates carp pond bowl filter river loan year fish grow life old".split()


@pytest.fixture(scope="module")
def index(tmp_path_factory, encoder) -> Index:
    """Three lexical segments, because the lexical index follows each change."""
    random = np.random.default_rng(4)
    words = [" ".join(random.choice(WORDS, random.integers(2, 9))) for _ in range(60)]
    texts = [(f"d{number}", text, {"number": number}) for number, text in enumerate(words)]
    index = Index.create(tmp_path_factory.mktemp("terms") / "my.index", texts[:25], encoder=encoder, progress=False)
    for first in (25, 45):
        LexicalIndex.of(index, progress=False)
        index.add(texts[first : first + 20])
    index.delete(["d3", "d40"])
    LexicalIndex.of(index, progress=False)
    return index


OPTIONS = {"plain": {}, "rm3": {"feedback": RM3()}, "lucene": {"idf": "lucene", "k3": None}}
OPTIONS["filtered"] = {"where": {"number": {">=": 15, "<": 50}}}


@pytest.mark.parametrize("num_shards", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_answers_are_the_same(index, encoder, num_shards, options):
    transport = LocalTransport(index.path, num_shards)
    with DistributedSearcher(index.path, transport=transport, encoder=encoder) as searcher:
        alone, sharded = BM25(LexicalIndex.of(index), **options), DistributedBM25(searcher, **options)
        for query in ("goldfish in a pond", "rates of the bank", "old carp, old river", "nothing of that"):
            for k in (1, 10, 100):
                one, other = alone.search(query, k), sharded.search(query, k)
                assert (other.doc_ids, other.scores, other.texts) == (one.doc_ids, one.scores, one.texts)
                assert other.term_expansion == one.term_expansion
        assert sharded.explain("old goldfish", "d30") == alone.explain("old goldfish", "d30")
        searcher.search("goldfish", 3)  # both kinds of generation stay open
