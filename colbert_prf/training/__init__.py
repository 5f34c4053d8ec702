"""From questions with good and bad passages to a model: reading, mining, distilling and training; needs ``[hub]``."""

from __future__ import annotations

from colbert_prf.training.examples import Example, read_examples, write_examples

__all__ = ["Example", "read_examples", "write_examples"]
