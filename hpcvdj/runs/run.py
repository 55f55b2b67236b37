"""A run: its ranks, its target, and when to stop.  Applications use only this part of the run layer."""

import math
import os
import socket
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hpcvdj.errors import CompleteError, HpcvdjError, InputError, LostRankError, MachineError, StoppedError, log, option
from hpcvdj.kernels.backends import Backend, open_backend
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.partition import evenly
from hpcvdj.runs.provenance import run_facts
from hpcvdj.runs.ranks import World, limit_arrow, starting
from hpcvdj.runs.settings import SAVE_SECONDS
from hpcvdj.runs.stopping import NOTHING_YET, Agreement, StopRequest, StopWorkError, stopped_by, told_otherwise
from hpcvdj.storage.ahead import MOST_THREADS, in_threads
from hpcvdj.storage.files import behind_links, exclusive_lock, require_distinct, require_writable
from hpcvdj.storage.folders import exclusive_folder

T = TypeVar("T")
U = TypeVar("U")

Refused = InputError | CompleteError
"""Why one of several items was not computed: it cannot be computed, or it is complete already."""


class Run:
    """A computation over the ranks of a world, with or without a result file.

    `on_root`, `broadcast`, `gather`, `gather_everywhere`, `exchange`, `sum` and `barrier` are those of the world.

    is_root       whether this rank, number `rank` of `ranks`, reads, writes and prints
    target        the result file; None for a computation in memory, which is not saved
    resume        continue an unfinished run
    overwrite     replace an existing result
    save_seconds  seconds that finished work may wait to be saved
    request       notes signals; commands enter it
    shown         whether this rank shows progress
    """

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.is_root, self.rank, self.ranks = self.world.is_root, self.world.rank, self.world.size
        self.on_root, self.barrier, self.sum = self.world.on_root, self.world.barrier, self.world.sum
        self.gather, self.gather_everywhere = self.world.gather, self.world.gather_everywhere
        self.broadcast, self.exchange = self.world.broadcast, self.world.exchange
        self.target: Path | None = None
        self.resume = self.overwrite = False
        self.save_seconds = SAVE_SECONDS
        self.request = StopRequest()
        self.shown = self.is_root
        self._agreement: Agreement | None = None
        self._launched = self.world
        self._local_rank: int | None = None
        self._kept: dict[Hashable, tuple[Hashable, Any]] | None = None

    def keeping(self) -> "Run":
        """Return a run of the same ranks, target and signals that keeps what `once` makes."""
        run = copy(self)
        run._kept = {}
        return run

    @property
    def is_keeping(self) -> bool:
        """Whether this run keeps what `once` makes."""
        return self._kept is not None

    def once(self, what: Hashable, key: Hashable, make: Callable[[], T]) -> T:
        """Return `make()`.  A run that is `keeping` makes it once, until it is asked for the same with another key.

        This rank alone decides, so `make` must not wait for other ranks unless the keys are the same on all of them.
        """
        kept = self._kept
        if kept is None:
            return make()
        if what not in kept or kept[what][0] != key:
            # Of the value for another key, nothing is left while the new one is made.
            kept.pop(what, None)
            kept[what] = key, make()
        made: T = kept[what][1]
        return made

    def kept(self, what: Hashable, key: Hashable) -> Any:
        """Return what `once` keeps; None if there is nothing."""
        kept_key, value = (self._kept or {}).get(what, (None, None))
        return value if kept_key == key else None

    def to(
        self, target: Path, *, resume: bool = False, overwrite: bool = False, save_seconds: float = SAVE_SECONDS
    ) -> "Run":
        """Return a run of the same ranks and signals with a result file."""
        run = copy(self)
        run.target, run.resume, run.overwrite, run.save_seconds = behind_links(target), resume, overwrite, save_seconds
        return run

    def alone(self) -> "Run":
        """Return a run of this rank alone, in memory and without progress.  Its steps are steps of this run."""
        run = Run()
        run.shown, run._agreement, run._kept = False, self._agreement, self._kept
        return run

    def from_root(self, work: Callable[..., T], *known: Any) -> T:
        """Return root's `work(*known)` (any picklable object) on every rank; otherwise as `on_root`."""
        shared: T = self.broadcast(self.on_root(work, *known))
        return shared

    def slowest(self, *seconds: float) -> list[float]:
        """Return the element-wise maximum over ranks, on every rank: a step takes as long as its slowest rank."""
        maximum: list[float] = self.world.maximum(np.array(seconds)).tolist()
        return maximum

    def bind(self, name: str, *, strict: bool = False, sharing_pays: bool = False) -> Backend:
        """Open this rank's backend, by its name or `auto`.

        Logs a warning if two ranks use the same GPU; with `strict`, raises MachineError on every rank.

        sharing_pays  do not warn: the ranks do most of their work on the CPU, so they may share a GPU
        """
        backend = open_backend(name, self.world.local_rank() if self._local_rank is None else self._local_rank)
        self.barrier()
        uuids = self.gather(backend.uuid)
        if strict or not sharing_pays:
            self.on_root(lambda: _check_binding(uuids or [], strict=strict))
        return backend

    @contextmanager
    def exclusive(self, *inputs: Path, folder: bool = False) -> Iterator[Path]:
        """Check that the target can be written, keep other runs from writing it, and yield it.

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

    @contextmanager
    def continuing(self, folder: RunFolder, facts: dict[str, Any], *, reads: bool = False) -> Iterator[dict[str, Any]]:
        """Open the folder of this run, and yield its facts.  If the block fails, keep work from which a run continues.

        facts  JSON values that a new folder records; an existing folder has its own
        reads  whether the block reads the input: if that is wrong, no run can continue what this one began

        Raises the errors of `RunFolder.open`.
        """
        yielded = self.from_root(
            partial(folder.open, facts, resume=self.resume, overwrite=self.overwrite, target=self.target)
        )
        try:
            yield yielded
        except HpcvdjError as error:
            if not self.is_root:
                raise
            if reads and isinstance(error, InputError) and not self.resume:
                folder.remove()
            raise folder.leave(error) from None

    def provenance(self) -> dict[str, Any]:
        """Return what every output of this run records."""
        return run_facts(self._launched)

    def rank_facts(self, backend: Backend) -> list[dict[str, str]]:
        """Return where each rank runs, and on which hardware, on root."""
        process = {"host": socket.gethostname(), "pid": str(os.getpid())}
        return self.gather({**process, "hardware": backend.describe(), "software": backend.software()}) or []

    def raise_if_stopping(self) -> None:
        """Leave the work that this rank does on its own if a rank wants to stop.  Call it between two steps."""
        if self._agreement is not None and self._agreement.passed():
            raise StopWorkError

    def each(self, items: Iterable[T], work: Callable[[T], Any], saved: str) -> None:
        """Do the items of this rank one after another.  All ranks leave together.

        items  items, which may read files; call `raise_if_stopping` between steps, in `items` and in `work`
        work   may return a function that does the rest of its item without other ranks, such as to write files; if this
               rank has more than one thread, others call it while this one goes on with the next items
        saved  the end of the message if a signal stops the run: what is saved

        Raises StoppedError on every rank if a rank had a signal and work is left, and the HpcvdjError of a rank once
        all ranks have left their work.
        """
        failure: HpcvdjError | None = None
        finished = False

        def left() -> Iterator[Callable[[], None]]:
            for item in items:
                self.raise_if_stopping()
                if callable(rest := work(item)):
                    yield rest

        agreement = self._agreement = Agreement(self.world, lambda: bool(self.request) or failure is not None)
        try:
            try:
                for _ in in_threads(lambda rest: rest(), left(), _writing_threads()):
                    pass
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
                raise failed.everywhere()
        if not all(done for _, done in outcomes):
            raise self.stopped(saved)

    def deal(
        self,
        items: Sequence[T],
        work: Callable[[T, "Run"], U],
        sizes: Sequence[int],
        on_refused: Callable[[HpcvdjError], None] = lambda error: None,
        *,
        most_uneven: float = math.inf,
    ) -> tuple[list[tuple[T, U]], list[tuple[T, InputError]]]:
        """Return each item with what `work` returns for it and the run to use, and refused items with their errors.

        A refused item does not stop the others.  If there are at least as many items as ranks, each rank computes items
        on its own, the largest first; ranks other than root then return what they computed.  Otherwise all ranks
        compute the items together, one after another.  Items that are complete, or have None, are not returned.

        sizes        sizes of the items, in any unit
        on_refused   called on one rank with the error of each refused item, unless there is only one item
        most_uneven  compute the items together if a rank would have more than so many times the mean work

        Raises StoppedError on every rank after a signal; a run with --resume skips complete items.
        """
        outcomes: dict[int, U | Refused] = {}
        shares = evenly(sizes, self.ranks)
        loads = [sum(sizes[k] for k in share) for share in shares]
        is_even = max(loads) * self.ranks <= most_uneven * max(1, sum(loads))
        apart = is_even and 1 < self.ranks <= len(items)
        local_rank = self.world.local_rank() if apart else None

        def compute(k: int) -> None:
            run = self
            if apart:
                run = self.alone()
                run.request, run._launched, run._local_rank = self.request, self._launched, local_rank
            try:
                outcomes[k] = work(items[k], run)
            except (InputError, CompleteError) as error:
                if len(items) == 1 or not error.on_every_rank:
                    raise
                outcomes[k] = error
                if run.is_root:
                    on_refused(error)

        try:
            if apart:
                self.each(shares[self.rank], compute, NOTHING_YET)
            else:
                for k in range(len(items)):
                    compute(k)
        except StoppedError as error:
            finished = sum(self.gather_everywhere(len(outcomes))) if apart else len(outcomes)
            if not finished:
                raise
            saved = f"after {finished:,} of {len(items):,} repertoires; --resume continues"
            raise told_otherwise(error, saved) from None
        if apart:
            refused = {k: outcome for k, outcome in outcomes.items() if isinstance(outcome, Refused)}
            for refused_of_rank in self.gather_everywhere(refused):
                outcomes.update(refused_of_rank)
            for of_rank in self.gather(outcomes) or []:
                outcomes.update(of_rank)
        every = [(items[k], outcome) for k, outcome in sorted(outcomes.items())]
        done = [(item, outcome) for item, outcome in every if not isinstance(outcome, Refused | None)]
        return done, [(item, outcome) for item, outcome in every if isinstance(outcome, InputError)]

    def root_works(self, work: Callable[[], T], saved: str) -> T:
        """Return root's `work()` on every rank.  The other ranks notice if root hangs.

        Root calls `raise_if_stopping` between steps.  Errors are those of `each`.
        """
        result: T = self.broadcast(self.root_steps(work, saved))
        return result

    def root_steps(self, work: Callable[..., T], saved: str, *known: Any) -> T | None:
        """Return `work(*known)` on root, None on the other ranks; otherwise as `root_works` and `on_root`."""
        results: list[T] = []
        self.each([work] if self.is_root else [], lambda call: results.append(call(*known)), saved)
        return results[0] if results else None

    def stopped(self, saved: str) -> StoppedError:
        """Return the error that every rank raises when a signal stops the run; `saved` says what is saved."""
        names = sorted({name for name in self.gather_everywhere(self.request.name) if name})
        return stopped_by(" and ".join(names) or StoppedError.signal, saved).everywhere()


def _writing_threads() -> int:
    """Threads that write while a rank goes on: one for four of the rank's threads, as each holds an item in memory."""
    threads = starting.threads or 2
    return min(MOST_THREADS, -(-threads // 4)) if threads > 1 else 0


def _check_binding(uuids: list[str], *, strict: bool) -> None:
    """Warn, or with `strict` raise MachineError, if ranks share a GPU.

    uuids  the GPU of each rank; empty for a rank without a GPU
    """
    users: dict[str, list[int]] = {}
    for rank, uuid in enumerate(uuids):
        users.setdefault(uuid, []).append(rank)
    for uuid, ranks in users.items():
        if uuid and len(ranks) > 1:
            shared = f"ranks {', '.join(map(str, ranks))} share one GPU ({uuid}); start one rank per GPU"
            if strict:
                raise MachineError(shared + f", or leave {option('strict_binding')} out")
            log.warning("%s", shared)
