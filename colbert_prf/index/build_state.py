"""What is whole of an unfinished build, so that it can be resumed."""

from __future__ import annotations

from dataclasses import dataclass, fields

from colbert_prf.errors import IndexMismatchError
from colbert_prf.index.manifest import FORMAT_VERSION, CodecInfo, SegmentInfo, Settings
from colbert_prf.storage.json_form import read_json, write_json
from colbert_prf.storage.layout import IndexLayout

__all__ = ["BuildState"]

KIND = "colbert-prf build"


@dataclass(frozen=True)
class BuildState:
    """The documents done so far: first those in the segments, then those in the chunks."""

    settings: Settings
    codec: CodecInfo | None = None
    segments: tuple[SegmentInfo, ...] = ()
    chunks: tuple[SegmentInfo, ...] = ()
    next_chunk: int = 0

    @property
    def num_documents(self) -> int:
        """How many documents are done."""
        return sum(part.num_documents for part in (*self.segments, *self.chunks))

    @property
    def num_spooled(self) -> int:
        """Vectors in the chunks."""
        return sum(chunk.num_vectors for chunk in self.chunks)

    def write(self, layout: IndexLayout) -> None:
        """Make this what a resumed build starts from."""
        write_json(layout.build_state, self, kind=KIND, version=FORMAT_VERSION)

    @classmethod
    def read(cls, layout: IndexLayout, settings: Settings) -> BuildState:
        """Read where an interrupted build stopped.

        Raises
        ------
        IndexMismatchError
            If it had other settings.
        """
        state = read_json(layout.build_state, cls, kind=KIND, version=FORMAT_VERSION)
        for name in (item.name for item in fields(Settings)):
            had, has = getattr(state.settings, name), getattr(settings, name)
            if had != has:
                raise IndexMismatchError(
                    f"the interrupted build had {name} = {had!r}, now it is {has!r}; resume with the same settings, or "
                    "remove the folder",
                    path=layout.path,
                )
        return state
