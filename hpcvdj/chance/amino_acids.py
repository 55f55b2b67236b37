"""Tables whose amino acids are not the translation of their nucleotides, as after a column was sorted alone."""

from collections.abc import Iterator, Sequence

from hpcvdj.chance.fit import at_least
from hpcvdj.recombination.alphabet import translate
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
        pairs = [
            (bases.upper(), text.upper())
            for batch in reader.first_batches(FIELDS)
            for bases, text in zip(*(batch[name].to_pylist() for name in FIELDS), strict=True)
            if bases and text and not bases.upper().strip("ACGT")
        ]
        translated = zip(translate(bases for bases, _ in pairs), pairs, strict=True)
        # Programs write stop codons, and junctions out of frame, in many ways.
        same = [own == text for own, (_, text) in translated if own and "*" not in own]
        wrong = same.count(False)
        if same and at_least(wrong, len(same)) > MOST_OTHERS:
            yield (
                f"{table.path}: junction_aa is not the translation of junction in {wrong:,} of the first "
                f"{len(same):,} rows that were compared; was one of the columns sorted alone? Correct the table, as "
                "hpcvdj computes from one of them and does not change the other"
            )
