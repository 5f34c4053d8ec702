from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import open_array
from colbert_prf.storage.blobs import BLOBS_PER_BLOCK, Blobs, BlobWriter


def written(folder, blobs):
    writer = BlobWriter(folder, "texts")
    for blob in blobs:
        writer.append(blob)
    files = writer.finish()
    arrays = {name: open_array(folder / f"{name}.npy", info) for name, info in files.items()}
    return Blobs(
        arrays["texts_blocks"], arrays["texts_offsets"], num_blobs=len(blobs), path=folder / "texts_blocks.npy"
    )


@given(st.lists(st.binary(max_size=30), max_size=3 * BLOBS_PER_BLOCK), st.randoms(use_true_random=False))
def test_any_blob_is_read_alone_and_all_in_order(tmp_path_factory, blobs, random):
    found = written(tmp_path_factory.mktemp("blobs"), blobs)
    assert list(found) == blobs
    assert len(found) == len(blobs)
    for position in random.sample(range(len(blobs)), len(blobs)):
        assert found[position] == blobs[position]


def test_blobs_are_compressed(tmp_path):
    blobs = [b"the same sentence again and again " * 10] * 100
    written(tmp_path, blobs)
    assert (tmp_path / "texts_blocks.npy").stat().st_size < sum(map(len, blobs)) / 10


@pytest.mark.parametrize("damage", ["noise", "another block"])
def test_a_damaged_block_is_an_error_that_names_the_file(tmp_path, damage):
    found = written(tmp_path, [b"one", b"two"])
    other = written(tmp_path / "..", [b"one"])._blocks if damage == "another block" else np.arange(20, dtype=np.uint8)
    bad = Blobs(other, np.array([0, len(other)]), num_blobs=2, path=found._path)
    with pytest.raises(IndexFormatError, match=r"texts_blocks\.npy: block 0"):
        bad[1]
