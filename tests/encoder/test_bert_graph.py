"""The graph made for speed gives what PyTorch gives."""

import numpy as np
import pytest

from colbert_prf.encoder.bert_graph import bert_graph
from colbert_prf.errors import ModelError

torch = pytest.importorskip("torch", reason="needs the extra [hub]")
onnx = pytest.importorskip("onnx", reason="needs the extra [hub]")
onnxruntime = pytest.importorskip("onnxruntime")
transformers = pytest.importorskip("transformers", reason="needs the extra [hub]")

HEADS = 4


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=HEADS,
        intermediate_size=64,
        max_position_embeddings=40,
    )
    return transformers.BertModel(config, add_pooling_layer=False).eval()


@pytest.fixture(scope="module")
def weights(network):
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


def run(graph, ids, attention):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["vectors"], {"input_ids": ids, "attention_mask": attention})[0]


def expected(network, ids, attention):
    with torch.inference_mode():
        return network(input_ids=torch.tensor(ids), attention_mask=torch.tensor(attention))[0].numpy()


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (1, 17), (3, 40)])
def test_hidden_states_are_those_of_pytorch(network, weights, batch, length):
    ids = np.random.default_rng(length).integers(0, 50, (batch, length))
    attention = np.ones_like(ids)
    found = run(bert_graph(weights, heads=HEADS), ids, attention)
    np.testing.assert_allclose(found, expected(network, ids, attention), atol=1e-5)


def test_tokens_that_are_not_attended_to_get_vectors_and_change_no_other(network, weights):
    ids = np.array([[5, 6, 7, 9, 9]])
    attention = np.array([[1, 1, 1, 0, 0]])
    graph = bert_graph(weights, heads=HEADS)
    found = run(graph, ids, attention)
    np.testing.assert_allclose(found, expected(network, ids, attention), atol=1e-5)
    np.testing.assert_allclose(found[:, :3], run(graph, ids[:, :3], attention[:, :3]), atol=1e-5)


def test_vectors_are_projected_states_of_unit_length(network, weights):
    ids = np.array([[1, 2, 3]])
    drawing = np.random.default_rng(0)
    projection = drawing.normal(size=(8, 32)).astype(np.float32)
    bias = drawing.normal(size=8).astype(np.float32)
    states = expected(network, ids, np.ones_like(ids))
    wanted = states @ projection.T + bias
    wanted /= np.linalg.norm(wanted, axis=-1, keepdims=True)
    found = run(bert_graph(weights, heads=HEADS, projection=projection, bias=bias), ids, np.ones_like(ids))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_weights_of_another_network_are_refused(weights):
    without = {name: values for name, values in weights.items() if "layer.1.intermediate" not in name}
    with pytest.raises(ModelError, match=r"not the weights of a BERT encoder.*layer\.1\.intermediate"):
        bert_graph(without, heads=HEADS)
