"""Steps, states and evaluation: sentence-transformers' trainers, for ColBERT models and cross-encoders alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from colbert_prf.encoder.checkpoint import no_progress_bar, quiet_logger
from colbert_prf.encoder.export import Agreement
from colbert_prf.errors import MissingExtraError
from colbert_prf.progress import progress_bar
from colbert_prf.training.examples import Example
from colbert_prf.training.run import TrainingRun
from colbert_prf.training.settings import TrainingSettings
from colbert_prf.training.student import set_dropout, train_last_layers

__all__ = ["Fitted", "TrainingReport", "finished", "first_state", "fit", "require_trainer", "seeded"]

WARM_UP = 0.1
BYTES_PER_STATE = 3 * 4
"""Of a parameter: its value and two moments of AdamW, each a float32."""
STATES_KEPT = 2
MEASURE = "mrr@10"


@dataclass(frozen=True)
class Fitted:
    """What happened while a model was trained.

    Parameters
    ----------
    steps
        Steps in all, those before an interruption included.
    seconds
        Time of this sitting.
    losses
        Pairs of a step and the mean loss since the pair before.
    validation
        Pairs of a step and the mean reciprocal rank (at 10) of the positive among the passages of its example; step 0
        is the start. Empty without a validation set.
    """

    steps: int
    seconds: float
    losses: tuple[tuple[int, float], ...]
    validation: tuple[tuple[int, float], ...]

    @property
    def improved(self) -> bool:
        """Whether the best state is better than the start on the validation set, or there is none to tell."""
        return not self.validation or max(value for _, value in self.validation) > self.validation[0][1]


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


def require_trainer() -> None:
    """Raise :class:`MissingExtraError` if what trains is not installed."""
    try:
        import accelerate  # noqa: F401
        import datasets  # noqa: F401
        import sentence_transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Training a model", extra="hub") from error


def seeded(seed: int) -> None:
    """Make what is random repeatable: Python, NumPy and PyTorch."""
    from transformers import set_seed

    set_seed(seed)


def first_state(run: TrainingRun, make: Callable[[], Any]) -> str:
    """Where the model before its first step is: made once, so that a resumed run begins from the same."""
    if not run.start.exists():
        making = run.start.with_name("start.unfinished")
        model = make()
        with run.room_needed():
            model.save_pretrained(str(making), create_model_card=False)
            making.rename(run.start)
    return str(run.start)


def fit(
    trainer_class: Any,
    evaluator_class: Any,
    model: Any,
    loss: Any,
    examples: Sequence[Example],
    *,
    settings: TrainingSettings,
    run: TrainingRun,
    validation: Sequence[Example] = (),
    device: str | None = None,
    progress: bool = True,
    on_step: Callable[[int], object] | None = None,
) -> Fitted:
    """Train a model in place, from its start or from the last complete state of the run.

    Parameters
    ----------
    trainer_class, evaluator_class
        Of sentence-transformers, for the kind of model.
    model, loss, examples, validation
        What is trained, towards what, and on what; validation may be empty.
    settings, run
        How, and where the states are kept.
    device
        ``cpu`` keeps a GPU out of it.
    progress
        Whether a bar may be shown.
    on_step
        Called with the number of each step that is done.
    """
    set_dropout(model, settings.dropout)
    train_last_layers(model, settings.layers)
    dataset = _columns_of(examples, scores=settings.loss == "distill")
    evaluator = evaluator_class(_validation_samples(validation), write_csv=False) if validation else None
    steps = settings.steps or math.ceil(math.ceil(len(dataset) / settings.batch_size) * settings.epochs)
    run.remove_incomplete()
    last = run.last_checkpoint()
    run.check_room((STATES_KEPT + 1) * BYTES_PER_STATE * sum(weight.numel() for weight in model.parameters()))
    began = perf_counter()
    with (
        progress_bar("Training", total=steps, unit="steps", shown=progress) as advance,
        quiet_logger("transformers"),
        no_progress_bar(),
        run.room_needed(),
    ):
        advance(int(last.name.split("-")[1]) if last else 0)
        trainer = _without_cards(trainer_class)(
            model=model,
            args=_arguments(
                trainer_class, settings, run, steps, device, evaluate=evaluator is not None, begin=not last
            ),
            train_dataset=dataset,
            loss=loss,
            evaluator=evaluator,
            callbacks=[_bar(advance, on_step)],
        )
        trainer.remove_callback(_printer())
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    return _fitted(trainer.state, perf_counter() - began)


def finished(
    run: TrainingRun,
    kind: str,
    model: Any,
    identity: dict[str, Any],
    fitted: Fitted,
    export: Callable[[], Agreement],
    *,
    num_examples: int,
    int8: bool,
) -> TrainingReport:
    """Export the trained model, write down how it came about, and move it all to its place.

    Parameters
    ----------
    run, kind, model, identity, fitted
        What was trained, on what, and how it went.
    export
        Writes the folder of the model.
    num_examples, int8
        For the record.
    """
    num_parameters = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    with run.room_needed():
        agreement = export()
        record = {**identity, "fitted": asdict(fitted), "parameters_trained": num_parameters, "int8": int8}
        run.publish(kind=kind, record=record, num_examples=num_examples)
    return TrainingReport(run.output, num_examples, num_parameters, fitted, agreement)


def _columns_of(examples: Sequence[Example], *, scores: bool) -> Any:
    """Arrange examples as the trainers want them: a column for the query and one for each passage."""
    from datasets import Dataset

    columns: dict[str, list[Any]] = {"query": [example.query for example in examples]}
    for number in range(len(examples[0].documents)):
        columns[f"document_{number}"] = [example.documents[number] for example in examples]
    if scores:
        columns["label"] = [list(example.scores) for example in examples]
    return Dataset.from_dict(columns)


def _validation_samples(examples: Sequence[Example]) -> list[dict[str, Any]]:
    """Arrange examples as the evaluators want them."""
    return [
        {"query": example.query, "positive": list(example.documents[:1]), "negative": list(example.documents[1:])}
        for example in examples
    ]


def _fitted(state: Any, seconds: float) -> Fitted:
    losses, validation = (_series(state.log_history, key) for key in ("loss", f"eval_{MEASURE}"))
    return Fitted(state.global_step, seconds, losses, validation)


def _series(history: list[dict[str, float]], key: str) -> tuple[tuple[int, float], ...]:
    return tuple((int(entry["step"]), float(entry[key])) for entry in history if key in entry)


def _arguments(
    trainer_class: Any,
    settings: TrainingSettings,
    run: TrainingRun,
    steps: int,
    device: str | None,
    *,
    evaluate: bool,
    begin: bool,
) -> Any:
    from sentence_transformers.base.sampler import BatchSamplers

    every = min(settings.checkpoint_every, steps)
    unique = settings.loss == "in-batch"
    evaluation = {
        "eval_strategy": "steps",
        "eval_steps": every,
        "eval_on_start": begin,
        "load_best_model_at_end": True,
        "metric_for_best_model": f"eval_{MEASURE}",
        "greater_is_better": True,
    }
    return trainer_class.training_args_class(
        output_dir=str(run.folder),
        max_steps=steps,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        warmup_steps=int(WARM_UP * steps),
        seed=settings.seed,
        data_seed=settings.seed,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=STATES_KEPT,
        logging_steps=max(1, every // 10),
        # A batch in which a passage is another question's positive would call it a negative.
        batch_sampler=BatchSamplers.NO_DUPLICATES if unique else BatchSamplers.BATCH_SAMPLER,
        dataloader_pin_memory=False,
        report_to="none",
        disable_tqdm=True,
        use_cpu=device == "cpu",
        **(evaluation if evaluate else {}),
    )


def _without_cards(trainer_class: Any) -> Any:
    """The trainer, but for its model card: it would ask the network, and ours says more."""

    class Trainer(trainer_class):  # type: ignore[misc]  # untyped without the extra
        def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
            pass

        def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
            self.model.save_pretrained(output_dir or self.args.output_dir, create_model_card=False)

    return Trainer


def _bar(advance: Callable[[int], object], on_step: Callable[[int], object] | None) -> Any:
    from transformers import TrainerCallback

    class Bar(TrainerCallback):  # type: ignore[misc]  # untyped without the extra
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            advance(1)
            if on_step is not None:
                on_step(state.global_step)

    return Bar()


def _printer() -> Any:
    from transformers.trainer_callback import PrinterCallback

    return PrinterCallback
