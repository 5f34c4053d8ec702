from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from colbert_prf.kernels.compiled import compiled
from colbert_prf.kernels.simd.memory import take
from colbert_prf.kernels.workers import WorkQueue, run


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 101])
def test_every_item_is_visited_once(pool, threads, count):
    seen = np.zeros(count, int)

    def visit(start: int, stop: int) -> None:
        seen[start:stop] += 1

    run(visit, count, threads=threads, executor=pool)
    assert (seen == 1).all()


def test_a_kernel_inside_a_busy_pool_does_not_wait_for_itself():
    def inner() -> int:
        seen: list[int] = []
        run(lambda start, stop: seen.extend(range(start, stop)), 101, threads=2, executor=pool)
        return len(seen)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inner).result(timeout=20) == 101


def test_an_error_comes_out(pool):
    def fail(start: int, stop: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(fail, 100, threads=2, executor=pool)


@compiled()
def _visit(seen: np.ndarray, taken: np.ndarray) -> None:
    start = take(taken, 3)
    while start < len(seen):
        seen[start : start + 3] += 1
        start = take(taken, 3)


def _kernels(counts):
    """What visits every item of some arrays, and these arrays."""
    arrays = [np.zeros(count, np.int64) for count in counts]
    return [partial(_visit, seen, np.zeros(1, np.int64)) for seen in arrays], arrays


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("counts", [[], [0], [1], [10_001], [7, 0, 10_001]])
def test_every_item_of_a_queue_is_taken_once(pool, threads, counts):
    kernels, arrays = _kernels(counts)
    WorkQueue(kernels, threads=threads, executor=pool).finish()
    assert all((seen == 1).all() for seen in arrays)


def test_other_threads_work_before_the_calling_one_does(pool):
    """The calling thread does nothing until the others have done all."""
    kernels, (seen,) = _kernels([10_001])
    done = threading.Event()
    queue = WorkQueue([*kernels, done.set], threads=2, executor=pool)
    assert done.wait(timeout=20)
    assert (seen == 1).all()
    queue.finish()
    assert (seen == 1).all()


def test_without_an_executor_a_queue_waits_for_the_calling_thread():
    kernels, (seen,) = _kernels([10])
    queue = WorkQueue(kernels, threads=2)
    assert not seen.any()
    queue.finish()
    assert (seen == 1).all()


def test_a_queue_inside_a_busy_pool_does_not_wait_for_itself():
    def inner() -> int:
        kernels, (seen,) = _kernels([101])
        WorkQueue(kernels, threads=2, executor=pool).finish()
        return int(seen.sum())

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inner).result(timeout=20) == 101


def test_an_error_of_another_thread_comes_out(pool):
    calling, failed = threading.get_ident(), threading.Event()

    def fail() -> None:
        if threading.get_ident() != calling:
            failed.set()
            raise ZeroDivisionError

    queue = WorkQueue([fail], threads=2, executor=pool)
    assert failed.wait(timeout=20)
    with pytest.raises(ZeroDivisionError):
        queue.finish()
