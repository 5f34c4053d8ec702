"""The notebook runs from top to bottom, without a network, and prints what it shows."""

from __future__ import annotations

import contextlib
import io
import json
import socket
from pathlib import Path

import pytest

pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")

NOTEBOOK = Path(__file__).parents[2] / "examples" / "pyterrier.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_without_a_network(monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("the notebook must not use a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    space: dict[str, object] = {}
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec("".join(cell["source"]), space)
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        # Documentation differs between versions of Python, so that only the form of most answers is the same.
        assert bool(printed.getvalue()) == bool(shown)
    table = space["table"].set_index("name")
    assert (table["map"] > 0.3).all()
    assert table.loc["ColBERT-PRF Ranker", "map"] > table.loc["BM25", "map"]
    assert space["ranker"].compile() == space["encode"] >> space["index"].prf()
