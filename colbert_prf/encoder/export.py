"""Export of PyTorch checkpoints to ONNX model folders, each checked against PyTorch before it is kept."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from colbert_prf.encoder.base import Encoder
from colbert_prf.encoder.bert_graph import bert_graph
from colbert_prf.encoder.checkpoint import open_checkpoint, quiet_logger
from colbert_prf.encoder.folder import ModelFolder
from colbert_prf.encoder.onnx import OnnxEncoder
from colbert_prf.encoder.quantize import quantize_network
from colbert_prf.encoder.torch import TorchEncoder
from colbert_prf.errors import InputError, MissingExtraError, ModelError
from colbert_prf.types import EncodedDocument, EncodedQuery

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

__all__ = ["SAMPLE_TEXTS", "Agreement", "compare_encoders", "export_model", "strip_traces"]

SAMPLE_TEXTS = (
    "do goldfish grow",
    "what is the most popular food in switzerland",
    "A goldfish kept in a large tank grows up to 30 cm; in a bowl it stays small, and lives for a few years only.",
    "While the soldiers advanced, the tank bombarded the troops with artillery.",
    "Crème brûlée, 東京, naïve: accents and scripts beyond ASCII.",
    "",
    "word " * 400,
)
"""The texts on which an export is checked: questions, passages, accents, an empty text and one that is too long."""

FLOAT32_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Agreement:
    """How far the vectors of two encoders differ on some texts.

    Parameters
    ----------
    largest_difference
        The largest difference of any component of any vector.
    smallest_cosine, mean_cosine
        The cosines between the two encoders' vectors of a token.
    """

    largest_difference: float
    smallest_cosine: float
    mean_cosine: float


def compare_encoders(first: Encoder, second: Encoder, texts: Sequence[str] = SAMPLE_TEXTS) -> Agreement:
    """Encode texts as queries and as documents with two encoders, and compare the vectors of each token.

    Raises
    ------
    ModelError
        If the encoders split a text into different tokens.
    """
    differences, cosines = [], []
    queries = [text for text in texts if text.strip()]
    pairs: list[tuple[EncodedDocument | EncodedQuery, EncodedDocument | EncodedQuery]] = [
        *zip(first.encode_documents(texts), second.encode_documents(texts), strict=True),
        *zip(first.encode_queries(queries), second.encode_queries(queries), strict=True),
    ]
    for text, (encoded, exported) in zip([*texts, *queries], pairs, strict=True):
        if not np.array_equal(encoded.token_ids, exported.token_ids):
            raise ModelError(
                f"the exported tokenizer splits {text[:60]!r} differently: {first.tokens(encoded.token_ids)[:12]} "
                f"against {second.tokens(exported.token_ids)[:12]}"
            )
        differences.append(float(np.abs(encoded.vectors - exported.vectors).max()))
        cosines.append(np.einsum("ij,ij->i", encoded.vectors, exported.vectors))
    all_cosines = np.concatenate(cosines)
    return Agreement(max(differences), float(all_cosines.min()), float(all_cosines.mean()))


def export_model(model: str | os.PathLike[str], output: str | os.PathLike[str], *, int8: bool = False) -> Agreement:
    """Write a checkpoint as a folder that :meth:`Encoder.load` opens without PyTorch.

    Parameters
    ----------
    model
        Any ColBERT checkpoint that sentence-transformers opens: a folder or a name on the hub.
    output
        The folder to write; it must not exist. It appears only when it is complete and checked.
    int8
        Quantize to 8 bits: a quarter of the size and faster; vectors have a cosine of about .995 to the original.

    Returns
    -------
    agreement
        How far the exported model differs from PyTorch on :data:`SAMPLE_TEXTS`.

    Raises
    ------
    ModelError
        If the checkpoint cannot be opened or exported, or the float32 export differs from PyTorch.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"{output} exists already; name another folder, or remove it first")
    checkpoint = open_checkpoint(os.fspath(model), device="cpu", model_kwargs={"attn_implementation": "eager"})
    reference = TorchEncoder(checkpoint, name=Path(model).name)
    output.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{output.name}-", dir=output.parent))
    try:
        folder = ModelFolder(building)
        folder.settings_file.write_text(reference.settings.to_json(), encoding="utf-8")
        reference.tokenization.save(folder.tokenizer_file)
        _write_network(checkpoint, folder.network_file)
        agreement = compare_encoders(reference, OnnxEncoder(folder))
        if agreement.largest_difference > FLOAT32_TOLERANCE:
            raise ModelError(
                f"{model}: the exported network gives other vectors than PyTorch (largest difference "
                f"{agreement.largest_difference:.2g}, allowed {FLOAT32_TOLERANCE}); nothing was written"
            )
        if int8:
            quantize_network(folder.network_file, reference.tokenization)
            agreement = compare_encoders(reference, OnnxEncoder(folder))
        building.chmod(0o755)  # mkdtemp makes it private
        building.rename(output)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return agreement


