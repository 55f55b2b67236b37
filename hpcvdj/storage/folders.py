"""Folders that appear whole or not at all, and are replaced only if all that is in them is hpcvdj's.

The file `MARK` in a folder names the files that hpcvdj wrote there, by their SHA-256.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from hpcvdj.errors import InputError, few, option
from hpcvdj.storage.files import exclusive_lock, require_apart, require_text_name, sync, write_failure
from hpcvdj.storage.inputs import file_digest
from hpcvdj.storage.opening import MISREAD

MARK = ".hpcvdj.json"
_FORMAT = "hpcvdj-folder"
_REMEDY = "move it away, or give another name"
_READERS = 8
"""Files of a folder that are read at the same time."""


@contextmanager
def exclusive_folder(target: Path, *inputs: Path, overwrite: bool, resume: bool = False) -> Iterator[None]:
    """Keep other runs from writing the folder `target` while the block runs, in which `atomic_folder` may write it.

    inputs     files and folders that must not be the folder, be in it, or have it
    overwrite  a folder that hpcvdj wrote, and in which nothing else is, may be replaced
    resume     it may be there, and stay

    InputError if the folder may not be written.  What a run left that was killed while it replaced the folder is put
    back first.
    """
    require_text_name(target)
    if not target.parent.is_dir():
        raise InputError(f"{target.parent}: no such folder; create it first, or write elsewhere")
    require_apart(target, *inputs)
    with exclusive_lock(target):
        _recover(target)
        _discard(_beside(target)[0])
        if not (resume and not overwrite):
            require_replaceable(target, overwrite=overwrite)
        yield


@contextmanager
def atomic_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a new folder beside `target`; it becomes `target` if the block succeeds and is removed if not.

    To be called within `exclusive_folder`; errors as of that, and MachineError if writing fails.
    """
    temporary, old = _beside(target)
    try:
        _discard(temporary)
        temporary.mkdir()
        try:
            _mark(temporary, None)
            yield temporary
            mark_written(temporary)
            for path in (*temporary.iterdir(), temporary):
                sync(path)
            # It may have changed since the run began.
            require_replaceable(target, overwrite=overwrite)
            if target.exists():
                target.rename(old)
            try:
                temporary.rename(target)
            except OSError:
                _recover(target)
                raise
            sync(target.parent)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise write_failure(target, error) from None


def require_unchanged_folder(folder: Path) -> None:
    """Raise InputError if a file that hpcvdj wrote in a folder is missing or changed."""
    try:
        files = _recorded(folder) or {}
    except MISREAD:
        # Older versions made no mark.
        return
    changed = _changed({folder / name: digest for name, digest in files.items()})
    if changed:
        raise InputError(
            f"{folder}: {few(changed)} changed since hpcvdj wrote it; move the folder away, and run without "
            f"{option('resume', True)}"
        )


def mark_written(folder: Path, known: Mapping[str, str] = MappingProxyType({})) -> str:
    """Record the files of a folder that `atomic_folder` yields, once all are written; returns its `folder_digest`.

    known  the SHA-256 of files whose bytes need not be read again
    """
    files = _recorded(folder)
    if files is None:
        files = {path.name: known.get(path.name) or file_digest(path) for path in _files(folder)}
        _mark(folder, files)
    return _digest_of(files)


def folder_digest(folder: Path) -> str:
    """SHA-256 of the names of a folder's files and of what is in them."""
    return _digest_of({path.name: file_digest(path) for path in _files(folder)})


def _digest_of(files: Mapping[str, str]) -> str:
    lines = [f"{digest}  {name}\n" for name, digest in files.items()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _beside(target: Path) -> tuple[Path, Path]:
    """Where a folder is written, and where the old one is while the new one gets its name."""
    return target.parent / f".{target.name}.part", target.parent / f".{target.name}.old"


def _recover(target: Path) -> None:
    """Put back the old folder if a run was killed, or failed, between the two renames; InputError if it is foreign."""
    _, old = _beside(target)
    if old.exists() and not target.exists():
        _require_own(old)
        old.rename(target)
    _discard(old)


def _discard(folder: Path) -> None:
    """Remove a folder that an earlier run left; InputError if it is foreign."""
    if folder.exists() or folder.is_symlink():
        _require_own(folder, unfinished=True)
        shutil.rmtree(folder)


def require_replaceable(target: Path, *, overwrite: bool) -> None:
    """Raise InputError if there is a folder `target`, unless hpcvdj wrote it and it may be replaced."""
    if target.exists() or target.is_symlink():
        if not overwrite:
            raise InputError(
                f"{target}: exists already; give another name, or {option('overwrite', True)} to replace it"
            )
        _require_own(target)


def _require_own(folder: Path, *, unfinished: bool = False) -> None:
    """Raise InputError unless hpcvdj wrote a folder, and nothing in it was changed or added since.

    unfinished  a folder whose run was killed while it wrote is also hpcvdj's
    """
    if folder.is_symlink() or not folder.is_dir():
        raise InputError(f"{folder}: exists, and is not a folder that hpcvdj wrote; {_REMEDY}")
    found = _files(folder)
    try:
        files = _recorded(folder)
    except MISREAD:
        # A run may have been killed before it made its mark.
        if unfinished and not found:
            return
        raise InputError(f"{folder}: exists, and is not a folder that hpcvdj wrote; {_REMEDY}") from None
    if files is None and unfinished:
        return
    foreign = _changed({path: (files or {}).get(path.name) for path in found})
    if foreign:
        raise InputError(f"{folder}: has files that hpcvdj did not write there ({few(foreign)}); {_REMEDY}")


def _changed(files: Mapping[Path, str | None]) -> list[str]:
    """The names of files that do not have these SHA-256."""
    with ThreadPoolExecutor(_READERS) as pool:
        return [path.name for path, same in zip(files, pool.map(_is, files, files.values()), strict=True) if not same]


def _is(path: Path, digest: str | None) -> bool:
    """Whether a regular file has this SHA-256."""
    return digest is not None and path.is_file() and not path.is_symlink() and file_digest(path) == digest


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != MARK)


def _mark(folder: Path, files: dict[str, str] | None) -> None:
    """Say that a folder is hpcvdj's; `files` are its files by SHA-256, None while they are written."""
    (folder / MARK).write_text(json.dumps({"format": _FORMAT, "files": files}, indent=1, ensure_ascii=False) + "\n")


def _recorded(folder: Path) -> dict[str, str] | None:
    """What `_mark` wrote; one of `MISREAD` if it did not."""
    record = json.loads((folder / MARK).read_text())
    if record["format"] != _FORMAT:
        raise ValueError("it is of another program")
    return None if record["files"] is None else dict(record["files"])
