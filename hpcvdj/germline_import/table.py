"""The germline table of one or several sources: sorted segments, and a list of the refused alleles."""

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from hpcvdj.errors import InputError, option
from hpcvdj.germline_import.genes import EVIDENCE, Gene, RefusalKind, cut, natural_key
from hpcvdj.recombination.germline import COLUMNS, FUNCTIONS, Germline, Segment
from hpcvdj.storage.files import atomic_path, require_writable

_REFUSED = ("table", "locus", "allele", "reason")
"""The columns of the list of refused alleles."""


@dataclass(frozen=True)
class Imported:
    """A germline table, and the refused alleles, each with its `reason`.

    Both are sorted by locus, by segment type (V, D, J), and in natural order of the names.
    """

    rows: tuple[Segment, ...]
    refusals: tuple[Gene, ...]

    def germline(self, name: str = "germline.tsv") -> Germline:
        """The table as of `hpcvdj.read_germline`; InputError, which calls it `name`, if V or J is missing."""
        present = {(row.locus, row.segment_type): None for row in self.rows}
        needed = product(dict.fromkeys(locus for locus, _ in present) or [""], "VJ")
        missing = next((kind for kind in needed if kind not in present), None)
        if missing is None:
            return Germline(self.rows, name=name)
        locus, segment_type = missing
        alike = [gene for gene in self.refusals if gene.segment_type == segment_type and locus in ("", gene.locus)]
        (reason, _), *_ = Counter(gene.reason for gene in alike).most_common(1) or [("", 0)]
        refused, remedy = "", f"name the file with its {segment_type} genes as another SOURCE"
        if alike:
            refused, remedy = f" ({len(alike):,} refused, most with: {reason})", "correct the source, or take another"
        raise InputError(
            f"{name}: no {segment_type} allele{locus and ' of locus ' + locus} could be used{refused}; {remedy}, or "
            f"give only the other loci with {option('locus')}"
        )

    def texts(self, name: str) -> tuple[str, str]:
        """The texts of the files of the table, called `name`, and of the list of refused alleles."""
        rows = ([getattr(row, column) for column in COLUMNS] for row in self.rows)
        refused = ((name, gene.locus, gene.allele, gene.reason) for gene in self.refusals)
        return as_tsv(COLUMNS, rows), as_tsv(_REFUSED, refused)

    def write(self, target: str | Path, *, overwrite: bool = False) -> Path:
        """Write the table to `target` (.tsv or .tsv.gz) and the refusals beside it; returns the path of the refusals.

        The refusals are written even if no allele is refused, and even if the table cannot be used.
        """
        target = Path(target)
        beside = refused_path(target)
        require_writable_germline(target, overwrite=overwrite)
        # The list of a run whose table could not be used does not keep a corrected run from writing.
        replaces = overwrite or _is_list_of(beside, target.name)
        require_writable(beside, overwrite=replaces)
        table, refused = self.texts(target.name)
        _write(beside, refused, overwrite=replaces)
        try:
            self.germline(target.name)
        except InputError as error:
            raise InputError(f"{error}; {beside} has the reasons of all refused alleles") from None
        _write(target, table, overwrite=overwrite)
        return beside

    def reasons(self) -> list[tuple[str, int]]:
        """How many alleles were refused for each kind of reason, the most frequent first."""
        details: dict[str, list[str]] = defaultdict(list)
        for reason in (gene.refusal for gene in self.refusals if gene.refusal):
            details[reason.kind.text or reason.detail].append(str(reason))
        counts = [(texts[0] if len(texts) == 1 else kind, len(texts)) for kind, texts in details.items()]
        return sorted(counts, key=lambda count: -count[1])


def refused_path(target: Path) -> Path:
    """The path of the list of refused alleles: NAME.refused.tsv for NAME.tsv or NAME.tsv.gz."""
    return target.with_name(target.name.removesuffix(".gz").removesuffix(".tsv") + ".refused.tsv")


def _is_list_of(path: Path, table: str) -> bool:
    """Whether a file is the list of the refused alleles of a table."""
    try:
        header, *rows = path.read_text().splitlines()
    except (OSError, ValueError):
        return False
    return header.split("\t") == list(_REFUSED) and all(row.partition("\t")[0] == table for row in rows)


def require_writable_germline(target: Path, *, overwrite: bool) -> None:
    """Raise InputError, with the remedy, unless a germline table may be written at `target`."""
    if not target.name.endswith((".tsv", ".tsv.gz")):
        raise InputError(f"{target}: a germline table is TSV, so its name must end in .tsv or .tsv.gz")
    require_writable(target, overwrite=overwrite)


def as_tsv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join("\t".join(line) + "\n" for line in (columns, *rows))


def _write(path: Path, text: str, *, overwrite: bool) -> None:
    data = text.encode()
    with atomic_path(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def assemble(genes: list[Gene]) -> Imported:
    """The table of `genes`; every gene becomes a row or a refusal."""
    for gene in genes:
        cut(gene)
    for check in (_require_one_segment, _require_complete_segments):
        check([gene for gene in genes if gene.refusal is None])
    genes.sort(key=lambda gene: (gene.locus, "VDJ".index(gene.segment_type), natural_key(gene.allele)))
    rows = tuple(gene.row for gene in genes if gene.refusal is None)
    refusals = tuple(gene for gene in genes if gene.refusal is not None)
    kept = {row.gene for row in rows}
    for gene in refusals:
        gene.lost = not gene.outside and gene.gene not in kept
    return Imported(rows, refusals)


def _require_one_segment(genes: list[Gene]) -> None:
    """Refuse alleles that are listed with several segments, and repetitions of alleles."""
    segments: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for gene in genes:
        segments[gene.segment_type, gene.allele].add((gene.locus, gene.functional, gene.sequence))
    seen: set[tuple[str, str]] = set()
    for gene in genes:
        name = gene.segment_type, gene.allele
        here = f"keep one, here {gene.functional} {gene.sequence}"
        gene.require(len(segments[name]) == 1, RefusalKind.SEVERAL_SEGMENTS, here)
        gene.require(name not in seen, RefusalKind.REPEATED)
        seen.add(name)


def _require_complete_segments(genes: list[Gene]) -> None:
    """Refuse alleles of bracketed functionality with a segment of another length than the gene's germline alleles.

    A rearranged sequence shows the terminus of a gene only if the gene was not chewed back.  A shorter segment is
    chewed back, a longer one continues into added bases.  An allele without brackets keeps its length, and so does a
    bracketed allele if all alleles of its gene have brackets.
    """
    lengths: dict[tuple[str, str], set[int]] = defaultdict(set)
    for gene in genes:
        if gene.function in FUNCTIONS:
            lengths[gene.segment_type, gene.gene].add(len(gene.sequence))
    for gene in genes:
        expected, length = lengths[gene.segment_type, gene.gene], len(gene.sequence)
        complete = gene.function[:1] not in EVIDENCE or not expected or length in expected
        kind = RefusalKind.TRUNCATED if length < min(expected, default=0) else RefusalKind.LONGER
        germline = f"germline alleles have {' or '.join(map(str, sorted(expected)))}"
        gene.require(complete, kind, f"{gene.authority} {gene.function}, segment of {length} nt, {germline}")
