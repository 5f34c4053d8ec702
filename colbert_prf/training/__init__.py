"""From questions with good and bad passages to a model: reading, mining, distilling and training; needs ``[hub]``."""

from __future__ import annotations

from colbert_prf.training.colbert import train_colbert
from colbert_prf.training.cross_encoder import train_cross_encoder
from colbert_prf.training.examples import Example, read_examples, write_examples
from colbert_prf.training.fitting import TrainingReport
from colbert_prf.training.mining import Mining, find_in_run, find_with, mine_negatives
from colbert_prf.training.settings import ModelForm, TrainingSettings
from colbert_prf.training.teacher import open_teacher, score_examples

__all__ = [
    "Example",
    "Mining",
    "ModelForm",
    "TrainingReport",
    "TrainingSettings",
    "find_in_run",
    "find_with",
    "mine_negatives",
    "open_teacher",
    "read_examples",
    "score_examples",
    "train_colbert",
    "train_cross_encoder",
    "write_examples",
]
