"""What a kernel is: the unit of work that it is given, and how it is started."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Pending = Callable[[], NDArray[Any]]
"""Waits for values that are being computed: [sequences of the unit, its n-lengths]."""


@dataclass(frozen=True)
class Unit:
    """A part of the count that is done, combined and stored at once.

    pairs      the V–J pairs it covers, a range of indices into `Repertoire.pairs`
    rows       the sequences it covers, a range of rows
    n_lengths  the n-lengths it covers: columns of the result
    tasks      how many tasks it has; a rank does a block range of them
    """

    pairs: range
    rows: range
    n_lengths: range
    tasks: int


class Kernel:
    """A method's kernel, loaded with a problem."""

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Begin to compute what tasks first … last-1 of `unit` contribute.

        The values are the kernel's own: the second `start` after this one may overwrite them.
        """
        raise NotImplementedError

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[Any]:
        """`start` and wait."""
        return self.start(unit, first, last)()
