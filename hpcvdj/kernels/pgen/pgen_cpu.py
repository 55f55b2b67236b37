"""Generation probabilities of a repertoire on CPU cores."""

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pgen import aa_cpu, ball_cpu, nt_cpu
from hpcvdj.kernels.pgen.ambiguous_texts import Ambiguous
from hpcvdj.kernels.pgen.symbol_tries import amino_acid_tables
from hpcvdj.kernels.pgen.tables import Tables
from hpcvdj.kernels.text import translate_rows
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem
from hpcvdj.recombination.symbols import ANY_RESIDUE, STOP, Alphabet


class PgenKernel(Kernel):
    """The model loaded for a problem; tasks are the sequences of the unit."""

    def __init__(self, problem: PgenProblem, threads_per_block: int) -> None:
        self.repertoire, self.names = problem.repertoire, problem.names
        tables = Tables.of(problem.model, [(v.places, j.places) for v, j in problem.repertoire.pairs])
        self.packed_symbols = problem.symbols is not None
        self.alphabet = problem.symbols or Alphabet.of()
        self.nt = nt_cpu.arguments(tables)
        self.aa = [name for name in self.names if name in PGEN_COLUMNS[1:]]
        ambiguous = Ambiguous.of(problem, ball="pgen_aa_1mm" in self.names)
        self.aa_tables = amino_acid_tables(tables, self.alphabet, ambiguous) if self.aa else ()

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Compute the unit's sequences `first` … `last`-1, in their rows; the other rows are zero."""
        values = np.zeros((len(unit.rows), len(self.names)))
        begin, stop = unit.rows.start + first, unit.rows.start + last
        repertoire = self.repertoire
        values[first:last] = self.values_of(
            repertoire.words[begin:stop], repertoire.lengths[begin:stop], repertoire.offsets - begin
        )
        return lambda: values

    def values_of(
        self, words: NDArray[np.uint64], lengths: NDArray[np.uint8], offsets: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Values [sequences, columns] of some of the sequences, grouped by the problem's pairs: offsets [pairs + 1]."""
        rows = len(lengths)
        values = np.empty((rows, len(self.names)))
        out = np.empty(rows)
        if "pgen_nt" in self.names:
            parts, longest = parts_of(rows, nt_cpu.CHUNK), self.repertoire.longest
            on_threads(nt_cpu.nucleotide_rows, parts, words, lengths, offsets, longest, out, *self.nt)
            values[:, self.names.index("pgen_nt")] = out
        if self.aa:
            symbols, codons = self._amino_acids(words, lengths)
            parts = parts_of(rows, aa_cpu.CHUNK)
        for name in self.aa:
            if name == "pgen_aa_1mm":
                x, stop = map(self.alphabet.symbols.index, (ANY_RESIDUE, STOP))
                on_threads(ball_cpu.ball_rows, parts, symbols, codons, offsets, x, stop, out, *self.aa_tables)
            else:
                on_threads(aa_cpu.amino_acid_rows, parts, symbols, codons, offsets, out, *self.aa_tables)
            values[:, self.names.index(name)] = out
        return values

    def _amino_acids(
        self, words: NDArray[np.uint64], lengths: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The symbols of packed sequences, [rows, codons], and how many they have; 0 for those out of frame."""
        if self.packed_symbols:
            return words.astype(">u8").view(np.uint8), lengths // np.uint8(self.alphabet.bases)
        symbols = np.empty((len(words), self.repertoire.longest // 3), dtype=np.uint8)
        codons = np.where(lengths % 3, np.uint8(0), lengths // np.uint8(3))
        begins = np.arange(len(words)) * symbols.shape[1]
        translate_rows(words, codons, self.alphabet.of_codon, begins, symbols.reshape(-1))
        return symbols, codons
