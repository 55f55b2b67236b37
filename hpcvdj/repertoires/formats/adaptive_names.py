"""IMGT's names of genes that Adaptive Biotechnologies' immunoSEQ names.

Adaptive numbers genes as IMGT does, writes two digits, and gives every gene a number in its family: TCRBV02-01 is
IMGT's TRBV2, TCRBV06-04*01 is TRBV6-4*01.  Whether IMGT numbers the first gene of a family depends on the species.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, partial
from itertools import takewhile
from typing import Literal, get_args

from hpcvdj.errors import log
from hpcvdj.recombination.germline import Germline, read_germline
from hpcvdj.recombination.packaged import germline_paths

Species = Literal["human", "mouse"]

MISSING = frozenset({"", "unresolved", "unknown", "no data", "null", "na", "nan", "none", "-1"})
"""What Adaptive writes for a missing value, in lower case."""

_ONLY_GENE = {("mouse", "TRAV8N"): "TRAV8N-2"}
"""The gene of a family that is always meant by the name of the family."""

_KEEPING = {("human", family) for family in ("TRBV8", "TRBV21", "TRBV22")}
"""Families F that no packaged table lists and whose first gene IMGT calls F-1, not F: see IMGT's list of genes."""

_NAME = re.compile(
    r"(?P<locus>TC?R[ABDG]|IG[HKL])(?P<segment>[VDJ])"
    r"(?P<family>\d{1,2}[DNP]?|_?[IV]+|[ABC]|P\d?|D(?=-))?"
    r"(?:-(?P<gene>X|or\d\d_\d\d|[A-Z]{0,2}\d{1,2}[A-Z]?|\d{1,2}(?:_\d{1,2})+))?"
)
_NEXT_NAME = re.compile(r"/(?=\d|TC?R|IG)")


@cache
def germline_of(species: Species, locus: str) -> Germline | None:
    """The packaged germline table of a species and locus; None if there is none."""
    path = germline_paths().get(f"{species}_{locus.lower()}")
    return read_germline(path) if path is not None else None


@cache
def genes_of(species: Species, locus: str, segment: str) -> frozenset[str]:
    """The genes that the packaged germline table lists; none if there is no table."""
    germline = germline_of(species, locus)
    return frozenset(gene.gene for gene in germline.of(segment)) if germline is not None else frozenset()


def imgt_names(species: Species, text: str) -> list[str]:
    """IMGT's names of the genes, alleles or families in a list of Adaptive's, each once.

    Slashes join genes that Adaptive does not distinguish.  Other names than Adaptive's do not change, such as TCRBV6S4
    of the nomenclature of Arden et al. (1995): no germline table lists it.

    >>> imgt_names("human", "TCRBV12-03/12-04*01,TCRBV02-01")
    ['TRBV12-3*01', 'TRBV12-4*01', 'TRBV2']
    >>> imgt_names("human", "TCRBV20-or09_02, TCRBV12-X,TCRBV6S4"), imgt_names("mouse", "TCRBV20-01")
    (['TRBV20/OR9-2', 'TRBV12', 'TCRBV6S4'], ['TRBV20'])
    """
    names: list[str] = []
    for part in text.split(","):
        if part.strip().lower() in MISSING:
            continue
        genes, star, allele = part.strip().partition("*")
        first, *others = _NEXT_NAME.split(genes)
        match = _NAME.match(first)
        prefix = match["locus"] + match["segment"] if match else ""
        complete = [first, *(other if other[:1].isalpha() else prefix + other for other in others)]
        names += [_imgt_name(species, name) + star + allele for name in complete if name]
    return list(dict.fromkeys(names))


