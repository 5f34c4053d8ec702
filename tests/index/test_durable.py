"""What is synced before what: a crash of the machine, not only of the process, must leave a whole generation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from colbert_prf.storage.durable import write_atomically


@pytest.fixture
def journal(monkeypatch):
    """Every sync and every rename, in order, by the name of the file."""
    entries: list[tuple[str, str]] = []
    rename = Path.replace

    def fsync(descriptor: int) -> None:
        entries.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))

    def replace(self: Path, target: Path) -> Path:
        entries.append(("rename", Path(target).name))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    return entries


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to name a descriptor")
def test_a_file_is_synced_before_it_gets_its_name_and_the_name_after(tmp_path, journal):
    write_atomically(tmp_path / "a", b"x")
    assert journal == [("sync", "a.new"), ("rename", "a"), ("sync", tmp_path.name)]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to name a descriptor")
def test_everything_a_manifest_names_is_synced_before_it(index, make_documents, journal, tmp_path):
    index.add_vectors(make_documents(2, first=10))
    published = journal.index(("rename", "manifest.json"))
    before = {name for kind, name in journal[:published] if kind == "sync"}
    added = index.segments[1]
    assert {f"{name}.npy" for name in added.info.files} <= before
    assert {added.info.name, "my.index", "manifest.json.new"} <= before
    journal.clear()
    index.delete(["d1"])
    before = {name for kind, name in journal[: journal.index(("rename", "manifest.json"))] if kind == "sync"}
    names = {f"segment-000001-0000.{name}.npy" for name in ("deleted", "frequencies")}
    assert names | {"deletions-000003", "my.index"} <= before


def test_the_old_content_stays_when_writing_fails(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a", b"old")

    def full(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
