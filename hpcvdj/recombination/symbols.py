"""Symbols of amino-acid sequences as sets of codons.

A symbol is an amino acid, a stop (*), an ambiguity code (B is D or N, J is I or L, Z is E or Q, X is any amino acid),
or a custom symbol of the user.
"""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import AMINO_ACIDS, BASES, RESIDUE_OF_CODON, Letters
from hpcvdj.storage.inputs import read_text

STOP, ANY_RESIDUE = "*X"

PRODUCTIVE_ENDS = "FVW"
"""The residues at the end of productive junctions: Phe or Trp 118, or Val."""

AMBIGUOUS = {"B": "DN", "J": "IL", ANY_RESIDUE: "ACDEFGHIKLMNPQRSTVWY", "Z": "EQ"}
"""The symbols for several amino acids; a custom alphabet may redefine them, as in OLGA."""

PRODUCTIVE_END = "\x1e"
"""The symbol of what the last residue of a productive junction may be, for CDR3s; no user can write it."""

RESERVED = string.whitespace + string.digits + ":,;[]{}"
"""Characters that are no symbols: OLGA and `read_alphabet` remove them around symbols and their parts."""

MOST_SYMBOLS = 64
"""The largest number of symbols: tables of pairs of symbols grow as the square of it."""


@dataclass(frozen=True, eq=False)
class Alphabet(Letters):
    """Symbols and their codons.

    codons  bool [symbols, 4, 4, 4]: whether a symbol has a codon, by the codes of its three bases
    """

    codons: NDArray[np.bool_]
    bits: ClassVar[int] = 8
    bases: ClassVar[int] = 3

    @staticmethod
    def of(custom: Mapping[str, Iterable[str]] | None = None) -> "Alphabet":
        """Make the alphabet of the standard symbols and of custom ones.

        custom  the parts that each symbol stands for: codons, and symbols that are defined before it

        Raise InputError for a symbol that is defined twice or that is no printable ASCII character, for an unknown part
        of a symbol, and for too many symbols.
        """
        sets: dict[str, NDArray[np.bool_]] = {}
        for codes in product(range(4), repeat=3):
            amino_acid = AMINO_ACIDS["".join(BASES[code] for code in codes)]
            sets.setdefault(amino_acid, np.zeros((4, 4, 4), dtype=bool))[codes] = True
        for symbol, parts in {**AMBIGUOUS, **(custom or {})}.items():
            if symbol in sets:
                raise InputError(f"symbol {symbol!r}: is an amino acid or a stop; choose another one")
            if len(symbol) != 1 or not (symbol.isascii() and symbol.isprintable()) or symbol in RESERVED:
                raise InputError(
                    f"symbol {symbol!r}: must be one printable ASCII character, none of 0-9 : , ; [ ] {{ }} and no "
                    "blank; choose another one"
                )
            allowed = np.zeros((4, 4, 4), dtype=bool)
            for part in parts:
                if part in sets:
                    allowed |= sets[part]
                elif part.upper() in AMINO_ACIDS:
                    allowed[tuple(BASES.index(base) for base in part.upper())] = True
                else:
                    raise InputError(f"symbol {symbol!r}: {part!r} is no symbol and no codon; correct it")
            if not allowed.any():
                raise InputError(f"symbol {symbol!r}: has no codon; list the symbols or codons that it stands for")
            sets[symbol] = allowed
        if len(sets) > MOST_SYMBOLS:
            raise InputError(f"{len(sets)} symbols; at most {MOST_SYMBOLS} can be used")
        return Alphabet("".join(sets), np.array(list(sets.values())))

    @property
    def readable(self) -> str:
        """All symbols but the stop: a sequence with a stop is not productive and needs no probability."""
        return self.symbols.replace(STOP, "")

    def with_productive_end(self) -> "Alphabet":
        """Return the alphabet with `PRODUCTIVE_END` as well."""
        last = self.codons[[self.symbols.index(residue) for residue in PRODUCTIVE_ENDS]].any(axis=0)
        return Alphabet(self.symbols + PRODUCTIVE_END, np.concatenate([self.codons, [last]]))

    @cached_property
    def codon_sets(self) -> NDArray[np.uint64]:
        """The codons of each symbol as bits, uint64 [symbols]: bit 16 a + 4 b + c stands for the bases a, b, c."""
        return np.packbits(self.codons.reshape(-1, 64), axis=1, bitorder="little").view("<u8").ravel()

    @cached_property
    def of_codon(self) -> NDArray[np.uint8]:
        """The symbol of each codon's amino acid, uint8 [64], as `RESIDUE_OF_CODON` has its letter."""
        return np.array([self.symbols.index(chr(residue)) for residue in RESIDUE_OF_CODON], dtype=np.uint8)

    def definitions(self) -> dict[str, list[str]]:
        """Return the codons of the symbols that differ from the standard alphabet, which results record."""
        standard = dict(zip(_STANDARD.symbols, _STANDARD.codons, strict=True))
        return {
            symbol: ["".join(BASES[code] for code in codes) for codes in np.argwhere(codons)]
            for symbol, codons in zip(self.symbols, self.codons, strict=True)
            if symbol != PRODUCTIVE_END and (symbol not in standard or (codons != standard[symbol]).any())
        }

    def require_mismatches(self) -> None:
        """Raise InputError unless X is any amino acid and only the stop has stop codons.

        Sums over one mismatch replace a symbol by X and subtract the share of the symbol itself.
        """
        sense = _STANDARD.codons[_STANDARD.symbols.index(ANY_RESIDUE)]
        if (self.codons[self.symbols.index(ANY_RESIDUE)] != sense).any():
            raise InputError("one mismatch needs X for any amino acid, but the alphabet defines X; choose another one")
        for symbol, codons in zip(self.symbols, self.codons, strict=True):
            if symbol != STOP and (codons & ~sense).any():
                raise InputError(f"one mismatch: symbol {symbol!r} of the alphabet has a stop codon; leave it out")


_STANDARD = Alphabet.of()


def read_alphabet(path: Path) -> Alphabet:
    """Read an alphabet from a file in OLGA's format: lines `symbol: parts`, with commas between symbols and codons.

    Empty lines do not count.  InputError names the file, the line and the remedy.
    """
    text = read_text(path, "alphabet file", "give a file with lines such as 'x: D, E, AAA'")
    custom: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        symbol, colon, parts = line.partition(":")
        symbol = symbol.strip(RESERVED)
        where = f"{path}, line {number}"
        if not colon:
            raise InputError(f"{where}: no colon; write a symbol, a colon, and its symbols or codons with commas")
        if symbol in custom:
            raise InputError(f"{where}: symbol {symbol!r} is defined twice; remove one of the lines")
        custom[symbol] = [part for part in (text.strip(RESERVED) for text in parts.split(",")) if part]
        try:
            alphabet = Alphabet.of(custom)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if not custom:
        raise InputError(f"{path}: defines no symbol; write lines such as 'x: D, E, AAA'")
    return alphabet
