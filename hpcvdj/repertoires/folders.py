"""The tables in folders that users name."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hpcvdj.errors import InputError, few, log
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.readers import possible_suffixes, table_suffixes
from hpcvdj.repertoires.table import Table, table_at
from hpcvdj.repertoires.writers import is_part

_HAS_ENDING = re.compile(r"\.(tsv|csv|txt|tab|airr|parquet|pq)(\.|$)", re.IGNORECASE)
"""An ending of tables in a name."""

_BESIDE = (".json", ".png", ".svg", ".html", ".md")
"""Endings of files that are beside tables: facts, figures, pages, words."""


def tables_in(paths: Sequence[Path], opening: Opening = BY_HEADER) -> list[Table]:
    """The tables at `paths`, where a folder means all tables in it; InputError for a folder without tables, or no path.

    Of a folder, the file that the `opening` says is no table of junctions is left out.

    The files of a table that hpcvdj wrote as a folder are of one repertoire, which has the name of the folder.
    Folders within a folder are left out, and named if they have tables.
    """
    if not paths:
        raise InputError("no table is given; give the paths of tables, or of a folder of them")
    return [
        table for path in paths for table in (_tables_in(path, opening) if path.is_dir() else [table_at(path, opening)])
    ]


def _tables_in(folder: Path, opening: Opening) -> list[Table]:
    tables: list[Table] = []
    unknown: list[Table] = []
    hidden: list[str] = []
    packed: list[str] = []
    others: list[str] = []
    folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    inner = [own.name for own in folders if any(map(_is_named_like_a_table, _files_in(own)))]
    besides = opening.besides
    for path in sorted(path for path in folder.iterdir() if not path.is_dir()):
        if besides is not None and besides.exists() and path.exists() and path.samefile(besides):
            continue
        if not _is_named_like_a_table(path):
            if not path.name.startswith(".") and path.suffix.lower() not in _BESIDE:
                (packed if _HAS_ENDING.search(path.name) else others).append(path.name)
            continue
        table, certain = table_at(path, opening), path.name.lower().endswith(table_suffixes())
        if path.name.startswith("."):
            # macOS puts such files beside others.
            hidden.append(path.name)
            continue
        # A broken link is not left out: reading it raises the error.
        recognised = certain or not path.is_file() or table.open().recognised
        (tables if recognised else unknown).append(table)
    for table in unknown:
        if text := table.open().resembles:
            log.warning("%s: %s, left out", table.path, text)
        else:
            others.append(table.path.name)
    if packed:
        # All of them, as each may be a donor.
        log.warning(
            "%s: %s: no table is read from files of such endings, left out; give %s", folder, ", ".join(packed),
            ", ".join(f"*{suffix}" for suffix in table_suffixes()),
        )  # fmt: skip
    for names, what in (
        (others, "not tables of junctions"),
        (hidden, "hidden files"),
        (inner, "folders, which are read only if you name them"),
    ):
        if names:
            log.warning("%s: %s: %s, left out", folder, few(names), what)
    if not tables:
        raise InputError(f"{folder}: has no table ({', '.join('*' + suffix for suffix in table_suffixes())})")
    name = folder.resolve().name.removesuffix(".dataset")
    return [replace(table, repertoire_id=name, part=True) if is_part(table.path) else table for table in tables]


def _files_in(folder: Path) -> list[Path]:
    """The files in a folder; none if it cannot be read."""
    with suppress(OSError):
        return [path for path in folder.iterdir() if path.is_file()]
    return []


def _is_named_like_a_table(path: Path) -> bool:
    return path.name.lower().endswith((*table_suffixes(), *possible_suffixes()))
