"""The feedback method of CONTRIBUTING runs."""

from __future__ import annotations

import re
from math import log
from pathlib import Path

import numpy as np
import pytest

from colbert_prf import EncodedQuery, Feedback, Searcher

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
EAST = EncodedQuery(np.array([1], dtype=np.int32), np.array([[1, 0]], dtype=np.float32))


@pytest.fixture(scope="module")
def method() -> type[Feedback]:
    section = CONTRIBUTING.read_text(encoding="utf-8").split("## Adding a feedback method")[1]
    code = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert code is not None
    namespace: dict[str, object] = {"__name__": "recipe"}
    exec(code[1], namespace)
    return namespace["RarestTokens"]


def test_numbers_worked_out_by_hand(plane, method):
    """Document a has token 1 twice and token 3; each is in two of five documents: σ = ln(6/3), the first two come."""
    expansion = Searcher(plane).search(EAST, feedback=method(feedback_docs=1, expansion_vectors=2, weight=1)).expansion
    assert [vector.token_id for vector in expansion.vectors] == [1, 1]
    assert [vector.sigma for vector in expansion.vectors] == pytest.approx([log(2)] * 2)
    assert expansion.query.weights.tolist() == pytest.approx([1, 0.5, 0.5])
    assert [vector.sources for vector in expansion.vectors] == [(("a", 0),), (("a", 1),)]


def test_it_searches_a_folder_as_well(open_index, goldfish, method):
    ranking = Searcher(open_index(4)).search(goldfish, k=3, feedback=method())
    assert len(ranking) == 3
    assert len(ranking.expansion) == method().expansion_vectors
