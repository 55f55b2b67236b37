"""Ids that repeat in a table that is computed in slices.  A row with the id of an earlier row is excluded."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.recombination.exclusions import ExcludedRows, ExclusionKind
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import (
    REPERTOIRE,
    SCATTER,
    SCOPE_SHIFT,
    Junctions,
    hashes_of_ids,
    id_scopes,
    refused_row,
    repeated_id,
    text_hashes,
)
from hpcvdj.repertoires.table import Table

Key = tuple[str, str, int]
"""An id, its repertoire, which is empty unless tables are together, and its scope."""

FirstRows = dict[Key, int]
"""The first row with each repeated id."""


def id_hashes(junctions: Junctions, sources: Sequence[Table]) -> NDArray[np.uint64]:
    """Return hashes of the keys of sequences, ascending, and their rows, uint64 [2, sequences].

    sources  the tables of the sequences
    """
    ids = junctions.ids.take(pa.array(junctions.id_order))
    hashes = hashes_of_ids(ids, junctions.row)
    if junctions.repertoire_ids is not None:
        names = text_hashes(pa.array(junctions.repertoire_ids, pa.large_string()))
        scopes = id_scopes(sources, junctions.row) << SCOPE_SHIFT
        hashes = hashes ^ (names[junctions.repertoire_of] ^ scopes) * SCATTER
    order = np.argsort(hashes)
    return np.stack([hashes[order], junctions.row.astype(np.uint64)[order]])


def first_rows(inputs: Inputs, rows: NDArray[np.int64], between: Callable[[], None]) -> tuple[FirstRows, list[int]]:
    """Read ids again, and return the first of the `rows` with each repeated id, and the later rows with these ids."""
    wanted = np.sort(rows)
    seen: FirstRows = {}
    later = defaultdict[Key, list[int]](list)
    row = 0
    for table in inputs.tables:
        scope = int(id_scopes([table], np.array([row]))[0])
        for batch in inputs.rows_of(table):
            chosen = wanted[slice(*np.searchsorted(wanted, (row, row + batch.num_rows)))]
            names = ["sequence_id", *[REPERTOIRE] * inputs.together]
            for number, named in zip(chosen.tolist(), batch.select(names).take(chosen - row).to_pylist(), strict=True):
                key = named["sequence_id"], named.get(REPERTOIRE, ""), scope
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
    among = pc.is_in(ids, value_set=pa.array(sorted({name for name, *_ in first}), ids.type))
    before = junctions.excluded
    excluded = {}
    scopes = id_scopes(tables, before.row).tolist()
    for k, (row, name) in enumerate(zip(before.row.tolist(), before.sequence_id, strict=True)):
        exclusion, repertoire = before.exclusion(k), before.repertoire_id[k] if before.repertoire_id else ""
        if exclusion.kind is ExclusionKind.REPEATED_ID and (name, repertoire, scopes[k]) in first:
            exclusion = repeated_id(tables, first[name, repertoire, scopes[k]], row)
        excluded[row] = name, exclusion, repertoire
    keep = np.ones(len(junctions), dtype=bool)
    scopes = id_scopes(tables, junctions.row).tolist()
    for k in np.flatnonzero(among.to_numpy(zero_copy_only=False)).tolist():
        row, name = int(junctions.row[k]), ids[k].as_py()
        repertoire = names[int(junctions.repertoire_of[k])] if names is not None else ""
        first_row = first.get((name, repertoire, scopes[k]), row)
        if first_row < row:
            keep[k] = False
            excluded[row] = name, repeated_id(tables, first_row, row), repertoire
    if inputs.reading.strict and not keep.all():
        row = int(junctions.row[~keep].min())
        raise refused_row(tables, row, *excluded[row][:2])
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
