"""One process of a machine compiles a function; the others wait for it, and load what it compiled.

What is compiled already they load at once: 32 ranks that loaded it one after another waited for ten seconds
(results/strong_scaling_h200).
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

PATIENCE = 120.0
"""Seconds after which a process that waits for another compiles the function itself."""

_POLL = 0.05
_PACKAGE = "hpcvdj."


def compile_once(dispatcher: ModuleType) -> None:
    """Let processes that share numba's cache compile each function only once.

    numba alone lets all ranks that start at once compile the same functions.

    dispatcher  the module numba.core.dispatcher
    """
    compile_alone = dispatcher.Dispatcher.compile
    if compile_alone.__module__ == __name__:
        # A process that waited for itself would wait for its patience.
        return

    def compile_or_wait(function: Any, signature: Any) -> Any:
        # A function that users define by `exec` has no module.
        if (function.__module__ or "").startswith(_PACKAGE) and isinstance(signature, tuple):
            # numba compiles a function once more for a 0 or a True that is written where it is called.
            signature = tuple(map(dispatcher.types.unliteral, signature))
        folder = function._cache.cache_path
        if folder is None or tuple(getattr(signature, "args", signature)) in function.overloads:
            return compile_alone(function, signature)
        _forget_unreadable(function)
        lock = Path(folder) / f"{function.__module__}.{function.__qualname__}.lock"
        # numba's own lock first: a thread that has it may ask for the file of a function that this one calls.
        with dispatcher.global_compiler_lock, _locked(lock, lambda: _is_cached(function, signature)):
            return compile_alone(function, signature)

    dispatcher.Dispatcher.compile = compile_or_wait


def _forget_unreadable(function: Any) -> None:
    """Forget what an older version compiled: numba fails on types that are gone before it sees that it is older."""
    try:
        function._cache._cache_file._load_index()
    except (AttributeError, ImportError):
        with suppress(OSError):
            function._cache.flush()


def _is_cached(function: Any, signature: Any) -> bool:
    """Whether numba's cache has a function with a signature: it is then loaded, not compiled."""
    cache = function._cache
    return cache._index_key(signature, function.targetctx.codegen()) in cache._cache_file._load_index()


@contextmanager
def _locked(path: Path, is_needless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Keep other processes from a file, for at most `PATIENCE` seconds, where the file system can do that.

    is_needless  asked before each attempt: whether there is no need to
    """
    descriptor = None
    with suppress(OSError):
        end = time.monotonic() + PATIENCE
        while not is_needless() and time.monotonic() < end:
            if descriptor is None:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_POLL)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
