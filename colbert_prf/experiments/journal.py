"""The answers of a run as they come, so that an interrupted run continues after its last whole topic.

A file of JSON lines: first the configuration, then one line per topic. Only whole lines count; what an interruption
left of a line is cut off.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from colbert_prf.errors import InputError, StorageError

__all__ = ["Answer", "Journal", "differences"]


_FORMAT = 1


@dataclass(frozen=True)
class Answer:
    """What a system answered to one topic, and how long that took.

    Parameters
    ----------
    query_id
        The topic.
    scores
        Of the documents found, best first.
    seconds
        From the question to the answer.
    stages
        Seconds per stage, as the system tells them.
    """

    query_id: str
    scores: Mapping[str, float]
    seconds: float
    stages: Mapping[str, float] = field(default_factory=dict)


class Journal:
    """Answers in a file, in the order they came.

    Parameters
    ----------
    path
        The file. It is made with the first answer.
    configuration
        All that decides the answers; whatever JSON can hold.
    """

    def __init__(self, path: Path, configuration: Mapping[str, Any]) -> None:
        self.path = path
        self.configuration = configuration

    @property
    def exists(self) -> bool:
        """Whether there is anything from before."""
        return self.path.exists()

    def found_configuration(self) -> dict[str, Any] | None:
        """The configuration it was begun with; None where not even that was written whole."""
        first = next(self._whole_lines(), None)
        if first is None:
            return None
        found = _decoded(first)
        if found is None or found.get("format") != _FORMAT:
            raise StorageError("this is no journal of a run; remove it", path=self.path)
        configuration = found["configuration"]
        assert isinstance(configuration, dict)
        return configuration

    def answers(self) -> Iterator[Answer]:
        """What was answered before, one topic after another."""
        if not self.exists:
            return
        lines = self._whole_lines()
        next(lines, None)
        for line in lines:
            if (found := _decoded(line)) is None:
                raise StorageError("a line in its middle is damaged; remove the file to start again", path=self.path)
            yield Answer(found["query_id"], dict(found["hits"]), found["seconds"], found["stages"])

    def open(self) -> IO[bytes]:
        """Open it to add answers: a new file gets its first line, an old one loses what is not whole."""
        stream: IO[bytes]
        if not self.exists or self.found_configuration() is None:
            stream = self.path.open("wb")
            stream.write(_encoded({"format": _FORMAT, "configuration": self.configuration}))
            stream.flush()
            return stream
        whole = sum(map(len, self._whole_lines()))
        stream = self.path.open("r+b")
        stream.truncate(whole)
        stream.seek(whole)
        return stream

    def add(self, stream: IO[bytes], answer: Answer) -> None:
        """Write an answer, so that it survives the end of the process."""
        for doc_id, score in answer.scores.items():
            if not math.isfinite(score):
                raise InputError(f"topic {answer.query_id!r}: document {doc_id!r} got the score {score}")
        hits = list(answer.scores.items())
        facts = {"query_id": answer.query_id, "seconds": answer.seconds, "stages": dict(answer.stages), "hits": hits}
        stream.write(_encoded(facts))
        stream.flush()

    def _whole_lines(self) -> Iterator[bytes]:
        with self.path.open("rb") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    yield line


def differences(one: Mapping[str, Any], other: Mapping[str, Any], inside: str = "") -> list[str]:
    """Where two configurations differ, in words.

    Examples
    --------
    >>> differences({"k": 10, "system": {"beta": 1}}, {"k": 10, "system": {"beta": 2, "rerank": True}})
    ['system.beta is 1, not 2', 'system.rerank is missing, not True']
    """
    found = []
    for key in dict.fromkeys([*one, *other]):
        mine, theirs = one.get(key, "missing"), other.get(key, "missing")
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            found += differences(mine, theirs, f"{inside}{key}.")
        elif mine != theirs:
            found.append(f"{inside}{key} is {mine}, not {theirs}")
    return found


def _encoded(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
