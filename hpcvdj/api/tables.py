"""Read tables from files and from memory, and find the germline tables and models that have a name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.api.parameters import documented
from hpcvdj.errors import InputError, log
from hpcvdj.recombination.germline import MAX_P, DAlleles, Germline, Tables, read_germline
from hpcvdj.recombination.igor import load_model, model_folders
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.packaged import germline_paths
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.folders import tables_in
from hpcvdj.repertoires.formats.format import BY_HEADER, REASON, ROW_ID, Opening, RowError
from hpcvdj.repertoires.formats.listed import field_of, has_amino_acids
from hpcvdj.repertoires.inputs import columns_of_all, in_columns
from hpcvdj.repertoires.readers import MemoryReader, TableReader
from hpcvdj.repertoires.settings import GermlineSettings, TableSettings
from hpcvdj.results.frames import Kind, beside, of_kind
from hpcvdj.runs.run import Run
from hpcvdj.values.convert import Converted
from hpcvdj.values.convert import convert as convert_tables

_TEXT = ("_id", "_call", "_aa", "_alignment", "_cigar", "junction", "sequence", "cdr3", REASON)
"""Endings of the names of columns that are always text."""

_NUMBERS = (
    (r"^-?(0|[1-9][0-9]{0,17})$", pa.int64()),
    (r"^-?[0-9]+\.?[0-9]*([eE][-+]?[0-9]+)?$", pa.float64()),
)
"""Patterns of texts that are numbers, and the types of these numbers."""


@dataclass(frozen=True)
class Given:
    """A table that a user gives, in memory or as a path.

    original  the table with the AIRR fields of its format; for a path, the table that `read_table` returns
    arrow     the same as a pyarrow Table; for a path, also the reasons of the format for rows without a junction
    readers   the readers of a path: several for a folder
    """

    original: Any
    arrow: pa.Table
    readers: Sequence[TableReader] = ()

    @staticmethod
    def of(table: Any) -> "Given":
        """Return a table in memory, or at a path."""
        if not isinstance(table, str | Path):
            reader = MemoryReader(table)
            return Given(_with_airr_fields(table, reader), reader.table)
        return Given.read(Path(table))

    @staticmethod
    def read(path: Path, opening: Opening = BY_HEADER) -> "Given":
        """Return the table at a path, or all tables of a folder as one, with numbers as such."""
        tables = tables_in([path], opening)
        readers = [table.open() for table in tables]
        reasons = [REASON] * any(reader.explains for reader in readers)
        if path.is_dir():
            names = [*columns_of_all(tables), *reasons]
            batches = list(in_columns(tables, names))
        else:
            names = [*readers[0].columns, *reasons]
            batches = list(readers[0].batches(names))
        columns = batches[0].schema if batches else pa.schema([(name, pa.string()) for name in names])
        table = typed(pa.Table.from_batches(batches, columns))
        return Given(table.drop_columns(reasons), table, readers)

    def require(self, columns: Sequence[str]) -> None:
        """Raise InputError, which names the file, unless it has these `columns`.  It may lack sequence_id."""
        for reader in self.readers:
            reader.require([name for name in columns if name != ROW_ID])

    def beside(self, values: pa.Table) -> Any:
        """Return a table of the kind of the original with values beside its columns."""
        return beside(self.original, self.arrow, dict(zip(values.column_names, values.columns, strict=True)))


def _with_airr_fields(table: Any, reader: MemoryReader) -> Any:
    """Add the AIRR fields to a table of another program.  Return other tables as they are."""
    names = reader.translation.airr_fields
    if not names or not reader.known_rows:
        return table
    fields = typed(pa.Table.from_batches(list(reader.batches(names))))
    return beside(table, reader.table, dict(zip(names, fields.columns, strict=True)))


@documented(TableSettings)
def read_table(
    path: str | Path, *, format: str | None = None, columns: Mapping[str, str] | None = None, kind: Kind = "pyarrow"
) -> Any:
    """Read a table of junctions in any format that hpcvdj knows, as AIRR fields.

    path     a file: AIRR TSV or CSV (plain, gzip or zstd), Parquet, or the table of another program; or a folder of
             such files, whose rows become one table with the name of each file in repertoire_id, unless a row has one
    {options}
    kind     of the table: `pyarrow`, `pandas` or `polars`

    Returns a table with the AIRR fields, then the table's other columns.  Columns that have only whole numbers, only
    numbers, or only T and F become numbers and booleans, with nulls where they are empty.  Ids, calls and sequences
    stay text.

    Raises InputError for a file that cannot be read, and for a format that it does not have.
    """
    if not isinstance(path, str | Path):
        raise InputError(f"read_table reads a file, not a {type(path).__name__}; functions take tables as they are")
    return of_kind(Given.read(Path(path), TableSettings.of(locals()).opening()).original, kind)


@documented(TableSettings)
def convert(
    tables: str | Path | Sequence[str | Path],
    target: str | Path,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> Converted:
    """Write tables of any format that hpcvdj knows as one AIRR table, with every row in order.

    tables     a file, a folder of files, or a list of these
    target     the table to write: .tsv, .tsv.gz, .tsv.zst or .parquet
    {options}
    overwrite  {overwrite}

    Returns the number of `tables` and `rows`, and the `reasons` of rows without a junction.  Several tables get
    repertoire_id, and ids as docs/formats.md says.  Raises InputError, and writes nothing, if a table cannot be read.
    """
    opening = TableSettings.of(locals()).opening()
    paths = [tables] if isinstance(tables, str | Path) else tables
    return convert_tables(list(map(Path, paths)), opening, Run().to(Path(target), overwrite=overwrite))


def listed(column: Any, field: JunctionField | None = None) -> pa.Table:
    """Return a table of sequences alone.  By default, their letters decide the `field`: nucleotides or amino acids.

    Raises InputError if some sequences are nucleotides and others amino acids.
    """
    try:
        texts = pa.array(list(column), pa.string(), from_pandas=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"the sequences are not all text ({error}); give each as text") from None
    if field is None:
        sequences = texts.fill_null("")
        try:
            field = field_of(sequences) if has_amino_acids(sequences) else "junction"
        except RowError as error:
            raise InputError(f"sequence {error.row + 1}: {error.text}") from None
    return pa.table({field: texts})


def typed(table: pa.Table) -> pa.Table:
    """Return a table of text with its numbers and booleans as such."""
    return pa.table({name: _typed(name, table[name]) for name in table.column_names})


def _typed(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers or booleans if every value of a text column is one, or empty."""
    if name.endswith(_TEXT) or not len(column):
        return column
    values = pc.if_else(pc.equal(column, ""), None, column)
    if values.null_count == len(values):
        return column
    for pattern, kind in _NUMBERS:
        if pc.all(pc.match_substring_regex(values, pattern)).as_py():
            return values.cast(kind)
    if pc.all(pc.is_in(values, pa.array(["T", "F"], values.type), skip_nulls=True)).as_py():
        return pc.equal(values, "T")
    return column


