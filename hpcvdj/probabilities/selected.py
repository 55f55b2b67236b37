"""Probabilities of productive junctions after selection: columns beside the generation probabilities."""

from dataclasses import replace
from pkgutil import resolve_name
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.quantities import SELECTION_REASONS
from hpcvdj.kernels.text import translate_rows, unpack_rows
from hpcvdj.recombination.productive import FIRST, LAST, productive_probability
from hpcvdj.recombination.repertoire import SELECTION_COLUMNS, PgenProblem
from hpcvdj.recombination.selection import RESIDUES as KNOWN
from hpcvdj.recombination.selection import genes_of
from hpcvdj.recombination.symbols import STOP, Alphabet

_KNOWN, FIRST_RESIDUE, LAST_RESIDUE = (np.isin(np.arange(256), list(text.encode())) for text in (KNOWN, FIRST, LAST))
_OUT_OF_FRAME, _NOT_PRODUCTIVE, _SEVERAL_RESIDUES, _SEVERAL_GENES = range(1, len(SELECTION_REASONS))


class _SelectedKernel(Kernel):
    """A kernel for generation probabilities, and `SELECTION_COLUMNS` beside what it computes.

    inner  the kernel's class
    """

    inner: ClassVar[str]

    def __init__(self, problem: PgenProblem, threads_per_block: int) -> None:
        assert problem.model.selection is not None
        self.problem, self.selection = problem, problem.model.selection
        names = tuple(name for name in problem.names if name not in SELECTION_COLUMNS)
        self.aa = names.index("pgen_aa")
        self.kernel: Kernel = resolve_name(self.inner)(replace(problem, names=names), threads_per_block)
        self.productive = productive_probability(problem.model)
        genes = [(genes_of(v.allele), genes_of(j.allele)) for v, j in problem.repertoire.pairs]
        self.v_genes, self.j_genes = ([pair[k] for pair in genes] for k in (0, 1))
        several = problem.model.names_several
        self.several = np.array([several(v) or several(j) for v, j in genes], dtype=bool)

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """As of the kernel itself; its rows get their factor while it computes."""
        pending = self.kernel.start(unit, first, last)
        rows = range(unit.rows.start + first, unit.rows.start + last)
        factor, reason = self._factors(rows)

        def values() -> NDArray[np.float64]:
            values = pending()
            beside = np.zeros((len(values), len(SELECTION_COLUMNS)))
            beside[first:last, 0] = factor
            beside[first:last, 1] = values[first:last, self.aa] * factor / self.productive
            beside[first:last, 2] = reason
            return np.concatenate([values, beside], axis=1)

        return values

    def _factors(self, rows: range) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Q of some rows, NaN for those that have none, and the place of the reason in `SELECTION_REASONS`."""
        repertoire, span = self.problem.repertoire, slice(rows.start, rows.stop)
        letters, codons = amino_acids_of(self.problem, span)
        pair = np.searchsorted(repertoire.offsets, np.arange(rows.start, rows.stop), side="right") - 1
        inside = np.arange(letters.shape[1]) < codons[:, np.newaxis]
        known = (_KNOWN[letters] | ~inside).all(axis=1)
        last = letters[np.arange(len(rows)), np.maximum(codons - 1, 0)]
        stop = (letters == ord(STOP)).any(axis=1)
        productive = (codons > 1) & FIRST_RESIDUE[letters[:, 0]] & LAST_RESIDUE[last] & ~stop
        reason = np.select(
            [repertoire.lengths[span] % 3 > 0, ~known & ~stop, ~productive, self.several[pair]],
            [_OUT_OF_FRAME, _SEVERAL_RESIDUES, _NOT_PRODUCTIVE, _SEVERAL_GENES],
            0,
        )
        factor = np.full(len(rows), np.nan)
        has = np.flatnonzero(reason == 0)
        logs = self.selection.log_factor(self.v_genes, self.j_genes, pair[has], letters[has], codons[has])
        factor[has] = np.exp(logs)
        return factor, reason


class CpuKernel(_SelectedKernel):
    """On CPU cores."""

    inner = "hpcvdj.kernels.pgen.pgen_cpu.PgenKernel"


class CudaKernel(_SelectedKernel):
    """On a GPU, beside which the CPU computes the factors."""

    inner = "hpcvdj.kernels.pgen.pgen_cuda.PgenKernel"


def amino_acids_of(problem: PgenProblem, span: slice) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The amino acids of some junctions as zero-padded ASCII, [rows, width], and how many; 0 of those out of frame."""
    alphabet = problem.symbols or Alphabet.of()
    symbols = np.frombuffer(alphabet.symbols.encode(), dtype=np.uint8)
    words, lengths = problem.repertoire.words[span], problem.repertoire.lengths[span]
    codons = np.where(lengths % 3 == 0, lengths // 3, 0).astype(np.int64)
    letters = np.zeros((len(codons), max(1, int(codons.max(initial=0)))), dtype=np.uint8)
    if problem.symbols is None:
        begins = np.arange(len(codons)) * letters.shape[1]
        translate_rows(words, codons, symbols[alphabet.of_codon], begins, letters.reshape(-1))
    else:
        unpack_rows(words, codons.astype(np.uint8), symbols, alphabet.bits, letters)
    return letters, codons
