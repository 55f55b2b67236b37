"""Tables with values: each slice of the input is read once, computed, and written with its values by one rank.

Finished slices are the checkpoint.  At the end root joins them, and writes the facts of the table beside it.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.errors import CompleteError, HpcvdjError, InputError, option
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.batches import with_columns
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions, Reference
from hpcvdj.repertoires.writers import writer_of
from hpcvdj.results.attributes import declared
from hpcvdj.results.facts import Facts, Targets
from hpcvdj.results.joining import Lookup, require_new_columns
from hpcvdj.results.part_tables import FINISHED, PartTables
from hpcvdj.results.schema import FORMAT, VERSION, exported_values
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import ArrayStore, compute
from hpcvdj.values.input_slices import InputSlice, SlicedInput, estimated_rows
from hpcvdj.values.plan import Plan
from hpcvdj.values.repeated_ids import FirstRows, first_rows, id_hashes, without_repeated
from hpcvdj.values.summary import STAGES, Summary, attributes_of, summary_of, with_digests

log = logging.getLogger(__name__)

TABLE_SLICE_ROWS = 1 << 18
"""Rows of a slice, at most: about 1 GB of memory for a rank if a row has 3 KB."""

FEWEST_ROWS = 1 << 12
"""Rows of a slice, at least."""

SLICES_OF_A_RANK = 4
"""Slices for each rank of several, so that none waits long for the last."""

ALL_ROWS = 1 << 62
"""Rows of a slice that has all rows."""

ACROSS_SLICES, WITHIN_SLICES = "across slices", "within slices"
"""Where ids must be different, as the run's folder records it."""


def compute_table(
    inputs: Inputs,
    reference: Reference,
    config: Plan,
    run: Run,
    batch_rows: int | None = None,
    further: Mapping[str, Any] = MappingProxyType({}),
) -> Summary:
    """Compute what `config` says of tables into the table of `run`, with its facts beside it.

    batch_rows  rows of a slice, in which ids must be different; 0 takes all rows at once; None chooses slices, across
                which ids must be different
    further     what the facts have besides

    The table is the same for any number of ranks.  Errors as of `count_tables`.
    """
    started = time.perf_counter()
    inputs = replace(inputs, reading=config.reads(inputs.reading))
    run.from_root(config.require_sliceable)
    germline_files = reference.paths if isinstance(reference, Germline) else ()
    assert run.target is not None
    kind = writer_of(run.target)
    with run.exclusive(*inputs.files, *germline_files, folder=kind.is_folder) as target:
        begun = run.from_root(lambda: _begin(inputs, reference, config, run))
        facts, overwrite = {**begun[0], **further}, begun[1]
        if inputs.together:
            inputs = surveyed(inputs, run)
        folder, record = _open_folder(inputs, run, facts, batch_rows)
        parts = PartTables(folder, kind, config.method_class().quantity())
        sliced = SlicedInput(inputs, int(record["slice_rows"]))
        work = _TableWork(sliced, reference, config, parts, run, across=record["ids"] == ACROSS_SLICES)

        def join() -> SliceFacts:
            sliced.inputs.require_unchanged()
            total = parts.total(sliced.rows or 0)
            described = {**facts, **parts.quantity.attributes(), **total.attributes()}
            table = {target: lambda path: parts.join(path, run.raise_if_stopping)}
            Targets(target).write(declared(described), table, overwrite=overwrite)
            folder.remove()
            return total

        with _leaving(run, folder):
            work.compute_all()
            slowest = run.slowest(*work.seconds)
            begun_joining = time.perf_counter()
            total = run.root_works(join, f"while {target} was written; {option('resume', True)} continues")
    ended = time.perf_counter()
    read, kernel, write = slowest
    seconds = read, 0.0, kernel, 0.0, 0.0, write + ended - begun_joining, ended - started
    summary = summary_of(total, parts.quantity, config, sliced.inputs, work.backend, run)
    return replace(summary, seconds=dict(zip(STAGES, seconds, strict=True)))


