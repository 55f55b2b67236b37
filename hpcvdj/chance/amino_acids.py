"""Tables whose amino acids are not the translation of their nucleotides, as after a column was sorted alone."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.chance.fit import at_least
from hpcvdj.recombination.alphabet import CODE_OF_BYTE, RESIDUE_OF_CODON
from hpcvdj.repertoires.inputs import SAMPLED_TABLES
from hpcvdj.repertoires.table import Table

FIELDS = ("junction", "junction_aa")

MOST_OTHERS = 0.02
"""The share of rows whose amino acids may be another sequence than that of their nucleotides."""


def other_amino_acids(tables: Sequence[Table]) -> Iterator[str]:
    """Yield a warning for each of the first tables whose `junction_aa` is not the translation of `junction`.

    The first rows of a table are compared.  Raises InputError if a table cannot be read.
    """
    for table in tables[:SAMPLED_TABLES]:
        reader = table.open()
        if not {*FIELDS} <= {*reader.columns}:
            continue
        same = pa.chunked_array([_same(batch) for batch in reader.first_batches(FIELDS)], pa.bool_())
        wrong = len(same) - int(pc.sum(same).as_py() or 0)
        if len(same) and at_least(wrong, len(same)) > MOST_OTHERS:
            yield (
                f"{table.path}: junction_aa is not the translation of junction in {wrong:,} of the first "
                f"{len(same):,} rows that were compared; was one of the columns sorted alone? Correct the table, as "
                "hpcvdj computes from one of them and does not change the other"
            )


def _same(rows: pa.RecordBatch) -> pa.BooleanArray:
    """Compare rows that have both fields; leave out junctions with a stop codon, out of frame, or with other letters.

    Programs write stop codons, and junctions out of frame, in many ways.
    """
    bases, text = (pc.utf8_upper(rows[name]) for name in FIELDS)
    kept = pc.and_(pc.match_substring_regex(bases, "^([ACGT]{3})+$"), pc.not_equal(text, ""))
    bases, text = bases.filter(kept), text.filter(kept)
    codons = CODE_OF_BYTE[np.frombuffer("".join(bases.to_pylist()).encode(), np.uint8)].reshape(-1, 3)
    ends = np.cumsum(pc.binary_length(bases).to_numpy(zero_copy_only=False) // 3)
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    letters = RESIDUE_OF_CODON[codons @ np.array([16, 4, 1])]
    own = pa.LargeStringArray.from_buffers(len(bases), pa.py_buffer(offsets), pa.py_buffer(letters))
    return pc.equal(own, text).filter(pc.invert(pc.match_substring(own, "*")))
