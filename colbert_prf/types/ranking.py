"""The answer to one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, overload

from colbert_prf.errors import InputError, MissingExtraError
from colbert_prf.types.encoded import EncodedQuery
from colbert_prf.types.expansion import Expansion
from colbert_prf.types.hits import Hit, Hits
from colbert_prf.types.terms import TermExpansion

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ranking", "Shards"]

HITS_IN_REPR = 3


class Shards(NamedTuple):
    """The shards of a distributed search: all there are, and those that answered."""

    total: int
    answered: int


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """The answer to one query: hits from best to worst, and how long each stage took.

    A ranking is a sequence of its hits: ``ranking[0]`` is the best hit, ``ranking[:3]`` the ranking of the best three.

    Parameters
    ----------
    query
        The query as it was searched: encoded, or the text if the system searches without ColBERT's vectors.
    hits
        From best to worst; hits of equal score are in index order.
    timings
        Seconds per stage, in the order in which the stages ran.
    expansion
        What feedback added to the query, if the search used feedback.
    read_before
        Returns the ranking before feedback; :attr:`before` calls it once.
    term_expansion
        The query of terms before and after feedback, if a lexical system used feedback.
    shards
        How many shards the index is divided into and how many of them answered, if the search was distributed.

    Examples
    --------
    >>> ranking = Ranking("do goldfish grow", (Hit("d1", 0.9), Hit("d2", 0.5)))
    >>> ranking.doc_ids, ranking.scores, ranking[0].doc_id
    (['d1', 'd2'], [0.9, 0.5], 'd1')
    >>> ranking[:1]
    Ranking(1 hit: 'd1' 0.900)
    """

    query: EncodedQuery | str
    hits: Sequence[Hit]
    timings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    expansion: Expansion | None = None
    read_before: Callable[[], Ranking] | None = None
    term_expansion: TermExpansion | None = None
    shards: Shards | None = None

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, rank: int) -> Hit: ...

    @overload
    def __getitem__(self, rank: slice) -> Ranking: ...

    def __getitem__(self, rank: int | slice) -> Hit | Ranking:
        if isinstance(rank, slice):
            return replace(self, hits=self.hits[rank])
        return self.hits[rank]

    def __repr__(self) -> str:
        hits = [f"{hit.doc_id!r} {hit.score:.3f}" for hit in self.hits[:HITS_IN_REPR]]
        ellipsis = ["…"] if len(self) > HITS_IN_REPR else []
        count = f"{len(self)} hit{'' if len(self) == 1 else 's'}"
        added = f"; {len(self.expansion)} vectors added" if self.expansion is not None else ""
        return f"Ranking({count}{': ' if hits else ''}{', '.join(hits + ellipsis)}{added})"

    @property
    def doc_ids(self) -> list[str]:
        """The document ids, from best to worst."""
        return list(self.hits.doc_ids) if isinstance(self.hits, Hits) else [hit.doc_id for hit in self.hits]

    @property
    def scores(self) -> list[float]:
        """The scores, from best to worst."""
        return list(self.hits.scores) if isinstance(self.hits, Hits) else [hit.score for hit in self.hits]

    @property
    def texts(self) -> list[str | None]:
        """The texts, from best to worst; None if the index keeps no texts."""
        return [hit.text for hit in self.hits]

    def to_run(self, query_id: str) -> dict[str, dict[str, float]]:
        """Return the ranking as a run of one query: the scores by document id, under the query id.

        Join runs with ``|``; :func:`~colbert_prf.evaluation.evaluate` and :func:`~colbert_prf.datasets.write_run` take
        them.

        >>> Ranking("fish", (Hit("d1", 0.9),)).to_run("q1") | Ranking("bank", (Hit("d2", 0.5),)).to_run("q2")
        {'q1': {'d1': 0.9}, 'q2': {'d2': 0.5}}
        """
        return {query_id: dict(zip(self.doc_ids, self.scores, strict=True))}

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame: ``rank`` from 1, ``doc_id``, ``score``, ``text`` and ``metadata``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("Ranking.to_frame", extra="frames") from None
        return pd.DataFrame(
            {
                "rank": range(1, len(self) + 1),
                "doc_id": pd.Series(self.doc_ids, dtype=object),
                "score": pd.Series(self.scores, dtype=float),
                "text": pd.Series(self.texts, dtype=object),
                "metadata": pd.Series([hit.metadata for hit in self.hits], dtype=object),
            }
        )

    @property
    def encoded_query(self) -> EncodedQuery:
        """The encoded query; an :class:`InputError` if the ranking was made without ColBERT's vectors."""
        if isinstance(self.query, str):
            raise InputError("the ranking was made without ColBERT's vectors: its query is a text")
        return self.query

    @cached_property
    def before(self) -> Ranking | None:
        """The ranking before feedback; None if the search used none."""
        return self.read_before() if self.read_before is not None else None
