"""A query and a passage read together."""

from __future__ import annotations

import json

import numpy as np
import pytest

from colbert_prf import InputError
from colbert_prf.baselines.rerank import CrossEncoderReranker, PairScorer
from colbert_prf.baselines.rerank.pair_scorer import OnnxPairScorer, TorchPairScorer
from colbert_prf.errors import ModelError

WORDS = ["[UNK]", "goldfish", "grow", "bank", "tank"]
WORTH = [0.0, 3.0, 1.0, -2.0, 0.5]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A network that adds up what the words of the passage are worth; those of the query count nothing."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    path = tmp_path_factory.mktemp("cross") / "model"
    path.mkdir()
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A:0 $B:1", special_tokens=[])
    tokenizer.save(str(path / "tokenizer.json"))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    nodes = [
        helper.make_node("Gather", ["worth", "input_ids"], ["values"]),
        helper.make_node("Cast", ["token_type_ids"], ["passage"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["values", "passage"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "axis"], ["scores"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "worth",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch"])],
        [
            numpy_helper.from_array(np.array(WORTH, dtype=np.float32), "worth"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "axis"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path / "model.onnx")
    (path / "cross_encoder.json").write_text(json.dumps({"format": 1, "name": "worth", "max_length": 6}))
    return path


@pytest.mark.parametrize("threads", [1, 2])
def test_scores_by_hand(folder, threads):
    scorer = PairScorer.load(folder, threads=threads)
    assert isinstance(scorer, OnnxPairScorer)
    done = []
    found = scorer.scores("goldfish", ["goldfish grow", "bank", "tank tank other", ""], progress=done.append)
    assert found.tolist() == [4.0, -2.0, 1.0, 0.0]
    assert done == [1, 1, 1, 1]


def test_long_pairs_are_cut(folder):
    # Six tokens in all: of the passage's eight only what fits beside the one of the query.
    assert PairScorer.load(folder).scores("grow", ["bank " * 8]).tolist() == [-10.0]


def test_a_re_ranker_keeps_the_candidates(folder, fixed):
    texts = {"a": "bank", "b": "goldfish grow", "c": "tank"}
    system = CrossEncoderReranker(fixed("a", "b", "c", texts=texts), PairScorer.load(folder))
    assert [(hit.doc_id, hit.score) for hit in system.search("any")] == [("b", 4.0), ("c", 0.5), ("a", -2.0)]
    other = CrossEncoderReranker(system.first, system.scorer, text_of={"a": "grow", "b": "bank", "c": ""}.__getitem__)
    assert other.search("any").doc_ids == ["a", "c", "b"]
    assert CrossEncoderReranker(system.first, system.scorer, depth=2).search("any").doc_ids == ["b", "a", "c"]
    with pytest.raises(InputError, match="without its text"):
        CrossEncoderReranker(fixed("unknown", texts={}), system.scorer).search("any")


def test_sentence_transformers_score_in_batches():
    pytest.importorskip("sentence_transformers")

    class Model:
        """What is used of a CrossEncoder."""

        sizes: list[int] = []  # noqa: RUF012

        def predict(self, pairs, **_):
            self.sizes.append(len(pairs))
            return np.array([len(query) - len(text) for query, text in pairs], dtype=np.float32)

    done = []
    scorer = TorchPairScorer(Model(), batch_size=2)
    assert scorer.scores("abcd", ["", "ab", "abcdef"], progress=done.append).tolist() == [4.0, 2.0, -2.0]
    assert Model.sizes == done == [2, 1]
    assert scorer.scores("abcd", []).tolist() == []


def test_damaged_folders_are_named(folder, tmp_path):
    for content in ("{", "[]", '{"format": 2}', '{"format": 1, "max_length": 0}'):
        (tmp_path / "cross_encoder.json").write_text(content)
        with pytest.raises(ModelError, match=r"cross_encoder\.json"):
            PairScorer.load(tmp_path)
    (tmp_path / "cross_encoder.json").write_text((folder / "cross_encoder.json").read_text())
    with pytest.raises(ModelError, match=r"no ONNX network.* found none; export the model again"):
        PairScorer.load(tmp_path)
