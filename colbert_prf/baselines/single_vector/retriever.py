"""Search with one vector per text, with or without feedback: what the ANCE row of the paper's table is."""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.single_vector.encoders import VectorEncoder
from colbert_prf.baselines.single_vector.feedback import VectorFeedback
from colbert_prf.baselines.single_vector.index import VectorIndex
from colbert_prf.baselines.single_vector.snapshot import VectorSnapshot
from colbert_prf.errors import whole_number
from colbert_prf.search.allowed import where_mask
from colbert_prf.search.arguments import Where, checked_filter
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.types import Hits, Ranking

__all__ = ["SingleVector"]


class SingleVector(Retriever):
    """The documents whose vectors have the largest inner product with that of the query.

    Parameters
    ----------
    index
        What to search.
    encoder
        What makes the vector of a query: the one that made those of the documents.
    feedback
        Make a new query from the best documents and search again, for example ``RocchioFeedback()``.
    exact
        Whether every vector is looked at; else a graph is searched, see :meth:`VectorIndex.nearest`. A search with a
        filter looks at every vector that the filter selects.
    ef
        How widely the graph is searched.
    where
        A filter of the documents' metadata, as :class:`~colbert_prf.Searcher` takes it.

    Raises
    ------
    IndexMismatchError
        If the index was made with another encoder.
    """

    def __init__(
        self,
        index: VectorIndex,
        encoder: VectorEncoder,
        *,
        feedback: VectorFeedback | None = None,
        exact: bool = True,
        ef: int = 256,
        where: Where | None = None,
    ) -> None:
        index.check_encoder(encoder)
        self.index = index
        self.encoder = encoder
        self.feedback = feedback
        self.exact = exact
        self.ef = ef
        self.where = checked_filter(where)

    def search(self, query: str, k: int = DEFAULT_K, *, where: Where | None = None) -> Ranking:
        """Find the ``k`` best documents; ``where`` is a filter for this search, ``{}`` for none."""
        k = whole_number("k", k, least=1)
        timings: dict[str, float] = {}
        started = perf_counter()
        vector = self.encoder.encode_query(query)
        timings["encode"] = perf_counter() - started
        started = perf_counter()
        snapshot = self.index.snapshot
        mask = where_mask(snapshot, self.where if where is None else checked_filter(where))
        nearest = partial(snapshot.nearest, exact=self.exact, ef=self.ef, mask=mask)
        positions, similarities = nearest(vector, max(k, self.feedback.feedback_docs if self.feedback else 0))
        timings["score"] = perf_counter() - started
        first = _hits(snapshot, positions[:k], similarities[:k])
        if self.feedback is None or not len(positions):
            return Ranking(query, first, timings)
        started = perf_counter()
        best = snapshot.vectors_of(positions[: self.feedback.feedback_docs])
        again = _hits(snapshot, *nearest(self.feedback.expand(vector, best), k))
        timings["score again"] = perf_counter() - started
        return Ranking(query, again, timings, read_before=lambda: Ranking(query, first))


def _hits(snapshot: VectorSnapshot, positions: npt.NDArray[np.int64], similarities: npt.NDArray[np.float32]) -> Hits:
    places = positions.tolist()
    return Hits(
        snapshot.doc_ids_of(positions),
        similarities.tolist(),
        lambda number: snapshot.text(places[number]),
        lambda number: snapshot.metadata(places[number]),
    )
