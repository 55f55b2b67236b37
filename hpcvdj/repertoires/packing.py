"""The packing of batches: sequences become words, columns of names become numbers.  Several threads do this.

Amino acids get the ends that they lack.  A row whose sequence cannot be packed has a reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels import text
from hpcvdj.kernels.generation.letters import productive_part
from hpcvdj.recombination.alphabet import Letters
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.repertoire import ANCHOR_LETTERS
from hpcvdj.recombination.symbols import AMBIGUOUS, STOP
from hpcvdj.repertoires.batches import distinct_texts, without_missing
from hpcvdj.repertoires.formats.format import REASON, ROW_ID
from hpcvdj.repertoires.ids import SCOPE_SHIFT, hashes_of_ids, id_scopes
from hpcvdj.repertoires.productive import COLUMN, marked_rows, productive_rows
from hpcvdj.repertoires.read_counts import READS, read_counts
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import REPERTOIRE, Table, source_of

LONGEST_TEXT = 4096
"""Bytes of the longest id or call.  Results store text in columns as wide as their longest value."""

SHIFTED = "_~"
"""Symbols of MiXCR, vdjtools and immunarch for a shift of the frame in amino acids."""

AMINO_ACIDS = frozenset("EFILPQ")
"""Letters of amino acids that are no letters of nucleotides, not even of ambiguous ones."""

Unfit = tuple[int | NDArray[np.int64], Exclusion]
"""A row, or several, and why they take no part."""


@dataclass(frozen=True)
class Texts:
    """The distinct texts of a column, and the index of each row's text, int32 [rows]."""

    texts: list[str]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, batch: pa.RecordBatch, name: str) -> "Texts":
        """The texts of a column; one empty text if the batch lacks it."""
        if name not in batch.schema.names:
            return cls([""], np.zeros(batch.num_rows, dtype=np.int32))
        return cls(*distinct_texts(batch.column(name)))

    def numbers(self, of_text: Sequence[int], dtype: Any) -> NDArray[Any]:
        """The number of each row's text, `dtype` [rows]."""
        numbers = np.array(of_text, dtype=dtype)
        return np.full(len(self.rows), numbers[0]) if len(numbers) == 1 else numbers[self.rows]


@dataclass(frozen=True)
class Packed:
    """A batch whose sequences are packed.

    rows        int64 [rows]: their numbers
    ids         pyarrow large_string Array
    hashes      uint64 [rows]: of the ids
    calls       of V and of J; one empty text if any gene will do
    repertoire  names of repertoires; one empty text for one table
    reasons     why the table's format cannot give a junction to a row, or the empty text
    scope       the scope of the ids, as a part of their hash
    reads       int64 [rows]: read counts, `UNKNOWN` for a row without one; None if they are not read
    words       uint64 [rows, W]: the packed sequences
    lengths     uint8 [rows]: their lengths in nucleotides
    unfit       rows of the batch without a valid count, that could not be packed, or that are not productive; the last
                reason of a row counts
    """

    rows: NDArray[np.int64]
    ids: pa.Array
    hashes: NDArray[np.uint64]
    calls: tuple[Texts, Texts]
    repertoire: Texts
    reasons: Texts
    scope: np.uint64
    reads: NDArray[np.int64] | None
    words: NDArray[np.uint64]
    lengths: NDArray[np.uint8]
    unfit: list[Unfit]


