"""Threads beside this one, which read the next item while this one works, or write the last."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import TypeVar, cast

MOST_THREADS = 4
"""The largest number of threads that work on items: each has an item in memory."""

T = TypeVar("T")
U = TypeVar("U")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The items.  While the caller uses one item, another thread makes the next."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, source, end)
        while (item := following.result()) is not end:
            following = thread.submit(next, source, end)
            yield cast(T, item)


def import_ahead(module: str) -> None:
    """Begin to import a module that is needed later, in another thread.  Who imports it then sees an error, if any."""

    def load() -> None:
        with suppress(Exception):
            import_module(module)

    Thread(target=load, daemon=True).start()


def in_threads(work: Callable[[T], U], items: Iterable[T], threads: int | None = None) -> Iterator[U]:
    """`work` of each item, in their order, in other threads.  This thread makes the items: only it may use MPI.

    threads  by default those of this rank, at most `MOST_THREADS`; none if the rank has only this one
    """
    if threads is None:
        from pyarrow import cpu_count

        threads = min(MOST_THREADS, cpu_count()) if cpu_count() > 1 else 0
    if not threads:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque[Future[U]]()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
