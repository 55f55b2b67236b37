"""Source files as bytes and text: plain or gzip, told by content."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from hpcvdj.errors import InputError

_GZIP = b"\x1f\x8b"


def bytes_of(path: Path) -> bytes:
    """A file's bytes, unpacked if it is gzip; InputError if it cannot be read."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; name a FASTA file, a GermlineSet JSON or a model folder") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({error}); copy it again") from None


def text_of(path: Path) -> str:
    """A file's text."""
    try:
        return bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; save it as such") from None
