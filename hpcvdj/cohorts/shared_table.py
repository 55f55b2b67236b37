"""The table of sequences that individuals share, with the test of each."""

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
from hpcvdj.recombination.selection import Selection
from hpcvdj.repertoires.genes import amino_acid_column, has_nucleotides, kinds_of, sequences

HIT = 0.05
"""The q-value up to which a sequence is a hit."""

NOT_TESTED = ("", IMPOSSIBLE, BROKEN_GENE, CONTRADICTED_CALL, OF_RARE_ALLELE)
"""Why a sequence is not tested; the first for one that is."""


@dataclass(frozen=True)
class Asked:
    """What is tested against what.

    factor       of selection, if there is one
    fit          how the model fits the tables: sequences of genes that it makes wrongly are not tested
    nucleotides  whether they are known of the junctions
    """

    model: Model
    settings: SharingSettings
    factor: Selection | None
    fit: ModelFit
    nucleotides: bool = True

    @property
    def read(self) -> tuple[str, ...]:
        """The probability of `PGEN_COLUMNS` of what is read."""
        return PGEN_COLUMNS[:1] if self.nucleotides else PGEN_COLUMNS[1:2]

    @property
    def compared(self) -> tuple[str, ...]:
        """That of the unit."""
        return PGEN_COLUMNS[:1] if self.settings.unit == "nt" else PGEN_COLUMNS[1:2]

    @property
    def without_calls(self) -> bool:
        """Whether the unit has no genes, and what is read has."""
        return self.settings.unit == "aa" and self.settings.genes == "call"


@dataclass(frozen=True)
class Tests:
    """What is known of sequences for their tests.

    p           float64 [sequences]: among productive recombinations
    log_factor  float64 [sequences]: ln Q
    q           the share of survivors
    numbers     of individuals that have a sequence, by its probability
    not_tested  int8 [sequences]: the place of the reason in `NOT_TESTED`
    copies      what speaks for copies; None without nucleotides
    number      sequences that were seen, these and others of one individual: the family of the q-values
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
        """The logarithm of the probability among surviving sequences; 0 for those that the model cannot make."""
        return np.where(self.p > 0, np.log(np.where(self.p > 0, self.p, 1.0)) + self.log_factor - np.log(self.q), 0.0)


def shared_table(cohort: Cohort, chosen: Sequences, tests: Tests, asked: Asked) -> pa.Table:
    """The rows that are written, by p-value."""
    settings, held, log_p = asked.settings, chosen.has.numbers, tests.log_p
    p_values = np.where(tests.not_tested == 0, tests.numbers.p_values(log_p, held), 1.0)
    # One individual is certain for a sequence that was seen; those left out of `chosen` have one.
    p_values[held == 1] = 1.0
    q_values = _q_values(p_values, tests)
    rows = np.flatnonzero(held >= settings.min_individuals)
    rows = rows[np.lexsort((rows, -held[rows], tests.not_tested[rows], p_values[rows]))]
    untested, impossible = tests.not_tested[rows] > 0, tests.p[rows] <= 0
    reads = chosen.has.largest_reads()
    columns = _identity(cohort, chosen, rows, settings)
    if reads is not None:
        columns["max_duplicate_count"] = reads[rows]
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
    """Of likely copies among all sequences; of the others among themselves.

    Copies have small p-values, each of which would let other sequences have larger ones at the same q-value.
    """
    q_values = benjamini_hochberg(p_values, tests.number)
    if tests.copies is not None:
        others = ~tests.copies.likely
        q_values[others] = benjamini_hochberg(p_values[others], tests.number - int(tests.copies.likely.sum()))
    return q_values


def _copies(copies: Copies | None, rows: Counts) -> dict[str, Any]:
    """The columns about copies; null without nucleotides."""
    if copies is None:
        kinds = {"same_nt": pa.int64(), "p_same_nt": pa.float64(), "likely_copy": pa.bool_()}
        return {name: pa.nulls(len(rows), kind) for name, kind in kinds.items()}
    return {"same_nt": copies.same_nt[rows], "p_same_nt": copies.p_same[rows], "likely_copy": copies.likely[rows]}


def _identity(cohort: Cohort, chosen: Sequences, rows: Counts, settings: SharingSettings) -> dict[str, Any]:
    """What the sequences are, and who has them."""
    held, has, group_of = chosen.has.numbers, chosen.has, cohort.group_of
    kinds = kinds_of(chosen.repertoire)
    columns: dict[str, Any] = {}
    if settings.unit != "aa":
        for name, side in (("v_call", 0), ("j_call", 1)):
            genes = pa.array([pair[side].allele for pair in chosen.repertoire.pairs], pa.string())
            columns[name] = genes.take(pa.array(kinds[rows]))
    if settings.unit == "nt":
        columns["junction"] = sequences(chosen.repertoire, rows)
    columns |= {
        **amino_acid_column(chosen.repertoire, chosen.letters[rows], chosen.lengths[rows]),
        "n_individuals": held[rows],
        "individuals": names_of_holders(cohort, has.only(rows)),
    }
    for place, group in enumerate(cohort.groups):
        of_group = has.sequence[group_of[has.individual] == place]
        columns[f"n_{group}"] = np.bincount(of_group, minlength=len(held))[rows]
    if settings.unit != "nt":
        known = has_nucleotides(chosen.repertoire)
        columns["nt_variants"] = chosen.variants[rows] if known else pa.nulls(len(rows), pa.int64())
    return columns
