"""The page that explains the IR, and operations whose definition is one line of NumPy."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

from colbert_prf.kernels import simd
from colbert_prf.kernels.compiled import compiled
from colbert_prf.kernels.simd.float_tile import float_tile, float_tile_32
from colbert_prf.kernels.simd.row_maximum import row_maximum_16, row_maximum_32


@compiled()
def _tile(vectors, row, columns, column, width, out):
    if width == 16:
        float_tile(vectors, row, vectors.shape[1], columns, column, columns.shape[1], out, 0, width)
    else:
        float_tile_32(vectors, row, vectors.shape[1], columns, column, columns.shape[1], out, 0, width)


@compiled()
def _maximum(table, column, codes, width, out):
    if width == 16:
        row_maximum_16(table, table.shape[1], column, codes, 0, len(codes), out)
    else:
        row_maximum_32(table, table.shape[1], column, codes, 0, len(codes), out)


def test_the_worked_example_of_the_page():
    page = Path(simd.__file__).with_name("README.md")
    assert doctest.testfile(str(page), module_relative=False).failed == 0


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("dim", [1, 7, 96])
def test_a_tile_is_a_product(width, dim):
    random = np.random.default_rng(dim)
    vectors, columns = (random.integers(-9, 10, shape).astype(np.float32) for shape in ((9, dim), (dim, 64)))
    out = np.zeros((4, width), np.float32)
    _tile(vectors, 3, columns, 16, width, out)
    assert np.array_equal(out, vectors[3:7] @ columns[:, 16 : 16 + width])


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_a_maximum_of_rows(width, dtype, count):
    random = np.random.default_rng(count)
    table, codes = random.integers(0, 256, (20, 48)).astype(np.uint8), random.integers(0, 20, count).astype(dtype)
    out = np.full(48, 7, np.uint8)
    _maximum(table, 16, codes, width, out)
    assert np.array_equal(out[16 : 16 + width], table[codes, 16 : 16 + width].max(axis=0, initial=0))
    assert (np.delete(out, np.s_[16 : 16 + width]) == 7).all()
