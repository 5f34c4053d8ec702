"""The frozen values that travel between the rooms: what an encoder gives, what a search returns."""

from colbert_prf.types.encoded import EncodedDocument, EncodedQuery, TokenIds, Vectors, Weights
from colbert_prf.types.expansion import Expansion, ExpansionVector
from colbert_prf.types.explanation import Explanation, Match
from colbert_prf.types.hits import Hit, Hits
from colbert_prf.types.ranking import Ranking

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
    "TokenIds",
    "Vectors",
    "Weights",
]
