"""Which sequences go with a phenotype, given how deep donors are: `hpcvdj associate`.

See `hpcvdj.association.law` for the test, `multiplicity` for what is tested and for q-values, and docs/associate.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hpcvdj.association.ball import COLUMNS, Balls
from hpcvdj.association.carriers import Carriers, carriers_of
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.scores import CANDIDATES, Scores, scores_of
from hpcvdj.association.settings import WITH_GENES, AssociationSettings
from hpcvdj.association.tables import association_table, donors_table
from hpcvdj.association.tested import Tested, reached_of, tests_of
from hpcvdj.chance.check import UNCHECKED, ModelFit
from hpcvdj.chance.depth import Draws, recombinations_of
from hpcvdj.chance.draws import Chance, log_factors
from hpcvdj.chance.p_values import Floats
from hpcvdj.chance.shown import Shown
from hpcvdj.cohorts.cohort import Cohort, Grouping, Sequences, sequences_of
from hpcvdj.cohorts.improbable import Improbable, improbable_of
from hpcvdj.cohorts.ranking import Auc, auc
from hpcvdj.cohorts.sharing import require_different_people
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import amino_acids, as_read, without_genes
from hpcvdj.runs.run import Run

PGEN_AA = PGEN_COLUMNS[1:2]


@dataclass(frozen=True)
class Association(Shown):
    """What goes with the phenotypes.

    table       pyarrow, a row for each test with a small p-value: see docs/associate.md for the columns
    donors      pyarrow, a row for each donor of the cases and controls, with its score
    cohort      whose the sequences are
    sizes       float64 [donors]: recombinations of each, from its distinct junctions
    sequences   how many several donors have
    likely_copies  how many of these are likely copies; None without nucleotides
    carriers    who carries those that can be hits, or have a small p-value
    tested      the tests of each phenotype
    auc         how well the scores tell cases from controls; None without hits, or if not all donors have a score
    unscored    donors without whom no sequence is a hit, so that they have no score
    improbable  junctions, and pairs of individuals; None without nucleotides
    max_q       the false discovery rate of hits
    fit         how the model fits the tables
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

    def __repr__(self) -> str:
        """How many donors and hits there are."""
        number = sum(own.sequences for own in self.tested)
        return f"<Association of {len(self.cohort.individuals):,} donors: {self.hits:,} of {number:,} sequences>"

    @property
    def hits(self) -> int:
        """Of all phenotypes, without likely copies."""
        return sum(int(own.is_hit(self.max_q, self.carriers.copy).sum()) for own in self.tested)


def associate(
    cohort: Cohort, phenotypes: Sequence[Phenotype], model: Model, settings: AssociationSettings, run: Run,
    fit: ModelFit = UNCHECKED,
) -> Association | None:  # fmt: skip
    """Test the sequences of a cohort, on root; None on the other ranks, which have parts of it.

    fit  how the model fits the tables

    InputError, on every rank, if two individuals are of one person.
    """
    chance = Chance(model, settings.draws, settings.seed, settings.backend, settings.strict_binding)
    read = PGEN_COLUMNS[:1] if cohort.nucleotides else PGEN_AA
    drawn = chance.drawn(run)
    if drawn is not None:
        drawn = as_read(drawn, cohort.example)
    p_drawn = chance.among_productive(drawn, read, run)
    of_drawn = run.share_arrays({"p": p_drawn[:, 0]} if p_drawn is not None else None)["p"]

    def recombinations() -> Floats:
        assert drawn is not None
        log_q = log_factors(model.selection, drawn, *amino_acids(drawn, np.arange(len(drawn))))
        weights = Draws(np.log(of_drawn) + log_q, np.exp(log_q) / len(drawn)).on_grid(0.0)
        return recombinations_of(cohort.sizes, weights, cohort.names)

    sizes = run.from_root(recombinations)
    balls = None
    if settings.unit == "ball":
        balls = Balls.of(cohort, model, settings.min_individuals)
        sequences = balls.sequences.only(balls.asked)
    else:
        sequences = _of_several(sequences_of(cohort, settings.unit, model), settings.min_individuals)
    p = chance.of_ranks([sequences.repertoire], PGEN_AA if balls is None else COLUMNS, run)[0]
    own = improbable = None
    if cohort.nucleotides:
        own = chance.of_ranks([cohort.repertoire], read, run)[0][:, 0]
        kept = without_genes(cohort.repertoire, fit.broken)
        improbable = improbable_of(cohort, own, sizes, of_drawn, None, kept)
        require_different_people(cohort, improbable.pairs)
    factor = model.selection if settings.unit in WITH_GENES else None
    log_factor = log_factors(factor, sequences.repertoire, sequences.letters, sequences.lengths)
    carriers = carriers_of(cohort, sequences, p[:, 0], log_factor, own, improbable)
    if balls is not None:
        carriers = balls.carriers(carriers, p[:, 1])
    used = sizes if settings.depth == "recombinations" else np.ones(len(sizes))
    reached = reached_of(carriers, phenotypes, used, settings, run)
    likely_copies = 0 if carriers.copy is None else int(carriers.copy.sum())
    number, likely_copies = run.sum(np.array([len(carriers.p), likely_copies])).tolist()
    gathered = carriers.on_root(np.flatnonzero(reached.matters), run)

    def tested() -> Association:
        assert gathered is not None
        tests = tests_of(gathered, phenotypes, used, settings, reached)
        labelled = next((own for own in tests if own.phenotype.family == "case"), None)
        scores = _scores(labelled, gathered, used, settings)
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
        )

    return run.on_root(tested)


def _of_several(everything: Grouping, least: int) -> Sequences:
    return everything.only(np.flatnonzero(everything.has.numbers >= least))


def _scores(own: Tested | None, carriers: Carriers, sizes: Floats, settings: AssociationSettings) -> Scores | None:
    """The scores of cases and controls; None without hits."""
    hits = None if own is None else own.is_hit(settings.max_q, carriers.copy)
    if own is None or hits is None or not hits.any():
        return None
    candidate = own.kept & (own.p <= CANDIDATES * float(own.p[hits].max()))
    if carriers.copy is not None:
        candidate &= ~carriers.copy[own.rows]
    return scores_of(
        carriers.has, own.rows[candidate], int(own.kept.sum()), settings.max_q, own.phenotype,
        sizes[own.phenotype.donors],
    )  # fmt: skip
