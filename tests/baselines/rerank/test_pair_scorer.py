"""Cross-encoders from ordinary folders with an ONNX network and a tokenizer: scores by hand, and what is refused."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from colbert_prf import InputError, ModelError
from colbert_prf.baselines.rerank import PairScorer, pair_scorer
from colbert_prf.baselines.rerank.pair_scorer import OnnxPairScorer
from colbert_prf.experiments import Context
from colbert_prf.experiments.registry import Entry

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from tokenizers.models import WordLevel  # noqa: E402
from tokenizers.pre_tokenizers import Whitespace  # noqa: E402
from tokenizers.processors import TemplateProcessing  # noqa: E402

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "goldfish", "grow", "bank", "tank"]
WORTH = np.array([[100.0], [7.0], [0.0], [0.0], [3.0], [1.0], [-2.0], [0.5]], dtype=np.float32)
"""What each word counts in a passage; padding, which must never be there, would be noticed."""
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_tokenizer(folder, words=WORDS):
    """One that pads to 16 tokens and cuts at 5, as its file says: neither may have an effect."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_padding(length=16, pad_type_id=1)
    tokenizer.enable_truncation(5)
    tokenizer.save(str(folder / "tokenizer.json"))


def write_network(
    path, table=WORTH, *, inputs=INPUTS, kind=TensorProto.INT64, length="length", pooled=True, positions=None
):
    """Adds up the rows of the table for the tokens of the second text, of all if there are no token types."""
    constants = {"table": table, "two": np.array([2]), "one": np.array([1]), "zero": np.array([0])}
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows0"])]
    if "token_type_ids" in inputs:
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["types", "two"], ["second"]),
            helper.make_node("Mul", ["rows0", "second"], ["rows1"]),
        ]
    if positions is not None:  # a table of positions with so many rows, as BERT has
        constants["positions"] = np.zeros((positions, 1), dtype=np.float32)
        nodes += [
            helper.make_node("Shape", ["input_ids"], ["size"], start=1, end=2),
            helper.make_node("Slice", ["positions", "zero", "size"], ["used"]),
            helper.make_node("Add", [nodes[-1].output[0], "used"], ["rows2"]),
        ]
    shape = ["batch", length, table.shape[1]]
    if pooled:
        nodes.append(helper.make_node("ReduceSum", [nodes[-1].output[0], "one"], ["sum"], keepdims=0))
        shape = ["batch", table.shape[1]]
    nodes.append(helper.make_node("Identity", [nodes[-1].output[0]], ["out"]))
    graph = helper.make_graph(
        nodes,
        "worth",
        [helper.make_tensor_value_info(name, kind, ["batch", length]) for name in inputs],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    path.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture
def folder(tmp_path):
    write_tokenizer(tmp_path)
    write_network(tmp_path / "model.onnx")
    return tmp_path


@pytest.fixture(autouse=True)
def _no_sentence_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx"])
@pytest.mark.parametrize("threads", [1, 2])
def test_scores_by_hand_in_both_layouts(tmp_path, name, threads):
    write_tokenizer(tmp_path)
    write_network(tmp_path / name)
    scorer = PairScorer.load(tmp_path, threads=threads)
    assert isinstance(scorer, OnnxPairScorer)
    done = []
    found = scorer.scores("goldfish", ["goldfish grow", "bank", "tank tank other", ""], progress=done.append)
    assert found.tolist() == [4.0, -2.0, 1.0, 0.0]
    assert done == [1, 1, 1, 1]
    assert scorer.scores("goldfish", []).tolist() == []


def test_networks_need_neither_token_types_nor_wide_integers(tmp_path):
    # Without token types [CLS] goldfish [SEP] bank [SEP] counts as a whole: 7 + 3 - 2.
    write_tokenizer(tmp_path)
    write_network(tmp_path / "model.onnx", inputs=("input_ids",), kind=TensorProto.INT32)
    assert PairScorer.load(tmp_path).scores("goldfish", ["bank"]).tolist() == [8.0]


@pytest.mark.parametrize(
    ("files", "length"),
    [
        ({}, 512),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, 512),
        ({"tokenizer_config.json": {"model_max_length": 9}, "config.json": {"max_position_embeddings": 7}}, 7),
        ({"tokenizer_config.json": {"model_max_length": None}, "config.json": {"max_position_embeddings": -1}}, 512),
    ],
)
def test_the_length_of_a_pair_comes_from_the_folder(folder, files, length):
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    scorer = PairScorer.load(folder)
    assert scorer.network.max_length == length
    # Three special tokens and one of the query leave length - 4 of the passage.
    assert scorer.scores("grow", ["tank " * 600]).tolist() == [0.5 * (length - 4)]


