"""What many tests share: the embedded encoder, and where the real data is."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from colbert_prf import Encoder

# No test depends on how fast the machine is; under CI the same examples come every time.
settings.register_profile("untimed", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("untimed")

EXAMPLES = Path(__file__).parents[1] / "examples"
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return Encoder.load()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the collections in ../shared/data")
    return SHARED_DATA


@pytest.fixture
def run_notebook(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, object]]:
    """Run a notebook of the examples from top to bottom, without a network; its names are returned."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("the notebook must not use a network")

    def run(name: str) -> dict[str, object]:
        monkeypatch.setattr(socket.socket, "connect", refuse)
        space: dict[str, object] = {}
        for cell in json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec("".join(cell["source"]), space)
                shown = "".join(line for output in cell["outputs"] for line in output["text"])
                # Documentation differs between versions of Python, so that only the form of most answers is the same.
                assert printed.getvalue().count("\n") == shown.count("\n")
        return space

    return run
