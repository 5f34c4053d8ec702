"""Late-interaction (ColBERT) retrieval with pseudo-relevance feedback, fast on an ordinary CPU.

What most programs need is here; :mod:`colbert_prf.baselines` has the systems to compare with, and
:mod:`colbert_prf.errors` all errors.
"""

import sys

from colbert_prf.deprecated import OldModules
from colbert_prf.deprecated import old_name as __getattr__  # noqa: F401
from colbert_prf.encoder import Encoder
from colbert_prf.errors import ColbertPrfError, InputError
from colbert_prf.feedback import CentroidPRF, ColbertPRF, Feedback, TokenFrequencies
from colbert_prf.index import Index, MemoryIndex, Passages
from colbert_prf.search.retriever import Retriever
from colbert_prf.search.searcher import Searcher
from colbert_prf.search.texts import rerank_texts
from colbert_prf.types import EncodedDocument, EncodedQuery, Expansion, Explanation, Hit, Ranking
from colbert_prf.version import __version__

# The plain order of strings, which a test checks.
__all__ = [
    "CentroidPRF",
    "ColbertPRF",
    "ColbertPrfError",
    "EncodedDocument",
    "EncodedQuery",
    "Encoder",
    "Expansion",
    "Explanation",
    "Feedback",
    "Hit",
    "Index",
    "InputError",
    "MemoryIndex",
    "Passages",
    "Ranking",
    "Retriever",
    "Searcher",
    "TokenFrequencies",
    "__version__",
    "rerank_texts",
]

sys.meta_path.insert(0, OldModules())
del sys, OldModules
