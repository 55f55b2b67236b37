"""The layout of result files: every dataset, declared once.

The writer, parts, the reader, the export and docs/file_format.md all read these declarations.  A new column of
/sequences or /excluded is one class.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import h5py
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import choices
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import ExcludedRows
from hpcvdj.repertoires.junctions import REPERTOIRE, Junctions

FORMAT = "hpcvdj-counts"
VERSION = 2

TEXT = "text"
"""The type of text of fixed width, zero-padded UTF-8; the width is that of the longest value."""


class SequenceColumn:
    """A column of /sequences: one value for each counted sequence.

    name      of the dataset, and of the column in tables
    dtype     NumPy's, or TEXT
    meaning   for the documentation
    together  only in results of tables that were counted together
    exported  `hpcvdj export` writes it beside the counted table
    """

    name: ClassVar[str]
    dtype: ClassVar[Any]
    meaning: ClassVar[str]
    together: ClassVar[bool] = False
    exported: ClassVar[bool] = False

    def width(self, junctions: Junctions) -> int:
        """Bytes of the longest text; for TEXT only."""
        raise NotImplementedError

    def values(self, junctions: Junctions, rows: slice) -> NDArray[Any]:
        """The values of some sequences; TEXT as fixed-width bytes of at most `width`."""
        raise NotImplementedError


class Row(SequenceColumn):
    """Where the sequence is in the input."""

    name = "row"
    dtype = np.int64
    meaning = (
        "data row of the sequence in the input, from 0; empty lines are not counted. [Together](#together): numbered "
        "through all tables"
    )

    def values(self, junctions: Junctions, rows: slice) -> NDArray[np.int64]:
        """From the reader."""
        return junctions.row[rows]


class RepertoireId(SequenceColumn):
    """Whose the sequence is."""

    name = REPERTOIRE
    dtype = TEXT
    meaning = "the row's repertoire: the column `repertoire_id` of its table, or the table's name"
    together = True

    def width(self, junctions: Junctions) -> int:
        """Of the longest name."""
        return max((len(name.encode()) for name in junctions.repertoire_ids or ()), default=1)

    def values(self, junctions: Junctions, rows: slice) -> NDArray[np.bytes_]:
        """By the number of its repertoire."""
        return _bytes(junctions.repertoire_ids or [])[junctions.repertoire_of[rows]]


class SequenceId(SequenceColumn):
    """What the input calls the sequence."""

    name = "sequence_id"
    dtype = TEXT
    meaning = "its `sequence_id`"

    def width(self, junctions: Junctions) -> int:
        """Of the longest id."""
        return junctions.id_width

    def values(self, junctions: Junctions, rows: slice) -> NDArray[np.bytes_]:
        """From the reader."""
        return junctions.id_bytes(rows, junctions.id_width)


class _Call(SequenceColumn):
    """The allele of one segment."""

    dtype = TEXT
    _segment: ClassVar[int]

    def width(self, junctions: Junctions) -> int:
        """Of the longest name."""
        return max((len(pair[self._segment].allele.encode()) for pair in junctions.repertoire.pairs), default=1)

    def values(self, junctions: Junctions, rows: slice) -> NDArray[np.bytes_]:
        """By the V–J pair, of which the sequences are consecutive."""
        repertoire = junctions.repertoire
        alleles = _bytes([pair[self._segment].allele for pair in repertoire.pairs])
        first, last, _ = rows.indices(len(repertoire))
        sizes = np.asarray(np.diff(np.clip(repertoire.offsets, first, last)), dtype=np.int64)
        return np.repeat(alleles, sizes)


class VCall(_Call):
    """V."""

    name = "v_call"
    meaning = "the germline *allele* that it was counted with, by its full name, not the call of the input"
    _segment = 0


class JCall(_Call):
    """J."""

    name = "j_call"
    meaning = "likewise"
    _segment = 1


class Cdr3(SequenceColumn):
    """The sequence itself."""

    name = "cdr3"
    dtype = TEXT
    meaning = "the CDR3 that was counted, in upper case, without anchor codons"

    def width(self, junctions: Junctions) -> int:
        """Of the longest CDR3."""
        return max(1, junctions.repertoire.longest)

    def values(self, junctions: Junctions, rows: slice) -> NDArray[np.bytes_]:
        """Unpacked."""
        return junctions.cdr3_bytes(rows, self.width(junctions))


class ExcludedColumn:
    """A column of /excluded: one value for each row that was not counted; attributes as of `SequenceColumn`."""

    name: ClassVar[str]
    dtype: ClassVar[Any] = TEXT
    meaning: ClassVar[str]
    together: ClassVar[bool] = False

    def values(self, excluded: ExcludedRows) -> Sequence[Any] | NDArray[Any]:
        """The values, TEXT as str."""
        raise NotImplementedError


class ExcludedRow(ExcludedColumn):
    """Where the row is in the input."""

    name = "row"
    dtype = np.int64
    meaning = "data row in the input, from 0, ascending"

    def values(self, excluded: ExcludedRows) -> NDArray[np.int64]:
        """The rows."""
        return excluded.row


class ExcludedRepertoireId(ExcludedColumn):
    """Whose the row is."""

    name = REPERTOIRE
    meaning = "as in `/sequences`"
    together = True

    def values(self, excluded: ExcludedRows) -> Sequence[str]:
        """The repertoires."""
        return excluded.repertoire_id


class ExcludedSequenceId(ExcludedColumn):
    """What the input calls the row."""

    name = "sequence_id"
    meaning = "its `sequence_id`"

    def values(self, excluded: ExcludedRows) -> Sequence[str]:
        """The ids."""
        return excluded.sequence_id


class ExcludedKind(ExcludedColumn):
    """Why the row is excluded: the kind."""

    name = "kind"
    meaning = "the kind of reason: see [section 2](#rows-that-are-excluded)"

    def values(self, excluded: ExcludedRows) -> Sequence[str]:
        """The names of the kinds."""
        names = [exclusion.kind.name.lower() for exclusion in excluded.exclusions]
        return [names[code] for code in excluded.code.tolist()]


class ExcludedDetails(ExcludedColumn):
    """Why the row is excluded: the details."""

    name = "details"
    meaning = "what the message names, such as the gene: a JSON object"

    def values(self, excluded: ExcludedRows) -> Sequence[str]:
        """JSON text."""
        texts = [exclusion.details_json() for exclusion in excluded.exclusions]
        return [texts[code] for code in excluded.code.tolist()]


@dataclass(frozen=True)
class Field:
    """A dataset of a small group."""

    name: str
    dtype: Any
    shape: str
    meaning: str


GROUPS: dict[str, tuple[Field, ...]] = {
    "pairs": (
        Field("v_call", TEXT, "P", "V allele of each V–J pair"),
        Field("j_call", TEXT, "P", "its J allele"),
        Field("offset", np.int64, "P + 1", "rows `offset[p]` to `offset[p + 1] − 1` of `/sequences` are of pair p"),
    ),
    "timings": (
        Field("pair_first", np.int64, "U", "the unit's V–J pairs: the first"),
        Field("pair_stop", np.int64, "U", "and one past the last"),
        Field("n_first", np.int64, "U", "the unit's n-lengths: the first"),
        Field("n_stop", np.int64, "U", "and one past the last"),
        Field("sequences", np.int64, "U", "sequences of the unit"),
        Field("tasks", np.int64, "U", "tasks of the unit, over all ranks"),
        Field("kernel_seconds", np.float64, "U", "time waiting for the kernel, maximum over ranks"),
        Field(
            "reduce_seconds", np.float64, "U",
            "time combining the ranks' values, waiting for other ranks included, maximum over ranks; the next piece is "
            "computed meanwhile",
        ),
        Field("wall_seconds", np.float64, "U", "time for the unit, root's storing included, maximum over ranks"),
        Field("rank_kernel_seconds", np.float64, "R", "each rank's sum over units; not in parts"),
        Field("rank_reduce_seconds", np.float64, "R", "likewise"),
    ),
    "repertoires": (
        Field(REPERTOIRE, TEXT, "Q", "[together](#together): the repertoires, in the order of the tables"),
        Field("rows", np.int64, "Q", "rows read of each"),
        Field("sequences", np.int64, "Q", "sequences counted of each"),
    ),
    "tables": (
        Field("path", TEXT, "T", "[together](#together): the tables, absolute paths"),
        Field("sha256", TEXT, "T", "SHA-256 of the file's bytes"),
        Field(REPERTOIRE, TEXT, "T", "the table's name: the repertoire of rows that do not name theirs"),
        Field("first_row", np.int64, "T", "its first data row: row r of the input is its row r − `first_row`"),
        Field("rows", np.int64, "T", "data rows of it"),
    ),
    "ranks": (
        Field("host", TEXT, "R", "where each rank ran"),
        Field("pid", TEXT, "R", "its process"),
        Field("hardware", TEXT, "R", "what its kernels ran on"),
        Field("software", TEXT, "R", "versions of what compiled and ran its kernels"),
    ),
}  # fmt: skip
"""The small groups, written at once."""


def sequence_columns(*, together: bool) -> list[SequenceColumn]:
    """The columns of /sequences, in the order of tables."""
    return [kind() for kind in choices(SequenceColumn).values() if together or not kind.together]


def excluded_columns(*, together: bool) -> list[ExcludedColumn]:
    """The columns of /excluded."""
    return [kind() for kind in choices(ExcludedColumn).values() if together or not kind.together]


def exported_columns() -> list[str]:
    """The columns of /sequences that `hpcvdj export` writes."""
    return [name for name, kind in choices(SequenceColumn).items() if kind.exported]


def _bytes(texts: Iterable[str]) -> NDArray[np.bytes_]:
    return np.array([text.encode() for text in texts], dtype=np.bytes_)


def text_type(width: int) -> np.dtype[Any]:
    """HDF5's type of TEXT of this width."""
    kind: np.dtype[Any] = h5py.string_dtype("utf-8", max(1, width))
    return kind


