"""What can be chosen: the form of a new model, and how it is trained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from colbert_prf.errors import InputError
from colbert_prf.training.examples import Example

__all__ = ["LOSSES", "PROJECTIONS", "Loss", "ModelForm", "Projection", "TrainingSettings", "digest_of"]

Loss = Literal["pairwise", "in-batch", "distill"]
Projection = Literal["pca", "random"]
LOSSES: tuple[str, ...] = get_args(Loss)
PROJECTIONS: tuple[str, ...] = get_args(Projection)


@dataclass(frozen=True, kw_only=True)
class ModelForm:
    """How a text encoder becomes a ColBERT model; a base that is one already keeps its own form.

    Parameters
    ----------
    dim
        Components of a vector.
    projection
        ``"pca"``: the principal components of token vectors of a sample of the passages, which keep what the base
        knows; ``"random"``: as the paper's.
    query_length, document_length
        Tokens kept of a text.
    augment
        Fill queries up to ``query_length`` with ``[MASK]``, whose vectors the model learns to use.
    markers
        Begin queries with ``[unused0]`` and documents with ``[unused1]``, as ColBERT does.
    skip_punctuation
        Give punctuation in documents no vector.
    """

    dim: int = 128
    projection: Projection = "pca"
    query_length: int = 32
    document_length: int = 180
    augment: bool = True
    markers: bool = True
    skip_punctuation: bool = True

    def __post_init__(self) -> None:
        _check_choice("projection", self.projection, PROJECTIONS)
        for name in ("dim", "query_length", "document_length"):
            _check_at_least(name, getattr(self, name), 1)


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a model is trained.

    Parameters
    ----------
    loss
        ``"pairwise"``: softmax cross-entropy of the positive against its own negatives, as the paper's.
        ``"in-batch"``: against the passages of the other questions of the batch too.
        ``"distill"``: the distribution of a teacher's scores over the passages (Kullback-Leibler divergence).
    learning_rate
        The largest; it rises over the first tenth of the steps and falls to 0 at the end.
    batch_size
        Examples per step.
    epochs
        Passes over the examples.
    steps
        Steps in all, instead of ``epochs``.
    layers
        Train the last layers only, so many, and the projection; 0 trains the projection alone, None everything.
    dropout
        Share of activations left out while training; the base's own if None.
    temperature
        Of ``"distill"``: scores of student and teacher are divided by it.
    checkpoint_every
        Steps between two states that are saved, and evaluated if there is a validation set.
    seed
        Of the order of the examples, of dropout and of a random projection.
    """

    loss: Loss = "pairwise"
    learning_rate: float = 3e-6
    batch_size: int = 32
    epochs: float = 1.0
    steps: int | None = None
    layers: int | None = None
    dropout: float | None = None
    temperature: float = 1.0
    checkpoint_every: int = 500
    seed: int = 42

    def __post_init__(self) -> None:
        _check_choice("loss", self.loss, LOSSES)
        for name in ("batch_size", "steps", "checkpoint_every"):
            if getattr(self, name) is not None:
                _check_at_least(name, getattr(self, name), 1)
        for name in ("learning_rate", "epochs", "temperature"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be a positive number, found {getattr(self, name)}")
        if self.layers is not None:
            _check_at_least("layers", self.layers, 0)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and less than 1, found {self.dropout}")

    def check_examples(self, examples: Sequence[Example]) -> None:
        """Refuse examples the loss cannot learn from."""
        num_documents = len(examples[0].documents)
        if num_documents < 2 and self.loss != "in-batch":
            raise InputError(
                f"the loss {self.loss!r} needs negatives and the examples have none; mine some, or use the loss "
                "'in-batch'"
            )
        if self.loss == "distill" and not examples[0].scores:
            raise InputError("the loss 'distill' needs the scores of a teacher and the examples have none; name one")


def digest_of(examples: Iterable[Example]) -> str:
    """Hash examples: equal digests, equal examples in equal order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps(asdict(example), ensure_ascii=True).encode())
    return digest.hexdigest()[:32]


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, found {value!r}")


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name} must be at least {least}, found {value}")
