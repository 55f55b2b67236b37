"""Reading the sequences to compare: from FASTA or from the junctions of an AIRR table."""

import logging
from collections.abc import Callable, Iterable, Sequence
from io import BufferedReader
from pathlib import Path

import pyarrow as pa

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import SequenceSet, sequence_set
from hpcvdj.repertoires.readers import open_table, read_batches
from hpcvdj.storage.inputs import DAMAGE, MOST_EXPANDED, TEXT_BYTES, LimitedStream, file_digest, require_regular

log = logging.getLogger(__name__)

_HEAD_BYTES = 4096
_RECORDS = 1 << 14


def read_sequences(
    path: str | Path, field: str = "junction", between: Callable[[], None] = lambda: None
) -> SequenceSet:
    """The sequences of a FASTA file, which begins with >, or of a table: see `read_fasta` and `read_junctions`.

    between  called every so often
    """
    path = Path(path)
    require_regular(path, "file", "give a FASTA file or an AIRR table")
    return read_fasta(path, between) if _begins_as_fasta(path) else read_junctions(path, field, between)


def read_fasta(path: Path, between: Callable[[], None] = lambda: None) -> SequenceSet:
    """The sequences of a FASTA file (plain, gzip, bzip2, xz or zstd); a name is the header up to the first blank.

    InputError if the file cannot be read, has no sequence, or has two of one name.
    """
    import dnaio
    from xopen import xopen

    require_regular(path, "file", "give a FASTA file or an AIRR table")
    names, texts = [], []
    try:
        limit = max(TEXT_BYTES, MOST_EXPANDED * path.stat().st_size)
        with (
            xopen(path, "rb", threads=0) as stream,
            dnaio.open(BufferedReader(LimitedStream(stream, limit)), fileformat="fasta") as records,
        ):
            for record in records:
                names.append(record.name.partition(" ")[0].partition("\t")[0])
                texts.append(record.sequence)
                if len(texts) % _RECORDS == 0:
                    between()
    except (dnaio.FileFormatError, *DAMAGE) as error:  # type: ignore[misc]
        raise InputError(f"{path}: not a readable FASTA file ({_first_line(error)}); a record begins with >") from None
    return _checked(path, texts, names)


def read_junctions(path: Path, field: str = "junction", between: Callable[[], None] = lambda: None) -> SequenceSet:
    """The distinct sequences of an AIRR table's column `field` (TSV, plain or gzip, or Parquet).

    A sequence has the sequence_id of its first row; empty sequences are left out.  InputError as `read_batches` raises
    it, or if no sequence is left.
    """
    return distinct(path, read_batches(path, ("sequence_id", field)), between)


def distinct(
    place: Path | str, batches: Iterable[pa.RecordBatch], between: Callable[[], None] = lambda: None
) -> SequenceSet:
    """The distinct sequences of batches of (sequence_id, sequence) of a table, which messages call `place`."""
    names, texts = first_rows(batches, 2, between)
    return _checked(place, texts, names)


def first_rows(
    batches: Iterable[pa.RecordBatch], columns: int, between: Callable[[], None] = lambda: None
) -> list[list[str]]:
    """The columns of the first row of each distinct text of the last one; rows without a text are left out."""
    first: dict[str, tuple[str, ...]] = {}
    for batch in batches:
        for *others, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if text:
                first.setdefault(text.upper(), (*others, text.upper()))
        between()
    return [[row[k] for row in first.values()] for k in range(columns)]


def genes_of(compared: tuple[Path, str, str], names: Sequence[str], moved: Path | None = None) -> dict[str, list[str]]:
    """v_call and j_call, where the compared table has them, and the sequence of each compared junction.

    compared  as of `MotifResult.source`
    names     of the sequences
    moved     where the table is now

    Empty for FASTA; and, with a warning, if the table is not there any more.  InputError if it is another one.
    """
    path, digest, field = compared
    if moved is None and not path.is_file():
        if field:
            log.warning("%s: not there, so clusters have no genes and no consensus; --sequences says where it is", path)
        return {}
    path = moved or path
    if file_digest(path) != digest:
        raise InputError(f"{path}: is not what was compared (its SHA-256 differs); name that file with --sequences")
    if _begins_as_fasta(path):
        return {}
    has = open_table(path).columns
    columns = ["sequence_id", *(name for name in ("v_call", "j_call") if name in has), field]
    rows = dict(zip(columns, first_rows(read_batches(path, columns), len(columns)), strict=True))
    if rows.pop("sequence_id") != list(names):
        raise InputError(f"{path}: does not have the sequences that were compared; name their table with --sequences")
    return rows


def _checked(place: Path | str, texts: list[str], names: list[str]) -> SequenceSet:
    if not texts:
        raise InputError(f"{place}: has no sequences; give a file with at least one")
    try:
        return sequence_set(texts, names)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _begins_as_fasta(path: Path) -> bool:
    from xopen import xopen

    try:
        with xopen(path, "rb", threads=0) as stream:
            head: bytes = stream.read(_HEAD_BYTES).lstrip()
    except DAMAGE as error:
        raise InputError(f"{path}: cannot be read ({_first_line(error)}); copy or compress it again") from None
    return head.startswith(b">") or not head


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
