"""Descriptions of parameters that several functions share.  Other parameters are described by their settings."""

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_type_hints

from hpcvdj.options import Settings, declared
from hpcvdj.recombination.models import Model

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

PARAMETERS = {
    "junctions": "a table with the AIRR columns v_call, j_call and junction: a pandas or polars DataFrame, a pyarrow "
    "Table (or any object with the Arrow stream interface), or the path of a file, or of a folder of files, that "
    "`read_table` reads",
    "germline": "a Germline, the name of one that comes with hpcvdj (`human_trb`) or of a species (`human`, for all "
    "its loci), the path of a germline table, or a list of these",
    "backend": "`auto` takes a GPU if there is one, `cuda` requires one, `cpu` does not use it",
    "model": "a Model, the name of one (`human_trb`; `hpcvdj.models()` lists them), or a folder in IGoR's format; with "
    "`:published` after it, without hpcvdj's corrections of alleles",
    "joint": "take P(V, D, J) as a model of IGH has it; by default P(V) P(D, J), as in OLGA",
    "force": "go on if the model cannot make half of the rows",
    "motif_result": "a MotifResult, or the path of a result file of `hpcvdj motifs compare`",
    "overwrite": "replace what is there",
}
"""Descriptions of parameters.  In docstrings, `{name}` in an entry stands for the description of `name`."""

_BLOCK = re.compile(r"^(?:    \w+(?:, \w+)*  +\S.*\n(?:     +\S.*\n)*)+", re.MULTILINE)
"""Consecutive entries of a docstring: one or more names, two or more blanks, and the meaning."""

_ENTRY = re.compile(r"^    (\w+(?:, \w+)*)  +(\S.*\n(?:     +\S.*\n)*)", re.MULTILINE)

OPTIONS: dict[str, tuple[type[Settings], ...]] = {}
"""The settings whose options a function has as parameters, by its name."""


class InOneProcess(Settings):
    """Arguments without the options for ranks.  This is the first base of arguments that have such options."""

    strict_binding: bool = field(default=False, init=False)


class OfModel(Settings):
    """A model to draw from."""

    model: Model | str | Path


class OfTables(Settings):
    """Tables, and the model that they are compared with."""

    tables: Any
    model: Model | str | Path


def taking(arguments: Callable[P, Settings]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Decorate a function: its parameters are the fields of a class of settings, and it gets all of them by name.

    So the options of a function have the types and defaults that its settings declare.  The class is never created.
    """
    assert isinstance(arguments, type)
    hints = get_type_hints(arguments)
    named = inspect.signature(arguments).parameters.values()

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        returned = function.__annotations__["return"]
        signature = inspect.Signature([own.replace(annotation=hints[own.name]) for own in named],
                                      return_annotation=returned)  # fmt: skip

        @wraps(function)
        def taken(*values: P.args, **options: P.kwargs) -> R:
            try:
                bound = signature.bind(*values, **options)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            bound.apply_defaults()
            return function(**bound.arguments)

        taken.__signature__ = signature  # type: ignore[attr-defined]
        taken.__annotations__ = {**{own.name: hints[own.name] for own in named}, "return": returned}
        return documented(arguments)(taken)

    return decorate


def documented(*settings: type[Settings]) -> Callable[[F], F]:
    """Decorate a function: fill in the texts of shared parameters in its docstring, and align the entries.

    A line `{options}` of the docstring becomes an entry for each option of the settings that has none.
    """

    def fill(function: F) -> F:
        named, doc = inspect.signature(function).parameters, function.__doc__ or ""
        options = [entry for kind in settings for entry in declared(kind).values()]  # type: ignore[arg-type]
        texts = {entry.name: entry.option.described() for entry in options}
        described = {name for names in _ENTRY.findall(doc) for name in names[0].split(", ")}
        listed = [name for name in named if name in texts and name not in described]
        doc = doc.replace("    {options}\n", "".join(f"    {name}  {texts[name]}\n" for name in listed))
        function.__doc__ = _BLOCK.sub(_aligned, doc)
        OPTIONS[f"{function.__module__}.{function.__qualname__}"] = settings
        return function

    return fill


def _aligned(block: re.Match[str]) -> str:
    entries = [(entry[1], " ".join(entry[2].split())) for entry in _ENTRY.finditer(block[0])]
    start = 6 + max(len(names) for names, _ in entries)
    lines = []
    for names, text in entries:
        shared = re.sub(r"\{(\w+)\}", lambda match: PARAMETERS[match[1]], text)
        head = f"    {names}".ljust(start)
        lines.append(textwrap.fill(shared, 120, initial_indent=head, subsequent_indent=" " * start) + "\n")
    return "".join(lines)
