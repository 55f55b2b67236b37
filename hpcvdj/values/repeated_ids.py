"""Ids that repeat in a table that is computed in slices.  A row with the id of an earlier row is excluded."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.repertoires.ids import SCATTER, SCOPE_SHIFT, hashes_of_ids, id_scopes, text_hashes
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import FirstRows, Junctions
from hpcvdj.repertoires.table import REPERTOIRE, Table

HASHES = 1 << 22
"""Hashes of ids that are compared at a time."""


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


def rows_with_repeated_hashes(
    stored: Iterable[NDArray[np.uint64]], share: int = 0, shares: int = 1
) -> NDArray[np.int64]:
    """Return the rows whose ids have the same hash as the id of a row in another slice, int64 [rows].

    stored         `id_hashes` of each slice, iterated several times
    share, shares  return only one of `shares` parts of the rows
    """
    groups = shares * max(1, sum(part.shape[1] for part in stored) // (HASHES * shares))
    # Hashes are sorted and evenly distributed, so a group is one piece of each slice.
    edges = np.array([(group << 64) // groups for group in range(1, groups)], dtype=np.uint64)
    rows = [np.empty(0, np.int64)]
    for group in range(share, groups, shares):
        chosen = [np.empty((2, 0), dtype=np.uint64)]
        for part in stored:
            first = int(np.searchsorted(part[0], edges[group - 1])) if group else 0
            stop = int(np.searchsorted(part[0], edges[group])) if group < groups - 1 else part.shape[1]
            chosen.append(np.array(part[:, first:stop]))
        joined = np.concatenate(chosen, axis=1)
        ascending = np.sort(joined[0])
        several = np.isin(joined[0], ascending[1:][ascending[1:] == ascending[:-1]])
        rows.append(joined[1, several].astype(np.int64))
    return np.concatenate(rows)


def first_rows(inputs: Inputs, rows: NDArray[np.int64], between: Callable[[], None]) -> tuple[FirstRows, list[int]]:
    """Read ids again, and return the first of the `rows` with each repeated id, and the later rows with these ids."""
    wanted = np.sort(rows)
    seen: dict[tuple[str, str, int], int] = {}
    later = defaultdict[tuple[str, str, int], list[int]](list)
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
