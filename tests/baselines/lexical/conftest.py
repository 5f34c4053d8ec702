"""A collection small enough to count by hand."""

from __future__ import annotations

import pytest

from colbert_prf.baselines.lexical import Analyzer, LexicalIndex

PLAIN = Analyzer(stop_words="none", stemmer="none")
DOCUMENTS = [("x", "fish fish tank"), ("y", "fish bank"), ("z", "bank rates rates fell")]
"""Three documents of 3, 2 and 4 words: 9 in all, 3 on average."""


@pytest.fixture
def index(tmp_path):
    return LexicalIndex.create(tmp_path / "my.lexical", DOCUMENTS, analyzer=PLAIN, progress=False)


@pytest.fixture(scope="session")
def small_index(tmp_path_factory):
    """The same for tests that try many examples and change nothing."""
    path = tmp_path_factory.mktemp("lexical") / "my.lexical"
    return LexicalIndex.create(path, DOCUMENTS, analyzer=PLAIN, progress=False)
