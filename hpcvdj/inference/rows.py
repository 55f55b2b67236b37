"""The rows that a model is inferred from: distinct rearrangements that selection does not act on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import TooFewError
from hpcvdj.inference.settings import RowChoice
from hpcvdj.kernels.neighbours.blocks import blocks, equal_runs
from hpcvdj.kernels.neighbours.counted import CountedSequences
from hpcvdj.kernels.neighbours.likely_errors import likely_errors
from hpcvdj.kernels.threads import taken
from hpcvdj.probabilities.productive import is_productive
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import kinds_of, merged
from hpcvdj.repertoires.junctions import Junctions

NOT_DRAWN = "not drawn"
"""Why rows are left out that could take part, if there are more than are asked for."""


@dataclass(frozen=True)
class ChosenRows:
    """The rows that take part.

    repertoire  their junctions
    row         int64 [junctions]: data rows of the input, from 0
    left_out    the number of rows that are left out, by the reason
    """

    repertoire: Repertoire
    row: NDArray[np.int64]
    left_out: dict[str, int]

    @staticmethod
    def joined(parts: "Sequence[ChosenRows]", choice: RowChoice, seed: int = 0) -> "ChosenRows":
        """Merge several parts, sorted by pair, length and row, and draw `max_rows` if there are more.

        Raises InputError if there is no row.
        """
        left_out = Counter[str]()
        for part in parts:
            left_out.update(part.left_out)
        if not any(len(part.row) for part in parts):
            raise _no_rows(left_out, choice)
        # In the order of the tables, rows of a pair and length are mostly sorted.
        parts = sorted((part for part in parts if len(part.row)), key=lambda part: int(part.row[0]))
        repertoire, order = merged([part.repertoire for part in parts])
        row = np.concatenate([part.row for part in parts])[order]
        kind, lengths = kinds_of(repertoire), repertoire.lengths
        if ((row[1:] < row[:-1]) & (kind[1:] == kind[:-1]) & (lengths[1:] == lengths[:-1])).any():
            order = np.lexsort((row, lengths, kind))
            repertoire, row = repertoire.subset(order), row[order]
        drawn = _drawn(row, choice, seed)
        if len(drawn) < len(row):
            left_out[NOT_DRAWN] += len(row) - len(drawn)
            repertoire, row = repertoire.subset(drawn), row[drawn]
        return ChosenRows(repertoire, row, dict(left_out))


def _drawn(row: NDArray[np.int64], choice: RowChoice, seed: int) -> NDArray[np.int64]:
    """Draw `max_rows` of data rows if there are more; return their indices, ascending.

    The data row decides, so a part of all rows has among its drawn ones those that are drawn from all.
    """
    if len(row) <= choice.max_rows:
        return np.arange(len(row))
    number = np.random.default_rng([seed, 4]).random(int(row.max()) + 1)[row]
    return np.sort(np.argpartition(number, choice.max_rows)[: choice.max_rows])


def _no_rows(left_out: Counter[str], choice: RowChoice) -> TooFewError:
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
    remedy = f"give tables with {choice.rows} rows, or take a published model and hpcvdj infer-selection"
    if choice.rows == "all":
        remedy = "look at the reasons of the excluded rows"
    return TooFewError(f"no row to infer a model from ({reasons or 'no row could be read'}); {remedy}")


def choose(junctions: Junctions, choice: RowChoice, seed: int = 0) -> ChosenRows:
    """Select the rows of `junctions` that take part, and draw `max_rows` if there are more.

    Without read counts, likely errors take part, too.
    """
    repertoire = junctions.repertoire
    lengths, pairs = repertoire.lengths.astype(np.int64), kinds_of(repertoire)
    kinds = pairs * (int(junctions.repertoire_of.max(initial=0)) + 1) + junctions.repertoire_of
    keep = (lengths % 3 > 0) | (choice.rows == "all")
    if choice.rows == "nonproductive":
        keep = ~is_productive(repertoire)
    left_out = {f"not {choice.rows}": int((~keep).sum())}
    if not choice.likely_errors and junctions.reads is not None:
        rows, individuals = np.flatnonzero(keep), junctions.repertoire_of.astype(np.int64)
        every = CountedSequences(repertoire.words, repertoire.lengths, junctions.reads, individuals)
        errors = rows[likely_errors(every, pairs, rows)]
        left_out["likely sequencing errors"] = len(errors)
        keep[errors] = False
    if not choice.duplicates:
        rows = np.flatnonzero(keep)
        again = _repeated(repertoire, kinds, rows, junctions.row)
        left_out["junctions that the repertoire has in another row"] = len(again)
        keep[again] = False
    rows = np.flatnonzero(keep)
    drawn = rows[_drawn(junctions.row[rows], choice, seed)]
    if len(drawn) < len(rows):
        left_out[NOT_DRAWN] = len(rows) - len(drawn)
    return ChosenRows(repertoire.subset(drawn), junctions.row[drawn], left_out)


def _repeated(
    repertoire: Repertoire, kinds: NDArray[np.int64], rows: NDArray[np.int64], data_row: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Select those of `rows` that have the junction, V, J and repertoire of a smaller data row."""
    row, kind = data_row[rows], kinds[rows]
    if ((row[1:] < row[:-1]) & (kind[1:] == kind[:-1])).any():
        rows = rows[np.argsort(row)]
    order, starts = blocks(repertoire.lengths[rows].astype(np.int64), kinds[rows])
    rows = rows[order]
    same, first = equal_runs(taken(repertoire.words, rows), starts)
    return np.asarray(rows[np.delete(same, first)])
