"""``colbert-prf plot``: what feedback learned, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from colbert_prf.cli.corpus import Reading, corpus_options
from colbert_prf.cli.feedback import feedback_from, marking_options, tuning_option
from colbert_prf.cli.output import json_option, model_option, print_json
from colbert_prf.cli.search import open_source
from colbert_prf.encoder import Encoder
from colbert_prf.feedback import ColbertPRF
from colbert_prf.plots import Contrast, Panel, plot_expansion, save_figure
from colbert_prf.plots.files import check_figure_path
from colbert_prf.plots.plane import Plane, feedback_plane, is_word
from colbert_prf.search.searcher import Searcher
from colbert_prf.search.spelling import likely_words
from colbert_prf.types import Expansion

__all__ = ["plot"]

LEGEND_CHARACTERS = 60


@click.command(short_help="Draw what feedback learns, in a plane.")
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
    plane = feedback_plane(
        searcher,
        encoded,
        [method for method, _ in methods],
        relevant=relevant,
        non_relevant=non_relevant,
        compare=compare,
    )
    panels = [
        _panel(expansion, method.clusters, count, encoder)
        for expansion, (method, count) in zip(plane.expansions, methods, strict=True)
    ]
    words = is_word(encoded, encoder)
    figure = plot_expansion(
        query,
        encoded.vectors[words],
        encoder.tokens(encoded.token_ids[words].tolist()),
        plane.feedback.vectors,
        panels,
        augmentation=encoded.vectors[~words],
        contrast=_contrast(compare, plane, encoder) if compare else None,
    )
    save_figure(figure, path)
    _report(path, plane.expansions, panels, as_json)


def _method(options: dict[str, Any]) -> tuple[ColbertPRF, int]:
    """A method that keeps every centroid, and how many of them it would add to a query."""
    asked = feedback_from({**options, "feedback": "prf"})
    every = feedback_from({**options, "feedback": "prf", "expansion_vectors": options["clusters"]})
    assert isinstance(asked, ColbertPRF)
    assert isinstance(every, ColbertPRF)
    return every, asked.expansion_vectors


def _panel(expansion: Expansion, clusters: int, count: int, encoder: Encoder) -> Panel:
    vectors = expansion.vectors
    return Panel(
        f"K = {clusters}",
        expansion.query.vectors[expansion.num_original :],
        [likely_words(vector, encoder.tokens) for vector in vectors],
        np.array([vector.sigma for vector in vectors], dtype=np.float64),
        np.arange(len(vectors)) < count,  # they come by σ, the largest first
    )


def _contrast(text: str, plane: Plane, encoder: Encoder) -> Contrast:
    """The text to compare with, as the figure shows it."""
    assert plane.comparison is not None  # a text was given
    document, shared, twins = plane.comparison.document, plane.comparison.shared, plane.comparison.twins
    words = encoder.tokens(document.token_ids[shared].tolist())
    short = text if len(text) <= LEGEND_CHARACTERS else text[:LEGEND_CHARACTERS].rsplit(" ", 1)[0] + " …"
    labels = dict(zip(shared.tolist(), words, strict=True))
    return Contrast(f"“{short}”", document.vectors, labels, plane.feedback.vectors[twins])


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
