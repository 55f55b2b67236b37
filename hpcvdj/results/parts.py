"""Results in parts: the folder NAME.parts has a result file for each slice of the input, and NAME joins them.

A run that replaces such a result writes its parts to NAME.2.parts, or to NAME.parts if NAME shows the other folder.  So
the old result stays complete until the new result is complete.

The datasets of NAME are views of the datasets of the parts (HDF5 virtual datasets, relative to the folder), so that
NAME reads like any other result.  It lists a V–J pair once for each part that has it.  HDF5 silently reads zeros for a
part that it cannot open; this module raises an error instead.
"""

import os
import resource
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcvdj.errors import InputError, MachineError, option
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.results.attributes import FORMAT, VERSION, declared
from hpcvdj.results.schema import LAYOUT, WRITTEN_BY, read_group, strings, values_of, write_group
from hpcvdj.runs.folder import RunFolder
from hpcvdj.storage.damage import damage
from hpcvdj.storage.hdf5 import atomic_hdf5, write_attributes
from hpcvdj.storage.opening import open_hdf5

_VIEWS = ("sequences", "excluded")
_OPEN_BEFORE = 64
"""The most files that a process opens besides parts."""


def require_readable(path: Path) -> None:
    """Raise InputError unless all values of a part can be read and have the right checksums."""
    with open_hdf5(path, WRITTEN_BY, FORMAT, VERSION) as file, damage(path):
        names: list[str] = []
        file.visit(names.append)
        for dataset in (file[name] for name in names):
            for chunk in dataset.iter_chunks() if isinstance(dataset, h5py.Dataset) and dataset.chunks else ():
                dataset[chunk]


def free_folder(target: Path) -> Path:
    """Return a folder for the parts of a run that writes `target`, other than the folder that `target` shows now."""
    free = [folder for folder in _folders(target) if folder != _shown(target)]
    # A stopped run continues in its own folder.
    return next((folder for folder in free if folder.exists()), free[0])


def discard_parts(target: Path) -> None:
    """Remove parts that `target` does not show, such as those of a result that it replaced."""
    for folder in _folders(target):
        if folder != _shown(target):
            RunFolder(folder, {}).remove()


def _folders(target: Path) -> list[Path]:
    """Return the folders that may have the parts of `target`."""
    return [target.with_name(f"{target.name}.{suffix}") for suffix in ("parts", "2.parts")]


def _shown(target: Path) -> Path | None:
    """Return the folder of the parts that the result at `target` shows, or None if it shows none."""
    try:
        with open_hdf5(target, "hpcvdj count", FORMAT, VERSION) as file, damage(target):
            return next((part.parent for part in parts_of(target, file)), None)
    except InputError:
        return None


def join(
    target: Path,
    folder: RunFolder,
    attributes: dict[str, Any],
    ranks: Sequence[dict[str, str]],
    inputs: Inputs,
    *,
    overwrite: bool,
) -> None:
    """Join all parts in the folder to `target`."""
    parts = [_Part(path) for path in sorted(folder.path.glob("part-*.h5"))]
    with atomic_hdf5(target, overwrite=overwrite) as writer:
        file = writer.file
        of_format = {"format": FORMAT, "format_version": VERSION, "parts": len(parts)}
        write_attributes(file, declared({**of_format, **attributes}))
        for name in parts[0].datasets:
            _join_views(file, name, parts, folder.path.name)
        sizes = np.concatenate([np.diff(part.groups["pairs"]["offset"]) for part in parts])
        calls = {name: np.concatenate([part.groups["pairs"][name] for part in parts]) for name in ("v_call", "j_call")}
        write_group(file, "pairs", {**calls, "offset": np.concatenate(([0], np.cumsum(sizes)))})
        write_group(file, "timings", _join_timings(parts))
        if inputs.together:
            write_group(file, "tables", values_of("tables", inputs.tables))
            _join_repertoires(file, parts, inputs.repertoires)
        write_group(file, "ranks", values_of("ranks", ranks))


