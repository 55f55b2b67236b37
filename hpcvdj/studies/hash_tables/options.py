"""The settings of the thesis's system."""

from __future__ import annotations

from dataclasses import dataclass

from hpcvdj.errors import InputError

KERNELS = ("sequential-bucket", "warp-to-bucket", "thread-to-bucket", "thread-to-pair")
"""The four GPU kernels (section 3.c)."""

BUILDERS = ("chained", "sorted")
"""The thesis's pointer-chained construction, and a plain one by sorting; both give the same arrays."""

MOST_TILE = 8
"""Sequences along one side of a block's tile of pairs, at most: their sums are registers."""

MOST_KEPT = 8
"""k-mers of a row's bucket in registers, at most."""


@dataclass(frozen=True)
class TableOptions:
    """Settings; InputError for one that cannot be.

    encoding              `auto` (the narrowest), 3x64, 2x32 or 2x64 (section 2.c)
    hash, seed            djb2, 2umt (whose constants the seed gives) or xor (section 2.f)
    buckets               buckets per sub-table when comparing; `thread-to-pair` always has one
    construction_buckets  buckets when constructing, merged to `buckets` after; None for as many (section 3.b)
    builder               chained or sorted
    kernel                one of KERNELS (CUDA only)
    linear                merge sorted buckets; False compares all k-mers of two buckets (section 3.c)
    keep                  k-mers of each row's bucket that a thread of `thread-to-bucket` has in registers, 1 to 8; 0
                          leaves them in shared memory, as the thesis does, and goes by `linear`
    cache_counts          counters in shared memory beside the k-mers; False reads them where k-mers agree
    threads_per_block     block size, a multiple of 32
    chunk                 k-mers of its column that a thread of `thread-to-pair` has in shared memory
    tile_rows, tile_columns  pairs that a block of `thread-to-bucket` does at once; 1 and 1 are the thesis's
    resident_threads      threads that a multiprocessor is to have room for: limits the registers of a thread
    shared_bytes          shared memory of a block at most; None for all that the GPU grants
    tile_bytes            counters that one launch leaves on the GPU, at most (never less than a row)
    """

    encoding: str = "auto"
    hash: str = "xor"
    seed: int = 1
    buckets: int = 32
    construction_buckets: int | None = None
    builder: str = "chained"
    kernel: str = "thread-to-bucket"
    linear: bool = True
    keep: int = 0
    cache_counts: bool = True
    threads_per_block: int = 32
    chunk: int = 8
    tile_rows: int = 1
    tile_columns: int = 1
    resident_threads: int = 768
    shared_bytes: int | None = None
    tile_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise InputError(f"kernel {self.kernel!r}: choose {', '.join(KERNELS)}")
        if self.builder not in BUILDERS:
            raise InputError(f"builder {self.builder!r}: choose {', '.join(BUILDERS)}")
        if not 1 <= self.buckets <= self.built_with:
            raise InputError(f"{self.buckets} buckets of {self.built_with} constructed: give 1 to as many")
        if self.threads_per_block % 32 or not 32 <= self.threads_per_block <= 1024:
            raise InputError(f"{self.threads_per_block} threads per block: give a multiple of 32 up to 1024")
        if self.chunk < 1:
            raise InputError(f"{self.chunk} k-mers a chunk: give 1 or more")
        if not 0 <= self.keep <= MOST_KEPT:
            raise InputError(f"{self.keep} k-mers kept: give 0 to {MOST_KEPT}")
        if not 1 <= self.resident_threads <= 2048:
            raise InputError(f"{self.resident_threads} resident threads: give 1 to 2048")
        if not (1 <= self.tile_rows <= MOST_TILE and 1 <= self.tile_columns <= MOST_TILE):
            raise InputError(f"a tile of {self.tile_rows} x {self.tile_columns}: give 1 to {MOST_TILE} each")

    @property
    def built_with(self) -> int:
        """Buckets of the construction."""
        return self.construction_buckets or self.buckets

    def compared_with(self, backend: str) -> int:
        """Buckets of the comparison: one for `thread-to-pair`, which merges all (section 3.c)."""
        return 1 if backend == "cuda" and self.kernel == "thread-to-pair" else self.buckets
