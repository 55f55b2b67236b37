"""The methods: what each one's units of work and tasks are.

A method says how a repertoire's count is cut into **units**, and each unit into **tasks** that ranks share by
the paper's equation (2).  How a task is done is a kernel's business, in `hpcvdj.backends`.
"""

from __future__ import annotations

from hpcvdj.errors import InputError
from hpcvdj.methods.base import Method, Problem, Unit
from hpcvdj.methods.direct import Direct
from hpcvdj.methods.enumerating import Baseline, Bitwise

METHODS: dict[str, Method] = {method.name: method for method in (Direct(), Bitwise(), Baseline())}
"""Every method by name, the default first."""

__all__ = ["METHODS", "Method", "Problem", "Unit", "method_named"]


def method_named(name: str) -> Method:
    """The method called `name`; InputError lists the names."""
    if name not in METHODS:
        raise InputError(f"no method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
