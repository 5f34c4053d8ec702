from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import InputError
from colbert_prf.index.codec import BITS, MAX_CENTROIDS, Codec, num_centroids_for, sample_size_for
from colbert_prf.kernels.trellis import levels_of_paths


def unit_vectors(count: int, dim: int = 12, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@cache
def trained(bits: int) -> Codec:
    return Codec.train(unit_vectors(200, 16), num_vectors_expected=200, bits=bits)


@pytest.fixture(scope="module", params=BITS)
def codec(request) -> Codec:
    return Codec.train(unit_vectors(600), num_vectors_expected=600, bits=request.param)


def codec_by_hand(bits: int, *, scales: tuple[float, float], gains: tuple[float, float]) -> Codec:
    """One centroid, and residuals of one length in all dimensions."""
    arrays = {
        "centroids": 100 * np.eye(1, 16, dtype=np.int8),
        "centroid_steps": np.full(16, 0.01, dtype=np.float32),
        "radii": np.full(1, 0.4, dtype=np.float16),
        "cell_centers": 100 * np.eye(1, 16, dtype=np.int8),
        "cell_lists": np.zeros((1, 1), dtype=np.uint16),
        "spread": np.ones(16, dtype=np.float32),
        "ranges": np.array([scales, gains], dtype=np.float32),
    }
    return Codec(bits, arrays, dim=16, trained_for=1)


def test_numbers_worked_out_by_hand():
    """Residuals of ±0.1, levels 7.5 ± 3 or so in units of 0.3352, scales in hundredths."""
    codec = codec_by_hand(4, scales=(0, 0.01), gains=(0.875, 1 / 512))
    signs = np.array([1, -1] * 8, dtype=np.float32)
    vector = np.eye(1, 16, dtype=np.float32) + 0.1 * signs
    columns = codec.encode(vector)
    # Divided by their own length the residuals are ±1, which is 7.5 ± 2.98: levels 10 and 5. A byte packs dimensions
    # i and i + 8.
    assert columns["residuals"].tolist() == [[0xAA, 0x55] * 4]
    # 10 decodes to 2.5 * 0.3352 = 0.838, and 0.1 / 0.838 = 0.119, so 12 hundredths; the residuals become ±0.10056.
    decoded = np.eye(1, 16) + 0.10056 * signs
    gain = np.linalg.norm(vector) / np.linalg.norm(decoded)
    assert columns["scales"].tolist() == [12 + 256 * round((gain - 0.875) * 512)]
    assert codec.decode(columns) == pytest.approx(gain * decoded, abs=1e-3)


def test_a_path_worked_out_by_hand():
    """Residuals of 0.23 everywhere; scales in twentieths from 0.15, gains in hundredths from 0.8."""
    codec = codec_by_hand(2, scales=(0.15, 0.05), gains=(0.8, 0.01))
    vector = np.eye(1, 16, dtype=np.float32) + np.float32(0.23)
    columns = codec.encode(vector)
    # A residual of length 0.23, stretched to 0.2415, is nearest to 0.25, two steps from 0.15. 0.23 / (0.25 / 1.05) is
    # 0.966, that is 2.88 of 0.3352 above the middle, level 10.4. Paths that stay at a symbol have the levels 14, 9, 6
    # and 1; one that changes is nearer.
    levels = levels_of_paths(columns["residuals"])[0].astype(float)
    assert np.square(levels - 10.38).sum() < 16 * (10.38 - 9) ** 2
    decoded = np.eye(1, 16) + 0.25 * 0.3352 * (levels - 7.5)
    gain = np.linalg.norm(vector) / np.linalg.norm(decoded)
    assert columns["scales"].tolist() == [2 + 16 * round((gain - 0.8) * 100)]
    assert codec.decode(columns) == pytest.approx(gain * decoded, abs=0.01)


def test_more_bits_are_nearer():
    vectors = unit_vectors(600)
    errors = []
    for bits in BITS:
        codec = Codec.train(vectors, num_vectors_expected=600, bits=bits)
        errors.append(float(np.square(codec.decode(codec.encode(vectors)) - vectors).sum(axis=1).mean()))
    assert errors == sorted(errors, reverse=True)
    # A normal distribution loses .01154 of its variance in 16 levels (Max, 1960), .091 in a trellis; the residual is
    # part of the vector.
    assert errors[0] < 0.091
    assert errors[1] < 0.0116
    assert errors[2] < 1e-6


def test_columns_are_as_declared(codec):
    columns = codec.encode(unit_vectors(7))
    declared = codec.columns
    assert columns.keys() == declared.keys()
    for name, (dtype, tail) in declared.items():
        assert columns[name].dtype == dtype
        assert columns[name].shape == (7, *tail)
    assert {name: len(column) for name, column in codec.encode(unit_vectors(0)).items()} == dict.fromkeys(columns, 0)


def test_a_code_is_two_bytes_and_a_residual_no_more_than_its_bits(codec):
    columns = codec.encode(unit_vectors(3, 12))
    assert columns["codes"].itemsize == 2
    if codec.bits < 16:
        assert columns["residuals"].shape[1] == 16 * codec.bits // 8  # dims are filled up to a multiple of 16


@pytest.mark.parametrize("dim", [3, 5, 8, 13])
@pytest.mark.parametrize("bits", BITS)
def test_any_dim_is_packed(dim, bits):
    vectors = unit_vectors(50, dim)
    codec = Codec.train(vectors, num_vectors_expected=50, bits=bits)
    decoded = codec.decode(codec.encode(vectors))
    assert decoded.shape == vectors.shape
    assert decoded.dtype == np.float32
    assert np.einsum("ij,ij->i", decoded, vectors).mean() > 0.85


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 100), st.sampled_from(BITS))
def test_a_vector_is_encoded_the_same_whatever_its_neighbours(sizes, seed, bits):
    codec = trained(bits)
    vectors = unit_vectors(sum(sizes), 16, seed)
    together = codec.encode(vectors)
    parts = [codec.encode(part) for part in np.split(vectors, np.cumsum(sizes)[:-1])]
    for name, column in together.items():
        assert np.array_equal(column, np.concatenate([part[name] for part in parts]))


