"""Which files may be written, files that appear only when they are complete, and locks."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hpcvdj.errors import InputError, MachineError, option

COPIED_BYTES = 1 << 24
"""Bytes of a file that are read and copied at a time."""

GZIP_LEVEL = 2
"""Level of ISA-L: a table takes a sixteenth of the time of zlib's level 6, and an eighth more bytes."""


@contextmanager
def atomic_path(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary path beside `target`.  The file becomes `target` if the block succeeds, and is removed if not.

    The temporary file exists, empty, when the block starts.  Raises InputError before the block if `target` exists
    (and `overwrite` is false) or cannot be written, and MachineError if writing fails, as on a full disk.
    """
    target = behind_links(target)
    require_writable(target, overwrite=overwrite)
    # A killed run leaves this file, and the next run takes it over.
    temporary = _beside(target)[0]
    with _exclusive(temporary, target) as descriptor:
        os.ftruncate(descriptor, 0)
        left = True
        try:
            yield temporary
            sync(temporary)
            os.replace(temporary, target)
            # From now on, a file of that name belongs to another run.
            left = False
            sync(target.parent)
        except OSError as error:
            raise write_failure(target, error) from None
        finally:
            if left:
                temporary.unlink(missing_ok=True)


def gzipped(stream: IO[bytes]) -> IO[bytes]:
    """Return a stream that compresses into `stream` with gzip.  Equal data give equal bytes: no name, no time."""
    try:
        from isal.igzip import IGzipFile as GzipFile
    except ImportError:  # a processor that ISA-L does not support
        from gzip import GzipFile  # type: ignore[assignment]
    return GzipFile("", "wb", GZIP_LEVEL, stream, mtime=0)  # type: ignore[no-untyped-call,return-value]


def behind_links(target: Path) -> Path:
    """Return the file that a symbolic link points to, so that the link stays, or the target itself if it is none."""
    device = target.exists() and not target.is_file()
    return Path(os.path.realpath(target)) if target.is_symlink() and not device else target


def sync(path: Path) -> None:
    """Make the content of a file, or the names in a folder, safe from a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


FULL = "the disk is full"


def write_failure(target: Path, error: OSError) -> MachineError:
    """Return the error to raise if `target` cannot be written."""
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return MachineError(f"{target}: {FULL}; free space, or write elsewhere")
    return MachineError(f"{target}: writing failed ({error})")


def require_text_name(path: Path) -> None:
    """Raise InputError unless a path is text: pyarrow cannot open other names, and results cannot record them."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise InputError(f"{shown}: the file name is not UTF-8; rename the file") from None


def _beside(target: Path) -> tuple[Path, Path, Path]:
    """Return the hidden files of a run that writes `target`: the unfinished file, the probe, the lock."""
    # The path "." has no `with_name`.
    part, probe, lock = (target.parent / f".{target.name}.{kind}" for kind in ("part", "probe", "lock"))
    return part, probe, lock


def require_distinct(target: Path, *inputs: Path) -> None:
    """Raise InputError if `target`, or a hidden file of the run that writes it, is an input, under any path."""
    for path in inputs:
        for output in (target, *_beside(target), *_beside(behind_links(target))):
            if output.exists() and path.exists() and output.samefile(path):
                raise InputError(f"{output}: is an input of this run; name another output file")


def require_apart(target: Path, *inputs: Path) -> None:
    """Raise InputError if a folder that a run writes is one of its `inputs`, has one, or is in one, under any path."""
    folder = target.resolve()
    for path in inputs:
        source = path.resolve()
        if folder == source or folder in source.parents or source in folder.parents:
            relation = "is" if folder == source else "has" if folder in source.parents else "is in"
            raise InputError(f"{target}: {relation} an input of this run ({path}); name another folder")


def require_writable(target: Path, *, overwrite: bool) -> None:
    """Raise InputError with the remedy unless a file may be written at `target`."""
    require_text_name(target)
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name a file")
    if target.exists() and not target.is_file():
        raise InputError(f"{target}: is not a regular file, and would be replaced by one; name a file")
    if target.exists() and not overwrite:
        raise InputError(f"{target}: exists already; give another name, or {option('overwrite', True)} to replace it")
    require_folder(target)
    part, probe, _ = _beside(behind_links(target))
    if part.is_symlink() or (part.exists() and not part.is_file()):
        raise InputError(f"{part}: is where {target.name} is written until it is complete; move it away")
    for hidden in (*_beside(target), *_beside(behind_links(target))):
        # No run makes hard links: the file belongs to somebody, and the run would empty or remove it.
        if hidden.is_file() and hidden.lstat().st_nlink > 1:
            raise InputError(
                f"{hidden}: is a hard link to another file, and {target.name} needs this name; move it away"
            )
    # A run that is killed here leaves this file, and the next run removes it.
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o666))
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror}); write elsewhere") from None


def require_folder(target: Path) -> None:
    """Raise InputError unless there is a folder for `target`."""
    if not target.parent.is_dir():
        raise InputError(f"{target.parent}: no such folder; create it first, or write elsewhere")


@contextmanager
def exclusive_lock(target: Path) -> Iterator[None]:
    """Keep other runs from writing `target` while the block runs.  Raises InputError if another run writes it.

    The lock is an flock on `.NAME.lock` beside the target, so it ends with its process.
    """
    path = _beside(target)[2]
    with _exclusive(path, target):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def _exclusive(path: Path, target: Path) -> Iterator[int]:
    """Yield a descriptor of the file `path`, locked while the block runs.  Errors are those of `exclusive_lock`."""
    try:
        descriptor = _locked(path)
    except BlockingIOError:
        raise InputError(f"{target}: another run is writing it; wait for that run, or give another name") from None
    except OSError as error:
        raise MachineError(
            f"{path}: cannot be locked ({error.strerror}), so another run could write the same result; remove that "
            "file, or write to a file system with locks"
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between the two calls, another run may have ended and removed the file.
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
