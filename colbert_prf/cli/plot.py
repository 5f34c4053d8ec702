"""``colbert-prf plot``: what feedback learned, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from colbert_prf.cli.corpus import Reading, corpus_options
from colbert_prf.cli.expansion import likely_ids, likely_words
from colbert_prf.cli.feedback import feedback_from, marking_options, tuning_option
from colbert_prf.cli.output import json_option, model_option, print_json
from colbert_prf.cli.search import open_source
from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.feedback import ColbertPRF
from colbert_prf.feedback.weighting import inverse_frequency
from colbert_prf.index.collection import DocumentVectors
from colbert_prf.plots import Contrast, Panel, plot_expansion, save_figure
from colbert_prf.plots.files import check_figure_path
from colbert_prf.search.searcher import Searcher
from colbert_prf.types import EncodedQuery, Expansion

__all__ = ["plot"]

LEGEND_CHARACTERS = 60


@click.command()
@click.argument("source")
@click.argument("query")
@click.option("--output", "-o", required=True, metavar="FILE", help="The figure: .png, .svg or .pdf.")
@tuning_option("clusters", multiple=True)
@tuning_option("feedback_docs")
@tuning_option("expansion_vectors")
@tuning_option("clustering")
@tuning_option("weighting")
@tuning_option("compat")
@marking_options
@click.option("--compare", metavar="TEXT", help="A text from another context, to see a word in both.")
@corpus_options()
@model_option
@json_option
def plot(
    source: str,
    query: str,
    output: str,
    clusters: tuple[int, ...],
    relevant: tuple[str, ...],
    non_relevant: tuple[str, ...],
    compare: str | None,
    reading: Reading,
    model: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw QUERY, the passages of SOURCE that feedback learns from, and the centroids it finds, in two dimensions.

    The plane is that of the principal components of query and passages. A centroid is larger the more its token tells
    passages apart; those added to the query are filled. Repeat --clusters for one panel each. Words that --compare
    shares with them are marked in both: the same word, in another place. Needs the extra [plots].

    \b
    Examples:
      colbert-prf plot my.index "do goldfish grow" --output figure.png
      colbert-prf plot my.index "do goldfish grow" -o figure.pdf --clusters 8 --clusters 24
      colbert-prf plot my.index "do goldfish grow" -o figure.svg --compare "The tank bombarded the troops."
    """
    path = check_figure_path(output)
    methods = [_method({**options, "clusters": count}) for count in clusters or (ColbertPRF.clusters,)]
    searcher = Searcher(open_source(source, reading, model))
    encoder = searcher.encoder
    encoded = encoder.encode_query(query)
    found = searcher.search(encoded, max(method.feedback_docs for method, _ in methods) + len(non_relevant))
    expansions = [
        method.expand(encoded, relevant or found, searcher.index, non_relevant=non_relevant) for method, _ in methods
    ]
    if not len(expansions[0].feedback):
        raise InputError("there is nothing to learn from: the index has no passage with vectors")
    panels = [
        _panel(expansion, method.clusters, count, encoder)
        for expansion, (method, count) in zip(expansions, methods, strict=True)
    ]
    collection = searcher.index.snapshot
    feedback = collection.vectors_of(collection.positions(expansions[0].feedback))
    words = _words_of(encoded, encoder)
    figure = plot_expansion(
        query,
        encoded.vectors[words],
        encoder.tokens(encoded.token_ids[words].tolist()),
        feedback.vectors,
        panels,
        augmentation=encoded.vectors[~words],
        contrast=_contrast(compare, encoded, expansions, feedback, searcher) if compare else None,
    )
    save_figure(figure, path)
    _report(path, expansions, panels, as_json)


def _method(options: dict[str, Any]) -> tuple[ColbertPRF, int]:
    """A method that keeps every centroid, and how many of them it would add to a query."""
    asked = feedback_from({**options, "feedback": "prf"})
    every = feedback_from({**options, "feedback": "prf", "expansion_vectors": options["clusters"]})
    assert isinstance(asked, ColbertPRF)
    assert isinstance(every, ColbertPRF)
    return every, asked.expansion_vectors


def _words_of(query: EncodedQuery, encoder: Encoder) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which vectors of a query are of its text, not of what it was filled up with."""
    augmenting = encoder.settings.augment_to > 0
    spelled = encoder.tokens(query.token_ids.tolist())
    return np.array([not (augmenting and token == encoder.settings.augment_token) for token in spelled], np.bool_)


def _panel(expansion: Expansion, clusters: int, count: int, encoder: Encoder) -> Panel:
    vectors = expansion.vectors
    return Panel(
        f"K = {clusters}",
        expansion.query.vectors[expansion.num_original :],
        [likely_words(vector, encoder.tokens) for vector in vectors],
        np.array([vector.sigma for vector in vectors], dtype=np.float64),
        np.arange(len(vectors)) < count,  # they come by σ, the largest first
    )


def _contrast(
    text: str, query: EncodedQuery, expansions: Sequence[Expansion], feedback: DocumentVectors, searcher: Searcher
) -> Contrast:
    """The vectors of a text, those marked whose word the query, a centroid or a passage has too."""
    encoder, collection = searcher.encoder, searcher.index.snapshot
    document = next(encoder.encode_documents([text]))
    known = {*query.token_ids.tolist(), *feedback.token_ids.tolist()} - encoder.special_ids
    known.update(
        token_id for expansion in expansions for vector in expansion.vectors for token_id in likely_ids(vector)
    )
    words = encoder.tokens(document.token_ids.tolist())
    common = [
        token_id in known and any(map(str.isalnum, word))
        for token_id, word in zip(document.token_ids, words, strict=True)
    ]
    rarity = inverse_frequency(collection.document_frequencies, document.token_ids, collection.num_documents)
    # Of the words in common those that tell passages apart: "tank", not "the".
    least = rarity[common].max(initial=0) / 2
    shared = {place: words[place] for place in np.flatnonzero(common).tolist() if rarity[place] >= least}
    twins = feedback.vectors[np.isin(feedback.token_ids, document.token_ids[list(shared)])]
    short = text if len(text) <= LEGEND_CHARACTERS else text[:LEGEND_CHARACTERS].rsplit(" ", 1)[0] + " …"
    return Contrast(f"“{short}”", document.vectors, shared, twins)


def _report(path: Path, expansions: Sequence[Expansion], panels: Sequence[Panel], as_json: bool) -> None:
    if as_json:
        shown = [
            {"centroids": list(panel.labels), "sigmas": panel.sigmas.tolist(), "feedback": list(expansion.feedback)}
            for panel, expansion in zip(panels, expansions, strict=True)
        ]
        print_json({"figure": str(path), "panels": shown})
        return
    click.echo(
        f"{path}: {len(panels)} panel{'s' * (len(panels) > 1)}, learned from {', '.join(expansions[0].feedback)}."
    )
