"""Germline segments, their P-nucleotides and their chewed-back forms (the paper, sections II-A and II-C).

A **segment** is the part of a germline gene in the CDR3.  A V segment begins after the Cys 104 codon and ends at the 3'
end.  A J segment begins at the 5' end and ends before the Phe/Trp 118 codon.  A D segment is the complete D gene.  An
**extended segment** is a segment with all P-nucleotides that its ends can have.  A **form** is a contiguous part of the
extended segment: a prefix for V, a suffix for J, any part for D.
"""

import csv
import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import ClassVar, Literal, get_args

from hpcvdj.errors import InputError, OptionError, choice, require_choice
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.names import alleles_by_name, imgt_spelling, normal_name
from hpcvdj.recombination.packaged import germline_names, germline_paths
from hpcvdj.storage.inputs import read_text

SegmentType = Literal["V", "D", "J"]

DAlleles = Literal["first", "all"]
"""Which D alleles recombine: the first functional one of each gene, or all functional ones."""

MAX_P = 4
"""The largest number of P-nucleotides at an end of a segment in the paper."""

LARGEST_MAX_P = 10
"""The largest number of P-nucleotides that users can ask for."""

COLUMNS = ("locus", "segment_type", "allele", "functional", "sequence", "source")
"""The columns of a germline table."""

SEGMENT_TYPES: dict[str, SegmentType] = {"V": "V", "D": "D", "J": "J"}

V_AND_J: tuple[SegmentType, ...] = ("V", "J")
"""The segment types of every locus."""

FUNCTIONS = ("F", "ORF", "P")
"""IMGT's functionality codes."""

Tables = str | Path | Iterable[str | Path]
"""One or more germline tables: paths, or names of tables that come with hpcvdj."""


@dataclass(frozen=True)
class Segment:
    """The segment of an allele.  `sequence` is upper-case A, C, G, T; `functional` is F, ORF or P, as in IMGT."""

    locus: str
    segment_type: SegmentType
    allele: str
    functional: str
    sequence: str
    source: str = ""

    @property
    def gene(self) -> str:
        """The name of the gene: that of the allele without `*01`."""
        return self.allele.partition("*")[0]


def first_alleles(segments: Iterable[Segment]) -> list[Segment]:
    """Return the first segment of each gene."""
    first: dict[str, Segment] = {}
    for segment in segments:
        first.setdefault(segment.gene, segment)
    return list(first.values())


def _p_3(segment: str, max_p: int) -> str:
    """Return the P-nucleotides of the 3' end, which they mirror: a segment has at most as many as it has bases."""
    return reverse_complement(segment[max(0, len(segment) - max_p) :])


def _p_5(segment: str, max_p: int) -> str:
    return reverse_complement(segment[:max_p])


def extended_v(segment: str, max_p: int = MAX_P) -> str:
    """Return the segment, then the P-nucleotides of its 3' end."""
    return segment + _p_3(segment, max_p)


def extended_j(segment: str, max_p: int = MAX_P) -> str:
    """Return the P-nucleotides of the 5' end, then the segment."""
    return _p_5(segment, max_p) + segment


def extended_d(segment: str, max_p: int = MAX_P) -> str:
    """Return the segment between the P-nucleotides of its two ends."""
    return _p_5(segment, max_p) + segment + _p_3(segment, max_p)


def v_forms(segment: str, max_p: int = MAX_P) -> list[str]:
    """Return all forms of a V segment, the empty one first, the longest one last: the prefixes."""
    extended = extended_v(segment, max_p)
    return [extended[:length] for length in range(len(extended) + 1)]


def j_forms(segment: str, max_p: int = MAX_P) -> list[str]:
    """Return all forms of a J segment, the empty one first, the longest one last: the suffixes."""
    extended = extended_j(segment, max_p)
    return [extended[len(extended) - length :] for length in range(len(extended) + 1)]


