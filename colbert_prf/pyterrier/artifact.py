"""An index as a PyTerrier artifact: where every transformer comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyterrier as pt

from colbert_prf.baselines.lexical import LexicalIndex, TermFeedback
from colbert_prf.baselines.lexical.methods import METHODS
from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import make_feedback
from colbert_prf.index import Index
from colbert_prf.index.manifest import KIND
from colbert_prf.pyterrier.baselines import BertQEScorer, LexicalRetriever
from colbert_prf.pyterrier.feedback import QueryExpander
from colbert_prf.pyterrier.indexer import ColbertIndexer
from colbert_prf.pyterrier.retrieve import ColbertRetriever, ColbertSetRetriever, QueryEncoder
from colbert_prf.pyterrier.scoring import ColbertScorer, ColbertTextScorer
from colbert_prf.pyterrier.showing import Explainer, TextLoader
from colbert_prf.search.grouping import Group
from colbert_prf.search.retriever import RUN_DEPTH
from colbert_prf.search.searcher import Preset, Searcher, Where
from colbert_prf.storage.layout import IndexLayout

__all__ = ["ColbertIndex", "artifact_metadata"]

_CALLED = {"fb_docs": "feedback_docs", "fb_embs": "expansion_vectors", "k": "clusters", "r": "seed"}
"""Parameters of pyterrier_colbert and what they are called here."""


class ColbertIndex(pt.Artifact):
    """An index folder, made here, by :class:`colbert_prf.Index` or by ``colbert-prf index``; opened on first use.

    It holds no transformer itself: its methods make them. It can be pickled, and two of the same folder and parameters
    are equal. A generation is opened once; :meth:`reload` sees what was added or deleted since.

    Parameters
    ----------
    path
        The folder.
    model
        The model of the index where it is no longer where it was: what :meth:`Encoder.load` takes.
    preset
        ``"paper"`` for the search of the authors; see :class:`Searcher`.
    threads
        Per search; as many as there are cores if left out.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> texts = {"a": "Goldfish grow all their life.", "b": "Bank rates fell."}
    >>> documents = [{"docno": docno, "text": text} for docno, text in texts.items()]
    >>> index = ColbertIndex(Path(folder.name, "my.index")).indexer(bits=4).index(documents)
    >>> (index.end_to_end() % 1).search("do fish grow")[["docno", "rank"]].to_dict("records")
    [{'docno': 'a', 'rank': 0}]
    >>> folder.cleanup()
    """

    ARTIFACT_TYPE = "dense_index"
    ARTIFACT_FORMAT = "colbert_prf"
    ARTIFACT_PACKAGE_HINT = "colbert-prf[pyterrier]"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: str | None = None,
        preset: Preset | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(path)
        self.model = model
        self.preset = preset
        self.threads = threads

    def indexer(self, **parameters: Any) -> ColbertIndexer:
        """What makes the index: see :class:`ColbertIndexer`; what it gives has the options of this one."""
        options = {"model": self.model, "preset": self.preset, "threads": self.threads}
        return ColbertIndexer(self.path, **{**options, **parameters})

    def query_encoder(self) -> QueryEncoder:
        """Queries in, encoded queries out."""
        return QueryEncoder(self)

    def end_to_end(
        self,
        num_results: int = RUN_DEPTH,
        *,
        probes: int | None = None,
        rescore: int | None = None,
        where: Where | None = None,
        group: Group | None = None,
    ) -> ColbertRetriever:
        """Queries in, ranked documents out: see :class:`ColbertRetriever`."""
        options: dict[str, Any] = {"probes": probes, "rescore": rescore, "where": where, "group": group}
        return ColbertRetriever(self, num_results=num_results, **options)

    retriever = end_to_end

    def set_retrieve(self, num_results: int | None = 1000, *, probes: int | None = None) -> ColbertSetRetriever:
        """Queries in, candidates without scores out: see :class:`ColbertSetRetriever`."""
        return ColbertSetRetriever(self, num_results=num_results, probes=probes)

    def scorer(self, *, feedback: Feedback | str | None = None) -> ColbertScorer:
        """Documents in, the same by MaxSim out, from the index: see :class:`ColbertScorer`."""
        return ColbertScorer(self, feedback=None if feedback is None else _method(feedback, {}))

    index_scorer = scorer

    def text_scorer(self, text_field: str = "text", *, feedback: Feedback | str | None = None) -> ColbertTextScorer:
        """Documents in, the same by MaxSim out, from their texts: see :class:`ColbertTextScorer`."""
        method = None if feedback is None else _method(feedback, {})
        return ColbertTextScorer(self, text_field=text_field, feedback=method)

    def prf(
        self,
        rerank: bool = False,
        *,
        num_results: int = RUN_DEPTH,
        probes: int | None = None,
        rescore: int | None = None,
        feedback: Feedback | str = "prf",
        where: Where | None = None,
        group: Group | None = None,
        **parameters: Any,
    ) -> ColbertRetriever:
        """Queries in, documents ranked with feedback out; the second pass reuses the first.

        Parameters
        ----------
        rerank
            Whether to score the documents of the first pass again (ReRanker) instead of searching again (Ranker).
        num_results, probes, rescore, where, group
            As in :class:`ColbertRetriever`.
        feedback
            ``"prf"`` for :class:`ColbertPRF`, ``"centroid"`` for :class:`CentroidPRF`, or a feedback method.
        parameters
            Fields of the method, such as ``feedback_docs``, ``clusters``, ``expansion_vectors``, ``weight`` or
            ``beta``, ``compat``.
        """
        if rerank or not isinstance(feedback, Feedback):
            parameters["rerank"] = rerank
        method = _method(feedback, parameters)
        options: dict[str, Any] = {"probes": probes, "rescore": rescore, "where": where, "group": group}
        return ColbertRetriever(self, num_results=num_results, feedback=method, **options)

    def expand(
        self, feedback: Feedback | str = "prf", *, keep_documents: bool = False, **parameters: Any
    ) -> QueryExpander:
        """Documents in, expanded queries out: see :class:`QueryExpander`; parameters are those of :meth:`prf`."""
        return QueryExpander(self, feedback=_method(feedback, parameters), keep_documents=keep_documents)

    def explain(self) -> Explainer:
        """Documents in, what each query vector matched in them out: see :class:`Explainer`."""
        return Explainer(self)

    def bm25(
        self, num_results: int = RUN_DEPTH, *, feedback: TermFeedback | str | None = None, **parameters: Any
    ) -> LexicalRetriever:
        """Queries in, documents ranked by BM25 over the kept texts out: see :class:`LexicalRetriever`."""
        if isinstance(feedback, str):
            if feedback not in METHODS:
                raise InputError(f"there is no feedback {feedback!r} of terms; choose {', '.join(METHODS)}")
            feedback = METHODS[feedback]()
        return LexicalRetriever(self, num_results=num_results, feedback=feedback, **parameters)

    def bert_qe(self, **parameters: Any) -> BertQEScorer:
        """Documents in, the same by BERT-QE out: see :class:`BertQEScorer`."""
        return BertQEScorer(self, **parameters)

    def text_loader(self, fields: str | Sequence[str] = "*", *, verbose: bool = False) -> TextLoader:
        """Documents in, the same with their texts out: what ``pt.text.get_text(index)`` asks for."""
        return TextLoader(self, fields=fields)

    def reload(self) -> None:
        """Open the newest generation at the next use."""
        for name in ("_searcher", "_lexical"):
            self.__dict__.pop(name, None)

    @property
    def searcher(self) -> Searcher:
        """What searches, opened on first use."""
        return self._searcher

    @property
    def encoder(self) -> Encoder:
        """The model of the index, opened on first use."""
        return self._searcher.encoder

    @property
    def lexical(self) -> LexicalIndex:
        """The terms of the kept texts, counted on first use."""
        return self._lexical

    @cached_property
    def _searcher(self) -> Searcher:
        encoder = Encoder.load(self.model) if self.model is not None else None
        return Searcher(Index.open(self.path, encoder=encoder), threads=self.threads, preset=self.preset)

    @cached_property
    def _lexical(self) -> LexicalIndex:
        assert isinstance(self._searcher.index, Index)
        return LexicalIndex.of(self._searcher.index)

    def _parameters(self) -> tuple[Any, ...]:
        return os.fspath(self.path), self.model, self.preset, self.threads

    def __len__(self) -> int:
        return self.searcher.index.num_documents

    def __repr__(self) -> str:
        names = ("model", "preset", "threads")
        given = "".join(f", {name}={vars(self)[name]!r}" for name in names if vars(self)[name] is not None)
        return f"ColbertIndex({os.fspath(self.path)!r}{given})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColbertIndex) and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash(self._parameters())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def artifact_metadata(path: str, entries: Sequence[str]) -> dict[str, str] | None:
    """Tell PyTerrier that a folder is an index of ours, so that ``pt.Artifact.load`` opens it."""
    layout = IndexLayout(Path(path))
    if layout.manifest.name not in entries:
        return None
    try:
        found = json.loads(layout.manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        return None
    return {
        "type": ColbertIndex.ARTIFACT_TYPE,
        "format": ColbertIndex.ARTIFACT_FORMAT,
        "package_hint": ColbertIndex.ARTIFACT_PACKAGE_HINT,
    }


def _method(feedback: Feedback | str, parameters: dict[str, Any]) -> Feedback:
    for name in parameters:
        if name in _CALLED:
            raise InputError(f"the parameter {name!r} of pyterrier_colbert is called {_CALLED[name]!r} here")
    if isinstance(feedback, str):
        return make_feedback(feedback, **parameters)
    if not isinstance(feedback, Feedback):
        raise InputError(f"feedback is a method such as ColbertPRF() or its name, found {feedback!r}")
    if parameters:
        raise InputError(f"a feedback method has its parameters already; leave out {', '.join(parameters)}")
    return feedback
