"""Which files may be written, files that appear whole or not at all, and locks."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from hpcvdj.errors import InputError, MachineError, option

COPIED_BYTES = 1 << 24
"""So many bytes of a file are read and copied at a time."""

GZIP_LEVEL = 2
"""Of ISA-L: a table takes a sixteenth of the time of zlib's level 6, and an eighth more bytes."""


@contextmanager
def atomic_path(target: Path, *, overwrite: bool, temporary: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path beside `target`; it becomes `target` if the block succeeds and is removed if not.

    temporary  the temporary path, if it should have a given name; it must be on the same file system

    The temporary file exists, empty, when the block starts.  InputError before that if `target` exists (and
    `overwrite` is false) or cannot be written; MachineError if writing fails, as on a full disk.
    """
    target = behind_links(target)
    require_writable(target, overwrite=overwrite)
    with ExitStack() as stack:
        if temporary is None:
            # A killed run leaves this file, and the next one takes it over.
            temporary = _beside(target)[0]
            os.ftruncate(stack.enter_context(_exclusive(temporary, target)), 0)
        else:
            temporary.unlink(missing_ok=True)
            # This does not follow a symbolic link that somebody else put there.
            temporary.touch(exist_ok=False)
        yield from _written(target, temporary)


def _written(target: Path, temporary: Path) -> Iterator[Path]:
    """Yield `temporary`, which becomes `target`."""
    left = True
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, target)
        # From now on a file of that name is another run's.
        left = False
        sync(target.parent)
    except OSError as error:
        raise write_failure(target, error) from None
    finally:
        if left:
            temporary.unlink(missing_ok=True)


def gzipped(stream: IO[bytes]) -> IO[bytes]:
    """A stream into `stream` that packs what it gets with gzip, without a file name or a time: its bytes are equal."""
    try:
        from isal.igzip import IGzipFile as GzipFile
    except ImportError:  # a processor that ISA-L does not support
        from gzip import GzipFile  # type: ignore[assignment]
    return GzipFile("", "wb", GZIP_LEVEL, stream, mtime=0)  # type: ignore[no-untyped-call,return-value]


def behind_links(target: Path) -> Path:
    """The file that a target is if it is a symbolic link to one, which stays; else the target itself."""
    device = target.exists() and not target.is_file()
    return Path(os.path.realpath(target)) if target.is_symlink() and not device else target


def sync(path: Path) -> None:
    """Make what was written to a file, or the names in a folder, safe from a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_failure(target: Path, error: OSError) -> MachineError:
    """The error to raise for a failure to write `target`, which is then what it was before."""
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return MachineError(f"{target}: the disk is full; free space, or write elsewhere")
    return MachineError(f"{target}: writing failed ({error})")


def require_text_name(path: Path) -> None:
    """Raise InputError unless a path is text: pyarrow cannot open other names, and results cannot record them."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise InputError(f"{shown}: the file name is not UTF-8; rename the file") from None


def _beside(target: Path) -> tuple[Path, Path, Path]:
    """The hidden files of a run that writes `target`: the unfinished file, the probe, the lock."""
    # Not `with_name`, which "." does not have.
    part, probe, lock = (target.parent / f".{target.name}.{kind}" for kind in ("part", "probe", "lock"))
    return part, probe, lock


def require_distinct(target: Path, *inputs: Path) -> None:
    """Raise InputError if `target`, or a hidden file of the run that writes it, is an input, under any path."""
    for path in inputs:
        for own in (target, *_beside(target), *_beside(behind_links(target))):
            if own.exists() and path.exists() and own.samefile(path):
                raise InputError(f"{own}: is an input of this run; name another output file")


def require_apart(target: Path, *inputs: Path) -> None:
    """Raise InputError if a folder that a run writes is one of its `inputs`, has one, or is in one, under any path."""
    own = target.resolve()
    for path in inputs:
        given = path.resolve()
        if own == given or own in given.parents or given in own.parents:
            relation = "is" if own == given else "has" if own in given.parents else "is in"
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
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; create it first, or write elsewhere")
    part, probe, _ = _beside(behind_links(target))
    if part.is_symlink() or (part.exists() and not part.is_file()):
        raise InputError(f"{part}: is where {target.name} is written until it is complete; move it away")
    for own in (*_beside(target), *_beside(behind_links(target))):
        # No run makes such a file: it is somebody's, and would be emptied or removed.
        if own.is_file() and own.lstat().st_nlink > 1:
            raise InputError(f"{own}: is a hard link to another file, and {target.name} needs this name; move it away")
    # A run that is killed here leaves this file, and the next one removes it.
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o666))
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror}); write elsewhere") from None


@contextmanager
def exclusive_lock(target: Path) -> Iterator[None]:
    """Keep other runs from writing `target` while the block runs; InputError if another run writes it.

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
    """A descriptor of the file `path`, which no other run has while the block runs; errors as of `exclusive_lock`."""
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
            # Another run may have ended, and removed the file, between the two calls.
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
