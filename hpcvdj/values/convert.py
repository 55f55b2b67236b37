"""Convert tables of any readable format to AIRR tables, for other programs."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.distinct import distinct
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind, counts_from_json, counts_json
from hpcvdj.repertoires.batches import with_columns, without_missing
from hpcvdj.repertoires.folders import tables_in
from hpcvdj.repertoires.formats.format import REASON, REQUIRED, ROW_ID, Opening
from hpcvdj.repertoires.formats.listed import Listed
from hpcvdj.repertoires.ids import text_hashes
from hpcvdj.repertoires.inputs import Inputs, in_text, name_of, with_repertoire
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.table import REPERTOIRE, Table, repertoire_name
from hpcvdj.repertoires.writers import require_writable_table
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.files import require_distinct
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values.compute_tables import slice_rows
from hpcvdj.values.input_slices import InputSlice, SlicedInput
from hpcvdj.values.plain_tables import plain_table


@dataclass
class Converted:
    """What `convert` wrote.

    tables   number of tables read
    rows     number of rows read and written
    reasons  number of rows without a junction, by the reason
    """

    tables: int
    rows: int = 0
    reasons: Counter[Exclusion] = field(default_factory=Counter)


def convert(paths: Sequence[Path], opening: Opening, run: Run) -> Converted:
    """Write tables, or the tables in folders, as one AIRR table, the target of `run`.  Ranks share slices.

    The output has every row, in the order of the input.  Its columns are those of `REQUIRED`, empty if the input lacks
    them, then the other AIRR fields of the formats, then the other columns of the tables.  Several tables get the
    column repertoire_id: the name of the table, where a row names none.  Tables that `_with_other_ids` finds get ids
    NAME.ID.

    Raises InputError, which names all such tables, and writes nothing, if tables cannot be read or lack calls or
    sequences.  Raises StoppedError after a signal; finished slices are then saved for `resume`.
    """
    target = run.target
    assert target is not None

    def opened() -> list[Table]:
        # Check the target now, not after reading all tables.
        require_writable_table(target, overwrite=run.overwrite or run.resume)
        tables = tables_in(paths, opening)
        require_distinct(target, *(table.path for table in tables))
        _require_junctions(tables)
        return tables

    several = len(paths) > 1 or any(path.is_dir() for path in paths)
    tables, renamed = _surveyed(run.from_root(opened), run, count=several)
    inputs = Inputs(tuple(tables), Reading(opening=opening), together=several)
    converted = _AirrSlices(inputs, run.from_root(lambda: slice_rows(inputs, None)), renamed)
    identity = {
        "tables": [[table.path.name, table.sha256] for table in tables], "opening": opening.recorded(),
        "together": several,
    }  # fmt: skip
    with plain_table(run, identity, converted.size, inputs.files) as table:
        converted.size = table.size
        files, finished = table.files, run.from_root(lambda: table.files.finished)

        def write(part: InputSlice) -> None:
            facts: dict[str, Any] = {"rows": part.rows}
            table.write(part.index, converted.rows_of(part, facts), facts)

        run.each(converted.slices(files.taken(finished), run.raise_if_stopping), write, files.saved)

        def total() -> Converted:
            if not files.finished:
                # A table without rows still has a header.
                table.write(0, [converted.no_rows], {"rows": 0, "reasons": []})
            inputs.require_unchanged()
            done = Converted(len(tables))
            for facts in map(files.read, files.finished):
                done.rows += facts["rows"]
                done.reasons += Counter(dict(counts_from_json(facts["reasons"])))
            if lacks := (converted.rows or 0) - done.rows:
                raise InputError(f"{files.folder.path}: its parts lack {lacks:,} rows; {files.remedy}")
            return done

        done = run.from_root(total)
        table.join(run.from_root(lambda: files.finished))
    return done


class _AirrSlices(SlicedInput):
    """The tables in slices, with the columns of the output.

    renamed  the tables whose ids get the name of their table
    """

    def __init__(self, inputs: Inputs, size: int, renamed: set[Path]) -> None:
        super().__init__(inputs, size)
        self._ordered = list(dict.fromkeys([*REQUIRED, *[REPERTOIRE] * inputs.together, *inputs.all_columns]))
        self._renamed = renamed

    @property
    def no_rows(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], pa.schema([(name, pa.large_string()) for name in self._ordered]))

    def columns_read(self, table: Table) -> list[str]:
        """Return all columns of a table, and the reason why rows have no junction."""
        reader = table.open()
        return [*reader.columns, *[REASON] * reader.explains]

    def rows_of(self, part: InputSlice, facts: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice for the output.  Add to `facts` why rows have no junction."""
        reasons = Counter[Exclusion]()
        for table, batch in part.batches:
            named = with_repertoire(batch, table.repertoire_id) if self.inputs.together else batch
            rows = in_text(named, [*self._ordered, REASON])
            reasons += _reasons(rows)
            yield (_prefixed(rows, _prefix(table)) if table.path in self._renamed else rows).select(self._ordered)
        facts["reasons"] = counts_json(reasons.most_common())


