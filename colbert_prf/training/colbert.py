"""Train a ColBERT model and write it as a folder that opens without PyTorch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from colbert_prf.encoder.checkpoint import open_checkpoint
from colbert_prf.encoder.export import Agreement, export_model
from colbert_prf.encoder.folder import ModelFolder
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
from colbert_prf.training.losses import colbert_loss
from colbert_prf.training.run import TrainingRun, begin_run
from colbert_prf.training.settings import ModelForm, TrainingSettings
from colbert_prf.training.student import build_student

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

__all__ = ["fit_colbert", "train_colbert"]


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
    options: dict[str, Any] = {"validation": validation, "device": device, "progress": progress, "on_step": on_step}
    with run.kept_if_begun():
        model, fitted = fit_colbert(run, examples, base, form, settings, **options)
    export = partial(_export, run, model, int8=int8)
    return finished(run, "ColBERT", model, identity, fitted, export, num_examples=len(examples), int8=int8)


def fit_colbert(
    run: TrainingRun,
    examples: Sequence[Example],
    base: str,
    form: ModelForm,
    settings: TrainingSettings,
    *,
    device: str | None = None,
    **options: Any,
) -> tuple[MultiVectorEncoder, Fitted]:
    """Train without exporting, within a run that is open; ``options`` are those of :func:`~.fitting.fit`."""
    from sentence_transformers import MultiVectorEncoderTrainer
    from sentence_transformers.multi_vector_encoder.evaluation import MultiVectorRerankingEvaluator

    seeded(settings.seed)
    passages = [document for example in examples for document in example.documents]
    start = first_state(run, lambda: build_student(base, form, passages, seed=settings.seed, device=device))
    model = open_checkpoint(start, device=device)
    fitted = fit(
        MultiVectorEncoderTrainer,
        MultiVectorRerankingEvaluator,
        model,
        colbert_loss(model, settings),
        examples,
        settings=settings,
        run=run,
        device=device,
        **options,
    )
    return model, fitted


def _export(run: TrainingRun, model: MultiVectorEncoder, *, int8: bool) -> Agreement:
    """Write the folder of the trained model, name it, and put the PyTorch model into it."""
    saved = run.folder / "trained"
    model.save_pretrained(str(saved), create_model_card=False)
    shutil.rmtree(run.model, ignore_errors=True)
    agreement = export_model(saved, run.model, int8=int8)
    folder = ModelFolder(run.model)
    named = replace(folder.read_settings(), name=run.output.name)
    folder.settings_file.write_text(named.to_json(), encoding="utf-8")
    saved.rename(run.model / "checkpoint")
    return agreement
