"""What a run computes and writes, once it has begun."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcvdj.errors import option
from hpcvdj.recombination.makers import Makers
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.results.outputs import Output
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.run import Run
from hpcvdj.values.input_slices import SlicedInput
from hpcvdj.values.plan import Plan


@dataclass(frozen=True)
class Task:
    """What a run computes and writes.

    files      where the run saves finished work
    facts      what results record, as far as it is known before a row is read
    check      raises InputError unless the reference fits the input; returns what results record of that, on root
    """

    sliced: SlicedInput
    reference: Reference
    config: Plan
    output: Output
    files: SliceFiles
    facts: dict[str, Any]
    check: Callable[[], dict[str, Any]]
    run: Run


def recorded_makers(makers: Makers | None) -> dict[str, Any]:
    """Return what results record of who makes the junctions, if that is known."""
    return {} if makers is None else {"makers": makers.recorded()}


def while_written(target: Path) -> str:
    """Return the end of the message if a signal comes while the target is written."""
    return f"while {target} was written; {option('resume', True)} continues"
