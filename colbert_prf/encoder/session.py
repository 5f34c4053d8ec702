"""ONNX Runtime sessions of a single thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from colbert_prf.errors import ModelError

__all__ = ["first_line", "open_session"]


def open_session(file: Path) -> Any:
    """Open a network for runs in the calling thread; a :class:`ModelError` says why it cannot be opened."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, so ONNX Runtime need not log them as well
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions share no base but Exception
        raise ModelError(f"{file}: ONNX Runtime cannot open it ({first_line(error)}); export it again") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the name of its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]
