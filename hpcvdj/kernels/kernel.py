"""What a kernel is: the unit of work that it is given, how it is started, and how a backend finds it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from numpy.typing import NDArray


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


class Loadable(Protocol):
    """What a backend can load: kernels are named as `module.Class`, or given as the class itself, for each backend."""

    name: ClassVar[str]
    kernels: ClassVar[Mapping[str, str | type[Any]]]


class Started(Protocol):
    """Tasks that are being computed."""

    def result(self) -> NDArray[Any]:
        """Wait for the values: [sequences of the unit, its n-lengths].

        The array is the kernel's own: the second `start` after this one may overwrite it.
        """
        ...


class Kernel(Protocol):
    """A method's kernel, loaded with a problem."""

    def start(self, unit: Unit, first: int, last: int) -> Started:
        """Begin to compute what tasks first … last-1 of `unit` contribute."""
        ...

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[Any]:
        """`start` and wait."""
        ...


@dataclass(frozen=True)
class Done:
    """Tasks that were computed before `start` returned."""

    values: NDArray[Any]

    def result(self) -> NDArray[Any]:
        """The values."""
        return self.values


class SynchronousKernel:
    """A kernel that computes when it is called."""

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[Any]:
        """Compute tasks first … last-1 of `unit`."""
        raise NotImplementedError

    def start(self, unit: Unit, first: int, last: int) -> Started:
        """Compute them now."""
        return Done(self(unit, first, last))