def _write_network(checkpoint: MultiVectorEncoder, file: Path) -> None:
    """Write the network ``input_ids, attention_mask -> vectors``, as a fast graph if possible, otherwise traced."""
    import torch

    if (graph := _fast_graph(checkpoint)) is not None:
        import onnx

        onnx.save(graph, file)
        return
    network = _network(checkpoint).eval()
    # Two different sizes above 1: otherwise the tracer takes them for constants.
    input_ids = torch.full((2, 13), checkpoint.tokenizer.unk_token_id or 0)
    shapes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    try:
        with warnings.catch_warnings(), quiet_logger("torch.onnx"):
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network,
                (input_ids, torch.ones_like(input_ids)),
                file,
                input_names=["input_ids", "attention_mask"],
                output_names=["vectors"],
                dynamic_shapes={"input_ids": shapes, "attention_mask": shapes},
                external_data=False,
                dynamo=True,
                verbose=False,
            )
    except ModuleNotFoundError as error:
        raise MissingExtraError("Exporting to ONNX", extra="hub") from error
    strip_traces(file)


def _fast_graph(checkpoint: MultiVectorEncoder) -> Any | None:
    """Make the fast graph of a BERT encoder with one linear projection to unit vectors; None for other checkpoints."""
    import torch
    from sentence_transformers.base.modules import Dense, Normalize

    transformer, heads = _modules(checkpoint)
    network: Any = transformer.auto_model
    if type(network).__name__ != "BertModel" or network.config.hidden_act != "gelu":
        return None
    if [type(head) for head in heads] != [Dense, Normalize]:
        return None
    if not isinstance(heads[0].activation_function, torch.nn.Identity) or getattr(heads[0], "residual", None):
        return None
    dense: Any = heads[0].linear
    return bert_graph(
        {name: tensor.detach().cpu().float().numpy() for name, tensor in network.state_dict().items()},
        heads=network.config.num_attention_heads,
        epsilon=network.config.layer_norm_eps,
        projection=dense.weight.detach().cpu().float().numpy(),
        bias=None if dense.bias is None else dense.bias.detach().cpu().float().numpy(),
    )


def _modules(checkpoint: MultiVectorEncoder) -> tuple[Any, list[Any]]:
    """Return the transformer of a checkpoint, and the modules after it without masks."""
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    transformer, *heads = list(checkpoint)
    return transformer, [head for head in heads if not isinstance(head, MultiVectorMask)]


def strip_traces(file: Path) -> None:
    """Remove what the tracer wrote for debugging: a model must not hold source lines and paths of this machine."""
    import onnx

    model = onnx.load(file)
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    onnx.save(model, file)


def _network(checkpoint: MultiVectorEncoder) -> Any:
    """Chain the transformer, projections and normalisation in one module of two tensors."""
    import torch
    from sentence_transformers.base.modules import Dense, Normalize

    transformer, heads = _modules(checkpoint)
    if unknown := [type(head).__name__ for head in heads if not isinstance(head, Dense | Normalize)]:
        raise ModelError(f"the checkpoint has modules that cannot be exported: {', '.join(unknown)}")

    class Network(torch.nn.Module):  # type: ignore[misc]  # untyped without the extra
        def __init__(self) -> None:
            super().__init__()
            self.transformer: Any = transformer.auto_model
            self.heads = torch.nn.ModuleList(heads)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            hidden = self.transformer(input_ids=input_ids, attention_mask=attention_mask)[0]
            features = {"token_embeddings": hidden, "attention_mask": attention_mask}
            for head in self.heads:
                features = head(features)
            return features["token_embeddings"]

    return Network()
