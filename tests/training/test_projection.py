"""The principal components of token vectors."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import InputError
from colbert_prf.training.projection import principal_components, rarity_weights, token_ids, token_vectors

CROSS = np.array([[3, 0], [-3, 0], [0, 2], [0, -2]], np.float32)


def test_weights_count_as_repetitions():
    counts = np.array([1, 4, 2, 3])
    repeated = principal_components(np.repeat(CROSS, counts, axis=0), dim=2, centred=True)
    weighted = principal_components(CROSS, dim=2, centred=True, weights=counts.astype(float))
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)


def test_what_is_rare_decides_the_direction():
    # Without weights the first axis has the larger variance, 18 against 8; a tenth of it is less than 8.
    plain, _, kept = principal_components(CROSS, dim=1, centred=True)
    assert plain.tolist() == [[1, 0]]
    assert kept == pytest.approx(18 / 26)
    weighted, mean, kept = principal_components(CROSS, dim=1, centred=True, weights=np.array([0.1, 0.1, 1, 1]))
    assert weighted.tolist() == [[0, 1]]
    assert kept == pytest.approx(8 / 9.8)
    np.testing.assert_allclose(mean, 0, atol=1e-12)


def test_rarity_is_a_power_of_the_count():
    ids = np.array([5, 9, 5, 5, 5])
    assert rarity_weights(ids, 0).tolist() == [1] * 5
    assert rarity_weights(ids, 0.5).tolist() == [0.5, 1, 0.5, 0.5, 0.5]
    assert rarity_weights(ids, 1).tolist() == [0.25, 1, 0.25, 0.25, 0.25]


def test_more_dimensions_than_there_are():
    with pytest.raises(InputError, match="2 components, which cannot give 3"):
        principal_components(CROSS, dim=3, centred=True)


def test_every_vector_has_its_token(base):
    from sentence_transformers.base.modules import Transformer

    transformer = Transformer(str(base), max_seq_length=6)
    texts = ["goldfish grow", "a", "a b c d e f g h"]
    ids = token_ids(transformer, texts)
    assert [len(found) for found in ids] == [len(rows) for rows in token_vectors(transformer, texts)] == [5, 3, 6]
    assert transformer.tokenizer.convert_ids_to_tokens(ids[0]) == ["[CLS]", "gold", "##fish", "grow", "[SEP]"]