def _surveyed(tables: list[Table], run: Run, *, count: bool) -> tuple[list[Table], set[Path]]:
    """Return the tables with their digests, and those of `_with_other_ids`.  Ranks share the reading.

    count  find out also the number of rows of each table
    """
    surveys: dict[int, tuple[str, int, NDArray[np.uint64]]] = {}

    def survey(number: int) -> None:
        table = tables[number]
        rows, ids = _ids(table, run.raise_if_stopping) if count else (0, np.empty(0, np.uint64))
        surveys[number] = file_digest(table.path, table.state), rows, ids

    run.each(range(run.rank, len(tables), run.ranks), survey, NOTHING_YET)
    gathered = run.gather(surveys)

    def together() -> tuple[list[Table], set[Path]]:
        every = {number: facts for part in gathered or [] for number, facts in part.items()}
        first, placed, ids = 0, [], []
        for number, table in enumerate(tables):
            digest, rows, ids_of_table = every[number]
            placed.append(replace(table, sha256=digest, rows=rows, first_row=first))
            ids.append(ids_of_table)
            first += rows
        return placed, _with_other_ids(placed, ids) if len(tables) > 1 else set()

    return run.from_root(together)


def _require_junctions(tables: Sequence[Table]) -> None:
    """Raise InputError, which names all such tables, if tables cannot be read or lack columns that rows need."""
    faults = []
    for table in tables:
        try:
            reader = table.open()
            has_sequences = not {"junction", "junction_aa", "cdr3", "cdr3_aa"}.isdisjoint(reader.columns)
            has_calls = not Listed.recognises(reader.given_columns)
            reader.require([*["v_call", "j_call"] * has_calls, *["junction"] * (not has_sequences)])
        except InputError as error:
            faults.append(str(error))
    if len(faults) > 1:
        raise InputError(f"{len(faults)} of {len(tables)} tables cannot be read: {'; '.join(faults)}")
    if faults:
        raise InputError(faults[0])


def _with_other_ids(tables: Sequence[Table], ids: Sequence[NDArray[np.uint64]]) -> set[Path]:
    """Return those of several tables whose ids are not unique among all tables.

    Tables in formats other than AIRR have numbers of rows or clones as ids.  Tables with AIRR ids keep them, unless
    two tables have an id in common.  Raises InputError if two of the returned tables have the same name.

    ids  hashes of the AIRR ids of each table
    """
    readers = [table.open() for table in tables]
    together = np.concatenate([np.empty(0, np.uint64), *ids])
    repeated = len(distinct(together)) < len(together)
    renamed = [table for table, reader in zip(tables, readers, strict=True) if repeated or not reader.has_ids]
    first: dict[str, Table] = {}
    for table in renamed:
        other = first.setdefault(_prefix(table), table)
        # The parts of a folder share the ids of one table.
        if other is not table and (other.path == table.path or name_of([other]) != name_of([table])):
            raise InputError(
                f"{name_of([table])}: its rows would have the ids {_prefix(table)}.1 and so on, like those of "
                f"{name_of([other])}; name each table once, or rename one of them"
            )
    return {table.path for table in renamed}


def _prefix(table: Table) -> str:
    """What comes before the ids of a table.  Where a folder has no ids, each part numbers its own rows."""
    numbered = table.part and not table.open().has_ids
    return f"{table.repertoire_id}.{repertoire_name(table.path)}" if numbered else table.repertoire_id


def _ids(table: Table, between: Callable[[], None]) -> tuple[int, NDArray[np.uint64]]:
    """Return the number of rows of a table, and hashes of its distinct AIRR ids.  Call `between` after each batch."""
    reader = table.open()
    if reader.known_rows is not None and not reader.has_ids:
        return reader.known_rows, np.empty(0, np.uint64)
    rows, hashes = 0, [np.empty(0, np.uint64)]
    for batch in reader.batches([ROW_ID]):
        rows += batch.num_rows
        if reader.has_ids:
            ids = without_missing(batch.column(ROW_ID).cast(pa.large_string()))
            hashes.append(text_hashes(ids.filter(pc.not_equal(ids, ""))))
        between()
    return rows, distinct(np.concatenate(hashes))


def _prefixed(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    ids = without_missing(batch.column(ROW_ID))
    parts = pa.scalar(name, ids.type), ids, pa.scalar(".", ids.type)
    named = pc.if_else(pc.equal(ids, ""), ids, pc.binary_join_element_wise(*parts))
    return with_columns(batch, {ROW_ID: named})


def _reasons(batch: pa.RecordBatch) -> Counter[Exclusion]:
    missing = pc.equal(pc.utf8_trim_whitespace(batch.column("junction")), "")
    texts = pc.value_counts(batch.column(REASON).filter(missing)).to_pylist()
    empty = Exclusion.of(ExclusionKind.NO_SEQUENCE, field="junction")
    return Counter(
        {Exclusion.from_text(entry["values"]) if entry["values"] else empty: entry["counts"] for entry in texts}
    )
