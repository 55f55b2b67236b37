"""Whether a repertoire seems to be counted with the germline table of another species or locus."""

from collections.abc import Sequence
from pathlib import Path

from hpcvdj.counting.summary import Summary
from hpcvdj.errors import InputError
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.germline import Germline, SegmentType, read_germline

NEARLY_ALL = 0.9
HALF = 0.5

FEWEST_REACHED = 0.1
"""With a right table and `ENOUGH_N` n-nucleotides or more, a larger share of the junctions has a pathway."""

ENOUGH_N = 8

Unlisted = Sequence[tuple[SegmentType, str, int]]
"""(segment type, gene or allele that the table lacks, rows with that call)."""


def species_warning(summary: Summary, germline: Germline) -> str | None:
    """A warning if `germline` seems to be of another species or locus than what was counted, or None.

    The warning names the table in the same folder that lists nearly all calls that this one lacks, if there is one.
    """
    unlisted: Unlisted = [
        (exclusion.get("segment"), str(exclusion.get("allele") or exclusion.get("gene")), count)  # type: ignore[misc]
        for exclusion, count in summary.excluded
        if exclusion.kind in (ExclusionKind.UNLISTED_GENE, ExclusionKind.UNLISTED_ALLELE)
    ]
    rows, counted, reached = summary.rows_read, summary.counted, summary.nonzero
    lacking = sum(count for *_, count in unlisted)
    finding = f"{lacking:,} of {rows:,} rows have a V or J call that {germline.name} does not list"
    if lacking >= HALF * rows:
        other, listed, undecided = _best_neighbour(germline, unlisted)
        if other and listed >= NEARLY_ALL * (lacking - undecided) and undecided < HALF * lacking:
            return f"{finding}, but {other} lists those of {listed:,}: are the rows of that species or locus?"
    if lacking and lacking >= NEARLY_ALL * rows:
        return f"{finding}: are they of another species or locus?"
    if summary.max_n >= ENOUGH_N and counted and reached < FEWEST_REACHED * counted:
        return (
            f"only {reached:,} of {counted:,} junctions have a pathway: are they of another species or locus than "
            f"{germline.name}, or cut elsewhere than at Cys 104 and Phe/Trp 118 (--sequence-field)?"
        )
    return None


def _best_neighbour(germline: Germline, unlisted: Unlisted) -> tuple[Path | None, int, int]:
    """Of the germline tables in the folder of `germline`, the one that lists the calls of most rows, and of how many.

    The last number counts the rows whose gene it lists, but not the allele, as `germline` does: they decide nothing.
    """
    best: tuple[Path | None, int, int] = None, 0, 0
    for path in sorted(Path(germline.name).parent.glob("*.tsv")):
        try:
            other = read_germline(path)
        except InputError:
            continue  # Another kind of table.
        listed = undecided = 0
        for segment, call, rows in unlisted:
            gene = call.partition("*")[0]
            if other.find(segment, call) or (other.find(segment, gene) and not germline.find(segment, gene)):
                listed += rows
            elif other.find(segment, gene):
                undecided += rows
        if listed > best[1]:
            best = path, listed, undecided
    return best
