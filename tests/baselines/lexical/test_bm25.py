"""BM25 by hand, and against bm25s."""

from __future__ import annotations

from itertools import islice
from math import log, log2

import pytest

from colbert_prf import InputError
from colbert_prf.baselines.lexical import BM25, LexicalIndex
from colbert_prf.baselines.lexical.analysis import Analyzer


def scores(ranking):
    return {hit.doc_id: hit.score for hit in ranking}


def test_scores_by_hand(index):
    # N = 3, avg = 3. "tank" is in 1 document: idf log2(2.5 / 1.5); in x once, |x| = 3, so K = 1.2.
    # "fish" is in 2: idf log2(1.5 / 2.5); in x twice, in y once, |y| = 2, so K = 1.2 (0.25 + 0.75 * 2 / 3) = 0.9.
    rare, common = log2(2.5 / 1.5), log2(1.5 / 2.5)
    found = scores(BM25(index).search("fish tank"))
    assert found == pytest.approx({"x": rare / 2.2 + common * 2 / 3.2, "y": common / 1.9})


def test_a_repeated_query_term_saturates(index):
    once, twice = (scores(BM25(index).search(query))["x"] for query in ("tank", "tank tank"))
    assert twice / once == pytest.approx(9 * 2 / 10)
    assert scores(BM25(index, k3=None).search("tank tank"))["x"] == pytest.approx(2 * once)


def test_lucene_idf_by_hand(index):
    found = scores(BM25(index, k1=0.9, b=0.4, idf="lucene").search("tank"))
    assert found == pytest.approx({"x": log(1 + 2.5 / 1.5) / (1 + 0.9)})


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4), (2.0, 0.0)])
def test_equal_to_bm25s(shared_data, tmp_path, k1, b):
    bm25s = pytest.importorskip("bm25s")
    from colbert_prf.datasets import read_corpus, read_topics

    documents = list(islice(read_corpus(shared_data / "vaswani/collection.tsv.gz"), 2000))
    ours = BM25(LexicalIndex.create(tmp_path / "l", documents, progress=False), k1=k1, b=b, k3=None, idf="lucene")
    analyzer = Analyzer()
    theirs = bm25s.BM25(k1=k1, b=b, method="lucene")
    theirs.index([analyzer.terms(text) for _, text in documents], show_progress=False)
    for text in list(read_topics(shared_data / "vaswani/queries.tsv").values())[:20]:
        expected = theirs.get_scores(analyzer.terms(text))
        names = {doc_id: float(score) for (doc_id, _), score in zip(documents, expected, strict=True) if score > 0}
        assert scores(ours.search(text, 2000)) == pytest.approx(names, rel=1e-4)


def test_k_cuts_and_ties_are_in_index_order(tmp_path):
    index = LexicalIndex.create(tmp_path / "l", [(name, "same words") for name in "cab"], progress=False)
    assert BM25(index, idf="lucene").search("words", k=2).doc_ids == ["c", "a"]


def test_a_document_that_shares_no_term_is_not_found(index):
    assert BM25(index).search("fell").doc_ids == ["z"]
    assert BM25(index).search("unknown words").doc_ids == []
    assert len(BM25(index).search("")) == 0


def test_explanation_adds_up(index):
    system = BM25(index)
    explanation = system.explain("fish tank nothing", "x")
    assert explanation.score == pytest.approx(scores(system.search("fish tank nothing"))["x"])
    assert [(match.term, match.frequency, match.document_frequency) for match in explanation.matches] == [
        ("fish", 2, 2),
        ("tank", 1, 1),
        ("nothing", 0, 0),
    ]


def test_hits_have_texts_and_the_ranking_its_query(index):
    ranking = BM25(index).search("tank")
    assert (ranking.query, ranking.hits[0].text) == ("tank", "fish fish tank")
    with pytest.raises(InputError, match="its query is a text"):
        _ = ranking.encoded_query


@pytest.mark.parametrize("wrong", [{"k1": -1}, {"b": 1.5}, {"k3": -2}, {"idf": "tf"}])
def test_impossible_parameters_are_refused(index, wrong):
    with pytest.raises(InputError):
        BM25(index, **wrong)
    with pytest.raises(InputError, match="k must be"):
        BM25(index).search("fish", k=0)


def test_published_figures_on_vaswani(shared_data, tmp_path):
    """PyTerrier's documentation gives MAP .2965 for BM25 with Terrier's default pipeline."""
    pytest.importorskip("ir_measures")
    from colbert_prf.baselines.lexical import RM3
    from colbert_prf.datasets import read_corpus, read_qrels, read_topics
    from colbert_prf.evaluation import evaluate

    folder = shared_data / "vaswani"
    index = LexicalIndex.create(tmp_path / "l", read_corpus(folder / "collection.tsv.gz"), progress=False)
    topics = read_topics(folder / "queries.tsv")
    systems = {"bm25": BM25(index), "rm3": BM25(index, feedback=RM3())}
    runs = {
        name: {query: scores(system.search(text, 1000)) for query, text in topics.items()}
        for name, system in systems.items()
    }
    found = evaluate(read_qrels(folder / "qrels.txt"), runs, measures=["AP"])
    assert found.mean("bm25", "AP") == pytest.approx(0.2965, abs=0.01)
    assert 0 < found.mean("rm3", "AP") - found.mean("bm25", "AP") < 0.02


def test_documents_have_the_lengths_the_hand_worked_numbers_use(index):
    assert index.analyzer == Analyzer(stop_words="none", stemmer="none")
    assert index.snapshot.lengths.tolist() == [3, 2, 4]
