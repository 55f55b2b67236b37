"""The forms of each segment as the enumerating kernels take them: the paper's constant-memory tables."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hpcvdj.recombination.alphabet import encode, pack, unpack
from hpcvdj.recombination.germline import d_forms, j_forms, v_forms
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Problem, Repertoire

WORDS = 2
"""64-bit words of a packed in vivo sequence or form: the paper's 16 bytes."""

PADDED = 64
"""Bytes of an in vivo sequence or form at one byte a base (the paper, section V-A)."""


TASK_SLICE = 1024
"""n-nucleotide strings that a kernel on CPU cores counts one after another."""


def codes_table(texts: list[str], width: int = 0) -> NDArray[np.uint8]:
    """One base a byte, uint8 [texts, the longest's length or `width`]."""
    table = np.zeros((len(texts), max([width, *map(len, texts)])), dtype=np.uint8)
    for row, text in enumerate(texts):
        table[row, : len(text)] = encode(text)
    return table


class Texts(NamedTuple):
    """Texts in base codes: uint8 [texts, longest], and int64 [texts], how many bases each has."""

    codes: NDArray[np.uint8]
    lengths: NDArray[np.int64]

    @staticmethod
    def of(texts: list[str]) -> "Texts":
        """Texts from their bases."""
        return Texts(codes_table(texts), np.array([len(text) for text in texts], dtype=np.int64))


def packed_table(texts: list[str], words: int) -> NDArray[np.uint64]:
    """Two bits a base, uint64 [texts, words]."""
    return np.array([pack(encode(text), words) for text in texts], dtype=np.uint64).reshape(len(texts), words)


@dataclass(frozen=True, eq=False)
class FormTable:
    """Forms of one segment type, none longer than an in vivo sequence; `lengths` int64 [forms]."""

    forms: list[str]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(form) for form in self.forms], dtype=np.int64)

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """One base a byte, uint8 [forms, 64]."""
        return codes_table(self.forms, PADDED)

    @cached_property
    def packed(self) -> NDArray[np.uint64]:
        """Two bits a base, uint64 [forms, 2]."""
        return packed_table(self.forms, WORDS)

    @cached_property
    def by_length(self) -> Self:
        """The same forms, the shortest first."""
        return type(self)(sorted(self.forms, key=len))


class Forms:
    """The form tables of a problem's V–J pairs, made once per segment and locus."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._tables: dict[tuple[str, str], FormTable] = {}

    def of(self, pair: int) -> tuple[FormTable, FormTable, FormTable, bool]:
        """Tables of V, D and J forms of a V–J pair, and whether its locus has D genes."""
        (v, j), max_p = self.problem.repertoire.pairs[pair], self.problem.germline.max_p
        genes = self.problem.germline.d_segments(v.locus)
        of_genes = (form for gene in genes for form in d_forms(gene.sequence, self.problem.d_forms, max_p))
        return (
            self._table(("V", v.allele), lambda: v_forms(v.sequence, max_p)),
            self._table(("D", v.locus), lambda: of_genes if genes else [""]),
            self._table(("J", j.allele), lambda: j_forms(j.sequence, max_p)),
            bool(genes),
        )

    def _table(self, key: tuple[str, str], make: Callable[[], Iterable[str]]) -> FormTable:
        if key not in self._tables:
            self._tables[key] = FormTable([form for form in make() if len(form) <= PAPER_LONGEST_CDR3])
        return self._tables[key]


@dataclass(frozen=True)
class Encoding:
    """How a method's kernels take sequences and forms: a row for each."""

    sequences: Callable[[Repertoire], NDArray[Any]]
    forms: Callable[[FormTable], NDArray[Any]]


def padded_codes(repertoire: Repertoire) -> NDArray[np.uint8]:
    """The in vivo sequences at one byte a base, uint8 [sequences, 64]."""
    out = np.zeros((len(repertoire), PADDED), dtype=np.uint8)
    for row, length in enumerate(repertoire.lengths):
        out[row, :length] = unpack(repertoire.words[row], int(length))
    return out


TWO_BITS = Encoding(lambda repertoire: repertoire.words[:, :WORDS], lambda table: table.packed)
"""The paper's 16 bytes a sequence or form."""

ONE_BYTE = Encoding(padded_codes, lambda table: table.codes)
"""64 bytes a sequence or form."""