@cache
def _imgt_name(species: Species, name: str) -> str:
    parts = _NAME.fullmatch(name)
    if parts is None or (parts["family"] is None and parts["gene"] is None):
        return name
    segment, number = parts["locus"].replace("TC", "T") + parts["segment"], parts["family"] or ""
    # IMGT writes 06 as 6, and _II as (II).
    family = segment + (f"({number[1:]})" if number.startswith("_") else number.lstrip("0"))
    gene = parts["gene"] or "X"
    if gene == "X":
        return _ONLY_GENE.get((species, family), family)
    if gene.startswith("or"):
        return f"{family}/OR{int(gene[2:4])}-{int(gene[5:])}"
    full = f"{family}-{'-'.join(part.lstrip('0') or '0' for part in gene.split('_'))}"
    listed = genes_of(species, segment[:3], segment[3])
    # Genes of two loci: TCRAV14-01 is TRAV14/DV4, TCRAV38-02 is TRAV38-2/DV8.
    of_two = {name.partition("/")[0]: name for name in listed if "/DV" in name}
    if full in of_two or full != f"{family}-1":
        return of_two.get(full, full)
    return of_two.get(family) or (full if _keeps_number(species, segment, family) else family)


def _keeps_number(species: Species, segment: str, family: str) -> bool:
    """Whether IMGT calls the first gene of a family F-1, not F."""
    listed = genes_of(species, segment[:3], segment[3])
    if segment == "TRBV" or (species, segment) == ("human", "TRAV"):
        # These have no families with letters, as TRAV12D of mouse.
        family = family.rstrip("DNP")
    if f"{family}-1" in listed or family in listed:
        return f"{family}-1" in listed
    # IMGT calls the first gene of every family of these segments F-1.
    keeps = segment in ("IGHV", "IGKV", "IGLV", "IGHD") or (species, family) in _KEEPING
    return keeps or any(gene.startswith(f"{family}-") for gene in listed)


def call_of(species: Species, columns: Mapping[str, str]) -> str:
    """The AIRR call of a row's V, D or J; empty if the row names none.

    columns  the texts of Adaptive's columns resolved, gene, allele, family, family_ties, gene_ties and allele_ties

    The call of a row that names a family and no genes is the family, not its first gene.  Tied alleles are a list, or
    the gene alone if they include its first allele, because counting replaces a gene by its first allele.

    >>> call_of("human", {"resolved": "TCRBV06", "gene": "unresolved", "gene_ties": "TCRBV06-05,TCRBV06-06"})
    'TRBV6-5,TRBV6-6'
    >>> call_of("human", {"gene": "TCRBV06-05", "allele": "01"}), call_of("mouse", {"family": "TCRBV12"})
    ('TRBV6-5*01', 'TRBV12')
    """
    texts = {name: text.strip() for name, text in columns.items() if text.strip().lower() not in MISSING}
    names = partial(imgt_names, species)
    gene = next((texts[name] for name in ("resolved", "gene") if name in texts and _names_gene(texts[name])), "")
    if gene:
        alleles = [""] if "*" in gene else _alleles(texts)
        return ",".join(f"{name}{allele}" for name in names(gene) for allele in alleles)
    lists = ("gene_ties", "family_ties", "family", "resolved", "gene")
    return next((",".join(genes) for name in lists if (genes := names(texts.get(name, "")))), "")


def _alleles(texts: Mapping[str, str]) -> list[str]:
    """What follows the gene in a call: `*` and the allele, or nothing, for each allele."""
    allele = texts.get("allele", "")
    tied = [text.strip() for text in texts.get("allele_ties", "").split(",")]
    if re.fullmatch(r"\d+", allele):
        return [f"*{allele}"]
    numbers = [text for text in tied if re.fullmatch(r"\d+", text)]
    return [f"*{number}" for number in numbers] if numbers and "01" not in numbers else [""]


def _names_gene(text: str) -> bool:
    """Whether a text names a gene or an allele, not a family."""
    if "*" in text or "," in text:
        return True
    parts = _NAME.fullmatch(text)
    return parts is None or parts["gene"] not in (None, "X") or parts["family"] in ("A", "B", "C")


