"""How feedback is shown: what it added to the query, where that came from, and how it moved the passages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, zip_longest
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from colbert_prf.search.spelling import Spelling, likely_ids, likely_words, ranks_before
from colbert_prf.types import Expansion, Hit, Ranking

__all__ = [
    "Spelling",
    "expansion_as_dict",
    "expansion_words",
    "likely_ids",
    "likely_words",
    "moves",
    "places",
    "print_expansion",
    "weighed",
]


def moves(ranking: Ranking) -> list[str]:
    """How each hit moved since the first pass: ``↑3``, ``↓1``, ``=``, or ``new`` where it was not there.

    Empty strings where there was no feedback.
    """
    if (before := ranks_before(ranking)) is None:
        return [""] * len(ranking)
    return [_move(rank_before, rank) for rank, rank_before in enumerate(before, start=1)]


def expansion_words(expansion: Expansion, tokens: Spelling) -> list[str]:
    """What was added, most weight first; what is spelled alike comes once."""
    ordered = sorted(expansion.vectors, key=lambda vector: -vector.weight)
    return list(dict.fromkeys(likely_words(vector, tokens) for vector in ordered))


def weighed(words: Sequence[str], weights: Sequence[float]) -> list[str]:
    """Words with what they weigh, if they do not all weigh the same.

    >>> weighed(["the", "tank"], [0.5, 1.5]), weighed(["the", "tank"], [1.0, 1.0])
    (['the^0.5', 'tank^1.5'], ['the', 'tank'])
    """
    if len(set(weights)) < 2:
        return list(words)
    return [f"{word}^{weight:.1f}" for word, weight in zip(words, weights, strict=True)]


def places(sources: Sequence[tuple[str, int]], feedback: Sequence[str]) -> str:
    """Where an added vector came from, passages by their number.

    >>> places([("a", 3), ("a", 7), ("b", 11)], ["a", "b"])
    'd1:3,7 d2:11'
    """
    numbers = {doc_id: f"d{number}" for number, doc_id in enumerate(feedback, start=1)}
    grouped = groupby(sources, key=lambda source: source[0])
    return " ".join(f"{numbers.get(doc_id, doc_id)}:{','.join(str(p) for _, p in group)}" for doc_id, group in grouped)


def expansion_as_dict(ranking: Ranking, tokens: Spelling) -> dict[str, Any]:
    """Spell what feedback did for JSON: ``expansion`` and ``before``; nothing where there was none."""
    expansion, before = ranking.expansion, ranking.before
    if expansion is None or before is None:
        return {}
    vectors = [
        {
            "token": tokens([vector.token_id])[0],
            "probability": vector.probability,
            "likely": dict(zip(tokens([t for t, _ in vector.likely]), [p for _, p in vector.likely], strict=True)),
            "sigma": vector.sigma,
            "weight": vector.weight,
            "sources": [{"doc_id": doc_id, "position": position} for doc_id, position in vector.sources],
        }
        for vector in expansion.vectors
    ]
    hits = [{"rank": rank, "doc_id": hit.doc_id, "score": hit.score} for rank, hit in enumerate(before, start=1)]
    return {"expansion": {"feedback": list(expansion.feedback), "vectors": vectors}, "before": hits}


def print_expansion(output: Console, ranking: Ranking, tokens: Spelling) -> None:
    """Print the original tokens, a row for each added vector, and the rankings before and after."""
    if (expansion := ranking.expansion) is None:
        return
    query, count = ranking.encoded_query, expansion.num_original
    original = weighed(tokens(query.token_ids[:count].tolist()), query.weights[:count].tolist())
    output.print(f"[dim]original tokens:[/dim] {escape(' '.join(original))}")
    learned = ", ".join(f"d{number} {doc_id}" for number, doc_id in enumerate(expansion.feedback, start=1))
    output.print(f"[dim]learned from:[/dim] {escape(learned) or 'nothing, so the ranking is that of the first pass'}")
    output.print()
    if len(expansion):
        output.print(_expansion_table(expansion, tokens))
        output.print()
    output.print(_before_and_after(ranking))
    output.print()


def _expansion_table(expansion: Expansion, tokens: Spelling) -> Table:
    table = Table(box=None)
    table.add_column("expansion")
    for title in ("P(t|υ)", "σ", "weight"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("from", overflow="fold")
    for vector in sorted(expansion.vectors, key=lambda vector: -vector.weight):
        numbers = (f"{vector.probability:.2f}", f"{vector.sigma:.2f}", f"{vector.weight:.3f}")
        row = (escape(likely_words(vector, tokens)), *numbers, escape(places(vector.sources, expansion.feedback)))
        table.add_row(*row)
    return table


def _before_and_after(ranking: Ranking) -> Table:
    assert ranking.before is not None  # a ranking with an expansion has one
    table = Table(box=None)
    for title in ("", "before", "score", "after", "score", "move"):
        table.add_column(title, justify="right" if title in ("", "score") else "left", overflow="fold")
    pairs = zip_longest(ranking.before, ranking, moves(ranking), fillvalue=None)
    for rank, (before, after, move) in enumerate(pairs, start=1):
        table.add_row(f"{rank}.", *_cells(before), *_cells(after), str(move or ""))
    return table


def _cells(hit: Hit | None) -> tuple[str, str]:
    return ("", "") if hit is None else (f"[cyan]{escape(hit.doc_id)}[/cyan]", f"{hit.score:.3f}")


def _move(before: int | None, after: int) -> str:
    if before is None:
        return "new"
    return "=" if before == after else f"↑{before - after}" if before > after else f"↓{after - before}"
