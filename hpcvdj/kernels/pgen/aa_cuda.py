"""The amino-acid kernel on a GPU: its tables, and the shared memory that it needs."""

from typing import Any, NamedTuple

from hpcvdj.kernels.device import Struct, on_gpu
from hpcvdj.kernels.pgen.ambiguous_texts import Ambiguous
from hpcvdj.kernels.pgen.codons import CodonForms
from hpcvdj.kernels.pgen.form_trie import CUTS, FormTrie
from hpcvdj.kernels.pgen.symbol_tries import NOT_MADE, SymbolTries, amino_acid_tables
from hpcvdj.kernels.pgen.tables import Groups, Tables
from hpcvdj.recombination.repertoire import PgenProblem
from hpcvdj.recombination.symbols import ANY_RESIDUE, STOP, Alphabet

FILE = "kernels/pgen/aa.cu"

COMPONENTS = 4
"""Of a weight within a codon."""

OF_CODON = 1 + 2 * COMPONENTS
"""Numbers of Right: one where a codon begins, and 4 after each of its first two bases."""


LISTS = 6
"""Lists of a sequence for sums over one mismatch."""


class Shared(NamedTuple):
    """Where in shared memory are, of a sequence's `numbers`: two weights of two codons of Left, and both sides of D
    forms, behind Right; and in bytes, all lists for so many `texts`, and all symbols of so many `codons`."""

    kept: int
    before: int
    after: int
    numbers: int
    lists: int
    texts: int
    symbols: int
    codons: int


CONSTANTS: dict[str, int | type] = {
    "MOST_THREADS": 128, "NOT_MADE": NOT_MADE, "CUTS": CUTS, "COMPONENTS": COMPONENTS,
    "OF_CODON": OF_CODON, "LISTS": LISTS, "Groups": Groups, "SymbolTries": SymbolTries, "CodonForms": CodonForms,
    "FormTrie": FormTrie, "Shared": Shared,
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

    def __init__(self, tables: Tables, problem: PgenProblem, *, ball: bool = False) -> None:
        flags = (str(flag).lower() for flag in (ball, problem.symbols is not None))
        self.name = f"amino_acids<{problem.repertoire.words.shape[1]}, {', '.join(flags)}>"
        alphabet, ambiguous = problem.symbols or Alphabet.of(), Ambiguous.of(problem, ball=ball)
        structs = map(Struct, amino_acid_tables(tables, alphabet, ambiguous))
        self.tables: list[Any] = [on_gpu(alphabet.of_codon), *structs]
        model = problem.model
        reach = max((len(template.extended) for template in (*model.v, *model.d, *model.j)), default=0)
        # A text of a tree has at most a codon more than its alleles; one more for that in which none goes on.
        self._texts = reach // 3 + 2 if ball else 0

    def rows_of_block(self, threads: int, rows: int) -> int:
        """How many of `rows` sequences a block takes."""
        return threads // COMPONENTS

    def shared(self, threads: int, longest: int) -> tuple[Shared, int]:
        """Where the parts of a block's shared memory begin, and its bytes."""
        codons, rows = longest // 3, threads // COMPONENTS
        kept = OF_CODON * codons + 1
        before = kept + 4 * COMPONENTS
        # The sequences of a warp begin in different banks.
        numbers = (before + 2 * CUTS + 7) // 8 * 8 + 4
        # A number with its slope has twice the size.
        lists = (16 if self._texts else 8) * numbers * rows
        symbols = lists + 4 * LISTS * self._texts * rows
        at = Shared(kept, before, before + CUTS, numbers, lists, self._texts, symbols, codons)
        return at, symbols + codons * rows
