"""Input files: regular files of limited unpacked size, which do not change while a run reads them."""

import hashlib
import io
import os
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

from hpcvdj.errors import InputError
from hpcvdj.storage.files import require_text_name

try:
    from isal import igzip as gzip
    from isal import isal_zlib
except ImportError:  # a processor that ISA-L does not support
    import gzip  # type: ignore[no-redef]
    import zlib as isal_zlib  # type: ignore[no-redef]

DAMAGE: tuple[type[Exception], ...] = OSError, EOFError, ValueError, zlib.error, isal_zlib.error  # type: ignore[assignment]
"""What reading a damaged file raises."""

State = tuple[int, ...]
"""The state of a file: device, inode, size, and the times of the last change of its data and of its inode.

The state changes when the file is written or replaced.
"""

PACKED = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
"""The first bytes of packed files."""

_DIGESTS: dict[State, str] = {}
"""The SHA-256 of files, by their state."""

_AHEAD: dict[State, Future[str]] = {}
"""The SHA-256 of files that `digest_ahead` reads, by their state before, and of those that were just written."""

_DIGESTED_BESIDE = 1 << 16
"""Bytes from which on another thread takes their digest: for fewer, asking it takes longer."""

_TICKS_NS = 2 * 10**9
"""Nanoseconds in which a file can change twice without a new time of change: some file systems count in steps of two
seconds."""

TEXT_BYTES = 64 << 20
"""The most unpacked bytes of a text file that is read at once, such as a germline table."""

MOST_EXPANDED = 50
"""The most times by which a compressed file of sequences may grow when it is unpacked: DNA packs to a quarter."""


def file_state(path: Path) -> State | None:
    """Return the state of a file, or None if the file cannot be examined."""
    try:
        facts = path.stat()
    except OSError:
        return None
    # Unlike the time of the data, nobody can set back the time of the inode's last change.
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def require_unchanged(path: Path, state: State | None) -> None:
    """Raise InputError if a file is not what it was in `state`."""
    if file_state(path) != state:
        raise changed(path)


def changed(path: Path) -> InputError:
    """Return the error to raise for a file that changed while it was read."""
    return InputError(f"{path}: changed while it was read; start again when it is complete")


def digest_ahead(paths: Sequence[Path]) -> None:
    """Begin to read files in another thread, for their `file_digest`, in their order.

    Files that just changed, and what is no regular file, are not read.
    """
    begun = []
    for path in paths:
        # Unlike Path.is_file, this never raises an error.
        state = file_state(path) if os.path.isfile(path) else None  # noqa: PTH113
        known = state is None or state in _DIGESTS or state in _AHEAD
        if state is not None and not known and time.time_ns() - state[-1] > _TICKS_NS:
            _AHEAD[state] = Future()
            begun.append((path, _AHEAD[state]))

    def read() -> None:
        for path, future in begun:
            try:
                future.set_result(_digest(path))
            except BaseException as error:
                future.set_exception(error)

    if begun:
        Thread(target=read, daemon=True).start()


class DigestedFile(io.BufferedWriter):
    """A new file that is written from its beginning to its end, and whose SHA-256 `file_digest` then knows.

    Another thread takes the digest of large data, which must not change after they are written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self._path, self._digest = path, hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)
        self._taking = Future[None]()
        self._taking.set_result(None)
        self._is_whole = True

    def write(self, data: Any) -> int:
        self._is_whole = False
        self._taking.result()
        if len(data) >= _DIGESTED_BESIDE:
            self._taking = self._thread.submit(self._digest.update, data)
        else:
            self._digest.update(data)
        written = super().write(data)
        self._is_whole = True
        return written

    def seekable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = 0) -> int:
        raise io.UnsupportedOperation("seek")

    def truncate(self, size: int | None = None) -> int:
        raise io.UnsupportedOperation("truncate")

    def close(self) -> None:
        if self.closed:
            return
        self._thread.shutdown()
        super().close()
        state = file_state(self._path)
        if state is not None and self._is_whole and self._taking.exception() is None:
            _AHEAD[state] = Future()
            _AHEAD[state].set_result(self._digest.hexdigest())


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_digest(path: Path, state: State | None = None) -> str:
    """Return the SHA-256 of a file's bytes, hexadecimal.

    A file is read only once, as long as nobody writes to it.  Raises InputError if the file is not in the `state`, if
    one is given, or changes.
    """
    state = state or file_state(path)
    digest = _DIGESTS.get(state) if state is not None else None
    if digest is None:
        begun = time.time_ns()
        ahead = _AHEAD.pop(state, None) if state is not None else None
        digest = ahead.result() if ahead is not None else _digest(path)
        if state is not None and begun - state[-1] > _TICKS_NS:
            _DIGESTS[state] = digest
    require_unchanged(path, state)
    return digest


def require_regular(path: Path, what: str, remedy: str) -> None:
    """Raise InputError unless a file is a regular file: hpcvdj reads files more than once, and pipes end.

    what    what the message calls the file
    remedy  what the message advises if the file does not exist
    """
    require_text_name(path.absolute())
    try:
        if path.is_file():
            return
        if path.exists():
            kind = "is a folder" if path.is_dir() else "not a regular file"
            raise InputError(f"{path}: {kind}; name a {what} on disk")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    raise InputError(f"{path}: no such {what}; {remedy}")


class LimitedStream(io.RawIOBase):
    """A binary stream of at most `limit` bytes; reading more raises ValueError, which names the limit."""

    def __init__(self, stream: Any, limit: int) -> None:
        super().__init__()
        self._stream, self._limit, self._left = stream, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"more than {self._limit >> 20:,} MiB once it is unpacked; unpack it and look at it")
        buffer[: len(data)] = data
        return len(data)


def packing(path: Path) -> str | None:
    """Return how a file is packed, by its first bytes: `gzip`, `zstd`, or None."""
    with open(path, "rb") as stream:
        head = stream.read(4)
    return next((name for name, magic in PACKED.items() if head.startswith(magic)), None)


def unpacked(path: Path) -> Any:
    """Open a plain, gzip or zstd file as a binary stream.  Reading a damaged file raises one of `DAMAGE`."""
    packed = packing(path)
    if packed == "zstd":
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(str(path), "zstd"))
    return gzip.open(path, "rb") if packed else open(path, "rb")  # type: ignore[no-untyped-call]


def read_text(path: Path, what: str, remedy: str) -> str:
    """Return the text of a UTF-8 file, plain or gzip, without byte order mark and with its line ends.

    what    what error messages call the file
    remedy  what the message advises if the file does not exist

    Raises InputError if the file does not exist, is not a regular file, is damaged, changes while it is read, or has
    more than `TEXT_BYTES`.
    """
    require_regular(path, what, remedy)
    state = file_state(path)
    try:
        with unpacked(path) as stream:
            data = LimitedStream(stream, TEXT_BYTES).readall() or b""
        require_unchanged(path, state)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a readable {what} (not UTF-8 text); save it as UTF-8") from None
    except DAMAGE as error:
        raise InputError(f"{path}: not a readable {what} ({error}); copy it again") from None
