"""Killed workers, killed drivers and full disks, on a local Ray in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from colbert_prf import Index
from colbert_prf.errors import IndexFormatError

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

SIZE = 30
PATIENCE = 240.0
DOCUMENTS = [
    (f"d{number}", " ".join(f"passage {number} tells of {number * step % 997} tanks," for step in range(1, 40)))
    for number in range(4 * SIZE)
]
DISK_IS_FULL = """
import resource, sys, ray
from colbert_prf.datasets import read_corpus
from colbert_prf.distributed import create_index

def fill():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False,
         runtime_env={"worker_process_setup_hook": fill})
try:
    create_index(sys.argv[2], list(read_corpus(sys.argv[1])), passages_per_segment=30, progress=False)
finally:
    ray.shutdown()
"""

TWO_MACHINES = """
import sys
from ray.cluster_utils import Cluster
from colbert_prf.datasets import read_corpus
from colbert_prf.distributed import create_index

small = {"num_cpus": 1, "object_store_memory": 100 << 20}
cluster = Cluster(initialize_head=True, head_node_args=small)
cluster.add_node(**small)
try:
    documents = list(read_corpus(sys.argv[1]))
    create_index(sys.argv[2], documents, address=cluster.address, passages_per_segment=30, progress=False)
finally:
    cluster.shutdown()
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{doc_id}\t{text}\n" for doc_id, text in DOCUMENTS))
    return path


@pytest.fixture
def undisturbed(tmp_path: Path, build, crew) -> Index:
    return build(tmp_path / "undisturbed.index", crew, DOCUMENTS, size=SIZE)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts processes, each with a session of its own, and ends what is left of them."""
    started: list[subprocess.Popen] = []

    def started_process(*arguments: object) -> subprocess.Popen:
        command = [sys.executable, *map(str, arguments)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        return process

    yield started_process
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def index_command(corpus: Path, path: Path, *options: str) -> list[object]:
    return ["-m", "colbert_prf", "index", corpus, path, f"--passages-per-segment={SIZE}", "--ray=local", *options]


def waited_for(folder: Path, pattern: str, driver: subprocess.Popen) -> Path:
    """The first file of a name, once it is there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and driver.poll() is None:
        if found := sorted(folder.glob(pattern)):
            return found[0]
        time.sleep(0.005)
    raise AssertionError(f"no {pattern}: {driver.communicate()[1]}")


def finished(driver: subprocess.Popen) -> str:
    _, errors = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, errors
    return errors


def test_the_work_of_a_killed_worker_is_done_by_another(tmp_path, corpus, start, undisturbed):
    path = tmp_path / "my.index"
    driver = start(*index_command(corpus, path))
    attempt = waited_for(path / "building", "attempt-segment-*", driver)
    os.kill(int(attempt.name.rpartition("-")[2]), signal.SIGKILL)
    finished(driver)
    made = Index.open(path)
    assert made.snapshot.manifest == undisturbed.snapshot.manifest
    made.verify()
    assert sorted(entry.name for entry in path.iterdir()) == sorted(entry.name for entry in undisturbed.path.iterdir())


def test_a_killed_driver_publishes_nothing_and_is_resumed(tmp_path, corpus, start, undisturbed):
    path = tmp_path / "my.index"
    driver = start(*index_command(corpus, path))
    done = waited_for(path / "building", "segment-*.json", driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    with pytest.raises(IndexFormatError, match="the build of this index is not finished"):
        Index.open(path)
    residuals = path / done.stem / "residuals.npy"
    written = residuals.stat().st_ino
    again = start(*index_command(corpus, path))
    _, errors = again.communicate(timeout=PATIENCE)
    assert again.returncode == 1
    assert "there is an interrupted build; continue it with resume=True (--resume on the command line)" in errors
    finished(start(*index_command(corpus, path, "--resume")))
    assert Index.open(path).snapshot.manifest == undisturbed.snapshot.manifest
    assert residuals.stat().st_ino == written


def test_a_full_disk_on_a_worker_is_one_clear_error(tmp_path, corpus, start):
    driver = start("-c", DISK_IS_FULL, corpus, tmp_path / "my.index")
    _, errors = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 1
    assert "StorageError" in errors.splitlines()[-1]
    assert "File too large; what was there before is whole: make room and try again" in errors
    assert "RayTaskError" not in errors
    assert not (tmp_path / "my.index").exists()


def test_a_cluster_of_two_machines_is_reached_by_its_address(tmp_path, corpus, start, undisturbed):
    driver = start("-c", TWO_MACHINES, corpus, tmp_path / "my.index")
    finished(driver)
    assert Index.open(tmp_path / "my.index").snapshot.manifest == undisturbed.snapshot.manifest
