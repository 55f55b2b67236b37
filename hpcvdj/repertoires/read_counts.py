"""Read counts: AIRR's duplicate_count, the number of reads or molecules of a row."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.names import MISSING
from hpcvdj.repertoires.batches import numbers_by_text

READS = "duplicate_count"

CELL_READS = "umi_count", READS
"""The fields of chains of cells that may have their counts, the best last: scirpy has `umi_count` since 0.16."""

MOST = 10**15
"""The largest count, so that sums are exact as integers and as floats."""

UNKNOWN = 0
"""The value of a missing count."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?(e[+-]?[0-9]{1,3})?")
_MISSING = frozenset({"", *map(str.lower, MISSING)})


def read_counts(column: Any) -> tuple[NDArray[np.int64], dict[int, Exclusion]]:
    """The counts of a text column, int64 [rows], `UNKNOWN` if they are missing; and why rows have no valid count.

    A count is a whole number from 1 to `MOST`, also written as `900.0` or `9e+02`.
    """
    column = pc.fill_null(column.cast(pa.large_string()), "")
    if pc.all(pc.match_substring_regex(column, r"^[0-9]{1,15}$")).as_py():
        counts = np.array(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
        wrong = np.flatnonzero(counts < 1).tolist()
    else:
        counts = numbers_by_text(column, _count)
        wrong = np.flatnonzero(counts < 0).tolist()
        counts = np.maximum(counts, UNKNOWN)
    return counts, {row: Exclusion.of(ExclusionKind.NO_COUNT, text=column[row].as_py()) for row in wrong}


def _count(text: str) -> int:
    """The count in a text; `UNKNOWN` if the text stands for a missing count, -1 if it is no valid count."""
    text = text.strip().lower()
    if text in _MISSING:
        return UNKNOWN
    if not _NUMBER.fullmatch(text):
        return -1
    number = Decimal(text)
    return int(number) if 1 <= number <= MOST and number == number.to_integral_value() else -1