def test_codes_are_the_nearest_of_all_centroids(codec):
    vectors = unit_vectors(100, seed=5)
    distances = np.square(codec.pad(vectors)[:, None] - codec.centroids[None]).sum(axis=2)
    assert codec.encode(vectors)["codes"].tolist() == distances.argmin(axis=1).tolist()


def test_scores_are_products_with_the_centroids(codec):
    vectors = unit_vectors(5, seed=2)
    scores = codec.scores(vectors)
    assert scores[:, :5] == pytest.approx(codec.centroids @ codec.pad(vectors).T, abs=1e-6)
    assert not scores[:, 5:].any()


def test_the_same_seed_gives_the_same_codec():
    vectors = unit_vectors(300)
    first, second, other = (Codec.train(vectors, num_vectors_expected=300, bits=2, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
    assert not np.array_equal(first.centroids, other.centroids)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_hardly_any_vectors(count):
    vectors = unit_vectors(count, 4)
    for bits in BITS:
        codec = Codec.train(vectors, num_vectors_expected=count, bits=bits)
        assert codec.centroids.shape == (max(1, 2 ** int(np.log2(max(count, 1)))), 16)
        assert codec.decode(codec.encode(vectors)) == pytest.approx(vectors, abs=0.8)


def test_the_number_of_centroids_grows_with_the_root_and_stays_in_two_bytes():
    counts = [num_centroids_for(10**power, 4) for power in range(12)]
    assert counts == [1, 8, 32, 128, 512, 1024, 4096, 16384, 32768, 65536, 65536, 65536]
    assert MAX_CENTROIDS == 65536
    assert all(sample_size_for(n, bits) <= min(n, 2**21) for n in (0, 1, 10**6, 10**12) for bits in BITS)


def test_few_bits_have_twice_as_many_centroids_where_there_are_vectors_for_them():
    counts = [num_centroids_for(10**power, 2) for power in range(12)]
    assert counts == [1, 8, 32, 128, 512, 1024, 8192, 32768, 65536, 65536, 65536, 65536]
    for num_vectors in range(10_000, 5_000_000, 9_999):
        few, many = (num_centroids_for(num_vectors, bits) for bits in (4, 2))
        assert many in (few, 2 * few)
        assert many == few or num_vectors >= 90 * many


def test_a_vector_far_from_every_centroid_is_kept_too():
    codec = Codec.train(np.eye(1, 16, dtype=np.float32), num_vectors_expected=1, bits=4)
    far = unit_vectors(100, 16)
    assert np.einsum("ij,ij->i", codec.decode(codec.encode(far)), far).mean() > 0.95


def test_other_bits_are_refused():
    with pytest.raises(InputError, match=r"bits must be one of \(2, 4, 16\), found 3"):
        Codec.train(unit_vectors(5), num_vectors_expected=5, bits=3)


def test_the_radius_of_a_centroid_is_the_length_of_its_residuals():
    vectors = unit_vectors(600)
    codec = Codec.train(vectors, num_vectors_expected=600, bits=16)
    codes = codec.encode(vectors)["codes"]
    lengths = np.linalg.norm(vectors - codec.centroids[codes][:, : vectors.shape[1]], axis=1)
    for code in np.unique(codes):
        assert codec.radii[code] == pytest.approx(np.sqrt(np.mean(np.square(lengths[codes == code]))), abs=1e-3)
