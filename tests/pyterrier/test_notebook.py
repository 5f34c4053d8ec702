"""The paper's experiment in PyTerrier runs from top to bottom, without a network, and prints what it shows."""

from __future__ import annotations

import pytest

pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")


@pytest.mark.slow
def test_the_notebook_runs_without_a_network(run_notebook):
    space = run_notebook("pyterrier.ipynb")
    table = space["table"].set_index("name")
    assert (table["map"] > 0.3).all()
    assert table.loc["ColBERT-PRF Ranker", "map"] > table.loc["BM25", "map"]
    assert space["ranker"].compile() == space["encode"] >> space["index"].prf(**space["PAPER"])
