"""Why the sequence of a row cannot be packed, and how amino acids are prepared for packing."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.kernels import text
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.repertoire import ANCHOR_LETTERS
from hpcvdj.recombination.symbols import AMBIGUOUS, STOP
from hpcvdj.repertoires.reading import Reading

SHIFTED = "_~"
"""Symbols of MiXCR, vdjtools and immunarch for a shift of the frame in amino acids."""

AMINO_ACIDS = frozenset("EFILPQ")
"""Letters of amino acids that are no letters of nucleotides, not even of ambiguous ones."""


def unfit_row(reading: Reading, status: int, detail: int, sequence: str) -> Exclusion:
    """Why a row could not be packed.

    status, detail  of the row, as of `hpcvdj.kernels.text.pack_rows`
    sequence        its text
    """
    sequence_field = reading.sequence_field
    if status == text.MISSING:
        return Exclusion.of(ExclusionKind.NO_SEQUENCE, field=sequence_field)
    if status == text.TOO_SHORT:
        return Exclusion.of(ExclusionKind.TOO_SHORT, length=detail + 2 * ANCHOR_LETTERS[sequence_field])
    if reading.alphabet is not None:
        return _unfit_amino_acids(reading, status, detail, sequence)
    if status == text.TOO_LONG:
        kind = ExclusionKind.LONG_JUNCTION if reading.anchors else ExclusionKind.TOO_LONG
        return Exclusion.of(kind, length=detail, longest=reading.longest)
    kind = ExclusionKind.AMINO_ACIDS if AMINO_ACIDS.intersection(sequence.upper()) else ExclusionKind.OTHER_LETTER
    return Exclusion.of(kind, field=sequence_field, letter=sequence[detail : detail + 1])


def _unfit_amino_acids(reading: Reading, status: int, detail: int, sequence: str) -> Exclusion:
    name = reading.sequence_field
    if status == text.TOO_LONG:
        longest = reading.longest // reading.letters.bases
        return Exclusion.of(ExclusionKind.LONG_AMINO_ACIDS, field=name, length=detail, longest=longest)
    if sequence[detail] == STOP:
        return Exclusion.of(ExclusionKind.STOP_CODON, field=name)
    kind = ExclusionKind.OUT_OF_FRAME if sequence[detail] in SHIFTED else ExclusionKind.OTHER_SYMBOL
    return Exclusion.of(kind, field=name, letter=sequence[detail])


def ambiguous_rows(reading: Reading, column: pa.Array) -> dict[int, Exclusion]:
    """Rows with a symbol that stands for several amino acids, and why they take no part."""
    if reading.alphabet is None:
        return {}
    pattern = f"[{''.join(AMBIGUOUS)}]"
    position = pc.find_substring_regex(column, pattern, ignore_case=True).to_numpy(zero_copy_only=False)
    field, kind = reading.sequence_field, ExclusionKind.SEVERAL_RESIDUES
    return {
        row: Exclusion.of(kind, field=field, letter=chr(column[row].as_py().encode()[position[row]]))
        for row in np.flatnonzero(position >= 0).tolist()
    }


def with_ends(reading: Reading, column: pa.Array) -> pa.Array:
    """The sequences with the ends that the field lacks; missing sequences stay missing."""
    if not reading.ends[0]:
        return column
    first, last, between = (pa.scalar(text, column.type) for text in (*reading.ends, ""))
    completed = pc.binary_join_element_wise(first, column, last, between)
    return pc.if_else(pc.equal(column, ""), column, completed)
