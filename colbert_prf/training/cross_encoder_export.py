"""A cross-encoder as an ONNX network, checked against PyTorch."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from colbert_prf.encoder.checkpoint import quiet_logger
from colbert_prf.encoder.export import FLOAT32_TOLERANCE, Agreement, strip_traces
from colbert_prf.errors import ModelError

__all__ = ["SAMPLE_PAIRS", "export_cross_encoder"]

FORMAT = 1
SAMPLE_PAIRS = (
    ("do goldfish grow", "A goldfish kept in a large tank grows up to 30 cm."),
    ("do goldfish grow", "The bank raised its rates again."),
    ("what is the most popular food in switzerland", "Crème brûlée, 東京, naïve: accents and scripts beyond ASCII."),
    ("a question", "word " * 400),
)
"""What an export is checked on."""


def export_cross_encoder(model: Any, folder: Path, *, name: str, int8: bool) -> Agreement:
    """Write ``model.onnx``, ``tokenizer.json`` and ``cross_encoder.json``.

    The network takes ``input_ids``, ``attention_mask`` and ``token_type_ids`` and gives ``scores``, one for each pair,
    before any squashing into 0 to 1.

    Parameters
    ----------
    model
        A ``sentence_transformers.CrossEncoder`` on the CPU.
    folder
        Where to; made if need be.
    name
        For people.
    int8
        Quantize weights to 8 bits.

    Returns
    -------
    Agreement
        With PyTorch: the largest difference of a score, and the correlation of the scores in place of cosines.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = model.tokenizer
    settings = {"format": FORMAT, "name": name, "max_length": model.max_seq_length}
    (folder / "cross_encoder.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    network = folder / "model.onnx"
    _write_network(model, network)
    agreement = _compare(model, network)
    if agreement.largest_difference > 10 * FLOAT32_TOLERANCE:
        raise ModelError(
            f"{name}: the exported network gives other scores than PyTorch (largest difference "
            f"{agreement.largest_difference:.2g}); nothing was written"
        )
    if int8:
        _quantize(network)
        agreement = _compare(model, network)
    return agreement


def _write_network(model: Any, file: Path) -> None:
    import torch

    class Network(torch.nn.Module):  # type: ignore[misc]  # untyped without the extra
        def __init__(self) -> None:
            super().__init__()
            self.classifier: Any = model[0].auto_model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            given = self.classifier(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
            return given.logits[:, 0]

    ids = torch.full((2, 13), model.tokenizer.unk_token_id or 0)
    shapes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    attention = model[0].auto_model.config._attn_implementation
    model[0].auto_model.set_attn_implementation("eager")
    try:
        with warnings.catch_warnings(), quiet_logger("torch.onnx"):
            warnings.simplefilter("ignore")
            torch.onnx.export(
                Network().eval(),
                (ids, torch.ones_like(ids), torch.zeros_like(ids)),
                file,
                input_names=names,
                output_names=["scores"],
                dynamic_shapes=dict.fromkeys(names, shapes),
                external_data=False,
                dynamo=True,
                verbose=False,
            )
    finally:
        model[0].auto_model.set_attn_implementation(attention)
    strip_traces(file)


def _quantize(file: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = file.with_suffix(".prepared.onnx")
    try:
        quant_pre_process(file, prepared, skip_symbolic_shape=True)
        # The quantizer turns the matrix of the last layer round, and would trip over its shape as noted down before.
        model = onnx.load(prepared)
        del model.graph.value_info[:]
        onnx.save(model, prepared)
        quantize_dynamic(prepared, file, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    finally:
        prepared.unlink(missing_ok=True)


def _compare(model: Any, file: Path) -> Agreement:
    import onnxruntime
    import torch

    wanted = model.predict(list(SAMPLE_PAIRS), activation_fn=torch.nn.Identity(), show_progress_bar=False)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    found = []
    for pair in SAMPLE_PAIRS:
        encoded = model.tokenizer(
            *pair, truncation="longest_first", max_length=model.max_seq_length, return_tensors="np"
        )
        inputs = {item.name: encoded[item.name].astype(np.int64) for item in session.get_inputs()}
        found.append(float(session.run(["scores"], inputs)[0][0]))
    correlation = float(np.corrcoef(wanted, found)[0, 1])
    return Agreement(float(np.abs(wanted - np.array(found)).max()), correlation, correlation)
