"""Adaptive Biotechnologies' immunoSEQ: rearrangement tables of 2012 and of all later exports.

A row has a read, where in it the junction begins, and how long it is; reads of some assays end before the junction
does.  `hpcvdj.kernels.reads` cuts and completes them.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.repertoires.formats.adaptive_names import MISSING, Species, call_of, end_of_j, species_of
from hpcvdj.repertoires.formats.format import REASON, Field, Format
from hpcvdj.repertoires.formats.steps import productive

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
"""Their order is that of preference: what is 0 or missing is taken from the next one."""

_FRAMES = {"in": "T", "productive": "T", "out": "F", "stop": "F", "out of frame": "F", "has stop": "F"}
"""`productive` of a frame; the words of 2012 in full are inferred."""


class Adaptive(Format):
    """Rearrangements of Adaptive."""

    name = "adaptive"
    summary = "Adaptive immunoSEQ rearrangements"

    marks = (
        frozenset({"rearrangement", "bio_identity"}),
        frozenset({"rearrangement", "amino_acid", "v_gene", "v_index"}),
        frozenset({"rearrangement", "amino_acid", "v_resolved"}),
        frozenset({"nucleotide", "aminoAcid", "vGeneName"}),
        frozenset({"nucleotide", "aminoAcid", "vMaxResolved"}),
        frozenset({"nucleotide", "aminoAcid", "VGeneName"}),
    )
    """Of ImmuneACCESS, Analyzer 3, the exports before, and that of 2012: the read, the amino acids, the name of V."""

    @staticmethod
    def notice(columns: Sequence[str]) -> str:
        """Which columns are missing that say where the junction is in the read."""
        older = _READ[1] in columns
        lacks = [names[older] for names in (_START, _LENGTH) if not _present(columns, names)]
        if not lacks:
            return ""
        return f"no column {', '.join(lacks)}: junctions are found by their amino acids, and rows without are excluded"

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """The junction is cut from the read; names are IMGT's."""
        self._of_v, of_d, self._of_j = (_columns_of(columns, segment) for segment in "vdj")
        read, amino_acids = _first(columns, _READ), _first(columns, _AMINO_ACIDS)
        frame, counts = _present(columns, _FRAME)[:1], _present(columns, _COUNTS)
        start, length = _present(columns, _START)[:1], _present(columns, _LENGTH)[:1]
        place = (*start, *length) if start and length else ()
        sources = *self._of_j.values(), read, amino_acids, *place, *frame
        cut = partial(self._cut, has_place=bool(place), has_frame=bool(frame))
        kind = ("rearrangement_type",) if "rearrangement_type" in columns else ()
        optional = {
            # Adaptive's says VJ or VDJ; AIRR's is that of data: observed, simulated or inferred.
            "rearrangement_type": Field(kind, _observed),
            "adaptive_rearrangement_type": Field(kind),
            "repertoire_id": Field(_present(columns, _SAMPLE)[:1], _known),
            "d_call": Field(tuple(of_d.values()), partial(self._calls, tuple(of_d))),
            "productive": Field(frame, _productive) if frame else Field((amino_acids,), productive),
            "duplicate_count": Field(counts, _count),
        }
        return {
            "v_call": Field(tuple(self._of_v.values()), partial(self._calls, tuple(self._of_v))),
            "j_call": Field(tuple(self._of_j.values()), self._j_call, "j_call"),
            "locus": Field(tuple(self._of_j.values()), self._j_call, "locus"),
            "junction": Field(sources, cut, "junction"),
            "junction_aa": Field((amino_acids,), _known),
            **{name: field for name, field in optional.items() if field.sources},
            REASON: Field(sources, cut, REASON),
        }

    @cached_property
    def _species(self) -> Species:
        """By the names of V and J in the first rows."""
        columns = {segment: list(names.values()) for segment, names in (("V", self._of_v), ("J", self._of_j))}
        batch = self.first_rows([name for names in columns.values() for name in names])
        if batch is None:
            return "human"
        counted = [pc.value_counts(column) for column in batch.columns]
        return species_of((item["values"].as_py(), item["counts"].as_py()) for counts in counted for item in counts)

    def _calls(self, names: Sequence[str], *columns: pa.Array) -> pa.Array:
        """The AIRR calls of rows whose columns are called `names`."""
        different, place = _distinct(columns)
        calls = [call_of(self._species, dict(zip(names, values, strict=True))) for values in different]
        return pa.array(calls, pa.large_string()).take(pa.array(place))

    def _j_call(self, *columns: pa.Array) -> dict[str, pa.Array]:
        calls = self._calls(tuple(self._of_j), *columns)
        encoded = pc.dictionary_encode(calls)
        loci = [call[:3] for call in encoded.dictionary.to_pylist()]
        return {"j_call": calls, "locus": pa.array(loci, pa.large_string()).take(encoded.indices)}

    def _cut(self, *columns: pa.Array, has_place: bool, has_frame: bool) -> dict[str, pa.Array]:
        """The junctions, and why rows have none; of the columns of J, read, amino acids, start and length, frame."""
        # Here, because numba takes long to import.
        from hpcvdj.repertoires.formats.cutting import UNKNOWN, cut_reads

        of_j, (read, amino_acids, *others) = columns[: len(self._of_j)], columns[len(self._of_j) :]
        amino_acids = pc.ascii_upper(_known(amino_acids))
        start, length = np.full(len(read), UNKNOWN), np.zeros(len(read), dtype=np.int64)
        if has_place:
            start, length = (_integers(column, UNKNOWN) for column in others[:2])
            start[length == UNKNOWN] = UNKNOWN
        if has_frame:
            # Amino acids of a row out of frame or with a stop are compared with nothing, but may place its junction.
            apart = pc.and_(pc.equal(_productive(others[-1]), "F"), pa.array(start != UNKNOWN))
            amino_acids = pc.if_else(apart, pa.scalar("", amino_acids.type), amino_acids)
        calls = pc.dictionary_encode(self._calls(tuple(self._of_j), *of_j))
        ends = pa.array([end_of_j(self._species, call) for call in calls.dictionary.to_pylist()], pa.large_string())
        junctions, reasons = cut_reads(read, amino_acids, ends.take(calls.indices), start, length)
        return {"junction": junctions, REASON: reasons}


