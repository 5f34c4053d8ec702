from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from colbert_prf import Index
from colbert_prf.errors import IndexLockedError, StorageError
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writer_lock

HOLD = """
import sys, time
from pathlib import Path
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writer_lock
with writer_lock(IndexLayout(Path(sys.argv[1])), "hold"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def other_writer(index, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path / "my.index"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_writer_is_told_who_the_first_is(index, other_writer, make_documents):
    for change in (
        lambda: index.add_vectors(make_documents(1, first=50)),
        lambda: index.delete(["d1"]),
        index.merge,
        lambda: index.merge(retrain=True),
    ):
        with pytest.raises(IndexLockedError, match=rf"process {other_writer.pid} on .* \(action: hold, since "):
            change()
    assert index.generation == 1


def test_readers_need_no_lock(index, other_writer, tmp_path):
    assert Index.open(tmp_path / "my.index").num_documents == 10
    assert index.verify().num_documents == 10


def test_a_killed_writer_holds_nothing(index, other_writer):
    os.kill(other_writer.pid, signal.SIGKILL)
    other_writer.wait()
    index.delete(["d1"])
    assert index.num_documents == 9


def test_another_index_of_the_same_process_is_another_writer(index, tmp_path):
    with (
        writer_lock(IndexLayout(tmp_path / "my.index"), "test"),
        pytest.raises(IndexLockedError, match=f"process {os.getpid()}"),
    ):
        index.delete(["d1"])
    index.delete(["d1"])


def test_an_unreadable_note_is_no_problem(index, other_writer, tmp_path):
    (tmp_path / "my.index" / "writer.json").write_text("{")
    with pytest.raises(IndexLockedError, match="another process is changing the index"):
        index.delete(["d1"])


def test_the_lock_is_released_after_an_error(tmp_path):
    layout = IndexLayout(tmp_path)
    with pytest.raises(KeyError), writer_lock(layout, "fail"):
        raise KeyError
    with writer_lock(layout, "again"):
        assert layout.writer.exists()
    assert not layout.writer.exists()


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "writer.lock").mkdir()
    with pytest.raises(StorageError, match="cannot be written to"), writer_lock(IndexLayout(tmp_path), "test"):
        pass
