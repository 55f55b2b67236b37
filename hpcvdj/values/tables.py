"""From tables to a table with values, or to a result: in slices, or all rows at once.

In slices, each is read once, computed, and written with its values by one rank.  At once, root reads and writes, and
all ranks compute: so it is with methods that enumerate, and where the longest sequence decides what is computed.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.results.outputs import Output, output_of
from hpcvdj.results.slice_files import SAVED, SliceFiles
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.values.at_once import compute_at_once
from hpcvdj.values.input_slices import SlicedInput, estimated_rows
from hpcvdj.values.plan import Plan
from hpcvdj.values.slices import compute_slices
from hpcvdj.values.summary import STAGES, Summary, attributes_of, summary_of, with_digests
from hpcvdj.values.task import Task

TABLE_ROWS = 1 << 18
"""Rows of a slice of a table, at most: about 1 GB of memory for a rank if a row has 3 KB."""

FEWEST_ROWS = 1 << 16
"""Rows of a slice of a table, at least: 250,000 rows in slices of a quarter of that take half as long again."""

SLICES = 16
"""So many slices a table has, if they can have so few or many rows: whatever the number of ranks, for equal bytes."""

RESULT_ROWS = 1 << 22
"""Rows of a slice of a result: about 1.5 GB of memory for a rank."""

AT_ONCE_ROWS = 1 << 24
"""Rows of a result that is one file, at most."""

ALL_ROWS = 1 << 62
"""Rows of a slice that has all rows: they are computed at once."""

ACROSS_SLICES, WITHIN_SLICES = "across slices", "within slices"
"""Where ids must be different, as the run's folder records it."""

MOST_UNEVEN = 1.25
"""Of several tables, each rank computes some on its own, unless one had more than so many times the mean of all ranks:
then all ranks share each table, slice by slice."""


def compute_tables(
    inputs: Inputs,
    reference: Reference,
    config: Plan,
    run: Run,
    batch_rows: int | None = None,
    check: Callable[[], dict[str, Any]] = dict,
) -> Summary:
    """Compute what `config` says of tables into the target of `run`: what `hpcvdj count` and `hpcvdj pgen` do.

    reference   a germline table to count with, or a recombination model
    batch_rows  rows of a slice, in which ids must be different; 0 takes all rows at once; None chooses, and ids must be
                different in all rows
    check       raises InputError unless the reference fits the tables; returns what is recorded of that, on root

    What is written is the same for any number of ranks.  A signal that the run has seen ends it at a boundary:
    StoppedError, with what is done saved for `resume`.  HpcvdjError for bad input and failures; the target is then what
    it was before.  CompleteError if `resume` finds the target complete.
    """
    started = time.perf_counter()
    inputs = replace(inputs, reading=config.reads(inputs.reading))
    if batch_rows:
        run.from_root(config.require_sliceable)
    output = output_of(run, config.method_class().quantity())
    germline_files = reference.paths if isinstance(reference, Germline) else ()
    with run.exclusive(*inputs.files, *germline_files, folder=output.is_folder):
        if inputs.together:
            inputs = surveyed(inputs, run)

        def begin() -> tuple[Inputs, dict[str, Any], RunFolder, bool]:
            known = with_digests(inputs)
            facts = attributes_of(known, reference, config, run)
            folder = output.folder(facts["identity"])
            return known, facts, folder, output.begin(folder, inputs.files)

        inputs, facts, folder, overwrite = run.from_root(begin)
        rows = run.from_root(lambda: slice_rows(inputs, batch_rows, config, output))
        asked = {"slice_rows": rows, "ids": ACROSS_SLICES if batch_rows is None else WITHIN_SLICES}
        cut = run.from_root(lambda: folder.open(SAVED, asked, resume=run.resume, overwrite=run.overwrite))
        sliced = SlicedInput(inputs, int(cut["slice_rows"]), whole=output.has_rows)
        files = SliceFiles(folder, output.ending)
        task = Task(sliced, reference, config, output, files, facts, check, run, overwrite=overwrite)
        with files.kept(run):
            if sliced.size == ALL_ROWS or not output.has_rows:
                # Each part of a result records what all have.
                checked = run.from_root(check)
                task = replace(task, facts=facts | checked, check=dict)
            if sliced.size == ALL_ROWS:
                done = compute_at_once(task)
            else:
                done = compute_slices(task, across=cut["ids"] == ACROSS_SLICES)
    summary = summary_of(done.facts, done.makers, output.quantity, done.config, sliced.inputs, done.backend, run)
    seconds = *done.seconds, time.perf_counter() - started
    return replace(summary, seconds=dict(zip(STAGES, seconds, strict=True)))


def slice_rows(inputs: Inputs, asked: int | None, config: Plan | None = None, output: Output | None = None) -> int:
    """Rows of a slice, or `ALL_ROWS`.

    asked   what the user asks for; 0 for all rows
    config  what is computed, if something is
    """
    if asked is not None or not (config is None or config.sliceable):
        return asked or ALL_ROWS
    rows = inputs.rows if inputs.together else estimated_rows(inputs.tables[0])
    if output is not None and not output.has_rows:
        return RESULT_ROWS if rows > AT_ONCE_ROWS else ALL_ROWS
    return min(TABLE_ROWS, max(FEWEST_ROWS, -(-rows // SLICES)))
