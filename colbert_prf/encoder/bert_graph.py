"""A BERT encoder as a fast ONNX graph: one product for query, key and value, and fused operators.

A traced graph spends half its time on transposes, layer norms and activations. Here each layer is four matrix products
and five fused operators of ONNX Runtime (``com.microsoft``): attention, bias and GELU, and twice the sum of residual,
bias and layer norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import ModelError

__all__ = ["bert_graph"]

OPSET, FUSED_OPSET = 17, 1
FUSED = "com.microsoft"

Weights = Mapping[str, npt.NDArray[np.float32]]


@dataclass
class _Graph:
    """The nodes and constants of a graph, in the order in which they are computed."""

    epsilon: float
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, name: str, values: npt.NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def apply(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def product(self, states: str, name: str, matrix: npt.NDArray[np.float32]) -> str:
        """Multiply states with a matrix of shape (inputs, outputs)."""
        return self.apply("MatMul", [states, self.constant(f"{name}.weight", matrix)], f"{name}.product")

    def dense(self, states: str, name: str, weights: Weights, bias: str) -> str:
        """Multiply states with a matrix and add a bias, which ONNX Runtime computes in one step."""
        product = self.product(states, name, weights[bias.removesuffix("bias") + "weight"].T)
        return self.apply("Add", [product, self.constant(bias, weights[bias])], f"{name}.states")

    def residual_norm(self, states: str, residual: str, norm: str, weights: Weights) -> str:
        """Apply a layer norm to states + residual.

        The node is ``Sum``, because ONNX Runtime replaces ``Add`` and a layer norm by an operator that takes eight
        times as long.
        """
        total = self.apply("Sum", [states, residual], f"{norm}.sum")
        parts = [self.constant(f"{norm}.{kind}", weights[f"{norm}.{kind}"]) for kind in ("weight", "bias")]
        return self.apply("LayerNormalization", [total, *parts], norm, epsilon=self.epsilon)


def bert_graph(
    weights: Weights,
    *,
    heads: int,
    epsilon: float = 1e-12,
    projection: npt.NDArray[np.float32] | None = None,
    bias: npt.NDArray[np.float32] | None = None,
) -> Any:
    """Build ``input_ids, attention_mask -> vectors`` from the weights of a BERT encoder.

    Parameters
    ----------
    weights
        The weights, named as in a BERT checkpoint, such as ``encoder.layer.0.attention.self.query.weight``.
    heads
        The number of attention heads.
    epsilon
        The epsilon of the layer norms.
    projection, bias
        The last layer, of shapes (dim, hidden_size) and (dim,), which makes unit vectors. Without a projection the
        graph returns the last hidden states.

    Returns
    -------
    onnx.ModelProto
        It takes batches of any size, and texts of any length up to the positions of the network.

    Raises
    ------
    ModelError
        If the weights are not those of a BERT encoder.
    """
    from onnx import TensorProto, helper

    layers = _num_layers(weights)
    graph = _Graph(epsilon)
    states = _embeddings(graph, weights)
    for layer in range(layers):
        states = _layer(graph, states, f"encoder.layer.{layer}", weights, heads)
    if projection is None:
        graph.apply("Identity", [states], "vectors")
    else:
        projected = graph.product(states, "projection", projection.T)
        if bias is not None:
            projected = graph.apply("Add", [projected, graph.constant("projection.bias", bias)], "projected")
        graph.apply("LpNormalization", [projected], "vectors", axis=-1, p=2)
    shape = ["batch", "length"]
    dim = weights["embeddings.LayerNorm.bias"].shape[0] if projection is None else len(projection)
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "bert",
            [helper.make_tensor_value_info(n, TensorProto.INT64, shape) for n in ("input_ids", "attention_mask")],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [*shape, dim])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, FUSED_OPSET)],
        ir_version=8,
    )


def _num_layers(weights: Weights) -> int:
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    expected = [
        f"encoder.layer.{layer}.{part}.{kind}"
        for layer in range(len(layers))
        for part in (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
            "attention.output.LayerNorm",
            "intermediate.dense",
            "output.dense",
            "output.LayerNorm",
        )
        for kind in ("weight", "bias")
    ]
    expected += [f"embeddings.{part}_embeddings.weight" for part in ("word", "position", "token_type")]
    if missing := [name for name in expected if name not in weights]:
        raise ModelError(f"these are not the weights of a BERT encoder: {missing[0]} and {len(missing) - 1} more lack")
    return len(layers)


def _embeddings(graph: _Graph, weights: Weights) -> str:
    """Add the embeddings of words, positions and the first token type, and apply their layer norm."""
    words = graph.constant("embeddings.word_embeddings.weight", weights["embeddings.word_embeddings.weight"])
    types = weights["embeddings.token_type_embeddings.weight"][0]
    positions = graph.constant("positions", weights["embeddings.position_embeddings.weight"] + types)
    word_states = graph.apply("Gather", [words, "input_ids"], "words")
    shape = graph.apply("Shape", ["input_ids"], "length", start=1, end=2)
    zero, first = graph.constant("zero", np.array([0])), graph.constant("first", np.array([0]))
    position_states = graph.apply("Slice", [positions, zero, shape, first], "placed")
    total = graph.apply("Add", [word_states, position_states], "embeddings")
    norm = "embeddings.LayerNorm"
    parts = [graph.constant(f"{norm}.{kind}", weights[f"{norm}.{kind}"]) for kind in ("weight", "bias")]
    graph.apply("Cast", ["attention_mask"], "attended", to=6)
    return graph.apply("LayerNormalization", [total, *parts], norm, epsilon=graph.epsilon)


def _layer(graph: _Graph, states: str, name: str, weights: Weights, heads: int) -> str:
    attention = f"{name}.attention"
    inner = [f"{attention}.self.{part}" for part in ("query", "key", "value")]
    product = graph.product(states, f"{attention}.self", np.concatenate([weights[f"{p}.weight"] for p in inner]).T)
    bias = graph.constant(f"{attention}.self.bias", np.concatenate([weights[f"{part}.bias"] for part in inner]))
    together = graph.apply("Add", [product, bias], f"{attention}.self.states")
    graph.nodes.append(_split(together, inner, graph, size=weights[f"{inner[0]}.weight"].shape[0]))
    attended = graph.apply(
        "MultiHeadAttention",
        [*inner, "", "attended"],
        f"{attention}.states",
        domain=FUSED,
        num_heads=heads,
        mask_filter_value=float(np.finfo(np.float32).min),
    )
    dense = graph.dense(attended, f"{attention}.output", weights, f"{attention}.output.dense.bias")
    states = graph.residual_norm(dense, states, f"{attention}.output.LayerNorm", weights)
    wide = graph.dense(states, f"{name}.intermediate", weights, f"{name}.intermediate.dense.bias")
    active = graph.apply("Gelu", [wide], f"{name}.activation", domain=FUSED)
    narrow = graph.dense(active, f"{name}.output", weights, f"{name}.output.dense.bias")
    return graph.residual_norm(narrow, states, f"{name}.output.LayerNorm", weights)


def _split(states: str, outputs: list[str], graph: _Graph, size: int) -> Any:
    """Cut query, key and value out of their product."""
    from onnx import helper

    if not any(constant.name == "thirds" for constant in graph.constants):
        graph.constant("thirds", np.array([size] * 3))
    return helper.make_node("Split", [states, "thirds"], outputs, name=f"{states}.split", axis=-1)
