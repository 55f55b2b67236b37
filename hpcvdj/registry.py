"""Choices that are declared once: a choice is a subclass with a name, and all code asks the base class for them.

The command line, the Python functions, validation and the documentation read the same classes, so a new method,
reader or score is one class.
"""

from typing import TypeVar

from hpcvdj.errors import InputError

T = TypeVar("T")


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
    if name not in known:
        raise InputError(f"{what} must be one of {', '.join(known)} (got {name!r})")
    return known[name]()
