"""Tables from files and from memory, and the germline tables and models that have a name."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.api.parameters import documented
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import MAX_P, DAlleles, Germline, Tables, read_germline
from hpcvdj.recombination.igor import load_model, model_folders
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.packaged import germline_paths
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.formats import REASON, RowError
from hpcvdj.repertoires.formats.format import ROW_ID
from hpcvdj.repertoires.formats.listed import field_of, has_amino_acids
from hpcvdj.repertoires.readers import MemoryReader, TableReader, open_table
from hpcvdj.repertoires.reference_settings import GermlineSettings
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.repertoires.tables import Table, table_at, table_of
from hpcvdj.results.frames import Kind, beside, of_kind
from hpcvdj.runs.run import Run
from hpcvdj.values.convert import Converted
from hpcvdj.values.convert import convert as convert_tables

log = logging.getLogger(__name__)

_TEXT = ("_id", "_call", "_aa", "_alignment", "_cigar", "junction", "sequence", "cdr3", REASON)
"""How the names of columns end that are text, whatever they look like."""

_NUMBERS = (
    (r"^-?(0|[1-9][0-9]{0,17})$", pa.int64()),
    (r"^-?[0-9]+\.?[0-9]*([eE][-+]?[0-9]+)?$", pa.float64()),
)
"""Texts that are numbers, and their types."""


@dataclass(frozen=True)
class Given:
    """A table that a user gave, in memory or as a path.

    original  the table, with the AIRR fields that its format makes; of a path, what `read_table` gives
    arrow     the same in pyarrow; of a path, also with what its format says of rows that have no junction
    reader    of a path
    """

    original: Any
    arrow: pa.Table
    reader: TableReader | None = None

    @staticmethod
    def of(table: Any) -> "Given":
        """A table in memory, or at a path."""
        if not isinstance(table, str | Path):
            reader = MemoryReader(table)
            return Given(_with_airr_fields(table, reader), reader.table)
        return Given.read(open_table(table))

    @staticmethod
    def read(reader: TableReader) -> "Given":
        """The table of a reader, whose numbers are numbers."""
        names = [*reader.columns, *[REASON] * reader.explains]
        batches = list(reader.batches(names))
        columns = batches[0].schema if batches else pa.schema([(name, pa.string()) for name in names])
        table = typed(pa.Table.from_batches(batches, columns))
        return Given(table.drop_columns([REASON] * reader.explains), table, reader)

    def require(self, columns: Sequence[str]) -> None:
        """Raise InputError that names the file unless it has these `columns`; it may lack sequence_id."""
        if self.reader is not None:
            self.reader.require([name for name in columns if name != ROW_ID])

    def beside(self, values: pa.Table) -> Any:
        """A table of the kind of the original with values beside it."""
        return beside(self.original, self.arrow, dict(zip(values.column_names, values.columns, strict=True)))


def _with_airr_fields(table: Any, reader: MemoryReader) -> Any:
    """A table of another program with its AIRR fields beside its own columns; any other as it is."""
    names = reader.translation.made if reader.translation else []
    if not names or not reader.known_rows:
        return table
    made = typed(pa.Table.from_batches(list(reader.batches(names))))
    return beside(table, reader.table, dict(zip(names, made.columns, strict=True)))


@documented(TableSettings)
def read_table(
    path: str | Path, *, format: str | None = None, columns: Mapping[str, str] | None = None, kind: Kind = "pyarrow"
) -> Any:
    """Read a table of junctions in any format that hpcvdj knows, as AIRR fields.

    path     a file: AIRR TSV or CSV (plain, gzip or zstd), Parquet, or the table of another program
    {options}
    kind     of the table: `pyarrow`, `pandas` or `polars`

    Returns a table with the AIRR fields, then the table's other columns.  Columns of whole numbers, of numbers, or of T
    and F alone become numbers and booleans, with nulls where they are empty; ids, calls and sequences stay text.

    Raises InputError for a file that cannot be read, and for a format that it does not have.
    """
    reader = open_table(path, TableSettings.of(locals()).opening())
    return of_kind(Given.read(reader).original, kind)


@documented(TableSettings)
def convert(
    tables: str | Path | Sequence[str | Path],
    target: str | Path,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> Converted:
    """Write tables of any format that hpcvdj knows as one AIRR table, every row in its place.

    tables     a file, a folder of files, or a list of these
    target     the table to write: .tsv, .tsv.gz, .tsv.zst or .parquet
    {options}
    overwrite  {overwrite}

    Returns what was written: the number of `tables` and `rows`, and the `reasons` of rows without a junction.  Several
    tables have repertoire_id, and ids as docs/formats.md says.  Raises InputError, and writes nothing, if a table
    cannot be read.
    """
    opening = TableSettings.of(locals()).opening()
    paths = [tables] if isinstance(tables, str | Path) else tables
    return convert_tables(list(map(Path, paths)), opening, Run().to(Path(target), overwrite=overwrite))


def given_table(given: Any) -> Table:
    """A table at a path, of which only what is needed is read, or in memory."""
    return table_at(Path(given)) if isinstance(given, str | Path) else table_of(given)


def is_column(given: Any) -> bool:
    """Whether sequences are given alone: a list, or a column (Series) of any library."""
    return isinstance(given, list | tuple) or len(getattr(given, "shape", ())) == 1


def listed(column: Any, field: JunctionField | None = None) -> pa.Table:
    """A table of sequences alone: by default `field` is what they are, nucleotides unless they have amino acids.

    InputError if some are nucleotides and others amino acids.
    """
    texts = pa.array(list(column), pa.string())
    if field is None:
        given = texts.fill_null("")
        try:
            field = field_of(given) if has_amino_acids(given) else "junction"
        except RowError as error:
            raise InputError(f"sequence {error.row + 1}: {error.text}") from None
    return pa.table({field: texts})


def typed(table: pa.Table) -> pa.Table:
    """A table of text with its numbers and booleans as such."""
    return pa.table({name: _typed(name, table[name]) for name in table.column_names})


def _typed(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers and booleans of text in which every value is one, or empty."""
    if name.endswith(_TEXT) or not len(column):
        return column
    given = pc.if_else(pc.equal(column, ""), None, column)
    if given.null_count == len(given):
        return column
    for pattern, kind in _NUMBERS:
        if pc.all(pc.match_substring_regex(given, pattern)).as_py():
            return given.cast(kind)
    if pc.all(pc.is_in(given, pa.array(["T", "F"], given.type), skip_nulls=True)).as_py():
        return pc.equal(given, "T")
    return column


