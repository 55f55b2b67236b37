"""The amino-acid kernel on a GPU: its tables, and the shared memory that it needs."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import on_gpu
from hpcvdj.kernels.pathways.tiles import TILE
from hpcvdj.kernels.pgen.ambiguous_texts import Ambiguous
from hpcvdj.kernels.pgen.codons import CodonForms
from hpcvdj.kernels.pgen.form_trie import CUTS, FormTrie
from hpcvdj.kernels.pgen.nt_cuda import groups
from hpcvdj.kernels.pgen.symbol_tries import ENDED, NOT_MADE, SymbolTries
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.recombination.alphabet import BASES_PER_WORD
from hpcvdj.recombination.repertoire import PgenProblem
from hpcvdj.recombination.symbols import ANY_RESIDUE, STOP, Alphabet

FILE = "kernels/pgen/aa.cu"

CONSTANTS = {
    "BASES_PER_WORD": BASES_PER_WORD, "TILE_BYTES": TILE.itemsize, "MOST_THREADS": 128, "ENDED": ENDED,
    "NOT_MADE": NOT_MADE, "CUTS": CUTS,
    # In every alphabet at the same place.
    "STOP": Alphabet.of().symbols.index(STOP), "ANY_RESIDUE": Alphabet.of().symbols.index(ANY_RESIDUE),
    "SYMBOLS_PER_WORD": 64 // Alphabet.bits,
}  # fmt: skip
"""What host and device share."""


class AminoAcids:
    """The tables of the amino-acid kernel on the GPU.

    name    of the kernel: the template instance
    tables  for it: arguments after those of the junctions
    """

    threads_per_row = 4

    def __init__(self, tables: Tables, problem: PgenProblem, *, ball: bool = False) -> None:
        flags = (str(flag).lower() for flag in (ball, problem.symbols is not None))
        self.name = f"amino_acids<{problem.repertoire.words.shape[1]}, {', '.join(flags)}>"
        alphabet, ambiguous = problem.symbols or Alphabet.of(), Ambiguous.of(problem, ball=ball)
        v, j = SymbolTries.of(tables, alphabet, ambiguous)
        forms = CodonForms.of(alphabet.codons.astype(np.float64), tables)
        self.tables = (
            *groups(replace(tables, group_v=v.row_of(tables.group_v), group_j=j.row_of(tables.group_j))),
            on_gpu(alphabet.of_codon), *_side(v), *_side(j), on_gpu(alphabet.codon_sets),
            *_forms(forms, FormTrie.of(tables, alphabet, ambiguous)),
        )  # fmt: skip

    def rows_of_block(self, threads: int, rows: int) -> int:
        """How many of `rows` sequences a block takes."""
        return threads // self.threads_per_row

    def shared(self, threads: int, longest: int) -> int:
        """Bytes of shared memory of a block: the kernel's `numbers_of`, and the symbols, for each sequence."""
        codons = longest // 3
        numbers = (9 * codons + 1 + 16 + 2 * CUTS + 7) // 8 * 8 + 4
        return threads // self.threads_per_row * (8 * numbers + codons)


def _side(tries: SymbolTries) -> tuple[Any, ...]:
    steps = tries.steps
    arrays: tuple[NDArray[Any], ...] = (
        tries.child, tries.after, tries.ended, tries.beyond, steps.one, steps.two, steps.whole,
    )  # fmt: skip
    return (*map(on_gpu, arrays), np.int32(tries.beyond.shape[1]))


def _forms(forms: CodonForms, trie: FormTrie) -> tuple[Any, ...]:
    cuts = trie.before.astype(np.uint16) << 8 | trie.after
    arrays: tuple[NDArray[Any], ...] = (
        *vars(forms).values(), trie.child, trie.first.astype(np.int32), cuts, trie.weight,
    )  # fmt: skip
    return (*map(on_gpu, arrays), np.int32(trie.child.shape[1]), np.int32(trie.weight.shape[1]))
