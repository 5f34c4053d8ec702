"""The dtype and shape each array of a folder must have, compared with what the manifest says before any is opened.

Kernels take rows by number and do not look whether they are there, so what they are given must have the form that the
settings ask for. That a file has the form the manifest says is checked by :func:`open_array`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.layout import IndexLayout

__all__ = ["Form", "check_forms"]


class Form(NamedTuple):
    """What an array must be: one of some dtypes, as files spell them, and a shape, with None for any length."""

    dtypes: tuple[str, ...]
    shape: tuple[int | None, ...]

    @classmethod
    def of(cls, *dtypes: npt.DTypeLike, shape: tuple[int | None, ...]) -> Form:
        """The form of arrays as they are written.

        >>> Form.of(np.uint16, np.uint32, shape=(None, 8))
        Form(dtypes=('<u2', '<u4'), shape=(None, 8))
        """
        return cls(tuple(np.dtype(dtype).newbyteorder("<").str for dtype in dtypes), shape)

    def fits(self, info: ArrayInfo) -> bool:
        """Whether an array has this form."""
        lengths = zip(self.shape, info.shape, strict=False)
        same = len(self.shape) == len(info.shape) and all(length in (None, found) for length, found in lengths)
        return same and info.dtype in self.dtypes

    def __str__(self) -> str:
        shape = ", ".join("any" if length is None else str(length) for length in self.shape)
        return f"{' or '.join(self.dtypes)} of shape ({shape})"


def check_forms(files: Mapping[str, ArrayInfo], forms: Mapping[str, Form], folder: Path) -> None:
    """Refuse arrays that are not there, not known, or not what the settings ask for.

    Parameters
    ----------
    files
        The arrays of a folder, as the manifest has them.
    forms
        All that it must have.
    folder
        For messages.

    Raises
    ------
    IndexFormatError
        Naming the file.
    """
    for name, info in files.items():
        path = IndexLayout.array(folder, name)
        if name not in forms:
            raise IndexFormatError("the manifest names a file that no index has: damaged or forged", path=path)
        if not forms[name].fits(info):
            raise IndexFormatError(
                f"by the settings and counts in the manifest it must be {forms[name]}, found {info.dtype} of shape "
                f"{info.shape}: damaged or foreign; restore it from a copy or build the index again",
                path=path,
            )
    for name in forms:
        if name not in files:
            raise IndexFormatError("the manifest does not know this file", path=IndexLayout.array(folder, name))
