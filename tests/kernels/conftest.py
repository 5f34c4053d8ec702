"""Small random collections for the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from colbert_prf.kernels.assignment import nearest_definition
from colbert_prf.kernels.packed import PackedVectors
from colbert_prf.kernels.residual_encoding import encode_definition, train
from colbert_prf.kernels.residuals import ResidualCodec

DIMS = [16, 48, 128, 768]
"""One chunk of sixteen dimensions, an odd number of them, a power of two, and the size of BERT."""
NUM_QUERY_VECTORS = [1, 9, 16, 57]
"""Alone, part of sixteen lanes, all of them, and part of the fourth sixteen."""


class Collection(NamedTuple):
    vectors: np.ndarray
    centroids: np.ndarray
    codec: ResidualCodec
    store: PackedVectors
    documents: np.ndarray


def unit_vectors(random: np.random.Generator, count: int, dim: int) -> np.ndarray:
    vectors = random.standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@cache
def make_collection(dim: int, bits: int, num_documents: int = 37, num_centroids: int = 23) -> Collection:
    """Documents of 0 to 29 vectors: the first, the last and one between are empty, one has a single vector."""
    random = np.random.default_rng(dim + bits)
    lengths = random.integers(0, 30, num_documents)
    lengths[[0, 5, num_documents - 1]] = 0
    lengths[7] = 1
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    vectors = unit_vectors(random, offsets[-1], dim)
    centroids = 0.6 * unit_vectors(random, num_centroids, dim)
    codes = nearest_definition(vectors, centroids).astype(np.uint16)
    codec = train(vectors, centroids, codes, bits)
    packed, scales = encode_definition(vectors, centroids, codes, codec)
    store = PackedVectors(codes, packed, scales, offsets)
    return Collection(vectors, centroids, codec, store, np.arange(num_documents))


def make_query(num_vectors: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors and weights between 0 and 1."""
    random = np.random.default_rng(num_vectors)
    return unit_vectors(random, num_vectors, dim), random.random(num_vectors, dtype=np.float32)


@pytest.fixture(scope="session")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.fixture(scope="session")
def collection():
    return make_collection


@pytest.fixture(scope="session")
def query():
    return make_query


@pytest.fixture(params=DIMS)
def dim(request) -> int:
    return request.param


@pytest.fixture(params=NUM_QUERY_VECTORS)
def num_query_vectors(request) -> int:
    return request.param
