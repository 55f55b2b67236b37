"""The amino-acid kernel on a GPU: its tables, and the shared memory that it needs."""

from dataclasses import replace
from typing import Any

import numpy as np

from hpcvdj.kernels.device import on_gpu
from hpcvdj.kernels.pathways.tiles import TILE
from hpcvdj.kernels.pgen.codons import Alphabet, CodonForms
from hpcvdj.kernels.pgen.nt_cuda import groups
from hpcvdj.kernels.pgen.symbol_tries import ENDED, NOT_MADE, Ambiguous, SymbolTries
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.recombination.alphabet import BASES_PER_WORD

FILE = "kernels/pgen/aa.cu"

WHOLE_CODON = np.dtype(
    [(name, np.int32) for name in ("place", "chance")]
    + [(name, np.uint8) for name in ("inside", "before", "after", "unused")]
    + [("rest", np.int32)]
)
"""The kernel's struct WholeCodon."""

CONSTANTS = {
    "BASES_PER_WORD": BASES_PER_WORD, "TILE_BYTES": TILE.itemsize, "MOST_THREADS": 128, "ENDED": ENDED,
    "NOT_MADE": NOT_MADE,
    "STOP": Alphabet.of().symbols.index("*"), "ANY_RESIDUE": Alphabet.of().symbols.index("X"),
}  # fmt: skip
"""What host and device share."""


class AminoAcids:
    """The tables of the amino-acid kernel on the GPU.

    name    of the kernel: the template instance
    tables  for it: arguments after those of the junctions
    """

    threads_per_row = 4

    def __init__(self, tables: Tables, alphabet: Alphabet, width: int, *, ball: bool = False) -> None:
        self.name = f"amino_acids<{width}, {str(ball).lower()}>"
        v, j = SymbolTries.of(tables, alphabet, Ambiguous("X", 1) if ball else Ambiguous())
        forms = CodonForms.of(alphabet.codons.astype(np.float64), tables)
        self.tables = (
            *groups(replace(tables, group_v=v.row_of(tables.group_v), group_j=j.row_of(tables.group_j))),
            on_gpu(alphabet.of_codon), *_side(v), *_side(j),
            on_gpu(v.steps.fits), on_gpu(j.steps.fits), *_forms(forms),
            *map(np.int32, (len(alphabet.symbols), *forms.chance.shape[1:])),
        )  # fmt: skip

    def shared(self, threads: int, longest: int) -> int:
        """Bytes of shared memory of a block: the kernel's `numbers_of`, and the symbols, for each sequence."""
        codons = longest // 3
        numbers = (9 * codons + 1 + 16 + 7) // 8 * 8 + 4
        return threads // self.threads_per_row * (8 * numbers + codons)


def _side(tries: SymbolTries) -> tuple[Any, ...]:
    steps = tries.steps
    arrays = (tries.child, tries.after, tries.ended, tries.beyond, steps.one, steps.two, steps.whole)
    return (*map(on_gpu, arrays), np.int32(tries.beyond.shape[1]))


def _forms(forms: CodonForms) -> tuple[Any, ...]:
    found = forms.found
    # A few bases more, which no form has.
    code = np.pad(forms.code, (2, 8))
    bases = np.stack([code[found + k] for k in range(7)]).astype(np.int64)
    whole = np.zeros(len(found), dtype=WHOLE_CODON)
    whole["place"], whole["chance"] = found, found * forms.chance.shape[2] + found + 3 - forms.begin[found]
    whole["inside"], whole["rest"] = np.minimum(found - forms.begin[found], 2), forms.end[found] - found - 3
    whole["before"], whole["after"] = 4 * bases[0] + bases[1], 4 * bases[5] + bases[6]
    dense = (
        forms.empty, forms.single, forms.double, forms.ends_two, forms.one_two, forms.one_three, forms.one_one,
        forms.two_two, forms.one_over_two,
    )  # fmt: skip
    return (
        *map(on_gpu, dense), on_gpu(code[2:]), on_gpu(whole.view(np.uint8)), on_gpu(forms.of_symbol.astype(np.int32)),
        on_gpu(forms.chance),
    )  # fmt: skip
