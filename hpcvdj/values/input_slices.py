"""Slices of the input tables.  A slice is read once, for the junctions to compute and for the columns to write."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from hpcvdj.repertoires.inputs import Inputs, in_text, with_repertoire
from hpcvdj.repertoires.table import Table
from hpcvdj.storage.inputs import DAMAGE, packing, unpacked

_EXPANSION = 5
"""About how many times as large a packed text becomes when it is unpacked."""

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
        return sum(batch.num_rows for _, batch in self.batches)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple({table.path: table for table, _ in self.batches}.values())


class SlicedInput:
    """The input in slices of `size` rows.

    Tables that are taken together must be surveyed.  A single table may be a text of unknown length.

    rows         number of rows of the input; None for a text of unknown length until `slices` has read it to its end
    all_columns  slices have all columns, not only those that junctions need
    """

    def __init__(self, inputs: Inputs, size: int, *, all_columns: bool = True) -> None:
        self.size, self._all_columns = size, all_columns
        self.rows = inputs.rows if inputs.together else inputs.tables[0].open().known_rows
        if not inputs.together:
            # The table may have been surveyed as one of several.
            table = replace(inputs.tables[0], first_row=0)
            inputs = replace(inputs, tables=(table if self.rows is None else replace(table, rows=self.rows),))
        self.inputs = inputs

    def slices(self, wanted: Callable[[int], bool], between: Callable[[], None]) -> Iterator[InputSlice]:
        """Yield the slices whose index is `wanted`, and call `between` after each batch.

        The function asks for a slice when the slice before it is done.  A file that can only be read from its beginning
        is read once.  A rank that has the first slice of a row group goes on with the other slices of the group, since
        every reader of a slice must decode the rows before it in the group.  Then it asks for the remaining slices.
        """
        if self.rows is None:
            yield from self._joined(self._count(wanted, between), between)
            return
        # The row groups of the other tables are mostly like those of the first.
        together, had = max(1, round(self.inputs.tables[0].open().group_rows / self.size)), set[int]()

        def in_order(index: int) -> bool:
            if (index % together == 0 or index - 1 in had) and wanted(index):
                had.add(index)
            return index in had

        yield from self._joined(self._read(self.rows, in_order), between)
        if together > 1:
            yield from self._joined(self._read(self.rows, lambda index: index not in had and wanted(index)), between)

    def _joined(self, read: Batches, between: Callable[[], None]) -> Iterator[InputSlice]:
        held: list[tuple[Table, pa.RecordBatch]] = []
        first = 0
        for row, table, batch in read:
            first = first if held else row
            held.append((table, batch))
            between()
            if row + batch.num_rows == first + self.size:
                yield InputSlice(first // self.size, first, held)
                held = []
        if held:
            yield InputSlice(first // self.size, first, held)

    def _read(self, rows: int, wanted: Callable[[int], bool]) -> Batches:
        """Yield the batches of wanted slices.  No batch belongs to two slices."""
        starts = (first for index, first in enumerate(range(0, rows, self.size)) if wanted(index))
        slices = (range(first, min(rows, first + self.size)) for first in starts)
        part = next(slices, None)
        for table in self.inputs.tables:
            first, last = table.first_row, table.first_row + table.rows

            def within(first: int = first, last: int = last) -> Iterator[range]:
                nonlocal part
                while part is not None and part.start < last:
                    yield range(max(part.start, first) - first, min(part.stop, last) - first)
                    if part.stop > last:
                        # The slice goes on in the next table.
                        return
                    part = next(slices, None)

            if part is not None and max(part.start, first) < last:
                for rows_of, batches in table.open().ranges(self.columns_read(table), within()):
                    row = first + rows_of.start
                    for batch in batches:
                        yield row, table, batch
                        row += batch.num_rows

    def _count(self, wanted: Callable[[int], bool], between: Callable[[], None]) -> Batches:
        """Do the same as `_read` for a text of unknown length, which is read to its end."""
        (table,), row = self.inputs.tables, 0
        for batch in table.open().batches(self.columns_read(table)):
            between()
            left = batch
            while left.num_rows:
                taken = min(left.num_rows, self.size - row % self.size)
                if wanted(row // self.size):
                    yield row, table, left.slice(0, taken)
                row, left = row + taken, left.slice(taken)
        self.rows, self.inputs = row, replace(self.inputs, tables=(replace(table, rows=row),))

    def columns_read(self, table: Table) -> list[str]:
        """Return the columns of a table that slices have."""
        every = table.open().columns if self._all_columns else []
        return list(dict.fromkeys([*every, *self.inputs.columns_of(table)]))

    def packed(self, part: InputSlice) -> Iterator[pa.RecordBatch]:
        """Yield the columns of a slice that junctions need."""
        for table, batch in part.batches:
            yield self.inputs.labelled(batch.select(self.inputs.columns_of(table)), table)

    def written(self, part: InputSlice) -> Iterator[pa.RecordBatch]:
        """Yield the columns of a slice for the output."""
        names = self.inputs.all_columns
        for table, batch in part.batches:
            together = self.inputs.together
            yield in_text(with_repertoire(batch, table.repertoire_id), names) if together else batch.select(names)


def estimated_rows(table: Table) -> int:
    """Estimate the rows of a table, at least 1: the number in its file, or its size over that of its first lines."""
    rows = table.open().known_rows
    if rows is not None:
        return max(1, rows)
    try:
        with unpacked(table.path) as stream:
            head = stream.read(1 << 20)
    except DAMAGE:
        # The reader of the rows reports the damage.
        return 1
    size = table.path.stat().st_size * (_EXPANSION if packing(table.path) else 1)
    return max(1, int(head.count(b"\n") * size / max(1, len(head))))
