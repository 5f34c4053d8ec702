"""A guard against loss of effectiveness: first pass and Ranker on two judged collections, with the default settings.

``demo`` is the corpus of ``colbert-prf demo`` with 30 questions. Their judgements were made by hand for this test, on
the best 15 passages of the first pass, the Ranker and BM25, and on passages that a search for strings found: 2 answers
the question, 1 is about it, 0 is neither. ``vaswani`` has 93 queries.

After a change that is meant to alter the figures, such as a new model, copy those that the failing test prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.datasets import read_corpus, read_qrels, read_topics
from colbert_prf.demo import demo_passages
from colbert_prf.evaluation import evaluate

pytestmark = pytest.mark.slow

MEASURES = ("AP", "nDCG@10")
FIGURES = {
    "demo": {"first pass": (0.4305, 0.4751), "Ranker": (0.4721, 0.5242)},
    "vaswani": {"first pass": (0.3531, 0.5119), "Ranker": (0.3572, 0.5118)},
}
TOLERANCE = 0.003
NUM_PASSAGES = 3487
"""Of the demo's corpus, the documentation of one version of Python: judged was that of CPython 3.11."""

SYSTEMS = {"first pass": None, "Ranker": ColbertPRF()}
BITS, DEPTH = 4, 1000
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Judged:
    """A collection with queries and judgements."""

    documents: Iterable[tuple[str, str]]
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]


def demo(_request) -> Judged:
    passages = demo_passages()
    qrels = read_qrels(HERE / "demo.qrels.txt")
    missing = {doc_id for grades in qrels.values() for doc_id in grades} - {doc_id for doc_id, _ in passages}
    if missing or abs(len(passages) - NUM_PASSAGES) > NUM_PASSAGES / 100:
        pytest.skip(f"another version of Python was judged: {len(missing)} of its judged passages are not here")
    return Judged(passages, read_topics(HERE / "demo.queries.tsv"), qrels)


def vaswani(request) -> Judged:
    folder = request.getfixturevalue("shared_data") / "vaswani"
    if not folder.is_dir():
        pytest.skip("needs the collection in ../shared/data/vaswani")
    return Judged(
        read_corpus(folder / "collection.tsv.gz"),
        read_topics(folder / "queries.tsv"),
        read_qrels(folder / "qrels.txt"),
    )


@pytest.fixture(scope="session", params=[demo, vaswani], ids=lambda collection: collection.__name__)
def measured(request, encoder, tmp_path_factory):
    """The name of a collection, and the mean of each measure for each system."""
    judged = request.param(request)
    path = tmp_path_factory.mktemp("effectiveness") / "index"
    searcher = Searcher(Index.create(path, judged.documents, encoder=encoder, bits=BITS, progress=False))
    runs = {
        system: {
            query_id: {hit.doc_id: hit.score for hit in searcher.search(text, DEPTH, feedback=feedback)}
            for query_id, text in judged.queries.items()
        }
        for system, feedback in SYSTEMS.items()
    }
    evaluation = evaluate(judged.qrels, runs, MEASURES)
    return request.param.__name__, dict(zip(runs, evaluation.means.tolist(), strict=True))


def report(name, means) -> str:
    """All four figures, found and stated, and a line to copy into the table."""
    lines = [
        f"{name}, {system}, {measure}: found {found:.4f}, stated {stated:.4f}"
        for system in SYSTEMS
        for measure, found, stated in zip(MEASURES, means[system], FIGURES[name][system], strict=True)
    ]
    row = ", ".join(f'"{system}": ({means[system][0]:.4f}, {means[system][1]:.4f})' for system in SYSTEMS)
    return "\n".join([*lines, f'    "{name}": {{{row}}},'])


def test_the_figures_are_those_stated(measured):
    name, means = measured
    for system, stated in FIGURES[name].items():
        assert means[system] == pytest.approx(stated, abs=TOLERANCE, rel=0), report(name, means)


def test_feedback_does_not_lower_average_precision(measured):
    name, means = measured
    assert means["Ranker"][0] >= means["first pass"][0], report(name, means)


def test_every_question_has_3_to_20_relevant_passages():
    queries, qrels = read_topics(HERE / "demo.queries.tsv"), read_qrels(HERE / "demo.qrels.txt")
    assert qrels.keys() == queries.keys()
    assert len(queries) == 30
    assert all(3 <= sum(grade > 0 for grade in grades.values()) <= 20 for grades in qrels.values())
    assert {grade for grades in qrels.values() for grade in grades.values()} == {0, 1, 2}
