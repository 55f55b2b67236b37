"""immunarch (github.com/immunomind/immunarch): the tables that it exports.

Tables that it made of Adaptive's tables have two faults: CDR3.nt extends to the end of the read, and families have the
names of their first genes.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import log
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.repertoires.batches import by_text
from hpcvdj.repertoires.formats.adaptive_names import Species, family_of_first, species_of
from hpcvdj.repertoires.formats.format import REASON, Field, Format
from hpcvdj.repertoires.formats.steps import after, counts, kept, present, productive, reason, without

stated = after(lambda column: column.cast(pa.large_string()), without("NA"))
"""A step that replaces R's NA by the empty string."""


class Immunarch(Format):
    name = "immunarch"
    summary = "immunarch clonotypes"
    signatures = (frozenset({"Clones", "CDR3.nt", "V.name", "J.name"}),)

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """CDR3.nt is the junction, or begins with it."""
        sequences = ("CDR3.nt", "CDR3.aa") if "CDR3.aa" in columns else ("CDR3.nt",)
        return {
            "v_call": Field(("V.name",), self._calls),
            "j_call": Field(("J.name",), self._calls),
            "junction": Field(sequences, self._cut, "junction"),
            "duplicate_count": Field(("Clones",), after(stated, counts)),
            **present(columns, {
                "d_call": Field(("D.name",), self._calls),
                "junction_aa": Field(("CDR3.aa",), stated),
                "productive": Field(("CDR3.aa",), after(stated, productive)),
                "cell_id": Field(("Barcode",), stated),
            }),
            REASON: Field(sequences, self._cut, REASON),
        }  # fmt: skip

    @cached_property
    def _adaptive(self) -> Species | None:
        """The species of a table that was made of Adaptive's: most CDR3.nt are longer than their amino acids."""
        batch = self.first_rows(("CDR3.nt", "V.name", "J.name"))
        proteins = self.first_rows(("CDR3.aa",)) if batch is not None else None
        if batch is None or proteins is None:
            return None
        spare = _bases(batch.column("CDR3.nt")) - 3 * _bases(_amino_acids(proteins.column("CDR3.aa")))
        spare = spare[spare < _bases(batch.column("CDR3.nt"))]
        if not len(spare) or np.mean(spare > 0) <= 0.5:
            return None
        log.warning(
            "this table of immunarch was made of immunoSEQ reads: junctions are cut by their amino acids, rows without "
            "them are excluded, and genes such as TRBV6-1 are read as families; give the table of Adaptive itself"
        )
        columns = [batch.column(name) for name in ("V.name", "J.name")]
        return species_of(tuple(item.values()) for column in columns for item in pc.value_counts(column).to_pylist())

    def _calls(self, column: pa.Array) -> pa.Array:
        calls, species = pc.replace_substring(stated(column), " ", ""), self._adaptive
        if species is None:
            return calls
        return by_text(calls, lambda call: ",".join(family_of_first(species, name) for name in call.split(",")))

    def _cut(self, nucleotides: pa.Array, amino_acids: pa.Array | None = None) -> dict[str, pa.Array]:
        # Imported here because numba takes long to import.
        from hpcvdj.repertoires.formats.cutting import UNKNOWN, cut_reads

        read, rows = stated(nucleotides), len(nucleotides)
        proteins = _amino_acids(amino_acids) if amino_acids is not None else pa.array([""] * rows, pa.large_string())
        is_cut = amino_acids is None or self._adaptive is None
        size = _bases(proteins)
        start = np.where(is_cut | (size > 0), 0, UNKNOWN)
        length = _bases(read) if is_cut else 3 * size
        no_j = pa.array([""] * rows, pa.large_string())
        junctions, reasons = cut_reads(read, proteins, no_j, start, length, from_cysteine=not is_cut)
        several = pc.match_substring(read, ";")
        return {"junction": junctions, REASON: reason(ExclusionKind.SEVERAL_CHAINS, several, reasons)}


def _amino_acids(column: pa.Array) -> pa.Array:
    """The amino acids of productive rows; empty for other rows."""
    values = pc.ascii_upper(stated(column))
    return kept(values, pc.match_substring_regex(values, "^[A-Z]+$"))


def _bases(column: pa.Array) -> NDArray[np.int64]:
    return np.asarray(pc.binary_length(column).to_numpy(zero_copy_only=False), dtype=np.int64)
