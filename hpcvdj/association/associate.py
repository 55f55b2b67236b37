"""Which sequences are associated with a phenotype, given the depth of donors: `hpcvdj associate`.

`hpcvdj.association.law` has the test, `multiplicity` the choice of tests and the q-values.  See also docs/associate.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hpcvdj.association.ball import COLUMNS, Balls
from hpcvdj.association.carriers import Carriers, carriers_of
from hpcvdj.association.gene_usage import Usage, usage_of, usage_text
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.scores import CANDIDATES, Scores, scores_of
from hpcvdj.association.settings import WITH_GENES, AssociationSettings
from hpcvdj.association.tables import association_table, donors_table
from hpcvdj.association.tested import Tested, reached_of, tests_of
from hpcvdj.chance.draws import Chance, log_factors
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.p_values import Floats
from hpcvdj.chance.shown import Shown
from hpcvdj.cohorts.cohort import Cohort, Sequences, SequenceUnit, sequences_of
from hpcvdj.cohorts.improbable import Improbable
from hpcvdj.cohorts.ranking import Auc, auc
from hpcvdj.cohorts.sharing import of_different_people
from hpcvdj.cohorts.survivors import recombinations
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.runs.run import Run

PGEN_AA = PGEN_COLUMNS[1:2]


@dataclass(frozen=True)
class Association(Shown):
    """The sequences that are associated with phenotypes.

    table       pyarrow, a row for each test with a small p-value: see docs/associate.md for the columns
    donors      pyarrow, a row for each donor, with its score
    cohort      the donors and their junctions
    sizes       float64 [donors]: recombinations of each, estimated from its distinct junctions
    sequences   number of sequences that several donors have
    likely_copies  how many of these are likely copies; None without nucleotides
    carriers    who carries the sequences that can be hits, or have a small p-value
    tested      the tests of each phenotype
    auc         how well the scores separate cases and controls; None without hits, or if a donor has no score
    unscored    donors without a score: no sequence is a hit without them
    improbable  improbable junctions, and pairs of individuals that share them; None without nucleotides
    max_q       the false discovery rate of hits
    fit         how the model fits the tables
    gene_usage  the genes that cases or controls have far more often, in words; empty if there are none
    unmatched   donors without a value and rows of the metadata without a table, in words; empty if there are none
    """

    table: pa.Table
    donors: pa.Table
    cohort: Cohort
    sizes: Floats
    sequences: int
    likely_copies: int | None
    carriers: Carriers
    tested: list[Tested]
    auc: Auc | None
    unscored: int
    improbable: Improbable | None
    max_q: float
    fit: ModelFit
    gene_usage: str = ""
    unmatched: str = ""

    def __repr__(self) -> str:
        """How many donors and hits there are."""
        number = sum(test.sequences for test in self.tested)
        return f"<Association of {len(self.cohort.individuals):,} donors: {self.hits:,} of {number:,} sequences>"

    @property
    def hits(self) -> int:
        """The number of hits of all phenotypes, without likely copies."""
        return sum(int(test.is_hit(self.max_q, self.carriers.copy).sum()) for test in self.tested)


def _of_several(cohort: Cohort, unit: SequenceUnit, individuals: int) -> Sequences:
    """The sequences that at least so many individuals have; nothing is kept of the others."""
    every = sequences_of(cohort, unit)
    return every.only(np.flatnonzero(every.has.numbers >= individuals))


def associate(
    cohort: Cohort, phenotypes: Sequence[Phenotype], model: Model, settings: AssociationSettings, run: Run,
    fit: ModelFit = UNCHECKED,
) -> Association | None:  # fmt: skip
    """Test the sequences of a cohort, on root; None on the other ranks, which have parts of the cohort.

    fit  how the model fits the tables

    InputError, on every rank, if two individuals are the same person.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    columns = PGEN_COLUMNS[:1] if cohort.nucleotides else PGEN_AA
    of_drawn, draws = chance.sampled(columns, model.selection, run, cohort.example)
    sizes = run.from_root(recombinations, cohort, draws, 0.0)
    balls = None
    if settings.unit == "ball":
        balls = Balls.of(cohort, settings.min_individuals)
        sequences = balls.sequences.only(balls.asked)
    else:
        sequences = _of_several(cohort, settings.unit, settings.min_individuals)
    p = chance.of_ranks([sequences.repertoire], PGEN_AA if balls is None else COLUMNS, run)[0]
    p_junctions = improbable = None
    if cohort.nucleotides:
        p_junctions = cohort.probabilities(chance, columns[0])
        improbable = of_different_people(cohort, p_junctions, sizes, of_drawn, fit)
    factor = model.selection if settings.unit in WITH_GENES else None
    log_factor = log_factors(factor, sequences.repertoire, (sequences.letters, sequences.lengths))
    carriers = carriers_of(cohort, sequences, p[:, 0], log_factor, p_junctions, improbable)
    if balls is not None:
        carriers = balls.carriers(carriers, p[:, 1])
    used = sizes if settings.depth == "recombinations" else np.ones(len(sizes))
    reached = reached_of(carriers, phenotypes, used, settings, run)
    likely_copies = 0 if carriers.copy is None else int(carriers.copy.sum())
    number, likely_copies = run.sum(np.array([len(carriers.p), likely_copies])).tolist()
    gathered = carriers.on_root(np.flatnonzero(reached.matters), run)
    usage = usage_of(cohort)

    def tested(gathered: Carriers, usage: Usage) -> Association:
        tests = tests_of(gathered, phenotypes, used, settings, reached)
        labelled = next((test for test in tests if test.phenotype.family == "case"), None)
        scores = None if labelled is None else _scores(labelled, gathered, used, settings)
        unscored = 0 if scores is None else int(scores.none.sum())
        return Association(
            table=association_table(cohort, gathered, tests, settings, model),
            donors=donors_table(cohort, labelled, sizes, scores),
            cohort=cohort,
            sizes=sizes,
            sequences=number,
            likely_copies=None if gathered.copy is None else likely_copies,
            carriers=gathered,
            tested=tests,
            auc=None if labelled is None or scores is None or unscored else auc(scores.score, labelled.phenotype.case),
            unscored=unscored,
            improbable=improbable,
            max_q=settings.max_q,
            fit=fit,
            gene_usage=usage_text(usage, cohort.sizes, phenotypes),
        )

    return run.on_root(tested, gathered, usage)


def _scores(tested: Tested, carriers: Carriers, sizes: Floats, settings: AssociationSettings) -> Scores | None:
    """The scores of cases and controls; None without hits."""
    hits = tested.is_hit(settings.max_q, carriers.copy)
    if not hits.any():
        return None
    candidate = tested.kept & (tested.p <= CANDIDATES * float(tested.p[hits].max()))
    # Without a donor, nobody knows whether those that may be copies would be hits.
    candidate &= hits | (tested.p_told == tested.p)
    if carriers.copy is not None:
        candidate &= ~carriers.copy[tested.rows]
    phenotype, rows = tested.phenotype, tested.rows[candidate]
    return scores_of(carriers.has, rows, tested.in_family, settings.max_q, phenotype, sizes[phenotype.donors])
