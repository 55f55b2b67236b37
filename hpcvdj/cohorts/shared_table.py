"""The table of sequences that individuals share, with the test of each sequence."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance.check import BROKEN_GENE, CONTRADICTED_CALL, IMPOSSIBLE, OF_RARE_ALLELE
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.cohort import Cohort, Sequences, names_of_holders
from hpcvdj.cohorts.copies import Copies
from hpcvdj.cohorts.expected import Numbers
from hpcvdj.cohorts.holding import Holding
from hpcvdj.cohorts.settings import SharingSettings
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.genes import amino_acid_column, gene_columns, kinds_of, sequences
from hpcvdj.results.blocks import TableBlocks
from hpcvdj.runs.ordering import Ordered
from hpcvdj.runs.run import Run

HIT = 0.05
"""The q-value up to which a sequence is a hit."""

NOT_TESTED = ("", IMPOSSIBLE, BROKEN_GENE, CONTRADICTED_CALL, OF_RARE_ALLELE)
"""The reasons for which a sequence is not tested; the first one stands for none."""


@dataclass(frozen=True)
class SharingTest:
    """What is tested, and against which model.

    factor       the selection factor, if there is one
    fit          how the model fits the tables: sequences whose genes it makes wrongly are not tested
    nucleotides  whether the junctions are nucleotides
    """

    model: Model
    settings: SharingSettings
    factor: SelectionFactor | None
    fit: ModelFit
    nucleotides: bool = True

    @property
    def read(self) -> tuple[str, ...]:
        """The member of `PGEN_COLUMNS` that is the probability of a junction as it is read."""
        return PGEN_COLUMNS[:1] if self.nucleotides else PGEN_COLUMNS[1:2]

    @property
    def compared(self) -> tuple[str, ...]:
        """The member of `PGEN_COLUMNS` that is the probability of a sequence of the unit."""
        return PGEN_COLUMNS[:1] if self.settings.unit == "nt" else PGEN_COLUMNS[1:2]

    @property
    def without_calls(self) -> bool:
        """Whether junctions are read with genes, and sequences of the unit have none."""
        return self.settings.unit == "aa" and self.settings.genes == "call"


@dataclass(frozen=True)
class Tests:
    """The values from which sequences are tested.

    p           float64 [sequences]: probabilities among productive recombinations
    log_factor  float64 [sequences]: ln Q
    q           the share of survivors
    numbers     the distribution of the number of individuals that have a sequence, by its probability
    not_tested  int8 [sequences]: the index of the reason in `NOT_TESTED`
    copies      the evidence for copies; None without nucleotides
    number      the size of the family of the q-values: all sequences that were seen, also those that are not listed
    """

    p: Floats
    log_factor: Floats
    q: float
    numbers: Numbers
    not_tested: NDArray[np.int8]
    copies: Copies | None
    number: int

    @property
    def log_p(self) -> Floats:
        """The logarithm of the probability among surviving sequences; 0 if the model cannot make a sequence."""
        return np.where(self.p > 0, np.log(np.where(self.p > 0, self.p, 1.0)) + self.log_factor - np.log(self.q), 0.0)


class SharedRows:
    """The sequences of this rank that are written, in the order of all ranks: by p-value, then by what they are.

    listed    bool [sequences]: whether each sequence is written
    q_values  float64 [sequences]; 1 of sequences of one individual
    """

    def __init__(self, cohort: Cohort, chosen: Sequences, tests: Tests, asked: SharingTest, run: Run) -> None:
        self._cohort, self._chosen, self._tests, self._asked = cohort, chosen, tests, asked
        held, least, self._log_p = chosen.has.numbers, asked.settings.min_individuals, tests.log_p
        p_values = np.where(tests.not_tested == 0, tests.numbers.p_values(self._log_p, held), 1.0)
        # A sequence that was seen has at least one individual for certain.
        p_values[held == 1] = 1.0
        several = np.flatnonzero(held >= min(2, least))
        likely = np.zeros(len(held), dtype=bool) if tests.copies is None else tests.copies.likely
        keys = [p_values, tests.not_tested, -held.astype(np.int32), *chosen.order(run)]
        ordered = Ordered.of([key[several] for key in keys], [held[several] >= least, likely[several]], run)
        keys.clear()
        p_ordered, (listed, copied) = ordered.columns[0], ordered.columns[-2:]
        places, q_ordered = ordered.back(_places(listed, run), _q_values(p_ordered, copied, tests.number, run))
        self._p_values, self.q_values = p_values, np.ones(len(held))
        self.q_values[several] = q_ordered
        self.listed = held >= least
        self._rows, self._places = several[self.listed[several]], places[self.listed[several]]
        self._log_p_of_holders = tests.numbers.log_p_of_holders()
        self._run = run

    def blocks(self) -> TableBlocks:
        """Return the table of all ranks."""
        return TableBlocks(self._places, lambda rows: self._table(self._rows[rows]), self._run)

    def _table(self, rows: Counts) -> pa.Table:
        chosen, tests, asked = self._chosen, self._tests, self._asked
        held, log_p = chosen.has.numbers[rows], self._log_p[rows]
        untested, impossible = tests.not_tested[rows] > 0, tests.p[rows] <= 0
        has = chosen.has.only(rows)
        columns = _identity(self._cohort, chosen, has, rows)
        if has.reads is not None:
            columns["max_duplicate_count"] = np.maximum.reduceat(has.reads, has.begins[:-1]) if len(rows) else has.reads
        columns["pgen"] = tests.p[rows] * productive_probability(asked.model)
        if asked.factor is not None:
            columns["q_factor"] = np.exp(tests.log_factor[rows])
        columns |= {
            "p_post": pa.array(np.exp(log_p), mask=impossible),
            "expected_individuals": pa.array(tests.numbers.expected(log_p), mask=impossible),
            "effect": pa.array(np.exp(self._log_p_of_holders[held] - log_p), mask=impossible),
            "p_value": pa.array(self._p_values[rows], mask=untested),
            "q_value": pa.array(self.q_values[rows], mask=untested),
            **_copies(tests.copies, rows),
            "not_tested": pa.array([NOT_TESTED[reason] for reason in tests.not_tested[rows].tolist()], pa.string()),
        }
        return pa.table(columns)


def _places(listed: NDArray[np.bool_], run: Run) -> Counts:
    """Return the place of each row among those that are listed, int64; the rows of all ranks follow each other."""
    before = sum(run.gather_everywhere(int(listed.sum()))[: run.rank])
    return before + np.cumsum(listed) - listed


def _q_values(p_values: Floats, copied: NDArray[np.bool_], number: int, run: Run) -> Floats:
    """Return the q-values of likely copies among all sequences, and of other sequences among themselves.

    The small p-values of copies would make the q-values of other sequences too small.

    p_values  float64: they ascend on this rank, and from one rank to the next
    copied    bool: whether each sequence is a likely copy
    number    the size of the family, of which other sequences have a p-value of 1
    """
    copies = int(run.sum(np.array([copied.sum()]))[0])
    q_values = _benjamini_hochberg(p_values, number, run)
    q_values[~copied] = _benjamini_hochberg(p_values[~copied], number - copies, run)
    return q_values


def _benjamini_hochberg(p_values: Floats, tests: int, run: Run) -> Floats:
    """Return the q-values of p-values that ascend on this rank, and from one rank to the next."""
    before = sum(run.gather_everywhere(len(p_values))[: run.rank])
    scaled = np.minimum(p_values * (tests / np.arange(before + 1.0, before + len(p_values) + 1)), 1.0)
    following = run.gather_everywhere(float(scaled.min(initial=1.0)))[run.rank + 1 :]
    return np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], min(following, default=1.0))


def _copies(copies: Copies | None, rows: Counts) -> dict[str, Any]:
    """Return the columns about copies; null without nucleotides."""
    if copies is None:
        kinds = {"same_nt": pa.int64(), "p_same_nt": pa.float64(), "likely_copy": pa.bool_()}
        return {name: pa.nulls(len(rows), kind) for name, kind in kinds.items()}
    return {"same_nt": copies.same_nt[rows], "p_same_nt": copies.p_same[rows], "likely_copy": copies.likely[rows]}


def _identity(cohort: Cohort, chosen: Sequences, has: Holding, rows: Counts) -> dict[str, Any]:
    """Return the columns that say what the sequences are, and which individuals have them."""
    columns: dict[str, Any] = {}
    if chosen.unit != "aa":
        columns |= gene_columns(chosen.repertoire.pairs, kinds_of(chosen.repertoire)[rows])
    if chosen.unit == "nt":
        columns["junction"] = sequences(chosen.repertoire, rows)
    columns |= {
        # A rank without sequences does not know whether they have ends.
        **amino_acid_column(cohort.example, chosen.letters[rows], chosen.lengths[rows]),
        "n_individuals": has.numbers,
        "individuals": names_of_holders(cohort, has),
    }
    by_group = has.by_group(cohort.group_of, max(1, len(cohort.groups)))
    columns |= {f"n_{group}": by_group[:, index] for index, group in enumerate(cohort.groups)}
    if chosen.unit != "nt":
        columns["nt_variants"] = chosen.variants[rows] if cohort.nucleotides else pa.nulls(len(rows), pa.int64())
    return columns
