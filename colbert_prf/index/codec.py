"""The codec: it stores a vector as the code of its nearest centroid and a residual of a few bits per dimension.

With 2 or 4 bits a vector is a centroid code, a packed residual, and a number that holds a scale and a gain (see
:mod:`colbert_prf.kernels.residuals`). With 16 bits the vector itself is stored, as float16, and the code only serves to
find candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.base import available_cores
from colbert_prf.errors import InputError
from colbert_prf.kernels import assignment, codec_kmeans, interaction, residual_encoding, residuals
from colbert_prf.kernels.workers import ALONE, Workers, run
from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.arrays import Array
from colbert_prf.types import Vectors

__all__ = [
    "BITS",
    "DEFAULT_BITS",
    "MAX_CENTROIDS",
    "Codec",
    "all_cores",
    "bits_fault",
    "codec_fault",
    "codec_specs",
    "num_centroids_for",
    "sample_size_for",
]

BITS = (2, 4, 16)
DEFAULT_BITS = 4
"""The bits of an index whose creator does not choose."""
MAX_CENTROIDS = 1 << 16
"""With so many a code still takes two bytes; an index of 2^27 vectors has them, one with two bits at 2^25."""
MIN_VECTORS_PER_CENTROID = 90
"""With two bits; at dim 128 the centroids then take at most 1.4 bytes of each vector."""
SAMPLED_PER_CENTROID = 48
MAX_SAMPLE = 1 << 21
"""At most one gigabyte of vectors at dim 128, of which a build holds three copies for a while."""
BATCH = 1 << 16
"""Vectors of the sample whose residuals are in memory at once."""
MIN_RANGE = 1e-3
"""The range of a dimension in which all centroids are zero."""
LENGTH_POWER = 0.75
"""Centroid interaction divides the scores of a centroid by this power of its length."""
MIN_LENGTH = 0.5
"""A shorter centroid counts as this long."""
PADDING = 16
"""Kernels take multiples of this many dimensions; vectors are padded with zeros."""


def bits_fault(bits: int) -> str | None:
    """Say what is wrong with a number of bits; None if nothing is.

    >>> bits_fault(8)
    'bits must be one of (2, 4, 16), found 8; an index of 1 or 8 bits has to be built again, with 2, 4 or 16'
    """
    if bits in BITS:
        return None
    return f"bits must be one of {BITS}, found {bits}; an index of 1 or 8 bits has to be built again, with 2, 4 or 16"


def num_centroids_for(num_vectors: int, bits: int) -> int:
    """Choose the number of centroids: the power of two nearest to ``4 √num_vectors``, at most ``num_vectors``.

    With two bits it is ``8 √num_vectors`` as long as a centroid has :data:`MIN_VECTORS_PER_CENTROID` vectors: more
    centroids make residuals shorter, and two bits describe a residual least exactly.

    Examples
    --------
    >>> num_centroids_for(789_043, 4), num_centroids_for(3, 4), num_centroids_for(10**10, 4)
    (4096, 2, 65536)
    >>> num_centroids_for(789_043, 2), num_centroids_for(300_000, 2)
    (8192, 2048)
    """
    if num_vectors < 1:
        return 1
    num_centroids = 2 ** round(math.log2(4 * math.sqrt(num_vectors)))
    if bits == 2:
        most = 2 ** int(math.log2(max(num_vectors / MIN_VECTORS_PER_CENTROID, 1)))
        num_centroids = max(num_centroids, min(2 ** round(math.log2(8 * math.sqrt(num_vectors))), most))
    return int(min(num_centroids, 2 ** int(math.log2(num_vectors)), MAX_CENTROIDS))


def sample_size_for(num_vectors: int, bits: int) -> int:
    """Choose the number of vectors that a codec for ``num_vectors`` is trained on."""
    return min(num_vectors, SAMPLED_PER_CENTROID * num_centroids_for(num_vectors, bits), MAX_SAMPLE)


def codec_specs(dim: int, num_centroids: int) -> dict[str, ArraySpec]:
    """Specify the arrays of a codec."""
    padded_dim = dim + -dim % PADDING
    return {
        "centroids": ArraySpec.of(np.int8, shape=(num_centroids, padded_dim)),
        "centroid_steps": ArraySpec.of(np.float32, shape=(padded_dim,)),
        "radii": ArraySpec.of(np.float16, shape=(num_centroids,)),
        "cell_centers": ArraySpec.of(np.int8, shape=(None, padded_dim)),
        "cell_lists": ArraySpec.of(np.uint16, shape=(None, None)),
        "spread": ArraySpec.of(np.float32, shape=(padded_dim,)),
        "ranges": ArraySpec.of(np.float32, shape=(2, 2)),
    }


def codec_fault(arrays: Mapping[str, Array], dim: int) -> tuple[str, str] | None:
    """Name an array with values that no codec has, and say what is wrong with them; None if nothing is."""
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
    """Encodes unit vectors as columns with a row for each vector, and decodes them.

    The code of a vector depends on no other vector: adding a document and building an index with it give the same
    bytes.

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
        The number of vectors for which the number of centroids was chosen.

    Examples
    --------
    >>> axes = np.eye(2, dtype=np.float32)
    >>> codec = Codec.train(axes, num_vectors_expected=2, bits=4)
    >>> codec.decode(codec.encode(axes)).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, bits: int, arrays: Mapping[str, Array], *, dim: int, trained_for: int) -> None:
        self.bits = bits
        self.dim = dim
        self.trained_for = trained_for
        self.arrays = dict(arrays)
        steps = np.asarray(arrays["centroid_steps"])
        self.radii: npt.NDArray[np.float32] = np.asarray(arrays["radii"], dtype=np.float32)
        self.centroids: Vectors = arrays["centroids"] * steps
        cell_lists = np.ascontiguousarray(arrays["cell_lists"], dtype=np.int32)
        self.cells = assignment.Cells(arrays["cell_centers"] * steps, cell_lists)
        spread, ranges = (np.array(arrays[name], dtype=np.float32) for name in ("spread", "ranges"))
        self.residuals = residuals.ResidualCodec(min(bits, 4), spread, ranges)

    @classmethod
    def train(cls, sample: Vectors, *, num_vectors_expected: int, bits: int, seed: int = 0) -> Codec:
        """Learn centroids and the spread of residuals; the same sample and seed give the same codec.

        Parameters
        ----------
        sample
            Unit vectors of shape (num_sampled, dim), ideally :func:`sample_size_for` of them; may be empty.
        num_vectors_expected
            The number of vectors to encode; the number of centroids grows with its square root.
        bits
            Per component: 2, 4 or 16.
        seed
            Chooses the first centroids.
        """
        if fault := bits_fault(bits):
            raise InputError(fault)
        dim = sample.shape[1]
        shuffled = np.random.default_rng(seed).permutation(len(sample))
        padded = _padded(sample[shuffled] if len(sample) else np.eye(1, dim, dtype=np.float32))
        # A centroid needs a few vectors of the sample, unless the sample is the whole corpus.
        most = max(num_centroids_for(len(padded), bits), len(padded) // 8)
        num_centroids = min(num_centroids_for(num_vectors_expected, bits), most)
        with all_cores() as workers:
            centroids, cells = codec_kmeans.find_centroids(padded, num_centroids, seed=seed, **workers)
            # A byte is enough, because residuals are differences from the rounded centroids.
            steps = np.maximum(np.abs(centroids).max(axis=0), MIN_RANGE).astype(np.float32) / 127
            rounded, cell_centers = _in_steps(centroids, steps), _in_steps(cells.centers, steps)
            centroids = rounded * steps
            rounded_cells = assignment.Cells(cell_centers * steps, cells.lists)
            codes = assignment.assign_in_cells(padded, centroids, rounded_cells, **workers)
        trained = residual_encoding.train(padded, centroids, codes, min(bits, 4))
        arrays: dict[str, Array] = {
            "centroids": rounded,
            "centroid_steps": steps,
            "radii": _radii(padded, centroids, codes).astype(np.float16),
            "cell_centers": cell_centers,
            "cell_lists": cells.lists.astype(np.uint16),
            "spread": trained.spread,
            "ranges": trained.ranges,
        }
        return cls(bits, arrays, dim=dim, trained_for=num_vectors_expected)

    @property
    def num_centroids(self) -> int:
        """The number of centroids."""
        return len(self.centroids)

    @property
    def columns(self) -> dict[str, tuple[npt.DTypeLike, tuple[int, ...]]]:
        """The dtype and the row shape of each column that :meth:`encode` returns."""
        if self.bits == 16:
            return {"codes": (np.uint16, ()), "vectors": (np.float16, (self.dim,))}
        num_bytes = self.centroids.shape[1] * self.bits // 8
        scale = (self.residuals.scale_dtype, ())
        return {"codes": (np.uint16, ()), "residuals": (np.uint8, (num_bytes,)), "scales": scale}

    def pad(self, vectors: Vectors) -> Vectors:
        """Pad vectors with zeros to a dim that the kernels take."""
        return _padded(vectors)

    def scores(self, vectors: Vectors, workers: Workers = ALONE) -> Vectors:
        """Multiply all centroids with vectors (n, dim): (num_centroids, n rounded up to a multiple of 16)."""
        steps = np.asarray(self.arrays["centroid_steps"])
        return interaction.centroid_scores(self.arrays["centroids"], self.pad(vectors) * steps, **workers)

    def byte_table(self, scores: Vectors) -> interaction.ByteTable:
        """Turn :meth:`scores` into the table of centroid interaction.

        The more the vectors of a centroid differ, the shorter is the centroid, and the more the best of them exceed its
        score. So the table divides scores by a power of the centroid's length.
        """
        return interaction.byte_table(scores * self._stretches)

    @cached_property
    def _stretches(self) -> Vectors:
        lengths = np.sqrt(np.einsum("ij,ij->i", self.centroids, self.centroids))
        stretches: Vectors = np.maximum(lengths, MIN_LENGTH)[:, None] ** -LENGTH_POWER
        return stretches.astype(np.float32)

    def encode(self, vectors: Vectors) -> dict[str, Array]:
        """Encode unit vectors, of shape (num_vectors, dim), as :attr:`columns`."""
        padded = _padded(vectors)
        with all_cores() as workers:
            codes = assignment.assign_in_cells(padded, self.centroids, self.cells, **workers)
            if self.bits == 16:
                return {"codes": codes.astype(np.uint16), "vectors": vectors.astype(np.float16)}
            packed = np.empty((len(padded), padded.shape[1] * self.bits // 8), dtype=np.uint8)
            scales = np.empty(len(padded), dtype=self.residuals.scale_dtype)

            def encode_range(start: int, stop: int) -> None:
                residual_encoding.encode(padded, self.centroids, codes, self.residuals, packed, scales, start, stop)

            run(encode_range, len(padded), **workers)
        return {"codes": codes.astype(np.uint16), "residuals": packed, "scales": scales}

    def decode(self, columns: Mapping[str, Array], rows: npt.NDArray[np.int64] | None = None) -> Vectors:
        """Decode columns, or some rows of them, to vectors of nearly unit length."""
        if self.bits == 16:
            return (columns["vectors"] if rows is None else columns["vectors"][rows]).astype(np.float32)
        packed, scales, codes = (np.ascontiguousarray(columns[name]) for name in ("residuals", "scales", "codes"))
        return residuals.decode(packed, scales, codes, self.centroids, self.residuals, rows)[:, : self.dim]


@contextmanager
def all_cores() -> Iterator[Workers]:
    """Yield workers on all cores, for as long as the block runs; their number never changes a result."""
    with ThreadPoolExecutor(available_cores()) as executor:
        yield {"threads": available_cores(), "executor": executor}


def _radii(vectors: Vectors, centroids: Vectors, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Compute the root mean square length of the residuals of each centroid."""
    squares = np.zeros(len(centroids))
    for start in range(0, len(vectors), BATCH):
        rows = slice(start, start + BATCH)
        lengths = np.square(vectors[rows] - centroids[codes[rows]]).sum(axis=1)
        squares += np.bincount(codes[rows], lengths, minlength=len(centroids))
    return np.asarray(np.sqrt(squares / np.maximum(np.bincount(codes, minlength=len(centroids)), 1)))


def _in_steps(array: Vectors, steps: Vectors) -> npt.NDArray[np.int8]:
    rounded: npt.NDArray[np.int8] = np.clip(np.rint(array / steps), -127, 127).astype(np.int8)
    return rounded


def _padded(vectors: Vectors) -> Vectors:
    missing = -vectors.shape[1] % PADDING
    return np.ascontiguousarray(np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors, dtype=np.float32)