class _Part:
    """The shapes of the datasets of a part, and its small groups, for joining."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with h5py.File(path) as file:
            names = [f"{group}/{name}" for group in _VIEWS for name in file[group]]
            names += [name for name, item in file.items() if isinstance(item, h5py.Dataset)]
            self.datasets = {name: (file[name].shape, file[name].dtype) for name in names}
            groups = "pairs", "timings", "repertoires"
            self.groups = {name: read_group(file, name) if name in file else {} for name in groups}


def _join_views(file: h5py.File, name: str, parts: list[_Part], folder: str) -> None:
    shapes = [part.datasets[name][0] for part in parts]
    # The widths of texts differ from part to part; the widest type fits all.
    dtype = max((part.datasets[name][1] for part in parts), key=lambda dtype: dtype.itemsize)
    layout = h5py.VirtualLayout((sum(shape[0] for shape in shapes), *shapes[0][1:]), dtype)
    first = 0
    for part, shape in zip(parts, shapes, strict=True):
        if shape[0]:
            # HDF5 takes a % for the beginning of a format.
            source = f"{folder}/{part.path.name}".replace("%", "%%")
            layout[first : first + shape[0]] = h5py.VirtualSource(source, name, shape, part.datasets[name][1])
        first += shape[0]
    if first:
        file.create_virtual_dataset(name, layout)
    else:
        file.create_dataset(name, layout.shape, dtype)


def _join_timings(parts: list[_Part]) -> dict[str, Any]:
    """Return the units of all parts.  Their pairs are numbered by the joined /pairs."""
    columns: dict[str, list[Any]] = {}
    names = {column.name for column in LAYOUT["timings"]}
    first = 0
    for part in parts:
        for name, values in part.groups["timings"].items():
            if name in names and not name.startswith("rank_"):
                columns.setdefault(name, []).append(values + first if name.startswith("pair_") else values)
        first += len(part.groups["pairs"]["v_call"])
    return {name: np.concatenate(values) for name, values in columns.items()}


def _join_repertoires(file: h5py.File, parts: list[_Part], names: list[str]) -> None:
    """Write the rows and sequences of each repertoire over all parts; a repertoire without rows has 0."""
    totals: dict[str, Counter[str]] = {"rows": Counter(), "sequences": Counter()}
    for part in parts:
        group = part.groups["repertoires"]
        for kind, total in totals.items():
            total.update(dict(zip(strings(group[REPERTOIRE]), group[kind].tolist(), strict=True)))
    sums = {kind: [total[name] for name in names] for kind, total in totals.items()}
    write_group(file, "repertoires", {REPERTOIRE: names, **sums})


def parts_of(path: Path, file: h5py.File) -> list[Path]:
    """Return the part files of the result `file` at `path`; empty unless the result is in parts."""
    views = [dataset for dataset in _row_datasets(file) if dataset.is_virtual]
    names = {source.file_name for view in views for source in view.virtual_sources()}
    return [path.parent / name.replace("%%", "%") for name in sorted(names)]


def _row_datasets(file: h5py.File) -> list[h5py.Dataset]:
    """Return the rows of sequences and the excluded rows.  Every part has some of these."""
    return [file[f"{group}/row"] for group in _VIEWS]


_held: list[int] = []
"""The numbers of parts of open results, which count towards the number of files that this process may open."""


def hold_parts(result: Any, path: Path, file: h5py.File) -> Callable[[], object]:
    """Hold the parts of an open result until it calls what is returned, at the latest until it is deleted.

    Raises InputError if a part is missing, cannot be read, or has other rows than the result, and MachineError if the
    process may not open so many files.
    """
    parts = parts_of(path, file)
    _require_all(path, parts, file)
    _allow_files(path, sum(_held), len(parts))
    _held.append(len(parts))
    return weakref.finalize(result, _held.remove, len(parts))


def _require_all(path: Path, parts: list[Path], file: h5py.File) -> None:
    """Raise InputError unless the parts are of the run of the result, and have its rows in order."""
    rows = [0] * len(_VIEWS)
    fits = True
    for part in parts:
        if not part.is_file():
            raise InputError(f"{path}: its part {part} is missing; keep {path.name} and {part.parent.name} together")
        try:
            with open_hdf5(part, WRITTEN_BY, FORMAT, VERSION) as opened, damage(part):
                fits &= opened.attrs.get("identity") == file.attrs.get("identity")
                fits &= opened.attrs["first_row"] == sum(rows)
                rows = [before + len(dataset) for before, dataset in zip(rows, _row_datasets(opened), strict=True)]
        except InputError as error:
            raise InputError(f"{path}: its part {error}") from None
    if parts and not (fits and rows == [len(dataset) for dataset in _row_datasets(file)]):
        raise InputError(
            f"{path}: the files in {parts[0].parent} are not the parts of this result; count again with "
            f"{option('overwrite', True)}"
        )


def _allow_files(path: Path, held: int, parts: int) -> None:
    """Let this process open `parts` more files, besides the `held` files that HDF5 may not have opened yet."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Linux and macOS have this folder.
    needed = len(os.listdir("/dev/fd")) + held + parts + _OPEN_BEFORE
    if not parts or soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise MachineError(
            f"{path}: has {parts:,} parts, and a process may open {hard:,} files here; raise the limit "
            f"(ulimit -n {needed}), or count again with larger {option('batch_rows')}"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
