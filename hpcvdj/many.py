"""Many repertoires in one run: which files, and where the result of each goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpcvdj.errors import InputError

SUFFIXES = (".tsv.gz", ".tsv", ".parquet")
"""How a folder's repertoires are told from what else lies there."""


def repertoire_name(path: Path) -> str:
    """A repertoire's file name without the suffix of a table."""
    name = path.name
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name) or name


def plan(inputs: Sequence[Path], output: Path) -> list[tuple[Path, Path]]:
    """(repertoire, result file) of each of `inputs`; a folder stands for the tables in it.

    One file goes to the file `output`; several, or a folder, go to the folder `output`, as NAME.h5.  InputError if a
    folder has no table, if two would go to the same file, or if `output` is a file.
    """
    if len(inputs) == 1 and not inputs[0].is_dir():
        return [(inputs[0], output)]
    files = [file for path in inputs for file in (_tables(path) if path.is_dir() else [path])]
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; several repertoires need a folder to go to")
    targets: dict[Path, Path] = {}
    for file in files:
        target = output / f"{repertoire_name(file)}.h5"
        if target in targets:
            raise InputError(
                f"{file}: its result would be {target}, like that of {targets[target]}; rename one of them"
            )
        targets[target] = file
    return [(file, target) for target, file in targets.items()]


def _tables(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(SUFFIXES))
    if not files:
        raise InputError(f"{folder}: has no table ({', '.join('*' + suffix for suffix in SUFFIXES)})")
    return files
