from __future__ import annotations

import errno
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colbert_prf.errors import IndexFormatError, StorageError
from colbert_prf.storage.arrays import MAPPED_BYTES, ArrayInfo, ArrayWriter, check_array, open_array, write_array


@given(
    hnp.arrays(
        st.sampled_from([np.uint8, np.uint16, np.int64, np.float16]),
        hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=40),
        elements=st.integers(0, 200),
    ),
    st.lists(st.integers(0, 40), max_size=4),
)
def test_written_in_any_pieces_it_comes_back_as_it_was(tmp_path_factory, array, cuts):
    path = tmp_path_factory.mktemp("arrays") / "a.npy"
    with closing(ArrayWriter(path, array.dtype, array.shape[1:])) as writer:
        for piece in np.split(array, sorted(cut for cut in cuts if cut <= len(array))):
            writer.append(piece)
        info = writer.finish()
    check_array(path, info)
    found = open_array(path, info)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)
    assert np.array_equal(np.load(path), array)  # anyone can read it
    whole = write_array(path.with_name("b.npy"), array)
    assert whole == info


@pytest.mark.parametrize("size", [5, MAPPED_BYTES])
def test_an_open_array_is_mapped_if_it_is_large_and_cannot_be_written(tmp_path, size):
    info = write_array(tmp_path / "a.npy", np.zeros(size, np.uint8))
    found = open_array(tmp_path / "a.npy", info)
    assert type(found) is np.ndarray
    assert isinstance(found.base, np.memmap) == (size >= MAPPED_BYTES)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_too_many_open_files_are_not_called_damage(tmp_path, monkeypatch):
    info = write_array(tmp_path / "a.npy", np.zeros(MAPPED_BYTES, np.uint8))

    def refuse(*args, **options):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(np, "memmap", refuse)
    with pytest.raises(StorageError, match=r"a\.npy: cannot be read .Too many open files.; merge the index"):
        open_array(tmp_path / "a.npy", info)


def test_a_file_is_never_overwritten(tmp_path):
    write_array(tmp_path / "a.npy", np.arange(5))
    with pytest.raises(FileExistsError):
        write_array(tmp_path / "a.npy", np.arange(5))


def test_every_single_flipped_bit_is_found(tmp_path):
    path = tmp_path / "a.npy"
    info = write_array(path, np.arange(6, dtype=np.uint16))
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(IndexFormatError, match=r"a\.npy"):
            check_array(path, info)


@pytest.mark.parametrize("cut", [0, 1, 40, 127, 128, 130])
def test_a_truncated_file_is_not_opened(tmp_path, cut):
    path = tmp_path / "a.npy"
    info = write_array(path, np.arange(6, dtype=np.uint16))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(IndexFormatError, match=rf"a\.npy: expected 140 bytes, found {cut}"):
        open_array(path, info)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.arange(6, dtype=np.int16), "expected <u2 of shape .6,., found .*<i2"),
        (np.arange(6, dtype=np.uint16).reshape(2, 3), "expected <u2 of shape .6,., found .*.2, 3."),
    ],
)
def test_an_array_of_another_kind_is_not_opened(tmp_path, other, message):
    info = write_array(tmp_path / "a.npy", np.arange(6, dtype=np.uint16))
    np.save(tmp_path / "a.npy", other)
    with pytest.raises(IndexFormatError, match=message):
        open_array(tmp_path / "a.npy", info)


def test_a_pickle_is_not_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    info = ArrayInfo("|O", (1,), (tmp_path / "a.npy").stat().st_size, 0)
    with pytest.raises(IndexFormatError, match=r"a\.npy"):
        open_array(tmp_path / "a.npy", info)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(IndexFormatError, match=r"b\.npy: cannot be read .No such file"):
        open_array(tmp_path / "b.npy", ArrayInfo("<u2", (6,), 140, 0))
