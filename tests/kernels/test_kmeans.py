from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from colbert_prf.demo import demo_passages
from colbert_prf.kernels.kmeans import kmeans, lloyd, lloyd_definition
from colbert_prf.kernels.seeding import squared_distances

K = 24
NUM_SETS = 12


@pytest.fixture(scope="module")
def feedback_sets(encoder) -> list[np.ndarray]:
    """The vectors of three neighbouring passages of the demo, some 200 to 400, twelve times."""
    passages = [text for _, text in demo_passages() if len(text.split()) > 60]
    firsts = np.linspace(0, len(passages) - 3, NUM_SETS).astype(int)
    encoded = list(encoder.encode_documents([passages[first + i] for first in firsts for i in range(3)]))
    return [np.concatenate([document.vectors for document in encoded[i : i + 3]]) for i in range(0, len(encoded), 3)]


def run_lloyd(vectors: np.ndarray, seeds: np.ndarray, max_iterations: int = 300, tolerance: float = 1e-4):
    distances = squared_distances(vectors)
    spread = float(np.square(vectors - vectors.mean(axis=0)).sum(axis=1).mean())
    last_seeds, labels = np.array(seeds, np.int64), np.empty(len(vectors), np.int64)
    inertia = lloyd(distances, spread, tolerance * spread / vectors.shape[1], max_iterations, last_seeds, labels)
    return labels, inertia


def inertia_of(vectors: np.ndarray, labels: np.ndarray, centroids: np.ndarray) -> float:
    return float(np.square(vectors.astype(np.float64) - centroids[labels]).sum())


@pytest.mark.parametrize("max_iterations", [1, 2, 300])
@pytest.mark.parametrize("tolerance", [0.0, 1e-4, 100.0])
def test_a_run_equals_its_definition(feedback_sets, max_iterations, tolerance):
    for number, vectors in enumerate(feedback_sets):
        seeds = np.random.default_rng(number).choice(len(vectors), K, replace=False)
        labels, inertia = run_lloyd(vectors, seeds, max_iterations, tolerance)
        expected, centroids = lloyd_definition(vectors, seeds, max_iterations, tolerance)
        assert np.array_equal(labels, expected)
        assert inertia == pytest.approx(inertia_of(vectors, expected, centroids), rel=1e-5)


def test_the_tolerance_stops_a_run_early(feedback_sets):
    vectors, seeds = feedback_sets[0], np.arange(K)
    strict, loose = (run_lloyd(vectors, seeds, tolerance=tolerance)[1] for tolerance in (0.0, 100.0))
    assert strict < loose < run_lloyd(vectors, seeds, 1)[1]


@pytest.mark.parametrize("threads", [1, 3])
def test_centroids_are_means_and_labels_their_nearest(feedback_sets, pool, threads):
    vectors = feedback_sets[1]
    clusters = kmeans(vectors, K, seed=0, threads=threads, executor=pool)
    means = [vectors[clusters.labels == k].mean(axis=0) for k in range(K)]
    np.testing.assert_allclose(clusters.centroids, means, atol=1e-6)
    apart = np.square(vectors[:, None].astype(np.float64) - clusters.centroids).sum(axis=2)
    assert np.array_equal(clusters.labels, apart.argmin(axis=1))
    assert clusters.inertia == pytest.approx(apart.min(axis=1).sum(), rel=1e-6)
    assert (clusters.centroids.dtype, clusters.labels.dtype) == (np.float32, np.int64)


def test_as_good_as_scikit_learn(feedback_sets):
    """Two of its seeds differ by one percent on a set; the mean over sets is what can be compared."""
    ratios = [
        kmeans(vectors, K, seed=42).inertia / KMeans(K, n_init=10, random_state=42).fit(vectors).inertia_
        for vectors in feedback_sets
    ]
    assert np.mean(ratios) < 1.01
    assert np.median(ratios) < 1.02


def test_the_same_run_as_scikit_learn(feedback_sets):
    vectors = feedback_sets[2]
    seeds = np.arange(0, 5 * K, 5)
    theirs = KMeans(K, init=vectors[seeds], n_init=1).fit(vectors)
    labels, inertia = run_lloyd(vectors, seeds)
    assert np.array_equal(labels, theirs.labels_)
    assert inertia == pytest.approx(theirs.inertia_, rel=1e-5)


def test_the_same_for_a_seed_whatever_the_threads(feedback_sets, pool):
    vectors = feedback_sets[3]
    alone, shared = kmeans(vectors, K, seed=5), kmeans(vectors, K, seed=5, threads=4, executor=pool)
    assert all(np.array_equal(a, b) for a, b in zip(alone, shared, strict=True))
    assert not np.array_equal(alone.centroids, kmeans(vectors, K, seed=6, num_starts=1).centroids)


