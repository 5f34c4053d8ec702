"""Checking a whole lexical index: every byte against its checksum, then every array against the others."""

from __future__ import annotations

import numpy as np

from colbert_prf.baselines.lexical.segment import LexicalSegment
from colbert_prf.baselines.lexical.segment_writer import inverted, sums_of_runs
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.errors import IndexFormatError
from colbert_prf.index.verification import verify_live_ids
from colbert_prf.storage.layout import IndexLayout

__all__ = ["verify_lexical"]


def verify_lexical(snapshot: LexicalSnapshot) -> int:
    """Check everything, and return the number of files.

    Raises
    ------
    IndexFormatError
        Naming the first file that is not as it was written, or contradicts another.
    """
    for segment in snapshot.segments:
        segment.check(snapshot.layout)
        segment.doc_ids.check()
        segment.vocabulary.check()
        _verify_terms(segment)
        _verify_postings(segment)
        _verify_texts(segment, texts=snapshot.manifest.texts)
    verify_live_ids(snapshot)
    return sum(len(segment.info.files) for segment in snapshot.segments)


def _verify_terms(segment: LexicalSegment) -> None:
    offsets, terms = segment.offsets, segment.terms
    rising = offsets[0] == 0 and offsets[-1] == len(terms) and bool((offsets[1:] >= offsets[:-1]).all())
    _expect(rising, segment, "offsets", f"offsets must rise from 0 to {len(terms)}")
    known = int(terms.min(initial=0)) >= 0 and int(terms.max(initial=-1)) < len(segment.vocabulary)
    _expect(known, segment, "terms", f"a term is not among the {len(segment.vocabulary)} of the vocabulary")
    _expect(int(segment.frequencies.min(initial=1)) >= 1, segment, "frequencies", "a frequency is less than 1")
    lengths = sums_of_runs(segment.frequencies, offsets)
    _expect(np.array_equal(lengths, segment.lengths), segment, "lengths", "the lengths are not those of the documents")


def _verify_postings(segment: LexicalSegment) -> None:
    for name, array in inverted(segment.terms, segment.frequencies, segment.offsets, len(segment.vocabulary)):
        _expect(np.array_equal(array, segment.arrays[name]), segment, name, "the postings are not those of the terms")


def _verify_texts(segment: LexicalSegment, *, texts: bool) -> None:
    found = "texts_blocks" in segment.arrays
    _expect(found == texts, segment, "texts_blocks", f"the manifest says texts={texts}, the segment has texts: {found}")
    for position in range(len(segment)):
        segment.text(position)


def _expect(condition: bool, segment: LexicalSegment, name: str, message: str) -> None:
    if not condition:
        raise IndexFormatError(message, path=IndexLayout.array(segment.folder, name))
