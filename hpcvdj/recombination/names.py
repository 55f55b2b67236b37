"""Names of genes and alleles: spellings in different programs, and the alleles that a name means."""

import re
from collections.abc import Iterable
from functools import lru_cache

_SECOND_NAME = re.compile(r"(?<=[\dDN])[-/]?(DV|OR)(?=\d)")
"""The beginning of the second part in the name of a V gene of alpha and delta chains, or of an orphon."""

MISSING = ("NA", "na", "N/A", "n/a", "NaN", "nan", "None", "none", "NULL", "Null", "null", "NONE", "<NA>")
"""Missing values as R, pandas and databases write them."""


def imgt_spelling(name: str) -> str:
    """Return the name with IMGT's slash before DV and OR, which programs omit or write as a hyphen.

    >>> [imgt_spelling(name) for name in ("TRAV29DV5*01", "TRAV4-4-DV10", "TRBV20OR9-2", "TRDV2")]
    ['TRAV29/DV5*01', 'TRAV4-4/DV10', 'TRBV20/OR9-2', 'TRDV2']
    """
    return _SECOND_NAME.sub(r"/\1", name)


@lru_cache(maxsize=1 << 14)
def normal_name(name: str) -> str:
    """Return the form in which names are compared: lower case, without leading zeros of numbers and without '/'.

    >>> [normal_name(name) for name in ("TRBV07-01*02", "TRAV29/DV5*01", "TCRBV06-01", "TRAV4-4-DV10")]
    ['trbv7-1*2', 'trav29dv5*1', 'trbv6-1', 'trav4-4dv10']
    """
    name = imgt_spelling(name.strip().upper()).lower().replace("/", "").replace("tcr", "tr", 1)
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)


def alleles_by_name(alleles: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the indices of the alleles that each normal name means: of an allele, a gene, or else a family (TRBV7).

    A gene TRBV6 is not the family of TRBV6-1.  A gene of alpha and delta chains may lack its second name: TRAV29 is
    TRAV29/DV5, unless there is a gene TRAV29.
    """
    names: dict[str, list[int]] = {}
    families: dict[str, list[int]] = {}
    synonyms: dict[str, list[int]] = {}
    for index, allele in enumerate(map(normal_name, alleles)):
        gene, star, number = allele.partition("*")
        families.setdefault(gene.partition("-")[0], []).append(index)
        for name in {allele, gene}:
            names.setdefault(name, []).append(index)
        stem = gene.partition("dv")[0] if gene.startswith("trav") else gene
        others = {stem, *[f"{name}-1" for name in (gene, stem) if "-" not in name]}
        for name in {name + end for name in others for end in ("", star + number)}:
            synonyms.setdefault(name, []).append(index)
    return {name: tuple(indices) for name, indices in {**synonyms, **families, **names}.items()}
