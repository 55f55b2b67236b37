"""The forms of each segment as the enumerating kernels take them: the paper's constant-memory tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcvdj.recombination.alphabet import encode, pack, unpack
from hpcvdj.recombination.germline import Segment, d_forms, j_forms, v_forms
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Problem, Repertoire

WORDS = 2
"""64-bit words of a packed in vivo sequence or form: the paper's 16 bytes."""

PADDED = 64
"""Bytes of an in vivo sequence at one byte a base (the paper, section V-A)."""


def padded_codes(repertoire: Repertoire) -> NDArray[np.uint8]:
    """The in vivo sequences at one byte a base, uint8 [sequences, 64]."""
    out = np.zeros((len(repertoire), PADDED), dtype=np.uint8)
    for row, length in enumerate(repertoire.lengths):
        out[row, :length] = unpack(repertoire.words[row], int(length))
    return out


@dataclass(frozen=True)
class FormTable:
    """Forms of one segment type.  `codes` uint8 [forms, 60], one base a byte; `lengths` int64 [forms]."""

    codes: NDArray[np.uint8]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, forms: list[str]) -> FormTable:
        """The table of `forms`; forms longer than any in vivo sequence are left out."""
        kept = [form for form in forms if len(form) <= PAPER_LONGEST_CDR3]
        codes = np.zeros((len(kept), PAPER_LONGEST_CDR3), dtype=np.uint8)
        for row, form in enumerate(kept):
            codes[row, : len(form)] = encode(form)
        return cls(codes, np.array([len(form) for form in kept], dtype=np.int64))

    @cached_property
    def by_length(self) -> FormTable:
        """The same forms, the shortest first."""
        order = np.argsort(self.lengths, kind="stable")
        return FormTable(self.codes[order], self.lengths[order])

    @cached_property
    def packed(self) -> NDArray[np.uint64]:
        """The forms packed at two bits a base, uint64 [forms, 2]."""
        rows = [pack(row[:length], WORDS) for row, length in zip(self.codes, self.lengths, strict=True)]
        return np.array(rows, dtype=np.uint64).reshape(len(rows), WORDS)


class Forms:
    """The form tables of a problem's V–J pairs, made once per segment and locus."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._tables: dict[tuple[str, str], FormTable] = {}

    def of(self, pair: int) -> tuple[FormTable, FormTable, FormTable, bool]:
        """Tables of V, D and J forms of a V–J pair, and whether its locus has D genes."""
        v, j = self.problem.repertoire.pairs[pair]
        genes = self.problem.germline.d_segments(v.locus)
        return (
            self._table("V", v, v_forms),
            self._d_table(v.locus, genes),
            self._table("J", j, j_forms),
            bool(genes),
        )

    def _table(self, kind: str, segment: Segment, make: Callable[[str, int], list[str]]) -> FormTable:
        key = (kind, segment.allele)
        if key not in self._tables:
            self._tables[key] = FormTable.of(make(segment.sequence, self.problem.germline.max_p))
        return self._tables[key]

    def _d_table(self, locus: str, genes: tuple[Segment, ...]) -> FormTable:
        key = ("D", locus)
        if key not in self._tables:
            kind, max_p = self.problem.d_forms, self.problem.germline.max_p
            forms = [form for gene in genes for form in d_forms(gene.sequence, kind, max_p)]
            self._tables[key] = FormTable.of(forms if genes else [""])
        return self._tables[key]
