"""Numbers of counted and excluded rows, for messages, summaries and the log."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hpcvdj.errors import few, log
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind, added, by_summary
from hpcvdj.repertoires.junctions import Junctions

_MOST_LOGGED = 12

_ZERO = re.compile(r" *0+(\.0*)? *")

_DETAIL = " " * 12
"""The indent of lines about the details of a reason."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many rows of a table were counted, and why others were not.

    rows_read    data rows
    counted      rows that were counted
    excluded     the exclusions and their rows, the most frequent first
    substituted  (call, allele used for it, rows) for calls that were replaced
    max_n        the largest n-length; 0 for other quantities than pathways
    nonzero      sequences with a value other than 0
    """

    rows_read: int
    counted: int
    excluded: list[tuple[Exclusion, int]]
    substituted: list[tuple[str, str, int]]
    max_n: int = 0
    nonzero: int = 0

    @property
    def substitutions(self) -> str:
        """Which calls were replaced, in one line; empty if no call was."""
        if not self.substituted:
            return ""
        call, allele, rows = max(self.substituted, key=lambda item: item[2])
        total = sum(count for *_, count in self.substituted)
        return f"{len(self.substituted):,} call(s) replaced in {total:,} rows, such as {call} by {allele} in {rows:,}"

    @property
    def exclusions(self) -> str:
        """How many rows were excluded, and why, in one line; empty if no row was."""
        if not self.excluded:
            return ""
        reasons = [f"{rows:,} {_with_remedy(summary, group)}" for summary, rows, group in by_summary(self.excluded)]
        rows = sum(rows for _, rows in self.excluded)
        head = "" if self.counted else "no row could be used: "
        return f"{head}{rows:,} of {self.rows_read:,} rows excluded: {few(reasons, 8)}"

    @property
    def zero_counts(self) -> str:
        """A warning if read counts seem to begin at 0: a third of the rows that have one; empty for other tables."""
        excluded = [(e.get("text"), rows) for e, rows in self.excluded if e.kind is ExclusionKind.NO_COUNT]
        zeros = sum(rows for text, rows in excluded if _ZERO.fullmatch(str(text)))
        every = self.counted + sum(rows for _, rows in excluded)
        if zeros == 0 or zeros < every / 3:
            return ""
        return (
            f"{zeros:,} of {every:,} rows with a duplicate_count have 0: if counts begin at 0, add 1 to each; if they "
            "are not known, leave the column out"
        )

    @staticmethod
    def added(tallies: "Sequence[Tally]") -> dict[str, Any]:
        """Return the sums of the fields of tallies, by name."""
        counts = {name: sum(getattr(tally, name) for tally in tallies) for name in ("rows_read", "counted", "nonzero")}
        replaced: Counter[tuple[str, str]] = Counter()
        for tally in tallies:
            replaced.update({(call, allele): rows for call, allele, rows in tally.substituted})
        return {
            **counts,
            "excluded": added(tally.excluded for tally in tallies),
            "substituted": [(*names, rows) for names, rows in replaced.items()],
            "max_n": max(tally.max_n for tally in tallies),
        }


def _with_remedy(summary: str, group: list[tuple[Exclusion, int]]) -> str:
    text = summary if len(group) > 1 else str(group[0][0])
    remedy = group[0][0].kind.remedy
    return f"{text} ({remedy})" if remedy else text


def tally_of(junctions: Junctions) -> Tally:
    """The tally of rows whose values are not computed yet: all counted rows count as nonzero."""
    return Tally(
        rows_read=junctions.rows_read,
        counted=len(junctions),
        excluded=junctions.excluded.counts(),
        substituted=junctions.substituted,
        nonzero=len(junctions),
    )


def log_exclusions(name: str, tally: Tally) -> None:
    """Warn of replaced calls and of excluded rows, with the option that keeps such rows.

    name  of the table, or of several tables
    """
    substituted = sorted(tally.substituted, key=lambda item: -item[2])
    for call, allele, rows in substituted[:_MOST_LOGGED]:
        log.warning("%s: call %s is counted as %s in %s rows", name, call, allele, f"{rows:,}")
    if substituted[_MOST_LOGGED:]:
        more = len(substituted) - _MOST_LOGGED
        log.warning("and %d more calls; the attribute substituted_calls of the result lists all", more)
    if not tally.excluded:
        return
    level, out = level_of(tally.excluded), sum(rows for _, rows in tally.excluded)
    log.log(level, "%s: %s of %s rows excluded:", name, f"{out:,}", f"{tally.rows_read:,}")
    for line in reason_lines(tally.excluded):
        # Details are no warnings.
        log.log(logging.INFO if line.startswith(_DETAIL) else level, "%s", line)


def level_of(excluded: list[tuple[Exclusion, int]]) -> int:
    """The level at which excluded rows are logged.  That receptors are productive is expected, no warning."""
    expected = (ExclusionKind.UNPRODUCTIVE, ExclusionKind.MARKED_UNPRODUCTIVE)
    return logging.INFO if all(exclusion.kind in expected for exclusion, _ in excluded) else logging.WARNING


def reason_lines(excluded: list[tuple[Exclusion, int]]) -> list[str]:
    """How many rows have each kind of reason, with the most frequent details and the option that keeps such rows."""
    lines: list[str] = []
    for summary, rows, group in by_summary(excluded):
        kind = group[0][0].kind
        lines.append(f"  {rows:8,}  {summary if len(group) > 1 else group[0][0]}")
        listed = group if kind.listed and len(group) > 1 else []
        lines += [f"{_DETAIL}{count:8,}  {exclusion.particulars}" for exclusion, count in listed[:_MOST_LOGGED]]
        if listed[_MOST_LOGGED:]:
            rest = sum(count for _, count in listed[_MOST_LOGGED:])
            lines.append(f"{_DETAIL}{rest:8,}  in {len(listed) - _MOST_LOGGED} more")
        if kind.remedy:
            lines.append(f"{_DETAIL}{kind.remedy}")
    return lines
