"""The methods of comparing sequences by their k-mers; all give the same counters."""

import sys
from collections.abc import Mapping
from math import ceil, inf, log
from pkgutil import resolve_name
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError, choices, option, require_choice
from hpcvdj.kernels.kmers.kmers import MAX_D, MAX_K
from hpcvdj.kernels.kmers.masks import JoinTables, index_tables, pigeonhole_tables
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.method import on_each_backend
from hpcvdj.kernels.pacing import Pacer
from hpcvdj.recombination.alphabet import BASES_PER_WORD

AUTO = "auto"
"""The name that stands for the method that `choose` chooses."""

CHANCE = 24
"""A k-mer may meet a candidate by chance in every 24th sequence: with fewer blocks of `pigeonhole` there are more."""

KMERS = 500.0
"""K-mers of a sequence, if nothing is known."""

NEVER = (0,) * (MAX_D + 1)

MATRIX_COLUMNS = 64
"""Columns of a tile of `matrix` on a CPU: a row of G, 8 bits a counter, is then a cache line for each distance."""


MOST_ENTRIES = (1 << 32) - 1
"""Entries of a table of a join, on a GPU of all its tables together: their indices have 32 bits."""


def shards_of(starts: NDArray[np.int64], tables: int, widest: int) -> list[int]:
    """Where columns are cut into shards of equal width, so that the tables of each have at most `MOST_ENTRIES`.

    starts  int64 [columns + 1]: the k-mers of column j are numbered from starts[j]
    widest  columns of a shard at most

    Returns the first column of each shard, and the number of columns.  MachineError if one column has too many.
    """
    columns = len(starts) - 1
    for shards in range(-(-columns // widest), columns + 1):
        edges = [columns * s // shards for s in range(shards + 1)] if shards else []
        if max(np.diff(starts[edges]), default=0) * tables <= MOST_ENTRIES:
            return edges
    require_numbered(int(np.diff(starts).max()) * tables)
    return list(range(columns + 1))


def require_numbered(entries: int) -> None:
    """Raise MachineError if a table of a join has more entries than `MOST_ENTRIES`."""
    if entries > MOST_ENTRIES:
        raise MachineError(
            f"a join would have {entries:,} k-mers in a table, and {MOST_ENTRIES:,} can be numbered; compare fewer "
            f"sequences, or take {option('method', 'matrix')}"
        )


class LoadedMethod(Protocol):
    """A method loaded with columns."""

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """D of `rows` against the columns, uint32 [d + 1, rows, columns], on the host or the GPU.

        rows   the rows; None for the columns first … last-1 themselves
        first  row r is the partner of column first + r in a symmetric relation: only columns from that one on are
               computed, those before it are undefined
        """
        ...


class KmerMethod:
    """A way of comparing; an instance is for k-mers of one length, one largest distance and one backend.

    name         as users give it
    longest_k    the longest k-mers that it takes on each backend; `MAX_K` on others
    fastest_k    for each backend, by d, k up to which it measured fastest (results/motifs_choice)
    comparisons  for each backend, where the LoadedMethod class is, which takes (columns, method, pace)

    blocks              blocks that it cuts k-mers into; 0 if it does not
    tables              tables of k-mers that it keeps
    bytes_per_sequence  bytes of memory for each column, beside those for its k-mers
    rows_need_tables    whether rows that are not among the loaded columns are put into tables first, which takes time
    tall_tiles          whether a tile should have all rows, as its columns are prepared for each tile
    """

    name: ClassVar[str]
    longest_k: ClassVar[Mapping[str, int]] = {}
    fastest_k: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    comparisons: ClassVar[Mapping[str, str]]
    blocks = 0
    tables = 1
    bytes_per_sequence = 0
    rows_need_tables = True
    tall_tiles = False

    def __init__(self, k: int, d: int, backend: str, blocks: int = 0) -> None:
        """InputError if it has no kernel for the backend, or none for such long k-mers."""
        if backend not in self.comparisons:
            raise InputError(
                f"{option('method', self.name)} has no kernel for {option('backend', backend)}; give another method"
            )
        longest = self.longest_k.get(backend, MAX_K)
        if k > longest:
            raise InputError(
                f"{option('method', self.name)} with {option('backend', backend)} takes k up to {longest}, not {k}; "
                "give another method"
            )
        self.k, self.d, self.backend = k, d, backend

    def __str__(self) -> str:
        return f"{self.name} with {self.blocks} blocks" if self.blocks else self.name

    @property
    def bytes_per_kmer(self) -> int:
        """Bytes of memory for each k-mer of the columns, about."""
        # Key, sequence and count; a GPU also has positions, and up to two buckets for an entry.
        entry = key_bytes(self.k) + 4 + (12 if self.backend == "cuda" else 0)
        # Sorting needs some memory beside the tables.
        return self.tables * entry + 64

    def load_columns(self, ranks: int) -> int:
        """Columns of a load at most, as more would not help; 0 if the more the better."""
        return 0

    def load(self, columns: Profile, pace: Pacer | None = None) -> LoadedMethod:
        """The method loaded with `columns`; on a CPU it works in steps, so that it can be left soon, or all at once."""
        # Imported now: numba and cupy are slow to import.
        loaded: LoadedMethod = resolve_name(self.comparisons[self.backend])(columns, self, pace or Pacer(seconds=inf))
        return loaded


class MatrixMethod(KmerMethod):
    """Occurrences times neighbourhoods."""

    name = "matrix"
    longest_k: ClassVar[Mapping[str, int]] = {"cpu": 11, "cuda": 9}
    fastest_k: ClassVar[Mapping[str, tuple[int, ...]]] = {"cpu": (6, 9, 10, 10), "cuda": (7, 8, 9, 9)}
    comparisons = on_each_backend("hpcvdj.kernels.kmers.matrix_{}:Matrix")

    def __init__(self, k: int, d: int, backend: str, blocks: int = 0) -> None:
        super().__init__(k, d, backend)
        # A GPU has the neighbourhoods of all columns, a CPU makes those of some columns for each tile.
        self.bytes_per_sequence = (d + 1) * 4**k if backend == "cuda" else 0
        self.tall_tiles = backend == "cpu"

    def load_columns(self, ranks: int) -> int:
        """A tile of columns for each thread, on a CPU."""
        if not self.tall_tiles:
            return 0
        import numba

        return MATRIX_COLUMNS * int(numba.get_num_threads())


class JoinMethod(KmerMethod):
    """Tables of k-mers by some of their positions.

    join  the tables
    """

    comparisons = on_each_backend("hpcvdj.kernels.kmers.join_{}:Join")

    def __init__(self, k: int, d: int, backend: str, join: JoinTables) -> None:
        super().__init__(k, d, backend)
        self.join, self.tables = join, len(join.masks)
        # A GPU looks each k-mer of a row up in the columns' tables.
        self.rows_need_tables = backend != "cuda"

    def load_columns(self, ranks: int) -> int:
        """A GPU goes through its columns shard by shard; several ranks share them."""
        if self.rows_need_tables or ranks == 1:
            return 0
        return int(resolve_name("hpcvdj.kernels.kmers.join_cuda:widest_shard")(self.d))


class Pigeonhole(JoinMethod):
    """Tables by some blocks of positions; whole keys decide."""

    name = "pigeonhole"

    def __init__(self, k: int, d: int, backend: str, blocks: int = 0) -> None:
        if not d < blocks <= k:
            raise InputError(f"{option('blocks', blocks)}: give a number from d + 1 = {d + 1} to k = {k}")
        super().__init__(k, d, backend, pigeonhole_tables(k, d, blocks))
        self.blocks = blocks


class Index(JoinMethod):
    """A table for each wildcard configuration."""

    name = "index"
    fastest_k: ClassVar[Mapping[str, tuple[int, ...]]] = {"cpu": (8, 0, 0, 11)}

    def __init__(self, k: int, d: int, backend: str, blocks: int = 0) -> None:
        super().__init__(k, d, backend, index_tables(k, d))


def key_bytes(k: int) -> int:
    """Bytes of a key in a table."""
    return 4 if k <= BASES_PER_WORD // 2 else 8


def best_blocks(k: int, d: int, kmers: float = KMERS) -> int:
    """The fewest blocks with which candidates are rare (`CHANCE`), or k; near the best in results/motifs_choice.

    kmers  of a sequence, on average

    >>> [best_blocks(k, 2) for k in (10, 12, 14, 16, 20, 28)]
    [9, 6, 5, 4, 4, 3]
    """
    kept = ceil(log(CHANCE * max(1.0, kmers), 4))
    # A table leaves out the d longest blocks at worst.
    enough = (blocks for blocks in range(d + 1, k) if k - d * (k // blocks) - min(d, k % blocks) >= kept)
    return next(enough, k)


def choose(name: str, k: int, d: int, backend: str, *, blocks: int = 0, kmers: float = KMERS) -> KmerMethod:
    """The method called `name`, or for `auto` the one that measured fastest.

    blocks  of `pigeonhole`; 0 for `best_blocks`

    InputError for an unknown name, or a method that does not take such k-mers.
    """
    known = choices(KmerMethod)
    require_choice("method", name, (AUTO, *known))
    if name == AUTO:
        fastest = (other for other, kind in known.items() if k <= kind.fastest_k.get(backend, NEVER)[d])
        name = next(fastest, Pigeonhole.name)
    return known[name](k, d, backend, blocks or best_blocks(k, d, kmers))


def array_module(array: Any) -> Any:
    """NumPy, or cupy for an array on the GPU."""
    return np if isinstance(array, np.ndarray) else sys.modules["cupy"]
