"""The state of an unfinished build: what is complete, so that the build can be resumed."""

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
    """What a build has finished: the first documents are in the segments, the next ones in the chunks."""

    settings: Settings
    codec: CodecInfo | None = None
    segments: tuple[SegmentInfo, ...] = ()
    chunks: tuple[SegmentInfo, ...] = ()
    next_chunk: int = 0

    @property
    def num_documents(self) -> int:
        """The number of documents in segments and chunks."""
        return sum(part.num_documents for part in (*self.segments, *self.chunks))

    @property
    def num_spooled(self) -> int:
        """The number of vectors in the chunks."""
        return sum(chunk.num_vectors for chunk in self.chunks)

    def write(self, layout: IndexLayout) -> None:
        """Make this the state from which a resumed build starts."""
        write_json(layout.build_state, self, kind=KIND, version=FORMAT_VERSION)

    @classmethod
    def read(cls, layout: IndexLayout, settings: Settings) -> BuildState:
        """Read the state of an interrupted build.

        Raises
        ------
        IndexMismatchError
            If the build had other settings.
        """
        state = read_json(layout.build_state, cls, kind=KIND, version=FORMAT_VERSION)
        for name in (field.name for field in fields(Settings)):
            before, now = getattr(state.settings, name), getattr(settings, name)
            if before != now:
                raise IndexMismatchError(
                    f"the interrupted build had {name} = {before!r}, now it is {now!r}; resume with the same settings, "
                    "or remove the folder",
                    path=layout.path,
                )
        return state


def unfinished_build(layout: IndexLayout) -> BuildState | None:
    """Read the state of an unfinished build in a folder; None if there is none."""
    if layout.manifest.exists() or not layout.build_state.exists():
        return None
    return read_json(layout.build_state, BuildState, kind=KIND, version=FORMAT_VERSION)


def refuse_unfinished(layout: IndexLayout) -> None:
    """Refuse to open an unfinished build, with an error that says how to continue it."""
    if (state := unfinished_build(layout)) is not None:
        raise IndexFormatError(
            f"the build of this index is not finished, {state.num_documents:,} documents are done; wait for it, or "
            "continue it: the same command with --resume, or Index.create(..., resume=True)",
            path=layout.path,
        )
