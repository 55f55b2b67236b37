"""FASTA files, plain or compressed."""

from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import SequenceSet, sequence_set
from hpcvdj.storage.inputs import DAMAGE, MOST_EXPANDED, TEXT_BYTES, LimitedStream, require_regular

_HEAD_BYTES = 4096
_RECORDS = 1 << 14

_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".fasta", ".fa", ".fna")
"""Of FASTA files, the outer ones first."""


def fasta_name(name: str) -> str:
    """A file name without the suffixes of FASTA files.

    >>> fasta_name("genes.fa.gz")
    'genes'
    """
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix) or name
    return name


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
    if not texts:
        raise InputError(f"{path}: has no sequences; give a file with at least one")
    try:
        return sequence_set(texts, names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def begins_as_fasta(path: Path) -> bool:
    """Whether a file begins like FASTA, or is empty; InputError if it cannot be read."""
    from xopen import xopen

    try:
        with xopen(path, "rb", threads=0) as stream:
            head: bytes = stream.read(_HEAD_BYTES).lstrip()
    except DAMAGE as error:
        raise InputError(f"{path}: cannot be read ({_first_line(error)}); copy or compress it again") from None
    return head.startswith(b">") or not head


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
