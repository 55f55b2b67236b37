"""Gene names of Adaptive Biotechnologies' immunoSEQ as IMGT's.

Adaptive numbers genes as IMGT does, writes two digits, and gives every gene a number in its family: TCRBV02-01 is
IMGT's TRBV2, TCRBV06-04*01 is TRBV6-4*01.  Which of the two spellings IMGT has depends on the species.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Literal, get_args

from hpcvdj.recombination.germline import Germline, read_germline
from hpcvdj.recombination.packaged import germline_paths

Species = Literal["human", "mouse"]

MISSING = frozenset({"", "unresolved", "unknown", "no data", "null", "na", "nan", "none", "-1"})
"""What Adaptive writes for a missing value, in lower case."""

_HUMAN_DV = {"TRAV14-1": "TRAV14/DV4", "TRAV23-1": "TRAV23/DV6", "TRAV29-1": "TRAV29/DV5", "TRAV36-1": "TRAV36/DV7",
             "TRAV38-2": "TRAV38-2/DV8"}  # fmt: skip
"""IMGT also has a pseudogene TRAV14-1.  Conversion tables of immuneML 3.0, tcrconvert 1.0 and tcrdist3 0.3 agree."""

_MOUSE_DV = {
    "TRAV4-4": "TRAV4-4/DV10", "TRAV6-7": "TRAV6-7/DV9", "TRAV13-4": "TRAV13-4/DV7", "TRAV14D-3": "TRAV14D-3/DV8",
    "TRAV15-1": "TRAV15-1/DV6-1", "TRAV15-2": "TRAV15-2/DV6-2", "TRAV15D-1": "TRAV15D-1/DV6D-1",
    "TRAV15D-2": "TRAV15D-2/DV6D-2", "TRAV16D-1": "TRAV16D/DV11", "TRAV21-1": "TRAV21/DV12",
}  # fmt: skip
"""IMGT's names of the genes, and tcrconvert's table, which a rule made; never seen in data."""

_EXCEPTIONS: dict[Species, dict[str, str]] = {
    "human": _HUMAN_DV,
    # tcrconvert, likewise; the gene is the only one of its family.
    "mouse": {**_MOUSE_DV, "TRAV8N": "TRAV8N-2"},
}

_KEEPING: dict[Species, dict[str, frozenset[int]]] = {
    "human": {
        "TRBV": frozenset({3, 4, 5, 6, 7, 8, 10, 11, 12, 20, 21, 22, 23, 24, 25, 29}),
        "TRAV": frozenset({1, 8, 9, 12, 13, 26, 38}),
    },
    "mouse": {"TRBV": frozenset({12, 13})},
}
"""Families whose first gene IMGT calls F-1, not F, by its list of genes (tidytcells 2.2 has it)."""

_ALL_KEEPING = "IGHV", "IGKV", "IGLV", "IGHD"
"""Segments whose families all do."""

_NAME = re.compile(
    r"(?P<locus>TC?R[ABDG]|IG[HKL])(?P<segment>[VDJ])"
    r"(?P<family>\d{1,2}[DNP]?|_?[IV]+|[ABC]|P\d?|D(?=-))?"
    r"(?:-(?P<gene>X|or\d\d_\d\d|[A-Z]{0,2}\d{1,2}[A-Z]?|\d{1,2}(?:_\d{1,2})+))?"
)
_NEXT_NAME = re.compile(r"/(?=\d|TC?R|IG)")


@cache
def germline_of(species: Species, locus: str) -> Germline | None:
    """The packaged germline table; None if there is none."""
    path = germline_paths().get(f"{species}_{locus.lower()}")
    return read_germline(path) if path is not None else None


@cache
def genes_of(species: Species, locus: str, segment: str) -> frozenset[str]:
    """The genes that the packaged germline table lists; none if there is no table."""
    germline = germline_of(species, locus)
    return frozenset(gene.gene for gene in germline.of(segment)) if germline is not None else frozenset()


def imgt_names(species: Species, text: str) -> list[str]:
    """IMGT's names of the genes, alleles or families in a list of Adaptive's, each once.

    Genes that Adaptive does not distinguish are joined by slashes.  A name of the nomenclature of Arden et al. (1995),
    such as TCRBV6S4, and any other that is not Adaptive's stays as it is: no germline table lists it.

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
        before = _NAME.match(first)
        prefix = before["locus"] + before["segment"] if before else ""
        spelt = [first, *(other if other[:1].isalpha() else prefix + other for other in others)]
        names += [_imgt_name(species, name) + star + allele for name in spelt if name]
    return list(dict.fromkeys(names))


