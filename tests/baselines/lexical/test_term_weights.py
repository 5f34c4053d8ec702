"""DeepCT: targets and frequencies by hand, a regression that learns, and what it does to a ranking."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import Index, InputError, ModelError
from colbert_prf.baselines.lexical import (
    BM25,
    Analyzer,
    LexicalIndex,
    TermRegression,
    TermWeigher,
    TorchTermWeigher,
    query_term_recall,
    scaled_frequencies,
    weighted_documents,
)
from colbert_prf.baselines.lexical.term_weights import words_of

DOCUMENTS = [("x", "fish tank water"), ("y", "fish bowl"), ("z", "bank rates")]
EXAMPLES = [
    ("Goldfish grow in a large tank.", ["do goldfish grow", "goldfish tank"]),
    ("The bank raised its rates.", ["bank rates", "why did the bank raise rates"]),
    ("Rain fell on the old town.", ["rain town"]),
]


class Table(TermWeigher):
    """Weights from a table, the same in every context."""

    def __init__(self, **weights):
        self.table = weights

    def weights(self, texts, *, progress=None):
        for text in texts:
            yield [(word, self.table.get(word, 0.0)) for word in text.split()]


def test_targets_by_hand():
    # Three documents, each with the queries it answers: 2 of 3 ask for tanks, all for fish, none for water.
    queries = ["Which fish?", "fish tanks", "a tank for a fish"]
    assert query_term_recall("fish tank water", queries, Analyzer()) == {"fish": 1.0, "tank": 2 / 3, "water": 0.0}
    assert query_term_recall("fish bowl", ["bowls"], Analyzer()) == {"fish": 0.0, "bowl": 1.0}
    assert query_term_recall("bank rates", ["rates", "banking", "rain"], Analyzer()) == {"bank": 1 / 3, "rate": 1 / 3}
    with pytest.raises(InputError, match="at least one query"):
        query_term_recall("fish", [], Analyzer())


def test_frequencies_by_hand():
    weights = [("fish", 0.426), ("fishes", 0.2), ("tank", 0.004), ("the", 1.0), ("bowl", -0.3)]
    found = scaled_frequencies(weights, Analyzer())
    assert found == {"fish": 43}
    assert scaled_frequencies([("tank", 0.004)], Analyzer(), scale=1000) == {"tank": 4}


def test_pieces_are_joined_into_words():
    assert words_of(["un", "##believ", "##able", "fish", "##"]) == [("unbelievable", 0), ("fish", 3)]
    assert words_of(["##start"]) == [("##start", 0)]


def test_weights_go_into_the_index(tmp_path):
    weigher = Table(fish=0.1, tank=0.9, bowl=0.5, bank=0.3)
    documents = weighted_documents(DOCUMENTS, weigher)
    index = LexicalIndex.create_from_terms(tmp_path / "l", documents, texts=True, progress=False)
    assert index.snapshot.term_frequencies(0) == {"fish": 10, "tank": 90}
    assert index.document_frequency("water") == 0
    assert index.text("z") == "bank rates"
    assert BM25(index, idf="lucene").search("fish").doc_ids == ["y", "x"]  # 10 of 60 against 10 of 100
    with pytest.raises(InputError, match="scale must be positive"):
        next(weighted_documents(DOCUMENTS, weigher, scale=0))


def test_a_regression_is_least_squares(encoder):
    """The words of all passages and their targets, solved by NumPy at once, give the same function."""
    analyzer = Analyzer()
    trained = TermRegression.train(EXAMPLES, encoder=encoder, ridge=0.5)
    rows, targets = [], []
    for text, queries in EXAMPLES:
        document = next(encoder.encode_documents([text]))
        recall = query_term_recall(text, queries, analyzer)
        for word, place in words_of(encoder.tokens(document.token_ids)):
            if analyzer.term(word) in recall:
                rows.append([*document.vectors[place], 1.0])
                targets.append(recall[analyzer.term(word)])
    design, penalty = np.array(rows, dtype=np.float64), np.sqrt(0.5) * np.eye(encoder.dim, encoder.dim + 1)
    whole = np.concatenate([design, penalty])
    expected, *_ = np.linalg.lstsq(whole, np.concatenate([targets, np.zeros(encoder.dim)]), rcond=None)
    assert trained.coefficients == pytest.approx(expected[:-1], abs=1e-6)
    assert trained.intercept == pytest.approx(expected[-1], abs=1e-6)


def test_a_regression_weighs_words_and_is_kept(encoder, tmp_path):
    trained = TermRegression.train(EXAMPLES, encoder=encoder, ridge=0.1)
    (found,) = trained.weights(["Goldfish grow in a large tank."])
    weights = dict(found)
    assert [word for word, _ in found] == ["goldfish", "grow", "in", "a", "large", "tank", "."]
    assert weights["goldfish"] > weights["tank"] > weights["large"]
    trained.save(tmp_path / "weights.json")
    again = TermRegression.load(tmp_path / "weights.json", encoder=encoder)
    assert list(again.weights(["Rain fell."])) == list(trained.weights(["Rain fell."]))


def test_the_vectors_of_an_index_give_what_encoding_gives(encoder, tmp_path):
    trained = TermRegression.train(EXAMPLES, encoder=encoder, ridge=0.1)
    documents = [*((str(place), text) for place, (text, _) in enumerate(EXAMPLES)), ("none", "")]
    index = Index.create(tmp_path / "i", documents, encoder=encoder, bits=16, progress=False)
    index.delete(["1"])
    done = []
    found = {row[0]: row for row in trained.indexed_documents(index, scale=20, progress=done.append)}
    expected = {row[0]: row for row in weighted_documents(documents, trained, scale=20) if row[0] != "1"}
    assert found == expected
    assert len(found["0"][1]) > 1
    assert done == [1, 1, 1]


def test_compressed_vectors_give_nearly_the_same_weights(encoder, tmp_path):
    trained = TermRegression.train(EXAMPLES, encoder=encoder, ridge=0.1)
    documents = [(str(place), text) for place, (text, _) in enumerate(EXAMPLES)]
    index = Index.create(tmp_path / "i", documents, encoder=encoder, bits=4, texts=False, progress=False)
    for found, expected in zip(trained.indexed_documents(index), weighted_documents(documents, trained), strict=True):
        assert found[2] == ""
        assert found[1] == pytest.approx(expected[1], abs=5)


def test_an_index_of_another_model_is_refused(encoder, tmp_path):
    trained = TermRegression.train(EXAMPLES, encoder=encoder)
    encoded = [("x", document) for document in encoder.encode_documents(["Goldfish grow."])]
    index = Index.create_from_vectors(tmp_path / "i", encoded, fingerprint="other", progress=False)
    with pytest.raises(ModelError, match="another encoder"):
        next(trained.indexed_documents(index))


def test_a_regression_of_something_else_is_refused(encoder, tmp_path):
    path = tmp_path / "weights.json"
    for content in ("{", "[]", '{"kind": "other"}', '{"kind": "colbert-prf term regression"}'):
        path.write_text(content)
        with pytest.raises(ModelError, match="no term regression"):
            TermRegression.load(path, encoder=encoder)
    path.write_text('{"kind": "colbert-prf term regression", "coefficients": [1], "intercept": 0, "fingerprint": "x"}')
    with pytest.raises(ModelError, match="another encoder"):
        TermRegression.load(path, encoder=encoder)
    with pytest.raises(ModelError, match="dim 1"):
        TermRegression(encoder, np.ones(1), 0.0)
    with pytest.raises(InputError, match="no word to learn from"):
        TermRegression.train([], encoder=encoder)


def test_a_published_model_is_read(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "gold", "##fish", "grow"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "m")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        num_labels=1,
    )
    transformers.BertForTokenClassification(config).save_pretrained(tmp_path / "m")
    weigher = TorchTermWeigher(str(tmp_path / "m"), batch_size=2)
    done = []
    found = list(weigher.weights(["goldfish grow", "grow", "grow goldfish"], progress=done.append))
    assert [[word for word, _ in words] for words in found] == [["goldfish", "grow"], ["grow"], ["grow", "goldfish"]]
    assert done == [2, 1]
    alone = next(iter(weigher.weights(["grow"])))
    assert found[1] == [(word, pytest.approx(weight, abs=1e-5)) for word, weight in alone]
