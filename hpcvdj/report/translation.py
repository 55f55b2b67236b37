"""Nucleotides to amino acids: the standard genetic code."""

from __future__ import annotations

from itertools import product

from hpcvdj.sharing.convergence import GENETIC_CODE

CODE = dict(zip(map("".join, product("TCAG", repeat=3)), GENETIC_CODE, strict=True))
"""The amino acid of each codon, `*` for a stop."""


def translate(sequence: str) -> str | None:
    """The amino acids of upper-case A, C, G, T, `*` for a stop codon; None if it is out of frame.

    >>> translate("GCCAGCAGTTGA")
    'ASS*'
    >>> translate("GC") is None
    True
    """
    if len(sequence) % 3:
        return None
    return "".join(CODE[sequence[place : place + 3]] for place in range(0, len(sequence), 3))
