"""Compare kernels with their definitions in a process whose processor numba takes for another; see test_processors."""

from __future__ import annotations

import numpy as np

from colbert_prf.kernels.exact import maxsim_of_packed, similarities_definition
from colbert_prf.kernels.interaction import byte_table, centroid_scores, interact, interact_definition


def main() -> None:
    from conftest import make_collection, make_query

    for bits in (1, 2, 4, 8):
        for dim, num_query_vectors in ((48, 5), (128, 11)):
            _, centroids, codec, store, documents = make_collection(dim, bits)
            queries, weights = make_query(num_query_vectors, dim)
            table = centroid_scores(centroids, queries)
            found = maxsim_of_packed(queries, weights, table, codec, store, documents)
            for document in documents:
                similarities = similarities_definition(queries, table, codec, store, document)
                expected = float(weights @ similarities.max(axis=0)) if len(similarities) else -np.inf
                np.testing.assert_allclose(found[document], expected, atol=1e-4)
            values = byte_table(table)
            np.testing.assert_allclose(
                interact(values, weights, store.codes, store.offsets),
                interact_definition(values, weights, store.codes, store.offsets, documents),
                rtol=1e-5,
            )
    print("equal")


if __name__ == "__main__":
    main()
