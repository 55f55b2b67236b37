"""Memory that this process has allocated and does not use."""

import ctypes
from contextlib import suppress

import pyarrow as pa


def return_freed_memory() -> None:
    """Return freed memory to the system; the C library and Arrow keep much of what was freed piece by piece."""
    pa.default_memory_pool().release_unused()
    # Only glibc has this function.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
