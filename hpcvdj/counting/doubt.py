"""Whether a repertoire looks as if it was counted with the germline table of another species or locus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import Germline, read_germline

_UNLISTED = re.compile(r"([VJ]) (?:gene|allele) (\S+) is not in the germline table")

NEARLY_ALL = 0.9
HALF = 0.5

REACHED = 0.1
"""With as many as `ENOUGH_N` n-nucleotides more junctions than this share have a pathway, unless the table is wrong."""

ENOUGH_N = 8


def doubt(
    excluded: Sequence[tuple[str, int]], rows: int, counted: int, reached: int, max_n: int, germline: Germline
) -> str | None:
    """A sentence if `germline` seems to be of another species or locus, or None.

    excluded  (reason, rows); `rows` were read, `counted` of them counted, `reached` of those have a pathway

    It names the table in the same folder that lists nearly all calls that this one lacks, if there is one.
    """
    unlisted = [(match[1], match[2], count) for reason, count in excluded if (match := _UNLISTED.match(reason))]
    lacking = sum(count for *_, count in unlisted)
    said = f"{lacking:,} of {rows:,} rows have a V or J call that {germline.name} does not list"
    if lacking >= HALF * rows:
        other, listed, undecided = _best_beside(germline, unlisted)
        if other and listed >= NEARLY_ALL * (lacking - undecided) and undecided < HALF * lacking:
            return f"{said}, and {other} lists that of {listed:,}: are they of another species or locus?"
    if lacking and lacking >= NEARLY_ALL * rows:
        return f"{said}: are they of another species or locus?"
    if max_n >= ENOUGH_N and counted and reached < REACHED * counted:
        return (
            f"only {reached:,} of {counted:,} junctions have a pathway: are they of another species or locus than "
            f"{germline.name}, or cut elsewhere than at Cys 104 and Phe/Trp 118 (--sequence-field)?"
        )
    return None


def _best_beside(germline: Germline, calls: Sequence[tuple[str, str, int]]) -> tuple[Path | None, int, int]:
    """Of the germline tables in the folder of `germline` the one that lists the calls of most rows, and of how many.

    Last: of how many rows it lists the gene, but not the allele, as `germline` does, which speaks for neither.
    """
    best: tuple[Path | None, int, int] = None, 0, 0
    for path in sorted(Path(germline.name).parent.glob("*.tsv")):
        try:
            other = read_germline(path)
        except InputError:
            continue  # Another kind of table.
        listed = undecided = 0
        for kind, call, rows in calls:
            gene = call.partition("*")[0]
            if other.find(kind, call) or (other.find(kind, gene) and not germline.find(kind, gene)):
                listed += rows
            elif other.find(kind, gene):
                undecided += rows
        if listed > best[1]:
            best = path, listed, undecided
    return best
