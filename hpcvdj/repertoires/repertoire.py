"""In vivo sequences: reading junctions, accounting for every row, grouping by V–J pair, packing.

An in vivo sequence is the CDR3 in nucleotides (IMGT 105–117).  AIRR's `junction` has the codons of Cys 104 and
Phe/Trp 118 around it; this module is the one place that takes them off.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.checks import require_choice
from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import BASES_PER_WORD, words_for
from hpcvdj.recombination.germline import Germline, Segment
from hpcvdj.repertoires import columns
from hpcvdj.repertoires.many import REPERTOIRE, Table, changed, digest_of, folder_of, rows_of
from hpcvdj.repertoires.slices import Slice
from hpcvdj.repertoires.tables import file_digest, file_state, read_batches, table_batches

LONGEST_CDR3 = 128
"""The longest CDR3 in nucleotides that any method takes: four 64-bit words."""

PAPER_LONGEST_CDR3 = 60
"""The longest in vivo sequence of the paper, in nucleotides (section V-A)."""

SequenceField = Literal["junction", "cdr3"]

AMINO_ACIDS = frozenset("EFILPQ")
"""Letters that stand for an amino acid and for no nucleotide, be it an ambiguous one."""

ANCHOR_BASES = {"junction": 3, "cdr3": 0}
"""Bases to take off both ends of the AIRR field to get the CDR3."""

Policy = Literal["exclude", "first"]
POLICIES = ("exclude", "first")

_IMGT_NAME = re.compile(r"\b(?:IG[HKL]|TR[ABDG])[VDJ][^\s,()\[\]]*")

_SCATTER = np.uint64(0x9E3779B97F4A7C15)


def names_in(call: str) -> list[str]:
    """The different genes and alleles that an AIRR call names.

    IMGT/V-QUEST's `Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 F` names two alleles; MiXCR's `TRBV6-2*00` a gene.

    >>> names_in("Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 (F)"), names_in("TRBV5,TRBV5*00 ")
    (['TRBV6-2*01', 'TRBV6-3*01'], ['TRBV5'])
    """
    parts = (part.strip() for part in call.split(","))
    names = (name for part in parts for name in (_IMGT_NAME.findall(part) if " " in part else [part]) or [part])
    return list(dict.fromkeys(name.removesuffix("*00") for name in names if name))


@dataclass(frozen=True)
class CallPolicy:
    """What becomes of calls that name no single listed allele.

    `ambiguous`: of `TRBV6-2,TRBV6-3` — exclude the row, or take the first call.
    `unlisted`: of an allele that the germline does not list, though it lists its gene — exclude the row, or take
    the gene's first listed allele.
    """

    ambiguous: Policy = "exclude"
    unlisted: Policy = "exclude"

    def __post_init__(self) -> None:
        require_choice("ambiguous_calls", self.ambiguous, POLICIES)
        require_choice("unlisted_alleles", self.unlisted, POLICIES)

    def resolve(self, germline: Germline, segment_type: str, call: str) -> Segment | str:
        """The segment of an AIRR `v_call` or `j_call`, or the reason why there is none."""
        calls = names_in(call)
        if not calls:
            return f"no {segment_type} call"
        if len(calls) > 1 and self.ambiguous == "exclude":
            return f"ambiguous {segment_type} call {call}"
        segment = germline.find(segment_type, calls[0])
        if segment is not None:
            return segment
        gene, star, _ = calls[0].partition("*")
        first = germline.find(segment_type, gene)
        if first is None:
            return f"{segment_type} gene {gene} is not in the germline table"
        if star and self.unlisted == "exclude":
            return f"{segment_type} allele {calls[0]} is not in the germline table, other alleles of {gene} are"
        return first


@dataclass(frozen=True)
class Excluded:
    """Rows that cannot be counted: int64 0-based data rows, their ids, and why, in row order.

    `repertoire_id` says whose they are, where tables are counted together; else it is empty.
    """

    row: NDArray[np.int64]
    sequence_id: list[str]
    reason: list[str]
    repertoire_id: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.row)

    def by_reason(self) -> list[tuple[str, int]]:
        """Each reason and how many rows have it, the commonest first."""
        reasons, counts = np.unique(np.array(self.reason, dtype=object), return_counts=True)
        return sorted(zip(reasons.tolist(), counts.tolist(), strict=True), key=lambda item: (-item[1], item[0]))


NOTHING_EXCLUDED = Excluded(np.empty(0, np.int64), [], [])


@dataclass
class Repertoire:
    """Packed in vivo sequences, grouped by V–J pair in the order of the germline table.

    words     uint64 [n, W]  packed CDR3s (see `hpcvdj.recombination.alphabet`), W = 2 up to 64 nt, else 4
    lengths   uint8  [n]     CDR3 lengths in nucleotides
    offsets   int64  [p+1]   rows offsets[k]:offsets[k+1] belong to `pairs[k]`
    row       int64  [n]     0-based data row in the input; empty on ranks other than root
    sequence_id              pyarrow large_string Array in *input* order of the counted rows; None if not root
    id_order  int64  [n]     place of each sequence's id in `sequence_id`; empty on ranks other than root
    substituted              (call, allele taken for it, rows) of calls that name no single listed allele
    repertoire_ids           the repertoires of tables that are counted together; None of one table, and if not root
    repertoire int32 [n]     place of each sequence's repertoire in `repertoire_ids`
    """

    words: NDArray[np.uint64]
    lengths: NDArray[np.uint8]
    pairs: list[tuple[Segment, Segment]]
    offsets: NDArray[np.int64]
    row: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    sequence_id: Any = None
    id_order: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    excluded: Excluded = NOTHING_EXCLUDED
    substituted: list[tuple[str, str, int]] = field(default_factory=list)
    rows_read: int = 0
    source: dict[str, str] = field(default_factory=dict)
    repertoire_ids: list[str] | None = None
    repertoire: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """The longest CDR3 in nucleotides; 0 without sequences."""
        return int(self.lengths.max()) if len(self) else 0

    def cdr3(self, index: int) -> str:
        """The letters of one in vivo sequence."""
        return str(self.cdr3_bytes(slice(index, index + 1))[0].decode())

    def cdr3_bytes(self, rows: slice) -> NDArray[np.bytes_]:
        """The letters of some rows as fixed-width bytes, `S{longest}` [rows]."""
        words, lengths = self.words[rows], self.lengths[rows]
        out = np.zeros((len(lengths), max(1, self.longest)), dtype=np.uint8)
        columns.unpack_rows(words, lengths, out)
        return out.view(f"S{out.shape[1]}").reshape(-1)

    def id_bytes(self, rows: slice, width: int) -> NDArray[np.bytes_]:
        """The ids of some rows as fixed-width UTF-8 bytes, `S{width}` [rows]; root only."""
        order = self.id_order[rows]
        out = np.zeros((len(order), width), dtype=np.uint8)
        columns.fixed_width(*columns.text_buffers(self.sequence_id), order, out)
        return out.view(f"S{width}").reshape(-1)


def read_repertoire(
    path: str | Path,
    germline: Germline,
    *,
    sequence_field: SequenceField = "junction",
    calls: CallPolicy | None = None,
    longest: int = LONGEST_CDR3,
    strict: bool = False,
) -> Repertoire:
    """Read the junctions of an AIRR TSV (plain, gzip) or Parquet file.

    Rows that cannot be counted are excluded by name and reason; with `strict` the first of them is an
    InputError.  Memory grows with the packed sequences and their ids, not with the file's other columns.
    """
    path = Path(path)
    before = file_state(path)
    batches = read_batches(path, columns_of(sequence_field))
    repertoire = build(
        batches, germline, sequence_field=sequence_field, calls=calls, longest=longest, strict=strict, name=str(path)
    )
    if repertoire.rows_read == 0:
        raise InputError(f"{path}: no data rows; the file has a header line only")
    repertoire.source = {"path": str(path.resolve()), "sha256": file_digest(path), "field": sequence_field}
    if file_state(path) != before:
        raise InputError(f"{path}: changed while it was read; start again when it is complete")
    return repertoire


def read_tables(
    tables: Sequence[Table], germline: Germline, *, sequence_field: SequenceField = "junction", **options: Any
) -> Repertoire:
    """Read the junctions of tables that are counted together; rows are numbered through all of them.

    A sequence_id stands once in each repertoire.  InputError if a table is not what it was when it was surveyed.
    """
    wanted = columns_of(sequence_field)
    batches = (batch for table in tables for batch in rows_of(table, wanted))
    known = [name for table in tables for name in table.repertoires]
    repertoire = build(batches, germline, sequence_field=sequence_field, tables=tables, known=known, **options)
    repertoire.source = {"path": str(folder_of(tables)), "sha256": digest_of(tables), "field": sequence_field}
    for table in tables:
        if file_state(table.path) != table.state:
            raise changed(table.path)
    return repertoire


def repertoire_of_slice(
    one: Slice,
    path: Path,
    germline: Germline,
    sequence_field: SequenceField,
    calls: CallPolicy,
    strict: bool,
    tables: Sequence[Table] = (),
) -> Repertoire:
    """The junctions of a slice of the table at `path`, or of `tables`; their rows are those of the table or tables."""
    return build(
        one.batches,
        germline,
        sequence_field=sequence_field,
        calls=calls,
        strict=strict,
        name=str(path),
        first_row=one.first_row,
        tables=tables,
    )


def repertoire_of(
    table: Any, germline: Germline, *, sequence_field: SequenceField = "junction", **options: Any
) -> Repertoire:
    """The same from a pandas DataFrame or pyarrow Table; without a `sequence_id` column, rows are numbered."""
    names = [str(name) for name in getattr(table, "column_names", getattr(table, "columns", []))]
    wanted = columns_of(sequence_field)
    batches = table_batches(table, wanted if "sequence_id" in names else wanted[1:])
    return build(batches, germline, sequence_field=sequence_field, name="the table", **options)


def columns_of(sequence_field: SequenceField) -> list[str]:
    """The columns that are read; InputError if the field is none that there is."""
    require_choice("sequence_field", sequence_field, ANCHOR_BASES)
    return ["sequence_id", "v_call", "j_call", sequence_field]


def build(
    batches: Iterable[pa.RecordBatch],
    germline: Germline,
    *,
    sequence_field: SequenceField = "junction",
    calls: CallPolicy | None = None,
    longest: int = LONGEST_CDR3,
    strict: bool = False,
    name: str = "the table",
    first_row: int = 0,
    tables: Sequence[Table] = (),
    known: Iterable[str] = (),
) -> Repertoire:
    """Group and pack batches of the columns (sequence_id), v_call, j_call and `sequence_field`.

    first_row  the number of the first row
    tables     those that the rows are of, if they are counted together: batches have the column repertoire_id then
    known      repertoires, those without rows among them
    """
    builder = _Builder(germline, sequence_field, calls or CallPolicy(), longest, first_row, tables, known)
    for batch in batches:
        builder.add(batch)
        if strict and builder.reasons:
            break
    repertoire = builder.finish()
    if strict and len(repertoire.excluded):
        row, reason = int(repertoire.excluded.row[0]), repertoire.excluded.reason[0]
        table, place = builder.place(row)
        where = table.path if table else name
        raise InputError(
            f"{where}, data row {place} ({repertoire.excluded.sequence_id[0]}): {reason}; mend the row, or count "
            "without --strict to have such rows excluded and listed"
        )
    return repertoire


class _Builder:
    """Collects packed batches; what it holds per row is the packed sequence, its pair, row and id."""

    def __init__(
        self,
        germline: Germline,
        sequence_field: str,
        calls: CallPolicy,
        longest: int,
        first_row: int,
        tables: Sequence[Table],
        known: Iterable[str],
    ) -> None:
        self.germline, self.calls, self.longest, self.first_row = germline, calls, longest, first_row
        self.sequence_field, self.trim = sequence_field, ANCHOR_BASES[sequence_field]
        self.v, self.j = list(germline.of("V")), list(germline.of("J"))
        self._index = {id(s): k for segments in (self.v, self.j) for k, s in enumerate(segments)}
        self._resolved: dict[tuple[str, str], int | str] = {}
        self.rows_read = 0
        self.parts: list[tuple[Any, ...]] = []
        self.ids: list[pa.Array] = []
        # row -> its id, the reason, its repertoire
        self.reasons: dict[int, tuple[str, str, int]] = {}
        self.tables = tables
        self._starts = [table.first_row for table in tables]
        self._repertoire = {name: k for k, name in enumerate(dict.fromkeys(known))}
        self.substituted: dict[tuple[str, str], int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        rows = self.first_row + self.rows_read + np.arange(batch.num_rows)
        self.rows_read += batch.num_rows
        ids = batch.column("sequence_id") if "sequence_id" in batch.schema.names else pa.array(rows.astype(str))
        repertoire = self._repertoires(batch)
        v, no_v = self._calls("V", batch.column("v_call"))
        j, no_j = self._calls("J", batch.column("j_call"))
        words, lengths, unfit = self._pack(batch.column(self.sequence_field))
        reasons = self._locus_reasons(v, j) | no_j | no_v | unfit
        keep = np.ones(batch.num_rows, dtype=bool)
        keep[list(reasons)] = False
        for place, reason in reasons.items():
            self.reasons[int(rows[place])] = (ids[place].as_py(), reason, int(repertoire[place]))
        kept_ids = ids.cast(pa.large_string()).filter(pa.array(keep))
        hashes = np.empty(len(kept_ids), dtype=np.uint64)
        columns.hash_rows(*columns.text_buffers(kept_ids), hashes)
        # Equal ids of different repertoires need not be looked at.
        hashes ^= repertoire[keep].astype(np.uint64) * _SCATTER
        self.ids.append(kept_ids)
        pair = v[keep] * len(self.j) + j[keep]
        packed = _narrow(words[keep], lengths[keep])
        self.parts.append((packed, lengths[keep], pair, rows[keep], hashes, repertoire[keep]))

    def _repertoires(self, batch: pa.RecordBatch) -> NDArray[np.int32]:
        """Each row's place in `self._repertoire`; 0 of one table's rows."""
        if not self.tables:
            return np.zeros(batch.num_rows, dtype=np.int32)
        encoded = pc.dictionary_encode(batch.column(REPERTOIRE))
        codes = [self._repertoire.setdefault(name, len(self._repertoire)) for name in encoded.dictionary.to_pylist()]
        return np.asarray(np.array(codes, dtype=np.int32)[encoded.indices.to_numpy(zero_copy_only=False)])

    def place(self, row: int) -> tuple[Table | None, int]:
        """The table of a row, of those that are counted together, and its data row there, from 1."""
        if not self.tables:
            return None, row + 1
        table = self.tables[bisect_right(self._starts, row) - 1]
        return table, row - table.first_row + 1

    def _calls(self, kind: str, column: pa.Array) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Index of each row's segment among the germline's, and the reason of each row that has none."""
        encoded = pc.dictionary_encode(column)
        resolved = [self._resolve(kind, call) for call in encoded.dictionary.to_pylist()]
        index_of = np.array([r if isinstance(r, int) else -1 for r in resolved] or [-1], dtype=np.int64)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        index = index_of[codes] if len(codes) else np.empty(0, np.int64)
        self._note_substitutions(kind, encoded, resolved)
        bad = np.flatnonzero(index < 0)
        return index, {int(row): str(resolved[codes[row]]) for row in bad}

    def _note_substitutions(self, kind: str, encoded: Any, resolved: list[int | str]) -> None:
        segments = self.v if kind == "V" else self.j
        rows = np.bincount(encoded.indices.to_numpy(zero_copy_only=False), minlength=len(resolved))
        for call, found, count in zip(encoded.dictionary.to_pylist(), resolved, rows.tolist(), strict=True):
            # A gene that stands for its first listed allele is the table's own rule, not a substitution.
            if isinstance(found, int) and names_in(call) not in ([segments[found].allele], [segments[found].gene]):
                key = (call, segments[found].allele)
                self.substituted[key] = self.substituted.get(key, 0) + count

    def _resolve(self, kind: str, call: str) -> int | str:
        key = (kind, call)
        if key not in self._resolved:
            found = self.calls.resolve(self.germline, kind, call)
            self._resolved[key] = found if isinstance(found, str) else self._index[id(found)]
        return self._resolved[key]

    def _locus_reasons(self, v: NDArray[np.int64], j: NDArray[np.int64]) -> dict[int, str]:
        loci = {locus: k for k, locus in enumerate(self.germline.loci)}
        v_locus = np.array([loci[s.locus] for s in self.v])[v]
        j_locus = np.array([loci[s.locus] for s in self.j])[j]
        clash = np.flatnonzero((v_locus != j_locus) & (v >= 0) & (j >= 0))
        return {int(row): f"V is of locus {self.v[v[row]].locus}, J of {self.j[j[row]].locus}" for row in clash}

    def _pack(self, column: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.uint8], dict[int, str]]:
        offsets, data = columns.text_buffers(column)
        count = len(column)
        words = np.zeros((count, words_for(LONGEST_CDR3)), dtype=np.uint64)
        lengths = np.zeros(count, dtype=np.uint8)
        status, detail = np.zeros(count, dtype=np.uint8), np.zeros(count, dtype=np.int64)
        columns.pack_rows(offsets, data, self.trim, self.longest, words, lengths, status, detail)
        bad = np.flatnonzero(status != columns.OK)
        return words, lengths, {int(r): self._unfit(int(status[r]), int(detail[r]), column[r].as_py()) for r in bad}

    def _unfit(self, status: int, detail: int, text: str) -> str:
        if status == columns.MISSING:
            return f"no {self.sequence_field}"
        if status == columns.TOO_SHORT:
            return f"junction of {detail + 2 * self.trim} nt is shorter than its two anchor codons"
        if status == columns.TOO_LONG:
            return f"CDR3 of {detail} nt is longer than {self.longest} nt"
        doubt = "; these seem to be amino acids" if AMINO_ACIDS.intersection(text.upper()) else ""
        return f"{self.sequence_field} holds {text[detail : detail + 1]!r}, not only A, C, G, T{doubt}"

    def finish(self) -> Repertoire:
        words, lengths, pair, row, hashes, repertoire = self._joined()
        ids = pa.chunked_array(self.ids, pa.large_string()).combine_chunks()
        keep = self._without_duplicates(ids, hashes, row, repertoire)
        used, compact = np.unique(pair[keep], return_inverse=True)
        order = keep[np.argsort(compact.astype(np.min_scalar_type(len(used))), kind="stable")]
        offsets = np.zeros(len(used) + 1, dtype=np.int64)
        np.cumsum(np.bincount(compact, minlength=len(used)), out=offsets[1:])
        pairs = [(self.v[p // len(self.j)], self.j[p % len(self.j)]) for p in used]
        return Repertoire(
            words=words[order],
            lengths=lengths[order],
            pairs=pairs,
            offsets=offsets,
            row=row[order],
            sequence_id=ids,
            id_order=order,
            excluded=self._excluded(),
            substituted=[(call, allele, rows) for (call, allele), rows in self.substituted.items()],
            rows_read=self.rows_read,
            repertoire_ids=list(self._repertoire) if self.tables else None,
            repertoire=repertoire[order],
        )

    def _joined(self) -> tuple[Any, ...]:
        if not self.parts:
            kinds = (np.uint8, np.int64, np.int64, np.uint64, np.int32)
            return np.zeros((0, 2), np.uint64), *(np.empty(0, kind) for kind in kinds)
        width = max(part[0].shape[1] for part in self.parts)
        words = np.zeros((sum(len(part[1]) for part in self.parts), width), dtype=np.uint64)
        first = 0
        for part in self.parts:
            words[first : first + len(part[1]), : part[0].shape[1]] = part[0]
            first += len(part[1])
        joined = [np.concatenate([part[k] for part in self.parts]) for k in range(1, 6)]
        self.parts.clear()
        return words, *joined

    def _without_duplicates(
        self, ids: pa.Array, hashes: NDArray[np.uint64], row: NDArray[np.int64], repertoire: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Places of the rows to keep; a later row with the id of an earlier one of its repertoire is excluded."""
        keep = np.ones(len(hashes), dtype=bool)
        for places in _equal_runs(hashes):
            first_of: dict[tuple[str, int], int] = {}
            for place in places.tolist():
                text, whose, here = ids[place].as_py(), int(repertoire[place]), int(row[place])
                first = first_of.setdefault((text, whose), here)
                if first != here:
                    keep[place] = False
                    self.reasons[here] = (text, self._repeats(first, here), whose)
        return np.flatnonzero(keep)

    def _repeats(self, first: int, row: int) -> str:
        table, place = self.place(first)
        other = f" of {table.path.name}" if table is not self.place(row)[0] and table else ""
        return f"sequence_id repeats that of data row {place}{other}"

    def _excluded(self) -> Excluded:
        rows = sorted(self.reasons)
        texts = [self.reasons[row] for row in rows]
        names = list(self._repertoire)
        whose = [names[t[2]] for t in texts] if self.tables else []
        return Excluded(np.array(rows, dtype=np.int64), [t[0] for t in texts], [t[1] for t in texts], whose)


def _equal_runs(values: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
    """Places of each value that occurs more than once, in ascending order of place."""
    order = np.argsort(values, kind="stable")
    same = values[order[1:]] == values[order[:-1]]
    if not same.any():
        return
    starts = np.flatnonzero(np.concatenate(([True], ~same)))
    for first, last in zip(starts, np.append(starts[1:], len(order)), strict=True):
        if last - first > 1:
            yield order[first:last]


def _narrow(words: NDArray[np.uint64], lengths: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Two words a row (the paper's 16 bytes) where every sequence fits into them."""
    return words[:, :2].copy() if not len(lengths) or lengths.max() <= 2 * BASES_PER_WORD else words