@documented(GermlineSettings)
def germline(germline: Germline | Tables, *, max_p: int = MAX_P, d_alleles: DAlleles = "first") -> Germline:
    """The germline table of a name, or of a file.

    germline   {germline}
    {options}

    Raises InputError, which names the file, the line and the remedy.
    """
    if isinstance(germline, Germline):
        return germline
    return read_germline(germline, max_p=max_p, d_alleles=d_alleles)


def germlines() -> dict[str, Path]:
    """The germline tables that have a name, and their files: what `hpcvdj germline list` shows."""
    return germline_paths()


def models() -> dict[str, Path]:
    """The recombination models that have a name, and their folders: what `hpcvdj models list` shows."""
    return model_folders()


def used_model(model: Model | str | Path, *, joint: bool = False) -> Model:
    """A model that tests may rest on, and a warning (HpcvdjWarning) if it is not good enough for that."""
    loaded = model_of(model, joint=joint)
    if loaded.caution is not None:
        log.warning("%s", loaded.caution)
    return loaded


def model_of(model: Model | str | Path, *, joint: bool = False, pseudogenes: bool = False) -> Model:
    """A model that is given as such, by its name or by its folder."""
    if not isinstance(model, Model):
        model = load_model(model, pseudogenes=pseudogenes)
    return model.with_joint_choice() if joint else model
