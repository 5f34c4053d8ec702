"""Kill writers and look at what they left; run by test_crash.py in a process of its own, which has no threads to fork.

``crash_rounds.py steps FOLDER KIND ACTION SEED COUNT``: repeat an action, each time killed just before another of the
file operations it makes, the last few among them; a COUNT of 1000 takes every one.
``crash_rounds.py moments FOLDER KIND SEED COUNT``: kill at random moments a writer that changes the index again and
again.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from index_kinds import KINDS, contents

from colbert_prf import EncodedDocument, Index
from colbert_prf.index import batch, builder, changes, segment_writer

EVENTS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"}
DIM, VOCABULARY = 8, 50


def documents(first: int, count: int) -> list[tuple]:
    made = []
    for number in range(first, first + count):
        draw = np.random.default_rng(number)
        vectors = draw.standard_normal((int(draw.integers(1, 9)), DIM)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        tokens = draw.integers(0, VOCABULARY, len(vectors)).astype(np.int32)
        made.append((f"d{number}", EncodedDocument(tokens, vectors), f"text {number}", {"number": number}))
    return made


def pairs(first: int, count: int) -> list[tuple[str, str]]:
    return [(f"d{number}", f"{number % 7} {number % 5} {number}") for number in range(first, first + count)]


class Vectors:
    """An index of compressed vectors, of several chunks and segments."""

    documents = staticmethod(documents)
    open = staticmethod(Index.open)

    def create(self, path: Path) -> None:
        Index.create_from_vectors(
            path, documents(0, 20), vocabulary_size=VOCABULARY, texts=True, progress=False, resume=True
        )

    def add(self, index: Index, given: list) -> None:
        index.add_vectors(given)

    def upsert(self, index: Index, given: list) -> None:
        index.upsert_vectors(given)

    def seen(self, index: Index) -> list:
        """Everything a reader can see of an index."""
        live = np.flatnonzero(index.snapshot.live).tolist()
        seen: list = [
            (index.doc_id(p), index.text(p), index.metadata(p), index.token_ids(p).tolist(), index.vectors(p).tolist())
            for p in live
        ]
        return [*seen, (index.num_vectors, index.document_frequency(np.arange(VOCABULARY)).tolist())]


class Pairs:
    """One of the other kinds."""

    documents = staticmethod(pairs)

    def __init__(self, name: str) -> None:
        self.kind = KINDS[name]
        self.open, self.add, self.upsert = self.kind.open, self.kind.add, self.kind.upsert

    def create(self, path: Path) -> None:
        self.kind.create(path, pairs(0, 20))

    def seen(self, index: Any) -> list:
        return contents(self.kind, index)


def change(kind: Any, path: Path, generation: int) -> None:
    """The one change that follows a generation, so that equal generations have equal content."""
    index = kind.open(path)
    assert index.generation == generation
    match generation % 5:
        case 1 | 2:
            kind.add(index, kind.documents(100 * generation, 4))
        case 3:
            index.delete([index.snapshot.doc_id(p) for p in np.flatnonzero(index.snapshot.live)[:3].tolist()])
        case 4:
            names = [index.snapshot.doc_id(p) for p in np.flatnonzero(index.snapshot.live)[1:3].tolist()]
            new = kind.documents(1000 * generation, 3)
            kind.upsert(index, [(name, *given[1:]) for name, given in zip([*names, "new"], new, strict=True)])
        case _:
            index.merge()


def replacing(kind: Any) -> list:
    """Two documents that are there, and a new one."""
    return [(name, *given[1:]) for name, given in zip(["d1", "d50", "new"], kind.documents(100, 3), strict=True)]


ACTIONS: dict[str, Callable[[Any, Path], object]] = {
    "create": lambda kind, path: kind.create(path),
    "add": lambda kind, path: kind.add(kind.open(path), kind.documents(100, 12)),
    "upsert": lambda kind, path: kind.upsert(kind.open(path), replacing(kind)),
    "delete": lambda kind, path: kind.open(path).delete(["d1", "d15"]),
    "merge": lambda kind, path: kind.open(path).merge(),
    "retrain": lambda kind, path: kind.open(path).merge(retrain=True),
}


def digest(kind: Any, path: Path) -> str:
    """Everything a reader can see of an index, after verifying it."""
    index = kind.open(path)
    assert index.verify().num_documents == index.num_documents
    return f"{index.generation}:{hashlib.sha256(json.dumps(kind.seen(index)).encode()).hexdigest()}"


def in_child(work: Callable[[], object], kill_after: float | None = None) -> bool:
    """Run work in a forked process; True if it was killed."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    killed = os.WIFSIGNALED(status)
    assert killed or os.WEXITSTATUS(status) == 0, "the writer failed"
    return killed


