"""One vector per text from ordinary folders with an ONNX network and a tokenizer: by hand, and what is refused."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from colbert_prf import IndexMismatchError, InputError, MissingExtraError, ModelError, TextError
from colbert_prf.baselines.single_vector import SingleVector, VectorEncoder, VectorIndex, encoders
from colbert_prf.baselines.single_vector.onnx_encoder import OnnxVectorEncoder
from colbert_prf.experiments import Context
from colbert_prf.experiments.registry import Entry, check_entries

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from tokenizers.models import WordLevel  # noqa: E402
from tokenizers.pre_tokenizers import Whitespace  # noqa: E402
from tokenizers.processors import TemplateProcessing  # noqa: E402

STATES = {"[PAD]": (90, 90), "[CLS]": (2, 0), "[UNK]": (0, 0), "east": (1, 0), "north": (0, 1), "ask": (6, 8)}
"""The hidden state of each token; [CLS] takes on the sum of all, as if it had read them."""


def write_folder(folder, *, network="model.onnx", special=True, reduced=False):
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(STATES)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    if special:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A", pair="[CLS] $A $B:1", special_tokens=[("[CLS]", 1)]
        )
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(folder / "tokenizer.json"))
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["states"]),
        helper.make_node("ReduceSum", ["states", "one"], ["sum"], keepdims=1),
        helper.make_node("Equal", ["input_ids", "cls"], ["is_cls"]),
        helper.make_node("Cast", ["is_cls"], ["first"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["first", "two"], ["where"]),
        helper.make_node("Mul", ["where", "sum"], ["read"]),
        helper.make_node("Add", ["states", "read"], ["last_hidden_state"]),
        helper.make_node("Squeeze", ["sum", "one"], ["pooler_output"]),
    ]
    constants = {"table": np.array(list(STATES.values()), dtype=np.float32)}
    constants |= {"one": np.array([1]), "two": np.array([2]), "cls": np.array(1)}
    outputs = [("pooler_output", ["batch", 2])]
    outputs += [] if reduced else [("last_hidden_state", ["batch", "length", 2])]
    graph = helper.make_graph(
        nodes[:2] + nodes[-1:] if reduced else nodes,
        "states",
        [
            helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"])
            for n in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    (folder / network).parent.mkdir(exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / network)
    return folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    return write_folder(tmp_path / "model")


@pytest.fixture(autouse=True)
def _no_sentence_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)


def write_json(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize(
    ("pooling", "normalise", "expected"),
    [
        # [CLS] east north: the states are (2, 0) + (3, 1), (1, 0) and (0, 1).
        ("cls", False, (5, 1)),
        ("mean", False, (2, 2 / 3)),
        ("cls", True, np.array((5, 1)) / np.sqrt(26)),
        ("mean", None, np.array((3, 1)) / np.sqrt(10)),
    ],
)
def test_vectors_by_hand(folder, pooling, normalise, expected):
    encoder = VectorEncoder.load(folder, pooling=pooling, normalise=normalise)
    assert isinstance(encoder, OnnxVectorEncoder)
    assert encoder.dim == 2
    assert encoder.encode_query("east north") == pytest.approx(expected)


def test_the_network_may_be_in_the_folder_onnx(tmp_path):
    encoder = VectorEncoder.load(write_folder(tmp_path, network="onnx/model.onnx"), pooling="cls", normalise=False)
    assert encoder.encode_query("north").tolist() == [4.0, 1.0]


@pytest.mark.parametrize("threads", [1, 2])
def test_documents_come_in_order_and_in_pieces(folder, threads, monkeypatch):
    monkeypatch.setattr("colbert_prf.baselines.single_vector.onnx_encoder.BATCH", 2)
    encoder = VectorEncoder.load(folder, pooling="cls", normalise=False, threads=threads)
    done = []
    pieces = list(encoder.encode_documents(["east", "north north", ""], progress=done.append))
    assert [piece.tolist() for piece in pieces] == [[[5.0, 0.0], [4.0, 2.0]], [[4.0, 0.0]]]
    assert {piece.dtype for piece in pieces} == {np.dtype(np.float32)}
    assert done == [2, 1]


def test_prefixes_belong_to_one_side(folder):
    given = {"pooling": "cls", "normalise": False}
    encoder = VectorEncoder.load(folder, **given, query_prefix="ask ", document_prefix="north ")
    assert encoder.encode_query("east").tolist() == [11.0, 8.0]
    assert next(encoder.encode_documents(["east"])).tolist() == [[5.0, 1.0]]
    with pytest.raises(TextError, match="empty"):
        encoder.encode_query(" ")


def test_an_empty_text_without_special_tokens_has_the_vector_zero(tmp_path):
    encoder = VectorEncoder.load(write_folder(tmp_path, special=False), pooling="mean")
    assert next(encoder.encode_documents(["", "north"])).tolist() == [[0.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"word_embedding_dimension": 2, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode": "cls"}, "cls"),
    ],
)
def test_pooling_is_read_from_the_folder_unless_given(folder, config, pooling):
    write_json(folder / "1_Pooling/config.json", config)
    assert VectorEncoder.load(folder).pooling == pooling
    other = "mean" if pooling == "cls" else "cls"
    assert VectorEncoder.load(folder, pooling=other).pooling == other


def test_what_sentence_transformers_says_is_followed(folder):
    settings = {"similarity_fn_name": "dot", "prompts": {"query": "ask ", "passage": "north "}}
    write_json(folder / "config_sentence_transformers.json", settings)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 4})
    encoder = VectorEncoder.load(folder, pooling="cls")
    assert encoder.encode_query("east").tolist() == [11.0, 8.0]
    # Four tokens: [CLS] north east east; of the document two words are left.
    assert next(encoder.encode_documents(["east east east"])).tolist() == [[6.0, 1.0]]
    plain = VectorEncoder.load(folder, pooling="cls", query_prefix="", normalise=True)
    assert plain.encode_query("east").tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "found pooling_mode_max_tokens; open .*BiEncoder"),
        ("1_Pooling/config.json", {}, "found none"),
        ("1_Pooling/config.json", "{", "not JSON"),
        ("modules.json", "{}{", r"modules\.json: not a list of modules"),
        ("modules.json", [{"path": "0"}], r"modules\.json: not a list of modules"),
    ],
)
def test_damaged_settings_are_named(folder, name, content, message):
    write_json(folder / name, content)
    with pytest.raises(ModelError, match=message):
        VectorEncoder.load(folder)


def test_what_is_no_text_encoder_is_refused(folder, tmp_path):
    with pytest.raises(ModelError, match=r"for want of 1_Pooling/config\.json; give pooling='cls'"):
        VectorEncoder.load(folder)
    with pytest.raises(InputError, match="pooling must be 'cls' or 'mean', found 'max'"):
        VectorEncoder.load(folder, pooling="max")
    write_folder(folder, reduced=True)
    with pytest.raises(ModelError, match=r"hidden states.* found pooler_output of shape \(1, 2\); .*PairScorer\.load"):
        VectorEncoder.load(folder, pooling="cls")
    with pytest.raises(InputError, match="pooling, max_length: for a folder with an ONNX network"):
        VectorEncoder.load(tmp_path, pooling="cls", max_length=8)
    with pytest.raises(MissingExtraError, match="hub"):
        VectorEncoder.load(tmp_path)


def test_layers_after_the_network_need_sentence_transformers(folder, monkeypatch):
    kinds = ["Transformer", "Pooling", "Dense", "Normalize"]
    write_json(folder / "modules.json", [{"type": f"sentence_transformers.models.{kind}"} for kind in kinds])
    with pytest.raises(ModelError, match="the layers Dense come after the network"):
        OnnxVectorEncoder(folder, pooling="cls")
    monkeypatch.setattr(encoders, "BiEncoder", lambda model: f"bi-encoder {model}")
    assert VectorEncoder.load(folder) == f"bi-encoder {folder}"


def test_an_index_remembers_what_made_its_vectors(folder, tmp_path):
    encoder = VectorEncoder.load(folder, pooling="cls")
    index = VectorIndex.create(tmp_path / "v", [("e", "east"), ("n", "north")], encoder, progress=False)
    again = VectorEncoder.load(folder, pooling="cls", query_prefix="north ")
    assert SingleVector(index, again).search("north").doc_ids == ["n", "e"]
    others = [
        {"pooling": "mean"},
        {"pooling": "cls", "normalise": False},
        {"pooling": "cls", "document_prefix": "ask "},
    ]
    for settings in [*others, {"pooling": "cls", "max_length": 9}]:
        with pytest.raises(IndexMismatchError, match="pooling of"):
            SingleVector(index, VectorEncoder.load(folder, **settings))


def test_rows_of_an_experiment_name_the_folder(folder, tmp_path):
    (tmp_path / "corpus.tsv").write_text("e\teast\nn\tnorth\n")
    parameters = {"model": str(folder), "pooling": "cls", "normalise": False}
    entries = {
        "cls": Entry("cls", "single-vector", parameters | {"query_prefix": "ask "}),
        "mean": Entry("mean", "single-vector", parameters | {"pooling": "mean"}),
    }
    check_entries(entries)
    context = Context(str(tmp_path / "corpus.tsv"), "fish", tmp_path / "kept", entries)
    # The query: (2, 0) + (8, 0) + (6, 8) + (0, 1) = (10, 9); e: (5, 0), n: (4, 1).
    assert [(hit.doc_id, hit.score) for hit in context.system("cls").search("north")] == [("e", 50.0), ("n", 49.0)]
    # The query: ((2, 0) + (2, 1) + (0, 1)) / 2 = (2, 1); e: ((5, 0) + (1, 0)) / 2 = (3, 0), n: (2, 1).
    assert [(hit.doc_id, hit.score) for hit in context.system("mean").search("north")] == [("e", 6.0), ("n", 5.0)]
    assert len(list(context.folder.glob("*.vectors"))) == 2
    with pytest.raises(InputError, match="pooling: of an ONNX network, and there is no model"):
        check_entries({"row": Entry("row", "single-vector", {"pooling": "cls"})})
