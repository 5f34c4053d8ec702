from __future__ import annotations

import errno
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from colbert_prf.datasets.opening import open_binary, read_lines, started
from colbert_prf.errors import DatasetError

Write = Callable[[str, "str | bytes"], Path]

TEXT = "d1\tcafé\nd2\tsecond\n".encode()
LINES = [(1, "d1\tcafé"), (2, "d2\tsecond")]


def message_of(path: str | Path) -> str:
    with pytest.raises(DatasetError) as caught:
        list(read_lines(path))
    return str(caught.value)


def test_lines_are_numbered_from_one_and_bare_of_their_ends(written: Write) -> None:
    path = written("a.txt", b"one\r\n\ntwo\rstill two\nlast")
    assert list(read_lines(path)) == [(1, "one"), (2, ""), (3, "two\rstill two"), (4, "last")]


def test_only_a_line_feed_ends_a_line(written: Write) -> None:
    text = "one\u2028still\x0cone\x85"
    assert list(read_lines(written("a.txt", text + "\n"))) == [(1, text)]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.tsv.zst"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_compression_is_known_by_content_not_by_name(
    written: Write, name: str, compress: Callable[[bytes], bytes]
) -> None:
    assert list(read_lines(written(name, compress(TEXT)))) == LINES


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_members_written_one_after_the_other_are_all_read(written: Write, compress: Callable[[bytes], bytes]) -> None:
    first, second = TEXT[:12], TEXT[12:]
    assert list(read_lines(written("a", compress(first) + compress(second)))) == LINES


def test_zeros_after_a_gzip_member_are_padding(written: Write) -> None:
    assert list(read_lines(written("a.gz", gzip.compress(TEXT) + bytes(512)))) == LINES


def test_a_skippable_frame_before_zstd_data_is_skipped(written: Write) -> None:
    frame = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
    assert list(read_lines(written("a.zst", frame + zstandard.ZstdCompressor().compress(TEXT)))) == LINES


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_file_longer_than_a_chunk_keeps_every_line(written: Write, compress: Callable[[bytes], bytes]) -> None:
    wide = "x" * 99_991
    content = "".join(f"{number} {wide}\n" for number in range(40))
    read = list(read_lines(written("a", compress(content.encode()))))
    assert read == [(number + 1, f"{number} {wide}") for number in range(40)]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_dash_is_standard_input(standard_input: Callable[[bytes], None], compress: Callable[[bytes], bytes]) -> None:
    standard_input(compress(TEXT))
    assert list(read_lines("-")) == LINES
    assert not sys.stdin.closed


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert message_of("-") == "-: standard input is closed; name a file instead"


def test_an_error_in_standard_input_names_it_and_the_line(standard_input: Callable[[bytes], None]) -> None:
    standard_input(b"fine\n\xff\n")
    assert message_of("-").startswith("-, line 2: byte 0xff at column 1 is not UTF-8;")


def test_a_pipe_is_read_though_it_is_no_regular_file() -> None:
    reading, writing = os.pipe()
    os.write(writing, TEXT)
    os.close(writing)
    try:
        assert list(read_lines(f"/dev/fd/{reading}")) == LINES
    finally:
        os.close(reading)


def test_the_byte_order_mark_is_dropped_once_and_only_at_the_start(written: Write) -> None:
    path = written("a.txt", "\ufeff\ufeffone\n\ufefftwo\n")
    assert list(read_lines(path)) == [(1, "\ufeffone"), (2, "\ufefftwo")]


def test_an_empty_file_has_no_line(written: Write) -> None:
    assert list(read_lines(written("a.txt", b""))) == []
    assert list(read_lines(written("a.gz", gzip.compress(b"")))) == []


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_another_encoding_names_line_column_and_byte(written: Write, compress: Callable[[bytes], bytes]) -> None:
    path = written("a.tsv", compress(b"d1\tfine\nd2\tcaf\xe9 noir\n"))
    assert message_of(path) == (
        f"{path}, line 2: byte 0xe9 at column 7 is not UTF-8; "
        "convert the file, for Latin-1 with: iconv -f latin1 -t utf-8"
    )


