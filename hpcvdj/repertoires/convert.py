"""Tables of any readable format as AIRR tables, for other programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.repertoires.batches import ahead
from hpcvdj.repertoires.formats import BY_HEADER, REASON, REQUIRED, Opening
from hpcvdj.repertoires.inputs import columns_of_all, files_of, in_columns
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.tables import Table, table_at, table_suffix, write_table
from hpcvdj.storage.files import require_distinct, require_writable
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
    reasons: Counter[str] = field(default_factory=Counter)


def convert(paths: Sequence[Path], target: Path, opening: Opening = BY_HEADER, *, overwrite: bool = False) -> Converted:
    """Write the tables at `paths`, a folder meaning those in it, as one AIRR table (.tsv, .tsv.gz or .parquet).

    Every row is written, in its place: the columns of `REQUIRED`, empty if they are not known, then the other AIRR
    fields of the tables' formats, then the tables' own columns.  Several tables have repertoire_id: the table's name,
    where a row names none.

    InputError, and no file, if a table cannot be read or lacks calls or sequences.
    """
    table_suffix(target)
    require_writable(target, overwrite=overwrite)
    tables = [table_at(path, opening) for path in files_of(paths, opening)]
    require_distinct(target, *(table.path for table in tables))
    for table in tables:
        _require_junctions(table)
    several = len(paths) > 1 or paths[0].is_dir()
    names = [name for name in columns_of_all(tables) if several or name in tables[0].open().columns]
    ordered = list(dict.fromkeys([*REQUIRED, *[REPERTOIRE] * several, *names]))
    done = Converted(len(tables))

    def batches() -> Iterator[pa.RecordBatch]:
        # A table without rows has a header, too.
        yield pa.RecordBatch.from_pylist([], pa.schema([(name, pa.large_string()) for name in ordered]))
        for batch in ahead(in_columns(tables, [*ordered, REASON], fill=several)):
            done.rows += batch.num_rows
            done.reasons += _reasons(batch)
            yield batch.select(ordered)
        for table in tables:
            require_unchanged(table.path, table.state)

    write_table(target, ahead(batches()), overwrite=overwrite)
    return done


def _require_junctions(table: Table) -> None:
    """Raise InputError unless a table has calls and sequences."""
    reader = table.open()
    has_sequences = not {"junction", "junction_aa", "cdr3", "cdr3_aa"}.isdisjoint(reader.columns)
    reader.require(["v_call", "j_call", *["junction"] * (not has_sequences)])


def _reasons(batch: pa.RecordBatch) -> Counter[str]:
    missing = pc.equal(pc.utf8_trim_whitespace(batch.column("junction")), "")
    texts = pc.value_counts(batch.column(REASON).filter(missing)).to_pylist()
    empty = Exclusion.of(ExclusionKind.NO_SEQUENCE, field="junction")
    return Counter(
        {str(Exclusion.from_text(entry["values"]) if entry["values"] else empty): entry["counts"] for entry in texts}
    )
