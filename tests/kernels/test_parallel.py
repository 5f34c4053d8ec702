from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf.kernels.parallel import run


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


@pytest.mark.parametrize("threads", [1, 2])
def test_the_caller_does_something_beside_once(pool, threads):
    seen, beside = np.zeros(100, int), []

    def visit(start: int, stop: int) -> None:
        seen[start:stop] += 1

    run(visit, 100, threads=threads, executor=pool, beside=lambda: beside.append(1))
    assert (seen == 1).all()
    assert beside == [1]


def test_an_error_beside_comes_out_when_the_others_have_ended(pool):
    seen = np.zeros(100, int)

    def visit(start: int, stop: int) -> None:
        seen[start:stop] += 1

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(visit, 100, threads=2, executor=pool, beside=fail)
    assert (seen <= 1).all()
