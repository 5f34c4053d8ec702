from __future__ import annotations

import threading

import pytest

from colbert_prf.encoder.ordered import PENDING_PER_THREAD, ordered_map


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_results_come_in_the_order_of_the_items(threads, count):
    assert list(ordered_map(lambda i: i * i, range(count), threads=threads)) == [i * i for i in range(count)]


def test_a_slow_first_item_holds_back_the_others_but_not_their_work():
    done = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert done.wait(10)
        if item == 5:
            done.set()
        return item

    assert list(ordered_map(work, range(10), threads=2)) == list(range(10))


def test_items_are_read_as_needed():
    read: list[int] = []

    def items():
        for i in range(10_000):
            read.append(i)
            yield i

    results = ordered_map(abs, items(), threads=2)
    next(results)
    results.close()
    assert len(read) == 2 * PENDING_PER_THREAD


def test_an_error_comes_out_where_it_happened():
    results = ordered_map(lambda i: 1 // (3 - i), range(10), threads=2)
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)
