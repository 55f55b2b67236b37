"""Compute the input in slices: one rank reads a slice, computes it, and writes it with its values.

A rank that has finished a slice takes the next one, so a rank with other work takes fewer slices.  Finished slices are
the checkpoint.  At the end, root joins them.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, log
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.makers import Makers
from hpcvdj.repertoires.inputs import without_rows
from hpcvdj.repertoires.junctions import FirstRows
from hpcvdj.results.outputs import ComputedRows
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.results.slice_files import SliceArrays, SliceFiles
from hpcvdj.runs.progress import Progress
from hpcvdj.values.compute import ArrayStore, compute
from hpcvdj.values.input_slices import InputSlice, estimated_rows
from hpcvdj.values.repeated_ids import first_rows, id_hashes, rows_with_repeated_hashes
from hpcvdj.values.summary import Summary, summary_of
from hpcvdj.values.task import Task, recorded_makers, while_written

IDS = "sorted_ids"
"""The array of the `id_hashes` of a slice.  A slice has it if its ids must differ from those of other slices."""

JUDGED = "judged"
"""The array of the `Plan.judged_values` of a slice: which junctions anyone would make depends on all slices."""


def compute_slices(task: Task, *, across: bool) -> Summary:
    """Compute and write the input slice by slice, and join the slices.

    across  whether ids must be unique across all slices
    """
    run, output, files = task.run, task.output, task.files
    work = _SliceWork(task, across=across)
    work.compute_all()
    read, prepare, kernel, write = run.slowest(*work.seconds, sum(work.writing))
    ranks = run.rank_facts(work.backend)
    begun = time.perf_counter()

    def join() -> tuple[SliceFacts, Makers | None]:
        inputs = work.sliced.inputs
        inputs.require_unchanged()
        total = _total(files, output.quantity, work.sliced.rows or 0)
        makers = Makers.of(task.config.judged, SliceArrays(files, JUDGED)) if task.config.judged else None
        facts = task.facts | work.checked | total.attributes() | recorded_makers(makers)
        output.join(files, inputs, facts, ranks, work.sliced.size)
        return total, makers

    total, makers = run.root_works(join, while_written(output.target))
    seconds = read, prepare, kernel, 0.0, 0.0, write + time.perf_counter() - begun
    return summary_of(task, total, makers, task.config, work.backend, seconds)


def _total(files: SliceFiles, quantity: Quantity, rows: int) -> SliceFacts:
    """Return the facts of all slices.  Raise InputError unless they have each of the `rows` of the input once."""
    slices, first = list[SliceFacts](), 0
    for index in files.finished:
        slices.append(files.read(index, partial(SliceFacts.from_recorded, quantity=quantity)))
        if slices[-1].first_row != first:
            raise InputError(f"{files.rows(index)}: the part before it is missing; {files.remedy}")
        first += slices[-1].rows_read
    if first != rows:
        raise InputError(f"{files.folder.path}: its parts lack {rows - first:,} rows; {files.remedy}")
    return SliceFacts.total(slices)


class _SliceWork:
    """Reads, computes and writes slices.

    backend  the backend of this rank
    seconds  float64 [3]: seconds that it took to read, to load the kernel, and to compute
    writing  seconds that it took to write each slice, in threads beside each other
    checked  what root's check returned
    """

    def __init__(self, task: Task, *, across: bool) -> None:
        self.task, self.files, self.run, self.sliced = task, task.files, task.run, task.sliced
        self._across = across
        self._first: FirstRows = {}
        self.seconds, self.writing, self.checked = np.zeros(3), list[float](), dict[str, Any]()

    def compute_all(self) -> None:
        """Compute the unfinished slices, then again the slices that have ids of earlier slices."""
        run, files, config = self.run, self.files, self.task.config
        files.require_all_intact(run)
        # Ranks spend most of the time on reading and writing, so they may share a GPU.
        self.backend = run.bind(config.backend, strict=config.strict_binding, sharing_pays=True)
        run.request.begin()
        self._compute_missing(self.task.check)
        while self._across and run.from_root(lambda: len(files.finished)) > 1:
            self._first = self._forget_repeated()
            if not self._first:
                return
            self._compute_missing()

    def _compute_missing(self, check: Callable[[], dict[str, Any]] = dict) -> None:
        """Compute the unfinished slices.  Root begins with the check, while the other ranks compute."""
        run = self.run
        finished = run.from_root(lambda: self.files.finished)
        rows = self.sliced.rows if self.sliced.rows is not None else estimated_rows(self.sliced.inputs.tables[0])
        progress = Progress(rows, "rows", shown=run.shown)

        def work() -> Iterator[InputSlice]:
            if run.is_root:
                self.checked |= check()
            shown.enter_context(progress)
            progress.skip(min(rows, len(finished) * self.sliced.size))
            begun = time.perf_counter()
            for part in self.sliced.slices(self.files.taken(finished), run.raise_if_stopping):
                self.seconds[0] += time.perf_counter() - begun
                yield part
                begun = time.perf_counter()
            self.seconds[0] += time.perf_counter() - begun

        with ExitStack() as shown:
            run.each(work(), lambda part: self._compute(part, progress), self.files.saved)
        if not self.sliced.rows:
            raise without_rows(self.sliced.inputs.path).everywhere()

    def _compute(self, part: InputSlice, progress: Progress) -> Callable[[], None] | None:
        """Read and compute a slice.  Return how to write it, unless it is written, as the large slices of a result."""
        task, begun = self.task, time.perf_counter()
        # Other ranks have the slices before this one.
        progress.advance(max(0, part.first_row - progress.done))
        inputs = replace(self.sliced.inputs, tables=part.tables)
        batches = self.sliced.packed(part)
        # The first row with an id may be in a table of another slice.
        sources = self.sliced.inputs if self._first else inputs
        between = self.run.raise_if_stopping
        junctions = sources.read(task.reference, batches, part.first_row, between, self._first)
        problem = task.config.problem(junctions.repertoire, task.reference)
        store = ArrayStore(problem, task.config.method_class(), progress)
        task.output.require_columns(part.tables, store.values.shape[1])
        read = time.perf_counter()
        alone = self.run.alone()
        timings, prepare = compute(problem, task.config, self.backend, alone, store)
        ranks = alone.rank_facts(self.backend)
        self.seconds += read - begun, prepare, float(timings.kernel.sum())

        def write() -> None:
            begun = time.perf_counter()
            batches, quantity = self.sliced.written(part), task.output.quantity
            rows = ComputedRows(inputs, junctions, quantity, store.values, timings, batches, part.first_row)
            task.output.write_slice(self.files, part.index, rows, task.facts, ranks)
            only = part.index == 0 and part.rows < self.sliced.size
            arrays = dict[str, NDArray[Any]]()
            if self._across and not only:
                arrays[IDS] = id_hashes(junctions, part.tables)
            if task.config.judged:
                arrays[JUDGED] = task.config.judged_values(problem, store.values)
            self.files.finish(part.index, rows.facts.recorded(), arrays)
            self.writing.append(time.perf_counter() - begun)
            log.debug("rows %s to %s are written", f"{part.first_row:,}", f"{part.first_row + part.rows:,}")

        if task.output.has_rows:
            return write
        write()
        return None

    def _forget_repeated(self) -> FirstRows:
        """Return the first row with each id that repeats in a later slice, and forget these slices."""
        run, files = self.run, self.files
        share = list[NDArray[np.int64]]()
        stored = SliceArrays(files, IDS)
        run.each([run.rank], lambda rank: share.append(rows_with_repeated_hashes(stored, rank, run.ranks)), files.saved)
        rows = run.gather(share)

        def forget() -> FirstRows:
            repeated = np.concatenate([part for parts in rows or [] for part in parts])
            if not len(repeated):
                return {}
            first, later = first_rows(self.sliced.inputs, repeated, run.raise_if_stopping)
            for index in {row // self.sliced.size for row in later}:
                files.forget(index)
            return first

        return run.root_works(forget, files.saved)
