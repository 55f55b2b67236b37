"""A result in parts: the folder NAME.parts of ordinary result files, one to a slice, and NAME, which joins them.

The datasets of NAME are views of the parts' (HDF5 virtual datasets, relative to the folder), so that it reads like any
other result; a V–J pair stands there once for each part that has it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcvdj.counting.checkpoint import require_same_run
from hpcvdj.errors import InputError
from hpcvdj.repertoires.many import REPERTOIRE, Table
from hpcvdj.results.file import FORMAT, VERSION, Result, write_repertoires, write_tables
from hpcvdj.storage import AtomicHdf5

_VIRTUAL = ("counters", "sequences/row", "sequences/sequence_id", "sequences/cdr3", "sequences/v_call",
            "sequences/j_call", "excluded/row", "excluded/sequence_id", "excluded/reason")  # fmt: skip
_OF_REPERTOIRES = (f"sequences/{REPERTOIRE}", f"excluded/{REPERTOIRE}")
_TIMINGS = ("pair_first", "pair_stop", "n_first", "n_stop", "sequences", "tasks", "kernel_seconds", "reduce_seconds",
            "wall_seconds")  # fmt: skip


def folder_of(target: Path) -> Path:
    """Where the parts of the result `target` lie."""
    return target.with_name(target.name + ".parts")


def part_path(target: Path, index: int) -> Path:
    """The part of slice `index`."""
    return folder_of(target) / f"part-{index:06}.h5"


def open_folder(target: Path, identity: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
    """Make the folder of the parts, or take up the one that is there.

    InputError if it holds parts and neither `resume` nor `overwrite` says what is to become of them, or if they are
    another run's.
    """
    folder = folder_of(target)
    if any(folder.glob("part-*.h5")) and not overwrite:
        if not resume:
            raise InputError(f"{folder}: holds parts of a run; --resume goes on with them, --overwrite starts anew")
        require_same_run(folder, identity)
        for debris in folder.glob(".part-*"):
            debris.unlink()
        return
    _discard_view(target)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(identity, indent=1))
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); write elsewhere") from None


def _discard_view(target: Path) -> None:
    """Remove a result that joins parts, before they go: HDF5 would read others, or zeros, in their place."""
    try:
        with h5py.File(target) as file:
            view = file.attrs.get("format") == FORMAT and "parts" in file.attrs
    except OSError:
        return
    if view:
        target.unlink()


def discard(target: Path) -> None:
    """Remove the parts of a result that `target`, now one file, has taken the place of."""
    folder = folder_of(target)
    if (folder / "run.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)


def join(
    target: Path,
    count: int,
    attributes: dict[str, Any],
    ranks: Sequence[dict[str, str]],
    tables: Sequence[Table] = (),
    *,
    overwrite: bool,
) -> None:
    """Write `target`, which joins the `count` parts; `tables` are those that were counted together."""
    paths = [part_path(target, index) for index in range(count)]
    # Where --resume removes it, should the run be killed.
    temporary = folder_of(target) / ".part-joined"
    with AtomicHdf5(target, overwrite=overwrite, temporary=temporary) as file:
        for name, value in {"format": FORMAT, "format_version": VERSION, **attributes, "parts": count}.items():
            file.attrs[name] = json.dumps(value) if isinstance(value, dict | list) else value
        for name in _VIRTUAL + _OF_REPERTOIRES * bool(tables):
            _join_dataset(file, name, paths, folder_of(target).name)
        _join_pairs(file, paths)
        _join_timings(file, paths)
        if tables:
            write_tables(file, tables)
            _join_repertoires(file, paths, [name for table in tables for name in table.repertoires])
        group = file.create_group("ranks")
        for key in ranks[0]:
            group.create_dataset(key, data=[facts[key] for facts in ranks], dtype=h5py.string_dtype())


def _join_dataset(file: h5py.File, name: str, paths: list[Path], folder: str) -> None:
    shapes, types = [], []
    for path in paths:
        with h5py.File(path) as part:
            shapes.append(part[name].shape)
            types.append(part[name].dtype)
    # Texts differ in width from part to part; the widest holds them all.
    dtype = max(types, key=lambda one: one.itemsize)
    layout = h5py.VirtualLayout((sum(shape[0] for shape in shapes), *shapes[0][1:]), dtype)
    first = 0
    for path, shape, kind in zip(paths, shapes, types, strict=True):
        if shape[0]:
            # HDF5 takes a % for the beginning of a format.
            source = f"{folder}/{path.name}".replace("%", "%%")
            layout[first : first + shape[0]] = h5py.VirtualSource(source, name, shape, kind)
        first += shape[0]
    if first:
        file.create_virtual_dataset(name, layout)
    else:
        file.create_dataset(name, layout.shape, dtype)


def _join_pairs(file: h5py.File, paths: list[Path]) -> None:
    calls: dict[str, list[str]] = {"v_call": [], "j_call": []}
    offsets = [0]
    for path in paths:
        with Result(path) as part:
            for v, j, rows in part.pairs:
                calls["v_call"].append(v)
                calls["j_call"].append(j)
                offsets.append(offsets[-1] + rows.stop - rows.start)
    group = file.create_group("pairs")
    for name, texts in calls.items():
        values = np.array([text.encode() for text in texts], dtype=np.bytes_)
        text = h5py.string_dtype("utf-8", max(1, values.dtype.itemsize))
        group.create_dataset(name, data=values.astype(text), dtype=text)
    group.create_dataset("offset", data=np.array(offsets, dtype=np.int64))


def _join_timings(file: h5py.File, paths: list[Path]) -> None:
    """The units of all parts; their pairs are counted from the first of their part in /pairs."""
    columns: dict[str, list[Any]] = {name: [] for name in _TIMINGS}
    first = 0
    for path in paths:
        with h5py.File(path) as part:
            for name in _TIMINGS:
                values = part[f"timings/{name}"][:]
                columns[name].append(values + first if name in ("pair_first", "pair_stop") else values)
            first += len(part["pairs/v_call"])
    for name, values in columns.items():
        file.create_dataset(f"timings/{name}", data=np.concatenate(values))


def _join_repertoires(file: h5py.File, paths: list[Path], names: list[str]) -> None:
    """Rows and sequences of each repertoire over all parts; those without rows have none."""
    found = dict.fromkeys(names, (0, 0))
    for path in paths:
        with h5py.File(path) as part:
            group = part["repertoires"]
            texts = [name.decode() for name in group[REPERTOIRE][:].tolist()]
            for name, rows, sequences in zip(texts, group["rows"][:], group["sequences"][:], strict=True):
                found[name] = found[name][0] + int(rows), found[name][1] + int(sequences)
    write_repertoires(file, found)
