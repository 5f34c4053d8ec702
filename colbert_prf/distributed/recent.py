"""The results that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Recent"]

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Keeps the results that were used last, for several threads at once.

    Parameters
    ----------
    size
        How many.

    Examples
    --------
    >>> recent = Recent(2)
    >>> [recent.get(key, lambda key=key: 10 * key) for key in (1, 2, 1, 3)]
    [10, 20, 10, 30]
    >>> recent.get(2, lambda: "again"), recent.get(3, lambda: "again")
    ('again', 30)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The result of a key; made without holding up others, so that two threads may both make it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value
