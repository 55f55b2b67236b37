"""Junctions cut from sequencing reads, and completed from J where a read ends before them.

Reads, amino acids in upper case and the ends of J genes ("tails") come as `text_buffers`.  A tail ends with codon 118:
the bases that a read lacks of its junction are the last ones of the tail.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.text import Text
from hpcvdj.recombination.alphabet import CODE_OF_BYTE, CODONS, INVALID, RESIDUE_OF_CODON

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

CUT, EMPTY, INCOMPLETE, READ_ENDS, OTHER_AMINO_ACIDS, NO_CYSTEINE, NO_AMINO_ACIDS, NOWHERE, SEVERAL = range(9)
"""The status of a row."""

UNKNOWN = -2
"""The start of a junction whose place in the read the table does not say; one before the read means no V."""

COMPARED = 6
"""Bases at the read's end that must agree with J before bases of J's segment are added.

Codon 118 alone is added without it: it is no part of the CDR3.
"""

_CYSTEINE = CODONS.index("TGT"), CODONS.index("TGC")

_FEW = 5
"""So many codons within a read tell that amino acids which nothing completes begin in it."""


@njit(cache=True, nogil=True)
def _codon(reads, last, tails, tail_last, end, at):  # type: ignore[no-untyped-def]
    """The number of the codon at byte `at` of a read that ends at `last`; -1 if it has other letters than A, C, G, T.

    The junction ends at `end`; what the read lacks of it are the last bases of the tail.
    """
    number = 0
    for k in range(at, at + 3):
        code = CODE_OF_BYTE[reads[k] if k < last else tails[tail_last - (end - k)]]
        if code == INVALID:
            return -1
        number = number << 2 | code
    return number


@njit(cache=True, nogil=True)
def _can_complete(reads, at, last, tails, tail_first, tail_last, lacking):  # type: ignore[no-untyped-def]
    """Whether the last bases of the tail are the `lacking` ones of a junction from `at` on, after the read's end."""
    if lacking <= 3:
        return at < last and lacking <= tail_last - tail_first
    if at > last - COMPARED or lacking + COMPARED > tail_last - tail_first:
        return False
    for k in range(1, COMPARED + 1):
        if CODE_OF_BYTE[reads[last - k]] != CODE_OF_BYTE[tails[tail_last - lacking - k]]:
            return False
    return True


@njit(cache=True, nogil=True, forceinline=True)
def _spells(  # type: ignore[no-untyped-def]
    reads, last, tails, tail_last, at, size, proteins, aa_first, codons, unknown
) -> bool:
    """Whether the first `codons` of the junction of `size` bases from `at` on have the amino acids from `aa_first` on.

    unknown  whether a codon with other letters than A, C, G, T may have any
    """
    for k in range(codons):
        codon = _codon(reads, last, tails, tail_last, at + size, at + 3 * k)
        if (codon < 0 and not unknown) or (codon >= 0 and RESIDUE_OF_CODON[codon] != proteins[aa_first + k]):
            return False
    return True


