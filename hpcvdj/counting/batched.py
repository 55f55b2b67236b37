"""Huge input, slice by slice: each rank reads, counts and writes slices of its own, so that none holds all.

Input is one table, or several that are counted together: then a slice is some whole tables, or a piece of a large one.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.backends import Backend
from hpcvdj.counting.config import Config, Inputs
from hpcvdj.counting.count import count_loaded
from hpcvdj.counting.identity import already_done, facts_of_rank, identity_of, run_attributes
from hpcvdj.counting.whole import Summary
from hpcvdj.errors import InputError
from hpcvdj.methods import Problem, method_named
from hpcvdj.ranks.binding import bind
from hpcvdj.ranks.lock import alone_with
from hpcvdj.ranks.stopping import StopError, StopRequest, go_on, stopped
from hpcvdj.ranks.world import World, root_does
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.many import Share, changed, cut, dealt, digest_of, read_shares
from hpcvdj.repertoires.repertoire import columns_of, repertoire_of_slice
from hpcvdj.repertoires.slices import Slice, slices
from hpcvdj.repertoires.tables import file_digest, file_state, parquet_rows, require_columns
from hpcvdj.results import parts
from hpcvdj.results.file import Result, ResultWriter
from hpcvdj.storage import require_apart, require_writable

log = logging.getLogger(__name__)

AUTO_ROWS = 1 << 24
"""Rows of a Parquet file above which it is counted in slices unasked."""

SLICE_ROWS = 1 << 22
"""Rows of a slice then: about 1.5 GB of memory for a rank."""


def slice_rows(inputs: Inputs, method: str, asked: int | None) -> int:
    """Rows of a slice of the table or tables, or 0 to count them whole."""
    if asked is not None:
        return asked
    rows = sum(table.rows for table in inputs.tables) if inputs.tables else parquet_rows(inputs.junctions)
    return SLICE_ROWS if rows and rows > AUTO_ROWS and method_named(method).disjoint else 0


def count_in_slices(
    inputs: Inputs,
    germline: Germline,
    target: Path,
    config: Config,
    world: World,
    rows: int,
    *,
    overwrite: bool = False,
    resume: bool = False,
    request: StopRequest | None = None,
) -> Summary:
    """Count junctions in slices of `rows` rows into `target` and its parts: `hpcvdj count --batch-rows`.

    A slice is one rank's alone, from reading to writing; a finished part is what --resume need not do again.
    A sequence_id that repeats in another slice is not noticed.  Errors as of `hpcvdj.counting.whole.count_file`.
    """
    started = time.perf_counter()
    request = request or StopRequest()
    with alone_with(world, target):
        attributes = world.broadcast(
            root_does(
                world,
                lambda: _prepare(inputs, germline, target, config, world, rows, resume=resume, overwrite=overwrite),
            )
        )
        # Root alone looks, before any rank writes: all must see the same parts.
        shares = world.broadcast(root_does(world, lambda: _left(inputs, target, rows)))
        # A slice is mostly read and written: results/large_h200.
        backend = bind(config.backend, world, strict=config.strict_binding, sharing_pays=True)
        request.begin_counting()
        seconds, left = np.zeros(3), False
        watch = world.watch(request.asked)
        try:
            for one in _slices_of_rank(inputs, target, rows, shares, world, partial(go_on, watch)):
                seconds += _count_slice(one, inputs, germline, target, config, backend, attributes)
                go_on(watch)
        except StopError:
            left = True
        watch.end()
        if world.maximum(np.array([float(left)]))[0]:
            where = f"with the parts in {parts.folder_of(target)} safe; --resume goes on"
            raise stopped(world, request, where)
        slowest = world.maximum(seconds)
        ranks = world.gather(facts_of_rank(backend.describe(), backend.software()))
        joined = time.perf_counter()
        summary = root_does(world, lambda: _finish(inputs, target, rows, attributes, ranks or [], overwrite=overwrite))
        summary = world.broadcast(summary)
    ended = time.perf_counter()
    summary.hardware, summary.ranks = backend.describe(), world.size
    summary.seconds = {
        "read": float(slowest[0]), "prepare": 0.0, "kernel": float(slowest[1]), "reduce": 0.0, "save": 0.0,
        "write": float(slowest[2]) + ended - joined, "total": ended - started,
    }  # fmt: skip
    return summary  # type: ignore[no-any-return]


def _left(inputs: Inputs, target: Path, rows: int) -> list[Share]:
    """Root: the shares of tables counted together that have no part yet; InputError if a part is of no share."""
    left = []
    for share in cut(inputs.tables, rows):
        path = parts.part_path(target, share.index)
        if not path.exists():
            left.append(share)
        elif (facts := _facts(path))["first_row"] != share.first_row or facts["rows_read"] != share.rows:
            raise _other_slices(target)
    return left


def _slices_of_rank(
    inputs: Inputs, target: Path, rows: int, shares: list[Share], world: World, between: Callable[[], None]
) -> Iterator[Slice]:
    """The slices that this rank is to count; `between` is called after each batch that is read for them."""
    columns = columns_of(inputs.sequence_field)
    if inputs.tables:
        return read_shares(inputs.tables, columns, rows, dealt(shares, world.rank, world.size), between)
    return slices(
        inputs.junctions,
        columns,
        rows,
        lambda index: index % world.size == world.rank and not parts.part_path(target, index).exists(),
        between,
    )


def _prepare(
    inputs: Inputs,
    germline: Germline,
    target: Path,
    config: Config,
    world: World,
    rows: int,
    *,
    resume: bool,
    overwrite: bool,
) -> dict[str, Any]:
    """Root: what the run's files say of it, once the folder of the parts is there."""
    if not method_named(config.method).disjoint:
        raise InputError(f"--batch-rows needs --method direct; {config.method} counts a repertoire as a whole")
    if not isinstance(config.max_n, int):
        raise InputError(
            "--max-n all needs the longest sequence before counting begins; in slices give a number, or count the "
            "whole with --batch-rows 0"
        )
    require_writable(target, overwrite=overwrite or resume)
    require_apart(target, *inputs.files, Path(germline.name))
    if not inputs.tables:
        require_columns(inputs.junctions, columns_of(inputs.sequence_field))
    state = file_state(inputs.junctions)
    source = {"path": str(inputs.junctions.resolve()), "field": inputs.sequence_field}
    if inputs.tables:
        source["sha256"] = digest_of(inputs.tables)
    else:
        source["sha256"] = file_digest(inputs.junctions) if state else ""
    attributes = {
        **run_attributes(world, inputs, germline, config, config.max_n, source),
        "file_state": [] if inputs.tables else list(state or ()),
    }
    identity = identity_of(attributes, inputs.tables)
    if resume and target.exists() and not overwrite:
        already_done(target, identity)
    if not inputs.tables:
        # Parts of one table are told by their index alone; those of several, by `_left`.
        identity["slice_rows"] = rows
    parts.open_folder(target, identity, resume=resume, overwrite=overwrite)
    return attributes


