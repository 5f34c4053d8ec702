"""The order in which the documents of a run are judged: that of trec_eval, whatever computes the measure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["ranks_as_scores", "trec_order"]


def trec_order(scores: Mapping[str, float]) -> list[str]:
    """Sort documents as trec_eval does: by falling score in single precision, equal scores by falling document id.

    Parameters
    ----------
    scores
        The finite score of each document of one query.

    Returns
    -------
    list of str
        Document ids, best first. Ids are compared as text: ``"9"`` comes before ``"10"``.

    Examples
    --------
    >>> trec_order({"10": 1.0, "9": 1.0, "7": 2.0})
    ['7', '9', '10']
    """
    with np.errstate(over="ignore"):  # beyond single precision trec_eval sees infinities, which are equal
        values = np.fromiter(scores.values(), dtype=np.float64, count=len(scores)).astype(np.float32)
    return [doc_id for _, doc_id in sorted(zip(values.tolist(), scores, strict=True), reverse=True)]


def ranks_as_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Replace scores by strictly falling ones in the order of trec_eval.

    The programs behind ir_measures break ties each in its own way, so that MRR@10 of one of them can exceed MRR of
    another. Without ties they agree.

    Examples
    --------
    >>> ranks_as_scores({"a": 0.5, "b": 0.5, "c": 7.0})
    {'c': 3.0, 'b': 2.0, 'a': 1.0}
    """
    return {doc_id: float(len(scores) - above) for above, doc_id in enumerate(trec_order(scores))}
