"""Reading junctions: every row is packed, or excluded with its reason; then rows are grouped by V–J pair.

AIRR's `junction` has the codons of Cys 104 and Phe/Trp 118 around the CDR3, `junction_aa` their amino acids; this
module is the one place that removes them.
"""

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.kernels import text
from hpcvdj.kernels.generation.letters import productive_rows_of_thread
from hpcvdj.recombination.alphabet import Letters
from hpcvdj.recombination.calls import is_replaced
from hpcvdj.recombination.exclusions import ExcludedRows, Exclusion, ExclusionKind
from hpcvdj.recombination.germline import SEGMENT_TYPES, Germline, Segment, SegmentType
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.batches import in_threads
from hpcvdj.repertoires.formats import REASON
from hpcvdj.repertoires.productive import productive_rows
from hpcvdj.repertoires.read_counts import READS, UNKNOWN, read_counts
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.tables import Table
from hpcvdj.repertoires.unfit import ambiguous_rows, unfit_row, with_ends

log = logging.getLogger(__name__)

REPERTOIRE = "repertoire_id"
"""AIRR's column for the repertoire of a row."""

LONGEST_TEXT = 4096
"""Bytes of the longest id or call: results store text in columns that are as wide as their longest value."""

Reference = Germline | Model
"""What calls refer to: the segments of a germline table, or the alleles of a recombination model."""

_MOST_SETS = 1 << 31
"""A V–J pair is one number: the place of V x _MOST_SETS + that of J."""

_SCATTER = np.uint64(0x9E3779B97F4A7C15)

Unfit = tuple[Exclusion, NDArray[np.int64]]
"""Why some rows take no part."""

Codes = NDArray[np.int32]
"""Why each row takes no part, int32 [rows]: 0 if it does, else 1 + the place in `_Builder._exclusions`."""


@dataclass
class Junctions:
    """Junctions that were read.

    repertoire     their sequences, grouped by V–J pair
    row            int64 [sequences]: 0-based data row of the input
    ids            the ids of all rows that were not excluded by themselves, as a pyarrow large_string Array
    id_order       int64 [sequences]: place of each sequence's id in `ids`
    excluded       the other rows
    substituted    (call, allele used for it, rows) for calls that do not name one listed allele
    rows_read      data rows of the input
    repertoire_ids the repertoires of tables that are counted together; None for one table
    repertoire_of  int32 [sequences]: place of each sequence's repertoire in `repertoire_ids`
    anchor_letters letters of each anchor that the sequences of `repertoire` have
    reads          int64 [sequences], at least 1: read counts; None if the input, or a table of it, has none
    """

    repertoire: Repertoire
    row: NDArray[np.int64]
    ids: Any
    id_order: NDArray[np.int64]
    excluded: ExcludedRows
    substituted: list[tuple[str, str, int]]
    rows_read: int
    repertoire_ids: list[str] | None
    repertoire_of: NDArray[np.int32]
    anchor_letters: int = 0
    reads: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.repertoire)

    def id_bytes(self, rows: slice) -> NDArray[np.bytes_]:
        """The ids of some sequences as fixed-width UTF-8 bytes [rows], as wide as the longest id of all."""
        offsets, data = text.text_buffers(self.ids)
        order, width = self.id_order[rows], max(1, int(np.diff(offsets).max(initial=0)))
        out = np.zeros((len(order), width), dtype=np.uint8)
        text.fixed_width(offsets, data, order, out)
        return out.view(f"S{width}").reshape(-1)

    def cdr3_bytes(self, rows: slice) -> NDArray[np.bytes_]:
        """The letters of some CDR3s as fixed-width bytes [rows], as wide as the longest sequence of all."""
        out, lengths = self._letters(rows)
        width = out.shape[1]
        if self.anchor_letters:
            out[np.arange(width) >= lengths[:, np.newaxis] - self.anchor_letters] = 0
            out = np.pad(out[:, self.anchor_letters :], ((0, 0), (0, self.anchor_letters)))
        return out.view(f"S{width}").reshape(-1)

    def anchor_bytes(self, rows: slice) -> NDArray[np.bytes_]:
        """The anchors of some junctions, the first then the last, as bytes [rows] of twice `anchor_letters`.

        Of a junction that is shorter, all its letters.
        """
        out, lengths = self._letters(rows)
        own = np.arange(self.anchor_letters)
        first_of_last = np.maximum(lengths - self.anchor_letters, self.anchor_letters)
        last = np.take_along_axis(out, first_of_last[:, np.newaxis] + own, axis=1)
        return np.hstack([out[:, : self.anchor_letters], last]).view(f"S{2 * self.anchor_letters}").reshape(-1)

    def _letters(self, rows: slice) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The letters of some sequences, uint8 [rows, the longest of all], and their numbers, int64 [rows]."""
        letters = self.repertoire.letters
        words, lengths = self.repertoire.words[rows], self.repertoire.lengths[rows] // np.uint8(letters.bases)
        width = max(1, 2 * self.anchor_letters, self.repertoire.longest // letters.bases)
        out = np.zeros((len(lengths), width), dtype=np.uint8)
        text.unpack_rows(words, lengths, np.frombuffer(letters.symbols.encode(), dtype=np.uint8), letters.bits, out)
        return out, lengths.astype(np.int64)


def read_junctions(
    batches: Iterable[pa.RecordBatch],
    germline: Reference,
    reading: Reading,
    sources: Sequence[Table],
    first_row: int = 0,
    repertoires: Iterable[str] | None = None,
) -> Junctions:
    """Read batches with the columns (sequence_id), v_call, j_call and the sequence field.

    sources      the tables that the rows come from
    first_row    the number of the first row
    repertoires  the repertoires that are known beforehand, if tables are counted together: batches then have the
                 column repertoire_id

    InputError if a row cannot be counted and `reading` is strict.
    """
    builder = _Builder(germline, reading, sources, repertoires)
    for packed in in_threads(builder.packed, _numbered(batches, first_row)):
        builder.add(packed)
        if reading.strict and builder.excluded:
            break
    junctions = builder.finish()
    if reading.strict and len(junctions.excluded):
        source, data_row = builder.place(int(junctions.excluded.row[0]))
        raise InputError(
            f"{source.path}, data row {data_row} ({junctions.excluded.sequence_id[0]}): "
            f"{junctions.excluded.exclusion(0)}; correct the row, or leave {option('strict')} out to exclude and "
            "list such rows"
        )
    return junctions


def _numbered(batches: Iterable[pa.RecordBatch], first_row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each batch with its first row."""
    for batch in batches:
        yield first_row, batch
        first_row += batch.num_rows


