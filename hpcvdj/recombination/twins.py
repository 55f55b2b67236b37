"""Genes that sequencing reads hardly tell apart: V genes that are equal in the junction and for some bases before it.

Programs that align reads call one of such genes out of habit, or each of them in turn, so the calls say little about
which of them it was, and a probability with one of them is too small.
"""

from collections.abc import Sequence
from itertools import combinations

from hpcvdj.recombination.models import Template

READ_BASES = 100
"""Bases of V before Cys 104 that reads are taken to cover.  Of human TRBV genes, this makes TRBV12-3 and TRBV12-4 one,
and TRBV6-2 and TRBV6-3."""


def twin_genes(templates: Sequence[Template]) -> list[tuple[str, ...]]:
    """Groups of V genes of which alleles are equal in the last `READ_BASES` bases before Cys 104 and behind it.

    Where one of two alleles is shorter, it is compared as far as it goes.  Groups are those that pairs connect.
    """
    ends: dict[str, set[tuple[str, str]]] = {}
    for template in templates:
        if template.segment:
            before = template.sequence[: template.sequence.rfind(template.segment)]
            ends.setdefault(template.allele.partition("*")[0], set()).add((before[-READ_BASES:], template.segment))
    group = {gene: gene for gene in ends}

    def first(gene: str) -> str:
        while group[gene] != gene:
            gene = group[gene]
        return gene

    for one, other in combinations(ends, 2):
        if any(_equal(a, b) for a in ends[one] for b in ends[other]):
            group[max(first(one), first(other))] = min(first(one), first(other))
    members: dict[str, list[str]] = {}
    for gene in ends:
        members.setdefault(first(gene), []).append(gene)
    return [tuple(genes) for genes in members.values() if len(genes) > 1]


def _equal(one: tuple[str, str], other: tuple[str, str]) -> bool:
    (before, behind), (other_before, other_behind) = one, other
    known = min(len(before), len(other_before))
    return before[len(before) - known :] == other_before[len(other_before) - known :] and (
        behind.startswith(other_behind) or other_behind.startswith(behind)
    )
