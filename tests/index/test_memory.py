from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, InputError, MemoryIndex
from colbert_prf.kernels.maxsim import maxsim


def document(*rows: tuple[float, float]) -> EncodedDocument:
    return EncodedDocument(np.arange(len(rows), dtype=np.int32), np.array(rows, dtype=np.float32).reshape(-1, 2))


def test_documents_are_laid_out_one_after_the_other():
    index = MemoryIndex(["a", "b"], [document((1, 0)), document((0, 1), (0.6, 0.8))])
    assert (index.num_documents, index.num_vectors, index.dim) == (2, 3, 2)
    assert index.offsets.tolist() == [0, 1, 3]
    assert index.token_ids.tolist() == [0, 0, 1]


def test_scores_are_maxsim_of_each_document_alone(encoder):
    texts = ["Goldfish grow in a tank.", "", "The tank fired at the troops."]
    index = MemoryIndex.create([(str(i), text) for i, text in enumerate(texts)], encoder=encoder, progress=False)
    query = encoder.encode_query("do goldfish grow")
    alone = [
        maxsim(query.vectors, query.weights, encoded.vectors, np.array([0, len(encoded)]))[0]
        for encoded in encoder.encode_documents(texts)
    ]
    assert index.score(query) == pytest.approx(alone, abs=1e-5)


def test_vectors_made_elsewhere():
    index = MemoryIndex.create_from_vectors((name, document((1, 0))) for name in ("a", "b"))
    query = EncodedQuery(np.zeros(1, np.int32), np.array([[0.6, 0.8]], np.float32))
    assert index.doc_ids == ["a", "b"]
    assert index.score(query) == pytest.approx([0.6, 0.6])


def test_equally_near_tokens_come_in_their_order():
    """Products 1, .6, 1 and 0 with (1, 0)."""
    index = MemoryIndex(["a", "b"], [document((1, 0), (0.6, 0.8), (1, 0)), document((0, 1))])
    near = index.nearest_tokens(np.array([[1, 0]], np.float32), 3)
    assert near.token_ids.tolist() == [[0, 2, 1]]
    assert near.similarities.ravel() == pytest.approx([1, 1, 0.6])


def test_where_there_are_fewer_tokens_than_asked_for_the_rest_is_marked():
    index = MemoryIndex(["a"], [document((1, 0))])
    near = index.nearest_tokens(np.eye(2, dtype=np.float32), 3)
    assert near.token_ids.tolist() == [[0, -1, -1], [0, -1, -1]]
    assert near.similarities.tolist() == [[1, -np.inf, -np.inf], [0, -np.inf, -np.inf]]


@pytest.mark.parametrize(
    ("doc_ids", "documents", "texts", "message"),
    [
        ([], [], None, "at least one document"),
        (["a"], [document((1, 0)), document((1, 0))], None, "found 1 ids of 2 documents"),
        (["a"], [document((1, 0))], ["x", "y"], "found 2 texts of 1 documents"),
        (["a", "a"], [document((1, 0)), document((1, 0))], None, "'a' was given twice"),
        (
            ["a", "b"],
            [document((1, 0)), EncodedDocument(np.zeros(1, np.int32), np.array([[1, 0, 0]], np.float32))],
            None,
            r"found \[2, 3\]",
        ),
    ],
)
def test_bad_input_is_refused(doc_ids, documents, texts, message):
    with pytest.raises(InputError, match=message):
        MemoryIndex(doc_ids, documents, texts=texts)
