"""Train a ColBERT model and write it as a folder that opens without PyTorch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colbert_prf.encoder.checkpoint import open_checkpoint
from colbert_prf.encoder.export import Agreement, export_model
from colbert_prf.encoder.folder import ModelFolder
from colbert_prf.training.examples import Example
from colbert_prf.training.fitting import Fitted, columns_of, fit, require_trainer, seeded, validation_samples
from colbert_prf.training.losses import colbert_loss
from colbert_prf.training.run import TrainingRun, begin_run
from colbert_prf.training.settings import ModelForm, TrainingSettings
from colbert_prf.training.student import build_student, set_dropout, train_last_layers

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

__all__ = ["TrainingReport", "fit_colbert", "train_colbert"]


@dataclass(frozen=True)
class TrainingReport:
    """What came of a training run.

    Parameters
    ----------
    output
        The folder of the model.
    num_examples, num_parameters
        What it learnt from, and how many parameters were trained.
    fitted
        Losses and validation.
    agreement
        The exported model against PyTorch.
    """

    output: Path
    num_examples: int
    num_parameters: int
    fitted: Fitted
    agreement: Agreement


def train_colbert(
    examples: Sequence[Example],
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    form: ModelForm | None = None,
    settings: TrainingSettings | None = None,
    validation: Sequence[Example] = (),
    resume: bool = False,
    int8: bool = True,
    device: str | None = None,
    progress: bool = True,
    on_step: Callable[[int], object] | None = None,
) -> TrainingReport:
    """Train a model on examples.

    Parameters
    ----------
    examples
        Each with as many passages as the first.
    base
        A ColBERT checkpoint or a text encoder: a folder or a name on the hub.
    output
        The folder to write; it must not exist. It opens with ``Encoder.load`` (ONNX) and holds the PyTorch model in
        ``checkpoint/``, what happened in ``training.json`` and a model card in ``README.md``.
    form, settings
        What a text encoder becomes, and how it is trained.
    validation
        Evaluated before the first step and whenever a state is saved; the best state becomes the model.
    resume
        Continue an interrupted run with the same examples, base, form and settings.
    int8
        Quantize the exported model to 8 bits.
    device
        Such as ``cpu`` or ``cuda``; the best there is if left out.
    progress
        Whether a bar may be shown.
    on_step
        Called with the number of each step that is done.

    Raises
    ------
    InputError
        If there are no examples or the loss cannot use them, the output exists, or another run is in the way.
    ModelError
        If the base cannot be opened, is not an encoder, or cannot be exported.
    StorageError
        If the disk is full; the last complete state is kept.
    """
    require_trainer()
    base = os.fspath(base)
    form, settings = form or ModelForm(), settings or TrainingSettings()
    run, identity = begin_run(output, examples, validation, settings, resume=resume, base=base, form=asdict(form))
    with run.kept_if_begun():
        model, fitted = fit_colbert(
            run,
            examples,
            base,
            form,
            settings,
            validation=validation,
            device=device,
            progress=progress,
            on_step=on_step,
        )
    return _finished(run, model, identity, fitted, len(examples), int8)


def fit_colbert(
    run: TrainingRun,
    examples: Sequence[Example],
    base: str,
    form: ModelForm,
    settings: TrainingSettings,
    *,
    validation: Sequence[Example] = (),
    device: str | None = None,
    progress: bool = True,
    on_step: Callable[[int], object] | None = None,
) -> tuple[MultiVectorEncoder, Fitted]:
    """Train without exporting: the parameters of :func:`train_colbert`, within a run that is open."""
    from sentence_transformers import MultiVectorEncoderTrainer
    from sentence_transformers.multi_vector_encoder.evaluation import MultiVectorRerankingEvaluator

    seeded(settings.seed)
    model = _start(run, base, form, examples, settings.seed, device)
    set_dropout(model, settings.dropout)
    train_last_layers(model, settings.layers)
    fitted = fit(
        MultiVectorEncoderTrainer,
        model,
        colbert_loss(model, settings),
        columns_of(examples, scores=settings.loss == "distill"),
        MultiVectorRerankingEvaluator(validation_samples(validation), write_csv=False) if validation else None,
        settings=settings,
        run=run,
        device=device,
        progress=progress,
        on_step=on_step,
    )
    return model, fitted


def _start(
    run: TrainingRun, base: str, form: ModelForm, examples: Sequence[Example], seed: int, device: str | None
) -> MultiVectorEncoder:
    """The model before its first step: made once, so that a resumed run begins from the same."""
    if not run.start.exists():
        passages = [document for example in examples for document in example.documents]
        making = run.start.with_name("start.unfinished")
        student = build_student(base, form, passages, seed=seed, device=device)
        with run.room_needed():
            student.save_pretrained(str(making), create_model_card=False)
            making.rename(run.start)
    return open_checkpoint(str(run.start), device=device)


def _finished(
    run: TrainingRun, model: MultiVectorEncoder, identity: dict[str, Any], fitted: Fitted, num_examples: int, int8: bool
) -> TrainingReport:
    """Export the trained model, name it, put the PyTorch one beside it and move it all to its place."""
    num_parameters = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    saved = run.folder / "trained"
    with run.room_needed():
        model.save_pretrained(str(saved), create_model_card=False)
        shutil.rmtree(run.model, ignore_errors=True)
        agreement = export_model(saved, run.model, int8=int8)
        folder = ModelFolder(run.model)
        named = replace(folder.read_settings(), name=run.output.name)
        folder.settings_file.write_text(named.to_json(), encoding="utf-8")
        saved.rename(run.model / "checkpoint")
        record = {**identity, "fitted": asdict(fitted), "parameters_trained": num_parameters, "int8": int8}
        run.publish(kind="ColBERT", record=record, num_examples=num_examples)
    return TrainingReport(run.output, num_examples, num_parameters, fitted, agreement)
