"""A result in parts reads views of its parts, and HDF5 reads zeros in silence where it cannot open one: not here."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import h5py

from hpcvdj.errors import InputError, MachineError

_VIEWS = ("counters", "excluded/row")
"""Every part has rows in one of them."""

_SPARE_FILES = 64


def parts_of(path: Path, file: h5py.File) -> list[Path]:
    """The files that hold the rows of the result `file` at `path`; none unless it is in parts."""
    views = [file[name] for name in _VIEWS]
    names = {source.file_name: None for view in views if view.is_virtual for source in view.virtual_sources()}
    return [path.parent / name.replace("%%", "%") for name in sorted(names)]


class HeldParts:
    """The parts of an open result, counted among the files that this process may have open.

    InputError if a part is missing, cannot be read, or has other rows than the result's; MachineError if the process
    may not open so many files.
    """

    _open = 0
    _parts = 0

    def __init__(self, path: Path, file: h5py.File) -> None:
        parts = parts_of(path, file)
        rows = dict.fromkeys(_VIEWS, 0)
        for part in parts:
            for name, found in _rows(path, part).items():
                rows[name] += found
        if parts and rows != {name: len(file[name]) for name in _VIEWS}:
            raise InputError(f"{path}: its parts in {parts[0].parent} are of another run; count again with --overwrite")
        _let_open(path, HeldParts._open, len(parts))
        self._parts = len(parts)
        HeldParts._open += self._parts

    def release(self) -> None:
        """The result is closed."""
        HeldParts._open -= self._parts
        self._parts = 0

    def __del__(self) -> None:
        """A result that nobody closed."""
        self.release()


def _rows(path: Path, part: Path) -> dict[str, int]:
    if not part.is_file():
        raise InputError(f"{path}: its part {part} is missing; keep NAME and NAME.parts together")
    try:
        with h5py.File(part) as file:
            return {name: len(file[name]) for name in _VIEWS}
    except (OSError, KeyError) as error:
        raise InputError(f"{path}: its part {part} cannot be read ({error}); count again with --overwrite") from None


def _let_open(path: Path, held: int, parts: int) -> None:
    """Let this process open `parts` files more, besides the `held` ones that HDF5 may not have opened yet."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = len(os.listdir("/proc/self/fd")) + held + parts + _SPARE_FILES
    if not parts or soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise MachineError(
            f"{path}: has {parts:,} parts, and a process may open {hard:,} files here; raise the limit "
            f"(ulimit -n {needed}), or count again with larger --batch-rows"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
