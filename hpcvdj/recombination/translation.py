"""Nucleotides to amino acids, by the standard genetic code."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

GENETIC_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
"""The standard genetic code, NCBI's translation table 1: codons in the order TTT, TTC, TTA, TTG, TCT …; * is a stop."""

_CODE_ORDER = b"TCAG"

_CODON = 3


def translate(sequences: Sequence[str] | NDArray[np.bytes_]) -> list[str]:
    """The amino acids of sequences of A, C, G and T; the empty string for a sequence that is out of frame.

    sequences  str, or fixed-width bytes [sequences]

    >>> translate(["GCCAGCAGT", "GCCTGA", "GCCA"])
    ['ASS', 'A*', '']
    """
    letters = np.array(sequences, dtype=np.bytes_)
    width = -(-letters.itemsize // _CODON)
    lengths = np.strings.str_len(letters)
    in_frame = np.where(lengths % _CODON == 0, lengths, 0)
    bases = np.zeros(256, dtype=np.uint8)
    bases[list(_CODE_ORDER)] = range(4)
    codons = bases[letters.astype(f"S{width * _CODON}").view(np.uint8).reshape(-1, width, _CODON)]
    amino_acids = np.frombuffer(GENETIC_CODE.encode(), np.uint8)[codons @ np.array([16, 4, 1], dtype=np.uint8)]
    beyond = np.arange(width) >= in_frame[:, np.newaxis] // _CODON
    texts: list[str] = np.where(beyond, 0, amino_acids).astype(np.uint8).view(f"S{width}").astype(str).ravel().tolist()
    return texts