@cache
def _imgt_name(species: Species, name: str) -> str:
    parts = _NAME.fullmatch(name)
    if parts is None or (parts["family"] is None and parts["gene"] is None):
        return name
    segment = parts["locus"].replace("TC", "T") + parts["segment"]
    family = segment + _family(parts["family"] or "")
    gene = parts["gene"] or "X"
    if gene == "X":
        return _EXCEPTIONS[species].get(family, family)
    if gene.startswith("or"):
        return f"{family}/OR{int(gene[2:4])}-{int(gene[5:])}"
    full = f"{family}-{'-'.join(part.lstrip('0') or '0' for part in gene.split('_'))}"
    if full in _EXCEPTIONS[species]:
        return _EXCEPTIONS[species][full]
    return family if full == f"{family}-1" and not _keeps_number(species, segment, family) else full


def _family(text: str) -> str:
    """IMGT's name of a family, less that of the segment: 06 is 6, _II is (II)."""
    return f"({text[1:]})" if text.startswith("_") else text.lstrip("0")


def _keeps_number(species: Species, segment: str, family: str) -> bool:
    """Whether IMGT calls the first gene of a family F-1, not F."""
    listed = genes_of(species, segment[:3], segment[3])
    if f"{family}-1" in listed or family in listed:
        return f"{family}-1" in listed
    number = re.match(r"\d+", family.removeprefix(segment))
    if segment in _KEEPING[species]:
        return number is not None and int(number[0]) in _KEEPING[species][segment]
    return segment in _ALL_KEEPING or any(gene.startswith(f"{family}-") for gene in listed)


def call_of(species: Species, columns: Mapping[str, str]) -> str:
    """The AIRR call of what Adaptive says of a row's V, D or J, in its columns resolved, gene, allele, family,
    family_ties, gene_ties and allele_ties; empty if it says nothing.

    A family stands for itself if the row does not list genes: it is never taken for its first gene.  Alleles that are
    tied are a list, unless they include the first one: counting takes a gene for its first allele anyway.

    >>> call_of("human", {"resolved": "TCRBV06", "gene": "unresolved", "gene_ties": "TCRBV06-05,TCRBV06-06"})
    'TRBV6-5,TRBV6-6'
    >>> call_of("human", {"gene": "TCRBV06-05", "allele": "01"}), call_of("mouse", {"family": "TCRBV12"})
    ('TRBV6-5*01', 'TRBV12')
    """
    known = {name: text.strip() for name, text in columns.items() if text.strip().lower() not in MISSING}
    names = partial(imgt_names, species)
    gene = next((known[name] for name in ("resolved", "gene") if name in known and _names_gene(known[name])), "")
    if gene:
        if "*" in gene:
            return ",".join(names(gene))
        return ",".join(f"{name}{allele}" for name in names(gene) for allele in _alleles(known))
    lists = ("gene_ties", "family_ties", "family", "resolved", "gene")
    return next((",".join(found) for name in lists if (found := names(known.get(name, "")))), "")


def _alleles(known: Mapping[str, str]) -> list[str]:
    allele = known.get("allele", "")
    tied = [text.strip() for text in known.get("allele_ties", "").split(",")]
    if re.fullmatch(r"\d+", allele):
        return [f"*{allele}"]
    numbers = [text for text in tied if re.fullmatch(r"\d+", text)]
    return [f"*{number}" for number in numbers] if numbers and "01" not in numbers else [""]


