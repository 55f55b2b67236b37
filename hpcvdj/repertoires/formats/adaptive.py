"""Adaptive Biotechnologies' immunoSEQ: rearrangement tables of 2012 and of all later exports.

A row has a read, and the start and the length of the junction in it.  Reads of some assays end before the junction
ends.  `hpcvdj.kernels.reads` cuts junctions out of reads and completes them.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.repertoires.batches import by_text, numbers_by_text
from hpcvdj.repertoires.formats.adaptive_names import MISSING, Species, call_of, end_of_j, species_of
from hpcvdj.repertoires.formats.format import REASON, Field, Format
from hpcvdj.repertoires.formats.steps import constant, first_of, kept, present, productive

_NAMES = {
    "resolved": ("{v}_resolved", "{v}MaxResolved"),
    "gene": ("{v}_gene", "{v}GeneName", "{V}GeneName"),
    "allele": ("{v}_allele", "{v}GeneAllele"),
    "family": ("{v}_family", "{v}FamilyName", "{V}FamilyName"),
    "family_ties": ("{v}_family_ties", "{v}FamilyTies"),
    "gene_ties": ("{v}_gene_ties", "{v}GeneNameTies", "{V}Ties"),
    "allele_ties": ("{v}_allele_ties", "{v}GeneAlleleTies"),
}
"""The columns of a segment's names, for `call_of`."""

_READ = "rearrangement", "nucleotide"
_AMINO_ACIDS = "amino_acid", "aminoAcid"
_START, _LENGTH = ("v_index", "vIndex", "VIndex"), ("cdr3_length", "cdr3Length")
_FRAME = "frame_type", "sequenceStatus"
_SAMPLE = "sample_name", "container"
_COUNTS = ("templates", "reads", "count (templates/reads)", "count (templates)", "count (reads)", "count", "copy")
"""In order of preference: a count that is 0 or missing is taken from the next column."""

_FRAMES = {"in": "T", "productive": "T", "out": "F", "stop": "F", "out of frame": "F", "has stop": "F"}
"""`productive` of each frame.  The two last words are assumed for the tables of 2012."""

_SPECIES: dict[str, Species] = {"human": "human", "homo sapiens": "human", "mouse": "mouse", "mus musculus": "mouse"}
"""What the column of the species may say, in lower case."""

_BETWEEN = "\x1f"
"""ASCII's separator of units.  A row that has it in a value has no call."""


