"""Checking a segment of a lexical index: every array against the others."""

from __future__ import annotations

import numpy as np

from colbert_prf.baselines.lexical.segment import LexicalSegment
from colbert_prf.baselines.lexical.segment_writer import inverted, sums_of_runs
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.storage.verification import require, verify_metadata, verify_texts

__all__ = ["verify_segment"]


def verify_segment(snapshot: LexicalSnapshot, segment: LexicalSegment) -> None:
    """Refuse arrays that contradict each other; their bytes have been compared with their checksums.

    Raises
    ------
    IndexFormatError
        Naming the file.
    """
    segment.vocabulary.check()
    _verify_terms(segment)
    _verify_postings(segment)
    verify_texts(segment, texts=snapshot.manifest.texts)
    verify_metadata(segment)


def _verify_terms(segment: LexicalSegment) -> None:
    offsets, terms = segment.offsets, segment.terms
    rising = offsets[0] == 0 and offsets[-1] == len(terms) and bool((offsets[1:] >= offsets[:-1]).all())
    require(rising, segment, "offsets", f"offsets must rise from 0 to {len(terms)}")
    known = int(terms.min(initial=0)) >= 0 and int(terms.max(initial=-1)) < len(segment.vocabulary)
    require(known, segment, "terms", f"a term is not among the {len(segment.vocabulary)} of the vocabulary")
    require(int(segment.frequencies.min(initial=1)) >= 1, segment, "frequencies", "a frequency is less than 1")
    lengths = sums_of_runs(segment.frequencies, offsets)
    require(np.array_equal(lengths, segment.lengths), segment, "lengths", "the lengths are not those of the documents")


def _verify_postings(segment: LexicalSegment) -> None:
    for name, array in inverted(segment.terms, segment.frequencies, segment.offsets, len(segment.vocabulary)):
        require(np.array_equal(array, segment.arrays[name]), segment, name, "the postings are not those of the terms")
