"""ColBERT checkpoints for PyTorch, opened by sentence-transformers: Stanford's, PyLate's and its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from colbert_prf.encoder.settings import ModelSettings
from colbert_prf.encoder.tokenization import Tokenization
from colbert_prf.errors import MissingExtraError, ModelError, ProjectionError

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

__all__ = ["no_progress_bar", "open_checkpoint", "quiet_logger", "tokenization_of"]


def open_checkpoint(model: str, *, device: str | None = None, **options: Any) -> MultiVectorEncoder:
    """Open a checkpoint with sentence-transformers.

    Parameters
    ----------
    model
        A folder, or a name on the hub.
    device
        The device, such as ``cpu`` or ``cuda``; the best one if left out.
    options
        Passed to ``MultiVectorEncoder``.

    Raises
    ------
    MissingExtraError
        If sentence-transformers is not installed.
    ModelError
        If it cannot open the checkpoint; a :class:`ProjectionError` if it would start from a random projection.
    """
    try:
        from sentence_transformers import MultiVectorEncoder
    except ImportError as error:
        raise MissingExtraError(f"Opening the PyTorch checkpoint {model}", extra="hub") from error
    try:
        with _listening("sentence_transformers") as messages, quiet_logger("transformers"), no_progress_bar():
            checkpoint = MultiVectorEncoder(model, device=device, local_files_only=Path(model).is_dir(), **options)
    except Exception as error:  # safetensors, tokenizers and transformers each raise their own
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"{model}: not a ColBERT checkpoint sentence-transformers can open ({reason[0]})") from error
    if any("randomly-initialised projection" in message for message in messages):
        raise ProjectionError(
            f"{model}: a text encoder without ColBERT's projection; give a ColBERT checkpoint, or train one with: "
            f"colbert-prf train TRIPLES --base {model} --output OUTPUT"
        )
    return checkpoint


def tokenization_of(checkpoint: MultiVectorEncoder, *, name: str) -> Tokenization:
    """Read the markers, lengths, augmentation, skip list and tokenizer of a checkpoint.

    Raises
    ------
    ModelError
        If the checkpoint does something that :class:`ModelSettings` cannot describe.
    """
    backend = getattr(checkpoint.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(f"{name}: its tokenizer has no fast form, which colbert-prf needs")
    tokenizer = Tokenizer.from_str(backend.to_str())
    transformer: Any = checkpoint[0]
    expansion = transformer.query_expansion or {}
    expanded_length = expansion.get("length", 0)
    is_fixed = expansion.get("strategy") == "fixed"
    query_length = transformer.query_length or transformer.max_seq_length
    prompts = checkpoint.prompts
    settings = ModelSettings(
        name=name,
        dim=int(checkpoint.get_embedding_dimension() or 0),
        query_prefix=prompts.get("query") or "",
        document_prefix=prompts.get("document") or "",
        query_length=expanded_length if is_fixed else max(expanded_length, query_length),
        document_length=transformer.document_length or transformer.max_seq_length,
        augment_to=expanded_length,
        augment_token=expansion.get("token") or checkpoint.tokenizer.mask_token or checkpoint.tokenizer.eos_token or "",
        attend_to_augmentation=bool(expansion.get("attend", False)),
        skip_tokens=_skip_tokens(checkpoint, tokenizer, name),
        special_tokens=tuple(sorted(t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special)),
    )
    return Tokenization(tokenizer, settings)


def _skip_tokens(checkpoint: MultiVectorEncoder, tokenizer: Any, name: str) -> tuple[str, ...]:
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    words: set[str] = set()
    for module in checkpoint:
        if isinstance(module, MultiVectorMask):
            if module.keep_only_token_ids or list(module.skiplist_tasks) != ["document"]:
                raise ModelError(f"{name}: it masks tokens in a way colbert-prf does not know: {module}")
            words.update(module.skiplist_words)
    return tuple(sorted(word for word in words if tokenizer.token_to_id(word) is not None))


@contextmanager
def quiet_logger(name: str) -> Iterator[None]:
    """Let a library log only errors while the block runs."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Turn the progress bars of transformers off while the block runs."""
    from transformers.utils import logging as transformers_logging

    was_enabled = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            transformers_logging.enable_progress_bar()


@contextmanager
def _listening(logger_name: str) -> Iterator[list[str]]:
    """Collect what a library logs: only there it says that it initialised weights at random."""
    messages: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger = logging.getLogger(logger_name)
    listener, level, propagate = Listener(), logger.level, logger.propagate
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield messages
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = propagate
