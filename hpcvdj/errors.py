"""The errors that hpcvdj raises on purpose, and the choices that users make by name.

An error's message names the file, the line and the remedy.  A choice is declared once, as a subclass with a `name`:
the command line, the Python functions, validation and the documentation ask the base class, so a new method, reader or
score is one class.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any, TypeVar

T = TypeVar("T")

_NO_VALUE = object()

_shell: list[bool] = []
"""Not empty in the process of a command."""


@contextmanager
def speaking_shell() -> Iterator[None]:
    """Messages that are made within name options as the command line does: `--max-n 2`, not `max_n=2`."""
    _shell.append(True)
    try:
        yield
    finally:
        _shell.pop()


def option(name: str, value: Any = _NO_VALUE) -> str:
    """An option in a message, with a value or without.

    >>> option("max_n", 2), option("strict", True), option("columns", {"junction": "cdr3"})
    ('max_n=2', 'strict=True', "hpcvdj.read_table: columns={'junction': 'cdr3'}")
    >>> with speaking_shell():
    ...     option("max_n", 2), option("strict", True), option("columns", {"junction": "cdr3"})
    ('--max-n 2', '--strict', '--columns junction=cdr3')
    """
    if not _shell:
        named = f"hpcvdj.read_table: {name}" if name in _OF_READ_TABLE else name
        return named if value is _NO_VALUE else f"{named}={value!r}"
    named = _SHORT.get(name, f"--{name.replace('_', '-')}")
    if value is _NO_VALUE or value is True:
        return named
    text = ",".join(f"{key}={word}" for key, word in value.items()) if isinstance(value, dict) else str(value)
    return f"{named} {quote(text)}"


def command_name(name: str) -> str:
    """A command in a message: `hpcvdj sharing` in the shell, `hpcvdj.sharing` in Python.

    >>> command_name("sharing")
    'hpcvdj.sharing'
    """
    return f"hpcvdj{' ' if _shell else '.'}{name}"


_SHORT = {"k": "-k", "d": "-d", "model": "-m"}
"""Options whose short name is better known, or the only one."""

_OF_READ_TABLE = ("format", "columns")
"""Options that all commands have, and of the Python functions only that which reads tables."""


def told(text: str) -> str:
    """A text in which `{name}` and `{name=value}` are options.

    >>> told("{rows=all} keeps them; see {min_reads}")
    "rows='all' keeps them; see min_reads"
    """

    def named(match: re.Match[str]) -> str:
        name, value = match.groups()
        pairs = [pair.split("=") for pair in value.split(",")] if value and "=" in value else ()
        return option(name, dict(pairs) or value) if value else option(name)

    return _OPTION.sub(named, text)


_OPTION = re.compile(r"\{(\w+)(?:=([^}]+))?\}")


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


class TooFewError(InputError):
    """There are too few rows for what was asked."""


class OptionError(InputError):
    """A value that an option cannot have."""

    option = ""
    """Its name, as that of a field of the settings."""

    @classmethod
    def of(cls, name: str, value: object, remedy: str) -> "OptionError":
        """The error of an option with its value."""
        error = cls(f"{option(name, value)}: {remedy}")
        error.option = name
        return error


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
    """Raise OptionError unless `value` is one of `choices`; `name` is an option, or other words for what is chosen."""
    known = tuple(choices)
    if value not in known:
        named = option(name) if name.isidentifier() else name
        raise OptionError(f"{named} must be one of {', '.join(known)} (got {value!r})")


def choices(base: type[T]) -> dict[str, type[T]]:
    """The subclasses of `base` that define a `name`, by name, in the order of their definition."""
    known: dict[str, type[T]] = {}
    for subclass in base.__subclasses__():
        if "name" in vars(subclass):
            known[vars(subclass)["name"]] = subclass
        known.update(choices(subclass))
    return known


def choice(base: type[T], name: str, what: str) -> T:
    """An instance of the subclass called `name`; InputError, which calls it `what`, with the names that there are."""
    known = choices(base)
    require_choice(what, name, known)
    return known[name]()


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
