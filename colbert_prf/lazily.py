"""A sequence whose items are made when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

__all__ = ["Lazily"]

Item = TypeVar("Item", covariant=True)


class Lazily(Sequence[Item]):
    """A sequence whose items are made when they are looked at.

    Parameters
    ----------
    length
        How many there are.
    make
        Gives one by its number.

    Examples
    --------
    >>> squares = Lazily(4, lambda number: number**2)
    >>> squares[-1], squares[1:3], squares == (0, 1, 4, 9)
    (9, (1, 4), True)
    """

    def __init__(self, length: int, make: Callable[[int], Item]) -> None:
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, number: int) -> Item: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, number: int | slice) -> Item | tuple[Item, ...]:
        place = range(len(self))[number]
        return self._make(place) if isinstance(place, int) else tuple(map(self._make, place))

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
