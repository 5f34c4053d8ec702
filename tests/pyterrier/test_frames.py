"""Every transformer under PyTerrier's own test, with empty frames and with missing columns."""

from __future__ import annotations

import pytest

pt = pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")

import pandas as pd  # noqa: E402

from colbert_prf import InputError  # noqa: E402
from colbert_prf.pyterrier import CrossEncoderScorer, RetrievedExpander  # noqa: E402

SMALL = {"feedback_docs": 2, "clusters": 6, "expansion_vectors": 4}
MAKERS = {
    "query_encoder": lambda index: index.query_encoder(),
    "end_to_end": lambda index: index.end_to_end(),
    "prf": lambda index: index.prf(**SMALL),
    "set_retrieve": lambda index: index.set_retrieve(),
    "scorer": lambda index: index.scorer(),
    "scorer with feedback": lambda index: index.scorer(feedback=index.prf(**SMALL).feedback),
    "text_scorer": lambda index: index.text_scorer(),
    "expand": lambda index: index.expand(**SMALL),
    "expand, keeping documents": lambda index: index.expand(**SMALL, keep_documents=True),
    "retrieved expander": lambda index: RetrievedExpander(index, feedback=index.prf(**SMALL).feedback),
    "explain": lambda index: index.explain(),
    "bm25": lambda index: index.bm25(),
    "bert_qe": lambda index: index.bert_qe(),
    "cross-encoder": lambda index: CrossEncoderScorer("no-such-model"),
    "text_loader": lambda index: index.text_loader(["text", "length"]),
    "a pipeline": lambda index: index.end_to_end() % 2 >> index.expand(**SMALL) >> index.end_to_end(),
}


@pytest.fixture(params=MAKERS)
def transformer(request, index):
    return MAKERS[request.param](index)


@pytest.mark.parametrize("test", ["test_inspect_io", "test_schematic"])
def test_it_passes_the_test_of_pyterrier(transformer, test, monkeypatch):
    monkeypatch.setattr(pt.documentation, "objects_inv", dict)  # links to its documentation need a network
    monkeypatch.setenv("PT_TEST_TRANSFORMER_REPORTS", "0")
    case = type("Case", (pt.testing.TransformerTestCase,), {"get_transformer": staticmethod(lambda: transformer)})
    case.setUpClass()
    failures = case(test).run()
    assert failures.wasSuccessful(), failures.failures + failures.errors
    assert failures.testsRun == 1
    if test == "test_inspect_io":
        assert case.io_configs
    case.tearDownClass()


def test_an_empty_frame_gives_an_empty_frame_with_the_columns_of_a_full_one(transformer, index, queries):
    full = (index.end_to_end(3) >> index.text_loader())(queries)
    needed = pt.inspect.transformer_inputs(transformer)[0]
    if "docno" not in needed:
        full = queries
    empty = transformer(full.iloc[:0])
    assert len(empty) == 0
    if not isinstance(transformer, CrossEncoderScorer):
        assert empty.columns.tolist() == transformer(full).columns.tolist()


def test_a_missing_column_is_an_error_in_the_style_of_pyterrier(transformer):
    inputs = pt.inspect.transformer_inputs(transformer)
    for columns in inputs:
        assert columns
        for absent in columns:
            rest = [name for name in columns if name != absent]
            if any(set(other) <= set(rest) for other in inputs):
                continue
            with pytest.raises(pt.validate.InputValidationError) as caught:
                transformer(pd.DataFrame(columns=rest))
            assert absent in str(caught.value)


def test_documents_are_no_queries(index, queries):
    found = index.end_to_end(2)(queries)
    for transformer in (index.end_to_end(), index.prf(**SMALL), index.set_retrieve(), index.bm25()):
        with pytest.raises(pt.validate.InputValidationError, match="docno"):
            transformer(found)


def test_different_vectors_are_different_queries_whatever_their_id(index, queries):
    encoded = index.query_encoder()(queries.head(2))
    twins = encoded.drop(columns="query").assign(qid="1")
    found = index.end_to_end(3)(twins)
    again = index.scorer()(found)
    expected = dict(zip(found["docno"] + found["rank"].astype(str), found["score"], strict=True))
    assert again["rank"].tolist() == [0, 1, 2, 0, 1, 2]
    assert again["score"].tolist() == pytest.approx(
        [expected[key] for key in again["docno"] + again["rank"].astype(str)], abs=1e-4
    )


def test_vectors_without_their_tokens_are_refused(index, queries):
    encoded = index.query_encoder()(queries).drop(columns="query_toks")
    with pytest.raises(InputError, match="there is a column query_embs and no query_toks"):
        index.end_to_end()(encoded)
