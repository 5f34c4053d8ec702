"""Documents a codec does not fit are noticed by their distance to its centroids."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from colbert_prf import EncodedDocument, Index
from colbert_prf.errors import OutgrownCodecWarning
from colbert_prf.index.fit import distance_ratio

DIM, LENGTH = 16, 20


def documents(first: int, count: int, *, centres: int) -> list[tuple[str, EncodedDocument]]:
    """Documents whose vectors lie around 40 directions, others for each number of ``centres``."""
    directions = np.random.default_rng(centres).standard_normal((40, DIM))
    made = []
    for number in range(first, first + count):
        random = np.random.default_rng(number)
        vectors = directions[random.integers(0, 40, LENGTH)] + 0.3 * random.standard_normal((LENGTH, DIM))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        made.append((f"d{number}", EncodedDocument(np.zeros(LENGTH, np.int32), vectors.astype(np.float32))))
    return made


@pytest.fixture(params=[2, 4, 16])
def index(tmp_path, request) -> Index:
    return Index.create_from_vectors(tmp_path / "i", documents(0, 600, centres=1), bits=request.param, progress=False)


def test_more_of_the_same_is_added_in_silence(index):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.add_vectors(documents(1000, 60, centres=1))
    assert distance_ratio(index.segments[1:], index.codec) == pytest.approx(1, abs=0.15)


def test_another_subject_is_noticed(index):
    with pytest.warns(OutgrownCodecWarning, match=r"times as far from their centroids .*merge\(retrain=True\)"):
        index.add_vectors(documents(1000, 60, centres=2))
    before = distance_ratio(index.segments[1:], index.codec)
    index.merge(retrain=True)
    assert distance_ratio(index.segments, index.codec) < before


def test_too_few_vectors_tell_nothing(index):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.add_vectors(documents(1000, 5, centres=2))


def test_the_ratio_by_hand(index):
    """The root mean square distance, over that of the codec's training vectors in the same centroids."""
    index.add_vectors(documents(1000, 10, centres=1))
    segment, codec = index.segments[1], index.codec
    codes = segment.columns["codes"].astype(int)
    away = segment.vectors(0, 10) - codec.centroids[codes][:, :DIM]
    expected = np.sqrt((away**2).sum() / (codec.radii[codes] ** 2).sum())
    assert distance_ratio([segment], codec) == pytest.approx(float(expected), rel=1e-5)


def test_no_vectors_are_at_no_distance(index):
    assert distance_ratio([], index.codec) == 1
