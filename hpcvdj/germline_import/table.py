"""The germline table of a source's alleles: cut, ordered, and with a list of those that are left out."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.germline_import.genes import EVIDENCE, Gene, Given, NoSegmentError, Row, cut, gene_of, natural_key
from hpcvdj.recombination.germline import COLUMNS, Germline, Segment

REFUSED_COLUMNS = ("table", "locus", "allele", "reason")
"""The columns of the list of refused alleles."""

_ORDER = "VDJ"
_PLAIN = ("F", "ORF", "P")


@dataclass(frozen=True)
class Refusal:
    """One allele that is left out of its table."""

    table: str
    locus: str
    allele: str
    reason: str


@dataclass(frozen=True)
class Imported:
    """A germline table and what was left out of it; `name` is the table's in the list of refused alleles.

    rows by locus, V before D before J, and naturally within each; refusals in that order too
    """

    name: str
    rows: tuple[Row, ...]
    refusals: tuple[Refusal, ...]

    def germline(self) -> Germline:
        """The table as `hpcvdj.read_germline` would read it; InputError if a locus has no V or no J."""
        self._require_whole_loci()
        segments = [
            Segment(row.locus, row.segment_type, row.allele, row.functional, row.sequence, row.source)
            for row in self.rows
        ]
        return Germline(tuple(segments), name=self.name)

    def texts(self) -> tuple[str, str]:
        """The table and the list of refused alleles, as their files have them."""
        return as_tsv(COLUMNS, self.rows), as_tsv(REFUSED_COLUMNS, self.refusals)

    def write(self, target: str | Path, *, overwrite: bool = False) -> Path:
        """Write the table to `target` (.tsv or .tsv.gz) and the refusals beside it; returns the path of these.

        The list is written even if it is empty, and even if the alleles that are left make no table.
        """
        from hpcvdj.storage import atomic_path, require_writable

        target = Path(target)
        beside = refused_path(target)
        for path in (target, beside):
            require_writable(path, overwrite=overwrite)
        table, refused = self.texts()
        _write(beside, refused, atomic_path(beside, overwrite=overwrite))
        self.germline()
        _write(target, table, atomic_path(target, overwrite=overwrite))
        return beside

    def counts(self) -> dict[str, Counter[tuple[str, str]]]:
        """Alleles by (segment type, functionality), for each locus."""
        counted: dict[str, Counter[tuple[str, str]]] = {}
        for row in self.rows:
            counted.setdefault(row.locus, Counter())[row.segment_type, row.functional] += 1
        return counted

    def reasons(self) -> list[tuple[str, int]]:
        """How many alleles were refused for each reason, less its details; the most frequent first."""
        full = [refusal.reason.removesuffix(_LOST) for refusal in self.refusals]
        heads = Counter(reason.partition(":")[0] for reason in full)
        whole = {reason.partition(":")[0]: reason for reason in full}
        return [(whole[head] if count == 1 else head, count) for head, count in heads.most_common()]

    def _require_whole_loci(self) -> None:
        if not self.rows:
            reason, count = self.reasons()[0] if self.refusals else ("nothing was there", 0)
            raise InputError(f"{self.name}: no allele is left, {count:,} were refused: {reason}")
        for locus, counts in self.counts().items():
            for kind in "VJ":
                if not any(found == kind for found, _ in counts):
                    why = self._why_none(locus + kind)
                    raise InputError(
                        f"{self.name}: locus {locus} has no {kind} allele that could be used{why}; "
                        f"name the file with its {kind} genes as another SOURCE, or leave the locus out with --locus"
                    )

    def _why_none(self, prefix: str) -> str:
        """The commonest reason why alleles whose names begin with `prefix` were refused."""
        reasons = Counter(one.reason for one in self.refusals if one.allele.startswith(prefix))
        return f" ({reasons.total():,} were refused: {reasons.most_common(1)[0][0]})" if reasons else ""


_LOST = "; the gene is lost"


def refused_path(target: Path) -> Path:
    """Where the refusals of a table are listed: NAME.refused.tsv.

    >>> refused_path(Path("macaque_trb.tsv.gz")).name
    'macaque_trb.refused.tsv'
    """
    return target.with_name(target.name.removesuffix(".gz").removesuffix(".tsv") + ".refused.tsv")


def _write(path: Path, text: str, written: AbstractContextManager[Path]) -> None:
    data = text.encode()
    with written as temporary:
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def as_tsv(columns: Iterable[str], records: Iterable[object]) -> str:
    """Tab-separated text: the header, then the named attributes of each record."""
    columns = list(columns)
    lines = [columns, *([getattr(record, column) for column in columns] for record in records)]
    return "".join("\t".join(line) + "\n" for line in lines)


def assemble(
    genes: Sequence[Gene], *, name: str, loci: Sequence[str] = (), given: Mapping[str, Given] | None = None
) -> Imported:
    """The table of `genes`; `loci` leaves other loci out, `given` is what an anchors file says.

    Every gene becomes a row or a refusal, and so does every allele that `given` names and no source has.
    """
    given = given or {}
    refused: list[tuple[Gene, str]] = []
    cut_rows: list[tuple[Gene, Row]] = []
    for gene in (_in_locus(gene, loci) for gene in genes):
        try:
            if gene.outside:
                raise NoSegmentError(gene.outside)
            cut_rows.append((gene, cut(gene, given.get(gene.allele))))
        except NoSegmentError as reason:
            refused.append((gene, str(reason)))
    for step in (_without_repeats, _without_partials):
        cut_rows, out = step(cut_rows)
        refused += out
    known = {gene.allele for gene in genes}
    strangers = [_stranger(allele) for allele in given if allele not in known]
    rows = tuple(sorted((row for _, row in cut_rows), key=_place))
    return Imported(name, rows, _refusals(name, rows, refused + strangers))


def _place(row: Row) -> tuple[object, ...]:
    return row.locus, _ORDER.index(row.segment_type), natural_key(row.allele)


def _in_locus(gene: Gene, loci: Sequence[str]) -> Gene:
    """The gene with its locus; marked as outside where that is not one of `loci`, or cannot be told."""
    if gene.outside:
        return gene
    if gene.locus == "TRA" and "TRD" in loci and "TRA" not in loci and "/DV" in gene.allele:
        # TRAV14/DV4 and its like are V genes of both loci.
        return replace(gene, locus="TRD")
    if not gene.locus and len(loci) == 1:
        return replace(gene, locus=loci[0])
    if not gene.locus:
        return replace(gene, outside="its locus is not told by its name; give --locus")
    if loci and gene.locus not in loci:
        return replace(gene, outside=f"of locus {gene.locus}, not {' or '.join(loci)}")
    return gene


def _stranger(allele: str) -> tuple[Gene, str]:
    outside = "the anchors file names it, no source has it"
    return Gene("V", allele, "", "", "", outside=outside), outside


def _without_repeats(rows: list[tuple[Gene, Row]]) -> tuple[list[tuple[Gene, Row]], list[tuple[Gene, str]]]:
    """Keep an allele that is listed again with the same segment once; leave out one with several segments."""
    by_name: dict[tuple[str, str], list[tuple[Gene, Row]]] = defaultdict(list)
    for gene, row in rows:
        by_name[row.segment_type, row.allele].append((gene, row))
    kept, out = [], []
    for entries in by_name.values():
        if len({(row.locus, row.functional, row.sequence) for _, row in entries}) == 1:
            kept.append(entries[0])
            out += [(replace(gene, outside="repeat"), "listed again with the same segment; kept once")
                    for gene, _ in entries[1:]]  # fmt: skip
            continue
        what = f"listed {len(entries)} times with different segments or functionality"
        out += [(gene, f"{what}: keep one of them, here {row.functional} {row.sequence}") for gene, row in entries]
    return kept, out


def _without_partials(rows: list[tuple[Gene, Row]]) -> tuple[list[tuple[Gene, Row]], list[tuple[Gene, str]]]:
    """Leave out alleles of bracketed functionality whose segment is not as long as that of a germline allele.

    A rearranged sequence tells a gene's terminus only if the gene happened not to be chewed back: a shorter
    segment is a chewed one, a longer one reads on into what recombination added.  An allele of plain
    functionality is kept at its own length, and so is a bracketed one whose gene has no plain allele.
    """
    lengths: dict[tuple[str, str], set[int]] = defaultdict(set)
    for _, row in rows:
        if row.function in _PLAIN:
            lengths[row.segment_type, row.gene].add(len(row.sequence))
    kept, out = [], []
    for gene, row in rows:
        known, length = lengths[row.segment_type, row.gene], len(row.sequence)
        if row.function[:1] not in EVIDENCE or not known or length in known:
            kept.append((gene, row))
            continue
        what = "truncated" if length < min(known) else "reads on beyond the germline end"
        germline = " or ".join(str(n) for n in sorted(known))
        reason = f"{what}: {row.authority} {row.function}, segment of {length} nt, germline alleles have {germline}"
        out.append((gene, reason))
    return kept, out


def _refusals(name: str, rows: Sequence[Row], refused: Sequence[tuple[Gene, str]]) -> tuple[Refusal, ...]:
    """In the table's order, telling where a gene is lost with its last allele."""
    genes = {row.gene for row in rows}
    ordered = sorted(refused, key=lambda one: (one[0].locus, _ORDER.index(one[0].kind), natural_key(one[0].allele)))
    return tuple(
        Refusal(name, gene.locus, gene.allele, reason + (_LOST if _is_lost(gene, genes) else ""))
        for gene, reason in ordered
    )


def _is_lost(gene: Gene, genes: set[str]) -> bool:
    return not gene.outside and gene_of(gene.allele) not in genes
