"""The files of an index folder: this module alone names them.

::

    my.index/
      manifest.json                    written last: its presence means that the index is complete
      writer.lock  writer.json         held by, and naming, the process that is changing the index
      codec-000001/NAME.npy            made by generation 1
      segment-000001-0000/NAME.npy     the first segment made by generation 1
      segment-000001-0123456789abcdef/NAME.npy  one that a cluster made, named by its content
      deletions-000002/SEGMENT.NAME.npy  what generation 2 deleted from a segment
      derived-0123456789abcdef/NAME    made by readers from the segments; may be removed, and is then made again
      building/                        only while an index is being created
        build.json                     the chunks and segments that are complete
        chunk-000000/NAME.npy          encoded documents that wait for the codec
        slice-0123456789abcdef.zst     texts that wait for a worker of a cluster
        attempt-NAME/NAME.npy          what a worker is writing; it gets its name when it is complete
        SEGMENT.json                   the description of a complete segment of a cluster
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from colbert_prf.errors import IndexFormatError, InputError
from colbert_prf.storage.files import check_reachable

__all__ = ["IndexLayout", "damaged_array"]

_PLAIN_NAME = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
_INDEX_FOLDER = re.compile(r"(codec|deletions)-\d{6,}|segment-\d{6,}(-(\d{4,}|[0-9a-f]{16}))?|derived-[0-9a-f]{16}")


@dataclass(frozen=True)
class IndexLayout:
    """The paths of all files of an index folder.

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
        """Make the layout of a folder that a user named; it need not exist.

        Raises
        ------
        InputError
            If the path is no path at all.
        StorageError
            If the system cannot look up the path; see :func:`check_reachable`.
        """
        try:
            layout = cls(Path(path))
        except TypeError:
            raise InputError(f"a path must be a string or a Path, found {path!r:.80}") from None
        check_reachable(layout.manifest)
        return layout

    @property
    def manifest(self) -> Path:
        """The list of everything the index consists of."""
        return self.path / "manifest.json"

    @property
    def lock(self) -> Path:
        """The lock that a writer holds."""
        return self.path / "writer.lock"

    @property
    def writer(self) -> Path:
        """A note on who holds the lock, for people."""
        return self.path / "writer.json"

    @property
    def building(self) -> Path:
        """The folder of an unfinished build."""
        return self.path / "building"

    @property
    def build_state(self) -> Path:
        """The list of what is complete in an unfinished build."""
        return self.building / "build.json"

    def chunk(self, name: str) -> Path:
        """The folder of a spooled chunk of an unfinished build."""
        return self.building / _plain(self.building, name)

    def folder(self, name: str) -> Path:
        """The folder of a codec, a segment, the deletions of a generation, or derived files."""
        return self.path / _plain(self.path, name)

    @staticmethod
    def array(folder: Path, name: str) -> Path:
        """The file of an array in one of these folders."""
        return folder / f"{_plain(folder, name)}.npy"

    @staticmethod
    def codec_name(generation: int) -> str:
        """The folder name of the codec that a generation trained."""
        return f"codec-{generation:06}"

    @staticmethod
    def segment_name(*, generation: int, number: int) -> str:
        """The folder name of a segment that a generation wrote."""
        return f"segment-{generation:06}-{number:04}"

    @staticmethod
    def content_name(*, generation: int, digest: str) -> str:
        """The folder name of a segment that a cluster wrote: ``digest`` is a hash of all that its bytes depend on."""
        return f"segment-{generation:06}-{digest}"

    def slice(self, digest: str) -> Path:
        """The file of texts that wait for a worker."""
        return self.building / f"slice-{_plain(self.building, digest)}.zst"

    def attempt(self, segment_name: str, worker: str) -> Path:
        """The folder of what a worker is writing."""
        return self.building / f"attempt-{_plain(self.building, segment_name)}-{worker}"

    def attempts(self, segment_name: str = "") -> list[Path]:
        """The folders of what workers are writing of a segment, or have left; of all segments if none is named."""
        return list(self.building.glob(f"attempt-{segment_name}*"))

    def finished(self, segment_name: str) -> Path:
        """The file that says that a segment of an unfinished build is complete."""
        return self.building / f"{_plain(self.building, segment_name)}.json"

    @staticmethod
    def deletions_name(generation: int) -> str:
        """The folder name of what a generation deleted."""
        return f"deletions-{generation:06}"

    @staticmethod
    def chunk_name(number: int) -> str:
        """The folder name of a spooled chunk."""
        return f"chunk-{number:06}"

    def foreign(self) -> list[str]:
        """List the names in the folder that belong to no index and no unfinished build."""
        index_names = {self.manifest.name, self.lock.name, self.writer.name, self.building.name}
        index_names |= {f"{name}.new" for name in index_names}
        names = sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []
        return [name for name in names if name not in index_names and not _INDEX_FOLDER.fullmatch(name)]

    def remove_unused(self, used: Iterable[str]) -> None:
        """Remove all codecs, segments, deletions and derived files, except the folders in use.

        An older generation or a killed writer has left them. A reader that has mapped them can go on: the system frees
        a mapped file after its last reader.
        """
        used_names = set(used)
        for entry in self.path.iterdir():
            if _INDEX_FOLDER.fullmatch(entry.name) and entry.name not in used_names:
                # Windows cannot remove a mapped file; the next writer tries again.
                shutil.rmtree(entry, ignore_errors=True)


def damaged_array(folder: Path, name: str, problem: str) -> IndexFormatError:
    """Make the error for an array whose content no index has."""
    advice = "damaged; look for more with colbert-prf verify, restore it from a copy or build the index again"
    return IndexFormatError(f"{problem}: {advice}", path=IndexLayout.array(folder, name))


def _plain(folder: Path, name: str) -> str:
    """Return a name from a manifest if it stays inside the folder: not ``..``, not ``/etc``, not ``a/b``."""
    if not _PLAIN_NAME.fullmatch(name):
        raise IndexFormatError(
            f"the manifest names {name!r:.80}, which is no name of a file here: damaged or forged; restore it from a "
            "copy or build the index again",
            path=folder,
        )
    return name
