"""Whether a caller's choices are ones that there are."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from hpcvdj.errors import InputError


def require_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """InputError unless `value` is one of `choices`."""
    known = tuple(choices)
    if value not in known:
        raise InputError(f"{name} {value!r}: there are {', '.join(known)}")


def whole_number(name: str, value: object, remedy: str) -> int:
    """`value` as an int; InputError, with the remedy, if it is none."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InputError(f"{name} {value!r}: {remedy}")
    return int(value)