def as_text(values: Iterable[str | bytes]) -> NDArray[Any]:
    """Texts as an array of HDF5's type."""
    encoded = np.array([value if isinstance(value, bytes) else value.encode() for value in values], dtype=np.bytes_)
    return encoded.astype(text_type(encoded.dtype.itemsize))


def write_group(file: h5py.File, group: str, values: Mapping[str, Any]) -> None:
    """Write a small group; its declaration says which values there are.  Fields without a value are left out."""
    fields = {field.name: field for field in GROUPS[group]}
    for name, data in values.items():
        array = as_text(data) if fields[name].dtype is TEXT else np.asarray(data, dtype=fields[name].dtype)
        file.create_dataset(f"{group}/{name}", data=array)


def read_group(file: h5py.File, group: str) -> dict[str, NDArray[Any]]:
    """The values of a small group as arrays, TEXT as bytes; empty if the file does not have it."""
    if group not in file:
        return {}
    return {name: dataset[:] for name, dataset in file[group].items()}


def strings(values: NDArray[Any]) -> list[str]:
    """TEXT values as str."""
    return [value.decode() for value in values.tolist()]


def described() -> Iterator[tuple[str, str, str, str]]:
    """(dataset, type, shape, meaning) of every dataset, for the documentation."""
    for quantity in choices(Quantity).values():
        yield f"/{quantity.dataset}", np.dtype(quantity.dtype).name, f"[S, {quantity.axis}]", quantity.meaning
    for group, columns, axis in (
        ("sequences", choices(SequenceColumn).values(), "S"),
        ("excluded", choices(ExcludedColumn).values(), "X"),
    ):
        for column in columns:
            note = "; only [together](#together)" if column.together else ""
            yield f"/{group}/{column.name}", _type_name(column.dtype), f"[{axis}]", column.meaning + note
    for group, fields in GROUPS.items():
        for field in fields:
            yield f"/{group}/{field.name}", _type_name(field.dtype), f"[{field.shape}]", field.meaning


def _type_name(dtype: Any) -> str:
    return "text[w]" if dtype is TEXT else np.dtype(dtype).name


def markdown() -> str:
    """The table of datasets in docs/file_format.md."""
    lines = ["| dataset | type | shape | content |", "|---|---|---|---|"]
    return "\n".join(
        [*lines, *(f"| `{name}` | {kind} | {shape} | {text} |" for name, kind, shape, text in described())]
    )
