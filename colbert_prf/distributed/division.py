"""How the segments of an index are divided among shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from colbert_prf.errors import InputError, whole_number
from colbert_prf.index.manifest import Manifest
from colbert_prf.storage import manifest as storage_manifest

__all__ = ["check_division", "divide"]


ManifestType = TypeVar("ManifestType", bound=storage_manifest.Manifest)


def divide(manifest: ManifestType, sizes: Sequence[int], num_shards: int) -> list[ManifestType]:
    """Divide a generation into runs of neighbouring segments of about the same size.

    Neighbours stay together, so that the positions of the shards follow one another. With fewer segments than shards
    the last shards have none.

    Parameters
    ----------
    manifest
        The generation.
    sizes
        Of its segments.
    num_shards
        How many runs.

    Returns
    -------
    list
        The generation of each shard: the same but for its segments.
    """
    ends = np.cumsum([0, *(max(1, size) for size in sizes)])
    bounds = [0]
    for shard in range(1, num_shards):
        wanted = int(np.abs(ends - ends[-1] * shard / num_shards).argmin())
        # One segment at least for each shard, as long as there are any.
        latest = len(sizes) - (num_shards - shard)
        bounds.append(min(max(wanted, bounds[-1] + 1), max(latest, bounds[-1] + 1), len(sizes)))
    bounds.append(len(sizes))
    return [replace(manifest, segments=manifest.segments[first:last]) for first, last in pairwise(bounds)]


def check_division(manifest: Manifest, num_shards: int) -> int:
    """Refuse a number of shards that the segments of an index do not make."""
    num_shards = whole_number("shards", num_shards, least=1)
    if num_shards > len(manifest.segments):
        count = len(manifest.segments)
        raise InputError(
            f"shards must be at most the number of segments, {count}, found {num_shards}: a segment is not divided. An "
            "index has a segment for every four million vectors, and one for every addition until it is merged"
        )
    return num_shards
