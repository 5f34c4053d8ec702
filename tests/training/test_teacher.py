"""Teachers: MaxSim of an encoder, checked against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.training import Example
from colbert_prf.training.teacher import EXAMPLES_AT_ONCE, colbert_teacher, open_teacher, score_examples

EXAMPLES = [
    Example("do goldfish grow", ("Goldfish grow all their life.", "The bank raised its rates.")),
    Example("bank rates", ("The bank raised its rates.", "Goldfish grow all their life.")),
]


def test_a_colbert_model_teaches_maxsim(encoder):
    for example in score_examples(EXAMPLES, colbert_teacher(encoder)):
        query = encoder.encode_query(example.query)
        documents = encoder.encode_documents(example.documents)
        expected = [float(query.weights @ (query.vectors @ document.vectors.T).max(axis=1)) for document in documents]
        assert example.scores == pytest.approx(expected, abs=1e-4)
        assert example.scores[0] > example.scores[1]


def test_how_many_are_scored_at_once_changes_nothing(encoder):
    many = EXAMPLES * (EXAMPLES_AT_ONCE // 2 + 1)
    scored = list(score_examples(many, open_teacher(None)))
    assert [example.query for example in scored] == [example.query for example in many]
    np.testing.assert_allclose(scored[0].scores, scored[-2].scores, atol=1e-5)
