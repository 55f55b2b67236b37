"""Input larger than memory: each slice is read, counted and written into a part of the result by one rank."""

import json
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import HpcvdjError, InputError, option
from hpcvdj.kernels.backends import Backend
from hpcvdj.repertoires.inputs import Inputs, Slice, cut, dealt, read_slices
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.results import parts
from hpcvdj.results.reader import Result
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.results.writer import result_writer
from hpcvdj.runs.folder import RunFolder, differences
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.run import Run
from hpcvdj.storage.opening import damage
from hpcvdj.values.compute import compute
from hpcvdj.values.plan import Plan
from hpcvdj.values.summary import STAGES, Summary, attributes_of, summary_of

log = logging.getLogger(__name__)


def count_in_slices(
    inputs: Inputs,
    reference: Reference,
    config: Plan,
    run: Run,
    rows: int,
    started: float,
    further: Mapping[str, Any],
) -> Summary:
    """Slice by slice into the parts of a result; finished parts are the checkpoint."""
    run.from_root(config.require_sliceable)
    if not inputs.together:
        inputs = surveyed(inputs, run)
    target = run.target
    assert target is not None
    attributes = run.from_root(lambda: {**attributes_of(inputs, reference, config, config, run), **further})
    folder, facts = run.open_folder(
        run.from_root(lambda: parts.free_suffix(target)),
        attributes["identity"],
        parts.PART,
        {"slice_rows": rows},
    )
    rows = int(facts["slice_rows"])
    slices = cut(inputs.tables, rows)
    # Root alone looks, before any rank writes: all ranks must see the same parts.
    left = run.from_root(lambda: [part for part in slices if not parts.part_path(folder, part.index).exists()])
    # Nothing of a part that an earlier run left is read again when parts are joined.
    saved = [part for part in slices if part not in left]
    run.each(
        dealt(saved, run.rank, run.ranks),
        lambda part: parts.require_readable(parts.part_path(folder, part.index)),
        f"with the part files in {folder.path} saved; {option('resume', True)} continues",
    )
    # Slices are mostly read and written, so ranks may share a GPU.
    backend = run.bind(config.backend, strict=config.strict_binding, sharing_pays=True)
    run.request.begin()
    work = _SliceWork(inputs, reference, config, backend, folder, attributes)
    dealt_slices = dealt(left, run.rank, run.ranks)
    with Progress(sum(part.rows for part in dealt_slices), "rows", shown=run.shown) as progress:

        def count_slice(item: tuple[Slice, Iterable[pa.RecordBatch]]) -> None:
            work.count(run, *item)
            progress.advance(item[0].rows)

        read = read_slices(inputs, dealt_slices, run.raise_if_stopping)
        try:
            run.each(
                read, count_slice, f"with the part files in {folder.path} saved; {option('resume', True)} continues"
            )
        except HpcvdjError:
            if run.is_root:
                folder.leave(parts.PART)
            raise
    slowest = run.slowest(*work.seconds)
    ranks = run.rank_facts(backend)
    begun_joining = time.perf_counter()

    def join() -> Summary:
        inputs.require_unchanged()
        total = _facts_of_parts(folder)
        missing = sum(part.rows for part in slices) - total.rows_read
        if missing:
            raise InputError(
                f"{folder.path}: its parts lack {missing:,} rows of the run; {option('overwrite', True)} starts again"
            )
        quantity = config.method_class().quantity()
        joint = {**attributes, **total.attributes(), "slice_rows": rows, **quantity.attributes()}
        parts.join(target, folder, joint, ranks, inputs, overwrite=run.overwrite)
        if run.overwrite:
            parts.discard_parts(target)
        return summary_of(total, quantity, config, inputs, backend, run)

    summary = run.from_root(join)
    ended = time.perf_counter()
    read_seconds, kernel, write = slowest
    seconds = (read_seconds, 0.0, kernel, 0.0, 0.0, write + ended - begun_joining, ended - started)
    return replace(summary, seconds=dict(zip(STAGES, seconds, strict=True)))


def _facts_of_parts(folder: RunFolder) -> SliceFacts:
    """What the parts in a folder have together; InputError if one is damaged or they do not fit."""
    slices: list[SliceFacts] = []
    rows = 0
    for path in sorted(folder.path.glob(parts.PART)):
        with Result(path) as part, damage(path):
            facts = part.provenance
            changes = differences(json.loads(facts["identity"]), folder.identity)
            if changes:
                raise InputError(f"{path}: is of another run ({changes}); start again with {option('overwrite', True)}")
            if int(facts.get("first_row", 0)) != rows:
                raise InputError(
                    f"{path}: is of another run, or a part before it is missing; start again with "
                    f"{option('overwrite', True)}"
                )
            recorded = {name: json.loads(facts[name]) for name in ("sums", "substituted_calls")}
            slices.append(
                SliceFacts(
                    first_row=rows,
                    rows_read=int(facts["rows_read"]),
                    counted=len(part),
                    sums=list(map(part.quantity.number, recorded["sums"])),
                    nonzero=int(facts["nonzero"]),
                    excluded=part.excluded_counts,
                    substituted=[(call, allele, replaced) for call, allele, replaced in recorded["substituted_calls"]],
                    pairs=[(v, j) for v, j, _ in part.pairs],
                )
            )
            rows += slices[-1].rows_read
    return SliceFacts.total(slices)


@dataclass
class _SliceWork:
    """Reads, counts and writes slices; `seconds` are those of the three."""

    inputs: Inputs
    reference: Reference
    config: Plan
    backend: Backend
    folder: RunFolder
    attributes: dict[str, Any]
    seconds: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))

    def count(self, run: Run, part: Slice, batches: Iterable[pa.RecordBatch]) -> None:
        """Count one slice into its part."""
        begun = time.perf_counter()
        config, method = self.config, self.config.method_class()
        last = part.first_row + part.rows
        tables = tuple(t for t in self.inputs.tables if t.first_row < last and t.first_row + t.rows > part.first_row)
        inputs = replace(self.inputs, tables=tables)
        junctions = inputs.read(self.reference, batches, part.first_row)
        problem = config.problem(junctions.repertoire, self.reference)
        read = time.perf_counter()
        path = parts.part_path(self.folder, part.index)
        with result_writer(path, junctions, method, method.quantity().width(problem)) as writer:
            computed = compute(problem, config, self.backend, run.alone(), writer)
            attributes = {**self.attributes, "first_row": part.first_row}
            facts = run.alone().rank_facts(self.backend)
            writer.finish(attributes, facts, computed.timings, inputs)
        kernel = float(computed.timings.kernel.sum())
        self.seconds += read - begun, kernel, time.perf_counter() - read - kernel
        log.info("rows %s to %s are counted", f"{part.first_row:,}", f"{last:,}")
