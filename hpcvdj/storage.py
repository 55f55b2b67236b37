"""Files that appear whole under their name or not at all."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import h5py

from hpcvdj.errors import InputError, MachineError


@contextmanager
def atomic_path(target: Path, *, overwrite: bool, temporary: Path | None = None) -> Iterator[Path]:
    """A temporary path beside `target` that becomes `target` when the block ends well, and vanishes if not.

    `temporary` may name it; it must be on the same file system.

    InputError before anything is done if the target exists (and `overwrite` is false) or cannot be written;
    MachineError if the disk fills up.
    """
    require_writable(target, overwrite=overwrite)
    temporary = temporary or target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise _write_fault(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, fill: Callable[[Path], object]) -> None:
    """A file that `fill` makes, safe on disk under its name or not there."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        fill(temporary)
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_text(path: Path) -> None:
    """InputError unless a path is text, which pyarrow opens and a result can name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise InputError(f"{shown}: the name is not UTF-8; rename it") from None


def require_apart(target: Path, *inputs: Path) -> None:
    """InputError if `target` is one of the `inputs`, by whatever path."""
    for path in inputs:
        if target.exists() and path.exists() and target.samefile(path):
            raise InputError(f"{target}: is an input of this run; name another file to write")


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Keep other runs from writing `target`; InputError if one does.  The lock ends with the process."""
    path = target.with_name(f".{target.name}.lock")
    try:
        stream = _locked(path)
    except BlockingIOError:
        raise InputError(f"{target}: another run is writing it; wait for its end, or give another name") from None
    except OSError:
        # No such folder, which the caller tells better, or a file system without locks.
        stream = None
    try:
        yield
    finally:
        if stream is not None:
            path.unlink(missing_ok=True)
            stream.close()


def _locked(path: Path) -> IO[str]:
    while True:
        stream = open(path, "w")  # noqa: SIM115 (held while the run lasts)
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another run may have ended, and removed the file, between the two calls.
            if path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                return stream
        except BaseException:
            stream.close()
            raise
        stream.close()


def require_writable(target: Path, *, overwrite: bool) -> None:
    """InputError with the remedy unless a file may be made at `target`."""
    require_text(target)
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name a file")
    if target.exists() and not target.is_file():
        raise InputError(f"{target}: is no plain file, which would be replaced; name a file")
    if target.exists() and not overwrite:
        raise InputError(f"{target}: exists already; give another name, or --overwrite to replace it")
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; make it first, or write elsewhere")
    probe = target.with_name(f".{target.name}.{os.getpid()}.probe")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror}); write elsewhere") from None


def _write_fault(target: Path, error: OSError) -> MachineError:
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return MachineError(f"{target}: the disk is full; nothing was left there: free space or write elsewhere")
    return MachineError(f"{target}: writing failed ({error}); nothing was left there")


class _SafeFile(io.FileIO):
    """The file under HDF5, which crashes at exit if it cannot write out what it holds.

    The first write that fails is kept in `fault`; it and the later ones go to memory, so that HDF5 reads what it wrote
    and closes in peace, and the writer can raise.
    """

    fault: OSError | None = None

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._lost: list[tuple[int, bytes]] = []

    def write(self, data: Any) -> int:
        """Write all of `data`, or note why not."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view) and self.fault is None:
            try:
                done += super().write(view[done:]) or 0
            except OSError as error:
                self.fault = error
        if done < len(view):
            self._lost.append((self.tell(), bytes(view[done:])))
            self.seek(len(view) - done, os.SEEK_CUR)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        """Read what was written, be it on disk or not."""
        if not self._lost:
            return super().readinto(buffer) or 0
        view = memoryview(buffer).cast("B")
        first = self.tell()
        found = super().readinto(view) or 0
        view[found:] = bytes(len(view) - found)
        for place, data in self._lost:
            low, high = max(place, first), min(place + len(data), first + len(view))
            if low < high:
                view[low - first : high - first] = data[low - place : high - place]
        self.seek(first + len(view))
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or note why not."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.fault = self.fault or error
            return size or 0

    def check(self) -> None:
        """Raise the first fault."""
        if self.fault is not None:
            raise self.fault


def write_provenance(file: h5py.File, attributes: dict[str, Any], ranks: list[dict[str, str]]) -> None:
    """Where a result comes from: attributes, lists and dicts as JSON text, and a text dataset per fact of the ranks."""
    for name, value in attributes.items():
        file.attrs[name] = json.dumps(value) if isinstance(value, dict | list) else value
    group = file.create_group("ranks")
    for key in ranks[0]:
        group.create_dataset(key, data=[facts[key] for facts in ranks], dtype=h5py.string_dtype())


def open_result(path: Path, command: str, form: str, version: int) -> h5py.File:
    """A result file that `command` wrote, open for reading.

    InputError if it is not there, no HDF5, or not of the format `form` in `version` or one before.
    """
    if path.is_dir():
        found = sorted(path.glob("*.h5"))
        inside = f"; it holds {len(found):,} results such as {found[0]}" if found else ""
        raise InputError(f"{path}: is a folder; name a result file{inside}")
    if not path.exists() and path.with_name(path.name + ".checkpoint").is_dir():
        raise InputError(f"{path}: is not complete; `{command}` with --resume goes on with it")
    if not path.is_file():
        raise InputError(f"{path}: no such result file; `{command}` writes one")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(f"{path}: not a readable HDF5 file ({error}); run `{command}` again") from None
    found, number = file.attrs.get("format"), int(file.attrs.get("format_version", 0))
    if found == form and number <= version:
        return file
    file.close()
    if found != form:
        raise InputError(f"{path}: its format is {found!r}, not {form!r}; give a file that `{command}` wrote")
    raise InputError(
        f"{path}: format {form} version {number} is newer than this hpcvdj reads ({version}); update hpcvdj"
    )


class AtomicHdf5:
    """An HDF5 file that becomes `target` when the block ends well.  Use as a context manager, or by its methods.

    InputError and MachineError as `atomic_path`.
    """

    def __init__(self, target: Path, *, overwrite: bool, temporary: Path | None = None) -> None:
        self._atomic = atomic_path(target, overwrite=overwrite, temporary=temporary)

    def __enter__(self) -> h5py.File:
        path = self._atomic.__enter__()
        try:
            self._raw = _SafeFile(path, "w+b")
            self._file = h5py.File(self._raw, "w")
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self._file

    def check(self) -> None:
        """Raise the first fault of writing."""
        self._raw.check()

    def sync(self) -> None:
        """Have what was written on disk: the end is then not long in coming."""
        self._file.flush()
        os.fsync(self._raw.fileno())
        self._raw.check()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if hasattr(self, "_file"):
                self._file.close()
                self._raw.close()
                if kind is None:
                    self._raw.check()
        except OSError as error:
            kind, value, trace = type(error), error, error.__traceback__
            self._atomic.__exit__(kind, value, trace)
            raise
        self._atomic.__exit__(kind, value, trace)
