"""Files readers make from an index: whole or absent, and never taken for another."""

from __future__ import annotations

import pytest

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.derived import READ_BYTES, open_derived, writing_derived
from colbert_prf.storage.layout import IndexLayout


def write(path, *pieces: bytes) -> None:
    with writing_derived(path) as put:
        for piece in pieces:
            assert put(piece) == len(piece)


@pytest.mark.parametrize("size", [0, 1, READ_BYTES - 1, READ_BYTES, READ_BYTES + 1, 2 * READ_BYTES])
def test_what_was_written_is_read(tmp_path, size):
    content = bytes(range(256)) * (size // 256 + 1)
    write(tmp_path / "new" / "file", content[: size // 3], content[size // 3 : size])
    with open_derived(tmp_path / "new" / "file") as file:
        assert file.read(size) == content[:size]
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["file"]


@pytest.mark.parametrize("damaged", [b"", b"abc", b"hell", b"hellp\x86\xa6\x10\x36", b"hello\x86\xa6\x10\x36\0"])
def test_a_damaged_file_is_named(tmp_path, damaged):
    write(tmp_path / "file", b"hello")
    assert (tmp_path / "file").read_bytes() == b"hello\x86\xa6\x10\x36"  # the CRC-32 of "hello" is 3610a686
    (tmp_path / "file").write_bytes(damaged)
    with pytest.raises(IndexFormatError, match="checksum is wrong") as caught:
        open_derived(tmp_path / "file")
    assert caught.value.path == str(tmp_path / "file")


def test_an_interrupted_writer_leaves_the_old_file_and_no_other(tmp_path):
    write(tmp_path / "file", b"old")
    with pytest.raises(TypeError), writing_derived(tmp_path / "file") as put:
        put(b"ne") + put(None)
    assert (tmp_path / "file").read_bytes()[:-4] == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_writers_at_once_do_not_mix(tmp_path):
    with writing_derived(tmp_path / "file") as first, writing_derived(tmp_path / "file") as second:
        for letter in (b"a", b"b", b"c"):
            first(letter)
            second(letter.upper())
    with open_derived(tmp_path / "file") as file:
        assert file.read(3) == b"abc"  # the last to finish


def test_it_belongs_to_the_segments_not_to_what_is_deleted(index, make_documents):
    folder = index.snapshot.manifest.derived
    layout = IndexLayout(index.snapshot.layout.path)
    verified = index.verify()
    write(layout.folder(folder) / "file", b"content")
    assert layout.foreign() == []
    assert index.verify() == verified
    index.delete(["d1"])
    assert index.snapshot.manifest.derived == folder
    assert layout.folder(folder).is_dir()
    index.add_vectors(make_documents(1, first=10))
    assert index.snapshot.manifest.derived != folder
    assert not layout.folder(folder).exists()
    assert index.verify().num_documents == 10
