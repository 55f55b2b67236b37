"""The settings of the thesis's system."""

from __future__ import annotations

from dataclasses import dataclass

from hpcvdj.errors import InputError, require_choice

KERNELS = ("sequential-bucket", "warp-to-bucket", "thread-to-bucket", "thread-to-pair")
"""The four GPU kernels (section 3.c)."""


@dataclass(frozen=True)
class TableOptions:
    """Settings; InputError if one is out of range.

    encoding              `auto` (the narrowest), 3x64, 2x32 or 2x64 (section 2.c)
    hash, seed            djb2, 2umt (whose constants the seed gives) or xor (section 2.f)
    buckets               buckets per sub-table when comparing; `thread-to-pair` always has one
    construction_buckets  buckets when constructing, merged to `buckets` after; None for the same number (section 3.b)
    kernel                one of KERNELS (CUDA only)
    linear                merge sorted buckets; False compares all k-mers of two buckets (section 3.c)
    threads_per_block     block size, a multiple of 32
    chunk                 k-mers of its column that a thread of `thread-to-pair` has in shared memory
    """

    encoding: str = "auto"
    hash: str = "xor"
    seed: int = 1
    buckets: int = 32
    construction_buckets: int | None = None
    kernel: str = "thread-to-bucket"
    linear: bool = True
    threads_per_block: int = 32
    chunk: int = 8

    def __post_init__(self) -> None:
        require_choice("kernel", self.kernel, KERNELS)
        if not 1 <= self.buckets <= self.built_with:
            raise InputError(f"{self.buckets} buckets of {self.built_with} constructed: give 1 to {self.built_with}")
        if self.threads_per_block % 32 or not 32 <= self.threads_per_block <= 1024:
            raise InputError(f"{self.threads_per_block} threads per block: give a multiple of 32 up to 1024")
        if self.chunk < 1:
            raise InputError(f"{self.chunk} k-mers a chunk: give 1 or more")

    @property
    def built_with(self) -> int:
        """Buckets of the construction."""
        return self.construction_buckets or self.buckets

    def compared_with(self, backend: str) -> int:
        """Buckets of the comparison: one for `thread-to-pair`, which merges all (section 3.c)."""
        return 1 if backend == "cuda" and self.kernel == "thread-to-pair" else self.buckets
