"""Hard negatives: passages a search finds for a question although they are not its answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from colbert_prf.errors import InputError, require_positive
from colbert_prf.search.retriever import Retriever
from colbert_prf.training.examples import Example

__all__ = ["Found", "Mining", "find_in_run", "find_with", "mine_negatives"]

Found = Callable[[str], Sequence[tuple[str, float]]]
"""A question to the passages found for it, texts with scores, best first."""


@dataclass(frozen=True, kw_only=True)
class Mining:
    """Which of the passages found become negatives.

    Parameters
    ----------
    negatives
        Per example.
    depth
        They are drawn at random from the best so many.
    skip
        Ranks passed over at the top, where answers that nobody marked are most frequent.
    ceiling
        Pass over what scores more than this share of the positive's score, for the same reason; 1 keeps all but what
        beats the positive, None keeps everything. It has no effect where the positive was not found.
    seed
        Of the drawing.
    """

    negatives: int = 7
    depth: int = 100
    skip: int = 0
    ceiling: float | None = None
    seed: int = 42

    def __post_init__(self) -> None:
        require_positive(negatives=self.negatives)
        if self.skip < 0 or self.depth < self.skip + self.negatives:
            raise InputError(
                f"depth must be at least skip + negatives = {self.skip + self.negatives}, with skip at least 0, found "
                f"depth {self.depth} and skip {self.skip}"
            )
        if self.ceiling is not None and self.ceiling <= 0:
            raise InputError(f"ceiling must be positive, found {self.ceiling}")


def mine_negatives(examples: Iterable[Example], found: Found, mining: Mining) -> Iterator[Example]:
    """Give each positive negatives of its question's ranking; those it had are dropped.

    A passage that is a positive of the question in any example is never a negative of it, texts compared without regard
    to spaces. An example for which too few passages are left is dropped. The drawing depends on the seed and the
    question alone, not on the order of the examples.

    Parameters
    ----------
    examples
        Questions with their positives, first in ``documents``.
    found
        The search to mine.
    mining
        Which ones to take.

    Examples
    --------
    >>> ranking = [("Goldfish grow.", 9.0), ("Goldfish are fish.", 8.0), ("Koi grow old.", 7.0)]
    >>> asked = [Example("do goldfish grow", ("Goldfish  grow.",))]
    >>> list(mine_negatives(asked, lambda query: ranking, Mining(negatives=1, depth=2)))
    [Example(query='do goldfish grow', documents=('Goldfish  grow.', 'Goldfish are fish.'), scores=())]
    """
    examples = list(examples)
    positives: dict[str, set[str]] = {}
    for example in examples:
        positives.setdefault(example.query, set()).add(_plain(example.documents[0]))
    rankings: dict[str, Sequence[tuple[str, float]]] = {}
    for example in examples:
        query, positive = example.query, example.documents[0]
        if query not in rankings:
            rankings = {query: found(query)[: mining.depth]}  # the last one only: examples of a question stand together
        left = _eligible(rankings[query], _plain(positive), positives[query], mining)
        if len(left) >= mining.negatives:
            drawn = random.Random(f"{mining.seed} {query}").sample(left, mining.negatives)
            yield Example(query, (positive, *drawn))


def find_with(retriever: Retriever, depth: int) -> Found:
    """Search an index, or whatever a :class:`Retriever` is; it must give texts."""

    def found(query: str) -> list[tuple[str, float]]:
        hits = [(hit.text, hit.score) for hit in retriever.search(query, depth)]
        texts = [(text, score) for text, score in hits if text is not None]
        if len(texts) < len(hits):
            raise InputError("the index keeps no texts, which negatives are made of; index the corpus with its texts")
        return texts

    return found


def find_in_run(
    run: Mapping[str, Mapping[str, float]], queries: Mapping[str, str], collection: Mapping[str, str]
) -> Found:
    """Look questions up in the rankings of any system, such as BM25's, given as a TREC run.

    Parameters
    ----------
    run
        Scores by query id and document id, as :func:`~colbert_prf.datasets.read_run` gives them.
    queries, collection
        Texts by id.
    """
    by_text: dict[str, list[tuple[str, float]]] = {}
    for query_id, scores in run.items():
        if query_id not in queries:
            continue
        if unknown := next((doc_id for doc_id in scores if doc_id not in collection), None):
            raise InputError(f"the run has document {unknown!r} for query {query_id!r}, which is not in the collection")
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        by_text[queries[query_id]] = [(collection[doc_id], score) for doc_id, score in ranked]
    return lambda query: by_text.get(query, [])


def _eligible(ranking: Sequence[tuple[str, float]], positive: str, positives: set[str], mining: Mining) -> list[str]:
    ceiling = float("inf")
    if mining.ceiling is not None:
        share = 1 - mining.ceiling
        ceiling = next((score - share * abs(score) for text, score in ranking if _plain(text) == positive), ceiling)
    seen = set(positives)
    left = []
    for text, score in ranking[mining.skip :]:
        plain = _plain(text)
        if plain and plain not in seen and score <= ceiling:
            seen.add(plain)
            left.append(text)
    return left


def _plain(text: str) -> str:
    return " ".join(text.split())