class Adaptive(Format):
    name = "adaptive"
    summary = "Adaptive immunoSEQ rearrangements"

    signatures = (
        frozenset({"rearrangement", "bio_identity"}),
        frozenset({"rearrangement", "amino_acid", "v_gene", "v_index"}),
        frozenset({"rearrangement", "amino_acid", "v_resolved"}),
        frozenset({"nucleotide", "aminoAcid", "vGeneName"}),
        frozenset({"nucleotide", "aminoAcid", "vMaxResolved"}),
        frozenset({"nucleotide", "aminoAcid", "VGeneName"}),
    )
    """The read, the amino acids and the name of V, in tables of ImmuneACCESS, of Analyzer 3, earlier, and of 2012."""

    @staticmethod
    def notice(columns: Sequence[str]) -> str:
        """Which columns are missing that state the position of the junction in the read."""
        older = _READ[1] in columns
        lacks = [names[older] for names in (_START, _LENGTH) if not _present(columns, names)]
        if not lacks:
            return ""
        return f"no column {', '.join(lacks)}: junctions are found by their amino acids, and rows without are excluded"

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """The junction is cut out of the read.  Names of genes become IMGT's."""
        self._of_v, of_d, self._of_j = (_columns_of(columns, segment) for segment in "vdj")
        self._of_species = _present(columns, ("species",))
        # Without these columns, readers report the first name as missing.
        read, amino_acids = (first_of(columns, *names) or names[0] for names in (_READ, _AMINO_ACIDS))
        frame, counts = _present(columns, _FRAME)[:1], _present(columns, _COUNTS)
        start, length = _present(columns, _START)[:1], _present(columns, _LENGTH)[:1]
        position = (*start, *length) if start and length else ()
        sources = *self._of_j.values(), read, amino_acids, *position, *frame
        cut = partial(self._cut, has_position=bool(position), has_frame=bool(frame))
        return {
            "v_call": Field(tuple(self._of_v.values()), partial(self._calls, tuple(self._of_v))),
            "j_call": Field(tuple(self._of_j.values()), self._j_call, "j_call"),
            "locus": Field(tuple(self._of_j.values()), self._j_call, "locus"),
            "junction": Field(sources, cut, "junction"),
            "junction_aa": Field((amino_acids,), _stated),
            **present(columns, {
                # Adaptive's values are VJ and VDJ.  AIRR's describe the data: observed, simulated or inferred.
                "rearrangement_type": Field(("rearrangement_type",), constant("observed")),
                "adaptive_rearrangement_type": Field(("rearrangement_type",)),
                "repertoire_id": Field(_present(columns, _SAMPLE)[:1], _stated),
                "d_call": Field(tuple(of_d.values()), partial(self._calls, tuple(of_d))),
                "productive": Field(frame, _productive) if frame else Field((amino_acids,), productive),
                "duplicate_count": Field(counts, _count),
            }),
            REASON: Field(sources, cut, REASON),
        }  # fmt: skip

    @cached_property
    def _species(self) -> Species:
        """The species, by the column of it, else by the names of V and J, in the first rows."""
        batch = self.first_rows([*self._of_v.values(), *self._of_j.values(), *self._of_species])
        if batch is None:
            return "human"
        calls = batch.columns[: batch.num_columns - len(self._of_species)]
        stated = [pc.unique(batch.column(name)).to_pylist() for name in self._of_species]
        named = {_SPECIES[text] for texts in stated for own in texts if (text := own.strip().lower()) in _SPECIES}
        if len(named) == 1:
            return named.pop()
        return species_of(tuple(item.values()) for column in calls for item in pc.value_counts(column).to_pylist())

    def _calls(self, names: Sequence[str], *columns: pa.Array) -> pa.Array:
        """The AIRR calls of rows whose columns are called `names`."""

        def call(text: str) -> str:
            values = text.split(_BETWEEN)
            return call_of(self._species, dict(zip(names, values, strict=True))) if len(values) == len(names) else ""

        texts = [column.cast(pa.large_string()) for column in columns]
        return by_text(pc.binary_join_element_wise(*texts, pa.scalar(_BETWEEN, pa.large_string())), call)

    def _j_call(self, *columns: pa.Array) -> dict[str, pa.Array]:
        calls = self._calls(tuple(self._of_j), *columns)
        return {"j_call": calls, "locus": by_text(calls, lambda call: call[:3])}

    def _cut(self, *columns: pa.Array, has_position: bool, has_frame: bool) -> dict[str, pa.Array]:
        """The junctions, and why rows have none.

        columns  those of J, the read, the amino acids, start and length if `has_position`, the frame if `has_frame`
        """
        # Imported here because numba takes long to import.
        from hpcvdj.repertoires.formats.cutting import UNKNOWN, cut_reads

        of_j, (read, amino_acids, *others) = columns[: len(self._of_j)], columns[len(self._of_j) :]
        amino_acids = pc.ascii_upper(_stated(amino_acids))
        start, length = np.full(len(read), UNKNOWN), np.zeros(len(read), dtype=np.int64)
        if has_position:
            start, length = (_integers(column, UNKNOWN) for column in others[:2])
            start[length == UNKNOWN] = UNKNOWN
        if has_frame:
            # Amino acids of a row that is out of frame or has a stop may locate its junction, but are not compared.
            apart = pc.and_(pc.equal(_productive(others[-1]), "F"), pa.array(start != UNKNOWN))
            amino_acids = kept(amino_acids, pc.invert(apart))
        ends = by_text(self._calls(tuple(self._of_j), *of_j), partial(end_of_j, self._species))
        junctions, reasons = cut_reads(read, amino_acids, ends, start, length)
        return {"junction": junctions, REASON: reasons}


def _present(columns: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The `names` that are columns, in their order."""
    return tuple(name for name in names if name in columns)


def _columns_of(columns: Sequence[str], segment: str) -> dict[str, str]:
    """The table's columns of V, D or J by their names in `call_of`."""
    named = {role: [name.format(v=segment, V=segment.upper()) for name in names] for role, names in _NAMES.items()}
    column_of = {role: present[0] for role, names in named.items() if (present := _present(columns, names))}
    return column_of or ({"resolved": f"{segment}_resolved"} if segment != "d" else {})


def _stated(column: pa.Array) -> pa.Array:
    """The column without blanks around values; empty where Adaptive writes a word for a missing value."""
    values = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    missing = pc.is_in(pc.utf8_lower(values), pa.array(sorted(MISSING), pa.large_string()))
    return kept(values, pc.invert(missing))


def _count(*columns: pa.Array) -> pa.Array:
    """The first count that is neither 0 nor missing; else the first that is not missing."""
    # pandas writes whole numbers as decimals if one is missing.
    counts = [pc.replace_substring_regex(_stated(column), r"\.0$", "") for column in columns]
    used = pa.scalar("", pa.large_string())
    for unused in ([""], ["", "0"]):
        for column in reversed(counts):
            used = pc.if_else(pc.is_in(column, pa.array(unused, pa.large_string())), used, column)
    return used


def _productive(frames: pa.Array) -> pa.Array:
    """T or F; empty where the frame is unknown."""
    return by_text(frames, lambda text: _FRAMES.get(text.strip().lower(), ""))


def _integers(column: pa.Array, missing: int) -> NDArray[np.int64]:
    """Whole numbers, int64 [rows]: -1 for negative ones, `missing` for other texts."""

    def integer(text: str) -> int:
        match = re.fullmatch(r"(-?)([0-9]{1,9})", text.strip().removesuffix(".0"))
        return missing if match is None else -1 if match[1] else int(match[2])

    return numbers_by_text(column, integer)