def _begin(inputs: Inputs, reference: Reference, config: Plan, run: Run) -> tuple[Facts, bool]:
    """The facts that are known before a row is read, and whether the table may be replaced.

    CompleteError if `resume` finds the table complete; InputError if it may not be written, or a table not be read.
    """
    assert run.target is not None
    described = attributes_of(with_digests(inputs), reference, config, config, run)
    facts = {"format": FORMAT, "format_version": VERSION, **described}
    targets, overwrite = Targets(run.target), run.overwrite
    if run.resume:
        try:
            overwrite = targets.resume(facts["identity"], overwrite=overwrite)
        except CompleteError:
            folder = _folder(run, facts)
            # A run that was killed once its table was written left the folder.
            if folder.is_same():
                folder.remove()
            raise
    targets.require(inputs.files, overwrite=overwrite)
    return facts, overwrite


@contextmanager
def _leaving(run: Run, folder: RunFolder) -> Iterator[None]:
    """Leave the folder with its finished parts if the block fails and a run can continue with them."""
    try:
        yield
    except HpcvdjError as error:
        if run.is_root and isinstance(error, InputError) and not run.resume:
            # Nobody continues with another input.
            folder.remove()
        elif run.is_root:
            folder.leave(FINISHED)
        raise


def _folder(run: Run, facts: Facts) -> RunFolder:
    assert run.target is not None
    return RunFolder(run.target.with_name(f"{run.target.name}.parts"), facts["identity"])


def _open_folder(inputs: Inputs, run: Run, facts: Facts, batch_rows: int | None) -> tuple[RunFolder, dict[str, Any]]:
    """The folder of the parts, and how its run cuts the input."""
    folder = _folder(run, facts)

    def open_it() -> dict[str, Any]:
        cut = {
            "slice_rows": _slice_rows(inputs, batch_rows, run.ranks),
            "ids": ACROSS_SLICES if batch_rows is None else WITHIN_SLICES,
        }
        return folder.open(FINISHED, cut, resume=run.resume, overwrite=run.overwrite)

    return folder, run.from_root(open_it)


