"""Generation probabilities of a repertoire on CPU cores."""

import numpy as np
from numba import njit, prange

from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pgen import aa_cpu, nt_cpu
from hpcvdj.kernels.pgen.codons import MISMATCH, SMALLEST, Alphabet
from hpcvdj.kernels.pgen.tables import ROW_BASES, Tables
from hpcvdj.recombination.repertoire import PgenProblem


@njit(cache=True, nogil=True, parallel=True)
def translate_rows(packed, lengths, of_codon, symbols, codons):  # type: ignore[no-untyped-def]
    """The amino acids of packed sequences into `symbols` [rows, codons]; `codons` is 0 for those out of frame."""
    for row in prange(len(lengths)):
        length = np.int64(lengths[row])
        codons[row] = 0
        if length % 3 == 0:
            codes = np.empty(length + ROW_BASES, dtype=np.uint8)
            nt_cpu.base_codes(packed[row], length, codes)
            codons[row] = length // 3
            for k in range(length // 3):
                symbols[row, k] = of_codon[16 * codes[3 * k] + 4 * codes[3 * k + 1] + codes[3 * k + 2]]


class PgenKernel(Kernel):
    """The model loaded for a problem; tasks are the sequences of the unit."""

    def __init__(self, problem: PgenProblem, threads_per_block: int) -> None:
        self.repertoire, self.names = problem.repertoire, problem.names
        tables = Tables.of(problem.model, [(v.places, j.places) for v, j in problem.repertoire.pairs])
        self.alphabet = Alphabet.of()
        self.nt = nt_cpu.arguments(tables) if "pgen_nt" in self.names else None
        self.aa = aa_cpu.arguments(tables, self.alphabet) if "pgen_aa" in self.names else None
        self.mismatched = aa_cpu.arguments(tables, self.alphabet, 1) if "pgen_aa_1mm" in self.names else None

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Compute the unit's sequences `first` … `last`-1, in their rows; the other rows are zero."""
        values = np.zeros((len(unit.rows), len(self.names)))
        begin, stop = unit.rows.start + first, unit.rows.start + last
        own = self.repertoire
        words, lengths = own.words[begin:stop], own.lengths[begin:stop]
        offsets, rows = own.offsets - begin, len(lengths)
        results = {}
        if self.nt is not None:
            results["pgen_nt"] = out = np.empty(rows)
            nt_cpu.nucleotide_rows(words, lengths, offsets, 0, rows, own.longest, out, *self.nt)
        if self.aa is not None or self.mismatched is not None:
            symbols = np.empty((rows, own.longest // 3), dtype=np.uint8)
            codons = np.empty(rows, dtype=np.uint8)
            translate_rows(words, lengths, self.alphabet.of_codon, symbols, codons)
        if self.aa is not None:
            results["pgen_aa"] = out = np.empty(rows)
            aa_cpu.amino_acid_rows(symbols, codons, offsets, 0, rows, out, *self.aa)
        if self.mismatched is not None:
            sums = np.empty(rows, dtype=np.complex128)
            aa_cpu.amino_acid_rows(symbols, codons, offsets, 0, rows, sums, *self.mismatched)
            # Each of the sums over one position has the sequence itself, unless a stop is there: X is a residue.
            within = np.arange(symbols.shape[1]) < codons[:, None]
            residues = (within & (symbols != self.alphabet.symbols.index("*"))).sum(axis=1)
            ball = sums.imag / MISMATCH - (residues - 1) * sums.real
            results["pgen_aa_1mm"] = np.where(ball < SMALLEST, 0.0, ball)
        for column, name in enumerate(self.names):
            values[first:last, column] = results[name]
        return lambda: values