def _count_slice(
    one: Slice,
    inputs: Inputs,
    germline: Germline,
    target: Path,
    config: Config,
    backend: Backend,
    attributes: dict[str, Any],
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Read, count and write one slice; seconds of the three."""
    ticks = [time.perf_counter()]
    repertoire = repertoire_of_slice(
        one, inputs.junctions, germline, inputs.sequence_field, inputs.calls, inputs.strict, inputs.tables
    )
    problem = Problem(repertoire, germline, int(config.max_n), config.d_forms)
    ticks.append(time.perf_counter())
    alone = World()
    with ResultWriter(parts.part_path(target, one.index), repertoire, problem.max_n, packed=True) as writer:
        tally = count_loaded(problem, config, alone, writer, backend)
        ticks.append(time.perf_counter())
        found = {
            "rows_read": repertoire.rows_read,
            "first_row": one.first_row,
            "pathways": [str(number) for number in tally.pathways],
            "reached": int(tally.reached.sum()),
            "excluded_by_reason": repertoire.excluded.by_reason(),
            "substituted_calls": repertoire.substituted,
        }
        last = one.first_row + repertoire.rows_read
        tables = [t for t in inputs.tables if t.first_row < last and t.first_row + t.rows > one.first_row]
        facts = [facts_of_rank(tally.hardware, tally.software)]
        writer.finish({**attributes, **found}, facts, tally.timings, tables)
    ticks.append(time.perf_counter())
    log.info("rows %s to %s are counted", f"{one.first_row:,}", f"{one.first_row + repertoire.rows_read:,}")
    kernel = float(tally.timings.kernel.sum())
    return np.array([ticks[1] - ticks[0], kernel, ticks[3] - ticks[1] - kernel])


def _finish(
    inputs: Inputs, target: Path, rows: int, attributes: dict[str, Any], ranks: list[dict[str, str]], *, overwrite: bool
) -> Summary:
    """Root: join the parts, and sum up what they found."""
    _require_unchanged(inputs, attributes)
    found = [_facts(path) for path in sorted(parts.folder_of(target).glob("part-*.h5"))]
    if not found:
        raise InputError(f"{inputs.junctions}: no data rows; the file has a header line only")
    expected = [index * rows for index in range(len(found))]
    if inputs.tables:
        expected = [share.first_row for share in cut(inputs.tables, rows)]
    if [facts["first_row"] for facts in found] != expected:
        raise _other_slices(target)
    reasons: dict[str, int] = {}
    for facts in found:
        for reason, count in facts["excluded_by_reason"]:
            reasons[reason] = reasons.get(reason, 0) + count
    pathways = [sum(column) for column in zip(*(facts["pathways"] for facts in found), strict=True)]
    read = sum(facts["rows_read"] for facts in found)
    joint = {**attributes, "rows_read": read, "pathways": [str(number) for number in pathways], "slice_rows": rows}
    parts.join(target, len(found), joint, ranks, inputs.tables, overwrite=overwrite)
    counted = sum(facts["counted"] for facts in found)
    with Result(target) as result:
        pairs = len({(v, j) for v, j, _ in result.pairs})
    reached = sum(facts["reached"] for facts in found)
    excluded = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    sizes: dict[str, Any] = {"tables": len(inputs.tables), "repertoires": len(inputs.repertoires)}
    return Summary(read, counted, excluded, pairs, int(attributes["config"]["max_n"]), attributes["config"]["method"],
                   "", 0, pathways, reached, **sizes)  # fmt: skip


def _require_unchanged(inputs: Inputs, attributes: dict[str, Any]) -> None:
    for table in inputs.tables:
        if file_state(table.path) != table.state:
            raise changed(table.path)
    if not inputs.tables and list(file_state(inputs.junctions) or ()) != attributes["file_state"]:
        raise changed(inputs.junctions)


def _other_slices(target: Path) -> InputError:
    return InputError(f"{parts.folder_of(target)}: parts of slices of another size; start again with --overwrite")


def _facts(path: Path) -> dict[str, Any]:
    """What a part's attributes say of its slice."""
    with Result(path) as part:
        facts = part.provenance
        return {
            "first_row": int(facts["first_row"]),
            "rows_read": int(facts["rows_read"]),
            "counted": len(part.counters),
            "reached": int(facts["reached"]),
            "pathways": list(map(int, json.loads(facts["pathways"]))),
            "excluded_by_reason": json.loads(facts["excluded_by_reason"]),
        }