def _slice_rows(inputs: Inputs, asked: int | None, ranks: int) -> int:
    """Rows of a slice: more slices than ranks, if there are several."""
    if asked is not None:
        return asked or ALL_ROWS
    if ranks == 1:
        return TABLE_SLICE_ROWS
    rows = inputs.rows if inputs.together else estimated_rows(inputs.tables[0])
    return min(TABLE_SLICE_ROWS, max(FEWEST_ROWS, -(-rows // (SLICES_OF_A_RANK * ranks))))


class _ShownStore(ArrayStore):
    """Values in memory, whose progress is shown."""

    def __init__(self, problem: Any, method: Method, progress: Progress) -> None:
        super().__init__(problem, method)
        self._progress = progress

    def put(self, unit: Unit, values: Any) -> None:
        super().put(unit, values)
        self._progress.advance(len(unit.rows) * len(unit.n_lengths) / self.values.shape[1])


class _TableWork:
    """Reads, computes and writes slices; `seconds` are those of the three, `backend` is this rank's.

    across  ids must be different in all slices
    """

    def __init__(
        self, sliced: SlicedInput, reference: Reference, config: Plan, parts: PartTables, run: Run, *, across: bool
    ) -> None:
        self.sliced, self.reference, self.config, self.parts, self.run = sliced, reference, config, parts, run
        self.method, self.quantity = config.method_class(), parts.quantity
        self._across, self._first = across, FirstRows()
        self._saved = f"with the part files in {parts.folder.path} saved; {option('resume', True)} continues"
        self.seconds = np.zeros(3)

    def compute_all(self) -> None:
        """Compute the slices that are not finished, and again those that have ids of earlier ones."""
        run, parts = self.run, self.parts
        finished = run.from_root(lambda: parts.finished)
        run.each(finished[run.rank :: run.ranks], parts.require_intact, self._saved)
        # Slices are mostly read and written, so ranks may share a GPU.
        self.backend = run.bind(self.config.backend, strict=self.config.strict_binding, sharing_pays=True)
        run.request.begin()
        self._compute_missing()
        while self._across and run.from_root(lambda: len(parts.finished)) > 1:
            self._first = run.root_works(self._forget_repeated, self._saved)
            if not self._first:
                return
            self._compute_missing()

    def _compute_missing(self) -> None:
        run = self.run
        finished = set(run.from_root(lambda: self.parts.finished))

        def wanted(index: int) -> bool:
            return index % run.ranks == run.rank and index not in finished

        rows = self.sliced.rows if self.sliced.rows is not None else estimated_rows(self.sliced.inputs.tables[0])
        with Progress(rows / run.ranks, "rows", shown=run.shown) as progress:
            progress.skip(min(rows, len(finished) * self.sliced.size) / run.ranks)
            slices = self.sliced.slices(wanted, run.raise_if_stopping)
            run.each(self._timed(slices), lambda part: self._compute(part, progress), self._saved)
        run.on_root(self._require_rows)

    def _require_rows(self) -> None:
        if not self.sliced.rows:
            raise InputError(f"{self.sliced.inputs.path}: no data rows; the table has a header line only")

    def _timed(self, slices: Iterator[InputSlice]) -> Iterator[InputSlice]:
        """The slices; notes how long it takes to read them."""
        while True:
            begun = time.perf_counter()
            part = next(slices, None)
            self.seconds[0] += time.perf_counter() - begun
            if part is None:
                return
            yield part

    def _compute(self, part: InputSlice, progress: Progress) -> None:
        begun = time.perf_counter()
        junctions = self._junctions(part)
        problem = self.config.problem(junctions.repertoire, self.reference)
        values = _ShownStore(problem, self.method, progress)
        require_new_columns(self.sliced.columns, part.tables[0].path, self.quantity, values.values.shape[1])
        read = time.perf_counter()
        timings = compute(problem, self.config, self.backend, self.run.alone(), values).timings
        nonzero = np.zeros(len(junctions), dtype=bool)
        sums = self.quantity.sums(values.values, nonzero)
        facts = SliceFacts.of(junctions, sums, int(nonzero.sum()), part.first_row)
        excluded = replace(junctions.excluded, row=junctions.excluded.row - part.first_row)
        lookup = Lookup(
            self.quantity, values.values, junctions.row - part.first_row, excluded, exported_values(junctions)
        )
        only = part.index == 0 and part.rows < self.sliced.size
        ids = id_hashes(junctions) if self._across and not only else None
        self.parts.write(part.index, self._with_values(part, lookup), facts, ids)
        kernel = float(timings.kernel.sum())
        self.seconds += read - begun, kernel, time.perf_counter() - read - kernel
        log.debug("rows %s to %s are written", f"{part.first_row:,}", f"{part.first_row + part.rows:,}")

    def _junctions(self, part: InputSlice) -> Junctions:
        inputs = replace(self.sliced.inputs, tables=part.tables)
        junctions = inputs.read(self.reference, self.sliced.packed(part), part.first_row, self.run.raise_if_stopping)
        return without_repeated(junctions, self._first, inputs) if self._first else junctions

    def _with_values(self, part: InputSlice, lookup: Lookup) -> Iterator[pa.RecordBatch]:
        row = 0
        for batch in self.sliced.written(part):
            yield with_columns(batch, lookup.columns(row, batch.num_rows))
            row += batch.num_rows
            self.run.raise_if_stopping()

    def _forget_repeated(self) -> FirstRows:
        """The first row with each id that repeats in a later slice; these slices are to be computed again."""
        rows = self.parts.rows_with_repeated_hashes()
        if not len(rows):
            return {}
        first, later = first_rows(self.sliced.inputs, rows, self.run.raise_if_stopping)
        for index in {row // self.sliced.size for row in later}:
            self.parts.forget(index)
        return first
