from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf.kernels.compiled import compiled
from colbert_prf.kernels.parallel import NEVER, run, share
from colbert_prf.kernels.simd import first_part, leave, next_part


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
def _visit(seen: np.ndarray, shared: np.ndarray, until: int) -> None:
    start = first_part(shared, 3)
    while start < len(seen):
        seen[start : start + 3] += 1
        start = next_part(shared, start, 3, until)
    leave(shared, until)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 10_001])
def test_what_is_shared_is_done_once(pool, threads, count):
    seen, beside = np.zeros(count, np.int64), []
    share(
        lambda shared, until: _visit(seen, shared, until),
        threads=threads,
        executor=pool,
        beside=lambda: beside.append(1),
    )
    assert (seen == 1).all()
    assert beside == [1]


def test_a_thread_leaves_once_so_many_have_begun():
    seen, shared = np.zeros(10, np.int64), np.array([0, 1, 0, 0])
    _visit(seen, shared, 2)
    assert seen.tolist() == 3 * [1] + 7 * [0]
    _visit(seen, shared, NEVER)
    assert (seen == 1).all()


def test_a_thread_stays_until_the_first_items_are_done():
    seen, shared = np.zeros(10, np.int64), np.array([0, 0, 0, 4])
    _visit(seen, shared, 1)
    assert seen.tolist() == 6 * [1] + 4 * [0]
    assert shared.tolist() == [6, 1, 6, 4]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("first", [0, 1, 3, 100, 4000])
def test_beside_all_of_the_first_items_are_done(pool, threads, first):
    for _ in range(20):
        seen, early = np.zeros(4000, np.int64), []
        share(
            lambda shared, until, seen=seen: _visit(seen, shared, until),
            threads=threads,
            executor=pool,
            first=first,
            beside=lambda early=early, seen=seen: early.append(seen[:first].copy()),
        )
        assert (seen == 1).all()
        assert (early[0] == 1).all()


def test_the_first_items_of_a_thread_that_is_interrupted_are_waited_for(pool):
    """The other thread takes the first items and is slow: the calling one finds nothing to do, and does not go on."""
    taken, done, early = threading.Event(), np.zeros(1), []

    def kernel(shared: np.ndarray, until: int) -> None:
        if until == NEVER and not taken.is_set():
            taken.set()
            time.sleep(0.05)
            done[0] = 1
            shared[2] = 5
        taken.wait()

    share(kernel, threads=2, executor=pool, first=5, beside=lambda: early.append(done[0]))
    assert early == [1]


def test_shared_work_inside_a_busy_pool_does_not_wait_for_itself():
    def inner() -> int:
        seen = np.zeros(101, np.int64)
        share(lambda shared, until: _visit(seen, shared, until), threads=2, executor=pool, beside=lambda: None)
        return int(seen.sum())

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inner).result(timeout=20) == 101


def test_an_error_beside_comes_out_when_the_others_have_ended(pool):
    seen = np.zeros(10_001, np.int64)

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        share(lambda shared, until: _visit(seen, shared, until), threads=2, executor=pool, beside=fail)
    assert (seen <= 1).all()
