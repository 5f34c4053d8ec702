"""DeepCT: how much each word of a text matters, written into a lexical index as frequencies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import tee

from colbert_prf.baselines.lexical.analysis import Analyzer
from colbert_prf.errors import InputError

__all__ = ["TermWeigher", "query_term_recall", "scaled_frequencies", "weighted_documents"]

SCALE = 100


class TermWeigher(ABC):
    """Tells how much the words of texts matter, each in its context."""

    @abstractmethod
    def weights(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[list[tuple[str, float]]]:
        """The words of each text, in lower case and in order, with their weights, some 0 to 1.

        Parameters
        ----------
        texts
            Read as needed.
        progress
            Called with the number of texts just finished.
        """


def query_term_recall(text: str, queries: Sequence[str], analyzer: Analyzer) -> dict[str, float]:
    """What a text's terms should weigh: the share of the queries it answers that have the term.

    Parameters
    ----------
    text
        A passage.
    queries
        Queries it is relevant to, at least one.
    analyzer
        What makes terms of both.

    Returns
    -------
    dict
        Of every term of the text, 0 where no query has it.

    Examples
    --------
    >>> query_term_recall("Goldfish grow in a tank.", ["do goldfish grow", "goldfish bowl"], Analyzer())
    {'goldfish': 1.0, 'grow': 0.5, 'tank': 0.0}

    References
    ----------
    Dai, Callan: Context-Aware Term Weighting For First Stage Passage Retrieval, SIGIR 2020.
    """
    if not queries:
        raise InputError("term recall needs at least one query that the text answers, found none")
    asked = [set(analyzer.terms(query)) for query in queries]
    return {term: sum(term in terms for terms in asked) / len(asked) for term in analyzer.terms(text)}


def scaled_frequencies(
    weights: Iterable[tuple[str, float]], analyzer: Analyzer, *, scale: float = SCALE
) -> dict[str, int]:
    """Weights as frequencies: ``round(scale · w)``, the largest of a term's words; none where that is not positive.

    Examples
    --------
    >>> scaled_frequencies([("goldfish", 0.714), ("grow", 0.2), ("grows", 0.31), ("the", 0.9), ("so", -1)], Analyzer())
    {'goldfish': 71, 'grow': 31}
    """
    found: dict[str, int] = {}
    for word, weight in weights:
        term, frequency = analyzer.term(word), round(scale * weight)
        if term and frequency > found.get(term, 0):
            found[term] = frequency
    return found


def weighted_documents(
    documents: Iterable[tuple[str, str]],
    weigher: TermWeigher,
    *,
    analyzer: Analyzer | None = None,
    scale: float = SCALE,
    progress: Callable[[int], object] | None = None,
) -> Iterator[tuple[str, Mapping[str, int], str]]:
    """Documents as a lexical index takes them, with learned weights in place of counts.

    Parameters
    ----------
    documents
        Pairs of id and text. Read once.
    weigher
        The model.
    analyzer
        That of the index to be.
    scale
        The frequency of a term of weight 1.
    progress
        Called with the number of documents just finished.

    Yields
    ------
    doc_id, frequencies, text
        For :meth:`LexicalIndex.create_from_terms`.
    """
    if scale <= 0:
        raise InputError(f"scale must be positive, found {scale}")
    analyzer = analyzer or Analyzer()
    first, second = tee(documents)  # a weigher reads a few texts ahead, so that few wait
    weights = weigher.weights((text for _, text in first), progress=progress)
    for (doc_id, text), found in zip(second, weights, strict=True):
        yield doc_id, scaled_frequencies(found, analyzer, scale=scale), text


def words_of(tokens: Sequence[str]) -> list[tuple[str, int]]:
    """Join WordPiece tokens into words, each with the place of its first token.

    >>> words_of(["gold", "##fish", "grow", "."])
    [('goldfish', 0), ('grow', 2), ('.', 3)]
    """
    words: list[tuple[str, int]] = []
    for place, token in enumerate(tokens):
        if token.startswith("##") and words:
            words[-1] = (words[-1][0] + token[2:], words[-1][1])
        else:
            words.append((token, place))
    return words
