"""Experiments: run systems over topics, compare them in a table, study their parameters."""

from __future__ import annotations

from colbert_prf.experiments.context import Context
from colbert_prf.experiments.entries import Entry, check_entries
from colbert_prf.experiments.registry import known_kinds, system

__all__ = ["Context", "Entry", "check_entries", "known_kinds", "system"]
