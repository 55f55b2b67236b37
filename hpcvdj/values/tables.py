"""A run: tables in, a result out; as a whole, or slice by slice if the input is larger than memory."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hpcvdj.errors import CompleteError, InputError, option
from hpcvdj.kernels.method import Method, Missing
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions, Reference
from hpcvdj.results import parts
from hpcvdj.results.reader import Result
from hpcvdj.results.writer import STATE, ResultWriter, result_writer
from hpcvdj.runs.driver import Partial
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.progress import told_if_slow
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.values.compute import compute, shared_repertoire
from hpcvdj.values.plan import Plan
from hpcvdj.values.slices import count_in_slices
from hpcvdj.values.summary import STAGES, Summary, attributes_of, summary_of

AUTO_ROWS = 1 << 24
"""Rows above which tables that say how many they have are counted in slices by default."""

SLICE_ROWS = 1 << 22
"""Rows of a slice then: about 1.5 GB of memory for a rank."""


def count_tables(
    inputs: Inputs,
    reference: Reference,
    config: Plan,
    run: Run,
    batch_rows: int | None = None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Summary:
    """Compute what `config` says of tables into the result file of `run`: what `hpcvdj count` and `hpcvdj pgen` do.

    reference   a germline table to count with, or a recombination model
    batch_rows  rows of a slice; 0 counts all rows at once; None does so unless there are more than `AUTO_ROWS`
    facts       what the result records besides

    As a whole, root reads and writes, and every rank counts its share.  In slices, each slice is read, counted and
    written by one rank; a `sequence_id` that repeats in another slice is not noticed.

    A signal that the run has seen ends it at a boundary: StoppedError, with what is done saved for `resume`.
    HpcvdjError for bad input and failures; the target is then what it was before.  CompleteError if `resume` finds
    the result complete.
    """
    method = config.method_class()
    started = time.perf_counter()
    inputs = replace(inputs, reading=config.reads(inputs.reading))
    tables = reference.paths if isinstance(reference, Germline) else ()
    with run.exclusive(*inputs.files, *tables):
        if inputs.together:
            inputs = surveyed(inputs, run)
        rows = run.from_root(lambda: _slice_rows(inputs, method, batch_rows))
        try:
            if rows:
                return count_in_slices(inputs, reference, config, run, rows, started, facts)
            return _whole(inputs, reference, config, run, started, facts)
        except CompleteError:
            run.on_root(lambda: _require_undamaged(run.target))
            raise


def _require_undamaged(target: Path | None) -> None:
    """Raise InputError unless a complete result, and each of its parts, can be read."""
    assert target is not None
    try:
        with Result(target) as result:
            files = [target, *result.parts]
        for path in files:
            parts.require_readable(path)
    except InputError as error:
        raise InputError(f"{error}; {option('overwrite', True)} starts again") from None


def _slice_rows(inputs: Inputs, method: Method, asked: int | None) -> int:
    """Rows of a slice, or 0 to count all rows at once."""
    if asked is not None:
        return asked
    rows = inputs.rows if inputs.together else inputs.tables[0].open().known_rows
    return SLICE_ROWS if rows and rows > AUTO_ROWS and method.disjoint else 0


def _whole(
    inputs: Inputs, reference: Reference, config: Plan, run: Run, started: float, further: Mapping[str, Any]
) -> Summary:
    """All rows at once, with a checkpoint."""
    with told_if_slow(f"reading {inputs.path.name}", shown=run.is_root):
        junctions = run.root_steps(lambda: inputs.read(reference, between=run.raise_if_stopping), NOTHING_YET)
    repertoire = shared_repertoire(junctions.repertoire if junctions is not None else None, run)
    asked, config = config, run.from_root(lambda: config.settled(repertoire.longest))
    problem = config.problem(repertoire, reference)
    method, target = config.method_class(), run.target
    assert target is not None
    attributes: dict[str, Any] = {}
    if junctions is not None:
        attributes = {**attributes_of(inputs, reference, config, asked, run), **further}
    read = time.perf_counter()
    folder, _ = run.open_folder("checkpoint", attributes.get("identity", {}), STATE)
    with ExitStack() as stack:
        stack.callback(lambda: folder.leave(STATE) if run.is_root else None)
        writer, begun, missing = _writer(stack, run, junctions, method, method.quantity().width(problem), folder)
        opened = time.perf_counter()
        run.request.begin()
        backend = run.bind(config.backend, strict=config.strict_binding)
        computed = compute(problem, config, backend, run, writer, begun, missing)
        counted = time.perf_counter()
        ranks = run.rank_facts(backend)

        def finish() -> Summary:
            assert writer is not None
            writer.finish({**attributes, "checkpoint_seconds": computed.save}, ranks, computed.timings, inputs)
            # The result gets its name when the stack unwinds; only then may the checkpoint go.
            stack.pop_all().close()
            folder.remove()
            if run.overwrite:
                parts.discard_parts(target)
            return summary_of(writer.facts(), writer.quantity, config, inputs, backend, run)

        summary = run.from_root(finish)
    ended = time.perf_counter()
    timings = computed.timings
    seconds = (
        read - started, computed.prepare, float(timings.kernel.sum()), float(timings.reduce.sum()), computed.save,
        opened - read + computed.store + ended - counted, ended - started,
    )  # fmt: skip
    return replace(summary, seconds=dict(zip(STAGES, seconds, strict=True)))


def _writer(
    stack: ExitStack, run: Run, junctions: Junctions | None, method: Method, columns: int, folder: RunFolder
) -> tuple[ResultWriter | None, Partial | None, Missing]:
    """Root's writer, with what an earlier run saved; on every rank the unit that was under way, and what is missing."""

    def open_it() -> tuple[ResultWriter, Partial | None]:
        assert junctions is not None
        assert run.target is not None
        overwrite = run.overwrite or run.resume
        writer = result_writer(run.target, junctions, method, columns, overwrite=overwrite, folder=folder)
        opened = stack.enter_context(writer)
        return opened, opened.restore()

    writer, cut = run.on_root(open_it) or (None, None)
    begun, missing = run.from_root(lambda: (replace(cut, values=None) if cut else None, writer.missing(cut)))  # type: ignore[union-attr]
    return writer, cut or begun, missing
