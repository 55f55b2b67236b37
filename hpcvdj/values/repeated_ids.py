"""Ids that repeat in a table that is computed in slices.  A row with the id of an earlier row is excluded."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.kernels import text
from hpcvdj.recombination.exclusions import ExcludedRows, Exclusion, ExclusionKind
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import REPERTOIRE, Junctions
from hpcvdj.repertoires.table import Table

FirstRows = dict[tuple[str, str], int]
"""The first row with each repeated id, by id and repertoire; the repertoire is empty unless tables are together."""

_SCATTER = np.uint64(0x9E3779B97F4A7C15)


def id_hashes(junctions: Junctions) -> NDArray[np.uint64]:
    """Return hashes of the ids of sequences and their repertoires, ascending, and their rows, uint64 [2, sequences]."""
    hashes = _hashes(junctions.ids)[junctions.id_order]
    if junctions.repertoire_ids is not None:
        names = _hashes(pa.array(junctions.repertoire_ids, pa.large_string()))
        # Equal ids in different repertoires do not count as repeated.
        hashes = hashes ^ names[junctions.repertoire_of] * _SCATTER
    order = np.argsort(hashes)
    return np.stack([hashes[order], junctions.row.astype(np.uint64)[order]])


def _hashes(texts: Any) -> NDArray[np.uint64]:
    hashes = np.empty(len(texts), dtype=np.uint64)
    text.hash_rows(*text.text_buffers(texts), hashes)
    return hashes


def first_rows(inputs: Inputs, rows: NDArray[np.int64], between: Callable[[], None]) -> tuple[FirstRows, list[int]]:
    """Read ids again, and return the first of the `rows` with each repeated id, and the later rows with these ids."""
    wanted = np.sort(rows)
    seen: FirstRows = {}
    later = defaultdict[tuple[str, str], list[int]](list)
    row = 0
    for table in inputs.tables:
        for batch in inputs.rows_of(table):
            chosen = wanted[slice(*np.searchsorted(wanted, (row, row + batch.num_rows)))]
            names = ["sequence_id", *[REPERTOIRE] * inputs.together]
            for number, named in zip(chosen.tolist(), batch.select(names).take(chosen - row).to_pylist(), strict=True):
                key = named["sequence_id"], named.get(REPERTOIRE, "")
                if seen.setdefault(key, number) != number:
                    later[key].append(number)
            row += batch.num_rows
            between()
    return {key: seen[key] for key in later}, [number for numbers in later.values() for number in numbers]


def without_repeated(junctions: Junctions, first: FirstRows, inputs: Inputs) -> Junctions:
    """Return the junctions of a slice without the rows whose id an earlier row has.  These rows are excluded.

    Raises InputError if there are such rows and the reading is strict.
    """
    tables = inputs.tables
    names = junctions.repertoire_ids
    ids = junctions.ids.take(pa.array(junctions.id_order))
    among = pc.is_in(ids, value_set=pa.array(sorted({name for name, _ in first}), ids.type))
    before = junctions.excluded
    excluded = {}
    for k, (row, name) in enumerate(zip(before.row.tolist(), before.sequence_id, strict=True)):
        exclusion, repertoire = before.exclusion(k), before.repertoire_id[k] if before.repertoire_id else ""
        if exclusion.kind is ExclusionKind.REPEATED_ID and (name, repertoire) in first:
            exclusion = _repeated(tables, first[name, repertoire], row)
        excluded[row] = name, exclusion, repertoire
    keep = np.ones(len(junctions), dtype=bool)
    for k in np.flatnonzero(among.to_numpy(zero_copy_only=False)).tolist():
        row, name = int(junctions.row[k]), ids[k].as_py()
        repertoire = names[int(junctions.repertoire_of[k])] if names is not None else ""
        if first.get((name, repertoire), row) < row:
            keep[k] = False
            excluded[row] = name, _repeated(tables, first[name, repertoire], row), repertoire
    if inputs.reading.strict and not keep.all():
        row = int(junctions.row[~keep].min())
        source = _table_of(tables, row)
        raise InputError(
            f"{source.path}, data row {row - source.first_row + 1} ({excluded[row][0]}): {excluded[row][1]}; correct "
            f"the row, or leave {option('strict')} out to exclude and list such rows"
        )
    rows = sorted(excluded)
    listed = [excluded[row] for row in rows]
    kept = np.flatnonzero(keep)
    return replace(
        junctions,
        repertoire=junctions.repertoire.subset(kept),
        row=junctions.row[kept],
        id_order=junctions.id_order[kept],
        repertoire_of=junctions.repertoire_of[kept],
        excluded=ExcludedRows.of(
            np.array(rows, dtype=np.int64),
            [name for name, _, _ in listed],
            [exclusion for _, exclusion, _ in listed],
            [repertoire for _, _, repertoire in listed] if names is not None else (),
        ),
    )


def _repeated(tables: Sequence[Table], first_row: int, row: int) -> Exclusion:
    source, other = _table_of(tables, first_row), _table_of(tables, row)
    elsewhere = f" of {source.path.name}" if source is not other else ""
    return Exclusion.of(ExclusionKind.REPEATED_ID, data_row=first_row - source.first_row + 1, table=elsewhere)


def _table_of(tables: Sequence[Table], row: int) -> Table:
    return tables[bisect_right(tables, row, key=lambda table: table.first_row) - 1]
