"""Experiments: run systems over topics, compare them in a table, study their parameters."""

from __future__ import annotations

from colbert_prf.experiments.config import Collection, Experiment, read_experiment
from colbert_prf.experiments.context import Context
from colbert_prf.experiments.entries import Entry, check_entries
from colbert_prf.experiments.experiment import Outcome, Results, run_experiment
from colbert_prf.experiments.judged import Judged, judged_topics
from colbert_prf.experiments.registry import known_kinds, system
from colbert_prf.experiments.report import write_report
from colbert_prf.experiments.running import RunSummary, run_topics
from colbert_prf.experiments.sweep import Sweep, run_sweep, sweep_settings
from colbert_prf.experiments.tables import results_table, stages_table

__all__ = [
    "Collection",
    "Context",
    "Entry",
    "Experiment",
    "Judged",
    "Outcome",
    "Results",
    "RunSummary",
    "Sweep",
    "check_entries",
    "judged_topics",
    "known_kinds",
    "read_experiment",
    "results_table",
    "run_experiment",
    "run_sweep",
    "run_topics",
    "stages_table",
    "sweep_settings",
    "system",
    "write_report",
]
