"""The errors that hpcvdj raises on purpose, and the choices that users make by name.

An error's message names the file, the place and the remedy.  A choice is declared once, as a subclass with a `name`:
the command line, the Python functions, validation and the documentation ask the base class, so a new method, reader or
score is one class.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import TypeVar

T = TypeVar("T")


class HpcvdjError(Exception):
    """A failure that the command reports in one line before it exits with `exit_code`."""

    exit_code = 1

    on_every_rank = False
    """Whether every rank raises this error, so that all ranks can leave in order."""

    before_ranks = False
    """Whether the ranks never came together, so that there are no other ranks to abort."""


class HpcvdjWarning(UserWarning):
    """What to know of a result: rows that were excluded, a table that seems to be of another species, and the like."""


class StoppedError(HpcvdjError):
    """A signal stopped the run; the message says what is saved, and how to continue."""

    exit_code = 75

    signal = "a signal"
    """Its name, if it is known; of several ranks, the names."""


class CompleteError(HpcvdjError):
    """The result exists already; there is nothing to do."""

    exit_code = 0

    on_every_rank = True


class InputError(HpcvdjError):
    """Wrong usage or bad input, which users can correct."""

    exit_code = 2


class MachineError(HpcvdjError):
    """The machine cannot do what was asked: the disk is full, there is no GPU, and the like."""


class LostRankError(MachineError):
    """Another rank does not answer."""


class LauncherError(MachineError):
    """The launcher started more ranks than the MPI library joins."""

    before_ranks = True


def installing(*extras: str) -> str:
    """How to install parts of hpcvdj that not every installation has."""
    names = ",".join(extras)
    return f"pip install 'hpcvdj[{names}]' (in a checkout: pip install -e '.[{names}]')"


def require_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise InputError unless `value` is one of `choices`."""
    known = tuple(choices)
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)} (got {value!r})")


def choices(base: type[T]) -> dict[str, type[T]]:
    """The subclasses of `base` that have a `name` of their own, by name, in the order of their definition."""
    found: dict[str, type[T]] = {}
    for subclass in base.__subclasses__():
        if "name" in vars(subclass):
            found[vars(subclass)["name"]] = subclass
        found.update(choices(subclass))
    return found


def choice(base: type[T], name: str, what: str) -> T:
    """An instance of the subclass called `name`; InputError, which calls it `what`, with the names that there are."""
    known = choices(base)
    require_choice(what, name, known)
    return known[name]()


def require_integer(name: str, value: object, remedy: str) -> int:
    """Return the value of an option as an int; raise InputError with the remedy if it is not an integer."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InputError(f"{option_named(name)} {value!r}: {remedy}")
    return int(value)


def require_between(name: str, value: object, least: int, most: int) -> int:
    """Return the value of an option as an int; raise InputError unless it is an integer from `least` to `most`."""
    remedy = f"give a number from {least:,} to {most:,}"
    number = require_integer(name, value, remedy)
    if not least <= number <= most:
        raise InputError(f"{option_named(name)} {value}: {remedy}")
    return number


def option_named(parameter: str) -> str:
    """The option of a parameter: `--max-n` of `max_n`."""
    return f"--{parameter.replace('_', '-')}"


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Input errors within say which of several tables they are of."""
    try:
        yield
    except InputError as error:
        if name in str(error):
            raise
        named = type(error)(f"{name}: {error}")
        named.on_every_rank = error.on_every_rank
        raise named from error


def few(names: Iterable[str], most: int = 3) -> str:
    """The first names of a list for a message, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if listed[most:] else "")
