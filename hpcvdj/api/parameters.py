"""Parameters that several functions share: each is described once, here or where its class is."""

import inspect
import re
import textwrap
from collections.abc import Callable, Collection
from functools import partial, wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

PARAMETERS = {
    "junctions": "a table with the AIRR columns v_call, j_call and junction: a pandas or polars DataFrame, a pyarrow "
    "Table (or any object with the Arrow stream interface), or the path of a file that `read_table` reads",
    "germline": "a Germline, the name of one that comes with hpcvdj (`human_trb`) or of a species (`human`, for all "
    "its loci), the path of a germline table, or a list of these",
    "max_n": "the largest number of n-nucleotides; `all` goes up to the longest CDR3's length",
    "backend": "`auto` takes a GPU if there is one, `cuda` requires one, `cpu` does not use it",
    "d_forms": "`paper` counts D forms once for each pair of chew-backs, `distinct` each string once per gene",
    "sequence_field": "the column to read: `junction`, whose Cys and Phe/Trp codons are removed, or `cdr3`",
    "ambiguous_calls": "rows with several calls: `exclude`, or use the `first`",
    "unlisted_alleles": "rows with an allele that the germline table lacks, of a gene that it lists: `exclude`, or use "
    "the gene's `first`",
    "model": "a Model, the name of one (`human_trb`; `hpcvdj.models()` lists them), or a folder in IGoR's format; with "
    "`:published` after it, without hpcvdj's corrections of alleles",
    "genes": "`call`: of scenarios with the V and J alleles that the calls name; `any`: of all scenarios",
    "joint": "take P(V, D, J) as a model of IGH has it; by default P(V) P(D, J), as in OLGA",
    "ties": "`auto`: V genes that reads hardly tell apart, such as TRBV12-3 and TRBV12-4, are taken together",
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


def documented(function: F) -> F:
    """Fill in the texts of shared parameters in a function's docstring, and align its entries."""
    function.__doc__ = _BLOCK.sub(_aligned, function.__doc__ or "")
    return function


def _aligned(block: re.Match[str]) -> str:
    entries = [(entry[1], " ".join(entry[2].split())) for entry in _ENTRY.finditer(block[0])]
    start = 6 + max(len(names) for names, _ in entries)
    lines = []
    for names, text in entries:
        shared = re.sub(r"\{(\w+)\}", lambda match: PARAMETERS[match[1]], text)
        head = f"    {names}".ljust(start)
        lines.append(textwrap.fill(shared, _WIDTH, initial_indent=head, subsequent_indent=" " * start) + "\n")
    return "".join(lines)


def unfolding(
    *, without: Collection[str] = (), **plans: Callable[..., Any]
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a function the parameters of its plans: classes or functions, whose options become its own keywords.

    The function receives each plan as a `functools.partial` with the options that were given.  Its docstring takes the
    plan's entries where it has a line `{plan}`.

    without  options of plans that are not offered
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        own = inspect.signature(function)
        offered: dict[str, dict[str, inspect.Parameter]] = {}
        for name, plan in plans.items():
            # An option of an earlier plan is not offered again.
            taken = {*without, *own.parameters, *(option for options in offered.values() for option in options)}
            offered[name] = _options(plan, taken)

        @wraps(function)
        def unfolded(*args: Any, **options: Any) -> R:
            made = {
                name: partial(plan, **{option: options.pop(option) for option in offered[name] if option in options})
                for name, plan in plans.items()
            }
            return function(*args, **options, **made)

        added = [option for options in offered.values() for option in options.values()]
        kept = [parameter for name, parameter in own.parameters.items() if name not in plans]
        unfolded.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        doc = function.__doc__ or ""
        for name, plan in plans.items():
            doc = doc.replace(f"    {{{name}}}\n", _entries(plan, offered[name]))
        unfolded.__doc__ = doc
        return documented(unfolded)

    return decorate


def _options(plan: Callable[..., Any], without: Collection[str]) -> dict[str, inspect.Parameter]:
    """The parameters of a plan that have a default, as keywords."""
    parameters = inspect.signature(plan).parameters.items()
    has_default = {name: own for name, own in parameters if own.default is not own.empty and name not in without}
    return {name: own.replace(kind=own.KEYWORD_ONLY) for name, own in has_default.items()}


def _entries(plan: Callable[..., Any], options: Collection[str]) -> str:
    """The entries of a plan's docstring that describe some options."""
    kept, lines = False, []
    for line in inspect.cleandoc(plan.__doc__ or "").splitlines():
        entry = re.match(r"(\w+(?:, \w+)*)  +\S", line)
        if entry:
            kept = any(name in options for name in entry[1].split(", "))
        elif not line.startswith("  "):
            kept = False
        if kept:
            lines.append(f"    {line}\n")
    return "".join(lines)