def test_lines_before_a_bad_byte_are_still_given(written: Write) -> None:
    lines = read_lines(written("a.tsv", b"fine\n\xe9\n"))
    assert next(lines) == (1, "fine")
    with pytest.raises(DatasetError):
        next(lines)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_named(written: Write, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path = written("a.tsv", mark + "d1\ttext\n".encode(encoding))
    assert message_of(path) == f"{path}, line 1: UTF-16 text; convert it: iconv -f utf-16 -t utf-8"


def test_utf16_without_a_mark_shows_by_its_nul_bytes(written: Write) -> None:
    path = written("a.tsv", "d1\ttext\n".encode("utf-16-le"))
    expected = "a NUL byte in the first line: a binary file, or UTF-16 text (iconv -f utf-16 -t utf-8)"
    assert message_of(path) == f"{path}, line 1: {expected}"


def test_a_directory_says_what_it_holds(tmp_path: Path) -> None:
    assert message_of(tmp_path) == f"{tmp_path}: this is a directory; name one file in it"
    for name in ("c", "a", "d", "b"):
        (tmp_path / name).touch()
    assert message_of(tmp_path) == f"{tmp_path}: this is a directory; name one file in it (it holds a, b, c, …)"


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv"
    assert message_of(path) == f"{path}: no such file; check the path"
    (tmp_path / "corpus.tsv.gz").touch()
    assert message_of(path) == f"{path}: no such file; did you mean corpus.tsv.gz?"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "corpus.tsv"
    assert message_of(path) == f"{path}: no such file, for there is no folder {path.parent}; check the path"


def test_permission_denied(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("a.tsv", TEXT)

    def refuse(*_: object, **__: object) -> io.BytesIO:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root, who may run these tests, is refused nothing
    assert message_of(path) == f"{path}: permission denied; ask its owner, or chmod +r it"


def test_an_error_while_reading_names_the_file(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    path = written("a.tsv", TEXT)
    monkeypatch.setattr(Path, "open", lambda *_, **__: Failing(TEXT))
    assert message_of(path) == f"{path}: cannot be read: Input/output error"


def test_a_path_no_system_accepts() -> None:
    assert message_of("a\0b") == "'a\\x00b': not a usable path: embedded null byte"


@pytest.mark.parametrize(("kind", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)])
def test_a_compressed_file_cut_short(written: Write, kind: str, compress: Callable[[bytes], bytes]) -> None:
    path = written("a", compress(os.urandom(5000).hex().encode())[:-3])
    assert message_of(path) == f"{path}: the {kind} stream is cut short; fetch or compress it again"


@pytest.mark.parametrize(("kind", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)])
def test_a_damaged_compressed_file(written: Write, kind: str, compress: Callable[[bytes], bytes]) -> None:
    path = written("a", compress(TEXT)[:10] + b"\xff" * 40)
    message = message_of(path)
    assert message.startswith(f"{path}: the {kind} stream is damaged (")
    assert message.endswith("); fetch or compress it again")


def test_a_wrong_checksum_is_damage(written: Write) -> None:
    content = bytearray(gzip.compress(TEXT))
    content[-8] ^= 1
    assert "the gzip stream is damaged (" in message_of(written("a.gz", bytes(content)))


def test_garbage_after_a_gzip_member_is_damage(written: Write) -> None:
    assert "the gzip stream is damaged (" in message_of(written("a.gz", gzip.compress(TEXT) + b"garbage"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"PAR1\x15\x04", "this is a Parquet file; only a corpus is read from Parquet, with format='parquet'"),
        (b"PK\x03\x04....", "this is a zip archive; unpack it first (only gzip and zstd are read as they are)"),
        (b"BZh91AY&SY..", "this is compressed with bzip2; unpack it first (only gzip and zstd are read as they are)"),
        (b"\xfd7zXZ\x00..", "this is compressed with xz; unpack it first (only gzip and zstd are read as they are)"),
    ],
)
def test_other_containers_are_named(written: Write, content: bytes, expected: str) -> None:
    path = written("a.tsv", content)
    assert message_of(path) == f"{path}: {expected}"


@pytest.mark.parametrize("line", ["PAR1\ttext", "BZh9\ttext", "PK\ttext"])
def test_text_that_begins_like_a_container_is_text(written: Write, line: str) -> None:
    assert list(read_lines(written("a.tsv", line))) == [(1, line)]


def test_a_reader_abandoned_half_way_closes_its_file(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[io.BytesIO] = []
    path = written("a.tsv", TEXT)
    monkeypatch.setattr(Path, "open", lambda *_, **__: opened.append(io.BytesIO(TEXT)) or opened[-1])
    lines = read_lines(path)
    next(lines)
    assert not opened[0].closed
    del lines
    assert opened[0].closed


def test_an_error_of_the_body_is_not_blamed_on_the_file(written: Write) -> None:
    with pytest.raises(KeyError, match="mine"), open_binary(written("a", TEXT)):
        raise KeyError("mine")


def test_started_draws_exactly_the_first() -> None:
    drawn: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(3):
            drawn.append(number)
            yield number

    items = started(numbers())
    assert drawn == [0]
    assert list(items) == [0, 1, 2]
    assert list(started(iter(()))) == []