@njit(cache=True, nogil=True)
def place_rows(
    of_reads: Text, of_proteins: Text, of_tails: Text, start: Ints, length: Ints, status: Bytes, detail: Ints
) -> None:
    """Find the junctions whose `start` in the read is UNKNOWN: where the read, completed from J, has their amino acids.

    Places within the read are preferred to those beyond its end.  `status` is NO_AMINO_ACIDS, NOWHERE or SEVERAL for a
    row without one place, or READ_ENDS, with the missing bases as `detail`, if J does not complete its only place.
    """
    (read_offsets, reads), (protein_offsets, proteins), (tail_offsets, tails) = of_reads, of_proteins, of_tails
    for row in range(len(start)):
        if start[row] != UNKNOWN:
            continue
        first, last = read_offsets[row], read_offsets[row + 1]
        aa_first, aa_last = protein_offsets[row], protein_offsets[row + 1]
        tail_first, tail_last = tail_offsets[row], tail_offsets[row + 1]
        size = 3 * (aa_last - aa_first)
        if last == first or size == 0:
            status[row] = EMPTY if last == first else NO_AMINO_ACIDS
            continue
        inside = beyond = 0
        length[row] = size
        for at in range(first, last):
            lacking = at + size - last
            complete = lacking <= 0 or _can_complete(reads, at, last, tails, tail_first, tail_last, lacking)
            codons = (size if complete else last - at) // 3
            if inside and lacking > 0:
                break
            fits = (complete or codons >= _FEW) and _spells(
                reads, last, tails, tail_last, at, size, proteins, aa_first, codons, False
            )
            if fits and complete:
                inside += lacking <= 0
                beyond += lacking > 0
                start[row] = at - first
            elif fits:
                detail[row] = lacking
        places = inside if inside else beyond
        if places != 1:
            status[row] = SEVERAL if places else READ_ENDS if detail[row] else NOWHERE


@njit(cache=True, nogil=True)
def check_rows(
    of_reads: Text, of_proteins: Text, of_tails: Text, start: Ints, length: Ints, from_cysteine: bool, status: Bytes,
    detail: Ints,
) -> None:  # fmt: skip
    """Whether junctions of `length` bases from `start` on can be cut, and are what the table says of them.

    Changes `status` where it is CUT: to EMPTY; to INCOMPLETE; to READ_ENDS if J cannot complete the read, whose missing
    bases are the `detail`; to OTHER_AMINO_ACIDS if the row has amino acids and the junction has others; if
    `from_cysteine` is set, to NO_CYSTEINE, with the number of the first codon as `detail`.  Codons with other letters
    than A, C, G, T are taken as they are.
    """
    (read_offsets, reads), (protein_offsets, proteins), (tail_offsets, tails) = of_reads, of_proteins, of_tails
    for row in range(len(start)):
        if status[row] != CUT:
            continue
        first, last = read_offsets[row], read_offsets[row + 1]
        at, size = first + start[row], length[row]
        lacking = at + size - last
        tail_first, tail_last = tail_offsets[row], tail_offsets[row + 1]
        if last == first:
            status[row] = EMPTY
        elif start[row] < 0:
            status[row] = INCOMPLETE
        elif size <= 0:
            status[row] = EMPTY
        elif lacking > 0 and not _can_complete(reads, at, last, tails, tail_first, tail_last, lacking):
            status[row], detail[row] = READ_ENDS, lacking
        if status[row] != CUT or size < 3:
            continue
        aa_first, aa_last = protein_offsets[row], protein_offsets[row + 1]
        if aa_last > aa_first:
            codons = aa_last - aa_first
            if 3 * codons != size or not _spells(
                reads, last, tails, tail_last, at, size, proteins, aa_first, codons, True
            ):
                status[row] = OTHER_AMINO_ACIDS
        codon = _codon(reads, last, tails, tail_last, at + size, at)
        if from_cysteine and status[row] == CUT and codon >= 0 and codon not in _CYSTEINE:
            status[row], detail[row] = NO_CYSTEINE, codon


@njit(cache=True, nogil=True)
def copy_rows(of_reads: Text, of_tails: Text, start: Ints, offsets: Ints, out: Bytes) -> None:
    """Junctions as text, `out` from `offsets` on; none for rows with equal offsets.  Letters beyond ASCII become ?."""
    (read_offsets, reads), (tail_offsets, tails) = of_reads, of_tails
    for row in range(len(start)):
        first, last = read_offsets[row] + start[row], read_offsets[row + 1]
        size, tail_last = offsets[row + 1] - offsets[row], tail_offsets[row + 1]
        for k in range(size):
            letter = reads[first + k] if first + k < last else tails[tail_last - (size - k)]
            out[offsets[row] + k] = letter if letter < 128 else 63
