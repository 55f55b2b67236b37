"""Slices of the input with all columns of its tables, which are read once: for what is packed, and what is written."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from hpcvdj.repertoires.inputs import Inputs, columns_of_all, with_repertoire
from hpcvdj.repertoires.tables import Table
from hpcvdj.storage.inputs import packing, unpacked

_SAMPLED_BYTES = 1 << 20

_EXPANSION = 5
"""A packed text is about so many times as large once it is unpacked."""

Batches = Iterable[tuple[int, Table, pa.RecordBatch]]
"""Batches of rows: the number of the first row, the table, the rows."""


@dataclass(frozen=True)
class InputSlice:
    """Rows of the input that one rank reads, computes and writes: slice `index`, from row `first_row` on."""

    index: int
    first_row: int
    batches: list[tuple[Table, pa.RecordBatch]]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(batch.num_rows for _, batch in self.batches)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that they are from."""
        return tuple({table.path: table for table, _ in self.batches}.values())


class SlicedInput:
    """The input in slices of `size` rows.

    Tables that are taken together must be surveyed; one table may be a text whose rows nobody has counted.

    rows  of the input; None of such a text until `slices` has read it to its end
    """

    def __init__(self, inputs: Inputs, size: int) -> None:
        self.size = size
        self.rows = inputs.rows if inputs.together else inputs.tables[0].open().known_rows
        if not inputs.together and self.rows is not None:
            inputs = replace(inputs, tables=(replace(inputs.tables[0], rows=self.rows),))
        self.inputs = inputs

    @cached_property
    def columns(self) -> list[str]:
        """The columns that are written, besides those of values."""
        tables = self.inputs.tables
        return columns_of_all(tables) if self.inputs.together else tables[0].open().columns

    def slices(self, wanted: Callable[[int], bool], between: Callable[[], None]) -> Iterator[InputSlice]:
        """The slices whose index is `wanted`, in their order; `between` is called after each batch.

        A file that can only be read from its beginning is read once.
        """
        held: list[tuple[Table, pa.RecordBatch]] = []
        first = 0
        read = self._count(wanted, between) if self.rows is None else self._read(self.rows, wanted)
        for row, table, batch in read:
            if held and row // self.size != first // self.size:
                yield InputSlice(first // self.size, first, held)
                held = []
            first = first if held else row
            held.append((table, batch))
            between()
        if held:
            yield InputSlice(first // self.size, first, held)

    def _read(self, rows: int, wanted: Callable[[int], bool]) -> Batches:
        """The batches of wanted slices; none belongs to two slices."""
        slices = [range(first, min(rows, first + self.size)) for first in range(0, rows, self.size)]
        slices = [part for index, part in enumerate(slices) if wanted(index)]
        for table in self.inputs.tables:
            first, last = table.first_row, table.first_row + table.rows
            parts = [range(max(part.start, first), min(part.stop, last)) for part in slices]
            within = [range(part.start - first, part.stop - first) for part in parts if part]
            if within:
                ranges = table.open().ranges(self._columns_read(table), within)
                for part, batches in zip(within, ranges, strict=True):
                    row = first + part.start
                    for batch in batches:
                        yield row, table, batch
                        row += batch.num_rows

    def _count(self, wanted: Callable[[int], bool], between: Callable[[], None]) -> Batches:
        """The same of a text that is read to its end."""
        (table,), row = self.inputs.tables, 0
        for batch in table.open().batches(self._columns_read(table)):
            between()
            left = batch
            while left.num_rows:
                taken = min(left.num_rows, self.size - row % self.size)
                if wanted(row // self.size):
                    yield row, table, left.slice(0, taken)
                row, left = row + taken, left.slice(taken)
        self.rows, self.inputs = row, replace(self.inputs, tables=(replace(table, rows=row),))

    def _columns_read(self, table: Table) -> list[str]:
        """All columns of a table, and what junctions need besides."""
        reader = table.open()
        return list(dict.fromkeys([*reader.columns, *self.inputs.columns_of(table)]))

    def packed(self, part: InputSlice) -> Iterator[pa.RecordBatch]:
        """The columns of a slice that junctions need."""
        for table, batch in part.batches:
            yield self.inputs.labelled(batch.select(self.inputs.columns_of(table)), table)

    def written(self, part: InputSlice) -> Iterator[pa.RecordBatch]:
        """The columns of a slice that are written."""
        for table, batch in part.batches:
            if not self.inputs.together:
                yield batch.select(self.columns)
                continue
            named = with_repertoire(batch, table.repertoire_id)
            empty = pa.repeat(pa.scalar("", pa.large_string()), batch.num_rows)
            has = named.schema.names
            # One type, whatever the kind of table: a Parquet file has one schema.
            columns = [named.column(name).cast(pa.large_string()) if name in has else empty for name in self.columns]
            yield pa.RecordBatch.from_arrays(columns, names=self.columns)


def estimated_rows(table: Table) -> int:
    """About how many rows a table has, at least 1: what its file says, or its size over that of its first lines."""
    known = table.open().known_rows
    if known is not None:
        return max(1, known)
    with unpacked(table.path) as stream:
        head = stream.read(_SAMPLED_BYTES)
    size = table.path.stat().st_size * (_EXPANSION if packing(table.path) else 1)
    return max(1, int(head.count(b"\n") * size / max(1, len(head))))
