"""PyTerrier's frames to queries and back: which columns there must be, and what is written into them.

An encoded query travels in three columns: ``query_toks``, the token ids, int32 of shape (num_tokens,);
``query_embs``, the vectors, float32 of shape (num_tokens, dim); ``query_weights``, float32 of shape (num_tokens,),
all ones where the column is absent. Where they are present they are searched with, and the text is not encoded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.types import EncodedQuery, Hits, Ranking

__all__ = [
    "EMBEDDINGS",
    "ENCODED",
    "TOKENS",
    "WEIGHTS",
    "answered",
    "check_queries",
    "check_results",
    "encoded_queries",
    "object_column",
    "query_groups",
    "rescored",
    "with_queries",
]

TOKENS, EMBEDDINGS, WEIGHTS = "query_toks", "query_embs", "query_weights"
ENCODED = [TOKENS, EMBEDDINGS, WEIGHTS]

Rows = npt.NDArray[np.int64]
_UNSCORED = 0.01
"""How far below the others a document is put that cannot be scored."""


def check_queries(frame: pd.DataFrame) -> None:
    """Refuse what is not a frame of queries, as texts or encoded, in PyTerrier's own way."""
    with pt.validate.any(frame) as check:
        check.query_frame(extra_columns=["query"])
        check.query_frame(extra_columns=[TOKENS, EMBEDDINGS])


def check_results(frame: pd.DataFrame, extra_columns: Sequence[str] = ()) -> None:
    """Refuse what is not a frame of documents found for queries, in PyTerrier's own way."""
    with pt.validate.any(frame) as check:
        check.result_frame(extra_columns=["query", *extra_columns])
        check.result_frame(extra_columns=[TOKENS, EMBEDDINGS, *extra_columns])


def encoded_queries(frame: pd.DataFrame, encoder: Callable[[], Encoder]) -> list[EncodedQuery]:
    """The query of each row: the one it brings, or its text encoded, equal texts once and all as one batch.

    Parameters
    ----------
    frame
        With the columns of an encoded query, or with ``query``.
    encoder
        Opens the model, if a text must be encoded.
    """
    if EMBEDDINGS in frame.columns:
        if TOKENS not in frame.columns:
            raise InputError(f"there is a column {EMBEDDINGS} and no {TOKENS}, with the token of each vector; add it")
        weights = frame[WEIGHTS] if WEIGHTS in frame.columns else [None] * len(frame)
        columns = zip(frame["qid"], frame[TOKENS], frame[EMBEDDINGS], weights, strict=True)
        return [_query(*values) for values in columns]
    texts = frame["query"].tolist()
    different = list(dict.fromkeys(texts))
    made = dict(zip(different, encoder().encode_queries(different), strict=True)) if different else {}
    return [made[text] for text in texts]


def with_queries(frame: pd.DataFrame, queries: Sequence[EncodedQuery]) -> pd.DataFrame:
    """The frame with the query of each row in its three columns."""
    return frame.assign(
        **{
            TOKENS: object_column(query.token_ids for query in queries),
            EMBEDDINGS: object_column(query.vectors for query in queries),
            WEIGHTS: object_column(query.weights for query in queries),
        }
    )


def answered(frame: pd.DataFrame, rankings: Sequence[Ranking], *, scores: bool = True) -> pd.DataFrame:
    """The rows of queries, each as often as documents were found for it, with these and their ranks.

    Parameters
    ----------
    frame
        Of queries; all its columns are kept, but those that are written.
    rankings
        One for each row.
    scores
        Whether to write scores and ranks; if not, what was found is a set.
    """
    rows = np.repeat(np.arange(len(frame)), [len(ranking) for ranking in rankings])
    found = frame.drop(columns=["docno", "score", "rank"], errors="ignore").iloc[rows].reset_index(drop=True)
    found["docno"] = pd.Series([doc_id for ranking in rankings for doc_id in ranking.doc_ids], dtype=object)
    if scores:
        values = [value for ranking in rankings for value in _scores(ranking)]
        found["score"] = pd.Series(values, dtype=np.float64)
        found["rank"] = pd.Series([rank for ranking in rankings for rank in range(len(ranking))], dtype=np.int64)
    return found


def query_groups(frame: pd.DataFrame) -> list[Rows]:
    """The rows of each query, queries in the order they first come; equal ids of different queries are different."""
    if not len(frame):
        return []
    keys = [frame[name] for name in ("qid", "query") if name in frame.columns]
    if EMBEDDINGS in frame.columns:
        keys.append(pd.Series(_hashes(frame[EMBEDDINGS]), index=frame.index))
    numbers = frame.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def rescored(frame: pd.DataFrame, groups: Sequence[Rows], scores: npt.NDArray[np.float64]) -> pd.DataFrame:
    """The frame with new scores and ranks, best first within each query; equal scores in the order they came.

    Parameters
    ----------
    frame
        Of documents found for queries; all its columns are kept.
    groups
        From :func:`query_groups`.
    scores
        Of each row; one that is not finite comes last.
    """
    values, order, ranks = scores.astype(np.float64), [], []
    for rows in groups:
        here = values[rows]
        finite = here[np.isfinite(here)]
        here[~np.isfinite(here)] = (finite.min() if len(finite) else 0.0) - _UNSCORED
        values[rows] = here
        order.append(rows[np.argsort(-here, kind="stable")])
        ranks.append(np.arange(len(rows)))
    whole = np.concatenate([np.empty(0, np.int64), *order])
    new = frame.drop(columns=["score", "rank"], errors="ignore").iloc[whole].reset_index(drop=True)
    return new.assign(score=values[whole], rank=np.concatenate([np.empty(0, np.int64), *ranks]))


def object_column(values: Iterable[Any]) -> npt.NDArray[np.object_]:
    """Values as they are, for a column: arrays stay arrays, also where all have the same shape."""
    found = list(values)
    column = np.empty(len(found), dtype=object)
    for place, value in enumerate(found):
        column[place] = value
    return column


def _query(qid: str, tokens: Any, vectors: Any, weights: Any) -> EncodedQuery:
    """The encoded query of one row, from arrays, lists or tensors."""
    try:
        return EncodedQuery(
            np.asarray(tokens, dtype=np.int32),
            np.asarray(vectors, dtype=np.float32),
            np.empty(0, np.float32) if weights is None else np.asarray(weights, dtype=np.float32),
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"query {qid!r}: its columns {', '.join(ENCODED)} are not an encoded query ({error}); {TOKENS} holds token "
            "ids and all have one entry a vector"
        ) from error


def _hashes(column: Iterable[Any]) -> list[int]:
    """A number for each array, equal ones for equal arrays; rows of one query mostly share theirs."""
    known: dict[int, int] = {}
    return [known.get(id(one)) or known.setdefault(id(one), hash(np.asarray(one).tobytes())) for one in column]


def _scores(ranking: Ranking) -> Iterable[float]:
    return ranking.hits.scores if isinstance(ranking.hits, Hits) else (hit.score for hit in ranking)
