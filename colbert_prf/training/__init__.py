"""From questions with good and bad passages to a model: reading, mining, distilling and training; needs ``[hub]``."""

from __future__ import annotations

from colbert_prf.training.colbert import TrainingReport, train_colbert
from colbert_prf.training.examples import Example, read_examples, write_examples
from colbert_prf.training.settings import ModelForm, TrainingSettings

__all__ = [
    "Example",
    "ModelForm",
    "TrainingReport",
    "TrainingSettings",
    "read_examples",
    "train_colbert",
    "write_examples",
]
