"""The nucleotide kernel on a GPU: its tables, and the shared memory that it needs."""

from typing import NamedTuple

import numpy as np

from hpcvdj.kernels.device import Struct
from hpcvdj.kernels.pgen.tables import ROW_BASES, ROWS, Chain, DForms, Groups, Tables, Tries
from hpcvdj.kernels.structs import places

FILE = "kernels/pgen/nt.cu"

MOST_STAGED = 1024
"""D forms are copied to shared memory up to this number: 16 bytes each."""

MOST_TURNS, ROWS_OF_A_TURN = 4, 1 << 18
"""A thread computes a sequence for each ROWS_OF_A_TURN that there are, up to MOST_TURNS, with the same tables."""


class Shared(NamedTuple):
    """Parts of a block's shared memory: the table of short D forms, the nodes of longer ones, the steps of insertions,
    the weights and links of all D forms if these are few, and Right, which has so many places for each thread."""

    rows: int
    longer: int
    vd: int
    dj: int
    weights: int
    child: int
    right: int
    places: int


CONSTANTS: dict[str, int | type] = {
    "MOST_THREADS": 256, "ROW_BASES": ROW_BASES, "ROWS": ROWS, "LONGER": 4 * ROWS, "Groups": Groups, "Tries": Tries,
    "Chain": Chain, "DForms": DForms, "Shared": Shared,
}  # fmt: skip
"""What host and device share."""


class Nucleotides:
    """The tables of the nucleotide kernel on the GPU.

    name    of the kernel: the template instance
    tables  for it: arguments after those of the junctions
    """

    def __init__(self, tables: Tables, width: int) -> None:
        self.nodes: int = len(tables.forms.child)
        self._staged = self.nodes <= MOST_STAGED
        self.name = f"nucleotides<{width}, {str(self._staged).lower()}>"
        rows = tables.forms.rows.reshape(-1, ROWS, 2, ROW_BASES // 2).transpose(0, 2, 1, 3)
        forms = tables.forms._replace(rows=rows)
        self.tables = [*map(Struct, (tables.groups, tables.v, tables.j, tables.vd, tables.dj, forms))]

    def rows_of_block(self, threads: int, rows: int) -> int:
        """How many of `rows` sequences a block takes: several a thread if there are enough for all blocks."""
        return threads * max(1, min(MOST_TURNS, rows // ROWS_OF_A_TURN))

    def shared(self, threads: int, longest: int) -> tuple[Shared, int]:
        """Where the parts of a block's shared memory begin, and its bytes."""
        double = np.dtype(np.float64).itemsize
        staged = double * self.nodes if self._staged else 0
        of_right = longest + 1 + ROW_BASES
        sizes = Shared(
            rows=double * ROW_BASES * ROWS, longer=16 * ROWS, vd=double * 16, dj=double * 16, weights=staged,
            child=staged, right=double * of_right * threads, places=0,
        )  # fmt: skip
        at, size = places(sizes)
        return at._replace(places=of_right), size
