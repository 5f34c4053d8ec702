"""One vector per text: search by hand, exactly and by a graph, and feedback."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import Index, InputError
from colbert_prf.baselines.single_vector import (
    AverageFeedback,
    BiEncoder,
    MeanEncoder,
    RocchioFeedback,
    SingleVector,
    VectorEncoder,
    VectorIndex,
)
from colbert_prf.baselines.single_vector.snapshot import GRAPH
from colbert_prf.errors import IndexFormatError, IndexLockedError, IndexMismatchError, StorageError

DOCUMENTS = [("x", "1 0"), ("y", "0.8 0.6"), ("z", "0 1"), ("w", "-1 0")]


class NumberEncoder(VectorEncoder):
    """A text of two numbers is its vector."""

    name = "numbers"

    def encode_query(self, text):
        return np.array(text.split(), dtype=np.float32)

    def encode_documents(self, texts, *, progress=None):
        for text in texts:
            yield self.encode_query(text)[None]


@pytest.fixture
def index(tmp_path):
    return VectorIndex.create(tmp_path / "v", DOCUMENTS, encoder=NumberEncoder(), progress=False)


def found(system, query, k=10):
    return [(hit.doc_id, round(hit.score, 5)) for hit in system.search(query, k)]


@pytest.mark.parametrize("exact", [True, False])
def test_inner_products_by_hand(index, exact):
    system = SingleVector(index, NumberEncoder(), exact=exact)
    assert found(system, "1 0.5") == [("y", 1.1), ("x", 1.0), ("z", 0.5), ("w", -1.0)]
    assert found(system, "1 0.5", k=2) == [("y", 1.1), ("x", 1.0)]
    assert system.search("1 0.5", 1).hits[0].text == "0.8 0.6"


def test_average_by_hand(index):
    # The best for (1, 0) is x itself: the mean of both is (1, 0) again; with two, (1 + 1 + 0.8, 0.6) / 3.
    system = SingleVector(index, NumberEncoder(), feedback=AverageFeedback(feedback_docs=2))
    ranking = system.search("1 0", 2)
    assert [(hit.doc_id, round(hit.score, 5)) for hit in ranking] == [("x", 0.93333), ("y", 0.86667)]
    assert ranking.before.doc_ids == ["x", "y"]


def test_rocchio_by_hand(index):
    # 0.5 (0, 1) + 0.5 mean of z (0, 1) and y (0.8, 0.6) = (0.2, 0.9).
    system = SingleVector(index, NumberEncoder(), feedback=RocchioFeedback(feedback_docs=2, alpha=0.5, beta=0.5))
    assert found(system, "0 1", 3) == [("z", 0.9), ("y", 0.7), ("x", 0.2)]


def test_rocchio_without_documents_is_the_query(index):
    plain = SingleVector(index, NumberEncoder())
    system = SingleVector(index, NumberEncoder(), feedback=RocchioFeedback(alpha=1.0, beta=0.0))
    assert found(system, "0.3 0.7") == found(plain, "0.3 0.7")


def test_the_graph_finds_nearly_what_exact_search_finds(tmp_path):
    random = np.random.default_rng(0)
    texts = [(str(number), " ".join(map(str, random.normal(size=16).round(4)))) for number in range(600)]
    index = VectorIndex.create(tmp_path / "v", texts, encoder=NumberEncoder(), progress=False)
    queries = [" ".join(map(str, random.normal(size=16).round(4))) for _ in range(10)]
    exact, graph = (SingleVector(index, NumberEncoder(), exact=exact) for exact in (True, False))
    shared = [set(exact.search(query, 20).doc_ids) & set(graph.search(query, 20).doc_ids) for query in queries]
    assert sum(map(len, shared)) >= 0.95 * 200
    again = SingleVector(VectorIndex.open(tmp_path / "v"), NumberEncoder(), exact=False)
    for query in queries:
        assert again.search(query, 20).doc_ids == graph.search(query, 20).doc_ids


def test_a_damaged_graph_is_made_again(index, tmp_path):
    system = SingleVector(index, NumberEncoder(), exact=False)
    before = found(system, "1 0.5")
    (graph,) = tmp_path.glob(f"v/derived-*/{GRAPH}")
    graph.write_bytes(graph.read_bytes()[:-3])
    assert found(SingleVector(VectorIndex.open(tmp_path / "v"), NumberEncoder(), exact=False), "1 0.5") == before


def test_folders_are_checked(index, tmp_path):
    index.verify()
    with pytest.raises(StorageError, match="there is an index in the folder already"):
        VectorIndex.create(tmp_path / "v", DOCUMENTS, encoder=NumberEncoder(), progress=False)
    with pytest.raises(InputError, match="given twice"):
        VectorIndex.create(tmp_path / "w", DOCUMENTS + DOCUMENTS, encoder=NumberEncoder(), progress=False)
    with pytest.raises(IndexFormatError, match="not finished"):
        VectorIndex.open(tmp_path / "w")
    assert VectorIndex.create(tmp_path / "w", DOCUMENTS, encoder=NumberEncoder(), progress=False).num_documents == 4
    with pytest.raises(InputError, match="at least one document"):
        VectorIndex.create(tmp_path / "u", [], encoder=NumberEncoder(), progress=False)
    file = tmp_path / "v" / "segment-000001-0000" / "vectors.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(IndexFormatError, match=r"vectors\.npy"):
        index.verify()


def test_mean_of_colbert_vectors(tmp_path, encoder):
    texts = [("fish", "Goldfish grow all their life."), ("bank", "The bank raised its rates.")]
    means = MeanEncoder(encoder)
    index = VectorIndex.create(tmp_path / "v", texts, encoder=means, progress=False)
    expected = next(encoder.encode_documents([texts[0][1]])).vectors.mean(axis=0)
    assert index.vectors[0] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    assert SingleVector(index, means).search("do fish grow").doc_ids == ["fish", "bank"]
    vectors = Index.create(tmp_path / "my.index", texts, encoder=encoder, bits=16, progress=False)
    vectors.add([("gone", "A document to be deleted.")])
    vectors.delete(["gone"])
    taken = VectorIndex.create_from_index(tmp_path / "m", vectors, name=means.name, progress=False)
    assert [taken.doc_id(0), taken.doc_id(1)] == ["fish", "bank"]
    with pytest.warns(DeprecationWarning, match=r"doc_id\(position\)"):
        assert taken.doc_ids == ["fish", "bank"]
    assert taken.vectors == pytest.approx(index.vectors, abs=2e-3)
    assert taken.text(1) == texts[1][1]


def test_the_encoder_must_be_that_of_the_index(index, encoder):
    with pytest.raises(IndexMismatchError, match="numbers"):
        SingleVector(index, MeanEncoder(encoder))


def test_impossible_values_are_refused(index):
    with pytest.raises(InputError, match="feedback_docs"):
        AverageFeedback(feedback_docs=0)
    with pytest.raises(InputError, match="alpha and beta"):
        RocchioFeedback(beta=-1)
    with pytest.raises(InputError, match="k must be"):
        SingleVector(index, NumberEncoder()).search("1 0", 0)
    with pytest.raises(InputError, match="dim 2"):
        SingleVector(index, NumberEncoder()).search("1 0 0")


def test_a_bi_encoder_of_sentence_transformers(tmp_path):
    pytest.importorskip("sentence_transformers")

    class Model:
        """What is used of a SentenceTransformer."""

        similarity_fn_name = "dot"

        def encode_query(self, texts, *, normalize_embeddings, **_):
            assert not normalize_embeddings
            return np.array([text.split() for text in texts], dtype=np.float64)

        encode_document = encode_query

    bi = BiEncoder(Model())
    index = VectorIndex.create(tmp_path / "v", DOCUMENTS, encoder=bi, progress=False)
    assert found(SingleVector(index, bi), "1 0.5", 1) == [("y", 1.1)]


def test_a_second_writer_does_not_touch_what_the_first_writes(tmp_path):
    def documents():
        yield DOCUMENTS[0]
        with pytest.raises(IndexLockedError):
            VectorIndex.create(tmp_path / "v", DOCUMENTS[1:], encoder=NumberEncoder(), progress=False)
        yield DOCUMENTS[1]

    index = VectorIndex.create(tmp_path / "v", documents(), encoder=NumberEncoder(), progress=False)
    assert found(SingleVector(index, NumberEncoder()), "1 0") == [("x", 1.0), ("y", 0.8)]
