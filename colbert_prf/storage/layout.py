"""The files of an index folder: the one place that names them.

::

    my.index/
      manifest.json                    written last: its presence means the index is whole
      writer.lock  writer.json         held by, and naming, the process that is changing the index
      codec-000001/NAME.npy            made by generation 1
      segment-000001-0000/NAME.npy     the first segment made by generation 1
      deletions-000002/SEGMENT.NAME.npy  what generation 2 deleted from a segment
      derived-0123456789abcdef/NAME    made by readers from the segments; may be removed, and is then made again
      building/                        only while an index is being created
        build.json                     what is whole so far
        chunk-000000/NAME.npy          encoded documents that wait for the codec
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.files import check_reachable

__all__ = ["IndexLayout"]

_PLAIN = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
_OWN_FOLDERS = re.compile(r"(codec|segment|deletions)-\d{6,}(-\d{4,})?|derived-[0-9a-f]{16}")


@dataclass(frozen=True)
class IndexLayout:
    """Where everything is.

    Examples
    --------
    >>> layout = IndexLayout(Path("my.index"))
    >>> layout.segment_name(generation=3, number=0)
    'segment-000003-0000'
    >>> layout.array(layout.folder("codec-000001"), "centroids").as_posix()
    'my.index/codec-000001/centroids.npy'
    """

    path: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> IndexLayout:
        """That of a folder somebody named, which need not be there.

        Raises
        ------
        StorageError
            If no file could be found in it; see :func:`check_reachable`.
        """
        layout = cls(Path(path))
        check_reachable(layout.manifest)
        return layout

    @property
    def manifest(self) -> Path:
        """What the index consists of."""
        return self.path / "manifest.json"

    @property
    def lock(self) -> Path:
        """Held while the index is changed."""
        return self.path / "writer.lock"

    @property
    def writer(self) -> Path:
        """Who holds the lock, for people."""
        return self.path / "writer.json"

    @property
    def building(self) -> Path:
        """The state of an unfinished build."""
        return self.path / "building"

    @property
    def build_state(self) -> Path:
        """What is whole of an unfinished build."""
        return self.building / "build.json"

    def chunk(self, name: str) -> Path:
        """A spooled chunk of an unfinished build."""
        return self.building / _plain(self.building, name)

    def folder(self, name: str) -> Path:
        """A codec, a segment, the deletions of a generation, or what is derived from its segments."""
        return self.path / _plain(self.path, name)

    @staticmethod
    def array(folder: Path, name: str) -> Path:
        """One array of a codec, a segment or a chunk."""
        return folder / f"{_plain(folder, name)}.npy"

    @staticmethod
    def codec_name(generation: int) -> str:
        """The folder of the codec a generation trained."""
        return f"codec-{generation:06}"

    @staticmethod
    def segment_name(*, generation: int, number: int) -> str:
        """The folder of a segment a generation wrote."""
        return f"segment-{generation:06}-{number:04}"

    @staticmethod
    def deletions_name(generation: int) -> str:
        """The folder of what a generation deleted."""
        return f"deletions-{generation:06}"

    @staticmethod
    def chunk_name(number: int) -> str:
        """The folder of a spooled chunk."""
        return f"chunk-{number:06}"

    def foreign(self) -> list[str]:
        """Names in the folder that no index or unfinished build would have."""
        own = {self.manifest.name, self.lock.name, self.writer.name, self.building.name}
        own |= {f"{name}.new" for name in own}
        names = sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []
        return [name for name in names if name not in own and not _OWN_FOLDERS.fullmatch(name)]

    def remove_unused(self, used: Iterable[str]) -> None:
        """Remove codecs, segments, deletions and derived files that are not those of the manifest.

        They belong to an older generation or to a writer that was killed. A reader that has mapped them keeps them:
        the system frees a mapped file after its last reader.
        """
        keep = set(used)
        for entry in self.path.iterdir():
            if _OWN_FOLDERS.fullmatch(entry.name) and entry.name not in keep:
                # Where a mapped file cannot be removed (Windows), the next writer tries again.
                shutil.rmtree(entry, ignore_errors=True)


def _plain(folder: Path, name: str) -> str:
    """A name from a manifest, if it leads to something in the folder itself: not ``..``, not ``/etc``, not ``a/b``."""
    if not _PLAIN.fullmatch(name):
        raise IndexFormatError(
            f"the manifest names {name!r:.80}, which is no name of a file here: damaged or forged; restore it from a "
            "copy or build the index again",
            path=folder,
        )
    return name
