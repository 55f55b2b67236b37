"""A run: its ranks, its target, when to stop; the only part of the run layer that applications use."""

import logging
import math
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import CompleteError, HpcvdjError, InputError, LostRankError, MachineError, StoppedError, option
from hpcvdj.kernels.backends import Backend, open_backend
from hpcvdj.runs.folder import Identity, RunFolder, raise_if_complete
from hpcvdj.runs.pacing import SAVE_SECONDS
from hpcvdj.runs.partition import evenly
from hpcvdj.runs.provenance import run_facts
from hpcvdj.runs.ranks import World, limit_arrow
from hpcvdj.runs.stopping import NOTHING_YET, Agreement, StopRequest, StopWorkError, stopped_by
from hpcvdj.storage.files import behind_links, exclusive_lock, require_distinct, require_writable
from hpcvdj.storage.folders import exclusive_folder

log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")

Refused = InputError | CompleteError
"""Why an item of many was not computed: it cannot be, or it has been already."""


class Run:
    """A computation over the ranks of a world, with or without a result file.

    is_root       whether this rank, number `rank` of `ranks`, reads, writes and prints
    target        the result file; None for a computation in memory, which is not saved
    resume        continue an unfinished run
    overwrite     replace an existing result
    save_seconds  how long finished work may wait to be saved
    request       notes signals; entered by whoever runs the command
    shown         whether this rank shows progress
    """

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.is_root, self.rank, self.ranks = self.world.is_root, self.world.rank, self.world.size
        self.target: Path | None = None
        self.resume = self.overwrite = False
        self.save_seconds = SAVE_SECONDS
        self.request = StopRequest()
        self.shown = self.is_root
        self._agreement: Agreement | None = None
        self._launched = self.world
        self._local_rank: int | None = None

    def to(
        self, target: Path, *, resume: bool = False, overwrite: bool = False, save_seconds: float = SAVE_SECONDS
    ) -> "Run":
        """The same ranks and signals, with a result file."""
        run = copy(self)
        run.target, run.resume, run.overwrite, run.save_seconds = behind_links(target), resume, overwrite, save_seconds
        return run

    def alone(self) -> "Run":
        """A run of this rank alone, in memory, that shows no progress; its steps are steps of this one."""
        run = Run()
        run.shown, run._agreement = False, self._agreement
        return run

    def on_root(self, work: Callable[[], T]) -> T | None:
        """`work()` on root, None on the other ranks; an HpcvdjError on root is raised on every rank."""
        return self.world.on_root(work)

    def from_root(self, work: Callable[[], T]) -> T:
        """What `work` returns on root, on every rank (any picklable object, small); errors as of `on_root`."""
        shared: T = self.world.broadcast(self.world.on_root(work))
        return shared

    def share_arrays(self, arrays: dict[str, NDArray[Any]] | None) -> dict[str, NDArray[Any]]:
        """Root's arrays on every rank; the other ranks pass None."""
        names = self.world.broadcast(list(arrays) if arrays is not None else None)
        return {name: self.world.broadcast_array(arrays[name] if arrays is not None else None) for name in names}

    def gather(self, value: T) -> list[T] | None:
        """Every rank's `value` in rank order on root, None on the other ranks."""
        return self.world.gather(value)

    def gather_everywhere(self, value: T) -> list[T]:
        """Every rank's `value` in rank order, on every rank."""
        return self.world.gather_everywhere(value)

    def exchange(self, values: Sequence[Any]) -> list[Any]:
        """values[r] goes to rank r; what the ranks sent to this one, in rank order."""
        return self.world.exchange(values)

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """The element-wise sum of the ranks' integers, on every rank."""
        return self.world.sum(values)

    def slowest(self, *seconds: float) -> list[float]:
        """The element-wise maximum over ranks, on every rank: a step takes as long as its slowest rank."""
        maximum: list[float] = self.world.maximum(np.array(seconds)).tolist()
        return maximum

    def barrier(self) -> None:
        """Wait for every rank."""
        self.world.barrier()

    def bind(self, name: str, *, strict: bool = False, sharing_pays: bool = False) -> Backend:
        """Open this rank's backend, by its name or `auto`.

        Two ranks on one GPU are a warning; with `strict` they are a MachineError, on every rank.

        sharing_pays  the ranks do most of their work on the CPU, so they may share a GPU without a warning
        """
        backend = open_backend(name, self.world.local_rank() if self._local_rank is None else self._local_rank)
        self.barrier()
        uuids = self.gather(backend.uuid)
        if strict or not sharing_pays:
            self.on_root(lambda: _check_binding(uuids or [], strict=strict))
        return backend

    @contextmanager
    def exclusive(self, *inputs: Path, folder: bool = False) -> Iterator[Path]:
        """Check that the target can be written and keep other runs from writing it; yields it.

        inputs  files that must not be the target
        folder  whether the target is a folder
        """
        target = self.target
        assert target is not None
        limit_arrow()
        with ExitStack() as stack:

            def lock() -> None:
                if folder:
                    how = {"overwrite": self.overwrite, "resume": self.resume}
                    stack.enter_context(exclusive_folder(target, *inputs, **how))
                    return
                require_writable(target, overwrite=self.overwrite or self.resume)
                require_distinct(target, *inputs)
                stack.enter_context(exclusive_lock(target))

            self.on_root(lock)
            yield target

    def open_folder(
        self,
        suffix: str,
        identity: Identity,
        items: str,
        facts: dict[str, Any] | None = None,
    ) -> tuple[RunFolder, dict[str, Any]]:
        """The folder of this run, NAME.suffix beside the target NAME, and its facts; arguments as of `RunFolder`.

        With `resume`, CompleteError if the result is complete, InputError if it, or the folder, is of another run.
        """
        target = self.target
        assert target is not None
        folder = RunFolder(target.with_name(f"{target.name}.{suffix}"), identity)

        def open_it() -> dict[str, Any]:
            replaces = self.overwrite or (self.resume and target.exists())
            if replaces and not self.overwrite:
                raise_if_complete(target, folder, items)
            found = folder.open(items, facts or {}, resume=self.resume, overwrite=self.overwrite)
            self.overwrite = replaces
            return found

        return folder, self.from_root(open_it)

    def provenance(self) -> dict[str, Any]:
        """What every output of this run records."""
        return run_facts(self._launched)

    def rank_facts(self, backend: Backend) -> list[dict[str, str]]:
        """Where each rank runs, and on what; on root."""
        place = {"host": socket.gethostname(), "pid": str(os.getpid())}
        return self.gather({**place, "hardware": backend.describe(), "software": backend.software()}) or []

    def raise_if_stopping(self) -> None:
        """Between two steps of what a rank does on its own: leave if a rank wants to stop."""
        if self._agreement is not None and self._agreement.passed():
            raise StopWorkError

    def each(self, items: Iterable[T], work: Callable[[T], None], saved: str) -> None:
        """This rank's items, one after another; all ranks leave together.

        items  may read: `raise_if_stopping` is to be called between steps, in `items` and in `work`
        saved  the end of the message if a signal stops the run: what is saved

        StoppedError on every rank if a rank had a signal and not everything is done; the HpcvdjError of a rank, once
        all have left their work.
        """
        failure: HpcvdjError | None = None
        finished = False
        agreement = self._agreement = Agreement(self.world, lambda: bool(self.request) or failure is not None)
        try:
            try:
                for item in items:
                    self.raise_if_stopping()
                    work(item)
                finished = True
            except StopWorkError:
                pass
            except LostRankError:
                raise
            except HpcvdjError as error:
                failure = error
            agreement.end()
        finally:
            self._agreement = None
        outcomes = self.gather_everywhere((failure, finished))
        for failed, _ in outcomes:
            if failed is not None:
                failed.on_every_rank = True
                raise failed
        if not all(done for _, done in outcomes):
            raise self.stopped(saved)

    def deal(
        self,
        items: Sequence[T],
        work: Callable[[T, "Run"], U],
        told: Callable[[HpcvdjError], None] = lambda error: None,
        sizes: Sequence[int] | None = None,
        *,
        most_uneven: float = math.inf,
    ) -> list[U | Refused | None]:
        """What `work` gives of each item with the run that it is to use; an item that is refused does not stop others.

        With sizes, and if there are at least as many items as ranks, each is computed by one rank on its own, the
        largest first; other ranks than root then have None for what others computed.  Otherwise all ranks compute them
        together, one after another.

        told         called on one rank with the error of each item that is refused, unless there is only one item
        sizes        of the items, in any unit
        most_uneven  computed together, too, if one rank would have more than so many times the mean of all

        StoppedError on every rank after a signal; what is complete then can be left with --resume.
        """
        found: dict[int, U | Refused] = {}
        shares = evenly(sizes or [], self.ranks)
        loads = [sum((sizes or [])[k] for k in own) for own in shares]
        apart = sizes is not None and 1 < self.ranks <= len(items)
        apart &= max(loads) * self.ranks <= most_uneven * max(1, sum(loads))
        local_rank = self.world.local_rank() if apart else None

        def one(k: int) -> None:
            run = self
            if apart:
                run = self.alone()
                run.request, run._launched, run._local_rank = self.request, self._launched, local_rank
            try:
                found[k] = work(items[k], run)
            except (InputError, CompleteError) as error:
                if len(items) == 1 or not error.on_every_rank:
                    raise
                found[k] = error
                if run.is_root:
                    told(error)

        try:
            if apart:
                self.each(shares[self.rank], one, NOTHING_YET)
            else:
                for k in range(len(items)):
                    one(k)
        except StoppedError as error:
            finished = sum(self.gather_everywhere(len(found))) if apart else len(found)
            if not finished:
                raise
            stopped = stopped_by(error.signal, f"after {finished:,} of {len(items):,} repertoires; --resume continues")
            stopped.on_every_rank = error.on_every_rank
            raise stopped from None
        if apart:
            refused = {k: value for k, value in found.items() if isinstance(value, Refused)}
            for part in self.gather_everywhere(refused):
                found.update(part)
            for own in self.gather(found) or []:
                found.update(own)
        return [found.get(k) for k in range(len(items))]

    def root_works(self, work: Callable[[], T], saved: str) -> T:
        """`work()` on root, what it returns on every rank; the other ranks notice if root hangs.

        Root calls `raise_if_stopping` between steps.  Errors as of `each`.
        """
        result: T = self.world.broadcast(self.root_steps(work, saved))
        return result

    def root_steps(self, work: Callable[[], T], saved: str) -> T | None:
        """Like `root_works`, but only root has what `work` returns."""
        results: list[T] = []
        self.each([work] if self.is_root else [], lambda call: results.append(call()), saved)
        return results[0] if results else None

    def stopped(self, saved: str) -> StoppedError:
        """What every rank is to raise when a signal stops the run; `saved` says what is saved."""
        names = sorted({name for name in self.gather_everywhere(self.request.name) if name})
        error = stopped_by(" and ".join(names) or StoppedError.signal, saved)
        error.on_every_rank = True
        return error


def _check_binding(uuids: list[str], *, strict: bool) -> None:
    """`uuids` of the ranks' GPUs, empty for a rank without one."""
    users: dict[str, list[int]] = {}
    for rank, uuid in enumerate(uuids):
        users.setdefault(uuid, []).append(rank)
    for uuid, ranks in users.items():
        if uuid and len(ranks) > 1:
            shared = f"ranks {', '.join(map(str, ranks))} share one GPU ({uuid}); start one rank per GPU"
            if strict:
                raise MachineError(shared + f", or leave {option('strict_binding')} out")
            log.warning("%s", shared)
