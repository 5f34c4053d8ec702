"""A first pass that is searched once and expanded in many ways: what a study of parameters needs."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from colbert_prf.feedback import ColbertPRF
from colbert_prf.index import Index
from colbert_prf.search.effort import Effort
from colbert_prf.search.engine import Found, default_probes, default_rescore
from colbert_prf.search.first_pass import CompressedPass
from colbert_prf.types import EncodedQuery, Expansion, Hit, Ranking

__all__ = ["KeptFirstPass", "trimmed"]


class KeptFirstPass:
    """One query, searched once; each clustering of its best documents is made once.

    Parameters
    ----------
    index
        What to search.
    query
        Encoded.
    k
        Documents per ranking, at least as many as feedback learns from.
    threads, executor
        What to compute with.
    """

    def __init__(self, index: Index, query: EncodedQuery, k: int, *, threads: int, executor: Executor) -> None:
        effort = Effort(
            probes=default_probes(k, index.num_vectors),
            rescore=default_rescore(k),
            threads=threads,
            executor=executor,
            timings={},
            widen=True,
        )
        self._index, self._query, self._k, self._effort = index, query, k, effort
        self._first = CompressedPass(index.snapshot, query, k, effort, None)
        self._first.finish()
        self._found = self._first.best(k)
        self._expansions: dict[ColbertPRF, Expansion] = {}

    @property
    def scores(self) -> dict[str, float]:
        """The documents of the first pass."""
        return self._scores(self._found)

    def scores_again(self, method: ColbertPRF) -> dict[str, float]:
        """The documents after feedback, as a search with this method finds them."""
        expansion = trimmed(self._clustered(method), method)
        if not len(expansion):
            return self.scores
        if method.rerank:
            return self._scores(self._first.score_again(expansion, self._k, method.rerank_depth))
        return self._scores(self._first.find_again(expansion, self._k, None))

    def _clustered(self, method: ColbertPRF) -> Expansion:
        """Every representative of the documents it learns from: what f_e, weights and the second pass do not change."""
        key = replace(method, expansion_vectors=method.clusters, weight=1.0, beta=None, rerank=False)
        if key not in self._expansions:
            found = self._found
            hits = map(Hit, self._index.snapshot.doc_ids_of(found.positions), found.scores.tolist())
            ranking = Ranking(self._query, tuple(hits))
            self._expansions[key] = key.expand(self._query, ranking, self._index.snapshot, workers=self._effort.workers)
        return self._expansions[key]

    def _scores(self, found: Found) -> dict[str, float]:
        doc_ids = self._index.snapshot.doc_ids_of(found.positions)
        return dict(zip(doc_ids, found.scores.tolist(), strict=True))


def trimmed(expansion: Expansion, method: ColbertPRF) -> Expansion:
    """The first vectors of an expansion, as many and as heavy as a method wants; they come by falling σ."""
    kept, start, query = expansion.vectors[: method.expansion_vectors], expansion.num_original, expansion.query
    if not kept:
        return expansion
    end = start + len(kept)
    original = EncodedQuery(query.token_ids[:start], query.vectors[:start], query.weights[:start])
    weights = method.weights_of(original, np.array([vector.sigma for vector in kept]))
    whole = EncodedQuery(query.token_ids[:end], query.vectors[:end], np.concatenate([original.weights, weights]))
    vectors = tuple(replace(one, weight=float(weight)) for one, weight in zip(kept, weights, strict=True))
    return Expansion(whole, vectors, expansion.feedback)
