"""What the first rows of tables say of all: amino acids of other nucleotides, or of none, or mutated B cells.

The amino acids of a table are not the translation of its nucleotides if a column was sorted alone, for example.
Recombination did not make junctions of mutated B cells as they are.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.chance.fit import at_least
from hpcvdj.errors import told
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.batches import without_missing
from hpcvdj.repertoires.genes import translated
from hpcvdj.repertoires.inputs import SAMPLED_TABLES
from hpcvdj.repertoires.table import Table

FIELDS = ("junction", "junction_aa")

WITHOUT_COLUMN = (
    "leave out the column junction to read the amino acids of all rows, or give these rows a table of their own"
)
WITH_OPTION = "{sequence_field=junction_aa} reads the amino acids of all rows"
"""How rows that have amino acids only take part; options are written as `told` reads them."""

MOST_OTHERS = 0.02
"""The share of rows whose amino acids may be another sequence than that of their nucleotides."""

V_IDENTITY = "v_identity"
"""AIRR's column: the share of the bases of a read's V gene that are those of its germline.  IgBLAST writes percent."""

UNMUTATED = 0.98
"""The share below which a V gene is usually called mutated (Hamblin et al., Blood 94:1848, 1999)."""

MOST_MUTATED = 0.1
"""The share of mutated rows from which on a table is worth a line."""


def _first_rows(tables: Sequence[Table], fields: Sequence[str]) -> Iterator[tuple[Path, pa.RecordBatch]]:
    """Yield the first rows of the first tables that have `fields`; raises InputError if a table cannot be read."""
    for table in tables[:SAMPLED_TABLES]:
        reader = table.open()
        if {*fields} <= {*reader.columns}:
            for rows in reader.first_batches(fields):
                yield table.path, rows


def other_amino_acids(tables: Sequence[Table]) -> Iterator[str]:
    """Yield a warning for each of the first tables whose `junction_aa` is not the translation of `junction`.

    The first rows of a table are compared.  Raises InputError if a table cannot be read.
    """
    for path, rows in _first_rows(tables, FIELDS):
        same = _same(rows)
        wrong = len(same) - same.true_count
        if len(same) and at_least(wrong, len(same)) > MOST_OTHERS:
            yield (
                f"{path}: junction_aa is not the translation of junction in {wrong:,} of the first {len(same):,} rows "
                "that were compared; was one of the columns sorted alone? Correct the table, as hpcvdj computes from "
                "one of them and does not change the other"
            )


def _same(rows: pa.RecordBatch) -> pa.BooleanArray:
    """Compare rows that have both fields; leave out junctions with a stop codon, out of frame, or with other letters.

    Programs write stop codons, and junctions out of frame, in many ways.
    """
    own, text = translated(rows["junction"]), pc.utf8_upper(rows["junction_aa"])
    compared = pc.and_(pc.match_substring_regex(own, "^[^*]+$"), pc.not_equal(text, ""))
    return pc.equal(own, text).filter(compared)


def lacking_nucleotides(tables: Sequence[Table], remedy: str) -> Iterator[str]:
    """Yield a warning for each of the first tables in which rows have amino acids but no nucleotides, which are read.

    The first rows of a table are compared.  Raises InputError if a table cannot be read.

    remedy  how such rows take part
    """
    for path, rows in _first_rows(tables, FIELDS):
        nucleotides, amino_acids = (pc.not_equal(without_missing(rows[name]), "") for name in FIELDS)
        number = pc.and_not(amino_acids, nucleotides).true_count
        if number:
            yield (
                f"{path}: {number:,} of the first {rows.num_rows:,} rows that were compared have amino acids "
                f"(junction_aa) but no nucleotides (junction), and are excluded; {told(remedy)}"
            )


def mutated_rows(tables: Sequence[Table], model: Model) -> Iterator[str]:
    """Yield a warning for each of the first tables of B cells of which many rows have mutated V genes.

    The first rows of a table are read.  Raises InputError if a table cannot be read.
    """
    if not any(template.allele.startswith("IG") for template in model.v):
        return
    for path, rows in _first_rows(tables, [V_IDENTITY]):
        texts = rows[V_IDENTITY].cast(pa.string())
        numbers = texts.filter(pc.match_substring_regex(texts, r"^\d+(\.\d*)?$"))
        identity = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False)
        number = int((identity < UNMUTATED * (100 if np.any(identity > 1) else 1)).sum())
        if at_least(number, max(len(identity), 1)) > MOST_MUTATED:
            yield (
                f"{path}: {100 * number / len(identity):.0f} % of the first {len(identity):,} rows have a V gene that "
                f"is mutated in more than {100 * (1 - UNMUTATED):.0f} % of its bases ({V_IDENTITY}): recombination "
                "did not make their junctions as they are, so these seem too improbable; give unmutated rows"
            )