def test_more_starts_are_never_worse(feedback_sets):
    inertias = [kmeans(feedback_sets[4], K, seed=0, num_starts=count).inertia for count in (1, 2, 5, 10, 30)]
    assert inertias == sorted(inertias, reverse=True)
    assert inertias[0] > inertias[-1]


def test_an_empty_cluster_takes_the_farthest_vector():
    vectors = np.array([[0], [1], [2], [30]], np.float32)
    # Seeds 0 and its copy tie: the second cluster is empty, and 30 - 2 is the greatest distance.
    rows = np.concatenate([vectors, vectors[:1]])
    labels, inertia = run_lloyd(rows, [0, 4])
    assert labels.tolist() == [0, 0, 0, 1, 0]
    assert inertia == pytest.approx(0.75**2 * 2 + 0.25**2 + 1.25**2, rel=1e-4)
    assert lloyd_definition(rows, np.array([0, 4]))[0].tolist() == labels.tolist()


@pytest.mark.parametrize("max_iterations", [1, 2, 3, 300])
def test_many_empty_clusters_equal_the_definition(query, max_iterations):
    vectors = np.concatenate([query(57, 16)[0], np.repeat(query(1, 16)[0], 9, axis=0)])
    seeds = np.arange(57, 66)  # nine copies: all vectors are nearest to the first
    labels, inertia = run_lloyd(vectors, seeds, max_iterations)
    expected, centroids = lloyd_definition(vectors, seeds, max_iterations)
    assert np.array_equal(labels, expected)
    assert len(np.unique(labels)) == 9
    assert inertia == pytest.approx(inertia_of(vectors, expected, centroids), rel=1e-5)


def test_a_vector_does_not_move_for_what_may_be_rounding():
    # The seeds 0 and 2 give {0, 1} of mean 1/2 and the others of mean 3/2 - step: 1 is nearer to the latter.
    for step, labels in [(2e-6, [0, 0, 1, 1, 1]), (1e-4, [0, 1, 1, 1, 1])]:
        vectors = np.array([[0], [1], [2], [1.25], [1.25 - 3 * step]], np.float32)
        assert run_lloyd(vectors, [0, 2])[0].tolist() == labels
        assert lloyd_definition(vectors, np.array([0, 2]))[0].tolist() == labels


def test_fewer_distinct_vectors_than_clusters():
    vectors = np.repeat(np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32), 7, axis=0)
    clusters = kmeans(vectors, 5, seed=0)
    assert clusters.inertia < 1e-9
    np.testing.assert_allclose(clusters.centroids[clusters.labels], vectors, atol=1e-6)
    assert len(np.unique(clusters.labels)) == 3
    unused = np.setdiff1d(np.arange(5), clusters.labels)
    assert all((np.abs(vectors - clusters.centroids[k]).max(axis=1) < 1e-6).any() for k in unused)


@given(rows=st.lists(st.integers(0, 6), min_size=1, max_size=40), seed=st.integers(0, 99), data=st.data())
def test_duplicates_never_break_it(rows, seed, data):
    num_clusters = data.draw(st.integers(1, len(rows)))
    vectors = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)[rows]
    clusters = kmeans(vectors, num_clusters, seed=seed)
    assert np.isfinite(clusters.centroids).all()
    assert set(clusters.labels.tolist()) <= set(range(num_clusters))
    assert len(set(clusters.labels.tolist())) == min(num_clusters, len(set(rows)))
    assert clusters.inertia == pytest.approx(inertia_of(vectors, clusters.labels, clusters.centroids), abs=1e-5)


def test_one_cluster_and_as_many_as_vectors():
    vectors = np.random.default_rng(0).standard_normal((9, 20)).astype(np.float32)
    single = kmeans(vectors, 1, seed=0)
    np.testing.assert_allclose(single.centroids[0], vectors.mean(axis=0), atol=1e-6)
    every = kmeans(vectors, 9, seed=0)
    assert sorted(every.labels.tolist()) == list(range(9))
    assert every.inertia == 0


def test_a_strided_float64_array_is_taken():
    vectors = np.random.default_rng(0).standard_normal((60, 32))[::2]
    single = np.ascontiguousarray(vectors, np.float32)
    assert np.array_equal(kmeans(vectors, 4, seed=0).labels, kmeans(single, 4, seed=0).labels)


def test_the_wrapper_refuses_what_cannot_be_done():
    with pytest.raises(ValueError, match="4 clusters of 3 vectors"):
        kmeans(np.eye(3, dtype=np.float32), 4, seed=0)
    with pytest.raises(ValueError, match="one start"):
        kmeans(np.eye(3, dtype=np.float32), 2, seed=0, num_starts=0)
    with pytest.raises(ValueError, match="not finite"):
        kmeans(np.full((3, 4), np.nan, np.float32), 2, seed=0)