@documented(GermlineSettings)
def germline(germline: Germline | Tables, *, max_p: int = MAX_P, d_alleles: DAlleles = "first") -> Germline:
    """Return the germline table of a name, or of a file.

    germline   {germline}
    {options}

    Raises InputError, which names the file, the line and the remedy.
    """
    if isinstance(germline, Germline):
        return germline
    return read_germline(germline, max_p=max_p, d_alleles=d_alleles)


def germlines() -> dict[str, Path]:
    """Return the germline tables that have a name, and their files: those that `hpcvdj germline list` shows."""
    return germline_paths()


def models() -> dict[str, Path]:
    """Return the recombination models that have a name, and their folders: those that `hpcvdj models list` shows."""
    return model_folders()


def used_model(model: Model | str | Path, *, joint: bool = False) -> Model:
    """Return a model for tests.  Warn (HpcvdjWarning) if the model is not good enough for that."""
    loaded = model_of(model, joint=joint)
    if loaded.caution is not None:
        log.warning("%s", loaded.caution)
    return loaded


def model_of(model: Model | str | Path, *, joint: bool = False, pseudogenes: bool = False) -> Model:
    """Return a model that the user gives as a Model, by its name or by its folder."""
    if not isinstance(model, Model):
        model = load_model(model, pseudogenes=pseudogenes)
    return model.with_joint_choice() if joint else model
