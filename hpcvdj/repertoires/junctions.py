"""Reading junctions: each row is packed, or excluded with its reason.  Then rows are grouped by V–J pair.

AIRR's `junction` has the codons of Cys 104 and Phe/Trp 118 around the CDR3, `junction_aa` their amino acids.  Only this
module removes them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import get_num_threads
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.kernels import text
from hpcvdj.kernels.neighbours.blocks import fill
from hpcvdj.kernels.threads import TAKEN_AT_ONCE, on_threads, parts_of, taken
from hpcvdj.recombination.calls import is_replaced
from hpcvdj.recombination.exclusions import ExcludedRows, Exclusion, ExclusionKind
from hpcvdj.recombination.germline import Germline, Segment, SegmentType
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.recombination.symbols import ANY_RESIDUE, PRODUCTIVE_END
from hpcvdj.repertoires.genes import stacked, unpacked
from hpcvdj.repertoires.ids import SCATTER, id_scopes
from hpcvdj.repertoires.packing import Packed, Packing, Texts, narrow
from hpcvdj.repertoires.read_counts import UNKNOWN
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import Table, source_of
from hpcvdj.storage.ahead import in_threads

Reference = Germline | Model
"""What calls refer to: the segments of a germline table, or the alleles of a recombination model."""

_MOST_SETS = 1 << 31
"""A V–J pair is one number: the index of V x _MOST_SETS + the index of J."""

FirstRows = Mapping[tuple[str, str, int], int]
"""The first row with a repeated id, by the id, its repertoire (empty unless tables are together) and its scope."""


@dataclass
class Junctions:
    """Junctions of a table, or of tables that are counted together.

    repertoire     their sequences, grouped by V–J pair
    row            int64 [sequences]: data row of the input, from 0
    ids            pyarrow large_string Array: ids of the sequences, and of rows excluded by comparison with other rows
    id_order       int64 [sequences]: index of each sequence's id in `ids`
    excluded       the other rows
    substituted    (call, allele used for it, rows) for calls that do not name one listed allele
    rows_read      data rows of the input
    repertoire_ids the repertoires of tables that are counted together; None for one table
    repertoire_of  int32 [sequences]: index of each sequence's repertoire in `repertoire_ids`
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
        """The ids of sequences as fixed-width UTF-8 bytes [rows], as wide as the longest of all ids."""
        offsets, data = text.text_buffers(self.ids)
        order, width = self.id_order[rows], max(1, int(np.diff(offsets).max(initial=0)))
        out = np.zeros((len(order), width), dtype=np.uint8)
        text.fixed_width(offsets, data, order, out)
        return out.view(f"S{width}").reshape(-1)

    def cdr3_bytes(self, rows: slice) -> NDArray[np.bytes_]:
        """The letters of CDR3s as fixed-width bytes [rows], as wide as the longest of all sequences."""
        out, lengths = self._letters(rows)
        width = out.shape[1]
        if self.anchor_letters:
            out[np.arange(width) >= lengths[:, np.newaxis] - self.anchor_letters] = 0
            out = np.pad(out[:, self.anchor_letters :], ((0, 0), (0, self.anchor_letters)))
        return out.view(f"S{width}").reshape(-1)

    def anchor_bytes(self, rows: slice) -> NDArray[np.bytes_]:
        """The first anchor and the last anchor of junctions, as bytes [rows] of twice `anchor_letters`.

        A junction that is shorter has all its letters here.
        """
        out, lengths = self._letters(rows)
        first_of_last = np.maximum(lengths - self.anchor_letters, self.anchor_letters)
        last = np.take_along_axis(out, first_of_last[:, np.newaxis] + np.arange(self.anchor_letters), axis=1)
        return np.hstack([out[:, : self.anchor_letters], last]).view(f"S{2 * self.anchor_letters}").reshape(-1)

    def _letters(self, rows: slice) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The letters of sequences, uint8 [rows, the longest of all], and their lengths, int64 [rows].

        The unknown end of a CDR3 is X, even if it was read as one of a productive junction.
        """
        longest = self.repertoire.longest // self.repertoire.letters.bases
        out, lengths = unpacked(self.repertoire, rows, max(1, 2 * self.anchor_letters, longest))
        out[out == ord(PRODUCTIVE_END)] = ord(ANY_RESIDUE)
        return out, lengths


def read_junctions(
    batches: Iterable[pa.RecordBatch],
    germline: Reference,
    reading: Reading,
    sources: Sequence[Table],
    first_row: int = 0,
    repertoires: Iterable[str] | None = None,
    first_rows: FirstRows = MappingProxyType({}),
) -> Junctions:
    """Read batches with the columns (sequence_id), v_call, j_call and the sequence field.

    sources      the tables that the rows come from
    first_row    the number of the first row
    repertoires  None for one table.  If tables are counted together, their repertoires, as far as these are known
                 beforehand; batches then have the column repertoire_id
    first_rows   of ids that also other batches have

    InputError if a row cannot be counted and `reading` is strict.
    """
    builder = _Builder(germline, reading, sources, repertoires, first_rows)
    resolved = map(builder.resolved, in_threads(builder.packing.packed, _numbered(batches, first_row)))
    for part in in_threads(lambda part: part(), resolved):
        builder.add(part)
        if reading.strict and builder.excluded:
            break
    junctions = builder.finish()
    if reading.strict and len(junctions.excluded):
        excluded = junctions.excluded
        source, data_row = source_of(sources, int(excluded.row[0]))
        raise InputError(
            f"{source.path}, data row {data_row} ({excluded.sequence_id[0]}): {excluded.exclusion(0)}; correct the "
            f"row, or leave {option('strict')} out to exclude and list such rows"
        )
    return junctions


def repeated_id(sources: Sequence[Table], first_row: int, row: int) -> Exclusion:
    """Why a row takes no part whose id `first_row` has."""
    (source, data_row), (other, _) = source_of(sources, first_row), source_of(sources, row)
    table = f" of {source.path.name}" if source is not other else ""
    return Exclusion.of(ExclusionKind.REPEATED_ID, data_row=data_row, table=table)


Codes = NDArray[np.int32]
"""Why each row takes no part, int32 [rows]: a code of `_ExclusionCollector`, or 0 if the row takes part."""


class _ExclusionCollector:
    """Collects excluded rows: their numbers, ids, reasons and repertoires."""

    def __init__(self) -> None:
        self._codes: dict[Exclusion, int] = {}
        self._parts: list[tuple[NDArray[np.int64], pa.Array, Codes, NDArray[np.int32]]] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def code(self, exclusion: Exclusion) -> int:
        """The code of an exclusion, from 1."""
        return self._codes.setdefault(exclusion, 1 + len(self._codes))

    def add(self, rows: NDArray[np.int64], ids: pa.Array, codes: Codes | int, repertoires: NDArray[Any]) -> None:
        """Exclude rows.

        codes        one for each row, or one for all
        repertoires  the index of each row's repertoire
        """
        self._parts.append((rows, ids, np.full(len(rows), codes, dtype=np.int32), repertoires))

    def excluded_rows(self, repertoire_ids: list[str] | None) -> ExcludedRows:
        """All excluded rows, in row order, with their `repertoire_ids`; None if tables are not counted together."""
        if not self._parts:
            return ExcludedRows.of(np.empty(0, dtype=np.int64), [], [])
        rows, codes, repertoires = (np.concatenate([part[k] for part in self._parts]) for k in (0, 2, 3))
        order = np.argsort(rows, kind="stable")
        ids = pa.chunked_array([part[1] for part in self._parts]).take(pa.array(order)).to_pylist()
        # Reasons are in the order in which rows have them.
        encoded, exclusions = pa.array(codes[order]).dictionary_encode(), list(self._codes)
        return ExcludedRows(
            row=rows[order],
            sequence_id=ids,
            code=encoded.indices.to_numpy(),
            exclusions=[exclusions[code - 1] for code in encoded.dictionary.to_pylist()],
            repertoire_id=[repertoire_ids[index] for index in repertoires[order].tolist()] if repertoire_ids else [],
        )


def _numbered(batches: Iterable[pa.RecordBatch], first_row: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        yield first_row, batch
        first_row += batch.num_rows


@dataclass(frozen=True)
class _Part:
    """The rows of a batch that take part.

    columns   words, lengths, V–J pairs, numbers of the rows, hashes of their ids, and indices of their repertoires
    excluded  of the others: rows, ids, codes and repertoires, as of `_ExclusionCollector.add`; None if there are none
    """

    rows_read: int
    columns: tuple[NDArray[Any], ...]
    ids: pa.Array
    reads: NDArray[np.int64] | None
    excluded: tuple[Any, ...] | None


class _Builder:
    """Collects packed batches.  It keeps the packed sequence, the pair, the number and the id of each row."""

    def __init__(
        self, germline: Reference, reading: Reading, sources: Sequence[Table], repertoires: Iterable[str] | None,
        first_rows: FirstRows,
    ) -> None:  # fmt: skip
        self.germline, self.reading, self.sources, self._first_rows = germline, reading, sources, first_rows
        # A germline table gives the order of V-J pairs.  The sets of a model's alleles are in the order of the rows.
        listed = self.germline.of if isinstance(self.germline, Germline) else lambda segment: ()
        self._indices: dict[SegmentType, dict[Any, int]] = {
            segment: {entry: index for index, entry in enumerate(listed(segment))} for segment in ("V", "J")
        }
        # The index of a call's segment, or why it has none; and the allele that replaces the call, or nothing.
        self._resolved: dict[tuple[SegmentType, str], tuple[int | Exclusion, str]] = {}
        self.parts: list[_Part] = []
        self.excluded = _ExclusionCollector()
        any_gene = isinstance(germline, Model) and reading.genes == "any"
        self.packing = Packing(reading, sources, any_gene, repertoires is not None)
        self._repertoire = {name: k for k, name in enumerate(dict.fromkeys(repertoires or ()))}
        self.rows_read = 0
        self.substituted: Counter[tuple[str, str]] = Counter()

    def resolved(self, packed: Packed) -> Callable[[], _Part]:
        """Find out what the texts of a batch stand for, and return what is left to do, which changes nothing here.

        The order of the batches decides the order of what is new.  Several threads may do the rest at the same time.
        """
        calls = [self._calls(segment, texts) for segment, texts in zip(self._indices, packed.calls, strict=True)]
        index_of, (of_v, of_j, two_loci), letters = self._repertoire, self._two_loci(), self.reading.letters
        repertoires = [index_of.setdefault(name, len(index_of)) for name in packed.repertoire.texts]
        reasons = [self.excluded.code(Exclusion.from_text(text)) if text else 0 for text in packed.reasons.texts]
        unfit = [(rows, self.excluded.code(exclusion)) for rows, exclusion in packed.unfit]

        def part() -> _Part:
            """The rows of the batch that take part, and those that do not."""
            repertoire = packed.repertoire.numbers(repertoires, np.int32)
            v, j = (texts.numbers(indices, np.int64) for texts, (indices, _) in zip(packed.calls, calls, strict=True))
            no_v, no_j = (texts.numbers(codes, np.int32) for texts, (_, codes) in zip(packed.calls, calls, strict=True))
            # The reason of a row's sequence takes precedence over that of its calls.
            not_fit = np.zeros(len(v), dtype=np.int32)
            for rows, code in unfit:
                not_fit[rows] = code
            why = np.zeros(len(v), dtype=np.int32)
            # A row without a segment has a reason that takes precedence.
            of_loci = [two_loci[of_v[v], of_j[j]]] if len(two_loci) > 1 else []
            for codes in (*of_loci, no_j, no_v, not_fit, packed.reasons.numbers(reasons, np.int32)):
                if codes.any():
                    why = np.where(codes > 0, codes, why)
            # Most batches have no excluded row: a slice copies nothing.
            keep: Any = slice(None)
            ids, words, excluded = packed.ids, packed.words, None
            if why.any():
                out, keep = np.flatnonzero(why), np.flatnonzero(why == 0)
                excluded = packed.rows[out], ids.take(pa.array(out)), why[out], repertoire[out]
                ids, words = ids.take(pa.array(keep)), words.take(keep, axis=0)
            lengths, repertoire = packed.lengths[keep], repertoire[keep]
            hashes = packed.hashes[keep] ^ (repertoire.astype(np.uint64) | packed.scope) * SCATTER
            words = narrow(words, lengths // letters.bases, letters)
            columns = words, lengths, v[keep] * _MOST_SETS + j[keep], packed.rows[keep], hashes, repertoire
            return _Part(len(v), columns, ids, None if packed.reads is None else packed.reads[keep], excluded)

        return part

    def add(self, part: _Part) -> None:
        self.rows_read += part.rows_read
        if part.excluded is not None:
            self.excluded.add(*part.excluded)
        self.parts.append(part)

    def _calls(self, segment: SegmentType, calls: Texts) -> tuple[list[int], list[int]]:
        """The index of the segment of each distinct call in `_indices`, -1 without one; and why a call has none."""
        resolved = [self._resolve(segment, call) for call in calls.texts]
        if any(allele for _, allele in resolved):
            counts = np.bincount(calls.rows, minlength=len(resolved)).tolist()
            for call, (_, allele), count in zip(calls.texts, resolved, counts, strict=True):
                if allele:
                    self.substituted[call, allele] += count
        indices = [-1 if isinstance(r, Exclusion) else r for r, _ in resolved]
        return indices, [self.excluded.code(r) if isinstance(r, Exclusion) else 0 for r, _ in resolved]

    def _resolve(self, segment: SegmentType, call: str) -> tuple[int | Exclusion, str]:
        key = (segment, call)
        if key not in self._resolved:
            entry: Segment | Alleles | Exclusion
            if isinstance(self.germline, Model) and self.packing.of_any_gene:
                entry, replaced = self.germline.alleles(segment), False
            elif isinstance(self.germline, Model):
                entry, replaced = self.germline.resolve(segment, call), self.germline.lacks(segment, call)
            else:
                entry = self.reading.calls.resolve(self.germline, segment, call)
                replaced = isinstance(entry, Segment) and is_replaced(self.germline, segment, call, entry)
            if isinstance(entry, Exclusion):
                self._resolved[key] = entry, ""
            else:
                indices = self._indices[segment]
                self._resolved[key] = indices.setdefault(entry, len(indices)), entry.allele if replaced else ""
        return self._resolved[key]

    def _two_loci(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """The locus of each index of V and of J, and the codes of rows of two loci, int32 [locus of V, locus of J]."""
        loci: dict[str, int] = {}
        # Index -1 needs an entry, even if no call has been resolved yet.
        of_v, of_j = (
            np.array([loci.setdefault(entry.locus, len(loci)) for entry in entries] or [0])
            for entries in self._indices.values()
        )
        codes = np.zeros((len(loci),) * 2, dtype=np.int32)
        for v, j in permutations(loci, 2):
            exclusion = Exclusion.of(ExclusionKind.TWO_LOCI, v_locus=v, j_locus=j)
            codes[loci[v], loci[j]] = self.excluded.code(exclusion)
        return of_v, of_j, codes

    def finish(self) -> Junctions:
        of_parts = [part.reads for part in self.parts if part.reads is not None]
        reads = np.concatenate(of_parts) if of_parts else np.empty(0, dtype=np.int64)
        ids = pa.chunked_array([part.ids for part in self.parts], pa.large_string()).combine_chunks()
        words, lengths, pair, row, hashes, repertoire_of = self._joined()
        keep = self._without_repeated_ids(ids, hashes, row, repertoire_of)
        has_reads = bool((reads != UNKNOWN).any())
        if has_reads:
            missing = reads[keep] == UNKNOWN
            out, keep = keep[missing], keep[~missing]
            code = self.excluded.code(Exclusion.of(ExclusionKind.MISSING_COUNT))
            self.excluded.add(row[out], ids.take(pa.array(out)), code, repertoire_of[out])
        used, compact = _encoded(taken(pair, keep))
        offsets, order = np.zeros(len(used) + 1, dtype=np.int64), np.empty(len(keep), dtype=np.int64)
        fill(compact, offsets, order)
        order = taken(keep, order)
        v, j = list(self._indices["V"]), list(self._indices["J"])
        repertoire_ids = list(self._repertoire) if self.packing.together else None
        pairs = [(v[p // _MOST_SETS], j[p % _MOST_SETS]) for p in used]
        return Junctions(
            repertoire=Repertoire(taken(words, order), taken(lengths, order), pairs, offsets, self.reading.letters),
            row=taken(row, order),
            ids=ids,
            id_order=order,
            excluded=self.excluded.excluded_rows(repertoire_ids),
            substituted=[(call, allele, rows) for (call, allele), rows in self.substituted.items()],
            rows_read=self.rows_read,
            repertoire_ids=repertoire_ids,
            repertoire_of=taken(repertoire_of, order),
            anchor_letters=self.reading.anchor_letters,
            reads=taken(reads, order) if has_reads else None,
        )

    def _joined(self) -> tuple[Any, ...]:
        """The columns of all parts; the parts are no longer kept."""
        if not self.parts:
            kinds = (np.uint8, np.int64, np.int64, np.uint64, np.int32)
            return np.zeros((0, 2), np.uint64), *(np.empty(0, kind) for kind in kinds)
        words, *columns = zip(*(part.columns for part in self.parts), strict=True)
        self.parts.clear()
        joined = dict[int, NDArray[Any]]()
        on_threads(lambda k: joined.update({k: np.concatenate(columns[k])}), range(len(columns)))
        return stacked(words), *(joined[k] for k in range(len(columns)))

    def _without_repeated_ids(
        self, ids: pa.Array, hashes: NDArray[np.uint64], row: NDArray[np.int64], repertoire_of: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """The indices of the rows to keep: not those with the id of an earlier row of their repertoire and scope."""
        keep = np.ones(len(hashes), dtype=bool)
        repeated = _repeated(hashes)
        first_of, names = dict(self._first_rows), list(self._repertoire) if self.packing.together else [""]
        among = np.isin(hashes, repeated) if len(repeated) else ~keep
        if first_of:
            elsewhere = pa.array(sorted({sequence_id for sequence_id, *_ in first_of}), ids.type)
            among |= pc.is_in(ids, value_set=elsewhere).to_numpy(zero_copy_only=False)
        candidates = np.flatnonzero(among)
        scopes = id_scopes(self.sources, row[candidates]) if len(candidates) else candidates
        for index, scope in zip(candidates.tolist(), scopes.tolist(), strict=True):
            this_row = int(row[index])
            first_row = first_of.setdefault((ids[index].as_py(), names[repertoire_of[index]], scope), this_row)
            if first_row != this_row:
                keep[index] = False
                code = self.excluded.code(repeated_id(self.sources, first_row, this_row))
                self.excluded.add(row[index, None], ids.slice(index, 1), code, repertoire_of[index, None])
        return np.flatnonzero(keep)


def _encoded(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct ones of numbers, ascending, and the place of each number among them."""
    # np.unique would sort all numbers.
    parts, of_parts = parts_of(len(numbers), TAKEN_AT_ONCE), dict[int, pa.DictionaryArray]()
    on_threads(lambda part: of_parts.update({part[0]: pa.array(numbers[slice(*part)]).dictionary_encode()}), parts)
    distinct = np.unique(np.concatenate([numbers[:0], *(part.dictionary.to_numpy() for part in of_parts.values())]))
    places = np.empty(len(numbers), dtype=np.int64)

    def place(part: tuple[int, int]) -> None:
        of_part = of_parts[part[0]]
        places[slice(*part)] = np.searchsorted(distinct, of_part.dictionary.to_numpy())[of_part.indices.to_numpy()]

    on_threads(place, parts)
    return distinct, places


def _repeated(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The hashes that several rows have."""
    # Most tables repeat no id, and sorting values is faster than sorting their indices.
    ends, repeated = np.linspace(0, 2.0**64, get_num_threads() + 1)[1:-1].astype(np.uint64), list[NDArray[np.uint64]]()

    def sort(part: int) -> None:
        among = np.ones(len(hashes), dtype=bool) if part == 0 else hashes >= ends[part - 1]
        if part < len(ends):
            among &= hashes < ends[part]
        of_part = np.sort(hashes[among])
        repeated.append(of_part[1:][of_part[1:] == of_part[:-1]])

    on_threads(sort, range(len(ends) + 1))
    return np.concatenate(repeated)
