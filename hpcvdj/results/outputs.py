"""The outputs of a run: a table with its facts beside it, or a result file, of computed rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import CompleteError
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.repertoires.batches import with_columns
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.writers import writer_of
from hpcvdj.results.attributes import FORMAT, VERSION, declared
from hpcvdj.results.facts import Facts, Targets
from hpcvdj.results.lookup import Lookup, require_new_columns
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs.driver import Timings
from hpcvdj.runs.folder import Identity, RunFolder
from hpcvdj.runs.run import Run

Ranks = Sequence[dict[str, str]]
"""Where each rank ran, and on which hardware."""


@dataclass(frozen=True)
class ComputedRows:
    """Rows of the input with their values.

    inputs     the tables that have the rows
    values     [sequences, columns]: the values of the junctions
    batches    the rows as tables have them
    first_row  number of the first row
    """

    inputs: Inputs
    junctions: Junctions
    quantity: Quantity
    values: NDArray[Any]
    timings: Timings
    batches: Iterable[pa.RecordBatch]
    first_row: int = 0

    @cached_property
    def facts(self) -> SliceFacts:
        """What became of the rows."""
        return SliceFacts.of(self.junctions, self.quantity, self.values, self.first_row)

    def with_values(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as tables have them, with their values."""
        junctions, first, row = self.junctions, self.first_row, 0
        excluded = replace(junctions.excluded, row=junctions.excluded.row - first)
        lookup = Lookup(self.quantity, self.values, junctions.row - first, excluded)
        for batch in self.batches:
            yield with_columns(batch, lookup.columns(row, batch.num_rows))
            row += batch.num_rows


class Output:
    """What a run writes at its target.

    has_rows   whether the output has the columns of the input
    is_folder  whether the output is a folder of files
    ending     ending of the files of its slices
    overwrite  whether to replace what is at the target; `begin` decides it on root, which writes the target
    """

    has_rows: bool
    is_folder: bool = False
    ending: str
    overwrite = False

    def __init__(self, run: Run, quantity: Quantity) -> None:
        assert run.target is not None
        self.run, self.quantity, self.target = run, quantity, run.target

    def folder(self, identity: Identity) -> RunFolder:
        """Return the folder of an unfinished run."""
        return RunFolder(self.target.with_name(f"{self.target.name}.parts"), identity)

    def begin(self, folder: RunFolder, files: Sequence[Path]) -> None:
        """Decide whether to replace what is at the target.

        Raises CompleteError if the run is to be resumed but is complete, and InputError if the target may not be
        written.
        """
        raise NotImplementedError

    def require_columns(self, tables: Sequence[Table], width: int) -> None:
        """Raise InputError if tables already have a column that `width` columns of values will get."""

    def write_slice(self, files: SliceFiles, index: int, rows: ComputedRows, facts: Facts, ranks: Ranks) -> None:
        """Write the rows of a slice."""
        raise NotImplementedError

    def join(self, files: SliceFiles, inputs: Inputs, facts: Facts, ranks: Ranks, rows: int) -> None:
        """Join all slices, of at most `rows` rows, to the target, then remove the folder that has them."""
        raise NotImplementedError

    def write(self, rows: ComputedRows, facts: Facts, ranks: Ranks) -> None:
        """Write the target with all its rows at once."""
        raise NotImplementedError


class TableOutput(Output):
    """A table with its facts beside it."""

    has_rows = True

    def __init__(self, run: Run, quantity: Quantity) -> None:
        super().__init__(run, quantity)
        self._kind = writer_of(self.target)
        self.is_folder, self.ending = self._kind.is_folder, self._kind.of_parts().endings[0]

    def begin(self, folder: RunFolder, files: Sequence[Path]) -> None:
        targets, overwrite = Targets(self.target), self.run.overwrite
        if self.run.resume:
            try:
                # A stopped run may have begun to replace another table.
                overwrite = targets.resume(folder.identity, overwrite=overwrite or folder.may_replace(self.target))
            except CompleteError:
                # A run that was killed after it wrote its table left the folder.
                if folder.is_same():
                    folder.remove()
                raise
        targets.require(files, overwrite=overwrite)
        self.overwrite = overwrite

    def require_columns(self, tables: Sequence[Table], width: int) -> None:
        for table in tables:
            require_new_columns(table.open().columns, table.path, self.quantity, width)

    def write_slice(self, files: SliceFiles, index: int, rows: ComputedRows, facts: Facts, ranks: Ranks) -> None:
        files.write(index, self._kind.of_parts(), rows.with_values())

    def join(self, files: SliceFiles, inputs: Inputs, facts: Facts, ranks: Ranks, rows: int) -> None:
        slices = files.digests(files.finished)
        self._write(facts, lambda path: self._kind.join(slices, path, self.run.raise_if_stopping))
        files.folder.remove()

    def write(self, rows: ComputedRows, facts: Facts, ranks: Ranks) -> None:
        self._write(facts, rows.with_values())

    def _write(self, facts: Facts, rows: Any) -> None:
        described = {"format": FORMAT, "format_version": VERSION, **facts, **self.quantity.attributes()}
        Targets(self.target).write(declared(described), {self.target: rows}, overwrite=self.overwrite)
