"""Cut junctions out of the reads of tables."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.kernels import reads
from hpcvdj.kernels.text import text_buffers
from hpcvdj.recombination.alphabet import CODONS
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind

UNKNOWN = reads.UNKNOWN
"""The start of a junction whose position in the read is not in the table."""

_REASONS: dict[int, Callable[[int], Exclusion]] = {
    reads.INCOMPLETE: lambda detail: Exclusion.of(ExclusionKind.INCOMPLETE),
    reads.READ_ENDS: lambda detail: Exclusion.of(ExclusionKind.READ_ENDS, missing=detail),
    reads.OTHER_AMINO_ACIDS: lambda detail: Exclusion.of(ExclusionKind.OTHER_AMINO_ACIDS),
    reads.NO_CYSTEINE: lambda detail: Exclusion.of(ExclusionKind.NO_CYSTEINE, codon=CODONS[detail]),
    reads.NO_AMINO_ACIDS: lambda detail: Exclusion.of(ExclusionKind.UNPLACED, why="there are none"),
    reads.NOWHERE: lambda detail: Exclusion.of(ExclusionKind.UNPLACED, why="they fit nowhere"),
    reads.SEVERAL: lambda detail: Exclusion.of(ExclusionKind.UNPLACED, why="they fit in several places"),
}
"""Why a row with each status is excluded.  A row without a read has no junction, which is a reason of its own."""


def cut_reads(
    read: pa.Array,
    amino_acids: pa.Array,
    j_ends: pa.Array,
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    *,
    from_cysteine: bool = True,
) -> tuple[pa.Array, pa.Array]:
    """The junctions of reads, and the `REASON` of rows that have none, as arrays of large strings.

    read           the reads
    amino_acids    of the junctions, in upper case; empty for rows whose junction is not compared with them
    j_ends         the last bases of each row's J genes, up to and including codon 118
    start          int64 [rows]: first base of the junction in the read, from 0; UNKNOWN if its amino acids locate it;
                   -1 for rows without V
    length         int64 [rows]: bases of the junction
    from_cysteine  whether junctions must begin with the codon of Cys 104
    """
    rows = len(read)
    status, detail = np.full(rows, reads.CUT, dtype=np.uint8), np.zeros(rows, dtype=np.int64)
    of_read, of_protein, tails = text_buffers(read), text_buffers(amino_acids), text_buffers(j_ends)
    start, length = start.copy(), length.copy()
    reads.place_rows(of_read, of_protein, tails, start, length, status, detail)
    reads.check_rows(of_read, of_protein, tails, start, length, from_cysteine, status, detail)
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(np.where(status == reads.CUT, length, 0), out=offsets[1:])
    out = np.empty(offsets[-1], dtype=np.uint8)
    reads.copy_rows(of_read, tails, start, offsets, out)
    junctions = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(out))
    return junctions, _reasons(status, detail)


def _reasons(status: NDArray[np.uint8], detail: NDArray[np.int64]) -> pa.Array:
    """`REASON` of each row, of a status and its detail as of `hpcvdj.kernels.reads`."""
    texts, index = [""], np.zeros(len(status), dtype=np.int64)
    for kind, reason in _REASONS.items():
        rows = np.flatnonzero(status == kind)
        details, inverse = np.unique(detail[rows], return_inverse=True)
        index[rows] = len(texts) + inverse
        texts += [reason(int(value)).text for value in details]
    return pa.array(texts, pa.large_string()).take(pa.array(index))