class DFormConvention:
    """A way of counting the forms of D segments; `summary` is for the help and the documentation."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def forms(self, segment: str, max_p: int = MAX_P) -> list[str]:
        """Return the forms of a D segment that are counted, including the empty one."""
        raise NotImplementedError


class PaperDForms(DFormConvention):
    """A form for each pair of chew-backs (l, r), 0 <= l < n, 0 <= r <= n - l, of an extended segment of n bases.

    Equal strings are listed as often as they arise, so there are (n+1)(n+2)/2 - 1 forms, n of them empty.
    """

    name = "paper"
    summary = "one per pair of chew-backs"

    def forms(self, segment: str, max_p: int = MAX_P) -> list[str]:
        extended = extended_d(segment, max_p)
        length = len(extended)
        return [extended[left : length - right] for left in range(length) for right in range(length - left + 1)]


class DistinctDForms(PaperDForms):
    """Each distinct string once per D segment of the table that takes part, including the empty one."""

    name = "distinct"
    summary = "each distinct string once per gene"

    def forms(self, segment: str, max_p: int = MAX_P) -> list[str]:
        return list(dict.fromkeys(super().forms(segment, max_p)))


def d_forms(segment: str, convention: str = PaperDForms.name, max_p: int = MAX_P) -> list[str]:
    """Return all forms of a D segment by the `DFormConvention` of that name."""
    return choice(DFormConvention, convention, "d_forms").forms(segment, max_p)


@dataclass(frozen=True)
class Germline:
    """The segments of one or more loci, and the rules by which calls find them.

    max_p      the largest number of P-nucleotides at an end of a segment
    d_alleles  which D alleles recombine: `first` (the first functional allele of each D gene, as a chromosome carries
               only one) or `all` functional ones
    paths      the files of the tables
    """

    segments: tuple[Segment, ...]
    name: str = "germline"
    max_p: int = MAX_P
    d_alleles: DAlleles = "first"
    paths: tuple[Path, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        require_choice("d_alleles", self.d_alleles, get_args(DAlleles))
        if not isinstance(self.max_p, Integral) or not 0 <= self.max_p <= LARGEST_MAX_P:
            raise OptionError.of("max_p", self.max_p, f"give a number from 0 to {LARGEST_MAX_P}")
        listed = set()
        for segment in self.segments:
            key = (segment.segment_type, imgt_spelling(segment.allele))
            if key in listed:
                raise InputError(f"{self.name}: {segment.allele} is listed twice; keep one row of it")
            listed.add(key)
        for locus, kind in product(self.loci, V_AND_J):
            if not self.of(kind, locus):
                raise InputError(f"{self.name}: locus {locus} has no {kind} segment; add rows with segment_type {kind}")

    def __repr__(self) -> str:
        numbers = ", ".join(f"{len(self.of(kind))} {kind}" for kind in SEGMENT_TYPES)
        options = f"max_p={self.max_p}, d_alleles={self.d_alleles!r}"
        return f"<Germline {self.name}: {', '.join(self.loci)}; {numbers}; {options}>"

    @cached_property
    def loci(self) -> tuple[str, ...]:
        """The loci, in the order of the table."""
        return tuple(dict.fromkeys(segment.locus for segment in self.segments))

    def of(self, segment_type: str, locus: str | None = None) -> tuple[Segment, ...]:
        """Return the segments of a type (and a locus), in the order of the table."""
        return tuple(s for s in self.segments if s.segment_type == segment_type and (locus is None or s.locus == locus))

    def d_segments(self, locus: str) -> tuple[Segment, ...]:
        """Return the D segments that recombine in a locus; empty for a locus without D genes."""
        functional = [s for s in self.of("D", locus) if s.functional == "F"]
        return tuple(functional if self.d_alleles == "all" else first_alleles(functional))

    def find(self, segment_type: str, call: str) -> Segment | None:
        """Return the segment of a call: of an allele by its full name, of a gene by its first listed allele.

        A family stands for its gene if only one is listed.  The spelling of names may vary as in models.
        """
        meant = self.meant(segment_type, call)
        return meant[0] if len({segment.gene for segment in meant}) == 1 else None

    def meant(self, segment_type: str, name: str) -> list[Segment]:
        """Return the segments that the name of an allele, a gene or a family means: see `names.alleles_by_name`."""
        segments, indices = self._by_name[segment_type]
        return [segments[index] for index in indices.get(normal_name(name), ())]

    @cached_property
    def _by_name(self) -> dict[str, tuple[tuple[Segment, ...], dict[str, tuple[int, ...]]]]:
        kinds = {kind: self.of(kind) for kind in SEGMENT_TYPES}
        return {kind: (listed, alleles_by_name(segment.allele for segment in listed)) for kind, listed in kinds.items()}

    def facts(self) -> dict[str, str | int]:
        """Return the facts that results record."""
        return {
            "germline_path": self.name, "germline_sha256": self.digest(), "max_p": self.max_p,
            "d_alleles": self.d_alleles,
        }  # fmt: skip

    def digest(self) -> str:
        """Return the SHA-256 of all that counts depend on: germlines with the same digest give the same counts."""
        rows = [f"{s.locus}\t{s.segment_type}\t{s.allele}\t{s.functional}\t{s.sequence}" for s in self.segments]
        settings = [f"max_p={self.max_p}", f"d_alleles={self.d_alleles}"]
        return hashlib.sha256("\n".join(rows + settings).encode()).hexdigest()


def read_germline(table: Tables, *, max_p: int = MAX_P, d_alleles: DAlleles = "first") -> Germline:
    """Read one or more germline tables: TSV files, plain or gzip, with the columns `COLUMNS`.

    table      a path, the name of a table that comes with hpcvdj (human_trb), or a species, which stands for the tables
               of all its loci (human); or a list of these.  If a file has the name, the file is read.
    max_p      the largest number of P-nucleotides at an end of a segment, 0 to 10
    d_alleles  which D alleles recombine: the `first` functional one of each gene, or `all` functional ones

    Several tables make one germline of all their loci, which are sorted by name.  So the order of tables of different
    loci does not matter.  Tables may share alleles.

    InputError names the file, the line and the remedy, or the two tables that list an allele with different segments.
    """
    names, packaged = germline_names(), germline_paths()
    paths: dict[str, Path] = {}
    for name in map(str, [table] if isinstance(table, str | Path) else table):
        if name in names and not Path(name).is_file():
            paths |= {name_of_table: packaged[name_of_table] for name_of_table in names[name]}
        else:
            paths[name] = Path(name)
    if not paths:
        raise InputError("no germline table is named; give at least one")
    tables = [
        Germline(_segments(path), name=name, max_p=max_p, d_alleles=d_alleles, paths=(path,))
        for name, path in paths.items()
    ]
    return tables[0] if len(tables) == 1 else _union(tables)


def _union(tables: list[Germline]) -> Germline:
    """Return a germline with the segments of several tables, locus by locus."""
    listed: dict[tuple[str, str], tuple[Segment, str]] = {}
    for table in tables:
        for segment in table.segments:
            key = (segment.segment_type, imgt_spelling(segment.allele))
            first, name = listed.setdefault(key, (segment, table.name))
            facts = [(alike.locus, alike.functional, alike.sequence) for alike in (first, segment)]
            if facts[0] != facts[1]:
                shown = " and ".join(" ".join(fact) for fact in facts)
                raise InputError(
                    f"{name} and {table.name}: different segments of {segment.allele} ({shown}); leave out one of the "
                    "tables, or correct it"
                )
    segments = sorted((segment for segment, _ in listed.values()), key=lambda segment: segment.locus)
    names, paths = ", ".join(table.name for table in tables), tuple(path for table in tables for path in table.paths)
    return replace(tables[0], segments=tuple(segments), name=names, paths=paths)


def _segments(path: Path) -> tuple[Segment, ...]:
    text = read_text(path, "germline table", f"give a path, or one of the names {', '.join(germline_names())}")
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE))
    except csv.Error as error:
        raise InputError(f"{path}: not a readable germline table ({error}); give a tab-separated file") from None
    if not rows:
        raise InputError(f"{path}: no segments; a germline table has a header line and a row per allele")
    missing = [column for column in COLUMNS[:5] if column not in rows[0]]
    if missing:
        raise InputError(
            f"{path}, line 1: no column {', '.join(missing)}; a germline table has the tab-separated columns "
            + ", ".join(COLUMNS)
        )
    return tuple(_segment(path, line, row) for line, row in enumerate(rows, start=2))


def _segment(path: Path, line: int, row: dict[str, str]) -> Segment:
    where = f"{path}, line {line}"
    values = {column: (row.get(column) or "").strip() for column in COLUMNS}
    kind = values["segment_type"]
    if kind not in SEGMENT_TYPES:
        raise InputError(f"{where}: segment_type is {kind!r}; write V, D or J")
    if row.get("sequence") is None:
        raise InputError(f"{where}: the row is cut short; every row needs the columns {', '.join(COLUMNS[:5])}")
    if values["functional"] not in FUNCTIONS:
        raise InputError(f"{where}: functional is {values['functional']!r}; write F, ORF or P")
    if not values["allele"] or not values["locus"]:
        raise InputError(f"{where}: allele or locus is empty; name both (TRBV1*01, TRB)")
    sequence = values["sequence"].upper()
    bad = sorted(set(sequence) - set("ACGT"))
    if bad:
        raise InputError(
            f"{where}: the sequence of {values['allele']} contains {bad[0]!r}; only A, C, G, T are allowed"
        )
    if kind == "D" and not sequence:
        raise InputError(f"{where}: the D segment {values['allele']} is empty; give its sequence or drop the row")
    return Segment(
        values["locus"], SEGMENT_TYPES[kind], values["allele"], values["functional"], sequence, values["source"]
    )


def from_sequences(
    v: Iterable[str], d: Iterable[str], j: Iterable[str], *, locus: str = "TRB", max_p: int = MAX_P
) -> Germline:
    """Make a germline of sequences, which get the names V1*01, V2*01 …, for experiments and tests."""
    segments = [
        Segment(locus, kind, f"{kind}{number}*01", "F", sequence)
        for kind, sequences in zip(SEGMENT_TYPES.values(), (v, d, j), strict=True)
        for number, sequence in enumerate(sequences, start=1)
    ]
    return Germline(tuple(segments), name="sequences", max_p=max_p)