@dataclass(frozen=True)
class _Packed:
    """A batch whose sequences are packed.

    rows     int64 [rows]: their numbers
    ids      pyarrow large_string Array
    hashes   uint64 [rows]: of the ids
    reads    int64 [rows]: read counts, `UNKNOWN` for a row without one; None if they are not read
    words    uint64 [rows, W], lengths uint8 [rows]: the sequences
    unfit    why rows, int64 [rows] of the batch, have no valid count, could not be packed or are not productive; of a
             row that is there twice, the last counts
    """

    batch: pa.RecordBatch
    rows: NDArray[np.int64]
    ids: pa.Array
    hashes: NDArray[np.uint64]
    reads: NDArray[np.int64] | None
    words: NDArray[np.uint64]
    lengths: NDArray[np.uint8]
    unfit: list[Unfit]


@dataclass
class _Builder:
    """Collects packed batches; what it keeps of a row is the packed sequence, its pair, row number and id."""

    germline: Reference
    reading: Reading
    sources: Sequence[Table]
    repertoires: InitVar[Iterable[str] | None]

    def __post_init__(self, repertoires: Iterable[str] | None) -> None:
        # A germline table gives the order of V-J pairs; sets of a model's alleles come as they are named.
        listed = self.germline.of if isinstance(self.germline, Germline) else lambda segment: ()
        self._places: dict[SegmentType, dict[Any, int]] = {
            segment: {found: place for place, found in enumerate(listed(segment))} for segment in ("V", "J")
        }
        # The place of a call's segment, or why it has none; and whether the segment replaces what the call names.
        self._resolved: dict[tuple[SegmentType, str], tuple[int | Exclusion, bool]] = {}
        self.rows_read = 0
        self.batches: list[tuple[Any, ...]] = []
        self.reads: list[NDArray[np.int64]] = []
        self.ids: list[pa.Array] = []
        # The place of each reason; and of excluded rows, their numbers, ids, reasons and repertoires.
        self._exclusions: dict[Exclusion, int] = {}
        self.excluded: list[tuple[NDArray[np.int64], pa.Array, Codes, NDArray[np.int32]]] = []
        self._together = repertoires is not None
        self._repertoire = {name: k for k, name in enumerate(dict.fromkeys(repertoires or ()))}
        self.substituted: Counter[tuple[str, str]] = Counter()

    def packed(self, numbered: tuple[int, pa.RecordBatch]) -> _Packed:
        """A batch, given with its first row, packed; several threads may do it, as nothing is kept here."""
        first_row, batch = numbered
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name != self.reading.sequence_field:
                self._require_storable(name, column, first_row)
        rows = first_row + np.arange(batch.num_rows)
        ids = batch.column("sequence_id") if "sequence_id" in batch.schema.names else pa.array(rows.astype(str))
        ids = ids.cast(pa.large_string())
        hashes = np.empty(len(ids), dtype=np.uint64)
        text.hash_rows(*text.text_buffers(ids), hashes)
        words, lengths, unfit = self._pack(batch.column(self.reading.sequence_field))
        has_reads = READS in batch.schema.names
        reads, no_count = read_counts(batch.column(READS)) if has_reads else (None, {})
        return _Packed(batch, rows, ids, hashes, reads, words, lengths, [*_by_reason(no_count), *unfit])

    def add(self, packed: _Packed) -> None:
        batch, rows, ids = packed.batch, packed.rows, packed.ids
        self.rows_read += batch.num_rows
        repertoire = self._repertoires(batch)
        v, no_v = self._calls("V", batch)
        j, no_j = self._calls("J", batch)
        # What is wrong with a row's sequence is said before what is wrong with its calls.
        unfit = np.zeros(batch.num_rows, dtype=np.int32)
        for exclusion, places in packed.unfit:
            unfit[places] = self._code(exclusion)
        why = np.zeros(batch.num_rows, dtype=np.int32)
        for codes in (self._two_loci(v, j), no_j, no_v, unfit, self._reasons(batch)):
            why = np.where(codes > 0, codes, why)
        # Most batches are kept whole, which copies nothing.
        keep: Any = slice(None)
        if why.any():
            keep = why == 0
            self.excluded.append((rows[~keep], ids.filter(pa.array(~keep)), why[~keep], repertoire[~keep]))
            ids = ids.filter(pa.array(keep))
        # Equal ids of different repertoires are no repetition.
        hashes = packed.hashes[keep] ^ repertoire[keep].astype(np.uint64) * _SCATTER
        self.ids.append(ids)
        pair, lengths = v[keep] * _MOST_SETS + j[keep], packed.lengths[keep]
        words = _narrow(packed.words[keep], lengths // self.reading.letters.bases, self.reading.letters)
        self.batches.append((words, lengths, pair, rows[keep], hashes, repertoire[keep]))
        if packed.reads is not None:
            self.reads.append(packed.reads[keep])

    def _code(self, exclusion: Exclusion) -> int:
        """What stands for an exclusion in `Codes`."""
        return 1 + self._exclusions.setdefault(exclusion, len(self._exclusions))

    def _exclude(self, rows: NDArray[np.int64], ids: pa.Array, code: int, repertoires: NDArray[Any]) -> None:
        """Exclude rows that are in no batch any more."""
        self.excluded.append((rows, ids, np.full(len(rows), code, dtype=np.int32), repertoires))

    def _reasons(self, batch: pa.RecordBatch) -> Codes:
        """Why the table's format cannot give a junction to a row."""
        if REASON not in batch.schema.names:
            return np.zeros(batch.num_rows, dtype=np.int32)
        encoded = pc.dictionary_encode(batch.column(REASON))
        codes = [self._code(Exclusion.from_text(text)) if text else 0 for text in encoded.dictionary.to_pylist()]
        return _taken(codes, encoded)

    def _require_storable(self, name: str, column: pa.Array, first_row: int) -> None:
        """Raise InputError for text that results cannot hold."""
        offsets, data = text.text_buffers(column)
        lengths = np.diff(offsets)
        if lengths.max(initial=0) > LONGEST_TEXT:
            row = int(lengths.argmax())
            fault = f"{name} of {lengths[row]:,} bytes, at most {LONGEST_TEXT:,} can be stored; shorten it"
        elif (data[offsets[0] : offsets[-1]] == 0).any():
            row = int(np.flatnonzero(pc.match_substring(column, "\0").to_numpy(zero_copy_only=False))[0])
            fault = f"{name} has a NUL byte; remove it"
        else:
            return
        source, data_row = self.place(first_row + row)
        raise InputError(f"{source.path}, data row {data_row}: {fault}")

    def _repertoires(self, batch: pa.RecordBatch) -> NDArray[np.int32]:
        """Each row's place in `self._repertoire`; 0 for the rows of one table."""
        if not self._together:
            return np.zeros(batch.num_rows, dtype=np.int32)
        encoded = pc.dictionary_encode(batch.column(REPERTOIRE))
        codes = [self._repertoire.setdefault(name, len(self._repertoire)) for name in encoded.dictionary.to_pylist()]
        return np.asarray(np.array(codes, dtype=np.int32)[encoded.indices.to_numpy(zero_copy_only=False)])

    def place(self, row: int) -> tuple[Table, int]:
        """The table that a row comes from, and its data row there, from 1."""
        source = self.sources[bisect_right(self.sources, row, key=lambda source: source.first_row) - 1]
        return source, row - source.first_row + 1

    def _calls(self, segment: SegmentType, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], Codes]:
        """Index of each row's segment in `_places`, -1 without one; and why a row has none."""
        if isinstance(self.germline, Model) and self.reading.genes == "any":
            place = self._place(segment, self.germline.alleles(segment))
            return np.full(batch.num_rows, place), np.zeros(batch.num_rows, dtype=np.int32)
        encoded = pc.dictionary_encode(batch.column(f"{segment.lower()}_call"))
        resolved = [self._resolve(segment, call) for call in encoded.dictionary.to_pylist()]
        index_of = np.array([r if isinstance(r, int) else -1 for r, _ in resolved] or [-1], dtype=np.int64)
        index = index_of[encoded.indices.to_numpy(zero_copy_only=False)]
        self._note_substitutions(segment, encoded, resolved)
        return index, _taken([0 if isinstance(r, int) else self._code(r) for r, _ in resolved], encoded)

    def _note_substitutions(
        self, segment: SegmentType, encoded: Any, resolved: list[tuple[int | Exclusion, bool]]
    ) -> None:
        used = list(self._places[segment])
        rows = np.bincount(encoded.indices.to_numpy(zero_copy_only=False), minlength=len(resolved))
        for call, (index, replaced), count in zip(encoded.dictionary.to_pylist(), resolved, rows.tolist(), strict=True):
            if isinstance(index, int) and replaced:
                self.substituted[call, used[index].allele] += count

    def _resolve(self, segment: SegmentType, call: str) -> tuple[int | Exclusion, bool]:
        key = (segment, call)
        if key not in self._resolved:
            found: Segment | Alleles | Exclusion
            if isinstance(self.germline, Model):
                found, replaced = self.germline.resolve(segment, call), self.germline.lacks(segment, call)
            else:
                found = self.reading.calls.resolve(self.germline, segment, call)
                replaced = isinstance(found, Segment) and is_replaced(self.germline, segment, call, found)
            place = found if isinstance(found, Exclusion) else self._place(segment, found)
            self._resolved[key] = place, replaced
        return self._resolved[key]

    def _place(self, segment: SegmentType, found: Segment | Alleles) -> int:
        return self._places[segment].setdefault(found, len(self._places[segment]))

    def _two_loci(self, v: NDArray[np.int64], j: NDArray[np.int64]) -> Codes:
        loci: dict[str, int] = {}
        of_v, of_j = (
            np.array([loci.setdefault(found.locus, len(loci)) for found in self._places[segment]] or [0])
            for segment in SEGMENT_TYPES.values() if segment != "D"
        )  # fmt: skip
        # Where no call has been known yet, of_v and of_j have one place.
        names, codes = list(loci), np.zeros((len(loci) or 1,) * 2, dtype=np.int32)
        different = (of_v[v] != of_j[j]) & (v >= 0) & (j >= 0)
        for a, b in {*zip(of_v[v[different]].tolist(), of_j[j[different]].tolist(), strict=True)}:
            codes[a, b] = self._code(Exclusion.of(ExclusionKind.TWO_LOCI, v_locus=names[a], j_locus=names[b]))
        return np.where(different, codes[of_v[v], of_j[j]], 0)

    def _pack(self, column: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.uint8], list[Unfit]]:
        # A table in memory without rows has columns without a type.
        column = column.cast(pa.large_string())
        several = {} if self.reading.ambiguous else ambiguous_rows(self.reading, column)
        column = with_ends(self.reading, column)
        offsets, data = text.text_buffers(column)
        rows, letters = len(column), self.reading.letters
        longest = self.reading.longest // letters.bases
        words = np.zeros((rows, letters.words_for(longest)), dtype=np.uint64)
        lengths = np.zeros(rows, dtype=np.uint8)
        status, detail = np.zeros(rows, dtype=np.uint8), np.zeros(rows, dtype=np.int64)
        coding = letters.code_of_byte, letters.bits
        text.pack_rows(offsets, data, *coding, self.reading.trim, longest, words, lengths, status, detail)
        lengths *= np.uint8(letters.bases)
        bad = np.flatnonzero(status != text.OK)
        unfit = {int(r): unfit_row(self.reading, int(status[r]), int(detail[r]), column[r].as_py()) for r in bad}
        return words, lengths, [*self._not_productive(column, words, lengths), *_by_reason(unfit | several)]

    def _not_productive(
        self, column: pa.Array, words: NDArray[np.uint64], lengths: NDArray[np.uint8]
    ) -> list[Unfit]:  # fmt: skip
        """The rows that are not productive, or could not be packed."""
        kind = self.reading.productive
        if kind is None or self.reading.ends[0]:
            # What is completed has the ends of a productive junction, and no stop can be packed.
            return []
        name = self.reading.sequence_field
        if name == "junction" and not self.reading.trim:
            # Of whole junctions that are packed, ten times as fast as the text.
            fits = np.empty(len(column), dtype=bool)
            productive_rows_of_thread(words, lengths.astype(np.uint16), fits)
        else:
            fits = productive_rows(column, name).to_numpy(zero_copy_only=False)
        return [(Exclusion.of(kind, field=name), np.flatnonzero(~fits))]

    def finish(self) -> Junctions:
        words, lengths, pair, row, hashes, repertoire_of = self._joined()
        reads = np.concatenate(self.reads) if self.reads else np.empty(0, dtype=np.int64)
        ids = pa.chunked_array(self.ids, pa.large_string()).combine_chunks()
        keep = self._without_repeated_ids(ids, hashes, row, repertoire_of)
        known = bool((reads != UNKNOWN).any())
        if known:
            keep = self._with_counts(keep, reads, ids, row, repertoire_of)
        # np.unique would sort all rows.
        encoded = pa.array(pair[keep]).dictionary_encode()
        used = encoded.dictionary.to_numpy()
        rank = np.argsort(np.argsort(used))
        used, compact = np.sort(used), rank[encoded.indices.to_numpy()]
        order = keep[np.argsort(compact.astype(np.min_scalar_type(len(used))), kind="stable")]
        offsets = np.zeros(len(used) + 1, dtype=np.int64)
        np.cumsum(np.bincount(compact, minlength=len(used)), out=offsets[1:])
        v, j = list(self._places["V"]), list(self._places["J"])
        pairs = [(v[p // _MOST_SETS], j[p % _MOST_SETS]) for p in used]
        return Junctions(
            repertoire=Repertoire(words[order], lengths[order], pairs, offsets, self.reading.letters),
            row=row[order],
            ids=ids,
            id_order=order,
            excluded=self._excluded_rows(),
            substituted=[(call, allele, rows) for (call, allele), rows in self.substituted.items()],
            rows_read=self.rows_read,
            repertoire_ids=list(self._repertoire) if self._together else None,
            repertoire_of=repertoire_of[order],
            anchor_letters=self.reading.anchor_letters,
            reads=reads[order] if known else None,
        )

    def _with_counts(
        self,
        keep: NDArray[np.int64],
        reads: NDArray[np.int64],
        ids: pa.Array,
        row: NDArray[np.int64],
        repertoire_of: NDArray[np.int32],
    ) -> NDArray[np.int64]:
        """Of the places to keep, those of rows with a count; the others are excluded."""
        missing = reads[keep] == UNKNOWN
        out, code = keep[missing], self._code(Exclusion.of(ExclusionKind.MISSING_COUNT))
        self._exclude(row[out], ids.take(pa.array(out)), code, repertoire_of[out])
        return np.asarray(keep[~missing])

    def _joined(self) -> tuple[Any, ...]:
        if not self.batches:
            kinds = (np.uint8, np.int64, np.int64, np.uint64, np.int32)
            return np.zeros((0, 2), np.uint64), *(np.empty(0, kind) for kind in kinds)
        width = max(batch[0].shape[1] for batch in self.batches)
        words = np.zeros((sum(len(batch[1]) for batch in self.batches), width), dtype=np.uint64)
        first = 0
        for batch in self.batches:
            words[first : first + len(batch[1]), : batch[0].shape[1]] = batch[0]
            first += len(batch[1])
        joined = [np.concatenate([batch[k] for batch in self.batches]) for k in range(1, 6)]
        self.batches.clear()
        return words, *joined

    def _without_repeated_ids(
        self, ids: pa.Array, hashes: NDArray[np.uint64], row: NDArray[np.int64], repertoire_of: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Places of the rows to keep; a row with the id of an earlier row of its repertoire is excluded."""
        keep = np.ones(len(hashes), dtype=bool)
        # Most tables repeat no id, and values are sorted faster than their places.
        ascending = np.sort(hashes)
        repeated = ascending[1:][ascending[1:] == ascending[:-1]]
        first_of: dict[tuple[str, int], int] = {}
        for place in np.flatnonzero(np.isin(hashes, repeated)).tolist() if len(repeated) else ():
            sequence_id, repertoire, this_row = ids[place].as_py(), int(repertoire_of[place]), int(row[place])
            first_row = first_of.setdefault((sequence_id, repertoire), this_row)
            if first_row != this_row:
                keep[place] = False
                code = self._code(self._repeated(first_row, this_row))
                self._exclude(row[place, None], ids.slice(place, 1), code, repertoire_of[place, None])
        return np.flatnonzero(keep)

    def _repeated(self, first_row: int, row: int) -> Exclusion:
        source, data_row = self.place(first_row)
        elsewhere = f" of {source.path.name}" if source is not self.place(row)[0] else ""
        return Exclusion.of(ExclusionKind.REPEATED_ID, data_row=data_row, table=elsewhere)

    def _excluded_rows(self) -> ExcludedRows:
        if not self.excluded:
            return ExcludedRows.of(np.empty(0, dtype=np.int64), [], [])
        rows, codes, repertoires = (np.concatenate([part[k] for part in self.excluded]) for k in (0, 2, 3))
        order = np.argsort(rows, kind="stable")
        ids = pa.chunked_array([part[1] for part in self.excluded]).take(pa.array(order)).to_pylist()
        # Reasons in the order in which rows have them.
        used, first, place = np.unique(codes[order], return_index=True, return_inverse=True)
        in_order, exclusions = np.argsort(first), list(self._exclusions)
        names = np.array(list(self._repertoire), dtype=object)
        return ExcludedRows(
            rows[order], ids, np.argsort(in_order)[place].astype(np.int32),
            [exclusions[code - 1] for code in used[in_order]],
            names[repertoires[order]].tolist() if self._together else [],
        )  # fmt: skip


def _by_reason(rows: dict[int, Exclusion]) -> list[Unfit]:
    """Rows, by their reason."""
    places: dict[Exclusion, list[int]] = {}
    for row, exclusion in rows.items():
        places.setdefault(exclusion, []).append(row)
    return [(exclusion, np.array(own)) for exclusion, own in places.items()]


def _taken(codes: list[int], encoded: Any) -> Codes:
    """The code of each row, by that of each text of a dictionary."""
    return np.asarray(np.array(codes or [0], dtype=np.int32)[encoded.indices.to_numpy(zero_copy_only=False)])


def _narrow(words: NDArray[np.uint64], lengths: NDArray[np.uint8], letters: Letters) -> NDArray[np.uint64]:
    """Two words a row (the paper's 16 bytes) if every sequence fits into them, else four, else all."""
    width = next((width for width in (2, 4) if lengths.max(initial=0) <= width * letters.per_word), words.shape[1])
    return words[:, :width].copy() if width < words.shape[1] else words
