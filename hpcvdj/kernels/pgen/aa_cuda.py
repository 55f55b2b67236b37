"""The amino-acid kernel on a GPU: its tables, and the shared memory that it needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import on_gpu
from hpcvdj.kernels.pathways.tiles import TILE
from hpcvdj.kernels.pgen.aa_tries import preorder
from hpcvdj.kernels.pgen.codons import MISMATCH, Alphabet, CodonForms, CodonSteps, weights_of
from hpcvdj.kernels.pgen.nt_cuda import groups
from hpcvdj.kernels.pgen.tables import Chain, Tables
from hpcvdj.recombination.alphabet import BASES_PER_WORD

FILE = "kernels/pgen/aa.cu"

CONSTANTS = {
    "BASES_PER_WORD": BASES_PER_WORD, "TILE_BYTES": TILE.itemsize, "MOST_THREADS": 128,
    "STOP": Alphabet.of().symbols.index("*"),
}  # fmt: skip
"""What host and device share."""


class AminoAcids:
    """The tables of the amino-acid kernel on the GPU.

    name    of the kernel: the template instance
    tables  for it: arguments after those of the junctions
    """

    threads_per_row = 4

    def __init__(self, tables: Tables, alphabet: Alphabet, width: int, mismatches: int = 0) -> None:
        self.name = f"amino_acids<{width}, {'Dual' if mismatches else 'double'}>"
        self._bytes = 16 if mismatches else 8
        of_pair = np.repeat(np.arange(len(tables.first_group) - 1), np.diff(tables.first_group))
        again = (np.diff(tables.group_v) == 0) & (np.diff(of_pair) == 0)
        self._shares_v = np.bincount(of_pair[1:][again], minlength=len(tables.first_group) - 1) > 0
        codons = weights_of(alphabet, mismatches)
        forms = CodonForms.of(codons, tables)
        v, j = preorder(tables.v), preorder(tables.j)
        self._reach = int(max(nodes["depth"].max(initial=0) for nodes in (v, j)))
        tables_of_forms = (_on_gpu(values) for values in vars(forms).values())
        self.tables = (
            *groups(tables), on_gpu(alphabet.of_codon),
            *_steps(v, tables.vd, CodonSteps.of(codons, tables.vd, mirrored=False)),
            *_steps(j, tables.dj, CodonSteps.of(codons, tables.dj, mirrored=True)),
            *tables_of_forms,
            *map(np.int32, (len(alphabet.symbols), len(forms.code), forms.chance.shape[2], self._reach)),
        )  # fmt: skip

    def options(self, sizes: NDArray[np.int64]) -> list[tuple[Any, ...]]:
        """Arguments of a launch with so many junctions of each pair, the best first.

        Whether to keep Left, for groups with one V.  It needs more shared memory, and does not pay for few junctions.
        """
        pays = 4 * sizes[self._shares_v].sum() >= sizes.sum()
        return [(np.bool_(True),), (np.bool_(False),)] if pays else [(np.bool_(False),)]

    def shared(self, threads: int, longest: int, keep: Any) -> int:
        """Bytes of shared memory of a block: the kernel's `numbers_of`, and the symbols, for each sequence."""
        codons = longest // 3
        rows = min(self._reach, 3 * codons) + 1
        left = 9 * codons if keep else 16
        numbers = (9 * codons + 1 + left + 4 * rows + 7) // 8 * 8 + 4
        return threads // self.threads_per_row * (numbers * self._bytes + codons)


def _on_gpu(values: NDArray[Any]) -> Any:
    """An array with the kernel's types: complex numbers become values with derivatives."""
    if values.dtype == np.int64:
        return on_gpu(values.astype(np.int32))
    if values.dtype != np.complex128:
        return on_gpu(values)
    # Products of two mismatches are in the real part: no more than MISMATCH squared.
    value = np.where(np.abs(values.real) < MISMATCH, 0.0, values.real)
    return on_gpu(np.stack((value, values.imag / MISMATCH), axis=-1))


def _steps(nodes: NDArray[Any], chain: Chain, steps: CodonSteps) -> tuple[Any, ...]:
    fitting = (steps.fits != 0).any(axis=2)
    pairs = (fitting << np.arange(fitting.shape[1])).sum(axis=1).astype(np.uint32)
    through = (
        steps.one, steps.two, steps.whole, steps.first_two, steps.first_whole, steps.rest_two, steps.rest_whole,
        steps.fits,
    )  # fmt: skip
    return (
        on_gpu(nodes.view(np.uint8)), on_gpu(chain.lengths), on_gpu(chain.first), *map(_on_gpu, through),
        on_gpu(pairs), np.int32(len(chain.lengths)),
    )  # fmt: skip
