"""The kinds of systems: ColBERT, BM25 over terms, one vector per text, re-rankers of another row, rows merged into one.

Importing this makes them known. A parameter that a class has under the same name is not repeated: ``like=`` names it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_type_hints

from colbert_prf.baselines.fusion import Fusion
from colbert_prf.baselines.lexical import (
    BM25,
    RM3,
    LexicalIndex,
    QueryGenerator,
    TermFeedback,
    TermRegression,
    TorchTermWeigher,
    expanded_documents,
    read_expansions,
    weighted_documents,
)
from colbert_prf.baselines.lexical.methods import METHODS as TERM_METHODS
from colbert_prf.baselines.rerank import BertQE, ColbertReranker, ColbertTextReranker, CrossEncoderReranker, PairScorer
from colbert_prf.baselines.single_vector import (
    AverageFeedback,
    MeanEncoder,
    RocchioFeedback,
    SingleVector,
    VectorEncoder,
    VectorIndex,
)
from colbert_prf.baselines.single_vector.onnx_encoder import OnnxVectorEncoder
from colbert_prf.errors import InputError
from colbert_prf.experiments.context import Context, digest_of_encoder, digest_of_model, slug
from colbert_prf.experiments.registry import chosen, describe_type, fits, system
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import METHODS, make_feedback
from colbert_prf.progress import progress_bar
from colbert_prf.search.retriever import EndToEnd, Retriever
from colbert_prf.search.searcher import Preset
from colbert_prf.types import Hits, Ranking

__all__ = [
    "bert_qe",
    "bm25",
    "colbert",
    "colbert_reranker",
    "colbert_text_reranker",
    "cross_encoder",
    "fusion",
    "single_vector",
]

_OF_SEARCH = ("bits", "model", "preset", "probes", "query_weights", "rescore", "threads")


def _feedback_of(feedback: str | None = None, **tuning: Any) -> Feedback | None:
    """The feedback method that parameters of a row describe; those of the search are passed over.

    Raises
    ------
    InputError
        An unknown method, an unknown parameter with the known ones, or a bad value.
    """
    tuning = {name: value for name, value in tuning.items() if name not in _OF_SEARCH}
    if feedback is None:
        if tuning:
            raise InputError(
                f"there is no parameter {next(iter(tuning))!r} without feedback; known are feedback, "
                f"{', '.join(_OF_SEARCH)}, and with feedback = 'prf' those of ColbertPRF"
            )
        return None
    hints = get_type_hints(METHODS[feedback]) if feedback in METHODS else {}
    for name, value in tuning.items():
        if not fits(value, hints.get(name, Any)):
            raise InputError(f"{name} must be {describe_type(hints[name])}, found {value!r}")
    return make_feedback(feedback, **tuning)


@system("colbert", check=_feedback_of, models=("model",))
def colbert(
    context: Context,
    *,
    feedback: str | None = None,
    bits: int | None = None,
    model: str | None = None,
    preset: Preset | None = None,
    probes: int | None = None,
    rescore: int | None = None,
    threads: int | None = None,
    query_weights: bool = True,
    **tuning: Any,
) -> Retriever:
    """ColBERT over its index; ``tuning`` has the fields of the feedback method, such as ``weight`` or ``rerank``."""
    method = _feedback_of(feedback, **tuning)
    given = {"probes": probes, "rescore": rescore, "threads": threads}
    options = {name: value for name, value in given.items() if value is not None}
    searcher = context.searcher(bits, preset=preset, model=model, query_weights=query_weights)
    return EndToEnd(searcher, feedback=method, **options)


@system("fusion", like=[Fusion])
def fusion(context: Context, *, systems: list[Retriever], **options: Any) -> Retriever:
    """Merge the rankings of other rows; see :class:`Fusion`."""
    return Fusion(systems, **options)


class WithTexts(Retriever):
    """Another row's answers, with the texts of the corpus where its index keeps none.

    Parameters
    ----------
    first
        The other row.
    context
        Whose corpus has the texts; it is read when a text is missing.
    """

    def __init__(self, first: Retriever, context: Context) -> None:
        self.first = first
        self.context = context

    def search(self, query: str, k: int = 1000) -> Ranking:
        """Find the ``k`` best documents."""
        ranking = self.first.search(query, k)
        if not len(ranking) or ranking.hits[0].text is not None:
            return ranking
        doc_ids, texts = ranking.doc_ids, self.context.texts
        scores = [hit.score for hit in ranking]
        return replace(ranking, hits=Hits(doc_ids, scores, lambda rank: texts.get(doc_ids[rank])))


def _check_reranker(first: str, depth: int | None = None, feedback: str | None = None, **tuning: Any) -> None:
    _feedback_of(feedback, **tuning)


@system("colbert-reranker", check=_check_reranker, models=("model",))
def colbert_reranker(
    context: Context,
    *,
    first: Retriever,
    depth: int | None = None,
    feedback: str | None = None,
    bits: int | None = None,
    model: str | None = None,
    **tuning: Any,
) -> Retriever:
    """ColBERT over the candidates of another row, from the index; ``tuning`` has the fields of the feedback method."""
    searcher = context.searcher(bits, model=model)
    return ColbertReranker(first, searcher, feedback=_feedback_of(feedback, **tuning), depth=depth)


@system("colbert-text-reranker")
def colbert_text_reranker(context: Context, *, first: Retriever, depth: int | None = None) -> Retriever:
    """ColBERT over the candidates of another row, from their texts as that row has them, encoded on the spot."""
    return ColbertTextReranker(WithTexts(first, context), encoder=context.encoder, depth=depth)


@system("bert-qe", like=[BertQE], models=("model",))
def bert_qe(
    context: Context, *, first: Retriever, bits: int | None = None, model: str | None = None, **options: Any
) -> Retriever:
    """BERT-QE over the candidates of another row, with ColBERT as the scorer."""
    return BertQE(WithTexts(first, context), context.searcher(bits, model=model), **options)


@system("cross-encoder", models=("model",))
def cross_encoder(
    context: Context, *, first: Retriever, model: str, depth: int | None = None, max_length: int | None = None
) -> Retriever:
    """A cross-encoder over the candidates of another row; ``model`` is what :meth:`PairScorer.load` opens."""
    scorer = PairScorer.load(model, max_length=max_length)
    return CrossEncoderReranker(WithTexts(first, context), scorer, depth=depth)


def _check_vectors(model: str | None = None, **given: Any) -> None:
    misplaced = list(chosen(given, VectorEncoder.load))
    if model is None and misplaced:
        raise InputError(f"{', '.join(misplaced)}: of an ONNX network, and there is no model; name its folder as model")


@system(
    "single-vector", like=[VectorEncoder.load, SingleVector, RocchioFeedback], check=_check_vectors, models=("model",)
)
def single_vector(
    context: Context,
    *,
    model: str | None = None,
    feedback: Literal["average", "rocchio"] | None = None,
    **options: Any,
) -> Retriever:
    """Search with one vector per text: the ANCE row.

    Parameters
    ----------
    context
        Of the collection.
    model
        What :meth:`VectorEncoder.load` opens: a folder with an ONNX network, or a bi-encoder of sentence-transformers
        (``[hub]``); the mean of ColBERT's vectors, from the index, if left out.
    feedback
        How the query moves.
    options
        Of the network, where its folder does not say; of the search; and of feedback, α and β being Rocchio's.
    """
    method = None if feedback is None else AverageFeedback if feedback == "average" else RocchioFeedback
    if model:
        encoder = VectorEncoder.load(model, **chosen(options, VectorEncoder.load))
        name = _folder_name(model, encoder)
    else:
        encoder = MeanEncoder(context.encoder)
        name = f"mean.{context.bits}.{digest_of_encoder(context.model)[:8]}"
    path = context.path(f"{name}.vectors")
    if not context.is_built(path):
        context.note_building(path)
        if model:
            VectorIndex.create(path, context.documents(), encoder)
        else:
            VectorIndex.create_from_index(path, context.index(), name=encoder.name)
    return SingleVector(
        VectorIndex.open(path),
        encoder,
        feedback=method(**chosen(options, method)) if method else None,
        **chosen(options, SingleVector),
    )


def _folder_name(model: str, encoder: VectorEncoder) -> str:
    """One model told from another that was in the same place, or that encodes documents in another way."""
    if isinstance(encoder, OnnxVectorEncoder):
        return f"{slug(model)}.{encoder.fingerprint[:8]}"
    return f"{slug(model)}.{digest_of_model(model)[:8]}" if Path(model).exists() else slug(model)


def _term_feedback_of(
    feedback: str | None = None, weights: str | None = None, questions: str | None = None, **given: Any
) -> TermFeedback | None:
    """The feedback method that parameters of a row describe; those of the search are passed over."""
    if weights is not None and questions is not None:
        raise InputError("weights make a DeepCT row, questions a docT5query row: give one of them")
    tuning = chosen(given, RM3)
    if feedback is None:
        if tuning:
            raise InputError(f"there is no parameter {next(iter(tuning))!r} without feedback = 'rm3', 'bo1' or 'kl'")
        return None
    method = TERM_METHODS[feedback]
    if other := [name for name in tuning if name not in chosen(tuning, method)]:
        raise InputError(f"feedback {feedback!r} has no parameter {other[0]!r}, which is of rm3")
    return method(**tuning)


@system("bm25", like=[BM25, RM3], check=_term_feedback_of, models=("weights", "questions"))
def bm25(
    context: Context,
    *,
    feedback: Literal["rm3", "bo1", "kl"] | None = None,
    weights: str | None = None,
    questions: str | None = None,
    num_queries: int = 5,
    **options: Any,
) -> Retriever:
    """BM25 over the terms of the documents: counted, weighed as DeepCT does, or with the questions of docT5query.

    Parameters
    ----------
    context
        Of the collection.
    feedback
        How the query is expanded.
    weights
        For DeepCT: the file of a :class:`TermRegression`, or a token classifier for ``[hub]``.
    questions
        For docT5query: a file of questions, or a T5-style checkpoint for ``[hub]``, which writes ``num_queries``.
    options
        Of :class:`BM25` and of the feedback method.
    """
    index = _lexical_index(context, weights, questions, num_queries)
    return BM25(index, feedback=_term_feedback_of(feedback, **options), **chosen(options, BM25))


def _lexical_index(context: Context, weights: str | None, questions: str | None, num_queries: int) -> LexicalIndex:
    """The lexical index of the documents, built once and found again later."""
    made_from = weights or questions
    path = context.path("lexical")
    if made_from is not None:
        # The folder tells one model or file from another of the same name.
        counted = f"{num_queries}" if questions else f"{context.bits} {digest_of_encoder(context.model)}"
        digest = hashlib.sha256(_content(made_from) + counted.encode()).hexdigest()[:8]
        path = context.path(f"{'deepct' if weights else 'doct5query'}.{slug(Path(made_from).name)}.{digest}.lexical")
    if context.is_built(path):
        return LexicalIndex.open(path)
    context.note_building(path)
    if weights is not None:
        return _weighted(context, weights, path)
    if questions is not None:
        expansions = (
            read_expansions(questions)
            if Path(questions).is_file()
            else QueryGenerator(questions, num_queries=num_queries)
        )
        with progress_bar("Writing questions") as advance:
            expanded = expanded_documents(context.documents(), expansions, progress=advance)
            return LexicalIndex.create(path, expanded)
    return LexicalIndex.create(path, context.documents())


def _weighted(context: Context, weights: str, path: Path) -> LexicalIndex:
    """A regression reads the vectors of the ColBERT index, which most experiments have; other models read texts."""
    with progress_bar("Weighing terms") as advance:
        if Path(weights).is_file():
            index = context.index()
            learned = TermRegression.load(weights, encoder=context.encoder)
            kept = index.snapshot.manifest.settings.texts
            documents = learned.indexed_documents(index, progress=advance)
            return LexicalIndex.create_from_terms(path, documents, texts=kept, progress=False)
        documents = weighted_documents(context.documents(), TorchTermWeigher(weights), progress=advance)
        return LexicalIndex.create_from_terms(path, documents, texts=True, progress=False)


def _content(name: str) -> bytes:
    """What a file holds, or the name of a model."""
    return Path(name).read_bytes() if Path(name).is_file() else name.encode()
