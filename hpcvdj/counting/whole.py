"""A run: read → share → count over the ranks → store, with a checkpoint at the boundaries."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcvdj.counting.checkpoint import SAVE_SECONDS, Checkpoint
from hpcvdj.counting.config import Config, Inputs
from hpcvdj.counting.count import count
from hpcvdj.counting.identity import already_done, facts_of_rank, identity_of, run_attributes
from hpcvdj.counting.keeper import CheckpointKeeper
from hpcvdj.errors import CompleteError
from hpcvdj.methods import Method, Problem, method_named
from hpcvdj.ranks.lock import alone_with
from hpcvdj.ranks.stopping import StopRequest
from hpcvdj.ranks.world import World, root_does
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.repertoire import Repertoire, read_repertoire, read_tables
from hpcvdj.repertoires.sharing import share
from hpcvdj.results import parts
from hpcvdj.results.file import ResultWriter
from hpcvdj.storage import require_apart, require_writable

log = logging.getLogger(__name__)


_LETS_IN = {
    r"ambiguous [VJ] call ": "--ambiguous-calls",
    r"[VJ] allele .* is not in the germline table, other alleles": "--unlisted-alleles",
}
"""Reasons, and the option by which rows are counted nevertheless."""


@dataclass
class Summary:
    """What a run found and how long it took; complete on root.

    pathways      Python ints: pathways of each n-length over all sequences, exact however many
    with_pathway  sequences with at least one pathway
    tables        tables that were counted together, and their repertoires; 0 of one table alone
    seconds       of each stage: read, prepare, kernel and reduce (max over ranks), save (checkpoints), write, total
    """

    rows_read: int
    counted: int
    excluded: list[tuple[str, int]]
    pairs: int
    max_n: int
    method: str
    hardware: str
    ranks: int
    pathways: list[int]
    with_pathway: int
    seconds: dict[str, float] = field(default_factory=dict)
    tables: int = 0
    repertoires: int = 0


def count_file(
    inputs: Inputs,
    germline: Germline,
    target: Path,
    config: Config,
    world: World,
    *,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint_every: float = SAVE_SECONDS,
    request: StopRequest | None = None,
) -> Summary:
    """Count a file of junctions into the result file `target`: what `hpcvdj count` does.

    Root reads and writes; every rank counts its share.  `resume` goes on from the checkpoint of `target`, if it has
    one, where what is counted is saved every `checkpoint_every` seconds.

    A signal that `request` has seen ends the run at a boundary: StoppedError, and a checkpoint.  HpcvdjError on
    bad input and on failure; `target` is then what it was before.  CompleteError if `resume` finds it complete.
    """
    started = time.perf_counter()
    request = request or StopRequest()
    method = method_named(config.method)
    mine = root_does(world, lambda: _read(inputs, germline, target, method, overwrite or resume))
    repertoire = share(world, mine)
    # Not before all ranks have it: which n-lengths there are may depend on the sequences.
    max_n = world.broadcast(root_does(world, lambda: config.resolve_max_n(repertoire)))
    if world.is_root:
        _log_calls_and_exclusions(repertoire)
    read = time.perf_counter()
    problem = Problem(repertoire, germline, max_n, config.d_forms)
    attributes = _attributes(world, inputs, germline, config, repertoire, max_n) if world.is_root else {}
    with alone_with(world, target), ExitStack() as stack:
        checkpoint = root_does(
            world, lambda: _checkpoint(inputs, target, attributes, checkpoint_every, resume=resume, overwrite=overwrite)
        )
        if checkpoint is not None:
            stack.callback(checkpoint.leave)
        path = checkpoint.result_path if checkpoint else None
        writer = root_does(
            world,
            lambda: stack.enter_context(ResultWriter(target, repertoire, max_n, overwrite=overwrite, temporary=path)),
        )
        opened = time.perf_counter()
        request.begin_counting()
        tally = count(problem, config, world, writer, CheckpointKeeper(checkpoint, writer, request))
        counted = time.perf_counter()
        ranks = world.gather(facts_of_rank(tally.hardware, tally.software))
        if writer is not None and ranks is not None:
            saving = {"checkpoint_seconds": checkpoint.seconds} if checkpoint else {}
            writer.finish({**attributes, **saving}, ranks, tally.timings, inputs.tables)
        if checkpoint is not None:
            # Called after the writer has closed and the result has its name: the stack unwinds from its end.
            stack.pop_all().close()
            checkpoint.remove()
            if overwrite:
                parts.discard(target)
    world.barrier()
    ended = time.perf_counter()
    return Summary(
        rows_read=repertoire.rows_read,
        counted=len(repertoire),
        excluded=repertoire.excluded.by_reason(),
        pairs=len(repertoire.pairs),
        max_n=max_n,
        method=method.name,
        hardware=tally.hardware,
        ranks=world.size,
        pathways=tally.pathways,
        with_pathway=int(tally.reached.sum()),
        seconds={
            "read": read - started,
            "prepare": tally.prepare,
            "kernel": float(tally.timings.kernel.sum()),
            "reduce": float(tally.timings.reduce.sum()),
            "save": checkpoint.seconds if checkpoint else 0.0,
            "write": opened - read + tally.store + ended - counted,
            "total": ended - started,
        },
        tables=len(inputs.tables),
        repertoires=len(inputs.repertoires),
    )


def _checkpoint(
    inputs: Inputs, target: Path, attributes: dict[str, Any], save_seconds: float, *, resume: bool, overwrite: bool
) -> Checkpoint:
    identity = identity_of(attributes, inputs.tables)
    checkpoint = Checkpoint(target, identity, save_seconds)
    if resume and target.exists() and not overwrite:
        try:
            already_done(target, identity)
        except CompleteError:
            # A run that was killed right after the result had its name leaves the folder.
            checkpoint.remove_if_of_this_run()
            raise
    checkpoint.open(resume=resume, overwrite=overwrite)
    return checkpoint


def _read(inputs: Inputs, germline: Germline, target: Path, method: Method, overwrite: bool) -> Repertoire:
    require_writable(target, overwrite=overwrite)
    require_apart(target, *inputs.files, Path(germline.name))
    options: dict[str, Any] = {
        "sequence_field": inputs.sequence_field,
        "calls": inputs.calls,
        "longest": method.longest_cdr3,
        "strict": inputs.strict,
    }
    if inputs.tables:
        return read_tables(inputs.tables, germline, **options)
    return read_repertoire(inputs.junctions, germline, **options)


def _attributes(
    world: World, inputs: Inputs, germline: Germline, config: Config, repertoire: Repertoire, max_n: int
) -> dict[str, Any]:
    facts = run_attributes(world, inputs, germline, config, max_n, repertoire.source)
    return {**facts, "rows_read": repertoire.rows_read, "substituted_calls": repertoire.substituted}


def _log_calls_and_exclusions(repertoire: Repertoire, most: int = 12) -> None:
    substituted = sorted(repertoire.substituted, key=lambda item: -item[2])
    for call, allele, rows in substituted[:most]:
        log.warning("call %s is counted as %s in %s rows", call, allele, f"{rows:,}")
    if substituted[most:]:
        log.warning("and %d other calls; the result file's substituted_calls lists all", len(substituted[most:]))
    reasons = repertoire.excluded.by_reason()
    if not reasons:
        return
    log.warning("%s of %s rows excluded:", f"{len(repertoire.excluded):,}", f"{repertoire.rows_read:,}")
    for reason, rows in reasons[:most]:
        log.warning("  %8s  %s", f"{rows:,}", reason)
    rest: Sequence[tuple[str, int]] = reasons[most:]
    if rest:
        log.warning("  %8s  for %d other reasons", f"{sum(rows for _, rows in rest):,}", len(rest))
    log.warning("every one of them is listed in the result file under /excluded")
    for pattern, option in _LETS_IN.items():
        rows = sum(rows for reason, rows in reasons if re.match(pattern, reason))
        if rows:
            log.warning("%s first would let %s of them in", option, f"{rows:,}")
