"""Term feedback by name, for those who write names: command lines and configurations."""

from __future__ import annotations

from colbert_prf.baselines.lexical.divergence import KL, Bo1
from colbert_prf.baselines.lexical.feedback import TermFeedback
from colbert_prf.baselines.lexical.rm3 import RM3

__all__ = ["METHODS"]

METHODS: dict[str, type[TermFeedback]] = {"rm3": RM3, "bo1": Bo1, "kl": KL}
