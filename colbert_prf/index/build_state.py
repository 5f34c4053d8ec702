"""What is whole of an unfinished build, so that it can be resumed."""

from __future__ import annotations

from dataclasses import dataclass, fields

from colbert_prf.errors import IndexFormatError, IndexMismatchError
from colbert_prf.index.manifest import FORMAT_VERSION, CodecInfo, SegmentInfo, Settings
from colbert_prf.storage.json_form import read_json, write_json
from colbert_prf.storage.layout import IndexLayout

__all__ = ["BuildState", "refuse_unfinished", "unfinished_build"]

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


def unfinished_build(layout: IndexLayout) -> BuildState | None:
    """What is whole of a build that was not finished; None where there is none."""
    if layout.manifest.exists() or not layout.build_state.exists():
        return None
    return read_json(layout.build_state, BuildState, kind=KIND, version=FORMAT_VERSION)


def refuse_unfinished(layout: IndexLayout) -> None:
    """Say of an unfinished build that it is one, and how to go on."""
    if (state := unfinished_build(layout)) is not None:
        raise IndexFormatError(
            f"the build of this index is not finished, {state.num_documents:,} documents are done; wait for it, or "
            "continue it: the same command with --resume, or Index.create(..., resume=True)",
            path=layout.path,
        )