def test_the_length_of_a_pair_may_be_given(folder):
    assert PairScorer.load(folder, max_length=8).scores("grow", ["bank " * 9]).tolist() == [-8.0]
    (folder / "cross_encoder.json").write_text(json.dumps({"format": 1, "max_length": 6}))
    assert PairScorer.load(folder).scores("grow", ["bank " * 9]).tolist() == [-4.0]
    assert PairScorer.load(folder, max_length=8).scores("grow", ["bank " * 9]).tolist() == [-8.0]
    with pytest.raises(InputError, match="max_length must be above 3, the number of special tokens, found 3"):
        PairScorer.load(folder, max_length=3)
    with pytest.raises(InputError, match="threads must be at least 1, found 0"):
        PairScorer.load(folder, threads=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": np.ones((8, 2), np.float32)}, r"one score a pair, found out of shape \(1, 2\); .* with 2 labels"),
        ({"pooled": False}, r"found out of shape \(1, 3, 1\); hidden states .* VectorEncoder\.load"),
        ({"inputs": (*INPUTS, "position_ids")}, r"found the inputs position_ids \(tensor\(int64\)\); export"),
        ({"length": 16}, "does not run on a text of 3 tokens .* dynamic axes"),
        ({"table": WORTH[:6]}, "largest token id is 7, which model.onnx does not know .* this very model"),
    ],
)
def test_other_networks_are_refused(tmp_path, options, message):
    write_tokenizer(tmp_path)
    write_network(tmp_path / "model.onnx", **options)
    with pytest.raises(ModelError, match=message):
        PairScorer.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("pixels", TensorProto.FLOAT, r"pixels \(tensor\(float\)\)"),
        ("input_ids", TensorProto.FLOAT, r"input_ids \(tensor\(float\)\)"),
        ("attention_mask", TensorProto.INT64, "attention_mask; export"),
    ],
)
def test_a_network_that_reads_no_tokens_is_refused(folder, name, kind, found):
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["out"])],
        "same",
        [helper.make_tensor_value_info(name, kind, ["batch", 3])],
        [helper.make_tensor_value_info("out", kind, ["batch", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(ModelError, match=f"takes integers as input_ids.* found the inputs {found}"):
        PairScorer.load(folder)


def test_a_pair_too_long_for_the_network_says_what_to_do(tmp_path):
    write_tokenizer(tmp_path)
    write_network(tmp_path / "model.onnx", positions=6)
    scorer = PairScorer.load(tmp_path)
    assert scorer.scores("grow", ["bank bank"]).tolist() == [-4.0]
    with pytest.raises(ModelError, match=r"fails on 7 tokens .* give a max_length below 512"):
        scorer.scores("grow", ["bank bank bank"])
    assert PairScorer.load(tmp_path, max_length=6).scores("grow", ["bank bank bank"]).tolist() == [-4.0]


def test_missing_and_damaged_files_are_named(folder):
    network, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
    kept = tokenizer.read_text()
    tokenizer.unlink()
    with pytest.raises(ModelError, match=r"no tokenizer\.json.* found model\.onnx; .*save_pretrained"):
        PairScorer.load(folder)
    tokenizer.write_text("{")
    with pytest.raises(ModelError, match=r"tokenizer\.json: not a tokenizer file"):
        PairScorer.load(folder)
    tokenizer.write_text(kept)
    for content, message in (("{", "not JSON"), ("[]", "must hold a JSON object, found list")):
        (folder / "config.json").write_text(content)
        with pytest.raises(ModelError, match=rf"config\.json: {message}"):
            PairScorer.load(folder)
    (folder / "config.json").unlink()
    network.write_bytes(network.read_bytes()[:40])
    with pytest.raises(ModelError, match=r"ONNX Runtime cannot open it .* export it again"):
        PairScorer.load(folder)
    network.rename(folder / "model_int8.onnx")
    with pytest.raises(
        ModelError, match=r"must be model\.onnx or onnx/model\.onnx; found model_int8\.onnx; rename one"
    ):
        OnnxPairScorer(folder)
    with pytest.raises(ModelError, match="no such folder"):
        OnnxPairScorer(folder / "none")


def test_weights_of_pytorch_are_read_where_the_network_has_no_tokenizer(folder, monkeypatch):
    opened = []
    monkeypatch.setattr(pair_scorer, "TorchPairScorer", lambda model, **options: opened.append((model, options)))
    (folder / "model.safetensors").touch()
    assert isinstance(PairScorer.load(folder), OnnxPairScorer)
    (folder / "tokenizer.json").unlink()
    PairScorer.load(folder, max_length=64)
    assert opened == [(str(folder), {"max_length": 64})]


def test_a_row_of_an_experiment_names_the_folder(folder, tmp_path):
    (tmp_path / "corpus.tsv").write_text("a\tbank bank tank\nb\tgoldfish bank\nc\tgrow tank bank\n")
    row = Entry("+BERT", "cross-encoder", {"first": "BM25", "model": str(folder), "depth": 3, "max_length": 6})
    entries = {"BM25": Entry("BM25", "bm25"), "+BERT": row}
    ranking = Context(str(tmp_path / "corpus.tsv"), "fish", tmp_path / "kept", entries).system("+BERT").search("bank")
    # Six tokens leave two of the passage.
    assert [(hit.doc_id, hit.score) for hit in ranking] == [("c", 1.5), ("b", 1.0), ("a", -4.0)]
