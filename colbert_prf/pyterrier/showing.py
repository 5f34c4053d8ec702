"""What people look at: why a document has its score, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt

from colbert_prf.pyterrier.component import Component
from colbert_prf.pyterrier.frames import check_results, encoded_queries, object_column, query_groups

if TYPE_CHECKING:
    from colbert_prf.pyterrier.artifact import ColbertIndex

__all__ = ["Explainer", "TextLoader"]

_ADDED = ("query_tok", "doc_tok", "doc_position", "similarity", "weight", "contribution")


class Explainer(Component):
    """Which token of a document each query vector matched: a row for each query vector of each document.

    Added are ``query_tok`` and ``doc_tok``, the tokens; ``doc_position``, which vector of the document; ``similarity``,
    ``weight`` and their product ``contribution``. The contributions of a document add up to its score.

    Parameters
    ----------
    index
        That has the documents.
    """

    def __init__(self, index: ColbertIndex) -> None:
        self.index = index

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Explain documents found for queries; expanded queries are explained with what was added to them."""
        check_results(inp)
        groups = query_groups(inp)
        queries = encoded_queries(inp.iloc[[int(rows[0]) for rows in groups]], lambda: self.index.encoder)
        sources, matches = list[int](), list[tuple[str, str, int, float, float, float]]()
        for rows, query in zip(groups, queries, strict=True):
            spelled = self.index.encoder.tokens(query.token_ids.tolist())
            for row in rows.tolist():
                found = self.index.searcher.explain(query, inp["docno"].iloc[row]).matches
                tokens = self.index.encoder.tokens([match.token_id for match in found])
                sources += [row] * len(found)
                matches += [
                    (asked, token, one.position, one.similarity, one.weight, one.contribution)
                    for asked, token, one in zip(spelled, tokens, found, strict=True)
                ]
        shown = inp.iloc[np.array(sources, dtype=np.int64)].reset_index(drop=True)
        columns = zip(*matches, strict=True) if matches else [()] * len(_ADDED)
        return shown.assign(**{name: list(values) for name, values in zip(_ADDED, columns, strict=True)})


class TextLoader(Component):
    """The texts the index keeps, and its metadata, as columns: ``pt.text.get_text(index)`` makes one.

    Parameters
    ----------
    index
        That has the documents.
    fields
        ``"text"`` and names of metadata; a document without one gets None. ``"*"`` is the text.
    """

    def __init__(self, index: ColbertIndex, *, fields: str | Sequence[str] = "*") -> None:
        self.index = index
        self.fields = fields

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the columns."""
        pt.validate.columns(inp, includes=["docno"])
        names = ["text"] if self.fields == "*" else [self.fields] if isinstance(self.fields, str) else [*self.fields]
        if not len(inp):
            return inp.assign(**{name: object_column([]) for name in names})
        index = self.index.searcher.index
        places = index.positions(inp["docno"].tolist()).tolist()
        columns = {
            name: object_column(
                index.text(place) if name == "text" else index.metadata(place).get(name) for place in places
            )
            for name in names
        }
        return inp.assign(**columns)
