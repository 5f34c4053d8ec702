"""Experiments: run systems over topics, compare them in a table, study their parameters."""

from __future__ import annotations

from colbert_prf.experiments.config import Collection, Experiment, read_experiment
from colbert_prf.experiments.context import Context
from colbert_prf.experiments.experiment import Judged, Outcome, Results, judged_topics, run_experiment
from colbert_prf.experiments.registry import Entry, check_entries, known_kinds, system
from colbert_prf.experiments.report import results_table, stages_table, write_report
from colbert_prf.experiments.run import RunSummary, run_topics
from colbert_prf.experiments.sweep import Sweep, run_sweep, sweep_settings

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
