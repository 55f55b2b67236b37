"""Folders that appear only when they are complete.  A run replaces a folder only if hpcvdj wrote all that is in it.

The file `MARK` in a folder lists the files that hpcvdj wrote there, with their SHA-256.
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
from hpcvdj.storage.damage import MISREAD
from hpcvdj.storage.files import exclusive_lock, require_apart, require_folder, require_text_name, sync, write_failure
from hpcvdj.storage.inputs import file_digest

MARK = ".hpcvdj.json"
_FORMAT = "hpcvdj-folder"
_REMEDY = "move it away, or give another name"


def make_folder(folder: Path, remedy: str = "write elsewhere") -> None:
    """Make a folder and those above it, unless it exists.  Raise InputError, with the remedy, if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); {remedy}") from None


@contextmanager
def exclusive_folder(target: Path, *inputs: Path, overwrite: bool, resume: bool = False) -> Iterator[None]:
    """Keep other runs from writing the folder `target` while the block runs.  The block may call `atomic_folder`.

    inputs     files and folders that must not be the folder, be in it, or contain it
    overwrite  allow to replace a folder that hpcvdj wrote and that contains nothing else
    resume     allow the folder to exist, and to stay

    If a killed run left the folder half replaced, the old folder is put back first.  Raises InputError if the folder
    may not be written.
    """
    require_text_name(target)
    require_folder(target)
    require_apart(target, *inputs)
    with exclusive_lock(target):
        _recover(target)
        _discard(_beside(target)[0])
        if overwrite or not resume:
            require_replaceable(target, overwrite=overwrite)
        yield


@contextmanager
def atomic_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a new folder beside `target`.  The folder becomes `target` if the block succeeds, and is removed if not.

    Call it within `exclusive_folder`.  Raises the errors of that function, and MachineError if writing fails.
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
            # The folder may have changed since the run began.
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


@contextmanager
def parts_beside(target: Path) -> Iterator[Path]:
    """Yield a hidden folder beside `target` for its parts; call it while `exclusive_lock` keeps other runs away.

    A killed run leaves this folder, and the next run replaces it.  Raises MachineError if the folder cannot be made.
    """
    folder = target.with_name(f".{target.name}.parts")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
    except OSError as error:
        raise write_failure(target, error) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def require_unchanged_folder(folder: Path) -> None:
    """Raise InputError if a file that hpcvdj wrote in a folder is missing or changed."""
    try:
        files = _recorded(folder) or {}
    except MISREAD:
        # Older versions wrote no mark.
        return
    changed = _changed({folder / name: digest for name, digest in files.items()})
    if changed:
        raise InputError(
            f"{folder}: {few(changed)} changed since hpcvdj wrote it; move the folder away, and run without "
            f"{option('resume', True)}"
        )


def mark_written(folder: Path, digests: Mapping[str, str] = MappingProxyType({})) -> str:
    """Record the complete files of a folder of `atomic_folder`, and return its `folder_digest`.

    digests  the SHA-256 of files that need not be read again, by name
    """
    files = _recorded(folder)
    if files is None:
        files = {path.name: digests.get(path.name) or file_digest(path) for path in _files(folder)}
        _mark(folder, files)
    return _digest_of(files)


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and the content of a folder's files."""
    return _digest_of({path.name: file_digest(path) for path in _files(folder)})


def _digest_of(files: Mapping[str, str]) -> str:
    lines = [f"{digest}  {name}\n" for name, digest in files.items()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _beside(target: Path) -> tuple[Path, Path]:
    """Return where a run writes a folder, and where it keeps the old one until the new one has its name."""
    return target.parent / f".{target.name}.part", target.parent / f".{target.name}.old"


def _recover(target: Path) -> None:
    """Put back the old folder if a run ended between the two renames.  Raise InputError if hpcvdj did not write it."""
    _, old = _beside(target)
    if old.exists() and not target.exists():
        _require_hpcvdj(old)
        old.rename(target)
    _discard(old)


def _discard(folder: Path) -> None:
    """Remove a folder that an earlier run left.  Raise InputError if hpcvdj did not write it."""
    if folder.exists() or folder.is_symlink():
        _require_hpcvdj(folder, unfinished=True)
        shutil.rmtree(folder)


def require_replaceable(target: Path, *, overwrite: bool) -> None:
    """Raise InputError if there is a folder `target`, unless hpcvdj wrote it and it may be replaced."""
    if target.exists() or target.is_symlink():
        if not overwrite:
            raise InputError(
                f"{target}: exists already; give another name, or {option('overwrite', True)} to replace it"
            )
        _require_hpcvdj(target)


def _require_hpcvdj(folder: Path, *, unfinished: bool = False) -> None:
    """Raise InputError unless hpcvdj wrote a folder, and nothing in it was changed or added since.

    unfinished  accept also the folder of a run that was killed while it wrote
    """
    if folder.is_symlink() or not folder.is_dir():
        raise InputError(f"{folder}: exists, and is not a folder that hpcvdj wrote; {_REMEDY}")
    present = _files(folder)
    try:
        files = _recorded(folder)
    except MISREAD:
        # A run may have been killed before it wrote its mark.
        if unfinished and not present:
            return
        raise InputError(f"{folder}: exists, and is not a folder that hpcvdj wrote; {_REMEDY}") from None
    if files is None and unfinished:
        return
    foreign = _changed({path: (files or {}).get(path.name) for path in present})
    if foreign:
        raise InputError(f"{folder}: has files that hpcvdj did not write there ({few(foreign)}); {_REMEDY}")


def _changed(files: Mapping[Path, str | None]) -> list[str]:
    """Return the names of files that are no regular files with these SHA-256."""

    def is_same(path: Path, digest: str | None) -> bool:
        return digest is not None and path.is_file() and not path.is_symlink() and file_digest(path) == digest

    with ThreadPoolExecutor(8) as pool:
        same = pool.map(is_same, files, files.values())
        return [path.name for path, is_equal in zip(files, same, strict=True) if not is_equal]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != MARK)


def _mark(folder: Path, files: dict[str, str] | None) -> None:
    """Mark a folder as hpcvdj's.  `files` has the SHA-256 of its files by name; None while the run writes them."""
    (folder / MARK).write_text(json.dumps({"format": _FORMAT, "files": files}, indent=1, ensure_ascii=False) + "\n")


def _recorded(folder: Path) -> dict[str, str] | None:
    """Return the files that `_mark` recorded.  Raise one of `MISREAD` if there is no mark."""
    record = json.loads((folder / MARK).read_text())
    if record["format"] != _FORMAT:
        raise ValueError("it is of another program")
    return None if record["files"] is None else dict(record["files"])
