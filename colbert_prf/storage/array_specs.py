"""The dtype and shape that each array of a folder must have, by the settings and counts in the manifest.

Kernels take rows by number and check no bounds, so the manifest's description of each array is compared with these
specifications before any file is opened. :func:`open_array` then compares the file with the manifest's description.
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

__all__ = ["ArraySpec", "check_specs"]


class ArraySpec(NamedTuple):
    """The dtypes and the shape that an array may have; None in the shape stands for any length."""

    dtypes: tuple[str, ...]
    shape: tuple[int | None, ...]

    @classmethod
    def of(cls, *dtypes: npt.DTypeLike, shape: tuple[int | None, ...]) -> ArraySpec:
        """Make a specification, with dtypes spelled as in files.

        >>> ArraySpec.of(np.uint16, np.uint32, shape=(None, 8))
        ArraySpec(dtypes=('<u2', '<u4'), shape=(None, 8))
        """
        return cls(tuple(np.dtype(dtype).newbyteorder("<").str for dtype in dtypes), shape)

    def fits(self, info: ArrayInfo) -> bool:
        """Tell whether an array has one of the dtypes, and the shape."""
        lengths = zip(self.shape, info.shape, strict=False)
        fits_shape = len(self.shape) == len(info.shape) and all(want in (None, have) for want, have in lengths)
        return fits_shape and info.dtype in self.dtypes

    def __str__(self) -> str:
        shape = ", ".join("any" if length is None else str(length) for length in self.shape)
        return f"{' or '.join(self.dtypes)} of shape ({shape})"


def check_specs(files: Mapping[str, ArrayInfo], specs: Mapping[str, ArraySpec], folder: Path) -> None:
    """Refuse arrays that are missing, unknown, or of another dtype or shape than specified.

    Parameters
    ----------
    files
        The arrays of a folder, as the manifest describes them.
    specs
        The arrays that the folder must have.
    folder
        The folder, for messages.

    Raises
    ------
    IndexFormatError
        It names the file.
    """
    for name, info in files.items():
        path = IndexLayout.array(folder, name)
        if name not in specs:
            raise IndexFormatError("the manifest names a file that no index has: damaged or forged", path=path)
        if not specs[name].fits(info):
            raise IndexFormatError(
                f"by the settings and counts in the manifest it must be {specs[name]}, found {info.dtype} of shape "
                f"{info.shape}: damaged or foreign; restore it from a copy or build the index again",
                path=path,
            )
    for name in specs:
        if name not in files:
            raise IndexFormatError("the manifest does not know this file", path=IndexLayout.array(folder, name))
