"""Damaged files: what reading them raises, and the errors that say so."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpcvdj.errors import InputError

MISREAD = OSError, LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError
"""Exceptions that h5py, NumPy and JSON raise for a damaged file."""


_REMEDY = "copy it again, or make it again"


@contextmanager
def damage(path: Path, remedy: str = _REMEDY) -> Iterator[None]:
    """Within the block, turn what h5py, NumPy and JSON raise for a damaged file into an InputError that names it."""
    try:
        yield
    except InputError as error:
        raise (error if str(path) in str(error) else damaged(path, str(error), remedy)) from None
    except MISREAD as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise damaged(path, what, remedy) from None


def damaged(path: Path, what: str, remedy: str = _REMEDY) -> InputError:
    """Return the error to raise for a damaged result; `what` says what is wrong."""
    return InputError(f"{path}: is damaged: {what}; {remedy}")
