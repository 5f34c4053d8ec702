"""Candidates and scorers over shards: what both passes of a search ask, put to all shards at once.

Both are those of one machine, see :mod:`colbert_prf.search.candidates`, divided by segments: a document has the same
scores wherever it is, and the best of all are among the best of each shard. An answer brings along what will probably
be asked next, so that a pass takes few round trips:

- the best candidates come with exact scores of the first of them, as many as are expected of a shard;
- further candidates come with their exact scores, or in a second pass with the approximate scores of the added vectors;
- a question whose answer is among the documents that came before is not sent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from colbert_prf.distributed.asking import Asked, Asking
from colbert_prf.distributed.messages import AskedPass, AskedQuery, Best, More
from colbert_prf.kernels import topk
from colbert_prf.search.candidates import Candidates
from colbert_prf.search.scorer import Positions, ScoredDocuments, Scorer, Scores, Scoring
from colbert_prf.search.shortlist import heaviest
from colbert_prf.types import EncodedQuery

__all__ = ["Known", "ShardedCandidates", "ShardedScorer"]

AHEAD, AHEAD_AT_LEAST = 1.25, 16
"""A shard scores so many times its share of the best documents before it is asked to, and some more."""
NOTHING = ScoredDocuments(np.empty(0, np.int64), np.empty(0, np.float32))


class Known:
    """Scores of documents that came with other answers.

    Examples
    --------
    >>> known = Known()
    >>> known.add(np.array([3, 7]), np.array([0.5, np.nan], np.float32))
    >>> known.add(np.array([5]), np.array([0.25], np.float32))
    >>> known.of(np.array([3, 4, 5, 7])).tolist()
    [0.5, nan, 0.25, nan]
    """

    def __init__(self) -> None:
        self._positions, self._scores = NOTHING

    def add(self, positions: Positions, scores: Scores) -> None:
        """Keep scores; NaN stands for none."""
        there = ~np.isnan(scores)
        positions, rows = np.unique(np.concatenate([self._positions, positions[there]]), return_index=True)
        self._positions, self._scores = positions, np.concatenate([self._scores, scores[there]])[rows]

    def of(self, positions: Positions) -> Scores:
        """The scores of some documents; NaN where they are not known."""
        if not len(self._positions):
            return np.full(len(positions), np.nan, np.float32)
        rows = np.minimum(np.searchsorted(self._positions, positions), len(self._positions) - 1)
        return np.where(self._positions[rows] == positions, self._scores[rows], np.float32(np.nan))


class ShardedScoring(NamedTuple):
    """Documents that shards are scoring: ``scores`` of all, NaN for those the shards were asked for."""

    scores: Scores
    asked: Asked | None

    def finish(self) -> Scores:
        """Wait for the shards."""
        if self.asked is not None:
            answers = self.asked.answers()
            parts = [answers[shard] for shard in self.asked.sent]
            self.scores[np.isnan(self.scores)] = np.concatenate(parts)
        return self.scores


class ShardedScorer(Scorer):
    """Compares documents of all shards with a query.

    Parameters
    ----------
    asking
        The shards.
    query
        What it compares with.
    """

    def __init__(self, asking: Asking, query: AskedQuery) -> None:
        self._asking = asking
        self.query = query
        self.exact, self.approximate = Known(), Known()

    def estimates(self, positions: Positions) -> Scores:
        """Approximate scores of some documents."""
        return self._begin("estimates", positions, self.approximate).finish()

    def scores(self, positions: Positions) -> Scores:
        """Exact scores of some documents."""
        return self.begin(positions).finish()

    def begin(self, positions: Positions) -> Scoring:
        """As :meth:`scores`, but only have the shards begin."""
        return self._begin("scores", positions, self.exact)

    def _begin(self, method: str, positions: Positions, known: Known) -> ShardedScoring:
        scores = known.of(positions)
        missing = positions[np.isnan(scores)]
        if not len(missing):
            return ShardedScoring(scores, None)
        questions = {shard: (self.query, local) for shard, local in self._asking.split(missing).items() if len(local)}
        return ShardedScoring(scores, self._asking.begin(method, questions))


@dataclass(eq=False)
class Seen:
    """The candidates that shards have told of; those they have not have no approximate score above ``bound``.

    ``rare`` are those with the rarest tokens, once the shards have told.
    """

    documents: ScoredDocuments = NOTHING
    bound: float = math.inf
    rare: ScoredDocuments | None = None

    def add(self, documents: ScoredDocuments) -> None:
        """Add documents."""
        self.documents = self.documents.union(documents)


@dataclass(frozen=True, eq=False)
class ShardedCandidates(Candidates):
    """Over the shards of a generation.

    Parameters
    ----------
    asking
        The shards.
    passes
        The first pass as each shard is asked for it.
    original
        The scorer of the query.
    added
        That of the vectors which feedback has added, if their candidates count as well.
    """

    asking: Asking
    passes: dict[int, AskedPass]
    original: ShardedScorer
    added: ShardedScorer | None = None
    seen: Seen = field(default_factory=Seen)

    @property
    def scorer(self) -> Scorer:
        """Compares documents with the query."""
        return self.original

    def scorer_of(self, query: EncodedQuery) -> ShardedScorer:
        """Compares documents with another query."""
        return ShardedScorer(self.asking, AskedQuery(uuid4().hex, query, self.original.query.threads))

    def best(self, count: int) -> ScoredDocuments:
        """Those of the best approximate scores."""
        starts = self.asking.starts
        share = np.diff(starts) / max(1, int(starts[-1]))
        questions = {
            shard: (asked, count, min(count, math.ceil(AHEAD * count * share[shard]) + AHEAD_AT_LEAST))
            for shard, asked in self.passes.items()
        }
        answers: dict[int, Best] = self.asking.ask("best", questions)
        found = self._joined({shard: answer.documents for shard, answer in answers.items()})
        rare = self._joined({shard: answer.rare for shard, answer in answers.items()})
        parts = answers.values()
        self.original.exact.add(found.positions, _concatenated([answer.exact for answer in parts]))
        self.original.exact.add(rare.positions, _concatenated([answer.exact_rare for answer in parts]))
        rows = heaviest(_concatenated([answer.rarities for answer in parts]), rare.scores)
        self.seen.rare = ScoredDocuments(rare.positions[rows], rare.scores[rows])
        self.seen.add(found.union(rare))
        self.seen.bound = max((answer.bound for answer in parts), default=-math.inf)
        return _best_of(found, count)

    def with_rare_tokens(self) -> ScoredDocuments:
        """Those with the rarest tokens of the query, which came with the best."""
        assert self.seen.rare is not None, "the best candidates come first"
        return self.seen.rare

    def at_least(self, score: float, *, besides: Positions, most: int | None = None) -> ScoredDocuments:
        """Those of at least an approximate score, except some."""
        # A little less, as in StoredCandidates.
        least = float(np.float32(max(score - 1e-3, float(np.finfo(np.float32).min))))
        if least > self.seen.bound:
            positions, scores = self.seen.documents
            rows = np.flatnonzero((scores >= least) & ~np.isin(positions, besides, assume_unique=True))
            found = ScoredDocuments(positions[rows], scores[rows])
        else:
            found = self._asked_for(score, besides, most)
            self.seen.add(found)
            if most is None or len(found.positions) < most:
                self.seen.bound = math.nextafter(least, -math.inf)
        return found if most is None else _best_of(found, most)

    def extended(self, scorer: Scorer) -> ShardedCandidates:
        """These and the candidates of another query."""
        assert isinstance(scorer, ShardedScorer)
        everything = all(asked.budget.probes is None for asked in self.passes.values())
        return replace(self, added=scorer, seen=self.seen if everything else Seen())

    def _asked_for(self, score: float, besides: Positions, most: int | None) -> ScoredDocuments:
        added = None if self.added is None else self.added.query
        split = self.asking.split(besides)
        questions = {shard: (asked, score, split[shard], most, added) for shard, asked in self.passes.items()}
        answers: dict[int, More] = self.asking.ask("at_least", questions)
        found = self._joined({shard: answer.documents for shard, answer in answers.items()})
        known = self.original.exact if self.added is None else self.added.approximate
        known.add(found.positions, _concatenated([answer.values for answer in answers.values()]))
        return found

    def _joined(self, parts: dict[int, ScoredDocuments]) -> ScoredDocuments:
        """Documents of shards, in the order of the shards, by their positions in the index."""
        starts = self.asking.starts
        positions = [documents.positions + starts[shard] for shard, documents in parts.items()]
        return ScoredDocuments(
            np.concatenate([NOTHING.positions, *positions]),
            _concatenated([documents.scores for documents in parts.values()]),
        )


def _concatenated(parts: list[Scores]) -> Scores:
    return np.concatenate([NOTHING.scores, *parts])


def _best_of(documents: ScoredDocuments, count: int) -> ScoredDocuments:
    rows = topk.best(documents.scores, count)
    return ScoredDocuments(documents.positions[rows], documents.scores[rows])
