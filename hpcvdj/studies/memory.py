"""The paper's Table III: memory of the forms and of the in vivo sequences, one byte and two bits a base."""

from __future__ import annotations

from dataclasses import dataclass

from hpcvdj.alphabet import packed_bytes
from hpcvdj.germline import DForms, Germline, d_forms, j_forms, v_forms

IN_VIVO_BYTES = 64
"""Bytes of an in vivo sequence at one byte a base, padded (section V-A)."""

IN_VIVO_PACKED_BYTES = 16
"""Bytes of one at two bits a base."""

PAPER_TABLE_3 = {"V": (1448, 425), "J": (3107, 913), "D": (3210, 908)}
"""Bytes, baseline and bit-wise, by the row of the paper's Table III in which they are printed."""


@dataclass(frozen=True)
class FormsRow:
    """Forms of one segment type: how many segments and forms, and the forms' bytes in both packings."""

    segment_type: str
    segments: int
    forms: int
    baseline_bytes: int
    bitwise_bytes: int

    @property
    def reduction(self) -> float:
        """Percent that two bits a base save."""
        return 100 * (1 - self.bitwise_bytes / self.baseline_bytes) if self.baseline_bytes else 0.0


@dataclass(frozen=True)
class FormsTable:
    """Table III of one locus."""

    locus: str
    rows: tuple[FormsRow, ...]

    def forms(self, segment_type: str) -> int:
        """Forms of a segment type."""
        return next(row.forms for row in self.rows if row.segment_type == segment_type)

    @property
    def in_silico_per_string(self) -> int:
        """In silico sequences that each n-nucleotide string takes part in, its cuts apart (section IV)."""
        return self.forms("V") * self.forms("J") * max(1, self.forms("D"))

    @property
    def v_j_threads(self) -> int:
        """Threads of the V–J alternative that section IV considers."""
        return self.forms("V") * self.forms("J")

    def is_paper_set(self) -> bool:
        """Whether the V and J rows have the bytes that the paper prints, one line off."""
        bytes_of = {row.segment_type: (row.baseline_bytes, row.bitwise_bytes) for row in self.rows}
        return bytes_of["V"] == PAPER_TABLE_3["J"] and bytes_of["J"] == PAPER_TABLE_3["D"]


def forms_tables(germline: Germline, kind: DForms = "paper") -> list[FormsTable]:
    """Table III of each locus of a germline: every V and J allele listed, the D segments that take part."""
    return [_table(germline, locus, kind) for locus in germline.loci]


def _table(germline: Germline, locus: str, kind: DForms) -> FormsTable:
    max_p = germline.max_p
    listed = {
        "V": [v_forms(s.sequence, max_p) for s in germline.of("V", locus)],
        "D": [d_forms(s.sequence, kind, max_p) for s in germline.d_segments(locus)],
        "J": [j_forms(s.sequence, max_p) for s in germline.of("J", locus)],
    }
    return FormsTable(locus, tuple(_row(name, segments) for name, segments in listed.items()))


def _row(name: str, segments: list[list[str]]) -> FormsRow:
    lengths = [len(form) for forms in segments for form in forms]
    return FormsRow(name, len(segments), len(lengths), sum(lengths), sum(map(packed_bytes, lengths)))
