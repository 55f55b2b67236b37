"""Tables of any readable format as AIRR tables, for other programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.repertoires.batches import ahead, with_columns
from hpcvdj.repertoires.formats import BY_HEADER, REASON, REQUIRED, Opening
from hpcvdj.repertoires.formats.format import ROW_ID
from hpcvdj.repertoires.formats.listed import Listed
from hpcvdj.repertoires.inputs import columns_of_all, in_columns, tables_in
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.tables import Table
from hpcvdj.repertoires.writers import require_writable_table, write_table
from hpcvdj.storage.files import require_distinct
from hpcvdj.storage.inputs import require_unchanged


@dataclass
class Converted:
    """What `convert` wrote.

    tables   how many were read
    rows     that they have, all of which are written
    reasons  how many rows have no junction, by the reason
    """

    tables: int
    rows: int = 0
    reasons: Counter[Exclusion] = field(default_factory=Counter)


def convert(paths: Sequence[Path], target: Path, opening: Opening = BY_HEADER, *, overwrite: bool = False) -> Converted:
    """Write the tables at `paths`, of a folder those in it, as one AIRR table: .tsv, .tsv.gz, .tsv.zst or .parquet.

    Every row is written, in its place: the columns of `REQUIRED`, empty if they are not known, then the other AIRR
    fields of the tables' formats, then the tables' own columns.  Several tables have repertoire_id: the table's name,
    where a row names none.  Of several tables, those of `_with_other_ids` have the ids NAME.ID.

    InputError, which names all such tables, and no file, if tables cannot be read or lack calls or sequences.
    """
    require_writable_table(target, overwrite=overwrite)
    tables = tables_in(paths, opening)
    require_distinct(target, *(table.path for table in tables))
    _require_junctions(tables)
    several = len(paths) > 1 or paths[0].is_dir()
    renamed = _with_other_ids(tables) if len(tables) > 1 else set()
    names = columns_of_all(tables)
    if not several:
        present = tables[0].open().columns
        names = [name for name in names if name in present]
    ordered = list(dict.fromkeys([*REQUIRED, *[REPERTOIRE] * several, *names]))
    done = Converted(len(tables))

    def batches() -> Iterator[pa.RecordBatch]:
        # A table without rows has a header, too.
        yield pa.RecordBatch.from_pylist([], pa.schema([(name, pa.large_string()) for name in ordered]))
        for table in tables:
            for batch in ahead(in_columns([table], [*ordered, REASON], fill=several)):
                done.rows += batch.num_rows
                done.reasons += _reasons(batch)
                yield (_prefixed(batch, table.repertoire_id) if table.path in renamed else batch).select(ordered)
        for table in tables:
            require_unchanged(table.path, table.state)

    write_table(target, ahead(batches()), overwrite=overwrite)
    return done


def _require_junctions(tables: Sequence[Table]) -> None:
    """Raise InputError, which names all of them, for tables that cannot be read, or lack what rows need."""
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


def _with_other_ids(tables: Sequence[Table]) -> set[Path]:
    """Of several tables, those whose ids are not unique beside the others'.

    Tables of other formats than AIRR have numbers of rows or clones; tables with AIRR ids keep these, unless two of
    them have one in common.  InputError if two such tables have one name.
    """
    readers = [table.open() for table in tables]
    ids = [_different_ids(reader.batches([ROW_ID])) for reader in readers if reader.has_ids]
    together = np.concatenate([np.empty(0, np.uint64), *ids])
    repeated = len(np.unique(together)) < len(together)
    renamed = [table for table, reader in zip(tables, readers, strict=True) if repeated or not reader.has_ids]
    first: dict[str, Table] = {}
    for table in renamed:
        other = first.setdefault(table.repertoire_id, table)
        if other is not table:
            raise InputError(
                f"{table.path}: its rows would have the ids {table.repertoire_id}.1 and so on, like those of "
                f"{other.path}; name each table once, or rename one of the files"
            )
    return {table.path for table in renamed}


def _different_ids(batches: Iterator[pa.RecordBatch]) -> NDArray[np.uint64]:
    """Hashes of the different ids of a table."""
    # Here, because numba takes long to import.
    from hpcvdj.kernels import text

    hashes = [np.empty(0, np.uint64)]
    for batch in batches:
        hashes.append(np.empty(batch.num_rows, np.uint64))
        text.hash_rows(*text.text_buffers(batch.column(ROW_ID)), hashes[-1])
    return np.unique(np.concatenate(hashes))


def _prefixed(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    ids = batch.column(ROW_ID)
    parts = pa.scalar(name, ids.type), ids, pa.scalar(".", ids.type)
    return with_columns(batch, {ROW_ID: pc.binary_join_element_wise(*parts)})


def _reasons(batch: pa.RecordBatch) -> Counter[Exclusion]:
    missing = pc.equal(pc.utf8_trim_whitespace(batch.column("junction")), "")
    texts = pc.value_counts(batch.column(REASON).filter(missing)).to_pylist()
    empty = Exclusion.of(ExclusionKind.NO_SEQUENCE, field="junction")
    return Counter(
        {Exclusion.from_text(entry["values"]) if entry["values"] else empty: entry["counts"] for entry in texts}
    )
