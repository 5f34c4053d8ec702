"""The folders of all three kinds of index: nothing in them leads elsewhere, and nothing is written through a link."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from forged import CLASSES, SEGMENT, Lengths, change_manifest

from colbert_prf import EncodedDocument, Index
from colbert_prf.baselines import LexicalIndex
from colbert_prf.baselines.single_vector import VectorIndex
from colbert_prf.errors import IndexFormatError, StorageError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")


def documents(*names: str) -> list[tuple[str, EncodedDocument]]:
    units = np.eye(len(names), 4, dtype=np.float32)
    return [(name, EncodedDocument(np.array([n], np.int32), units[n : n + 1])) for n, name in enumerate(names)]


def create(kind: str, path: Path) -> None:
    texts = [("a", "fish"), ("b", "tank"), ("c", "bank")]
    if kind == "index":
        Index.create_from_vectors(path, documents("a", "b", "c"), vocabulary_size=9, progress=False)
    elif kind == "lexical":
        LexicalIndex.create(path, texts, progress=False)
    else:
        VectorIndex.create(path, texts, encoder=Lengths(), progress=False)


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """A pipe that is waited for fails the test instead of stopping it."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """An index of each kind, each with a deletion."""
    folder = tmp_path_factory.mktemp("sound")
    for kind in CLASSES:
        create(kind, folder / kind)
        CLASSES[kind].open(folder / kind).delete(["c"])
    return folder


def files_of(content: dict) -> dict:
    return content["segments"][0]["files"]


def named_above(path: Path) -> None:
    shutil.copy(path / SEGMENT / "id_bytes.npy", path.parent / "taken.npy")
    change_manifest(path, lambda content: files_of(content).update({"../../taken": files_of(content)["id_bytes"]}))


def named_absolutely(path: Path) -> None:
    shutil.copy(path / SEGMENT / "id_bytes.npy", path.parent / "taken.npy")
    taken = str(path.parent / "taken")
    change_manifest(path, lambda content: files_of(content).update({taken: files_of(content)["id_bytes"]}))


def named_with_nul(path: Path) -> None:
    change_manifest(path, lambda content: files_of(content).update({"a\0b": files_of(content)["id_bytes"]}))


def linked_file(path: Path) -> None:
    file = path / SEGMENT / "id_bytes.npy"
    shutil.move(file, path.parent / "taken.npy")
    file.symlink_to(path.parent / "taken.npy")


def linked_folder(path: Path) -> None:
    shutil.move(path / SEGMENT, path.parent / "taken")
    (path / SEGMENT).symlink_to(path.parent / "taken")


def linked_manifest(path: Path) -> None:
    shutil.move(path / "manifest.json", path.parent / "taken.json")
    (path / "manifest.json").symlink_to(path.parent / "taken.json")


def linked_device(path: Path) -> None:
    (path / SEGMENT / "id_bytes.npy").unlink()
    (path / SEGMENT / "id_bytes.npy").symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    (path / SEGMENT / "id_bytes.npy").unlink()
    os.mkfifo(path / SEGMENT / "id_bytes.npy")


def pipe_for_a_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")


def folder_for_a_file(path: Path) -> None:
    (path / SEGMENT / "id_bytes.npy").unlink()
    (path / SEGMENT / "id_bytes.npy").mkdir()


ATTACKS = {
    named_above: "names '../../taken'?, which is no name of a file here",
    named_absolutely: "names '/.*taken'?, which is no name of a file here",
    named_with_nul: r"names 'a\\x00b', which is no name of a file here",
    linked_file: r"id_bytes\.npy: a symbolic link",
    linked_folder: f"{SEGMENT}: a symbolic link",
    linked_manifest: r"manifest\.json: a symbolic link",
    linked_device: r"id_bytes\.npy: a symbolic link",
    pipe: r"id_bytes\.npy: cannot be read \(a pipe, a socket or a device\)",
    pipe_for_a_manifest: r"manifest\.json: cannot be read \(a pipe",
    folder_for_a_file: r"id_bytes\.npy: cannot be read \(Is a directory\)",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("kind", CLASSES)
def test_what_leads_elsewhere_is_refused_by_open_and_by_verify(sound, tmp_path, kind, attack):
    path = tmp_path / "my.index"
    shutil.copytree(sound / kind, path)
    opened = CLASSES[kind].open(path)
    opened.verify()
    attack(path)
    for use in (lambda: CLASSES[kind].open(path), opened.verify):
        with pytest.raises(IndexFormatError, match=ATTACKS[attack]):
            use()


@pytest.mark.parametrize("name", ["../taken", "/taken", "a/b", "..", ".", "", "a\n"])
@pytest.mark.parametrize(
    ("kind", "part"),
    [("index", "codec"), *((kind, part) for kind in CLASSES for part in ("segment", "deletions"))],
)
def test_folders_are_named_by_plain_names(sound, tmp_path, kind, part, name):
    path = tmp_path / "my.index"
    shutil.copytree(sound / kind, path)

    def change(content):
        segment = content["segments"][0]
        {"codec": content.get("codec"), "segment": segment, "deletions": segment["deletions"]}[part]["name"] = name

    change_manifest(path, change)
    with pytest.raises(IndexFormatError, match="which is no name of a file here: damaged or forged"):
        CLASSES[kind].open(path)


@pytest.mark.parametrize("name", ["writer.lock", "writer.json", "manifest.json.new"])
@pytest.mark.parametrize("kind", CLASSES)
def test_nothing_is_written_through_a_link(sound, tmp_path, kind, name):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    path = tmp_path / "my.index"
    shutil.copytree(sound / kind, path)
    (path / "writer.lock").unlink()
    (path / name).symlink_to(precious)
    if name == "writer.lock":
        with pytest.raises(StorageError, match=r"writer\.lock: a symbolic link"):
            CLASSES[kind].open(path).delete(["a"])
    else:
        CLASSES[kind].open(path).delete(["a"])
        CLASSES[kind].open(path).verify()
        assert not (path / name).exists()
    assert precious.read_text() == "precious"


def test_an_index_may_itself_be_reached_by_a_link(sound, tmp_path):
    shutil.copytree(sound / "index", tmp_path / "large.disk")
    (tmp_path / "my.index").symlink_to(tmp_path / "large.disk")
    index = Index.open(tmp_path / "my.index")
    index.delete(["a"])
    assert index.verify().num_documents == 1
    assert (tmp_path / "my.index").is_symlink()


def test_a_build_does_not_go_through_a_link(tmp_path, sound):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_text("precious")
    shutil.copytree(sound / "index", tmp_path / "old")
    (tmp_path / "new").mkdir()
    for name in ("new", "old"):
        (tmp_path / name / "building").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="building: a symbolic link"):
        Index.create_from_vectors(tmp_path / "new", documents("a"), resume=True, progress=False)
    with pytest.raises(StorageError, match="building: a symbolic link"):
        Index.open(tmp_path / "old").delete(["a"])
    assert [entry.name for entry in (tmp_path / "elsewhere").iterdir()] == ["precious"]
