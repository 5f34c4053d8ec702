"""Train a cross-encoder, which reads a question and a passage together, on the same examples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from colbert_prf.encoder.checkpoint import no_progress_bar, quiet_logger
from colbert_prf.errors import InputError
from colbert_prf.training.colbert import TrainingReport
from colbert_prf.training.cross_encoder_export import export_cross_encoder
from colbert_prf.training.examples import Example
from colbert_prf.training.fitting import Fitted, columns_of, fit, require_trainer, seeded, validation_samples
from colbert_prf.training.losses import cross_encoder_loss
from colbert_prf.training.run import TrainingRun, begin_run
from colbert_prf.training.settings import TrainingSettings
from colbert_prf.training.student import check_encoder, set_dropout, train_last_layers

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
    with run.kept_if_begun():
        model, fitted = fit_cross_encoder(
            run,
            examples,
            base,
            settings,
            max_length=max_length,
            validation=validation,
            device=device,
            progress=progress,
            on_step=on_step,
        )
    num_parameters = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    with run.room_needed():
        agreement = export_cross_encoder(model.to("cpu"), run.model, name=run.output.name, int8=int8)
        model.save_pretrained(str(run.model / "checkpoint"), create_model_card=False)
        record = {**identity, "fitted": asdict(fitted), "parameters_trained": num_parameters, "int8": int8}
        run.publish(kind="cross-encoder", record=record, num_examples=len(examples))
    return TrainingReport(run.output, len(examples), num_parameters, fitted, agreement)


def fit_cross_encoder(
    run: TrainingRun,
    examples: Sequence[Example],
    base: str,
    settings: TrainingSettings,
    *,
    max_length: int = MAX_LENGTH,
    validation: Sequence[Example] = (),
    device: str | None = None,
    progress: bool = True,
    on_step: Callable[[int], object] | None = None,
) -> tuple[Any, Fitted]:
    """Train without exporting: the parameters of :func:`train_cross_encoder`, within a run that is open."""
    from sentence_transformers import CrossEncoderTrainer
    from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator

    seeded(settings.seed)
    model = _start(run, base, max_length, device)
    set_dropout(model, settings.dropout)
    train_last_layers(model, settings.layers)
    fitted = fit(
        CrossEncoderTrainer,
        model,
        cross_encoder_loss(model, settings),
        columns_of(examples, scores=settings.loss == "distill"),
        CrossEncoderRerankingEvaluator(validation_samples(validation), write_csv=False) if validation else None,
        settings=settings,
        run=run,
        device=device,
        progress=progress,
        on_step=on_step,
    )
    return model, fitted


def _start(run: TrainingRun, base: str, max_length: int, device: str | None) -> Any:
    """The model before its first step, its last layer random: made once, so that a resumed run begins from the same."""
    from sentence_transformers import CrossEncoder

    with quiet_logger("transformers"), quiet_logger("sentence_transformers"), no_progress_bar():
        if not run.start.exists():
            check_encoder(base)
            local = Path(base).is_dir()
            model = CrossEncoder(base, num_labels=1, max_length=max_length, device=device, local_files_only=local)
            making = run.start.with_name("start.unfinished")
            with run.room_needed():
                model.save_pretrained(str(making), create_model_card=False)
                making.rename(run.start)
        return CrossEncoder(str(run.start), device=device, local_files_only=True)
