"""Paths that cannot be used, at everything that takes one: an error of ours that names the path."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from forged import Lengths

from colbert_prf import EncodedDocument, Encoder, Index
from colbert_prf.baselines import LexicalIndex
from colbert_prf.baselines.single_vector import VectorIndex
from colbert_prf.cli import main
from colbert_prf.errors import ModelError, StorageError

NOBODY = 65534
TEXTS = [("a", "fish"), ("b", "tank")]
VECTORS = [(name, EncodedDocument(np.zeros(1, np.int32), np.eye(1, 4, dtype=np.float32))) for name in "ab"]


CREATE: dict[str, Callable[[str], object]] = {
    "index": lambda path: Index.create_from_vectors(path, VECTORS, progress=False),
    "resumed": lambda path: Index.create_from_vectors(path, VECTORS, resume=True, progress=False),
    "lexical": lambda path: LexicalIndex.create(path, TEXTS, progress=False),
    "single": lambda path: VectorIndex.create(path, TEXTS, encoder=Lengths(), progress=False),
}
OPEN: dict[str, Callable[[str], object]] = {
    "index": Index.open,
    "lexical": LexicalIndex.open,
    "single": VectorIndex.open,
    "model": Encoder.load,
}
ACTIONS = [pytest.param(action, id=f"create-{name}") for name, action in CREATE.items()]
ACTIONS += [pytest.param(action, id=f"open-{name}") for name, action in OPEN.items()]


@contextmanager
def powerless() -> Iterator[None]:
    """Without the rights of the superuser, whom no mode keeps out."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder anybody may look into; pytest's own is private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("path", ["x" * 300, "x/" * 3000], ids=["name", "path"])
