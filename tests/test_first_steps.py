"""The notebook of first steps runs from top to bottom, without a network, and prints what it shows."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_the_notebook_runs_without_a_network(run_notebook):
    space = run_notebook("first-steps.ipynb")
    assert space["ranking"].expansion.feedback == (space["ranking"].before.doc_ids[0],)
    assert space["marked"].doc_ids[0] == "threading.Thread.join"
    assert space["result"].mean("Ranker", "MAP") > 0.5
