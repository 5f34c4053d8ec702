"""The shards of one generation as a search asks them: all at once, in bounded time, opened where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from colbert_prf.distributed.messages import GenerationKey, NotOpen, Refusal
from colbert_prf.distributed.transport import Lost, Transport
from colbert_prf.errors import ShardError, StorageError
from colbert_prf.search.scorer import Positions
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import Manifest
from colbert_prf.version import __version__

__all__ = ["Asking", "OutdatedError"]


class OutdatedError(Exception):
    """The files of a generation are gone, because a writer has published the next; search that one."""


@dataclass(frozen=True, eq=False)
class Asking:
    """Asks the shards of a generation.

    Parameters
    ----------
    transport
        Reaches them.
    layout
        Of the index.
    key
        The generation.
    parts
        The segments of each shard.
    timeout
        Seconds an answer may take.
    lost
        Shards that are not asked, because they did not answer before.
    """

    transport: Transport
    layout: IndexLayout
    key: GenerationKey
    parts: tuple[Manifest, ...]
    timeout: float
    lost: frozenset[int] = frozenset()

    @cached_property
    def starts(self) -> Positions:
        """The first position of each shard, and the number of positions."""
        lengths = (sum(segment.num_documents for segment in part.segments) for part in self.parts)
        return np.array([0, *accumulate(lengths)], np.int64)

    @property
    def shards(self) -> list[int]:
        """The shards that are asked: all that have documents and are not lost."""
        return [shard for shard, part in enumerate(self.parts) if part.segments and shard not in self.lost]

    def without(self, lost: frozenset[int]) -> Asking:
        """The same without some shards."""
        return replace(self, lost=self.lost | lost)

    def split(self, positions: Positions) -> dict[int, Positions]:
        """Ascending positions as those of each shard, which count from 0 there; without shards that are lost."""
        bounds = np.searchsorted(positions, self.starts).tolist()
        return {shard: positions[bounds[shard] : bounds[shard + 1]] - self.starts[shard] for shard in self.shards}

    def owner(self, position: int) -> tuple[int, int]:
        """The shard of a position, and the position there."""
        shard = int(np.searchsorted(self.starts, position, side="right")) - 1
        return shard, position - int(self.starts[shard])

    def begin(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> Asked:
        """Ask each of some shards a question, with arguments of its own."""
        if missing := self.lost.intersection(arguments):
            raise self._error(dict.fromkeys(missing, Lost("it did not answer before")), "documents of it are needed")
        return Asked(self, method, arguments, self.send(method, arguments))

    def send(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Send a question to some shards; :meth:`collected` waits for the answers."""
        send = self.transport.send
        return {shard: send(shard, "answer", self.key, method, each) for shard, each in arguments.items()}

    def ask(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask some shards and wait for their answers."""
        return self.begin(method, arguments).answers()

    def ask_all(self, method: str, *arguments: Any) -> dict[int, Any]:
        """Ask all shards the same."""
        return self.ask(method, dict.fromkeys(self.shards, arguments))

    def open(self, shards: list[int] | None = None) -> None:
        """Have shards open the generation: all of them if left out.

        Raises
        ------
        OutdatedError
            If its files are gone and there is a newer generation.
        ShardError
            If a shard does not answer.
        """
        shards = self.shards if shards is None else shards
        sent = {shard: self.transport.send(shard, "open", self.key, self.parts[shard], __version__) for shard in shards}
        try:
            self.collected(sent)
        except StorageError:
            # What a writer has removed is no damage.
            if type(self.parts[0]).read(self.layout.manifest).digest != self.key.digest:
                raise OutdatedError from None
            raise

    def collected(self, sent: Mapping[int, Any]) -> dict[int, Any]:
        """Wait for answers; what a shard refuses is raised here, and :class:`ShardError` if one does not answer."""
        answers = dict(zip(sent, self.transport.collect(list(sent.values()), self.timeout), strict=True))
        for answer in answers.values():
            if isinstance(answer, Refusal):
                raise answer.error
        lost = {shard: answer for shard, answer in answers.items() if isinstance(answer, Lost)}
        if lost:
            raise self._error(lost, f"a shard has {self.timeout:g} seconds to answer")
        return answers

    def _error(self, lost: Mapping[int, Lost], detail: str) -> ShardError:
        shard, reason = next(iter(lost.items()))
        segments = self.parts[shard].segments
        named = f"{segments[0].name} to {segments[-1].name}" if len(segments) > 1 else segments[0].name
        others = f", nor do {len(lost) - 1} others" if len(lost) > 1 else ""
        message = (
            f"shard {shard + 1} of {len(self.parts)} ({named}) does not answer{others}: {reason.reason}; {detail}. Ray "
            "starts a shard that died again: search once more, raise timeout, or give partial=True for answers without "
            "it"
        )
        return ShardError(message, shards=lost)


class Asked(NamedTuple):
    """Shards that are working on a question."""

    asking: Asking
    method: str
    arguments: Mapping[int, tuple[Any, ...]]
    sent: Mapping[int, Any]

    def answers(self) -> dict[int, Any]:
        """Wait for them; shards that do not have the generation open are told to open it, and asked again."""
        asking, answers = self.asking, self.asking.collected(self.sent)
        if closed := [shard for shard, answer in answers.items() if isinstance(answer, NotOpen)]:
            asking.open(closed)
            answers |= asking.collected(asking.send(self.method, {shard: self.arguments[shard] for shard in closed}))
        return answers
