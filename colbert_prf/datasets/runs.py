"""Read and write runs, that is the ranked documents of each query, in the six columns of TREC."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from colbert_prf.datasets.irds import irds_entries, is_irds
from colbert_prf.datasets.opening import Source, read_lines
from colbert_prf.datasets.writing import open_replacement
from colbert_prf.errors import DatasetError, DatasetWarning

__all__ = ["Scores", "read_run", "write_run"]

Scores: TypeAlias = "Mapping[str, float] | Iterable[tuple[str, float]]"
"""The documents of one query with their scores: a mapping, or pairs."""

_RANK = re.compile(r"[+-]?[0-9]{1,18}")


class _Hit(NamedTuple):
    line: int
    rank: int
    doc_id: str
    score: float


def read_run(source: Source, *, check_ranks: bool = False) -> dict[str, dict[str, float]]:
    r"""Read the documents that a system returned for each query, best first.

    Parameters
    ----------
    source
        A path, ``-`` for standard input, or ``irds:NAME`` (its scored documents); plain, gzip or zstd. Six columns
        separated by white space: query id, ``Q0``, document id, rank, score, tag. Lines may stand in any order.
    check_ranks
        Whether to warn where the rank column contradicts the scores.

    Returns
    -------
    dict of str to dict of str to float
        ``run[query_id][doc_id]`` is a score. Queries come in the order of the file, documents by falling score, and
        equal scores by rank. As in trec_eval the score decides, whatever the rank column says: some of the runs
        published with the ColBERT-PRF paper keep the ranks of the first stage beside the scores of the second.
        A file without lines is a run without queries.

    Raises
    ------
    DatasetError
        With file and line: a bad line, a score that is no finite number, a document twice for one query.

    Warns
    -----
    DatasetWarning
        With ``check_ranks``, and with file and line: a better rank beside a lower score.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "run.txt")
    ...     _ = path.write_text("q1 Q0 d7 2 0.25 mine\nq1 Q0 d9 1 0.5 mine\n")
    ...     read_run(path)
    {'q1': {'d9': 0.5, 'd7': 0.25}}
    """
    name = os.fspath(source)
    hits: dict[str, dict[str, _Hit]] = {}
    for query_id, hit in _irds_hits(name) if is_irds(name) else _hits(name):
        if not math.isfinite(hit.score):
            raise DatasetError(f"the score is {hit.score}; write a finite number", path=name, line=hit.line)
        first = hits.setdefault(query_id, {}).setdefault(hit.doc_id, hit)
        if first is not hit:
            message = (
                f"document {hit.doc_id!r} of query {query_id!r} was ranked before, at line {first.line}; keep one line"
            )
            raise DatasetError(message, path=name, line=hit.line)
    ranked = {
        query_id: sorted(found.values(), key=lambda hit: (-hit.score, hit.rank)) for query_id, found in hits.items()
    }
    if check_ranks:
        _warn_of_ranks(ranked, name)
    return {query_id: {hit.doc_id: hit.score for hit in found} for query_id, found in ranked.items()}


def write_run(path: Source, rankings: Mapping[str, Scores] | Iterable[tuple[str, Scores]], tag: str) -> None:
    """Write a run so that :func:`read_run` gives the same documents, scores and order.

    Parameters
    ----------
    path
        The file, compressed if it ends in ``.gz`` or ``.zst``; ``-`` is standard output. The file takes its name only
        when it is complete, so that a failure leaves what was there before.
    rankings
        The documents and scores of each query: a mapping, or pairs, which are written as they come. Documents are
        written by falling score; equal scores keep their order. Ranks count from 1. A query without documents leaves
        no line, and so no trace.
    tag
        The name of the run, one word.

    Raises
    ------
    DatasetError
        An id or tag that is empty or holds white space, a score that is not finite, a query or a document twice, or a
        file that cannot be written.

    Examples
    --------
    >>> write_run("-", {"q1": {"d7": 0.25, "d9": 0.5}}, tag="mine")
    q1 Q0 d9 1 0.5 mine
    q1 Q0 d7 2 0.25 mine
    """
    name = os.fspath(path)
    refuse_unwritable(tag, "the tag", name)
    query_ids: set[str] = set()
    with open_replacement(name) as write:
        for query_id, scores in rankings.items() if isinstance(rankings, Mapping) else rankings:
            refuse_unwritable(query_id, "the query id", name)
            if query_id in query_ids:
                raise DatasetError(f"query {query_id!r} comes twice; give each query one ranking", path=name)
            query_ids.add(query_id)
            for rank, (doc_id, score) in enumerate(_by_falling_score(query_id, scores, name), start=1):
                write(f"{query_id} Q0 {doc_id} {rank} {score!r} {tag}\n")


def _warn_of_ranks(ranked: Mapping[str, list[_Hit]], name: str) -> None:
    conflicts = [
        next((below.line for above, below in pairwise(found) if below.rank < above.rank), None)
        for found in ranked.values()
    ]
    lines = [line for line in conflicts if line is not None]
    if lines:
        message = (
            f"{name}, line {lines[0]}: the rank contradicts the score, as in {len(lines)} of {len(ranked)} queries; "
            "the scores decide"
        )
        warnings.warn(message, DatasetWarning, stacklevel=3)


def _hits(name: str) -> Iterator[tuple[str, _Hit]]:
    for number, line in read_lines(name):
        columns = line.split()
        if not columns:
            continue
        if len(columns) != 6:
            message = f"expected 6 columns, query id, Q0, document id, rank, score and tag, found {len(columns)}"
            raise DatasetError(message, path=name, line=number)
        query_id, _, doc_id, rank, score, _ = columns
        if not _RANK.fullmatch(rank):
            raise DatasetError(f"the rank {rank!r} is not an integer; write a whole number", path=name, line=number)
        yield query_id, _Hit(number, int(rank), doc_id, _score(score, name, number))


def _irds_hits(name: str) -> Iterator[tuple[str, _Hit]]:
    for number, entry in enumerate(irds_entries(name, "scoreddocs"), start=1):
        yield entry.query_id, _Hit(number, number, entry.doc_id, float(entry.score))


def _score(written: str, name: str, number: int) -> float:
    try:
        return float(written.replace("_", "?"))  # Python alone reads 1_000 as a number
    except ValueError:
        raise DatasetError(f"the score {written!r} is not a number; write one", path=name, line=number) from None


def _by_falling_score(query_id: str, scores: Scores, name: str) -> list[tuple[str, float]]:
    pairs = scores.items() if isinstance(scores, Mapping) else scores
    ranking = sorted(((doc_id, float(score)) for doc_id, score in pairs), key=lambda pair: -pair[1])
    doc_ids: set[str] = set()
    for doc_id, score in ranking:
        refuse_unwritable(doc_id, f"for query {query_id!r}, the document id", name)
        if not math.isfinite(score):
            message = f"document {doc_id!r} of query {query_id!r} has the score {score}; give a finite number"
            raise DatasetError(message, path=name)
        if doc_id in doc_ids:
            raise DatasetError(f"document {doc_id!r} comes twice for query {query_id!r}; keep one", path=name)
        doc_ids.add(doc_id)
    return ranking


def refuse_unwritable(word: str, what: str, name: str) -> None:
    """Refuse what cannot be a column of a run file: an empty word, white space, characters text files cannot hold."""
    if not word:
        raise DatasetError(f"{what} is empty; a run file needs a word there", path=name)
    if word.split() != [word]:
        message = f"{what} {word!r} holds white space, which separates the columns of a run file; replace it"
        raise DatasetError(message, path=name)
    if any(character in "\0\ufeff" or "\ud800" <= character <= "\udfff" for character in word):
        raise DatasetError(f"{what} {word!a} holds a character that text files cannot; replace it", path=name)
