"""The nucleotide kernel on a GPU: its tables, and the shared memory that it needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import on_gpu
from hpcvdj.kernels.pathways.tiles import TILE
from hpcvdj.kernels.pgen.tables import ROW_BASES, ROWS, Chain, Tables, Tries
from hpcvdj.recombination.alphabet import BASES_PER_WORD

FILE = "kernels/pgen/nt.cu"

MOST_STAGED = 1024
"""D forms are copied to shared memory up to this number: 16 bytes each."""

MOST_TURNS, ROWS_OF_A_TURN = 4, 1 << 18
"""A thread computes a sequence for each ROWS_OF_A_TURN that there are, up to MOST_TURNS, with the same tables."""

CONSTANTS = {"BASES_PER_WORD": BASES_PER_WORD, "TILE_BYTES": TILE.itemsize, "MOST_THREADS": 256}
"""What host and device share."""


class Nucleotides:
    """The tables of the nucleotide kernel on the GPU.

    name       of the kernel: the template instance
    tables     for it: arguments after those of the junctions
    """

    def __init__(self, tables: Tables, width: int) -> None:
        self.nodes: int = len(tables.forms.child)
        self._staged = self.nodes <= MOST_STAGED
        self.name = f"nucleotides<{width}, {str(self._staged).lower()}>"
        rows = tables.rows.reshape(len(tables.rows), ROWS, 2, ROW_BASES // 2).transpose(0, 2, 1, 3)
        self.tables = (
            *groups(tables), *_tries(tables.v), *_tries(tables.j), *_chain(tables.vd), *_chain(tables.dj),
            on_gpu(tables.forms.child), on_gpu(tables.weights), on_gpu(rows),
            on_gpu(tables.longer), np.int32(self.nodes),
        )  # fmt: skip

    def rows_of_block(self, threads: int, rows: int) -> int:
        """How many of `rows` sequences a block takes: several a thread if there are enough for all blocks."""
        return threads * max(1, min(MOST_TURNS, rows // ROWS_OF_A_TURN))

    def shared(self, threads: int, longest: int) -> int:
        """Bytes of shared memory of a block."""
        staged = self.nodes if self._staged else 0
        doubles: int = ROW_BASES * ROWS + 2 * 16 + 2 * staged + (longest + 1 + ROW_BASES) * threads
        return int(8 * doubles + 4 * 4 * ROWS)


def groups(tables: Tables) -> tuple[Any, ...]:
    """The groups of each pair on the GPU."""
    arrays = (tables.first_group, tables.group_v, tables.group_j, tables.group_d)
    return tuple(on_gpu(values.astype(np.int32)) for values in arrays)


def _tries(tries: Tries) -> tuple[Any, ...]:
    arrays: tuple[NDArray[Any], ...] = (tries.child, tries.alone, tries.ended, tries.beyond)
    return tuple(map(on_gpu, arrays))


def _chain(chain: Chain) -> tuple[Any, ...]:
    arrays: tuple[NDArray[np.float64], ...] = (chain.lengths, chain.step, chain.first)
    return (*map(on_gpu, arrays), np.int32(len(chain.lengths)))
