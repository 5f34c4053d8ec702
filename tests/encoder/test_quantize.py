from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.errors import ModelError

onnx = pytest.importorskip("onnx", reason="needs the extra [hub]")

from colbert_prf.encoder.quantize import _scales, calibration_texts, smooth_network  # noqa: E402
from colbert_prf.encoder.tokenization import Tokenized  # noqa: E402

TABLE = np.array([[1, 100], [2, -50], [-1, 10]], dtype=np.float32)
"""Three tokens of two channels, the second fifty times as large."""

WEIGHTS = np.array([[0.5, 1.0], [2.0, 0.25]], dtype=np.float32)


@pytest.fixture
def network(tmp_path):
    """``vectors = embedding(input_ids) @ WEIGHTS``, written as ONNX."""
    from onnx import TensorProto, helper, numpy_helper

    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "n"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, [1, "n"])
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [1, "n", 2])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("MatMul", ["rows", "weights"], ["vectors"]),
    ]
    initializers = [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(WEIGHTS, "weights")]
    graph = helper.make_graph(nodes, "tiny", [ids, mask], [vectors], initializers)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "tiny.onnx")
    return tmp_path / "tiny.onnx"


def text(*ids: int) -> Tokenized:
    array = np.array(ids, dtype=np.int64)
    return Tokenized(array, np.ones_like(array), np.ones(len(ids), dtype=np.bool_))


def run(file, ids):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return session.run(["vectors"], {"input_ids": ids[None], "attention_mask": np.ones_like(ids)[None]})[0][0]


def test_scales_by_hand():
    # Ranges 1 and 100, largest weights 1 and 2, half of each: sqrt(1/1) and sqrt(100/2), over their geometric mean
    scales = _scales(np.array([1, 100], np.float32), [WEIGHTS], 0.5)
    mean = np.sqrt(np.sqrt(50))
    assert scales == pytest.approx([1 / mean, np.sqrt(50) / mean], rel=1e-5)


def test_smoothing_does_not_change_the_output(network):
    ids = np.array([0, 1, 2, 1])
    before = run(network, ids)
    assert before == pytest.approx(TABLE[ids] @ WEIGHTS)
    smooth_network(network, [text(0, 1, 2)])
    assert run(network, ids) == pytest.approx(before, rel=1e-5)


def test_smoothing_evens_out_the_channels(network):
    smooth_network(network, [text(0, 1, 2)], migration=1.0)
    model = onnx.load(network)
    divisors = next(onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.name == "rows_smoothing")
    largest = np.abs(TABLE * divisors).max(axis=0)
    assert largest[0] == pytest.approx(largest[1], rel=1e-5)


def test_a_network_without_products_is_refused(network):
    model = onnx.load(network)
    del model.graph.node[1]
    model.graph.output[0].name = "rows"
    onnx.save(model, network)
    with pytest.raises(ModelError, match="no matrix products"):
        smooth_network(network, [text(0)])


def test_calibration_texts_are_there():
    texts = calibration_texts()
    assert len(texts) >= 20
    assert all(len(text.split()) > 5 for text in texts)