def species_of(names: Iterable[tuple[str, int]]) -> Species:
    """The species of a table: the one with more rows whose genes only its packaged germline tables list.

    Human, with a warning, if no gene tells them apart.

    names  (genes, rows) of each text in the columns of V and J
    """
    rows, of_both = dict.fromkeys(get_args(Species), 0), False
    for text, count in names:
        lists = [species for species in get_args(Species) if _lists(species, text)]
        if len(lists) == 1:
            rows[lists[0]] += count
        of_both |= len(lists) > 1
    if of_both and not any(rows.values()):
        _tell_both()
    return max(get_args(Species), key=lambda species: rows[species])


@cache
def _tell_both() -> None:
    log.warning(
        "a table with Adaptive's names has only V and J genes that human and mouse have: they are read as human ones; "
        "give a column species, or more rows"
    )


def _lists(species: Species, text: str) -> bool:
    """Whether the packaged germline tables of a species list a gene of a text."""
    names = imgt_names(species, text)
    return any(name.partition("*")[0] in genes_of(species, name[:3], name[3:4]) for name in names)


def family_of_first(species: Species, name: str) -> str:
    """The name, or the family F of a gene F-1 unless it is the family's only gene: immunarch may have added the 1.

    >>> [family_of_first("human", name) for name in ("TRBV6-1", "TRBV2-1", "TRBV20-1", "TRBV6-2")]
    ['TRBV6', 'TRBV2', 'TRBV20-1', 'TRBV6-2']
    """
    family = name.removesuffix("-1")
    members = {gene for gene in genes_of(species, name[:3], name[3:4]) if gene.startswith(f"{family}-")}
    return name if members == {name} else family


_TRB_ENDS: dict[Species, dict[str, str]] = {
    "human": {**{f"TRBJ{gene}": "TTT" for gene in ("1-1", "1-3", "1-4", "1-5", "1-6", "2-2", "2-3")},
              **{f"TRBJ{gene}": "TTC" for gene in ("1-2", "2-1", "2-4", "2-5", "2-6", "2-7")}, "TRBJ2-7*02": "GTC"},
    "mouse": {**{f"TRBJ{gene}": "TTT" for gene in ("1-1", "1-3", "1-5", "1-6", "2-2", "2-3", "2-4", "2-5")},
              **{f"TRBJ{gene}": "TTC" for gene in ("1-2", "1-4", "2-1", "2-7")}},
}  # fmt: skip
"""Codon 118 of J genes, and of an allele that differs from its gene.  Source: IMGT's sequences in OLGA 1.3.0.

Mouse TRBJ1-7 and TRBJ2-6 are missing: the codon at their position is neither Phe nor Trp.
"""


@cache
def end_of_j(species: Species, call: str) -> str:
    """The last bases that all J genes of an AIRR call share, up to and including codon 118; empty if it is unknown.

    A family stands for all its genes, a gene for its first allele.

    >>> [end_of_j("human", call) for call in ("TRBJ2-1", "TRBJ1-2,TRBJ2-1", "TRBJ1-1,TRBJ1-2", "TRBJ9")]
    ['CTCCTACAATGAGCAGTTCTTC', 'CTTC', '', '']
    """
    from_last = zip(*(reversed(end) for name in call.split(",") for end in _ends(species, name)), strict=False)
    return "".join(letters[0] for letters in takewhile(lambda letters: len({*letters}) == 1, from_last))[::-1]


def _ends(species: Species, name: str) -> list[str]:
    """The sequence of each J gene that a name means, up to and including codon 118; empty if it is unknown."""
    germline = germline_of(species, name[:3])
    if germline is None:
        return [""]
    segment = germline.find("J", name)
    family = [germline.find("J", gene) for gene in genes_of(species, name[:3], "J") if gene.startswith(f"{name}-")]
    codons = _TRB_ENDS[species]
    ends = [
        member.sequence + codon if (codon := codons.get(member.allele) or codons.get(member.gene)) else ""
        for member in (family if segment is None else [segment]) if member is not None
    ]  # fmt: skip
    return ends or [""]