def _present(columns: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in columns)


def _first(columns: Sequence[str], names: Sequence[str]) -> str:
    """The first of `names` that is a column; the first of all, which readers miss, if none is."""
    return (*_present(columns, names), names[0])[0]


def _columns_of(columns: Sequence[str], segment: str) -> dict[str, str]:
    """The table's columns of V, D or J by their names in `call_of`."""
    named = {role: [name.format(v=segment, V=segment.upper()) for name in names] for role, names in _NAMES.items()}
    found = {role: present[0] for role, names in named.items() if (present := _present(columns, names))}
    return found or ({"resolved": f"{segment}_resolved"} if segment != "d" else {})


def _distinct(columns: Sequence[pa.Array]) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
    """The different rows of several columns, and the place of each row among them."""
    rows = len(columns[0])
    place, different = np.zeros(rows, dtype=np.int64), 0
    for column in columns:
        encoded = pc.dictionary_encode(column)
        place = place * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        pairs = pc.dictionary_encode(pa.array(place))
        place, different = pairs.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(pairs.dictionary)
    row = np.zeros(different, dtype=np.int64)
    row[place[::-1]] = np.arange(rows)[::-1]
    examples = (column.take(pa.array(row)).to_pylist() for column in columns)
    return list(zip(*examples, strict=True)), place


def _known(column: pa.Array) -> pa.Array:
    """The column, without blanks around values, and empty where Adaptive has a word for a missing one."""
    values = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    missing = pc.is_in(pc.utf8_lower(values), pa.array(sorted(MISSING), pa.large_string()))
    return pc.if_else(missing, pa.scalar("", pa.large_string()), values)


def _count(*columns: pa.Array) -> pa.Array:
    """The first count that is not 0 or missing; else the first that is not missing."""
    # pandas makes decimals of whole numbers if one is missing.
    known = [pc.replace_substring_regex(_known(column), r"\.0$", "") for column in columns]
    used = pa.scalar("", pa.large_string())
    for unused in ([""], ["", "0"]):
        for column in reversed(known):
            used = pc.if_else(pc.is_in(column, pa.array(unused, pa.large_string())), used, column)
    return used


def _observed(column: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar("observed", pa.large_string()), len(column))


def _productive(frames: pa.Array) -> pa.Array:
    """T or F; empty where the frame is not known."""
    encoded = pc.dictionary_encode(frames.cast(pa.large_string()))
    values = [_FRAMES.get(text.strip().lower(), "") for text in encoded.dictionary.to_pylist()]
    return pa.array(values, pa.large_string()).take(encoded.indices)


def _integers(column: pa.Array, missing: int) -> NDArray[np.int64]:
    """Whole numbers; `missing` for what is none, -1 for negative ones."""
    encoded = pc.dictionary_encode(column)
    texts = [text.strip().removesuffix(".0") for text in encoded.dictionary.to_pylist()]
    digits = [text.removeprefix("-") for text in texts]
    values = [
        missing if not (text.isascii() and text.isdigit() and len(text) < 10) else -1 if signed != text else int(text)
        for signed, text in zip(texts, digits, strict=True)
    ]
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return np.asarray(np.array(values, dtype=np.int64)[indices])
