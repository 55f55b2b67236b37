"""The sequences to compare: those of FASTA files, or the distinct junctions of tables, as one set.

A junction is in one or more tables.  Its name is the sequence_id of its first row, in the order of the tables.  If
several tables have the same sequence_id, the name of the table precedes it (`donor1:seq7`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError, few, log, naming, option, require_choice
from hpcvdj.kernels.kmers.sequences import SequenceSet, sequence_set
from hpcvdj.motifs.fasta import begins_as_fasta, fasta_name, read_fasta
from hpcvdj.recombination.productive import Rows
from hpcvdj.repertoires.batches import with_columns, without_missing
from hpcvdj.repertoires.formats.format import ROW_ID
from hpcvdj.repertoires.inputs import require_different_files
from hpcvdj.repertoires.productive import COLUMN, productive_rows, telling_column
from hpcvdj.repertoires.readers import MemoryReader, TableReader, open_table
from hpcvdj.repertoires.table import repertoire_name
from hpcvdj.storage.inputs import file_digest, file_state, require_regular

SEPARATOR = ","
"""The separator between the names of a junction's tables."""

GENES = ("v_call", "j_call")


@dataclass(frozen=True)
class Input:
    """A FASTA file or a table, in a file or in memory.

    name            the name: that of the file without its suffix
    path            the path of the file; None for a table in memory
    sha256          the digest of the file; empty until it is read
    rows            number of data rows, or of sequences of FASTA
    without         number of rows without a sequence
    not_productive  number of rows that were left out because they are not productive
    told_by         the column that says which rows are productive; empty if all rows were used
    is_table        whether a table was read
    table           the table in memory
    """

    name: str
    path: Path | None = None
    sha256: str = ""
    rows: int = 0
    without: int = 0
    not_productive: int = 0
    told_by: str = ""
    is_table: bool = False
    table: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return str(self.path or f"the table {self.name}".rstrip())

    @property
    def columns(self) -> list[str]:
        """The columns of a table."""
        return self._reader().columns

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Return the rows of a table as text."""
        return self._reader().batches(columns)

    def _reader(self) -> TableReader:
        return MemoryReader(self.table) if self.path is None else open_table(self.path)


@dataclass(frozen=True)
class Compared:
    """What a result compares: the inputs, the column of the sequences (empty if it is not known), and the rows."""

    inputs: tuple[Input, ...]
    sequence_field: str
    rows: Rows


@dataclass(frozen=True)
class InputSet:
    """The sequences of all inputs.

    sequences  the sequences; those of tables are distinct
    inputs     the inputs, with facts about what was read
    member     bool [sequences, inputs]: which inputs have a sequence
    columns    for tables: further columns of each sequence's first row, and the sequence
    """

    sequences: SequenceSet
    inputs: tuple[Input, ...]
    member: NDArray[np.bool_]
    columns: dict[str, list[str]]

    @staticmethod
    def in_memory(sequences: SequenceSet) -> "InputSet":
        """Make a set of sequences that are in no file."""
        member = np.ones((len(sequences), 1), dtype=np.bool_)
        return InputSet(sequences, (Input("", rows=len(sequences)),), member, {})

    @property
    def are_tables(self) -> bool:
        """Whether the inputs are tables rather than FASTA files."""
        return self.inputs[0].is_table

    @property
    def tables(self) -> list[str]:
        """For each sequence, the names of the inputs that have it; empty if there is only one input."""
        return table_lists(self.member, [source.name for source in self.inputs]) if len(self.inputs) > 1 else []


def table_lists(member: NDArray[np.bool_], names: Sequence[str]) -> list[str]:
    """Return the names of each sequence's tables in order, with commas between them.

    >>> table_lists(np.array([[True, True], [False, True]]), ["a", "b"])
    ['a,b', 'b']
    """
    kinds, which = np.unique(member, axis=0, return_inverse=True)
    texts = [SEPARATOR.join(names[k] for k in np.flatnonzero(kind).tolist()) for kind in kinds]
    return [texts[k] for k in which.ravel().tolist()]


def inputs_of(paths: Sequence[Path]) -> list[Input]:
    """Return the inputs in files.  Raise InputError if a file is named twice, or if two inputs have the same name."""
    require_different_files(path for path in paths if path.exists())
    return named([Input(fasta_name(repertoire_name(path)), path) for path in paths])


def named(inputs: Sequence[Input]) -> list[Input]:
    """Return the inputs.  Raise InputError if two have the same name, or if a name cannot be in a list of tables."""
    first: dict[str, Input] = {}
    for source in inputs if len(inputs) > 1 else ():
        if source.name in first:
            raise InputError(f"{source}: would be called {source.name}, like {first[source.name]}; rename one of them")
        if SEPARATOR in source.name:
            raise InputError(f"{source}: a comma separates the names of tables; rename it")
        first[source.name] = source
    return list(inputs)


def read_inputs(
    inputs: Sequence[Input],
    sequence_field: str = "junction",
    rows: Rows = "productive",
    *,
    further: Sequence[str] = (),
    between: Callable[[], None] = lambda: None,
) -> InputSet:
    """Read FASTA files, or tables: the distinct sequences in the column `sequence_field`.

    rows     which rows of a table to read.  `productive`: the rows whose column `productive` is true; if the table has
             no such column, the rows whose junction is productive; all rows if the sequence is no junction.  `all`: all
             rows
    further  columns to read if a table has them
    between  a function to call from time to time

    Raise InputError if an input cannot be read, if there is no sequence, or if there are both tables and FASTA files.
    """
    require_choice("rows", rows, ("productive", "all"))
    for source in inputs:
        if source.path is not None:
            require_regular(source.path, "file", "give a FASTA file or an AIRR table")
    kinds = {source.path is not None and begins_as_fasta(source.path): source for source in inputs}
    if len(kinds) > 1:
        raise InputError(f"{kinds[True]}: is a FASTA file, but {kinds[False]} is a table; compare files of one kind")
    before = [file_state(source.path) if source.path else None for source in inputs]
    if True in kinds:
        read = _of_fasta(inputs, between)
    else:
        read = _Tables(inputs, sequence_field, rows, further).read(between)
    digested = (
        replace(source, sha256=file_digest(source.path, state) if source.path else "")
        for source, state in zip(read.inputs, before, strict=True)
    )
    return replace(read, inputs=tuple(digested))


def read_sequences(path: str | Path) -> SequenceSet:
    """Read the sequences of a FASTA file, which begins with >, or of all rows of a table: see `read_inputs`."""
    return read_inputs(inputs_of([Path(path)]), rows="all").sequences


def read_again(compared: Compared, names: Sequence[str], moved: Path | None = None) -> InputSet | None:
    """Read the sequences of a result, whose names are `names`, with the V and J calls of junctions.

    moved  the present path of the file, or the folder of several files

    The result is None if tables in memory were compared, or if a file does not exist any more, which gives a warning.
    Raise InputError if a file has changed.
    """
    if any(source.path is None for source in compared.inputs):
        return None
    inputs = [replace(source, path=_now(source, moved, several=len(compared.inputs) > 1)) for source in compared.inputs]
    gone = next((source for source in inputs if not source.path.is_file()), None)  # type: ignore[union-attr]
    if gone is not None and moved is not None:
        raise InputError(f"{gone}: not there; name with {option('sequences')} where it is")
    if gone is not None:
        if compared.sequence_field:
            log.warning(
                "%s: not there, so clusters have no genes and no consensus; %s says where it is",
                gone,
                option("sequences"),
            )
        return None
    for source, was in zip(inputs, compared.inputs, strict=True):
        if source.path is not None and file_digest(source.path) != was.sha256:
            raise InputError(
                f"{source.path}: is not what was compared (its SHA-256 differs); name that file with "
                f"{option('sequences')}"
            )
    read = read_inputs(inputs, compared.sequence_field, compared.rows, further=GENES)
    if read.sequences.names != list(names):
        raise InputError(
            f"{few(map(str, inputs))}: does not have the sequences that were compared; name their table with "
            f"{option('sequences')}"
        )
    return read


def _now(source: Input, moved: Path | None, *, several: bool) -> Path | None:
    if moved is None or source.path is None:
        return source.path
    if moved.is_dir():
        return moved / source.path.name
    if several and moved.exists():
        raise InputError(
            f"{option('sequences', moved)}: is one file, but several were compared; name the folder that has them"
        )
    return moved


def _of_fasta(inputs: Sequence[Input], between: Callable[[], None]) -> InputSet:
    sets = [read_fasta(source.path, between) for source in inputs if source.path]
    homes = np.repeat(np.arange(len(sets)), [len(records) for records in sets])
    names = _unique_names([name for records in sets for name in records.names], homes.tolist(), inputs)
    joined = sets[0] if len(sets) == 1 else SequenceSet.joined(sets, names)
    read = tuple(replace(source, rows=len(records)) for source, records in zip(inputs, sets, strict=True))
    return InputSet(joined, read, homes[:, None] == np.arange(len(sets)), {})


class _Tables:
    """Reads tables one after another, and keeps the first row of each distinct sequence."""

    def __init__(self, inputs: Sequence[Input], sequence_field: str, rows: Rows, further: Sequence[str]) -> None:
        self._inputs, self._field, self._rows = inputs, sequence_field, rows
        self._has = [source.columns for source in inputs]
        for source, has in zip(inputs, self._has, strict=True):
            # A table of one column is separated otherwise, which its reader says.
            if sequence_field not in has and len(has) > 1:
                raise InputError(
                    f"{source}: no column {sequence_field}; {option('sequence_field', 'COLUMN')} names the column of "
                    f"the sequences (this table has {few(has, 12)})"
                )
        self._further = [name for name in further if any(name in has for has in self._has)]
        self._index_of: dict[str, int] = {}
        self._first: list[tuple[str, ...]] = []

    def read(self, between: Callable[[], None]) -> InputSet:
        """Return the distinct sequences of all tables."""
        indices: list[set[int]] = [set() for _ in self._inputs]
        read = [self._read(number, indices[number], between) for number in range(len(self._inputs))]
        if not self._first:
            left = sum(source.not_productive for source in read)
            remedy = (
                f"{left:,} rows are not productive; {option('rows', 'all')} takes them"
                if left
                else "give a file with at least one"
            )
            raise InputError(f"{few(map(str, read))}: has no sequences; {remedy}")
        ids, *columns, texts = map(list, zip(*self._first, strict=True))
        member = np.zeros((len(texts), len(read)), dtype=np.bool_)
        for number, sequences_of_table in enumerate(indices):
            member[list(sequences_of_table), number] = True
        # The first table that has a sequence is the one of its first row.
        names = _unique_names(ids, member.argmax(axis=1).tolist(), read)
        with naming(few(map(str, read))):
            sequences = sequence_set(texts, names)
        named_columns = dict(zip([*self._further, self._field], [*columns, texts], strict=True))
        return InputSet(sequences, tuple(read), member, named_columns)

    def _read(self, number: int, indices: set[int], between: Callable[[], None]) -> Input:
        """Read a table, and add the indices of its sequences to `indices`."""
        source, has = self._inputs[number], self._has[number]
        told_by = telling_column(has, self._field) if self._rows == "productive" else None
        present = [name for name in self._further if name in has]
        # A table may have this column or not.
        flag = [COLUMN] * (told_by == COLUMN)
        rows = without = not_productive = 0
        for batch in source.batches([*dict.fromkeys([ROW_ID, *present, *flag, self._field])]):
            ids = without_missing(batch.column(ROW_ID))
            missing = pc.equal(ids, "")
            if pc.any(missing).as_py():
                # Such a row is named by its number, as rows of tables without ids are.
                numbers = pa.array((1 + rows + np.arange(batch.num_rows)).astype(str), ids.type)
                batch = with_columns(batch, {ROW_ID: pc.if_else(missing, numbers, ids)})
            rows += batch.num_rows
            filled = batch.filter(pc.not_equal(batch.column(self._field), ""))
            without += batch.num_rows - filled.num_rows
            kept = filled.filter(productive_rows(filled.column(told_by), told_by)) if told_by else filled
            not_productive += filled.num_rows - kept.num_rows
            indices.update(self._keep(kept))
            between()
        read = replace(source, rows=rows, without=without, not_productive=not_productive)
        return replace(read, told_by=told_by or "", is_table=True, table=None)

    def _keep(self, batch: pa.RecordBatch) -> Iterator[int]:
        """Keep the rows of new sequences, and yield the index of each row's sequence."""
        names = batch.schema.names
        columns: Iterable[list[str]] = (
            batch.column(name).to_pylist() if name in names else [""] * batch.num_rows
            for name in ("sequence_id", *self._further, self._field)
        )
        for *others, sequence in zip(*columns, strict=True):
            text = sequence.upper()
            index = self._index_of.setdefault(text, len(self._first))
            if index == len(self._first):
                self._first.append((*others, text))
            yield index


def _unique_names(ids: list[str], homes: Sequence[int], inputs: Sequence[Input]) -> list[str]:
    """Return the names of sequences: their ids, after the name of the input if several inputs have the same id."""
    if len(inputs) == 1:
        return ids
    twice = next((pair for pair, times in Counter(zip(homes, ids, strict=True)).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"{inputs[twice[0]]}: two sequences are called {twice[1]!r}; rename one of them")
    times = Counter(ids)
    return [f"{inputs[home].name}:{name}" if times[name] > 1 else name for home, name in zip(homes, ids, strict=True)]