@dataclass(frozen=True)
class Packing:
    """How batches are packed.

    sources      the tables that the rows come from
    of_any_gene  whether calls are not read
    together     whether rows have the names of their repertoires
    """

    reading: Reading
    sources: Sequence[Table]
    of_any_gene: bool
    together: bool

    def packed(self, numbered: tuple[int, pa.RecordBatch]) -> Packed:
        """Pack a batch, which comes with the number of its first row.  InputError for text that results cannot hold."""
        first_row, batch = numbered
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name != self.reading.sequence_field:
                self._require_storable(name, column, first_row)
        rows = first_row + np.arange(batch.num_rows)
        ids = batch.column("sequence_id") if "sequence_id" in batch.schema.names else pa.array(rows.astype(str))
        ids = without_missing(ids.cast(pa.large_string()))
        v, j = (Texts.of(batch, "" if self.of_any_gene else call) for call in ("v_call", "j_call"))
        repertoire = Texts.of(batch, REPERTOIRE if self.together else "")
        scope = np.uint64(0)
        if self.together and ROW_ID in batch.schema.names:
            # All rows of a batch are of one table.
            scope = id_scopes(self.sources, rows[:1])[0] << SCOPE_SHIFT
        words, lengths, unfit = self._pack(batch.column(self.reading.sequence_field))
        has_reads = READS in batch.schema.names
        reads, no_count = read_counts(batch.column(READS)) if has_reads else (None, {})
        if self.reading.leaves_out_marked and COLUMN in batch.schema.names:
            unfit.insert(0, (marked_rows(batch.column(COLUMN)), Exclusion.of(ExclusionKind.MARKED_UNPRODUCTIVE)))
        return Packed(
            rows, ids, hashes_of_ids(ids, rows), (v, j), repertoire, Texts.of(batch, REASON), scope, reads, words,
            lengths, [*no_count.items(), *unfit],
        )  # fmt: skip

    def _require_storable(self, name: str, column: pa.Array, first_row: int) -> None:
        """Raise InputError for text that results cannot hold."""
        if pa.types.is_dictionary(column.type):
            if _unstorable(column.dictionary) is None:
                return
            column = column.dictionary_decode()
        if (found := _unstorable(column)) is not None:
            row, fault = found
            source, data_row = source_of(self.sources, first_row + row)
            raise InputError(f"{source.path}, data row {data_row}: {name} {fault}")

    def _pack(self, column: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.uint8], list[Unfit]]:
        # The columns of a table in memory without rows have no type.
        column = without_missing(column.cast(pa.large_string()))
        several = {} if self.reading.ambiguous else self._ambiguous_rows(column)
        column = self._with_ends(column)
        offsets, data = text.text_buffers(column)
        rows, letters = len(column), self.reading.letters
        longest = self.reading.longest // letters.bases
        words = np.zeros((rows, letters.words_for(longest)), dtype=np.uint64)
        lengths = np.zeros(rows, dtype=np.uint8)
        status, detail = np.zeros(rows, dtype=np.uint8), np.zeros(rows, dtype=np.int64)
        coding = letters.code_of_byte, letters.bits
        text.pack_rows(offsets, data, *coding, self.reading.trim, longest, words, lengths, status, detail)
        words = narrow(words, lengths, letters)
        lengths *= np.uint8(letters.bases)
        bad = np.flatnonzero(status != text.OK)
        unfit = {int(r): self._unfit(int(status[r]), int(detail[r]), column[r].as_py()) for r in bad}
        return words, lengths, [*self._not_productive(column, words, lengths), *(unfit | several).items()]

    def _unfit(self, status: int, detail: int, sequence: str) -> Exclusion:
        """Why a row could not be packed.

        status, detail  of the row, as of `hpcvdj.kernels.text.pack_rows`
        sequence        its text
        """
        reading, field = self.reading, self.reading.sequence_field
        if status == text.MISSING:
            return Exclusion.of(ExclusionKind.NO_SEQUENCE, field=field)
        if status == text.TOO_SHORT:
            return Exclusion.of(ExclusionKind.TOO_SHORT, length=detail + 2 * ANCHOR_LETTERS[field])
        if reading.alphabet is not None:
            return self._unfit_amino_acids(status, detail, sequence)
        if status == text.TOO_LONG:
            kind = ExclusionKind.LONG_JUNCTION if reading.anchors else ExclusionKind.TOO_LONG
            return Exclusion.of(kind, length=detail, longest=reading.longest)
        kind = ExclusionKind.AMINO_ACIDS if AMINO_ACIDS.intersection(sequence.upper()) else ExclusionKind.OTHER_LETTER
        return Exclusion.of(kind, field=field, letter=sequence[detail : detail + 1])

    def _unfit_amino_acids(self, status: int, detail: int, sequence: str) -> Exclusion:
        field = self.reading.sequence_field
        if status == text.TOO_LONG:
            longest = self.reading.longest // self.reading.letters.bases
            return Exclusion.of(ExclusionKind.LONG_AMINO_ACIDS, field=field, length=detail, longest=longest)
        if sequence[detail] == STOP:
            return Exclusion.of(ExclusionKind.STOP_CODON, field=field)
        kind = ExclusionKind.OUT_OF_FRAME if sequence[detail] in SHIFTED else ExclusionKind.OTHER_SYMBOL
        return Exclusion.of(kind, field=field, letter=sequence[detail])

    def _ambiguous_rows(self, column: pa.Array) -> dict[int, Exclusion]:
        """Rows with a symbol that stands for several amino acids, and why they take no part."""
        if self.reading.alphabet is None:
            return {}
        pattern = f"[{''.join(AMBIGUOUS)}]"
        position = pc.find_substring_regex(column, pattern, ignore_case=True).to_numpy(zero_copy_only=False)
        field, kind = self.reading.sequence_field, ExclusionKind.SEVERAL_RESIDUES
        return {
            row: Exclusion.of(kind, field=field, letter=chr(column[row].as_py().encode()[position[row]]))
            for row in np.flatnonzero(position >= 0).tolist()
        }

    def _with_ends(self, column: pa.Array) -> pa.Array:
        """The sequences with the ends that the field lacks; missing sequences stay missing."""
        if not self.reading.ends[0]:
            return column
        first, last, between = (pa.scalar(text, column.type) for text in (*self.reading.ends, ""))
        completed = pc.binary_join_element_wise(first, column, last, between)
        return pc.if_else(pc.equal(column, ""), column, completed)

    def _not_productive(
        self, column: pa.Array, words: NDArray[np.uint64], lengths: NDArray[np.uint8]
    ) -> list[Unfit]:  # fmt: skip
        """The rows that are not productive, or could not be packed."""
        kind = self.reading.productive
        if kind is None or self.reading.ends[0]:
            # CDR3s get the ends of a productive junction, and a stop cannot be packed.
            return []
        name = self.reading.sequence_field
        if name == "junction" and not self.reading.trim:
            # This is ten times as fast as reading the text, but needs packed junctions with their anchors.
            fits = np.empty(len(column), dtype=bool)
            # On this thread alone, as tables are read in several.
            productive_part((0, len(fits)), words, lengths.astype(np.uint16), fits)
        else:
            fits = productive_rows(column, name).to_numpy(zero_copy_only=False)
        return [(np.flatnonzero(~fits), Exclusion.of(kind, field=name))]


def _unstorable(texts: pa.Array) -> tuple[int, str] | None:
    """A row whose text results cannot hold, and why; None if there is none."""
    offsets, data = text.text_buffers(texts)
    lengths = np.diff(offsets)
    if lengths.max(initial=0) > LONGEST_TEXT:
        row = int(lengths.argmax())
        return row, f"of {lengths[row]:,} bytes, at most {LONGEST_TEXT:,} can be stored; shorten it"
    if (data[offsets[0] : offsets[-1]] == 0).any():
        row = int(np.flatnonzero(pc.match_substring(texts, "\0").to_numpy(zero_copy_only=False))[0])
        return row, "has a NUL byte; remove it"
    return None


def narrow(words: NDArray[np.uint64], lengths: NDArray[np.uint8], letters: Letters) -> NDArray[np.uint64]:
    """Two words a row (the paper's 16 bytes) if every sequence fits into them, else four, else all."""
    width = next((width for width in (2, 4) if lengths.max(initial=0) <= width * letters.per_word), words.shape[1])
    return words[:, :width].copy() if width < words.shape[1] else words
