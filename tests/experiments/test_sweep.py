"""A study finds what searches with each setting find, but searches once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.errors import InputError
from colbert_prf.evaluation import evaluate
from colbert_prf.experiments.experiment import Judged
from colbert_prf.experiments.figures import sweep_figures
from colbert_prf.experiments.sweep import GRID, STUDIES, KeptFirstPass, run_sweep, sweep_settings

WORDS = "goldfish tank bank rate river army soldier pond winter growth money loan water fin market shell".split()
TOPICS = {"q1": "do goldfish grow in a tank", "q2": "rates of a river bank"}
QRELS = {"q1": {f"d{number}": number % 2 for number in range(12)}, "q2": {f"d{number}": 1 for number in range(3)}}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    rng = np.random.default_rng(7)
    documents = [(f"d{number}", " ".join(rng.choice(WORDS, 12)) + ".") for number in range(40)]
    return Index.create(tmp_path_factory.mktemp("sweep") / "my.index", documents, bits=4, progress=False)


SETTINGS = [
    ColbertPRF(clusters=8, expansion_vectors=3, weight=0.5),
    ColbertPRF(clusters=8, expansion_vectors=8, weight=0.1, rerank=True),
    ColbertPRF(clusters=8, expansion_vectors=5, beta=1),
    ColbertPRF(clusters=5, expansion_vectors=5, feedback_docs=2),
    ColbertPRF(clusters=8, expansion_vectors=3, weight=0),
    ColbertPRF(clusters=6, expansion_vectors=3, weight=0.5, clustering="kmedoids", weighting="ictf", rerank_depth=5),
]


@pytest.mark.parametrize("method", SETTINGS)
def test_a_kept_first_pass_gives_what_a_search_gives(index, method):
    query = index.encoder.encode_query(TOPICS["q1"])
    with ThreadPoolExecutor(1) as executor:
        kept = KeptFirstPass(index, query, 20, threads=1, executor=executor)
        kept.scores_again(replace(method, expansion_vectors=1, weight=7.0, beta=None, rerank=not method.rerank))
        found = kept.scores_again(method)
        first = kept.scores
    searcher = Searcher(index)
    expected = searcher.search(query, 20, feedback=method)
    assert list(found.items()) == [(hit.doc_id, hit.score) for hit in expected]
    assert first == {hit.doc_id: hit.score for hit in searcher.search(query, 20)}


def test_each_clustering_is_made_once(index, monkeypatch):
    clustered, expand = [], ColbertPRF.expand
    monkeypatch.setattr(
        ColbertPRF, "expand", lambda self, *given, **options: clustered.append(1) or expand(self, *given, **options)
    )
    studies = sweep_settings(
        {"clusters": [4, 8], "expansion_vectors": [2, 4], "weight": [0.1, 0.5], "beta": [1]},
        ["expansion", "weight", "beta"],
        base=ColbertPRF(clusters=8, expansion_vectors=4),
    )
    run_sweep(index, Judged(TOPICS, QRELS), studies, k=20, progress=False)
    assert len(clustered) == 2 * 2  # topics × K


def test_the_means_are_those_of_an_evaluation(index):
    studies = {"weight": tuple(SETTINGS[:2])}
    found = run_sweep(index, Judged(TOPICS, QRELS), studies, ["MAP", "P@5"], k=20, progress=False)
    searcher = Searcher(index)
    runs = {
        name: {
            query_id: {hit.doc_id: hit.score for hit in searcher.search(text, 20, feedback=method)}
            for query_id, text in TOPICS.items()
        }
        for name, method in (("first", None), ("a", SETTINGS[0]), ("b", SETTINGS[1]))
    }
    expected = evaluate(QRELS, runs, ["MAP", "P@5"]).means
    assert np.vstack([found.first_pass, *(found.means[one] for one in SETTINGS[:2])]) == pytest.approx(expected)
    rows = found.table().rows
    assert rows[0].labels[1] == "first pass"
    assert rows[1].labels == ("weight", "Ranker", "1", "8", "3", "0.5", "")
    assert rows[2].labels[1] == "ReRanker"


def test_every_study_has_ranker_and_reranker_and_no_impossible_setting():
    found = sweep_settings(GRID, list(STUDIES))
    for settings in found.values():
        assert sum(one.rerank for one in settings) * 2 == len(settings)
    assert all(one.expansion_vectors <= one.clusters for one in found["expansion"])
    for name in ("weight", "beta"):
        assert {one.strength for one in found[name]} == {(name, value) for value in GRID[name]}
    assert {one.clusters for one in found["feedback_docs"]} == {24}
    with pytest.raises(InputError, match="no study 'betas'; choose expansion, feedback_docs, weight, beta"):
        sweep_settings(GRID, ["betas"])
    with pytest.raises(InputError, match="at most as many vectors added as clusters"):
        sweep_settings({"clusters": [2], "expansion_vectors": [4]}, ["expansion"])


def test_a_study_of_one_strength_leaves_the_other_out():
    found = sweep_settings(GRID, ["feedback_docs", "weight", "beta"], base=ColbertPRF(beta=0.5))
    assert {one.strength for one in found["feedback_docs"]} == {("beta", 0.5)}
    assert {one.strength.name for one in found["weight"]} == {"weight"}
    # The default, which two studies have, is one setting.
    found = sweep_settings(GRID, ["feedback_docs", "weight"])
    assert len({*found["feedback_docs"]} & {*found["weight"]}) == 2


def test_fewer_documents_than_feedback_needs(index):
    with pytest.raises(InputError, match="k must be at least"):
        run_sweep(index, Judged(TOPICS, QRELS), {"weight": [ColbertPRF(feedback_docs=3)]}, k=2, progress=False)


def test_the_figures(index):
    studies = sweep_settings(
        {"clusters": [4, 8], "expansion_vectors": [2, 8], "feedback_docs": [1, 2], "weight": [0, 0.5], "beta": [0, 1]},
        list(STUDIES),
        base=ColbertPRF(clusters=8, expansion_vectors=4),
    )
    found = run_sweep(index, Judged(TOPICS, QRELS), studies, k=20, progress=False)
    figures = sweep_figures(found, "mine")
    assert list(figures) == ["studies", "heat-ranker", "heat-reranker"]
    ranker, _, documents, weight, beta = figures["studies"].axes
    four, eight, base = ranker.lines
    assert (four.get_label(), len(four.get_xdata()), len(eight.get_xdata())) == ("K = 4", 1, 2)
    assert set(base.get_ydata()) == {found.first_pass[0]}
    assert [line.get_label() for line in documents.lines] == ["Ranker", "ReRanker", "first pass"]
    assert (weight.get_title(), beta.get_title()) == ("Weight", "β")
    for panel in (weight, beta):
        assert panel.lines[0].get_ydata()[0] == pytest.approx(found.first_pass[0])  # 0 is the first pass
    assert len(figures["heat-ranker"].axes[0].texts) == 3
