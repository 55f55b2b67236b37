"""Descriptions of parameters that several functions share.  Other parameters are described by their settings."""

import inspect
import re
import textwrap
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from hpcvdj.options import Settings, declared

F = TypeVar("F", bound=Callable[..., Any])

PARAMETERS = {
    "junctions": "a table with the AIRR columns v_call, j_call and junction: a pandas or polars DataFrame, a pyarrow "
    "Table (or any object with the Arrow stream interface), or the path of a file that `read_table` reads",
    "germline": "a Germline, the name of one that comes with hpcvdj (`human_trb`) or of a species (`human`, for all "
    "its loci), the path of a germline table, or a list of these",
    "backend": "`auto` takes a GPU if there is one, `cuda` requires one, `cpu` does not use it",
    "model": "a Model, the name of one (`human_trb`; `hpcvdj.models()` lists them), or a folder in IGoR's format; with "
    "`:published` after it, without hpcvdj's corrections of alleles",
    "joint": "take P(V, D, J) as a model of IGH has it; by default P(V) P(D, J), as in OLGA",
    "force": "go on if the model cannot make half of the rows",
    "results": "the result files of `hpcvdj count`, or one",
    "motif_result": "a MotifResult, or the path of a result file of `hpcvdj motifs compare`",
    "overwrite": "replace what is there",
}
"""Descriptions of parameters.  In docstrings, `{name}` in an entry stands for the description of `name`."""

_BLOCK = re.compile(r"^(?:    \w+(?:, \w+)*  +\S.*\n(?:     +\S.*\n)*)+", re.MULTILINE)
"""Consecutive entries of a docstring: one or more names, two or more blanks, and the meaning."""

_ENTRY = re.compile(r"^    (\w+(?:, \w+)*)  +(\S.*\n(?:     +\S.*\n)*)", re.MULTILINE)

OPTIONS: dict[str, tuple[tuple[type[Settings], ...], frozenset[str]]] = {}
"""The settings whose options a function has as parameters, and the options that it lacks, by its name."""


def documented(*settings: type[Settings], without: Collection[str] = ()) -> Callable[[F], F]:
    """Decorate a function: fill in the texts of shared parameters in its docstring, and align the entries.

    A line `{options}` of the docstring becomes an entry for each option of the settings.

    without  options that the function does not have
    """

    def fill(function: F) -> F:
        named, doc = inspect.signature(function).parameters, function.__doc__ or ""
        options = [entry for kind in settings for entry in declared(kind).values()]  # type: ignore[arg-type]
        texts = {entry.name: entry.option.described() for entry in options}
        described = {name for names in _ENTRY.findall(doc) for name in names[0].split(", ")}
        listed = [name for name in named if name in texts and name not in described]
        doc = doc.replace("    {options}\n", "".join(f"    {name}  {texts[name]}\n" for name in listed))
        function.__doc__ = _BLOCK.sub(_aligned, doc)
        OPTIONS[f"{function.__module__}.{function.__qualname__}"] = settings, frozenset(without)
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
