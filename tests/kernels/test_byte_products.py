from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.byte_products import multiply_bytes, multiply_bytes_definition


@pytest.fixture
def rows():
    return lambda count, dim: np.random.default_rng(count).integers(-127, 128, (count, dim), dtype=np.int8)


@pytest.mark.parametrize("num_rows", [1, 3, 4, 23, 100])
def test_products_are_those_of_the_definition(rows, query, num_query_vectors, num_rows, pool):
    stored, (queries, _) = rows(num_rows, 48), query(num_query_vectors, 48)
    sums = stored.sum(axis=1, dtype=np.int32)
    products = multiply_bytes(stored, sums, queries)
    assert np.array_equal(products, multiply_bytes_definition(stored, queries))
    assert not products[:, num_query_vectors:].any()
    assert np.array_equal(multiply_bytes(stored, sums, queries, threads=3, executor=pool), products)


@pytest.mark.parametrize("dim", [16, 128, 768, 4096])
def test_rounding_costs_less_than_a_thousandth(rows, query, dim):
    stored, (queries, _) = rows(40, dim), query(9, dim)
    products = multiply_bytes(stored, stored.sum(axis=1, dtype=np.int32), queries)
    lengths = np.linalg.norm(stored.astype(np.float32), axis=1)[:, None]
    assert np.abs(products[:, :9] - stored @ queries.T).max() < (1e-3 * lengths).min()


@pytest.mark.parametrize("dim", [1024, 4096])
def test_the_largest_numbers_do_not_overflow(dim):
    stored = np.array([[127], [-127], [127], [-127]], np.int8).repeat(dim, axis=1)
    queries = np.array([[1.0], [-1.0]], np.float32).repeat(dim, axis=1)
    products = multiply_bytes(stored, stored.sum(axis=1, dtype=np.int32), queries)
    expected = dim * 127 * np.array([[1, -1], [-1, 1], [1, -1], [-1, 1]])
    assert products[:, :2] == pytest.approx(expected, rel=1e-6)


def test_a_query_of_zeros_has_no_products(rows):
    stored = rows(8, 16)
    assert not multiply_bytes(stored, stored.sum(axis=1, dtype=np.int32), np.zeros((2, 16), np.float32)).any()
