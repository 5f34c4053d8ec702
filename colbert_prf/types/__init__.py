"""Frozen values that travel between the rooms: encoded texts, rankings, expansions and explanations."""

from colbert_prf.types.encoded import EncodedDocument, EncodedQuery, TokenIds, Vectors, Weights
from colbert_prf.types.expansion import Expansion, ExpansionVector
from colbert_prf.types.explanation import Explanation, Match
from colbert_prf.types.hits import Hit, Hits
from colbert_prf.types.ranking import Ranking, Shards
from colbert_prf.types.terms import TermExpansion, TermExplanation, TermMatch

__all__ = [
    "EncodedDocument",
    "EncodedQuery",
    "Expansion",
    "ExpansionVector",
    "Explanation",
    "Hit",
    "Hits",
    "Match",
    "Ranking",
    "Shards",
    "TermExpansion",
    "TermExplanation",
    "TermMatch",
    "TokenIds",
    "Vectors",
    "Weights",
]