def _names_gene(text: str) -> bool:
    """Whether a name is that of a gene or an allele, not of a family."""
    if "*" in text or "," in text:
        return True
    parts = _NAME.fullmatch(text)
    return parts is None or parts["gene"] not in (None, "X") or parts["family"] in ("A", "B", "C")


def species_of(names: Iterable[tuple[str, int]]) -> Species:
    """The species of a table with these names of V and J genes, and their rows.

    It is the one whose packaged germline tables list more of what the other's do not; human if that is none.
    """
    rows = dict.fromkeys(get_args(Species), 0)
    for text, count in names:
        lists = [species for species in get_args(Species) if any(map(_is_listed(species), imgt_names(species, text)))]
        if len(lists) == 1:
            rows[lists[0]] += count
    return max(get_args(Species), key=lambda species: rows[species])


def _is_listed(species: Species) -> Callable[[str], bool]:
    return lambda name: name.partition("*")[0] in genes_of(species, name[:3], name[3:4])


def family_of_first(species: Species, name: str) -> str:
    """The name; of a gene F-1 the family F, unless it is the family's only gene: the 1 may be made up.

    >>> [family_of_first("human", name) for name in ("TRBV6-1", "TRBV2-1", "TRBV20-1", "TRBV6-2")]
    ['TRBV6', 'TRBV2', 'TRBV20-1', 'TRBV6-2']
    """
    family = name.removesuffix("-1")
    members = {gene for gene in genes_of(species, name[:3], name[3:4]) if gene.startswith(f"{family}-")}
    return name if members == {name} else family


def common_end(sequences: Sequence[str]) -> str:
    """The longest text with which all `sequences` end.

    >>> common_end(["GATTC", "CATTC"]), common_end([])
    ('ATTC', '')
    """
    if not sequences:
        return ""
    shortest = min(sequences, key=len)
    lengths = range(len(shortest), 0, -1)
    return next((shortest[-k:] for k in lengths if all(text.endswith(shortest[-k:]) for text in sequences)), "")


_TRB_ENDS: dict[Species, dict[str, str]] = {
    "human": {**{f"TRBJ{gene}": "TTT" for gene in ("1-1", "1-3", "1-4", "1-5", "1-6", "2-2", "2-3")},
              **{f"TRBJ{gene}": "TTC" for gene in ("1-2", "2-1", "2-4", "2-5", "2-6", "2-7")}, "TRBJ2-7*02": "GTC"},
    "mouse": {**{f"TRBJ{gene}": "TTT" for gene in ("1-1", "1-3", "1-5", "1-6", "2-2", "2-3", "2-4", "2-5")},
              **{f"TRBJ{gene}": "TTC" for gene in ("1-2", "1-4", "2-1", "2-7")}},
}  # fmt: skip
"""Codon 118 of J genes (of an allele that differs), from the sequences of IMGT that OLGA 1.3.0 has.

Mouse TRBJ1-7 and TRBJ2-6 are missing: the codon at their position is neither Phe nor Trp.
"""


@cache
def end_of_j(species: Species, call: str) -> str:
    """The bases with which all J genes of an AIRR call end at codon 118, which is included; empty if it is unknown.

    A family stands for all of its genes, a gene for its first allele.
    """
    return common_end([end for name in call.split(",") for end in _ends(species, name)])


def _ends(species: Species, name: str) -> list[str]:
    germline = germline_of(species, name[:3])
    if germline is None:
        return [""]
    segment = germline.find("J", name)
    if segment is None:
        members = [germline.find("J", gene) for gene in genes_of(species, name[:3], "J") if gene.startswith(f"{name}-")]
    else:
        members = [segment]
    codons = _TRB_ENDS[species]
    ends = [
        member.sequence + codon if (codon := codons.get(member.allele) or codons.get(member.gene)) else ""
        for member in members if member is not None
    ]  # fmt: skip
    return ends or [""]
