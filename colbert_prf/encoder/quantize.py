"""Quantization of float32 networks to int8, after outliers have moved from the activations to the weights."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.tokenization import Tokenization, Tokenized
from colbert_prf.errors import ModelError

__all__ = ["calibration_texts", "quantize_network"]

MIGRATION = 0.75
"""The part of the outliers that moves to the weights; 0.7 to 0.8 are equally good, other values worse."""

Ranges = dict[str, npt.NDArray[np.float32]]


def calibration_texts() -> list[str]:
    """Return the topics of ``help()``: prose that every Python has."""
    topics: dict[str, str] = importlib.import_module("pydoc_data.topics").topics
    return [topics[name] for name in sorted(topics)]


def quantize_network(file: Path, tokenization: Tokenization) -> None:
    """Quantize a network in place: weights with a scale per channel, activations with scales computed at run time.

    The error of int8 comes from the activations: one scale serves all channels of a text, and a few channels are far
    larger than the rest. So each matrix product ``X W`` becomes ``(X / s) (s W)`` with
    ``s_j = max|X_j|^a / max|W_j|^(1 - a)``, which changes nothing in float32 and evens out the channels (SmoothQuant,
    Xiao et al., ICML 2023).

    Weights use 7 of the 8 bits. Processors without VNNI add two products of a signed and an unsigned byte in 16 bits,
    which overflow with 8-bit weights; with 7 bits the integer products are the same on every processor.

    Parameters
    ----------
    file
        An ONNX network that :func:`~colbert_prf.encoder.export.export_model` wrote.
    tokenization
        The tokenization of the model, to run it on :func:`calibration_texts`.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = file.with_suffix(".prepared.onnx")
    try:
        quant_pre_process(file, prepared, skip_symbolic_shape=True)
        smooth_network(prepared, (tokenization.document(text) for text in calibration_texts()))
        quantize_dynamic(
            prepared,
            file,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"DefaultTensorType": 1},  # shapes of fused operators are not inferred
        )
    finally:
        prepared.unlink(missing_ok=True)


def smooth_network(file: Path, calibration: Iterable[Tokenized], *, migration: float = MIGRATION) -> None:
    """Move outliers from the activations to the weights, in place; the output of the network stays the same.

    Parameters
    ----------
    file
        A float32 ONNX network.
    calibration
        Texts with typical activations.
    migration
        The exponent ``a``, between 0 and 1.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(file)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    products = [node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in weights]
    if not products:
        raise ModelError(f"{file}: no matrix products with constant weights; it cannot be quantized")
    ranges = _activation_ranges(model, sorted({node.input[0] for node in products}), calibration)
    nodes = list(model.graph.node)
    by_input = sorted(products, key=lambda node: str(node.input[0]))
    for activation, group in groupby(by_input, key=lambda node: str(node.input[0])):
        consumers = list(group)
        matrices = [numpy_helper.to_array(weights[node.input[1]]) for node in consumers]
        scales = _scales(ranges[activation], matrices, migration)
        divisor, smoothed = f"{activation}_smoothing", f"{activation}_smoothed"
        model.graph.initializer.append(numpy_helper.from_array(1 / scales, divisor))
        position = min(nodes.index(node) for node in consumers)
        nodes.insert(position, helper.make_node("Mul", [activation, divisor], [smoothed], name=smoothed))
        for node, matrix in zip(consumers, matrices, strict=True):
            scaled = np.ascontiguousarray(matrix * scales[:, None])
            weights[node.input[1]].CopyFrom(numpy_helper.from_array(scaled, node.input[1]))
            node.input[0] = smoothed
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, file)


def _scales(
    activations: npt.NDArray[np.float32], matrices: list[npt.NDArray[np.float32]], migration: float
) -> npt.NDArray[np.float32]:
    """Compute a scale for each input channel, of shape (num_channels,); their geometric mean is 1."""
    rows = np.max([np.abs(matrix).max(axis=1) for matrix in matrices], axis=0)
    scales = np.maximum(activations, 1e-3) ** migration / np.maximum(rows, 1e-5) ** (1 - migration)
    return np.asarray(scales / np.exp(np.log(scales).mean()), dtype=np.float32)


def _activation_ranges(model: Any, names: list[str], calibration: Iterable[Tokenized]) -> Ranges:
    """Measure the largest magnitude of each channel of the named tensors over some texts."""
    import onnx
    import onnxruntime

    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    session = onnxruntime.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    ranges: Ranges = {}
    for activations in _runs(session, names, calibration):
        for name, rows in zip(names, activations, strict=True):
            largest = np.abs(rows).reshape(-1, rows.shape[-1]).max(axis=0)
            ranges[name] = np.maximum(ranges[name], largest) if name in ranges else largest
    return ranges


def _runs(session: Any, names: list[str], texts: Iterable[Tokenized]) -> Iterator[list[npt.NDArray[np.float32]]]:
    for ids, attention, _ in texts:
        yield session.run(names, {"input_ids": ids[None], "attention_mask": attention[None]})
