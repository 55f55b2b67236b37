"""Parameters that several functions share: each is described once, here or where its settings declare it."""

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
"""What parameters mean.  A docstring takes the text where an entry has `{name}`."""

_BLOCK = re.compile(r"^(?:    \w+(?:, \w+)*  +\S.*\n(?:     +\S.*\n)*)+", re.MULTILINE)
"""The entries of a docstring, one after another: a name or several, two blanks or more, and what it means."""

_ENTRY = re.compile(r"^    (\w+(?:, \w+)*)  +(\S.*\n(?:     +\S.*\n)*)", re.MULTILINE)
_WIDTH = 120


OPTIONS: dict[str, tuple[tuple[type[Settings], ...], frozenset[str]]] = {}
"""The settings whose options a function has as parameters, and those that it has not, by its name."""


def documented(*settings: type[Settings], without: Collection[str] = ()) -> Callable[[F], F]:
    """Fill in the texts of shared parameters in a function's docstring, and align its entries.

    Where it has a line `{options}`, it gets an entry for each option of the settings.

    without  options that the function does not have
    """

    def fill(function: F) -> F:
        named, doc = inspect.signature(function).parameters, function.__doc__ or ""
        options = [own for kind in settings for own in declared(kind).values()]  # type: ignore[arg-type]
        texts = {own.name: own.option.described() for own in options}
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
        lines.append(textwrap.fill(shared, _WIDTH, initial_indent=head, subsequent_indent=" " * start) + "\n")
    return "".join(lines)
