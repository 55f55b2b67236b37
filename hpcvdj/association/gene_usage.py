"""Genes that one of cases and controls has far more often: the two were sequenced, or called, in another way."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.chance.fit import COMMON, at_least
from hpcvdj.chance.p_values import Counts
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.errors import few
from hpcvdj.repertoires.genes import kinds_of

MARGIN = 4.0
"""How many times as common a gene must be in the median donor of one side as in that of the other."""

Usage = Mapping[str, Counts]
"""The number of distinct junctions of each gene, int64 [individuals]."""


def usage_of(cohort: Cohort) -> Usage | None:
    """Count the junctions of each V and J gene on all ranks; None but on root.  All ranks call this together."""
    individuals = cohort.has.individuals
    kind = kinds_of(cohort.repertoire)[cohort.has.sequence].astype(np.int64)
    pairs = np.bincount(
        kind * individuals + cohort.has.individual, minlength=len(cohort.repertoire.pairs) * individuals
    ).reshape(-1, individuals)
    none, usage = np.zeros(individuals, dtype=np.int64), dict[str, Counts]()
    for pair, numbers in zip(cohort.repertoire.pairs, pairs, strict=True):
        for gene in pair:
            usage[gene.allele] = usage.get(gene.allele, none) + numbers
    parts = cohort.run.gather(usage)
    if parts is None:
        return None
    names = sorted({name for part in parts for name in part})
    return {name: np.sum([part.get(name, none) for part in parts], axis=0) for name in names}


def differing_genes(usage: Usage, sizes: Counts, phenotype: Phenotype) -> Iterator[str]:
    """Name the genes that one of cases and controls has `MARGIN` times as often as the other, beyond chance.

    sizes  int64 [individuals]: the number of distinct junctions
    """
    sides = phenotype.donors[phenotype.case], phenotype.donors[~phenotype.case]
    for gene, numbers in usage.items():
        shares = [float(np.median(numbers[side] / np.maximum(sizes[side], 1))) for side in sides]
        (less, rare), (more, often) = sorted(zip(shares, sides, strict=True), key=lambda side: side[0])
        if more < COMMON or more < MARGIN * less:
            continue
        (number, of), (other, of_other) = ([int(v[side].sum()) for v in (numbers, sizes)] for side in (often, rare))
        if at_least(number, of) > MARGIN * (1 - at_least(of_other - other, of_other)):
            yield f"{gene} ({100 * shares[0]:.2g} % of the junctions of cases, {100 * shares[1]:.2g} % of controls)"


def usage_text(usage: Usage, sizes: Counts, phenotypes: Sequence[Phenotype]) -> str:
    """Say which genes differ between cases and controls; empty if none does."""
    asked = [phenotype for phenotype in phenotypes if phenotype.family == "case"]
    names = [name for phenotype in asked for name in differing_genes(usage, sizes, phenotype)]
    if not names:
        return ""
    return (
        f"cases and controls have other genes, by medians of donors: {few(names, 6)}; if they were sequenced, or "
        "called, in another way, hits of these genes say that alone: compare donors of one protocol"
    )
