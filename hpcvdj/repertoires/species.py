"""Whether a repertoire seems to be of another species or locus than its germline table or model, or calls exchanged."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from hpcvdj.errors import InputError, log, option
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.germline import Germline, SegmentType, read_germline
from hpcvdj.recombination.igor import model_folders, read_model
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.packaged import germline_names, germline_paths
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.repertoires.tally import Tally, level_of, log_exclusions

FEWEST_REACHED = 0.1
"""With the right table and `ENOUGH_N` n-nucleotides or more, a larger share of the junctions has a pathway."""

ENOUGH_N = 8

Unlisted = Sequence[tuple[SegmentType, str, int]]
"""(segment type, gene or allele that the table lacks, rows with that call)."""

Listing = Callable[[SegmentType, str], bool | None]
"""Whether a table or model lists a call that another one lacks; None if the call does not distinguish the two."""

_LACKING = (
    ExclusionKind.UNLISTED_GENE, ExclusionKind.UNLISTED_ALLELE, ExclusionKind.NOT_IN_MODEL,
    ExclusionKind.ALLELE_NOT_IN_MODEL, ExclusionKind.TIE_NOT_IN_MODEL, ExclusionKind.OTHER_LOCUS,
)  # fmt: skip


def species_warning(summary: Tally, reference: Reference) -> str | None:
    """A warning if `reference` seems to be of another species or locus than the counted rows, or None.

    The warning names the table or model that lists nearly all calls that this one lacks, if there is one: a named
    model, a named table, or a table in the same folder.
    """
    if exchanged := exchanged_calls(summary, reference):
        return exchanged
    unlisted = _unlisted(summary)
    rows, counted, reached = summary.rows_read, summary.counted, summary.nonzero
    lacking = sum(count for *_, count in unlisted)
    finding = f"{lacking:,} of {rows:,} rows have a V or J call that {reference.name} does not list"
    # A third is enough if another table lists the calls: mouse TRBV20 is read as human TRBV20-1, so a human table lacks
    # less than half of the calls of mouse rows.
    if lacking and lacking >= rows / 3:
        others = _other_tables(reference) if isinstance(reference, Germline) else _other_models(reference)
        other, listed, undecided = _best(others, unlisted)
        if other and listed >= 0.9 * (lacking - undecided) and undecided < 0.5 * lacking:
            return f"{finding}, but {other} lists those of {listed:,}: are the rows of that species or locus?"
    if lacking and lacking >= 0.5 * rows:
        return f"{finding}: are they of another species or locus?"
    telling = isinstance(reference, Model) or summary.max_n >= ENOUGH_N
    if telling and counted and reached < FEWEST_REACHED * counted:
        has = "a pathway" if isinstance(reference, Germline) else "a probability above 0"
        return (
            f"only {reached:,} of {counted:,} junctions have {has}: are they of another species or locus than "
            f"{reference.name}, or cut elsewhere than at Cys 104 and Phe/Trp 118 ({option('sequence_field')})?"
        )
    return None


def exchanged_calls(summary: Tally, reference: Reference) -> str:
    """A warning if V and J calls seem to be exchanged; empty if they do not."""
    calls = [(reference.find("J" if segment == "V" else "V", name), rows) for segment, name, rows in _unlisted(summary)]
    exchanged = sum(rows for listed, rows in calls if listed is not None)
    if exchanged == 0 or exchanged < summary.rows_read / 3:
        return ""
    return (
        f"{exchanged:,} of {summary.rows_read:,} rows have a J gene as v_call or a V gene as j_call: "
        f"{option('columns', {'v_call': 'j_call', 'j_call': 'v_call'})} exchanges the columns"
    )


def _unlisted(summary: Tally) -> Unlisted:
    lacking = [(exclusion.get, count) for exclusion, count in summary.excluded if exclusion.kind in _LACKING]
    return [(of("segment"), str(of("allele") or of("gene") or of("name")), count) for of, count in lacking]  # type: ignore[misc]


def warn_of_rows(tally: Tally, reference: Reference, names: str = "", column: str = "") -> None:
    """Log warnings: replaced calls, excluded rows, read counts that begin at 0, another species.

    names   of the files.  Without names, for a table in memory, one line is about all calls, and one about all rows
    column  of the result that has the reasons of excluded rows
    """
    species = species_warning(tally, reference)
    if names:
        log_exclusions(names, tally)
        lines = [text and f"{names}: {text}" for text in (tally.zero_counts, species)]
    else:
        where = f"; the column {column} says why" if column and tally.excluded else ""
        if tally.excluded:
            log.log(level_of(tally.excluded), "%s", tally.exclusions + where)
        lines = [tally.substitutions, tally.zero_counts, species]
    for line in filter(None, lines):
        log.warning("%s", line)


def _other_tables(germline: Germline) -> Iterator[tuple[str, Listing]]:
    """The germline tables in the folder of `germline`, and those that come with hpcvdj.

    A call does not distinguish two tables that list its gene, but not its allele.
    """
    names, packaged = germline_names(), set(germline_paths().values())
    beside = {path for table in germline.paths for path in table.parent.glob("*.tsv")} - packaged
    # The table of one locus comes before that of its species.
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
    """The models that have a name, except `model`."""
    for name, folder in model_folders().items():
        other = read_model(folder, name)
        if other.digest != model.digest:

            def lists(segment: SegmentType, call: str, other: Model = other) -> bool | None:
                return isinstance(other.resolve(segment, call), Alleles)

            yield name, lists


def _best(others: Iterator[tuple[str, Listing]], unlisted: Unlisted) -> tuple[str | None, int, int]:
    """The table or model that lists the calls of most rows; the rows that it lists, and those it does not decide on."""
    best: tuple[str | None, int, int] = None, 0, 0
    for name, lists in others:
        rows_of: Counter[bool | None] = Counter()
        for segment, call, rows in unlisted:
            rows_of[lists(segment, call)] += rows
        if rows_of[True] > best[1]:
            best = name, rows_of[True], rows_of[None]
    return best
