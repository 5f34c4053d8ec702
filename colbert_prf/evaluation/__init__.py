"""How good a run is, and whether it is better than another: measures, significance, tables."""

from __future__ import annotations

from colbert_prf.evaluation.comparing import FAMILIES, Family, compare
from colbert_prf.evaluation.measures import DEFAULT_MEASURES, Measure, parse_measures
from colbert_prf.evaluation.order import trec_order
from colbert_prf.evaluation.pool import read_doc_ids, restrict_qrels, restrict_run
from colbert_prf.evaluation.rendering import to_csv, to_html, to_latex, to_markdown
from colbert_prf.evaluation.result import Comparison, Evaluation
from colbert_prf.evaluation.scoring import Qrels, Run, evaluate
from colbert_prf.evaluation.significance import holm, paired_t_test
from colbert_prf.evaluation.tables import Cell, Column, Row, Table, comparisons_table, means_table, queries_table

__all__ = [
    "DEFAULT_MEASURES",
    "FAMILIES",
    "Cell",
    "Column",
    "Comparison",
    "Evaluation",
    "Family",
    "Measure",
    "Qrels",
    "Row",
    "Run",
    "Table",
    "compare",
    "comparisons_table",
    "evaluate",
    "holm",
    "means_table",
    "paired_t_test",
    "parse_measures",
    "queries_table",
    "read_doc_ids",
    "restrict_qrels",
    "restrict_run",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
    "trec_order",
]
