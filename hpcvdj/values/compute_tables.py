"""Compute tables to a table with values, or to a result: in slices, or all rows at once.

In slices, one rank reads a slice, computes it, and writes it with its values.  At once, root reads and writes, and all
ranks compute.  Methods that enumerate need all rows at once, as do plans that depend on the longest sequence.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.repertoires.writers import is_table
from hpcvdj.results.outputs import Output, TableOutput
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.values.at_once import compute_at_once
from hpcvdj.values.input_slices import SlicedInput, estimated_rows
from hpcvdj.values.plan import Plan
from hpcvdj.values.slices import compute_slices
from hpcvdj.values.summary import STAGES, Summary, attributes_of, with_digests
from hpcvdj.values.task import Task

TABLE_ROWS = 1 << 18
"""The most rows of a slice of a table: a rank needs about 1 GB of memory if a row has 3 KB, and as much again for each
thread that writes slices, of which there is one for four of the rank's threads."""

FEWEST_ROWS = 1 << 16
"""The fewest rows of a slice of a table: with a quarter of that, 250,000 rows take half as long again."""

SLICES = 16
"""Slices of a table, within these limits.  The number does not depend on the ranks, so the bytes are equal."""

RESULT_ROWS = 1 << 22
"""Rows of a slice of a result: a rank needs about 1.5 GB of memory."""

AT_ONCE_ROWS = 1 << 24
"""The most rows of a result that is one file."""

ALL_ROWS = 1 << 62
"""Rows of a slice that has all rows, which are computed at once."""

ACROSS_SLICES, WITHIN_SLICES = "across slices", "within slices"
"""Where ids must be unique, as the run's folder records it."""

MOST_UNEVEN = 1.25
"""Ranks compute several tables each on its own, unless a rank had more than so many times the mean work.  Then all
ranks share each table, slice by slice."""


def compute_tables(
    inputs: Inputs,
    reference: Reference,
    config: Plan,
    run: Run,
    batch_rows: int | None = None,
    check: Callable[[], dict[str, Any]] = dict,
) -> Summary:
    """Compute the plan `config` for tables into the target of `run`, as `hpcvdj count` and `hpcvdj pgen` do.

    reference   a germline table to count with, or a recombination model
    batch_rows  rows of a slice, within which ids must be unique; 0 takes all rows at once; None chooses the slices, and
                ids must be unique in all rows
    check       raises InputError unless the reference fits the tables; returns what results record of that, on root

    The output is the same for any number of ranks.  Raises StoppedError at a boundary after a signal; finished work is
    then saved for `resume`.  Raises CompleteError if `resume` finds the target complete, and HpcvdjError for bad input
    and failures; the target is then unchanged.
    """
    started = time.perf_counter()
    inputs = replace(inputs, reading=config.reads(inputs.reading))
    if batch_rows:
        run.from_root(config.require_sliceable)
    output = _output_of(run, config.method_class().quantity())
    germline_files = reference.paths if isinstance(reference, Germline) else ()
    with run.exclusive(*inputs.files, *germline_files, folder=output.is_folder):
        if inputs.together:
            inputs = surveyed(inputs, run)

        def begin() -> tuple[Inputs, dict[str, Any], RunFolder]:
            digested = with_digests(inputs)
            facts = attributes_of(digested, reference, config, run)
            folder = output.folder(facts["identity"])
            output.begin(folder, inputs.files)
            return digested, facts, folder

        inputs, facts, folder = run.from_root(begin)
        rows = run.from_root(lambda: slice_rows(inputs, batch_rows, config, output))
        asked = {"slice_rows": rows, "ids": ACROSS_SLICES if batch_rows is None else WITHIN_SLICES}
        with run.continuing(folder, asked, reads=True) as cut:
            sliced = SlicedInput(inputs, int(cut["slice_rows"]), all_columns=output.has_rows)
            files = SliceFiles(folder, output.ending)
            task = Task(sliced, reference, config, output, files, facts, check, run)
            if sliced.size == ALL_ROWS or not output.has_rows:
                # Each part of a result records the check of all tables.
                checked = run.from_root(check)
                task = replace(task, facts=facts | checked, check=dict)
            if sliced.size == ALL_ROWS:
                done = compute_at_once(task)
            else:
                done = compute_slices(task, across=cut["ids"] == ACROSS_SLICES)
    return replace(done, seconds=done.seconds | {STAGES[-1]: time.perf_counter() - started})


def _output_of(run: Run, quantity: Quantity) -> Output:
    """Return the output of a run, by the name of its target."""
    assert run.target is not None
    if is_table(run.target):
        return TableOutput(run, quantity)
    # Tables need no HDF5, which is slow to import.
    from hpcvdj.results.result_output import ResultOutput

    return ResultOutput(run, quantity)


def slice_rows(inputs: Inputs, asked: int | None, config: Plan | None = None, output: Output | None = None) -> int:
    """Return the rows of a slice, or `ALL_ROWS`.

    asked   rows that the user asks for; 0 for all rows
    config  the plan, if values are computed
    """
    if asked is not None or not (config is None or config.sliceable):
        return asked or ALL_ROWS
    rows = inputs.rows if inputs.together else estimated_rows(inputs.tables[0])
    if output is not None and not output.has_rows:
        return RESULT_ROWS if rows > AT_ONCE_ROWS else ALL_ROWS
    return min(TABLE_ROWS, max(FEWEST_ROWS, -(-rows // SLICES)))
