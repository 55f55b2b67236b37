"""Memory that this process has and does not use."""

import ctypes
from contextlib import suppress

import pyarrow as pa


def return_freed_memory() -> None:
    """Return freed memory to the system, of which the C library and Arrow keep much that was freed piece by piece."""
    pa.default_memory_pool().release_unused()
    # glibc alone has this function.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
