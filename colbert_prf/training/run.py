"""The folder of a training run: it can be interrupted and resumed, and its model appears when it is complete."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from colbert_prf.errors import InputError, ModelError, StorageError
from colbert_prf.training.card import write_card
from colbert_prf.training.examples import Example
from colbert_prf.training.settings import TrainingSettings, digest_of

__all__ = ["TrainingRun", "begin_run"]

LEAST_ROOM = 64 * 2**20
"""Below this many free bytes a failure to write is taken for a full disk, whatever the library that failed says."""


@dataclass(frozen=True)
class TrainingRun:
    """Where a run keeps its states until the model is complete.

    Parameters
    ----------
    output
        The folder of the model; it must not exist. The states are kept beside it, in ``OUTPUT.training``.
    """

    output: Path

    @property
    def folder(self) -> Path:
        """What an interrupted run leaves behind."""
        return self.output.with_name(f"{self.output.name}.training")

    @property
    def start(self) -> Path:
        """The model before its first step."""
        return self.folder / "start"

    @property
    def model(self) -> Path:
        """The finished model, before it is moved to ``output``."""
        return self.folder / "model"

    @property
    def identity(self) -> Path:
        """What the run consists of; where this file is, a run was begun."""
        return self.folder / "run.json"

    def check(self, *, resume: bool) -> None:
        """Refuse an output, or states, that are in the way.

        Raises
        ------
        InputError
            If the output exists, if an interrupted run is in the way, or something that is no run.
        """
        if self.output.exists():
            raise InputError(f"{self.output} exists already; name another folder, or remove it first")
        if self.identity.exists():
            if not resume:
                raise InputError(
                    f"{self.folder} holds an interrupted run; continue it with --resume, or remove the folder"
                )
        elif self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise InputError(f"{self.folder} is in the way, and no run of ours; name another output, or move it")

    def open(self, identity: Mapping[str, Any], *, resume: bool) -> None:
        """Begin, or take up what was interrupted.

        Parameters
        ----------
        identity
            What the run consists of: a run is resumed only with the same.
        resume
            Whether to continue; without anything to continue from the run begins.

        Raises
        ------
        InputError
            If the output exists, if an interrupted run is in the way, or if it was another run.
        """
        self.check(resume=resume)
        wanted = json.loads(json.dumps(identity))
        if self.identity.exists():
            found = _read_identity(self.identity)
            if changed := sorted(key for key in {*found, *wanted} if found.get(key) != wanted.get(key)):
                raise InputError(
                    f"{self.folder} holds a run with other {', '.join(changed)}; resume with the same, or remove the "
                    "folder to begin again"
                )
            return
        with self.room_needed():
            self.folder.mkdir(parents=True, exist_ok=True)
            self.identity.write_text(json.dumps(wanted, indent=2, sort_keys=True) + "\n", encoding="utf-8")

    @contextmanager
    def kept_if_begun(self) -> Iterator[None]:
        """Remove the folder of a run that is refused before its first state: there is nothing to resume."""
        try:
            yield
        except (InputError, ModelError):
            if self.last_checkpoint() is None:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def check_room(self, num_bytes: int) -> None:
        """Refuse to begin where the states would not fit."""
        free = shutil.disk_usage(self.folder).free
        if free < num_bytes:
            raise StorageError(
                f"training needs about {num_bytes / 1e6:,.0f} MB for its states, and {free / 1e6:,.0f} MB are free; "
                "make room, or name an output on another disk",
                path=self.folder,
            )

    def last_checkpoint(self) -> Path | None:
        """The newest state that was written to its end, if there is one."""
        # The file is the last one written, so a state without it was cut off.
        complete = [file.parent for file in self.folder.glob("checkpoint-*/trainer_state.json")]
        return max(complete, key=lambda path: int(path.name.split("-")[1]), default=None)

    def remove_incomplete(self) -> None:
        """Remove states that were cut off while they were written."""
        for path in self.folder.glob("checkpoint-*"):
            if not (path / "trainer_state.json").exists():
                shutil.rmtree(path)

    def publish(self, *, kind: str, record: Mapping[str, Any], num_examples: int) -> None:
        """Write what happened and the model card, move the finished model to its place and remove the states.

        Parameters
        ----------
        kind, record, num_examples
            See :func:`~colbert_prf.training.card.write_card`.
        """
        (self.model / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        write_card(self.model, name=self.output.name, kind=kind, record=record, num_examples=num_examples)
        self.model.rename(self.output)
        shutil.rmtree(self.folder)

    @contextmanager
    def room_needed(self) -> Iterator[None]:
        """Say plainly that the disk is full, which each library says in its own way."""
        try:
            yield
        except _write_errors() as error:
            full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
            existing = next(path for path in (self.folder, *self.folder.parents) if path.exists())
            if not full and shutil.disk_usage(existing).free > LEAST_ROOM:
                raise
            raise StorageError(
                "the disk is full; the last complete state is kept: make room, then continue with --resume",
                path=self.folder,
            ) from error


def _read_identity(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is damaged ({error}); remove its folder to begin again") from error
    if not isinstance(found, dict):
        raise InputError(f"{file} is not that of a run; remove its folder to begin again")
    return found


def begin_run(
    output: str | os.PathLike[str],
    examples: Sequence[Example],
    validation: Sequence[Example],
    settings: TrainingSettings,
    *,
    resume: bool,
    **others: Any,
) -> tuple[TrainingRun, dict[str, Any]]:
    """Check the examples and open a run, with what identifies it.

    Raises
    ------
    InputError
        If there are no examples, the loss cannot use them, or the run cannot be opened.
    """
    if not examples:
        raise InputError("there are no examples to learn from")
    settings.check_examples(examples)
    if any(len(example.documents) < 2 for example in validation):
        raise InputError("an example to validate with needs a negative to rank; mine some, or do without validation")
    identity = {
        "examples": digest_of(examples),
        "validation": digest_of(validation),
        "settings": asdict(settings),
        **others,
    }
    run = TrainingRun(Path(output))
    run.open(identity, resume=resume)
    return run, identity


def _write_errors() -> tuple[type[Exception], ...]:
    """What a failure to write is raised as: by Python, by PyTorch and by safetensors."""
    try:
        from safetensors import SafetensorError
    except ImportError:
        return OSError, RuntimeError
    return OSError, RuntimeError, SafetensorError
