"""The rows of tables that take no part, collected while the tables are read."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.recombination.exclusions import ExcludedRows, Exclusion

Codes = NDArray[np.int32]
"""Why each row takes no part, int32 [rows]: a code of `ExclusionCollector`, or 0 if the row takes part."""


class ExclusionCollector:
    """Collects excluded rows: their numbers, ids, reasons and repertoires."""

    def __init__(self) -> None:
        self._codes: dict[Exclusion, int] = {}
        self._parts: list[tuple[NDArray[np.int64], pa.Array, Codes, NDArray[np.int32]]] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def code(self, exclusion: Exclusion) -> int:
        """The code of an exclusion, from 1."""
        return self._codes.setdefault(exclusion, 1 + len(self._codes))

    def add(self, rows: NDArray[np.int64], ids: pa.Array, codes: Codes | int, repertoires: NDArray[Any]) -> None:
        """Exclude rows.

        codes        one for each row, or one for all
        repertoires  the index of each row's repertoire
        """
        self._parts.append((rows, ids, np.full(len(rows), codes, dtype=np.int32), repertoires))

    def excluded_rows(self, repertoire_ids: list[str] | None) -> ExcludedRows:
        """All excluded rows, in row order, with their `repertoire_ids`; None if tables are not counted together."""
        if not self._parts:
            return ExcludedRows.of(np.empty(0, dtype=np.int64), [], [])
        rows, codes, repertoires = (np.concatenate([part[k] for part in self._parts]) for k in (0, 2, 3))
        order = np.argsort(rows, kind="stable")
        ids = pa.chunked_array([part[1] for part in self._parts]).take(pa.array(order)).to_pylist()
        # Reasons are in the order in which rows have them.
        encoded, exclusions = pa.array(codes[order]).dictionary_encode(), list(self._codes)
        return ExcludedRows(
            row=rows[order],
            sequence_id=ids,
            code=encoded.indices.to_numpy(),
            exclusions=[exclusions[code - 1] for code in encoded.dictionary.to_pylist()],
            repertoire_id=[repertoire_ids[index] for index in repertoires[order].tolist()] if repertoire_ids else [],
        )
