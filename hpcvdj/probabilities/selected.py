"""The columns with probabilities of productive junctions after selection, beside generation probabilities."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pgen.method import ForwardSum
from hpcvdj.kernels.quantities import SELECTION_REASONS
from hpcvdj.recombination.models import Alleles
from hpcvdj.recombination.productive import FIRST, LAST, productive_probability
from hpcvdj.recombination.repertoire import SELECTION_COLUMNS, PgenProblem
from hpcvdj.recombination.selection import RESIDUES as KNOWN
from hpcvdj.recombination.selection import genes_of
from hpcvdj.recombination.symbols import STOP
from hpcvdj.repertoires.genes import amino_acids, kinds_of

_KNOWN, _FIRST, _LAST = (np.isin(np.arange(256), list(text.encode())) for text in (KNOWN, FIRST, LAST))
_OUT_OF_FRAME, _NOT_PRODUCTIVE, _SEVERAL_RESIDUES, _SEVERAL_GENES = range(1, len(SELECTION_REASONS))


class SelectedKernel(Kernel):
    """A kernel for generation probabilities, with `SELECTION_COLUMNS` beside them.

    inner  the class of the kernel for generation probabilities, as `module.Class`
    """

    def __init__(self, inner: str, problem: PgenProblem, threads_per_block: int) -> None:
        assert problem.model.selection is not None
        self.problem, self.selection = problem, problem.model.selection
        names = tuple(name for name in problem.names if name not in SELECTION_COLUMNS)
        self.aa = names.index("pgen_aa")
        self.kernel: Kernel = resolve_name(inner)(replace(problem, names=names), threads_per_block)
        self.productive = productive_probability(problem.model)
        genes = [(genes_of(v.allele), genes_of(j.allele)) for v, j in problem.repertoire.pairs]
        self.v_genes, self.j_genes = ([pair[k] for pair in genes] for k in (0, 1))
        several = problem.model.names_several
        self.several = np.array([several(v) or several(j) for v, j in genes], dtype=bool)
        self.tied = _TiedGenes(inner, problem, self.several, threads_per_block)

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Start the kernel for generation probabilities, and compute factors meanwhile."""
        pending = self.kernel.start(unit, first, last)
        rows = range(unit.rows.start + first, unit.rows.start + last)
        of_tied = self.tied.start(rows)
        factor, reason = self._factors(rows)

        def values() -> NDArray[np.float64]:
            values = pending()
            tied, of_genes = of_tied()
            factor[tied] = np.where(reason[tied] == 0, of_genes, np.nan)
            beside = np.zeros((len(values), len(SELECTION_COLUMNS)))
            beside[first:last, 0] = factor
            beside[first:last, 1] = values[first:last, self.aa] * factor / self.productive
            beside[first:last, 2] = reason
            return np.concatenate([values, beside], axis=1)

        return values

    def _factors(self, rows: range) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return Q of some rows, or NaN and the index of the reason in `SELECTION_REASONS`."""
        repertoire, index = self.problem.repertoire, np.arange(rows.start, rows.stop)
        letters, codons = amino_acids(repertoire, index)
        pair = np.searchsorted(repertoire.offsets, index, side="right") - 1
        inside = np.arange(letters.shape[1]) < codons[:, np.newaxis]
        unambiguous = (_KNOWN[letters] | ~inside).all(axis=1)
        last = letters[np.arange(len(rows)), np.maximum(codons - 1, 0)]
        stop = (letters == ord(STOP)).any(axis=1)
        productive = (codons > 1) & _FIRST[letters[:, 0]] & _LAST[last] & ~stop
        reason = np.select(
            [repertoire.lengths[index] % 3 > 0, ~unambiguous & ~stop, ~productive, self.several[pair]],
            [_OUT_OF_FRAME, _SEVERAL_RESIDUES, _NOT_PRODUCTIVE, _SEVERAL_GENES],
            0,
        )
        factor = np.full(len(rows), np.nan)
        has = np.flatnonzero(reason == 0)
        logs = self.selection.log_factor(self.v_genes, self.j_genes, pair[has], letters[has], codons[has])
        factor[has] = np.exp(logs)
        return factor, reason


class _TiedGenes:
    """The selection factor of junctions whose V may be one of several genes that count as one.

    It is the mean of Q over the genes, weighted by the probability of the junction with each, so that its product with
    the probability with any of them is the sum over the genes.
    """

    def __init__(self, inner: str, problem: PgenProblem, several: NDArray[np.bool_], threads_per_block: int) -> None:
        assert problem.model.selection is not None
        self.log_factor = problem.model.selection.log_factor
        sizes = np.diff(problem.repertoire.offsets)
        tied = np.array(["," in genes_of(v.allele) for v, _ in problem.repertoire.pairs], dtype=bool) & ~several
        self.rows = np.flatnonzero(np.repeat(tied, sizes))
        self.part = problem.repertoire.subset(self.rows)
        self.pair = kinds_of(self.part)
        templates = problem.model.v

        def of_gene(v: Alleles, turn: int) -> Alleles:
            """Return the alleles of one of the genes; none after the last."""
            gene = (genes_of(v.allele).split(",") + [""] * turn)[turn]
            return Alleles(gene, tuple(k for k in v.places if genes_of(templates[k].allele) == gene))

        most = max((genes_of(v.allele).count(",") + 1 for v, _ in self.part.pairs), default=0)
        parts = [replace(self.part, pairs=[(of_gene(v, k), j) for v, j in self.part.pairs]) for k in range(most)]
        self.genes = [tuple([pair[side].allele for pair in part.pairs] for side in (0, 1)) for part in parts]
        problems = [replace(problem, names=("pgen_aa",), repertoire=part) for part in parts]
        self.kernels: list[Kernel] = [resolve_name(inner)(of_genes, threads_per_block) for of_genes in problems]

    def start(self, rows: range) -> Callable[[], tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Start the kernels, whose result is the tied junctions among `rows` that can be made, and their factors."""
        begin, stop = np.searchsorted(self.rows, (rows.start, rows.stop)).tolist()
        if begin == stop:
            return lambda: (np.zeros(0, dtype=np.int64), np.zeros(0))
        unit = Unit(range(len(self.part.pairs)), range(begin, stop), range(1), stop - begin)
        pending = [kernel.start(unit, 0, unit.tasks) for kernel in self.kernels]

        def factors() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            p = np.array([values()[:, 0] for values in pending])
            with_any = p.sum(axis=0)
            made, product = np.flatnonzero(with_any > 0), np.zeros(len(with_any))
            letters, codons = amino_acids(self.part, np.arange(begin, stop))
            for of_gene, (v, j) in zip(p, self.genes, strict=True):
                by = np.flatnonzero(of_gene > 0)
                logs = self.log_factor(v, j, self.pair[begin + by], letters[by], codons[by])
                product[by] += of_gene[by] * np.exp(logs)
            return self.rows[begin + made] - rows.start, product[made] / with_any[made]

        return factors


cpu, cuda = (partial(SelectedKernel, inner) for inner in ForwardSum.kernels.values())
"""The kernel on CPU cores; and that on a GPU, while the CPU computes the factors."""
