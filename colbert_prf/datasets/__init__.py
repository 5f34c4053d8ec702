"""Readers for corpora, topics, judgements and runs; every bad line is an error with its file and line number.

A source is a path, ``-`` for standard input, or ``irds:NAME`` for a dataset of ir_datasets; gzip and zstd are read as
they are.
"""

from __future__ import annotations

from colbert_prf.datasets.corpus import (
    CorpusFormat,
    Document,
    EmptyPolicy,
    read_corpus,
    read_corpus_with_metadata,
)
from colbert_prf.datasets.judgements import read_qrels
from colbert_prf.datasets.opening import Source
from colbert_prf.datasets.runs import Scores, read_run, write_run
from colbert_prf.datasets.topics import TopicsFormat, read_topics

__all__ = [
    "CorpusFormat",
    "Document",
    "EmptyPolicy",
    "Scores",
    "Source",
    "TopicsFormat",
    "read_corpus",
    "read_corpus_with_metadata",
    "read_qrels",
    "read_run",
    "read_topics",
    "write_run",
]
