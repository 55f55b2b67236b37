"""Read FASTA files, plain or compressed."""

from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

from hpcvdj.errors import InputError, naming
from hpcvdj.kernels.kmers.sequences import SequenceSet, sequence_set
from hpcvdj.repertoires.readers.reader import first_line
from hpcvdj.storage.inputs import DAMAGE, MOST_EXPANDED, TEXT_BYTES, LimitedStream, require_regular

_RECORDS = 1 << 14
"""Records between two calls of `between`."""


def fasta_name(name: str) -> str:
    """Return the file name without the suffixes of FASTA files.

    >>> fasta_name("genes.fa.gz")
    'genes'
    """
    for suffix in (".gz", ".bz2", ".xz", ".zst", ".fasta", ".fa", ".fna"):
        name = name.removesuffix(suffix) or name
    return name


def read_fasta(path: Path, between: Callable[[], None] = lambda: None) -> SequenceSet:
    """Read a FASTA file (plain, gzip, bzip2, xz or zstd).  The name of a sequence is its header up to the first blank.

    Raise InputError if the file cannot be read, has no sequence, or has two sequences of the same name.
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
        raise InputError(f"{path}: not a readable FASTA file ({first_line(error)}); a record begins with >") from None
    if not texts:
        raise InputError(f"{path}: has no sequences; give a file with at least one")
    with naming(str(path)):
        return sequence_set(texts, names)


def begins_as_fasta(path: Path) -> bool:
    """Return whether a file begins like FASTA or is empty.  Raise InputError if it cannot be read."""
    from xopen import xopen

    try:
        with xopen(path, "rb", threads=0) as stream:
            head: bytes = stream.read(4096).lstrip()
    except DAMAGE as error:
        raise InputError(f"{path}: cannot be read ({first_line(error)}); copy or compress it again") from None
    return head.startswith(b">") or not head
