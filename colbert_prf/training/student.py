"""The model to be trained: a ColBERT checkpoint as it is, or a text encoder with a new projection."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from colbert_prf.encoder.checkpoint import no_progress_bar, open_checkpoint, quiet_logger
from colbert_prf.errors import InputError, MissingExtraError, ModelError, ProjectionError
from colbert_prf.training.projection import linear_head, principal_components, token_vectors
from colbert_prf.training.settings import ModelForm

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Transformer

__all__ = ["build_student", "check_encoder", "set_dropout", "train_last_layers"]

QUERY_MARKER, DOCUMENT_MARKER = "[unused0]", "[unused1]"
SAMPLE_PASSAGES = 1000
"""Passages the principal components are taken of; a few hundred already give nearly the same."""


def build_student(
    base: str, form: ModelForm, passages: Sequence[str], *, seed: int, device: str | None = None
) -> MultiVectorEncoder:
    """Open a base to be trained.

    Parameters
    ----------
    base
        A ColBERT checkpoint, which keeps its form, or a text encoder: a folder or a name on the hub.
    form
        What a text encoder becomes.
    passages
        For the principal components of its token vectors.
    seed
        Of the sample of the passages, or of a random projection.
    device
        Such as ``cpu`` or ``cuda``; the best there is if left out.

    Raises
    ------
    ModelError
        If the base cannot be opened or is not an encoder.
    """
    try:
        return open_checkpoint(base, device=device)
    except ProjectionError:
        check_encoder(base)
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    with quiet_logger("transformers"), no_progress_bar():
        transformer = _transformer(base, form)
    if device is not None:
        transformer.to(device)
    transformer.eval()
    prompts = _prompts(transformer, form, base)
    skipped = list(string.punctuation) if form.skip_punctuation else []
    return MultiVectorEncoder(
        modules=[
            transformer,
            _head(transformer, form, passages, seed),
            MultiVectorMask(skipped),
            Normalize(module_input_name="token_embeddings"),
        ],
        prompts=prompts,
        device=device,
    )


def check_encoder(base: str) -> None:
    """Refuse what reads in one direction only, or writes.

    Raises
    ------
    MissingExtraError
        If transformers is not installed.
    ModelError
        If it is not an encoder.
    """
    try:
        from transformers import AutoConfig
    except ImportError as error:
        raise MissingExtraError("Training a model", extra="hub") from error
    try:
        config: Any = AutoConfig.from_pretrained(base, local_files_only=Path(base).is_dir())
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"{base}: not a text encoder transformers can open ({reason[0]})") from error
    architectures = getattr(config, "architectures", None) or []
    decodes = any(name.endswith(("LMHeadModel", "ForCausalLM", "ForConditionalGeneration")) for name in architectures)
    if decodes or getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        kind = architectures[0] if architectures else config.model_type
        raise ModelError(f"{base}: {kind} is not an encoder; give a model such as BERT, MiniLM or ModernBERT")


def train_last_layers(checkpoint: Any, layers: int | None) -> None:
    """Fix all but the last layers and what follows them.

    Parameters
    ----------
    checkpoint
        The model; what follows its first module is always trained, and so is the head of a classifier.
    layers
        How many layers; None trains everything.
    """
    if layers is None:
        return
    transformer = checkpoint[0].auto_model
    stack = _layer_stack(transformer)
    if layers > len(stack):
        raise InputError(f"layers must be at most {len(stack)}, which the base has, found {layers}")
    for parameter in transformer.parameters():
        parameter.requires_grad = False
    for layer in list(stack)[len(stack) - layers :]:
        for parameter in layer.parameters():
            parameter.requires_grad = True
    for parameter in _head_parameters(transformer):
        parameter.requires_grad = True


def set_dropout(checkpoint: Any, dropout: float | None) -> None:
    """Leave out another share of activations than the base does."""
    import torch

    if dropout is not None:
        for module in checkpoint.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout


def _head_parameters(transformer: Any) -> list[Any]:
    """What a classifier puts on its encoder, and the pooling under it; nothing of a bare encoder."""
    encoder = transformer.base_model
    if encoder is transformer:
        return []
    inside = {id(parameter) for parameter in encoder.parameters()}
    pooler = getattr(encoder, "pooler", None)
    return [
        *(parameter for parameter in transformer.parameters() if id(parameter) not in inside),
        *(pooler.parameters() if pooler is not None else ()),
    ]


def _layer_stack(transformer: Any) -> Any:
    """The longest list of like modules in an encoder."""
    import torch

    stacks = [module for module in transformer.modules() if isinstance(module, torch.nn.ModuleList)]
    if not stacks:
        raise ModelError("the base has no list of layers; train all of it")
    return max(stacks, key=len)


def _transformer(base: str, form: ModelForm) -> Transformer:
    from sentence_transformers.base.modules import Transformer

    longest = max(form.query_length, form.document_length)
    transformer = Transformer(base, max_seq_length=longest)
    room = getattr(transformer.auto_model.config, "max_position_embeddings", longest)
    if longest > room:
        raise InputError(f"{base} reads texts of {room} tokens at most; lower the lengths, which ask for {longest}")
    transformer.query_length, transformer.document_length = form.query_length, form.document_length
    if form.augment:
        if transformer.tokenizer.mask_token is None:
            raise ModelError(f"{base}: its tokenizer has no mask token to fill queries with; do without augmentation")
        transformer.query_expansion = {"strategy": "fixed", "length": form.query_length, "attend": False}
    return transformer


def _prompts(transformer: Transformer, form: ModelForm, base: str) -> dict[str, str]:
    """Make the markers one token each, and put them before each text."""
    if not form.markers:
        return {}
    from transformers import AddedToken

    tokenizer: Any = transformer.tokenizer
    markers = [QUERY_MARKER, DOCUMENT_MARKER]
    if missing := [marker for marker in markers if marker not in tokenizer.get_vocab()]:
        raise ModelError(f"{base}: its vocabulary has no {missing[0]} to mark texts with; do without markers")
    tokens = [AddedToken(marker, normalized=False, special=True) for marker in markers]
    tokenizer.add_special_tokens({"additional_special_tokens": tokens})
    return {"query": f"{QUERY_MARKER} ", "document": f"{DOCUMENT_MARKER} "}


def _head(transformer: Transformer, form: ModelForm, passages: Sequence[str], seed: int) -> Any:
    import torch
    from sentence_transformers.base.modules import Dense

    hidden = transformer.get_embedding_dimension()
    if form.projection == "random":
        torch.manual_seed(seed)
        return Dense(
            in_features=hidden,
            out_features=form.dim,
            bias=False,
            activation_function=torch.nn.Identity(),
            module_input_name="token_embeddings",
        )
    unique = sorted(set(passages))
    sample = random.Random(seed).sample(unique, min(SAMPLE_PASSAGES, len(unique)))
    vectors = np.concatenate(token_vectors(transformer, sample))
    directions, mean, _ = principal_components(vectors, dim=form.dim, centred=True)
    return linear_head(directions, mean)
