from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.manifest import CodecInfo, DeletionInfo, Manifest, ModelInfo, SegmentInfo, Settings
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.json_form import _text

FILES = {"codes": ArrayInfo("<u2", (7,), 142, 5)}
MANIFEST = Manifest(
    3,
    (
        SegmentInfo(
            "segment-000001-0000", 4, FILES, DeletionInfo("deletions-000003", 1, FILES, num_vectors=2), num_vectors=7
        ),
        SegmentInfo("segment-000002-0000", 2, {}, num_vectors=3),
    ),
    Settings(128, 2, 30522, (101, 102), True, ModelInfo("f" * 32, "tiny", None)),
    CodecInfo("codec-000001", 16, 100, {}),
)


def rewritten(path, change):
    """Change the manifest as a program would: with a checksum that fits."""
    document = json.loads(path.read_text())
    del document["checksum"]
    change(document)
    path.write_text(_text(document))


def test_it_comes_back_as_it_was(tmp_path):
    MANIFEST.write(tmp_path / "manifest.json")
    assert Manifest.read(tmp_path / "manifest.json") == MANIFEST
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]


def test_deleted_documents_are_not_counted():
    assert (MANIFEST.num_documents, MANIFEST.num_vectors) == (5, 8)


def test_the_folders_in_use():
    made = {"codec-000001", "segment-000001-0000", "segment-000002-0000", "deletions-000003"}
    assert MANIFEST.folders == made | {MANIFEST.derived}


def test_the_derived_folder_is_named_by_the_files_of_the_segments():
    first, second = MANIFEST.segments
    assert re.fullmatch("derived-[0-9a-f]{16}", MANIFEST.derived)
    assert MANIFEST.next(segments=(replace(first, deletions=None), second)).derived == MANIFEST.derived
    name, info = next(iter(first.files.items()))
    changed = replace(first, files={**first.files, name: replace(info, checksum=info.checksum ^ 1)})
    others = [MANIFEST.next(segments=segments) for segments in ((second, first), (first,), (changed, second))]
    assert len({MANIFEST.derived, *(other.derived for other in others)}) == 4


def test_every_changed_byte_is_found(tmp_path):
    path = tmp_path / "manifest.json"
    MANIFEST.write(path)
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(IndexFormatError, match=r"manifest\.json"):
            Manifest.read(path)


def test_every_truncation_is_found(tmp_path):
    path = tmp_path / "manifest.json"
    MANIFEST.write(path)
    content = path.read_bytes()
    for length in range(0, len(content), 17):
        path.write_bytes(content[:length])
        with pytest.raises(IndexFormatError, match=r"manifest\.json"):
            Manifest.read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=4), "format version 4, this version of colbert-prf reads 3; install the version"),
        (lambda d: d.update(kind="a cake"), "not a colbert-prf index"),
        (lambda d: d["content"].pop("codec"), r"lacks the keys \['codec'\]"),
        (lambda d: d["content"].update(colour="red"), r"unknown keys \['colour'\]"),
        (lambda d: d["content"].update(generation="3"), "generation must be int, found '3'"),
        (lambda d: d["content"].update(generation=True), "generation must be int, found True"),
        (lambda d: d["content"]["settings"].update(texts=1), "settings.texts must be bool, found 1"),
        (lambda d: d["content"]["segments"][1].update(name=None), r"segments\[1\].name must be str, found None"),
        (lambda d: d["content"].update(segments={}), "segments must be list, found {}"),
        (lambda d: d["content"]["codec"].update(files=[]), r"codec.files must be dict, found \[\]"),
    ],
)
def test_what_is_not_exactly_right_is_refused(tmp_path, change, message):
    path = tmp_path / "manifest.json"
    MANIFEST.write(path)
    rewritten(path, change)
    with pytest.raises(IndexFormatError, match=message):
        Manifest.read(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"\xff\xfe", b"hello", b"[" * 100_000])
def test_foreign_content_is_refused(tmp_path, content):
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(IndexFormatError, match=r"manifest\.json"):
        Manifest.read(path)


def test_a_folder_without_a_manifest_is_no_index(tmp_path):
    with pytest.raises(IndexFormatError, match="no such file: not a colbert-prf index, or one whose"):
        Manifest.read(tmp_path / "manifest.json")
