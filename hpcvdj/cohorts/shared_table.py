"""The table of sequences that individuals share, with the test of each sequence."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance.check import BROKEN_GENE, CONTRADICTED_CALL, IMPOSSIBLE, OF_RARE_ALLELE, ModelFit
from hpcvdj.chance.depth import Counts, Floats
from hpcvdj.chance.p_values import benjamini_hochberg
from hpcvdj.cohorts.cohort import Cohort, Sequences, names_of_holders
from hpcvdj.cohorts.copies import Copies
from hpcvdj.cohorts.expected import Numbers
from hpcvdj.cohorts.settings import SharingSettings
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import SelectionFactor
from hpcvdj.repertoires.genes import amino_acid_column, gene_columns, has_nucleotides, kinds_of, sequences

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


def shared_table(cohort: Cohort, chosen: Sequences, tests: Tests, asked: SharingTest) -> pa.Table:
    """Return the rows that are written, sorted by p-value."""
    held, log_p = chosen.has.numbers, tests.log_p
    p_values = np.where(tests.not_tested == 0, tests.numbers.p_values(log_p, held), 1.0)
    # A sequence that was seen has at least one individual for certain.
    p_values[held == 1] = 1.0
    q_values = _q_values(p_values, tests)
    rows = np.flatnonzero(held >= asked.settings.min_individuals)
    rows = rows[np.lexsort((rows, -held[rows], tests.not_tested[rows], p_values[rows]))]
    untested, impossible = tests.not_tested[rows] > 0, tests.p[rows] <= 0
    columns = _identity(cohort, chosen, rows)
    if chosen.has.reads is not None:
        columns["max_duplicate_count"] = np.maximum.reduceat(chosen.has.reads, chosen.has.begins[:-1])[rows]
    columns["pgen"] = tests.p[rows] * productive_probability(asked.model)
    if asked.factor is not None:
        columns["q_factor"] = np.exp(tests.log_factor[rows])
    of_number = tests.numbers.log_p_of_holders()[held[rows]]
    columns |= {
        "p_post": pa.array(np.exp(log_p[rows]), mask=impossible),
        "expected_individuals": pa.array(tests.numbers.expected(log_p[rows]), mask=impossible),
        "effect": pa.array(np.exp(of_number - log_p[rows]), mask=impossible),
        "p_value": pa.array(p_values[rows], mask=untested),
        "q_value": pa.array(q_values[rows], mask=untested),
        **_copies(tests.copies, rows),
        "not_tested": pa.array([NOT_TESTED[reason] for reason in tests.not_tested[rows].tolist()], pa.string()),
    }
    return pa.table(columns)


def _q_values(p_values: Floats, tests: Tests) -> Floats:
    """Return the q-values of likely copies among all sequences, and of other sequences among themselves.

    The small p-values of copies would make the q-values of other sequences too small.
    """
    q_values = benjamini_hochberg(p_values, tests.number)
    if tests.copies is not None:
        others = ~tests.copies.likely
        q_values[others] = benjamini_hochberg(p_values[others], tests.number - int(tests.copies.likely.sum()))
    return q_values


def _copies(copies: Copies | None, rows: Counts) -> dict[str, Any]:
    """Return the columns about copies; null without nucleotides."""
    if copies is None:
        kinds = {"same_nt": pa.int64(), "p_same_nt": pa.float64(), "likely_copy": pa.bool_()}
        return {name: pa.nulls(len(rows), kind) for name, kind in kinds.items()}
    return {"same_nt": copies.same_nt[rows], "p_same_nt": copies.p_same[rows], "likely_copy": copies.likely[rows]}


def _identity(cohort: Cohort, chosen: Sequences, rows: Counts) -> dict[str, Any]:
    """Return the columns that say what the sequences are, and which individuals have them."""
    held, has = chosen.has.numbers, chosen.has
    columns: dict[str, Any] = {}
    if chosen.unit != "aa":
        columns |= gene_columns(chosen.repertoire.pairs, kinds_of(chosen.repertoire)[rows])
    if chosen.unit == "nt":
        columns["junction"] = sequences(chosen.repertoire, rows)
    columns |= {
        **amino_acid_column(chosen.repertoire, chosen.letters[rows], chosen.lengths[rows]),
        "n_individuals": held[rows],
        "individuals": names_of_holders(cohort, has.only(rows)),
    }
    for index, group in enumerate(cohort.groups):
        of_group = has.sequence[cohort.group_of[has.individual] == index]
        columns[f"n_{group}"] = np.bincount(of_group, minlength=len(held))[rows]
    if chosen.unit != "nt":
        nucleotides = has_nucleotides(chosen.repertoire)
        columns["nt_variants"] = chosen.variants[rows] if nucleotides else pa.nulls(len(rows), pa.int64())
    return columns
