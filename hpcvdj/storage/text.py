"""Small text files, read whole: plain or gzip, whatever their names end in."""

import gzip
import zlib
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.storage.files import require_text_name

_GZIP = b"\x1f\x8b"


def read_text(path: Path, what: str, remedy: str) -> str:
    """The text of a UTF-8 file, without byte order mark and with line ends as they are.

    InputError, which calls the file `what`: with the `remedy` if the file does not exist; if it is not a regular file
    (a pipe cannot be read twice), or if it is damaged.
    """
    require_text_name(path)
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: not a regular file; name a {what} on disk")
        data = path.read_bytes()
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what}; {remedy}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a readable {what} (not UTF-8 text); save it as UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a readable {what} ({error}); copy it again") from None
