"""A figure into a file, of the kind its name says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from colbert_prf.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "check_figure_path", "save_figure"]

SUFFIXES = (".pdf", ".png", ".svg")


def check_figure_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a name whose suffix is unknown, or whose folder is not there, before anything is computed."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a figure ends in {', '.join(SUFFIXES)}, found {path.suffix or 'no suffix'!r}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")
    return path


def save_figure(figure: Figure, path: str | os.PathLike[str], *, resolution: int = 160) -> None:
    """Write a figure as PNG, SVG or PDF, by the suffix of its name.

    Parameters
    ----------
    figure
        For example of :func:`plot_expansion`.
    path
        An existing file is overwritten.
    resolution
        Dots per inch of a PNG.

    Raises
    ------
    InputError
        If the suffix is unknown, or the file cannot be written.
    """
    path = check_figure_path(path)
    kind = path.suffix.lower().removeprefix(".")
    # Without a date equal figures are equal files.
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    try:
        figure.savefig(path, format=kind, dpi=resolution, metadata=dates.get(kind))
    except OSError as error:
        raise InputError(f"{path}: the figure cannot be written: {error.strerror or error}") from error
