"""Token vectors made up by a small model of a collection: as many as wanted, never all in memory.

    vector = normalise(common + type + topic + sense + passage + context)

Token types have centres and Zipf's frequencies. A passage has a topic, whose own words are half of its tokens; new
topics turn up as the collection grows, with the square root of its size. A type has a sense in each topic, a passage a
shift of its own, a token the noise of its context. All parts are Gaussian with one decaying spectrum. The parameters
were set by hand so that distances between vectors are about those of MS MARCO passages; `growth.py --compare` prints
both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MEAN_LENGTH = 80
PASSAGES_PER_BLOCK = 500
NUM_SENSES = 1 << 15
NUM_TOPICS = 1 << 12
"""Rows of the tables that topics and pairs of topic and type share; 2,000 topics are met in a million passages."""


class Block(NamedTuple):
    """Some passages, one after the other: passage ``i`` owns the rows ``offsets[i]:offsets[i + 1]``."""

    token_ids: NDArray[np.int32]
    vectors: NDArray[np.float32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Collection:
    """A collection without end, made from a seed block by block.

    The shares are the mean squared lengths of the parts of a vector before it is normalised; the variance of component
    ``i`` falls with ``(i + 1) ** -decay``; ``focus`` is the part of a passage's tokens that are its topic's own words.
    """

    seed: int = 0
    dim: int = 128
    num_types: int = 30_000
    words_per_topic: int = 80
    focus: float = 0.5
    common_share: float = 0.12
    type_share: float = 0.58
    topic_share: float = 0.08
    sense_share: float = 0.07
    passage_share: float = 0.055
    context_share: float = 0.095
    decay: float = 0.7

    def blocks(self, num_passages: int) -> Iterator[Block]:
        """The first passages; each is the same whatever their number."""
        for number, start in enumerate(range(0, num_passages, PASSAGES_PER_BLOCK)):
            random = np.random.default_rng((self.seed, 1, number))
            # About those of MS MARCO: a mean of 80, a deviation of 32. Whole blocks are drawn, whatever is wanted.
            lengths = np.clip(random.lognormal(np.log(73), 0.42, PASSAGES_PER_BLOCK).round(), 8, 180).astype(np.int64)
            block = self._block(lengths, np.arange(start, start + PASSAGES_PER_BLOCK), random)
            wanted = min(PASSAGES_PER_BLOCK, num_passages - start)
            end = int(block.offsets[wanted])
            yield Block(block.token_ids[:end], block.vectors[:end], block.offsets[: wanted + 1])

    def queries(self, count: int, num_vectors: int, num_passages: int) -> Block:
        """Short passages that are not in the collection, about topics of its first ``num_passages``."""
        random = np.random.default_rng((self.seed, 2))
        return self._block(np.full(count, num_vectors), np.full(count, num_passages), random)

    def _block(self, lengths: NDArray[np.int64], places: NDArray[np.int64], random: np.random.Generator) -> Block:
        """Make passages of these lengths at these places of the collection."""
        num_tokens = int(lengths.sum())
        topics = zipf(2 * np.sqrt(places + 100), random.random(len(lengths)))
        topic_of = np.repeat(topics, lengths)
        words = zipf(self.words_per_topic, random.random(num_tokens))
        common = zipf(self.num_types, random.random(num_tokens))
        own = random.random(num_tokens) < self.focus
        types = np.where(own, scattered(topic_of, words, self.num_types), common)
        shifts = self._topics[topics % NUM_TOPICS] + self._gaussian(len(lengths), self.passage_share, random)
        vectors = self._gaussian(num_tokens, self.context_share, random)
        vectors += self._types[types]
        vectors += self._senses[scattered(topic_of, types, NUM_SENSES)]
        vectors += np.repeat(shifts, lengths, axis=0)
        vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
        return Block(types.astype(np.int32), vectors, np.concatenate([[0], np.cumsum(lengths)]))

    @cached_property
    def _types(self) -> NDArray[np.float32]:
        random = np.random.default_rng((self.seed, 3))
        common = self._gaussian(1, 1.0, random)
        common *= np.float32(np.sqrt(self.common_share)) / np.linalg.norm(common)
        return common + self._gaussian(self.num_types, self.type_share, random)

    @cached_property
    def _topics(self) -> NDArray[np.float32]:
        return self._gaussian(NUM_TOPICS, self.topic_share, np.random.default_rng((self.seed, 4)))

    @cached_property
    def _senses(self) -> NDArray[np.float32]:
        return self._gaussian(NUM_SENSES, self.sense_share, np.random.default_rng((self.seed, 5)))

    def _gaussian(self, count: int, share: float, random: np.random.Generator) -> NDArray[np.float32]:
        variances = np.arange(1, self.dim + 1) ** -self.decay
        deviations = np.sqrt(share * variances / variances.sum()).astype(np.float32)
        numbers = random.standard_normal((count, self.dim), dtype=np.float32)
        numbers *= deviations
        return numbers


def zipf(count: NDArray[np.float64] | int, uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """Ranks from 0 to ``count - 1`` by Zipf and Mandelbrot: rank ``r`` has a probability about ``1 / (r + 3.2)``.

    >>> zipf(1000, np.array([0.0, 0.1, 0.5, 0.999999])).tolist()
    [0, 2, 49, 999]
    """
    ranks: NDArray[np.float64] = 2.7 * ((1 + count / 2.7) ** uniform - 1)
    return ranks.astype(np.int64)


def scattered(first: NDArray[np.int64], second: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """A number below ``size`` for each pair, as if by chance, the same for the same pair."""
    return ((first * 1_000_003 + second) * 2_654_435_761 >> 8) % size
