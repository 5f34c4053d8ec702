"""Every file of an index, damaged in every way: an error that names the file, from open or from verify."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from colbert_prf import Index
from colbert_prf.errors import StorageError


@pytest.fixture(scope="module")
def sound(tmp_path_factory, make_documents) -> Path:
    """An index with two segments, deletions, texts and metadata."""
    path = tmp_path_factory.mktemp("sound") / "my.index"
    index = Index.create_from_vectors(path, make_documents(40), vocabulary_size=50, texts=True, progress=False)
    index.add_vectors(make_documents(40, first=40))
    index.delete(["d3", "d50"])
    return path


def files_of(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("writer."))


def truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


def lengthen(content: bytes) -> bytes:
    return content + b"\0"


def flip(content: bytes) -> bytes:
    middle = len(content) * 2 // 3
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def flip_last(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def empty(content: bytes) -> bytes:
    return b""


def foreign(content: bytes) -> bytes:
    return (b"PK\x03\x04 a file from elsewhere " * (len(content) // 25 + 1))[: len(content)]


@pytest.mark.parametrize("damage", [truncate, lengthen, flip, flip_last, empty, foreign, None])
def test_a_damaged_file_is_named(sound, tmp_path, damage):
    names = [file.relative_to(sound) for file in files_of(sound)]
    assert len(names) == 1 + 7 + 2 * 2 + 2 * 26  # manifest, codec, deletions, segments
    path = tmp_path / "my.index"
    shutil.copytree(sound, path)
    for name in names:
        file = path / name
        content = file.read_bytes()
        if damage is None:
            file.unlink()
        else:
            file.write_bytes(damage(content))
        with pytest.raises(StorageError) as caught:
            Index.open(path).verify()
        assert caught.value.path == str(file), f"{name}: {caught.value}"
        assert str(file) in str(caught.value)
        file.write_bytes(content)
    assert Index.open(path).verify().num_documents == 78


def test_the_files_of_another_index_are_not_taken_for_its_own(sound, tmp_path, make_documents):
    other = tmp_path / "other.index"
    Index.create_from_vectors(other, make_documents(40), vocabulary_size=50, texts=True, bits=2, progress=False)
    path = tmp_path / "my.index"
    shutil.copytree(sound, path)
    shutil.copy(other / "segment-000001-0000" / "residuals.npy", path / "segment-000001-0000")
    with pytest.raises(StorageError, match=r"segment-000001-0000/residuals\.npy"):
        Index.open(path)


def test_arrays_with_right_checksums_must_fit_each_other(sound, tmp_path):
    """What no checksum finds: a writer that was wrong. Each array in turn is rewritten with a manifest that fits it."""
    from colbert_prf.index.manifest import Manifest
    from colbert_prf.storage.arrays import write_array

    found = {}
    for name in ("offsets", "id_hashes", "codes", "token_ids", "lists", "frequencies"):
        path = tmp_path / name / "my.index"
        shutil.copytree(sound, path)
        manifest = Manifest.read(path / "manifest.json")
        file = path / "segment-000001-0000" / f"{name}.npy"
        array = np.load(file)
        file.unlink()
        changed = array.copy()
        changed[len(array) // 2] ^= array.dtype.type(1)
        manifest.segments[0].files[name] = write_array(file, changed)
        manifest.write(path / "manifest.json")
        with pytest.raises(StorageError) as caught:
            Index.open(path).verify()
        found[name] = Path(caught.value.path).stem
    assert found["codes"] in ("lists", "codes")
    assert found["token_ids"] == "frequencies"
    assert {name: found[name] for name in ("id_hashes", "lists", "frequencies")} == {
        "id_hashes": "id_hashes",
        "lists": "lists",
        "frequencies": "frequencies",
    }


@pytest.mark.parametrize("what", ["nothing", "a file", "an empty folder"])
def test_what_is_no_index_is_named(tmp_path, what):
    path = tmp_path / "my.index"
    if what == "a file":
        path.write_text("hello")
    elif what == "an empty folder":
        path.mkdir()
    with pytest.raises(StorageError, match=r"my\.index/manifest\.json: no such file"):
        Index.open(path)


def test_left_over_files_do_no_harm(sound, tmp_path, make_documents):
    path = tmp_path / "my.index"
    shutil.copytree(sound, path)
    (path / "segment-000004-0000").mkdir()
    (path / "segment-000004-0000" / "codes.npy").write_bytes(b"half a fi")
    (path / "manifest.json.new").write_bytes(b"{")
    (path / "notes.txt").write_text("mine")
    index = Index.open(path)
    index.add_vectors(make_documents(3, first=80))
    assert index.verify().num_documents == 81
    assert (path / "notes.txt").read_text() == "mine"
