"""A small index that all tests of the plugin share; without PyTerrier they are skipped."""

from __future__ import annotations

import pytest

TEXTS = {
    "aquarium": "A goldfish kept in a large tank keeps growing and can reach 30 cm.",
    "army": "While the soldiers advanced, the tank bombarded the troops.",
    "bank": "The central bank raised its interest rates again.",
    "bowl": "In a small bowl a goldfish stays small and lives for a few years only.",
    "pond": "In a garden pond goldfish survive the winter under the ice.",
    "river": "The bank of the river was flooded after the rain.",
    "shop": "The shop sells glass bowls, tanks and food for fish.",
    "winter": "The winter of that year was long and cold, and rivers froze.",
}


@pytest.fixture(scope="session")
def index(tmp_path_factory, encoder):
    pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")
    from colbert_prf import Index
    from colbert_prf.pyterrier import ColbertIndex

    path = tmp_path_factory.mktemp("plugin") / "my.index"
    documents = [(doc_id, text, {"length": len(text)}) for doc_id, text in TEXTS.items()]
    Index.create(path, documents, encoder=encoder, bits=4)
    return ColbertIndex(path)


@pytest.fixture
def queries():
    import pandas as pd

    rows = [("1", "how large do fish grow", "a"), ("2", "bank of a river", "b"), ("3", "life in a tank", "c")]
    return pd.DataFrame(rows, columns=["qid", "query", "note"])
