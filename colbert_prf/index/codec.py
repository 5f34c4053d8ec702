"""The codec: a vector as its centroid and a residual of a few bits. Only this file of the room knows the arithmetic.

Below 16 bits a vector is a centroid code, a packed residual, and a number that holds a scale and a gain (see
:mod:`colbert_prf.kernels.residuals`). With 16 bits the vector itself is kept, as float16, and the code serves only to
find candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.base import available_cores
from colbert_prf.errors import InputError
from colbert_prf.kernels.parallel import ALONE, Workers
from colbert_prf.storage.arrays import Array
from colbert_prf.storage.forms import Form
from colbert_prf.types import Vectors

if TYPE_CHECKING:
    from colbert_prf.kernels.interaction import ByteTable

__all__ = [
    "BITS",
    "DEFAULT_BITS",
    "MAX_CENTROIDS",
    "Codec",
    "all_cores",
    "bits_fault",
    "codec_fault",
    "codec_forms",
    "num_centroids_for",
    "sample_size_for",
]

BITS = (2, 4, 16)
DEFAULT_BITS = 4
"""Of every index that is not told otherwise."""
MAX_CENTROIDS = 1 << 16
"""So that a code always takes two bytes; reached at 2^27 vectors, with two bits at 2^25."""
FEW_BITS = 2
FEWEST_OF_A_CENTROID = 90
"""So that at dim 128 the centroids take no more than 1.4 bytes of each vector."""
POINTS_PER_CENTROID = 48
MAX_SAMPLE = 1 << 21
"""Vectors, at most one gigabyte of them at dim 128; a build holds them three times for a while."""
BATCH = 1 << 16
"""Vectors of the sample whose residuals are in memory at once."""
SMALLEST_RANGE = 1e-3
"""Of the centroids in a dimension, where all of them are zero."""
LENGTH_POWER = 0.75
"""Of the length of a centroid, by which its scores are divided in centroid interaction."""
SHORTEST_CENTROID = 0.5
"""A shorter centroid counts as this long."""
PADDING = 16
"""Kernels want a multiple of this many dimensions; others are filled up with zeros."""


def bits_fault(bits: int) -> str | None:
    """What is wrong with a number of bits; None if nothing is.

    >>> bits_fault(8)
    'bits must be one of (2, 4, 16), found 8; an index of 1 or 8 bits has to be built again, with 2, 4 or 16'
    """
    if bits in BITS:
        return None
    return f"bits must be one of {BITS}, found {bits}; an index of 1 or 8 bits has to be built again, with 2, 4 or 16"


def num_centroids_for(num_vectors: int, bits: int) -> int:
    """The power of two nearest to ``4 √num_vectors``, no more than there are vectors.

    With two bits, which tell least about residuals, it is ``8 √num_vectors``, for the more centroids there are,
    the shorter are the residuals; but beyond the number above, a centroid has :data:`FEWEST_OF_A_CENTROID` vectors.

    Examples
    --------
    >>> num_centroids_for(789_043, 4), num_centroids_for(3, 4), num_centroids_for(10**10, 4)
    (4096, 2, 65536)
    >>> num_centroids_for(789_043, 2), num_centroids_for(300_000, 2)
    (8192, 2048)
    """
    if num_vectors < 1:
        return 1
    wanted = 2 ** round(math.log2(4 * math.sqrt(num_vectors)))
    if bits <= FEW_BITS:
        more = 2 ** round(math.log2(8 * math.sqrt(num_vectors)))
        wanted = max(wanted, min(more, 2 ** int(math.log2(max(num_vectors / FEWEST_OF_A_CENTROID, 1)))))
    return int(min(wanted, 2 ** int(math.log2(num_vectors)), MAX_CENTROIDS))


def sample_size_for(num_vectors: int, bits: int) -> int:
    """How many vectors a codec for ``num_vectors`` is trained on."""
    return min(num_vectors, POINTS_PER_CENTROID * num_centroids_for(num_vectors, bits), MAX_SAMPLE)


def codec_forms(dim: int, num_centroids: int) -> dict[str, Form]:
    """The forms of the arrays of a codec."""
    width = dim + -dim % PADDING
    return {
        "centroids": Form.of(np.int8, shape=(num_centroids, width)),
        "centroid_steps": Form.of(np.float32, shape=(width,)),
        "radii": Form.of(np.float16, shape=(num_centroids,)),
        "cell_centers": Form.of(np.int8, shape=(None, width)),
        "cell_lists": Form.of(np.uint16, shape=(None, None)),
        "spread": Form.of(np.float32, shape=(width,)),
        "ranges": Form.of(np.float32, shape=(2, 2)),
    }


def codec_fault(arrays: Mapping[str, Array], dim: int) -> tuple[str, str] | None:
    """The name of an array of the right form whose values no codec has, and what is wrong with them; None if all is
    right.
    """
    for name in ("centroid_steps", "radii", "spread", "ranges"):
        if not np.isfinite(arrays[name]).all():
            return name, "holds a NaN or an infinity"
    if arrays["centroids"][:, dim:].any():
        return "centroids", f"has numbers beyond dim {dim}"
    if len(arrays["cell_lists"]) != len(arrays["cell_centers"]):
        return "cell_lists", f"has {len(arrays['cell_lists'])} lists for {len(arrays['cell_centers'])} cells"
    if int(arrays["cell_lists"].max(initial=0)) >= len(arrays["centroids"]):
        return "cell_lists", f"names a centroid that is not there, of {len(arrays['centroids'])}"
    return None


class Codec:
    """Encodes unit vectors to columns, a row for each vector, and back.

    What a vector becomes depends on itself alone, never on the others it is encoded with: adding a document and
    building anew give the same bytes.

    Parameters
    ----------
    bits
        Per component: 2, 4 or 16.
    arrays
        ``centroids``, int8 of shape (num_centroids, padded dim), in units of ``centroid_steps``, float32 of shape
        (padded dim,); ``radii``, float16 of shape (num_centroids,), the root mean square length of the residuals of
        each; ``cell_centers``, in the same units, and ``cell_lists``, which find the centroid of a vector;
        ``spread``, float32 of shape (padded dim,), and ``ranges``, float32 of shape (2, 2), of the residuals.
    dim
        Components of a vector.
    trained_for
        The number of vectors its number of centroids suits.

    Examples
    --------
    >>> axes = np.eye(2, dtype=np.float32)
    >>> codec = Codec.train(axes, num_vectors_expected=2, bits=4)
    >>> codec.decode(codec.encode(axes)).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, bits: int, arrays: Mapping[str, Array], *, dim: int, trained_for: int) -> None:
        from colbert_prf.kernels.centroids import Cells
        from colbert_prf.kernels.residuals import TRELLIS_BITS, ResidualCodec

        self.bits = bits
        self.dim = dim
        self.trained_for = trained_for
        self.arrays = dict(arrays)
        steps = np.asarray(arrays["centroid_steps"])
        self.radii: npt.NDArray[np.float32] = np.asarray(arrays["radii"], dtype=np.float32)
        self.centroids: Vectors = arrays["centroids"] * steps
        self.cells = Cells(arrays["cell_centers"] * steps, np.ascontiguousarray(arrays["cell_lists"], dtype=np.int32))
        spread, ranges = (np.array(arrays[name], dtype=np.float32) for name in ("spread", "ranges"))
        self.residuals = ResidualCodec(min(bits, 4), spread, ranges, trellis=bits == TRELLIS_BITS)

    @classmethod
    def train(cls, sample: Vectors, *, num_vectors_expected: int, bits: int, seed: int = 0) -> Codec:
        """Learn centroids and the spread of residuals; the same sample and seed give the same codec.

        Parameters
        ----------
        sample
            Unit vectors of shape (num_sampled, dim), best :func:`sample_size_for` of them; may be empty.
        num_vectors_expected
            How many vectors will be encoded; the number of centroids grows with its square root.
        bits
            Per component: 2, 4 or 16.
        seed
            Chooses the first centroids.
        """
        from colbert_prf.kernels.centroids import Cells, assign_in_cells
        from colbert_prf.kernels.clustering import cluster
        from colbert_prf.kernels.residuals import train

        if fault := bits_fault(bits):
            raise InputError(fault)
        dim = sample.shape[1]
        shuffled = np.random.default_rng(seed).permutation(len(sample))
        padded = _padded(sample[shuffled] if len(sample) else np.eye(1, dim, dtype=np.float32))
        # A centroid needs a few vectors of the sample, except where these are all there are.
        enough = max(num_centroids_for(len(padded), bits), len(padded) // 8)
        count = min(num_centroids_for(num_vectors_expected, bits), enough)
        with all_cores() as workers:
            centroids, cells = cluster(padded, count, seed=seed, **workers)
            # A byte is enough: the residuals are taken from the rounded centroids.
            steps = np.maximum(np.abs(centroids).max(axis=0), SMALLEST_RANGE).astype(np.float32) / 127
            rounded, centers = _in_steps(centroids, steps), _in_steps(cells.centers, steps)
            centroids = rounded * steps
            codes = assign_in_cells(padded, centroids, Cells(centers * steps, cells.lists), **workers)
        residuals = train(padded, centroids, codes, min(bits, 4))
        squares = np.zeros(count)
        for start in range(0, len(padded), BATCH):
            part = slice(start, start + BATCH)
            lengths = np.square(padded[part] - centroids[codes[part]]).sum(axis=1)
            squares += np.bincount(codes[part], lengths, minlength=count)
        radii = np.sqrt(squares / np.maximum(np.bincount(codes, minlength=count), 1))
        arrays: dict[str, Array] = {
            "centroids": rounded,
            "centroid_steps": steps,
            "radii": radii.astype(np.float16),
            "cell_centers": centers,
            "cell_lists": cells.lists.astype(np.uint16),
            "spread": residuals.spread,
            "ranges": residuals.ranges,
        }
        return cls(bits, arrays, dim=dim, trained_for=num_vectors_expected)

    @property
    def num_centroids(self) -> int:
        """How many centroids there are."""
        return len(self.centroids)

    @cached_property
    def _sums(self) -> npt.NDArray[np.int32]:
        sums: npt.NDArray[np.int32] = self.arrays["centroids"].sum(axis=1, dtype=np.int32)
        return sums

    @property
    def columns(self) -> dict[str, tuple[npt.DTypeLike, tuple[int, ...]]]:
        """The columns :meth:`encode` gives: the dtype and the shape of a row of each."""
        if self.bits == 16:
            return {"codes": (np.uint16, ()), "vectors": (np.float16, (self.dim,))}
        width = self.centroids.shape[1] * self.bits // 8
        return {"codes": (np.uint16, ()), "residuals": (np.uint8, (width,)), "scales": (self.residuals.scale_dtype, ())}

    def pad(self, vectors: Vectors) -> Vectors:
        """Fill vectors up with zeros to the dim the kernels want."""
        return _padded(vectors)

    def scores(self, vectors: Vectors, workers: Workers = ALONE) -> Vectors:
        """The products of all centroids with vectors (n, dim), of shape (num_centroids, n up to a multiple of 16)."""
        from colbert_prf.kernels.byte_products import multiply_bytes

        codes, steps = self.arrays["centroids"], np.asarray(self.arrays["centroid_steps"])
        return multiply_bytes(codes, self._sums, self.pad(vectors) * steps, **workers)

    def byte_table(self, scores: Vectors) -> ByteTable:
        """Turn :meth:`scores` into the table of centroid interaction.

        The more the vectors of a centroid differ, the shorter it is, and the more the best of them exceed its score. So
        scores are divided by a power of its length.
        """
        from colbert_prf.kernels.interaction import byte_table

        return byte_table(scores * self._stretches)

    @cached_property
    def _stretches(self) -> Vectors:
        lengths = np.sqrt(np.einsum("ij,ij->i", self.centroids, self.centroids))
        stretches: Vectors = np.maximum(lengths, SHORTEST_CENTROID)[:, None] ** -LENGTH_POWER
        return stretches.astype(np.float32)

    def encode(self, vectors: Vectors) -> dict[str, Array]:
        """Turn unit vectors, of shape (num_vectors, dim), into :attr:`columns`."""
        from colbert_prf.kernels import residuals
        from colbert_prf.kernels.centroids import assign_in_cells
        from colbert_prf.kernels.parallel import run

        padded = _padded(vectors)
        if self.bits == 16:
            with all_cores() as workers:
                codes = assign_in_cells(padded, self.centroids, self.cells, **workers)
            return {"codes": codes.astype(np.uint16), "vectors": vectors.astype(np.float16)}
        packed = np.empty((len(padded), padded.shape[1] * self.bits // 8), dtype=np.uint8)
        scales = np.empty(len(padded), dtype=self.residuals.scale_dtype)

        def encode_range(start: int, stop: int) -> None:
            residuals.encode(padded, self.centroids, codes, self.residuals, packed, scales, start, stop)

        with all_cores() as workers:
            codes = assign_in_cells(padded, self.centroids, self.cells, **workers)
            run(encode_range, len(padded), **workers)
        return {"codes": codes.astype(np.uint16), "residuals": packed, "scales": scales}

    def decode(self, columns: Mapping[str, Array], rows: npt.NDArray[np.int64] | None = None) -> Vectors:
        """Turn columns, or some rows of them, back into vectors of nearly unit length."""
        from colbert_prf.kernels import residuals

        if self.bits == 16:
            return (columns["vectors"] if rows is None else columns["vectors"][rows]).astype(np.float32)
        packed, scales, codes = (np.ascontiguousarray(columns[name]) for name in ("residuals", "scales", "codes"))
        return residuals.decode(packed, scales, codes, self.centroids, self.residuals, rows)[:, : self.dim]


@contextmanager
def all_cores() -> Iterator[Workers]:
    """All cores, for as long as the block runs; they do not change a result."""
    with ThreadPoolExecutor(available_cores()) as executor:
        yield {"threads": available_cores(), "executor": executor}


def _in_steps(array: Vectors, steps: Vectors) -> npt.NDArray[np.int8]:
    rounded: npt.NDArray[np.int8] = np.clip(np.rint(array / steps), -127, 127).astype(np.int8)
    return rounded


def _padded(vectors: Vectors) -> Vectors:
    missing = -vectors.shape[1] % PADDING
    return np.ascontiguousarray(np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors, dtype=np.float32)
