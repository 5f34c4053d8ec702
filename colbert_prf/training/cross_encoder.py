"""Train a cross-encoder, which reads a question and a passage together, on the same examples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from colbert_prf.encoder.checkpoint import no_progress_bar, quiet_logger
from colbert_prf.encoder.export import Agreement
from colbert_prf.errors import InputError
from colbert_prf.training.cross_encoder_export import export_cross_encoder
from colbert_prf.training.examples import Example
from colbert_prf.training.fitting import (
    Fitted,
    TrainingReport,
    finished,
    first_state,
    fit,
    require_trainer,
    seeded,
)
from colbert_prf.training.losses import cross_encoder_loss
from colbert_prf.training.run import TrainingRun, begin_run
from colbert_prf.training.settings import TrainingSettings
from colbert_prf.training.student import check_encoder

__all__ = ["MAX_LENGTH", "fit_cross_encoder", "train_cross_encoder"]

MAX_LENGTH = 256
"""Tokens of question and passage together."""


def train_cross_encoder(
    examples: Sequence[Example],
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    settings: TrainingSettings | None = None,
    max_length: int = MAX_LENGTH,
    validation: Sequence[Example] = (),
    resume: bool = False,
    int8: bool = True,
    device: str | None = None,
    progress: bool = True,
    on_step: Callable[[int], object] | None = None,
) -> TrainingReport:
    """Train a cross-encoder on examples.

    Parameters
    ----------
    examples, base, output, settings, validation, resume, int8, device, progress, on_step
        As of :func:`~colbert_prf.training.train_colbert`. The loss is ``"pairwise"`` or ``"distill"``. ``output`` holds
        ``model.onnx``, ``tokenizer.json`` and ``cross_encoder.json``, and the PyTorch model in ``checkpoint/``.
    max_length
        Tokens of question and passage together.
    """
    require_trainer()
    base = os.fspath(base)
    settings = settings or TrainingSettings()
    if settings.loss == "in-batch":
        raise InputError("a cross-encoder has no loss 'in-batch', which would read every pair; use 'pairwise'")
    run, identity = begin_run(
        output, examples, validation, settings, resume=resume, base=base, form={"max_length": max_length}
    )
    options: dict[str, Any] = {"validation": validation, "device": device, "progress": progress, "on_step": on_step}
    with run.kept_if_begun():
        model, fitted = fit_cross_encoder(run, examples, base, settings, max_length=max_length, **options)
    export = partial(_export, run, model, int8=int8)
    return finished(run, "cross-encoder", model, identity, fitted, export, num_examples=len(examples), int8=int8)


def fit_cross_encoder(
    run: TrainingRun,
    examples: Sequence[Example],
    base: str,
    settings: TrainingSettings,
    *,
    max_length: int = MAX_LENGTH,
    device: str | None = None,
    **options: Any,
) -> tuple[Any, Fitted]:
    """Train without exporting, within a run that is open; ``options`` are those of :func:`~.fitting.fit`."""
    from sentence_transformers import CrossEncoder, CrossEncoderTrainer
    from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator

    seeded(settings.seed)
    with quiet_logger("transformers"), quiet_logger("sentence_transformers"), no_progress_bar():
        start = first_state(run, partial(_untrained, base, max_length, device))
        model = CrossEncoder(start, device=device, local_files_only=True)
    fitted = fit(
        CrossEncoderTrainer,
        CrossEncoderRerankingEvaluator,
        model,
        cross_encoder_loss(model, settings),
        examples,
        settings=settings,
        run=run,
        device=device,
        **options,
    )
    return model, fitted


def _untrained(base: str, max_length: int, device: str | None) -> Any:
    """The model before its first step, its last layer random."""
    from sentence_transformers import CrossEncoder

    check_encoder(base)
    local = Path(base).is_dir()
    return CrossEncoder(base, num_labels=1, max_length=max_length, device=device, local_files_only=local)


def _export(run: TrainingRun, model: Any, *, int8: bool) -> Agreement:
    """Write the folder of the trained model, and put the PyTorch model into it."""
    agreement = export_cross_encoder(model.to("cpu"), run.model, name=run.output.name, int8=int8)
    model.save_pretrained(str(run.model / "checkpoint"), create_model_card=False)
    return agreement
