"""Old names of modules and classes: they work for one more release and warn."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MODULES", "NAMES", "EndToEnd", "OldModules", "old_name"]

_STORAGE = (
    *("arrays", "blobs", "derived", "durable", "files"),
    *("identifiers", "json_form", "layout", "lock"),
)
MODULES: dict[str, str] = {
    **{name: f"baselines.{name}" for name in ("fusion", "lexical", "rerank", "single_vector")},
    **{name: f"search.{name}" for name in ("explain", "retriever", "searcher")},
    **{f"index.{name}": f"storage.{name}" for name in _STORAGE},
    **dict.fromkeys(("experiments.running", "experiments.tags"), "experiments.run"),
    "feedback.texts": "search.texts",
    "paper": "search.ivfpq",
    "terms": "types.terms",
}
"""What the modules that moved are called now, within ``colbert_prf``; modules under them moved with them."""

_BASELINES = (
    *("Analyzer", "AverageFeedback", "BM25", "BertQE", "BiEncoder", "Bo1", "ColbertReranker", "ColbertTextReranker"),
    *("CrossEncoderReranker", "Fusion", "KL", "LexicalIndex", "MeanEncoder", "PairScorer", "RM3", "Reranker"),
    *("RocchioFeedback", "SingleVector", "TermFeedback", "VectorEncoder", "VectorFeedback", "VectorIndex"),
)
_ERRORS = (
    *("DatasetError", "DatasetWarning", "IndexFormatError", "IndexLockedError", "IndexMismatchError"),
    *("MissingExtraError", "ModelError", "OutgrownCodecWarning", "ProjectionError", "StorageError", "TextError"),
)
NAMES: dict[str, str] = {
    **dict.fromkeys(_BASELINES, "colbert_prf.baselines"),
    **dict.fromkeys(_ERRORS, "colbert_prf.errors"),
    **dict.fromkeys(("IndexInfo", "Verification"), "colbert_prf.index"),
    **dict.fromkeys(("ExpansionVector", "Match", "TermExpansion", "TermExplanation", "TermMatch"), "colbert_prf.types"),
    "EndToEnd": "colbert_prf.deprecated",
    "ModelSettings": "colbert_prf.encoder",
}
"""Where the names are that ``colbert_prf`` itself had before."""


def old_name(name: str) -> Any:
    """What ``colbert_prf.NAME`` was before; an :class:`AttributeError` for what never was."""
    if name not in NAMES:
        raise AttributeError(f"module 'colbert_prf' has no attribute {name!r}")
    if name != "EndToEnd":  # which warns itself, and says what to write instead
        _warn(f"colbert_prf.{name} has moved: from {NAMES[name]} import {name}", stacklevel=3)
    return getattr(import_module(NAMES[name]), name)


class OldModules(MetaPathFinder, Loader):
    """Imports the modules of :data:`MODULES` by their old names; one module, whatever name it was imported by."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Tell whether a module is an old one."""
        return ModuleSpec(fullname, self) if _moved_to(fullname) is not None else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module it is now in the place of an empty one."""
        new = _moved_to(module.__name__)
        assert new is not None
        _warn(f"{module.__name__} has moved to {new}", stacklevel=3)
        sys.modules[module.__name__] = import_module(new)


def _moved_to(fullname: str) -> str | None:
    package, _, rest = fullname.partition(".")
    if package != "colbert_prf" or not rest:
        return None
    parts = rest.split(".")
    for length in range(1, len(parts) + 1):
        if (new := MODULES.get(".".join(parts[:length]))) is not None:
            return ".".join(["colbert_prf", new, *parts[length:]])
    return None


class EndToEnd:
    """A searcher with defaults, which is a system by itself: ``Searcher(index, feedback=...)``."""

    def __new__(cls, searcher: Any, *, feedback: Any = None, **options: Any) -> Any:
        """Give the searcher these defaults and 1,000 results a search, as EndToEnd had."""
        _warn(
            "EndToEnd is no longer needed: a Searcher is a Retriever; write Searcher(index, k=1000, feedback=...) or "
            "searcher.with_defaults(...)",
            stacklevel=3,
        )
        return searcher.with_defaults(k=1000, feedback=feedback, **options)


def _warn(message: str, *, stacklevel: int) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)