def test_a_path_that_is_too_long(tmp_path, monkeypatch, action, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((StorageError, ModelError), match=r"^x.*: cannot be read .File name too long.; "):
        action(path)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_path_with_a_nul(tmp_path, monkeypatch, action):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((StorageError, ModelError), match=r"no path has a NUL character in it|no such model folder"):
        action("a\0b")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", ["file", "file/my.index"])
def test_a_file_in_the_way(tmp_path, action, name):
    (tmp_path / "file").write_text("hello")
    with pytest.raises((StorageError, ModelError), match=f"^{tmp_path}/file"):
        action(str(tmp_path / name))
    assert (tmp_path / "file").read_text() == "hello"


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", ["locked", "locked/my.index"])
def test_a_folder_that_may_not_be_searched(reachable, action, name):
    Encoder.load()  # what is imported is imported with all rights
    (reachable / "locked").mkdir(mode=0)
    with powerless(), pytest.raises((StorageError, ModelError), match=f"^{reachable}/locked.*Permission denied"):
        action(str(reachable / name))
    (reachable / "locked").chmod(0o755)


@pytest.mark.parametrize("mode", [0o311, 0o555], ids=["may-not-be-listed", "may-not-be-written"])
@pytest.mark.parametrize("action", CREATE.values(), ids=CREATE)
def test_a_folder_that_may_not_be_used(reachable, action, mode):
    path = reachable / "my.index"
    path.mkdir(mode=mode)
    with powerless(), pytest.raises(StorageError, match=f"^{path}: .*Permission denied"):
        action(str(path))
    path.chmod(0o755)
    assert not list(path.iterdir())


CHANGES: dict[str, tuple[str, Callable[..., object]]] = {
    "add": ("index", lambda index: index.add_vectors([("c", VECTORS[0][1])])),
    "delete": ("index", lambda index: index.delete(["a"])),
    "merge": ("index", lambda index: index.merge()),
    "add-terms": ("lexical", lambda index: index.add([("c", "bank")])),
    "delete-terms": ("lexical", lambda index: index.delete(["a"])),
    "upsert-terms": ("lexical", lambda index: index.upsert([("a", "bank")])),
    "delete-vectors": ("single", lambda index: index.delete(["a"])),
    "merge-vectors": ("single", lambda index: index.merge()),
}


@pytest.mark.parametrize(("kind", "change"), CHANGES.values(), ids=CHANGES)
def test_an_index_that_may_only_be_read_is_not_changed(reachable, kind, change):
    path = reachable / "my.index"
    CREATE[kind](path)
    (path / "writer.lock").chmod(0o666)
    index, modes = OPEN[kind](path), {path: 0o555, path / "writer.lock": 0o666}
    for file, mode in modes.items():
        file.chmod(mode)
    with powerless(), pytest.raises(StorageError, match=f"^{path}.*Permission denied; ask its owner"):
        change(index)
    path.chmod(0o755)
    index.reload()
    assert (index.generation, index.num_documents) == (1, 2)
    change(index)  # and the lock was let go


@pytest.mark.parametrize("kind", ["index", "lexical", "single"])
@pytest.mark.parametrize("part", [".", "manifest.json", "segment-000001-0000", "segment-000001-0000/id_order.npy"])
def test_an_index_that_may_not_be_read_is_not_called_damaged(reachable, kind, part):
    path = reachable / "my.index"
    CREATE[kind](path)
    index = OPEN[kind](path)
    (path / part).chmod(0)
    with powerless():
        for use in (index.verify, lambda: OPEN[kind](path)):
            with pytest.raises(StorageError, match=r"Permission denied.; ask its owner") as caught:
                use()
            assert type(caught.value) is StorageError
            assert caught.value.path.startswith(str(path))
    (path / part).chmod(0o755)
    index.verify()


@pytest.mark.parametrize("name", ["manifest.json.new", "writer.json"])
@pytest.mark.parametrize(("kind", "change"), CHANGES.values(), ids=CHANGES)
def test_a_folder_where_a_file_should_be(tmp_path, kind, change, name):
    CREATE[kind](tmp_path / "my.index")
    index = OPEN[kind](tmp_path / "my.index")
    index.delete(["b"])
    (tmp_path / "my.index" / name).mkdir()
    with pytest.raises(StorageError, match=f"{name}: [a-z]+: Is a directory; look at what is there"):
        change(index)
    (tmp_path / "my.index" / name).rmdir()
    change(index)


@pytest.mark.parametrize(("kind", "change"), CHANGES.values(), ids=CHANGES)
def test_an_index_that_is_gone(tmp_path, kind, change):
    CREATE[kind](tmp_path / "my.index")
    index = OPEN[kind](tmp_path / "my.index")
    (tmp_path / "my.index").rename(tmp_path / "other.index")
    for use in (index.verify, lambda: change(index)):
        with pytest.raises(StorageError, match=r"my\.index.*: (no such file|there is no such folder)"):
            use()
    assert not (tmp_path / "my.index").exists()


def test_what_the_system_says_of_the_callers_own_files_passes(tmp_path):
    def documents():
        yield VECTORS[0]
        (tmp_path / "corpus.tsv").read_text()

    with pytest.raises(FileNotFoundError):
        Index.create_from_vectors(tmp_path / "my.index", documents(), progress=False)


@pytest.mark.parametrize("name", ["colbert_prf.json", "tokenizer.json", "model.onnx"])
def test_a_model_that_may_not_be_read(reachable, name):
    for file in Encoder.load().folder.files:
        (reachable / file.name).write_bytes(file.read_bytes())
    (reachable / name).chmod(0)
    with (
        powerless(),
        pytest.raises(ModelError, match=f"^{reachable / name}: .*(Permission denied|system error number 13)"),
    ):
        Encoder.load(reachable)


@pytest.mark.parametrize(
    "command",
    [
        ["index", "CORPUS", "PATH"],
        ["index", "PATH", "out.index"],
        ["index", "CORPUS", "out.index", "--model", "PATH"],
        ["add", "PATH", "CORPUS"],
        ["delete", "PATH", "a"],
        ["merge", "PATH"],
        ["verify", "PATH"],
        ["info", "PATH"],
        ["search", "PATH", "fish"],
        ["bm25", "PATH", "fish"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("path", "code"), [("x" * 300, 1), ("a\0b", 2), ("./corpus.tsv/x", 1)], ids=["long", "nul", "file"]
)
def test_the_command_line_says_so_in_one_line(tmp_path, monkeypatch, capsys, command, path, code):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # which is closed where the system's own error ends a command
    Path("corpus.tsv").write_text("a\tfish\n")
    with pytest.raises(SystemExit) as exit_:
        main([{"CORPUS": "corpus.tsv", "PATH": path}.get(part, part) for part in command])
    assert exit_.value.code == code
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("Error: ")
    assert code == 2 or len(lines) == 1
    assert not Path("out.index").exists()
