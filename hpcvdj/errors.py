"""The errors that hpcvdj raises on purpose, its log, and the choices that users make by name.

The message of an error names the file, the line and the remedy.  A subclass with a `name` declares a choice.  The
command line, the Python functions, the checks and the documentation ask the base class for its subclasses, so a new
method, reader or score needs one new class.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any, Self, TypeVar

T = TypeVar("T")

log = logging.getLogger("hpcvdj")
"""The log of all modules.  Commands print it; of its warnings, Python functions make HpcvdjWarning."""

_NO_VALUE = object()

_shell: list[bool] = []
"""Not empty in the process of a command."""


@contextmanager
def speaking_shell() -> Iterator[None]:
    """Within the block, messages name options as the command line does: `--max-n 2`, not `max_n=2`."""
    _shell.append(True)
    try:
        yield
    finally:
        _shell.pop()


def option(name: str, value: Any = _NO_VALUE, flag: str = "") -> str:
    """Return how a message names an option, with a value or without.

    flag  the name on the command line, if it is not that of the field

    >>> option("max_n", 2), option("strict", True), option("columns", {"junction": "cdr3"})
    ('max_n=2', 'strict=True', "hpcvdj.read_table: columns={'junction': 'cdr3'}")
    >>> with speaking_shell():
    ...     option("max_n", 2), option("strict", True), option("columns", {"junction": "cdr3"})
    ('--max-n 2', '--strict', '--columns junction=cdr3')
    """
    if not _shell:
        named = f"hpcvdj.read_table: {name}" if name in _OF_READ_TABLE else name
        return named if value is _NO_VALUE else f"{named}={value!r}"
    named = flag or _SHORT.get(name, f"--{name.replace('_', '-')}")
    if value is _NO_VALUE or value is True:
        return named
    text = ",".join(f"{key}={word}" for key, word in value.items()) if isinstance(value, dict) else str(value)
    return f"{named} {quote(text)}"


def command_name(name: str) -> str:
    """Return how a message names a command: `hpcvdj sharing` in the shell, `hpcvdj.sharing` in Python.

    >>> command_name("sharing")
    'hpcvdj.sharing'
    """
    return f"hpcvdj{' ' if _shell else '.'}{name}"


_SHORT = {"k": "-k", "d": "-d", "model": "-m"}
"""Options that have only a short name, or are better known by it."""

_OF_READ_TABLE = ("format", "columns")
"""Options that all commands have, but of the Python functions only `hpcvdj.read_table`."""


def told(text: str) -> str:
    """Return a text in which the names of options replace `{name}` and `{name=value}`.

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
    """A failure.  The command reports it in one line and exits with `exit_code`."""

    exit_code = 1

    on_every_rank = False
    """Whether every rank raises this error.  All ranks can then leave in order."""

    before_ranks = False
    """Whether the ranks never came together.  There are then no other ranks to abort."""

    def everywhere(self) -> Self:
        """Return the error as one that every rank raises."""
        self.on_every_rank = True
        return self


class HpcvdjWarning(UserWarning):
    """A warning about a result, such as excluded rows, or a table that seems to be of another species."""


class StoppedError(HpcvdjError):
    """A signal stopped the run.  The message says what is saved, and how to continue."""

    exit_code = 75

    signal = "a signal"
    """The name of the signal, if it is known, or the names if ranks received different signals."""


class CompleteError(HpcvdjError):
    """The result exists already, and there is nothing to do."""

    exit_code = 0

    on_every_rank = True


class InputError(HpcvdjError):
    """Wrong usage or bad input.  Users can correct it."""

    exit_code = 2


class TooFewError(InputError):
    """The input has too few rows for the question."""


class OptionError(InputError):
    """An option has a value that it cannot have."""

    option = ""
    """The name of the option: that of the field of its settings."""

    @classmethod
    def of(cls, name: str, value: object, remedy: str, flag: str = "") -> "OptionError":
        """Return the error for an option and its value; `flag` as of `option`."""
        error = cls(f"{option(name, value, flag)}: {remedy}")
        error.option = name
        return error


class MachineError(HpcvdjError):
    """The machine cannot do what the user asks: the disk is full, there is no GPU, and the like."""


class LostRankError(MachineError):
    """Another rank does not answer."""


class LauncherError(MachineError):
    """The launcher started more ranks than the MPI library joins."""

    before_ranks = True


def installing(*extras: str) -> str:
    """Return how to install parts of hpcvdj that not every installation has."""
    names = ",".join(extras)
    return f"pip install 'hpcvdj[{names}]' (in a checkout: pip install -e '.[{names}]')"


def require_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise OptionError unless `value` is one of `choices`; `name` is an option, or other words for what is chosen."""
    names = tuple(choices)
    if value not in names:
        named = option(name) if name.isidentifier() else name
        raise OptionError(f"{named} must be one of {', '.join(names)} (got {value!r})")


def choices(base: type[T]) -> dict[str, type[T]]:
    """Return the subclasses of `base` that define a `name`, by name, in the order of their definition."""
    classes: dict[str, type[T]] = {}
    for subclass in base.__subclasses__():
        if "name" in vars(subclass):
            classes[vars(subclass)["name"]] = subclass
        classes.update(choices(subclass))
    return classes


def choice(base: type[T], name: str, what: str) -> T:
    """Return an instance of the subclass of `base` with the given `name`.

    Raise InputError, which lists the names that there are and calls the choice `what`, if no subclass has the name.
    """
    classes = choices(base)
    require_choice(what, name, classes)
    return classes[name]()


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Within the block, input errors name the table that they are about."""
    try:
        yield
    except InputError as error:
        if name in str(error):
            raise
        named = type(error)(f"{name}: {error}")
        named.on_every_rank = error.on_every_rank
        raise named from error


def few(names: Iterable[str], most: int = 3) -> str:
    """Return the first names of a list for a message, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if listed[most:] else "")