def counting(folder: Path, work: Callable[[], object], on_event: Callable[[int], object]) -> None:
    """Work that reports the number of each file operation just before it is made."""
    number = 0

    def count(event: str, arguments: tuple) -> None:
        nonlocal number
        reading = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in EVENTS and not reading and str(arguments[0]).startswith(f"{folder}{os.sep}"):
            number += 1
            on_event(number)

    sys.addaudithook(count)
    work()


def kill_at(fatal: int) -> Callable[[int], object]:
    return lambda number: os.kill(os.getpid(), signal.SIGKILL) if number == fatal else None


def prepare(folder: Path, kind: Any, action: str) -> tuple[str, str, int]:
    """The index before the action, and what it is before and after; how many file operations the action takes."""
    before, after, events = folder / "before", folder / "after", folder / "events"
    if action == "create":
        before.mkdir()
    else:
        in_child(lambda: kind.create(before))
        in_child(lambda: kind.add(kind.open(before), kind.documents(50, 3)))
        in_child(lambda: kind.open(before).delete(["d2", "d51"]))
    shutil.copytree(before, after)
    in_child(
        lambda: counting(after, lambda: ACTIONS[action](kind, after), lambda number: events.write_text(str(number)))
    )
    return "nothing" if action == "create" else digest(kind, before), digest(kind, after), int(events.read_text())


def steps(folder: Path, kind: Any, action: str, seed: int, count: int) -> None:
    old, new, total = prepare(folder, kind, action)
    path = folder / "index"
    last = range(max(1, total - 3), total + 1)  # around the new manifest
    chosen = {*random.Random(seed).sample(range(1, total + 1), min(count, total)), *last}
    seen = set()
    for number in sorted(chosen):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(folder / "before", path)
        assert in_child(lambda number=number: counting(path, lambda: ACTIONS[action](kind, path), kill_at(number)))
        is_there = action != "create" or (path / "manifest.json").exists()
        found = digest(kind, path) if is_there else "nothing"
        assert found in (old, new), f"neither old nor new before step {number} of {action}"
        seen.add(found)
        if found == old:
            in_child(lambda: ACTIONS[action](kind, path))
            assert digest(kind, path) == new, f"not repeatable before step {number} of {action}"
    assert seen == {old, new}, f"{action} was not killed on both sides of its manifest"


def moments(folder: Path, kind: Any, seed: int, count: int) -> None:
    reference, path = folder / "reference", folder / "index"
    in_child(lambda: kind.create(reference))
    shutil.copytree(reference, path)
    expected = {1: digest(kind, reference)}
    draw, longest = random.Random(seed), 0.15
    for _ in range(count):

        def work() -> None:
            while True:
                change(kind, path, kind.open(path).generation)

        # On a busy machine a change takes longer: then it gets more time, until one was finished.
        longest *= 2 if max(expected) == 1 else 1
        assert in_child(work, kill_after=draw.uniform(0, longest))
        generation = int(digest(kind, path).split(":")[0])
        while max(expected) < generation:
            newest = max(expected)
            in_child(lambda newest=newest: change(kind, reference, newest))
            expected[newest + 1] = digest(kind, reference)
        assert digest(kind, path) == expected[generation], f"generation {generation} is not what it should be"
    assert max(expected) > 1, "no change was ever finished"


def main() -> None:
    warnings.simplefilter("ignore")
    os.fsync = lambda descriptor: None
    # Two chunks and two segments of a few dozen vectors.
    batch.BATCH_VECTORS, segment_writer.CHUNK_VECTORS, builder.SPOOL_VECTORS = 16, 50, 40
    for module in (segment_writer, builder, changes):
        module.SEGMENT_VECTORS = 80
    command, folder, name, *rest = sys.argv[1:]
    kind = Vectors() if name == "index" else Pairs(name)
    if command == "steps":
        steps(Path(folder), kind, rest[0], *map(int, rest[1:]))
    else:
        moments(Path(folder), kind, *map(int, rest))


if __name__ == "__main__":
    main()
