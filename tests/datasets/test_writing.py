from __future__ import annotations

import errno
import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from colbert_prf.datasets.writing import open_replacement
from colbert_prf.errors import DatasetError


def write(path: Path | str, text: str = "new\n") -> None:
    with open_replacement(str(path)) as write_text:
        write_text(text)


def message_of(path: Path | str) -> str:
    with pytest.raises(DatasetError) as caught:
        write(path)
    return str(caught.value)


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def unpack_zstd(content: bytes) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)) as stream:
        return bytes(stream.read())


@pytest.mark.parametrize(
    ("name", "unpack"),
    [("a.txt", bytes), ("a.gz", gzip.decompress), ("a.GZ", gzip.decompress), ("a.zst", unpack_zstd)],
)
def test_the_suffix_chooses_the_compression(tmp_path: Path, name: str, unpack: Callable[[bytes], bytes]) -> None:
    write(tmp_path / name, "café\n")
    assert unpack((tmp_path / name).read_bytes()) == "café\n".encode()


def test_the_same_text_gives_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a.gz")
    write(tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.gz").read_bytes()[4:8] == bytes(4)  # no time of day


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    with open_replacement(str(path)) as write_text:
        write_text("new\n")
        assert path.read_text() == "old\n"
    assert path.read_text() == "new\n"
    assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.zst"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("old\n")
    with pytest.raises(AttributeError), open_replacement(str(path)) as write_text:
        write_text("half" * 10_000).fails_here()  # type: ignore[attr-defined]
    assert path.read_text() == "old\n"
    assert names_in(tmp_path) == [name]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old\n")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write(tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new\n"


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_pipe_is_written_directly_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(path)
        assert os.read(reader, 100) == b"new\n"
        assert path.is_fifo()
    finally:
        os.close(reader)


def test_a_dash_is_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write("-")
    assert capsys.readouterr().out == "new\n"


def test_a_directory(tmp_path: Path) -> None:
    assert message_of(tmp_path) == f"{tmp_path}: this is a directory; name a file to write"


def test_a_missing_folder(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "a.txt"
    assert message_of(path) == f"{path}: cannot be written, for its folder does not exist; make the folder first"


def test_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, who may run these tests, is refused nothing
    assert message_of(path) == f"{path}: permission denied; choose a folder you may write to"
    assert path.read_text() == "old\n"


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda *_, **__: Full())
    assert message_of(tmp_path / "a.txt") == f"{tmp_path / 'a.txt'}: cannot be written: No space left on device"


def test_a_path_no_system_accepts() -> None:
    assert message_of("a\0b").startswith("'a\\x00b': not a usable path: ")


def test_an_error_of_the_body_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mine"), open_replacement(str(tmp_path / "a.txt")):
        raise FileNotFoundError("mine")
    assert names_in(tmp_path) == []
