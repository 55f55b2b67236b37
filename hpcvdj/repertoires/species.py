"""Whether a repertoire seems to be of another species or locus than the germline table or model that it is given."""

import logging
from collections.abc import Callable, Iterator, Sequence

from hpcvdj.errors import InputError, option
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.germline import Germline, SegmentType, read_germline
from hpcvdj.recombination.igor import model_folders, read_model
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.packaged import germline_names, germline_paths
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.repertoires.tally import Tally, log_exclusions

log = logging.getLogger(__name__)

NEARLY_ALL = 0.9
HALF = 0.5

A_THIRD = 1 / 3
"""Enough if another table lists them: mouse TRBV20 is read as human TRBV20-1, so a human table lacks less than half."""

FEWEST_REACHED = 0.1
"""With a right table and `ENOUGH_N` n-nucleotides or more, a larger share of the junctions has a pathway."""

ENOUGH_N = 8

Unlisted = Sequence[tuple[SegmentType, str, int]]
"""(segment type, gene or allele that the table lacks, rows with that call)."""


Listing = Callable[[SegmentType, str], bool | None]
"""Whether a table or model lists a call that another one lacks; None if that decides nothing."""

_LACKING = (
    ExclusionKind.UNLISTED_GENE, ExclusionKind.UNLISTED_ALLELE, ExclusionKind.NOT_IN_MODEL,
    ExclusionKind.ALLELE_NOT_IN_MODEL, ExclusionKind.TIE_NOT_IN_MODEL, ExclusionKind.OTHER_LOCUS,
)  # fmt: skip


def species_warning(summary: Tally, reference: Reference) -> str | None:
    """A warning if `reference` seems to be of another species or locus than what was counted, or None.

    The warning names the table, of those in the same folder and those that have a name, or the model of those that have
    a name, that lists nearly all calls that this one lacks, if there is one.
    """
    unlisted: Unlisted = [
        (
            exclusion.get("segment"),
            str(exclusion.get("allele") or exclusion.get("gene") or exclusion.get("name")),
            count,
        )  # type: ignore[misc]
        for exclusion, count in summary.excluded
        if exclusion.kind in _LACKING
    ]
    rows, counted, reached = summary.rows_read, summary.counted, summary.nonzero
    lacking = sum(count for *_, count in unlisted)
    finding = f"{lacking:,} of {rows:,} rows have a V or J call that {reference.name} does not list"
    if lacking and lacking >= A_THIRD * rows:
        others = _other_tables(reference) if isinstance(reference, Germline) else _other_models(reference)
        other, listed, undecided = _best(others, unlisted)
        if other and listed >= NEARLY_ALL * (lacking - undecided) and undecided < HALF * lacking:
            return f"{finding}, but {other} lists those of {listed:,}: are the rows of that species or locus?"
    if lacking and lacking >= HALF * rows:
        return f"{finding}: are they of another species or locus?"
    telling = isinstance(reference, Model) or summary.max_n >= ENOUGH_N
    if telling and counted and reached < FEWEST_REACHED * counted:
        has = "a pathway" if isinstance(reference, Germline) else "a probability above 0"
        return (
            f"only {reached:,} of {counted:,} junctions have {has}: are they of another species or locus than "
            f"{reference.name}, or cut elsewhere than at Cys 104 and Phe/Trp 118 ({option('sequence_field')})?"
        )
    return None


def warn_of_rows(tally: Tally, reference: Reference, names: str = "", column: str = "") -> None:
    """Log as warnings what became of rows: replaced calls, excluded rows, another species.

    names   of the files; without them, of a table in memory, a line says all of the calls, and one all of the rows
    column  of the result that says why rows are excluded
    """
    species = species_warning(tally, reference)
    if names:
        log_exclusions(names, tally.rows_read, tally.excluded, tally.substituted)
        lines = [species and f"{names}: {species}"]
    else:
        where = f"; the column {column} says why" if column and tally.excluded else ""
        lines = [tally.substitutions, tally.exclusions + where, species]
    for line in filter(None, lines):
        log.warning("%s", line)


def _other_tables(germline: Germline) -> Iterator[tuple[str, Listing]]:
    """The germline tables in the folder of `germline`, and those that come with hpcvdj.

    A call whose gene both list, but not the allele, decides nothing.
    """
    names, packaged = germline_names(), set(germline_paths().values())
    beside = {path for own in germline.paths for path in own.parent.glob("*.tsv")} - packaged
    # A table goes before the species that has it.
    for table in (*map(str, sorted(beside)), *sorted(names, key=lambda name: len(names[name]))):
        try:
            other = read_germline(table)
        except InputError:
            continue  # Another kind of table.

        def lists(segment: SegmentType, call: str, other: Germline = other) -> bool | None:
            gene = call.partition("*")[0]
            if other.find(segment, call) or (other.find(segment, gene) and not germline.find(segment, gene)):
                return True
            return None if other.find(segment, gene) else False

        yield table, lists


def _other_models(model: Model) -> Iterator[tuple[str, Listing]]:
    """The models that have a name."""
    for name, folder in model_folders().items():
        other = read_model(folder, name)
        if other.digest != model.digest:

            def lists(segment: SegmentType, call: str, other: Model = other) -> bool | None:
                return isinstance(other.resolve(segment, call), Alleles)

            yield name, lists


def _best(others: Iterator[tuple[str, Listing]], unlisted: Unlisted) -> tuple[str | None, int, int]:
    """Of the `others`, the one that lists the calls of most rows, of how many, and of how many it decides nothing."""
    best: tuple[str | None, int, int] = None, 0, 0
    for name, lists in others:
        found = [(lists(segment, call), rows) for segment, call, rows in unlisted]
        listed = sum(rows for known, rows in found if known)
        if listed > best[1]:
            best = name, listed, sum(rows for known, rows in found if known is None)
    return best
