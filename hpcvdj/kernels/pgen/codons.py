"""Symbols of amino-acid sequences as sets of codons, and the sums over codons that the kernel needs.

A symbol is an amino acid, a stop (*), an ambiguity code (B is D or N, J is I or L, Z is E or Q, X is any amino acid),
or one of the user's own.

Where a codon is cut, a weight has four components.  After its first base they are indexed by that base.  After its
second base they are indexed by the third base, which is still to come; the first two are summed over all that fit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.pgen.tables import Chain, Tables
from hpcvdj.recombination.alphabet import AMINO_ACIDS, BASES
from hpcvdj.recombination.models import Array

AMBIGUOUS = {"B": "DN", "J": "IL", "X": "ACDEFGHIKLMNPQRSTVWY", "Z": "EQ"}
"""The symbols for several amino acids."""

MOST_SYMBOLS = 64
"""Tables of pairs of symbols grow as the square of their number."""


@dataclass(frozen=True)
class Alphabet:
    """Symbols and their codons.

    codons  bool [symbols, 4, 4, 4]: whether a symbol has a codon, by its bases in our codes
    """

    symbols: str
    codons: NDArray[np.bool_]

    @staticmethod
    def of(custom: Mapping[str, Iterable[str]] | None = None) -> "Alphabet":
        """The standard symbols and custom ones: for each, the symbols and codons that it stands for.

        InputError for a symbol that is defined twice, for an unknown part of one, and for too many symbols.
        """
        sets: dict[str, NDArray[np.bool_]] = {}
        for codes in product(range(4), repeat=3):
            amino_acid = AMINO_ACIDS["".join(BASES[code] for code in codes)]
            sets.setdefault(amino_acid, np.zeros((4, 4, 4), dtype=bool))[codes] = True
        for symbol, parts in {**AMBIGUOUS, **(custom or {})}.items():
            if symbol in sets or len(symbol) != 1:
                raise InputError(f"symbol {symbol!r}: is no single letter, or is defined already; choose another one")
            allowed = np.zeros((4, 4, 4), dtype=bool)
            for part in parts:
                if part in sets:
                    allowed |= sets[part]
                elif part.upper() in AMINO_ACIDS:
                    allowed[tuple(BASES.index(base) for base in part.upper())] = True
                else:
                    raise InputError(f"symbol {symbol!r}: {part!r} is no symbol and no codon; correct it")
            sets[symbol] = allowed
        if len(sets) > MOST_SYMBOLS:
            raise InputError(f"{len(sets)} symbols; at most {MOST_SYMBOLS} can be used")
        return Alphabet("".join(sets), np.array(list(sets.values())))

    @cached_property
    def codon_sets(self) -> NDArray[np.uint64]:
        """The codons of each symbol, by bits, uint64 [symbols]: bit 16 a + 4 b + c is that of the bases a, b, c."""
        bits = np.uint64(1) << np.arange(64, dtype=np.uint64)
        sets: NDArray[np.uint64] = np.where(self.codons.reshape(-1, 64), bits, np.uint64(0)).sum(
            axis=1, dtype=np.uint64
        )
        return sets

    @cached_property
    def of_codon(self) -> NDArray[np.uint8]:
        """The amino acid's symbol of each codon, uint8 [64]: the first base in the highest bits."""
        amino_acids = (AMINO_ACIDS["".join(codon)] for codon in product(BASES, repeat=3))
        return np.array([self.symbols.index(amino_acid) for amino_acid in amino_acids], dtype=np.uint8)


@dataclass(frozen=True)
class CodonSteps:
    """How an insertion goes through a codon, for each symbol s; read from V, or from J with mirrored codons.

    From the last base x of the codon before: one[x, c], two[s, x, c], whole[s, x, c] end after one, two or three bases.
    At the codon's beginning: first_two[s, c], first_whole[s, c].  After its first base x: rest_two[s, x,
    c], rest_whole[s, x, c].  c is the component of the weight that results; of `whole` it is the last base.

    fits  [symbols, 16, 4]: 1 for a codon of a symbol, by its first two bases and its third
    """

    one: Array
    two: Array
    whole: Array
    first_two: Array
    first_whole: Array
    rest_two: Array
    rest_whole: Array
    fits: Array

    @staticmethod
    def of(codons: Array, chain: Chain, *, mirrored: bool) -> "CodonSteps":
        """The steps of a chain; `codons` is 1 for a codon of a symbol, float64 [symbols, 4, 4, 4]."""
        fits = codons.transpose(0, 3, 2, 1) if mirrored else codons
        step, first = chain.step, chain.first
        # einsum leaves the order of axes to itself; numba would compile each layout.
        return CodonSteps(
            one=step,
            two=np.einsum("xa,ab,sabc->sxc", step, step, fits, order="C"),
            whole=np.einsum("xa,ab,bc,sabc->sxc", step, step, step, fits, order="C"),
            first_two=np.einsum("a,ab,sabc->sc", first, step, fits, order="C"),
            first_whole=np.einsum("a,ab,bc,sabc->sc", first, step, step, fits, order="C"),
            rest_two=np.einsum("b,sabc->sac", first, fits, order="C"),
            rest_whole=np.einsum("b,bc,sabc->sac", first, step, fits, order="C"),
            fits=np.ascontiguousarray(fits.reshape(len(fits), 16, 4)),
        )


@dataclass(frozen=True)
class CodonForms:
    """The D forms that have no whole codon, against the codons of symbols s and r.

    By where in a codon they begin and where they end, with the components of the weights on both sides; t is a table
    of D genes, as of `Tables.weights`.

    empty         [t]              the empty form
    single        [t, c]           a codon's first base, or its last
    ends_two      [t, s, c]        a codon's first two bases
    one_two       [t, s, c, c]     a codon's second base
    one_three     [t, s, c]        a codon's last two bases
    double        [t, c, c]        the last base of a codon and the first of the next
    one_one       [t, s, c, c]     the last two and the first
    two_two       [t, r, c, c]     the last and the first two
    one_over_two  [t, s, r, c, c]  the last two and the first two
    """

    empty: Array
    single: Array
    double: Array
    ends_two: Array
    one_two: Array
    one_three: Array
    one_one: Array
    two_two: Array
    one_over_two: Array

    @staticmethod
    def of(fits: Array, tables: Tables) -> "CodonForms":
        """The D forms of a model's tables; `fits` is 1 for a codon of a symbol, float64 [symbols, 4, 4, 4]."""
        w1, w2, w3, w4 = (tables.forms.of_length(length, tables.weights) for length in range(1, 5))
        return CodonForms(
            empty=tables.weights[:, 0].copy(),
            single=w1,
            double=w2,
            ends_two=np.einsum("tab,sabc->tsc", w2, fits),
            one_two=np.einsum("tb,sabc->tsac", w1, fits),
            one_three=np.einsum("tbc,sabc->tsa", w2, fits),
            one_one=np.einsum("tbcu,sabc->tsau", w3, fits),
            two_two=np.einsum("tcuv,ruvx->trcx", w3, fits),
            one_over_two=np.einsum("tbcuv,sabc,ruvx->tsrax", w4, fits, fits, optimize=True),
        )
