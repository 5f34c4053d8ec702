"""BM25 over shards: each scores the documents of its segments of the lexical index, with the numbers of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from colbert_prf.baselines.lexical.bm25 import BM25
from colbert_prf.baselines.lexical.index import LexicalIndex
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.baselines.lexical.term_scores import BestDocuments, CollectionTerms
from colbert_prf.distributed.asking import Asking
from colbert_prf.distributed.division import divide
from colbert_prf.distributed.messages import GenerationKey
from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.index import Index
from colbert_prf.kernels import topk
from colbert_prf.search.scorer import Mask

__all__ = ["DistributedBM25"]


class DistributedBM25(BM25):
    """BM25 over the texts of an index that is searched by shards; its answers are those of :class:`BM25`.

    The lexical index stands in the folder of the index, and is made there at the first use. Its segments are divided
    among the shards of the searcher, which score; feedback and explanations are computed here, from the same folder.

    Parameters
    ----------
    searcher
        Has the shards. All of them must answer, whatever its ``partial``.
    options
        As in :class:`BM25`.
    """

    def __init__(self, searcher: DistributedSearcher, **options: Any) -> None:
        index = LexicalIndex.of(cast(Index, searcher.index), progress=False)
        super().__init__(index, **options)
        manifest, transport = index.snapshot.manifest, searcher.transport
        sizes = [segment.num_documents for segment in manifest.segments]
        key = GenerationKey(manifest.generation, manifest.digest)
        parts = tuple(divide(manifest, sizes, transport.num_shards))
        self._asking = Asking(transport, index.snapshot.layout, key, parts, searcher.index.snapshot.asking.timeout)

    def _found(self, snapshot: LexicalSnapshot, terms: Mapping[str, float], k: int, mask: Mask) -> BestDocuments:
        names = sorted(terms)
        counts = sum(self._asking.ask_all("document_frequencies", names).values(), np.zeros(len(names), np.int64))
        frequencies = dict(zip(names, counts.tolist(), strict=True))
        collection = CollectionTerms(snapshot.num_documents, snapshot.average_length, frequencies)
        starts = self._asking.starts
        masks = {
            shard: None if mask is None else mask[slice(*starts[shard : shard + 2])] for shard in self._asking.shards
        }
        questions = {shard: (dict(terms), k, self.formula, collection, masks[shard]) for shard in self._asking.shards}
        answers = self._asking.ask("best_documents", questions)
        positions = [answer.positions + starts[shard] for shard, answer in answers.items()]
        joined = np.concatenate([np.empty(0, np.int64), *positions])
        scores = np.concatenate([np.empty(0), *(answer.scores for answer in answers.values())])
        order = topk.best_sorted(scores, k)
        return BestDocuments(joined[order], scores[order])
