"""Answers of a server as the rankings that the command line shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from colbert_prf.feedback import Feedback
from colbert_prf.search.grouping import Group
from colbert_prf.search.spelling import Spelling
from colbert_prf.types import EncodedQuery, Expansion, ExpansionVector, Explanation, Hit, Match, Ranking

if TYPE_CHECKING:
    from colbert_prf.server.schemas import ExpansionAnswer, ExplainedHit, SearchHit, SearchResult

__all__ = ["Answer", "is_address", "search_remotely"]


class Answer(NamedTuple):
    """An answer: the ranking, what spells its token ids, and the explanations if there are any."""

    ranking: Ranking
    tokens: Spelling
    explanations: list[Explanation]


def is_address(source: str) -> bool:
    """Whether a source is an index of a server, not a folder or a file."""
    return source.startswith(("http://", "https://"))


def search_remotely(
    address: str,
    queries: Iterable[str],
    k: int,
    *,
    feedback: Feedback | None,
    relevant: Sequence[str],
    non_relevant: Sequence[str],
    feedback_texts: Sequence[str],
    with_passages: bool,
    where: Mapping[str, Any] | None,
    group: Group | None,
    exact: bool,
    explain: bool,
    key: str | None,
) -> Iterator[Answer]:
    """Ask a server, one query after the other."""
    from colbert_prf.client import Client, SearchOptions

    options: SearchOptions = {"explain": explain, "exact": exact, "where": where, "group": group, "fields": ["*"]}
    if feedback is not None:
        options |= {"feedback": feedback, "relevant": relevant, "non_relevant": non_relevant}
        options |= {"feedback_texts": feedback_texts, "with_passages": with_passages}
    with Client(address, key=key) as client:
        for text in queries:
            yield _remote(client.search(text, k, **options))


def _remote(result: SearchResult) -> Answer:
    words = _Words()
    before = tuple(_hit(hit) for hit in result.before or ())
    original = _query(words.ids(token.token for token in result.tokens), [token.weight for token in result.tokens])
    expansion = None if result.expansion is None else _expansion(result.expansion, original, words)
    ranking = Ranking(
        original if expansion is None else expansion.query,
        tuple(_hit(hit) for hit in result.hits),
        {timing.stage: timing.milliseconds / 1000 for timing in result.timings},
        expansion,
        None if result.before is None else partial(Ranking, original, before),
    )
    explanations = [_explanation(hit.explanation, words) for hit in result.hits if hit.explanation is not None]
    return Answer(ranking, words.spell, explanations)


class _Words:
    """Tokens by numbers of our own: a server tells words, and what shows rankings wants ids."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def ids(self, tokens: Iterable[str]) -> list[int]:
        return [self._numbers.setdefault(token, len(self._numbers)) for token in tokens]

    def spell(self, token_ids: Iterable[int]) -> list[str]:
        words = list(self._numbers)
        return [words[token_id] for token_id in token_ids]


def _hit(hit: SearchHit) -> Hit:
    return Hit(hit.doc_id, hit.score, lambda: hit.text, lambda: hit.metadata or {}, hit.passage_id)


def _query(token_ids: Sequence[int], weights: Sequence[float]) -> EncodedQuery:
    """A query to be shown: tokens and weights, without its vectors, which a server does not tell."""
    vectors = np.zeros((len(token_ids), 1), dtype=np.float32)
    return EncodedQuery(np.array(token_ids, dtype=np.int32), vectors, np.array(weights, dtype=np.float32))


def _expansion(answer: ExpansionAnswer, original: EncodedQuery, words: _Words) -> Expansion:
    vectors = [
        ExpansionVector(
            words.ids([vector.token])[0],
            tuple(zip(words.ids(t.token for t in vector.likely), (t.probability for t in vector.likely), strict=True)),
            vector.sigma,
            vector.weight,
            tuple((source.doc_id, source.position) for source in vector.sources),
        )
        for vector in answer.vectors
    ]
    token_ids = [*original.token_ids.tolist(), *(vector.token_id for vector in vectors)]
    weights = [*original.weights.tolist(), *(vector.weight for vector in vectors)]
    return Expansion(_query(token_ids, weights), vectors, tuple(answer.feedback))


def _explanation(explained: ExplainedHit, words: _Words) -> Explanation:
    names = zip(
        words.ids(match.token for match in explained.matches),
        words.ids(match.matched for match in explained.matches),
        explained.matches,
        strict=True,
    )
    matches = (
        Match(query_token_id, token_id, match.position, match.similarity, match.weight)
        for query_token_id, token_id, match in names
    )
    return Explanation(explained.doc_id, tuple(matches))
