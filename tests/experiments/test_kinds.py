"""Every row of the paper's table as a short entry: what each kind builds, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colbert_prf import (
    BM25,
    RM3,
    BertQE,
    ColbertReranker,
    ColbertTextReranker,
    Fusion,
    Index,
    InputError,
    SingleVector,
)
from colbert_prf.baselines.lexical import TermRegression
from colbert_prf.experiments import Context, read_experiment
from colbert_prf.experiments.registry import Entry, check_entries

TEXTS = {"fish": "Goldfish grow in a tank.", "pond": "Ponds have goldfish.", "bank": "The bank raised rates."}


@pytest.fixture
def make_context(tmp_path):
    (tmp_path / "corpus.tsv").write_text("".join(f"{doc_id}\t{text}\n" for doc_id, text in TEXTS.items()))

    def make(*entries: Entry) -> Context:
        rows = {entry.name: entry for entry in entries}
        check_entries(rows)
        return Context(str(tmp_path / "corpus.tsv"), "fish", tmp_path / "kept", rows, bits=4)

    return make


def test_rows_stack(make_context):
    context = make_context(
        Entry("BM25", "bm25", {"k1": 0.9, "b": 0.4}),
        Entry("RM3", "bm25", {"feedback": "rm3", "feedback_docs": 2, "original": 0.5}),
        Entry("E2E", "colbert"),
        Entry("RM3+ColBERT", "colbert-reranker", {"first": "RM3"}),
        Entry("RM3+PRF", "colbert-reranker", {"first": "RM3", "feedback": "prf", "clusters": 4, "weight": 0.1}),
        Entry("RM3+texts", "colbert-text-reranker", {"first": "RM3", "depth": 2}),
        Entry("QE", "bert-qe", {"first": "RM3+ColBERT", "chunks": 3}),
        Entry("mean", "single-vector", {"feedback": "rocchio", "exact": False}),
        Entry("all", "fusion", {"systems": ["BM25", "E2E", "mean"], "method": "scores", "weights": [1, 2, 0.5]}),
    )
    built = {name: context.system(name) for name in context.entries}
    kinds = [BM25, BM25, None, ColbertReranker, ColbertReranker, ColbertTextReranker, BertQE, SingleVector, Fusion]
    for system, kind in zip(built.values(), kinds, strict=True):
        assert kind is None or type(system) is kind
        assert system.search("do goldfish grow", 3).doc_ids[0] == "fish"
    assert (built["BM25"].k1, built["BM25"].b) == (0.9, 0.4)
    assert built["RM3"].feedback == RM3(feedback_docs=2, original=0.5)
    assert built["RM3"].index.path == built["BM25"].index.path
    assert (built["RM3+PRF"].feedback.clusters, built["RM3+PRF"].first) == (4, built["RM3"])
    assert built["all"].systems == [built["BM25"], built["E2E"], built["mean"]]


def test_deepct_and_doct5query_rows(make_context, tmp_path, encoder):
    TermRegression.train([(TEXTS["fish"], ["goldfish tank"]), (TEXTS["bank"], ["bank"])], encoder=encoder).save(
        tmp_path / "weights.json"
    )
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "pond", "queries": ["where do carp live"]}))
    context = make_context(
        Entry("DeepCT", "bm25", {"weights": str(tmp_path / "weights.json")}),
        Entry("docT5query", "bm25", {"questions": str(tmp_path / "questions.jsonl")}),
    )
    assert context.system("DeepCT").search("goldfish").doc_ids[0] in {"fish", "pond"}
    assert context.system("DeepCT").index.snapshot.lengths.max() > 10
    assert context.system("docT5query").search("carp").doc_ids == ["pond"]
    names = sorted(path.name for path in context.folder.glob("*.lexical"))
    assert context.path("4.index").is_dir()  # whose vectors the regression reads
    assert [name.rsplit(".", 2)[0] for name in names] == ["fish.deepct.weights.json", "fish.doct5query.questions.jsonl"]
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "bank", "queries": ["carp"]}))
    assert make_context(*context.entries.values()).system("docT5query").search("carp").doc_ids == ["bank"]


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("bm25", {"k1": "1"}, "k1 must be a number"),
        ("bm25", {"feedback": "rm4"}, "feedback must be 'rm3' or 'bo1' or 'kl'"),
        ("bm25", {"original": 0.5}, "no parameter 'original' without feedback"),
        ("bm25", {"feedback": "kl", "original": 0.5}, "feedback 'kl' has no parameter 'original'"),
        ("bm25", {"weights": "w", "questions": "q"}, "give one of them"),
        ("bm25", {"k2": 1}, "kind 'bm25' has no parameter 'k2'; it has feedback, weights, questions, num_queries, k1"),
        ("bert-qe", {"first": "other", "searcher": "x"}, "kind 'bert-qe' has no parameter 'searcher'"),
        ("colbert-reranker", {}, "needs the parameter 'first'"),
        ("colbert-reranker", {"first": "other", "betta": 1}, "no parameter 'betta' without feedback"),
        ("cross-encoder", {"first": "other"}, "needs the parameter 'model'"),
        ("fusion", {"systems": "other"}, "systems must be a list"),
        ("fusion", {"systems": ["other"], "method": "votes"}, "method must be 'ranks' or 'scores'"),
        ("single-vector", {"feedback": "mean"}, "feedback must be 'average' or 'rocchio'"),
    ],
)
def test_mistakes_are_named(kind, parameters, message):
    with pytest.raises(InputError, match="system 'row'") as caught:
        check_entries({"row": Entry("row", kind, parameters), "other": Entry("other", "bm25", {})})
    assert message in str(caught.value)


def test_the_shipped_configurations_have_every_row():
    folder = Path(__file__).parents[2] / "experiments"
    table = read_experiment(folder / "table.toml")
    assert len(table.rows) == 20
    pool = {row.name for row in read_experiment(folder / "trec-dl-pool.toml").rows}
    assert {"BM25, ours", "BM25+RM3+ColBERT+BERT-QE, ours", "Mean of ColBERT's vectors"} <= pool


def test_texts_come_from_the_corpus_where_the_index_has_none(make_context):
    context = make_context(Entry("E2E", "colbert"), Entry("QE", "bert-qe", {"first": "E2E", "chunks": 2}))
    context.folder.mkdir()
    Index.create(context.path("4.index"), TEXTS.items(), encoder=context.encoder, bits=4, texts=False, progress=False)
    assert context.system("E2E").search("do goldfish grow", 1).hits[0].text is None
    assert context.system("QE").search("do goldfish grow", 3).doc_ids[0] == "fish"
