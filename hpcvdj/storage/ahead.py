"""Threads beside this one, which read the next item while this one works, or write the last."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, cast

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


def in_threads(work: Callable[[T], U], items: Iterable[T], threads: int = 2) -> Iterator[U]:
    """`work` of each item, in their order, in other threads.  This thread makes the items: only it may use MPI."""
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
