"""What the tokens of a query weigh, where a model says so."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest

from colbert_prf import Encoder, InputError, MemoryIndex, Searcher
from colbert_prf.encoder.folder import EMBEDDED, ModelFolder
from colbert_prf.encoder.rarity import query_weights
from colbert_prf.errors import ModelError


@pytest.fixture
def copied_model(tmp_path):
    shutil.copytree(EMBEDDED, tmp_path / "model")
    return ModelFolder(tmp_path / "model")


def test_weights_are_those_of_the_tokens_and_one_on_average(encoder):
    query = encoder.encode_query("the growth of a goldfish")
    table = np.load(ModelFolder(EMBEDDED).query_weights_file).astype(np.float64)
    expected = table[query.token_ids] / table[query.token_ids].mean()
    assert query.weights == pytest.approx(expected, rel=1e-5)
    assert query.weights.mean() == pytest.approx(1, abs=1e-6)
    by_token = dict(zip(encoder.tokens(query.token_ids), query.weights.tolist(), strict=True))
    assert by_token["the"] < by_token["of"] < by_token["[CLS]"] == by_token["[MASK]"]
    assert by_token["[MASK]"] < by_token["growth"] < by_token["##fish"]


def test_without_weights_vectors_and_fingerprint_are_the_same(encoder):
    plain = Encoder.load(query_weights=False)
    one, other = plain.encode_query("the growth of a goldfish"), encoder.encode_query("the growth of a goldfish")
    assert (one.weights == 1).all()
    assert np.array_equal(one.vectors, other.vectors)
    assert plain.fingerprint == encoder.fingerprint
    assert plain.query_fingerprint == plain.fingerprint != encoder.query_fingerprint


def test_other_weights_are_told_apart_where_queries_count(copied_model, encoder):
    np.save(copied_model.query_weights_file, 2 * np.load(copied_model.query_weights_file))
    other = Encoder.load(copied_model.path)
    assert other.fingerprint == encoder.fingerprint
    assert len({other.query_fingerprint, encoder.query_fingerprint, encoder.fingerprint}) == 3


def test_a_model_without_the_file_weighs_all_alike(copied_model):
    copied_model.query_weights_file.unlink()
    assert (Encoder.load(copied_model.path).encode_query("the goldfish").weights == 1).all()


def test_a_score_is_the_weighted_sum_of_best_similarities(encoder):
    texts = ["Goldfish grow all their life.", "The bank of the river."]
    index = MemoryIndex.create(zip("ab", texts, strict=True), encoder=encoder)
    query = encoder.encode_query("the goldfish")
    ranking = Searcher(index).search("the goldfish")
    for hit in ranking:
        vectors = next(encoder.encode_documents([texts["ab".index(hit.doc_id)]])).vectors
        assert hit.score == pytest.approx(float(query.weights @ (query.vectors @ vectors.T).max(axis=1)), abs=1e-4)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (np.ones(7, np.float32), "must hold 30522 weights"),
        (np.ones(30522, np.int64), "must hold 30522 weights"),
        (np.full(30522, np.nan, np.float32), "positive and finite"),
        (np.zeros(30522, np.float32), "positive and finite"),
        (np.array([{}] * 30522, dtype=object), "not an array"),
        (b"not numpy's", "not an array"),
        (b"", "not an array"),
    ],
)
def test_a_damaged_file_is_refused(copied_model, content, complaint):
    if isinstance(content, bytes):
        copied_model.query_weights_file.write_bytes(content)
    else:
        np.save(copied_model.query_weights_file, content)
    with pytest.raises(ModelError, match=complaint):
        Encoder.load(copied_model.path)


def test_a_weight_is_a_power_of_the_inverse_document_frequency():
    weights = query_weights(np.array([0, 4, 9]), 9, power=2)
    assert weights == pytest.approx([math.log(10) ** 2, math.log(2) ** 2, 0.05**2])
    assert (query_weights(np.array([0, 4, 9]), 9, power=0) == 1).all()


@pytest.mark.parametrize("frequencies", [[-1, 3], [0, 11]])
def test_frequencies_that_cannot_be_are_refused(frequencies):
    with pytest.raises(InputError, match="between 0 and the 10 documents"):
        query_weights(np.array(frequencies), 10)


def test_a_searcher_may_leave_the_weights_out(encoder):
    index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "The bank.")], encoder=encoder)
    searcher = Searcher(index, query_weights=False)
    query = encoder.encode_query("the goldfish")
    assert (searcher.encode("the goldfish").weights == 1).all()
    for hit in searcher.search("the goldfish"):
        vectors = index.vectors[index.offsets["ab".index(hit.doc_id)] : index.offsets["ab".index(hit.doc_id) + 1]]
        assert hit.score == pytest.approx(float((query.vectors @ vectors.T).max(axis=1).sum()), abs=1e-4)
        explanation = searcher.explain("the goldfish", hit.doc_id)
        assert sum(match.contribution for match in explanation.matches) == pytest.approx(hit.score, abs=1e-4)
