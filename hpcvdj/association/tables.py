"""The tables of `hpcvdj associate`: tests, and donors."""

from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.association.carriers import Carriers
from hpcvdj.association.scores import Scores
from hpcvdj.association.settings import CALLS, AssociationSettings
from hpcvdj.association.tested import Tested
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.cohort import Cohort, names_of_holders
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.repertoires.genes import amino_acid_column, gene_columns, has_nucleotides, kinds_of


def association_table(
    cohort: Cohort, carriers: Carriers, tests: list[Tested], settings: AssociationSettings, model: Model
) -> pa.Table:
    """The tests with small p-values, by family and p-value."""
    families = list(dict.fromkeys(test.phenotype.family for test in tests))
    parts, order = [], []
    for test in tests:
        shown = np.flatnonzero((test.p <= settings.max_p) | (test.q <= settings.max_q))
        parts.append(_rows(cohort, carriers, test, shown, settings, model))
        order.append(np.stack([np.full(len(shown), families.index(test.phenotype.family)), test.p[shown]]))
    family, p = np.concatenate(order, axis=1)
    return pa.concat_tables(parts).take(pa.array(np.lexsort((np.arange(len(p)), p, family))))


def _rows(
    cohort: Cohort, carriers: Carriers, test: Tested, shown: Counts, settings: AssociationSettings, model: Model
) -> pa.Table:
    """The rows of the table for a phenotype."""
    rows, phenotype, sequences = test.rows[shown], test.phenotype, carriers.sequences
    trend = np.full(len(rows), phenotype.family == "trend")
    cases = int(phenotype.case.sum())
    columns: dict[str, Any] = {"phenotype": pa.array([phenotype.name] * len(rows), pa.string())}
    genes = gene_columns(sequences.repertoire.pairs, kinds_of(sequences.repertoire)[rows])
    columns |= {name: genes[name] for name in CALLS.get(settings.unit, ())}
    columns |= amino_acid_column(sequences.repertoire, sequences.letters[rows], sequences.lengths[rows])
    has = carriers.has.only(rows)
    has = has.entries(np.isin(has.individual, phenotype.donors))
    value, number, mean, deviation = (
        values[shown] for values in (test.value, test.carriers, test.laws.mean, test.laws.deviation)
    )
    z = np.divide(value - mean, deviation, out=np.zeros(len(rows)), where=deviation > 0)
    ratio, low, high = _odds_ratios(test, shown).T
    columns |= {
        "carriers": number,
        "case_carriers": pa.array(value, mask=trend),
        "cases": pa.array(np.full(len(rows), cases), mask=trend),
        "control_carriers": pa.array(number - value, mask=trend),
        "controls": pa.array(np.full(len(rows), len(phenotype.donors) - cases), mask=trend),
        "expected": pa.array(mean, mask=trend),
        "odds_ratio": pa.array(ratio, mask=trend),
        "odds_ratio_low": pa.array(low, mask=trend),
        "odds_ratio_high": pa.array(high, mask=trend),
        "z": z,
        "p_value": test.p[shown],
        "q_value": pa.array(test.q[shown], mask=~test.kept[shown]),
        "q_weighted": pa.array(test.q_weighted[shown], mask=~test.kept[shown]),
        "p_fisher": pa.array((test.fisher[0] if test.fisher else test.p)[shown], mask=trend),
        "pgen": carriers.p[rows] * productive_probability(model),
        "p_post": pa.array(carriers.p[rows] * np.exp(carriers.log_factor[rows]), mask=carriers.p[rows] <= 0),
        **({} if carriers.members is None else {"members": carriers.members[rows]}),
        "nt_variants": sequences.variants[rows] if has_nucleotides(sequences.repertoire)
        else pa.nulls(len(rows), pa.int64()),
        "likely_copy": pa.nulls(len(rows), pa.bool_()) if carriers.copy is None
        else pa.array(carriers.copy[rows], mask=(test.p_told > test.p)[shown] & ~carriers.copy[rows]),
        "individuals": names_of_holders(cohort, has).cast(pa.large_string()),
    }  # fmt: skip
    return pa.table(columns)


def _odds_ratios(test: Tested, shown: Counts) -> Floats:
    """The odds ratio of each sequence, and its interval, float64 [shown, 3]; NaN for a trend."""
    if test.phenotype.family == "trend":
        return np.full((len(shown), 3), np.nan)
    # Sequences with equal numbers of carriers and cases have the same odds ratio.
    keys = np.stack([test.laws.of[shown], test.value[shown]], axis=1)
    _, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    ratios = [test.laws.odds_ratio(k, int(test.value[k])) for k in shown[first].tolist()]
    return np.array(ratios).reshape(-1, 3)[of.reshape(-1)]


def donors_table(cohort: Cohort, tested: Tested | None, sizes: Floats, scores: Scores | None) -> pa.Table:
    """A row for each donor, with its score if there are cases."""
    names = pa.array(cohort.names, pa.string())
    columns: dict[str, Any] = {
        "individual": names, "junctions": pa.array([donor.rows for donor in cohort.individuals], pa.int64()),
        "recombinations": sizes,
    }  # fmt: skip
    if tested is not None:
        phenotype = tested.phenotype
        index = np.full(len(names), -1, dtype=np.int64)
        index[phenotype.donors] = np.arange(len(phenotype.donors))
        of_donor = pa.array(index, mask=index < 0)
        columns["case"] = pa.array(phenotype.case).take(of_donor)
        if len(phenotype.strata) > 1:
            columns["stratum"] = pa.array([phenotype.strata[k] for k in phenotype.stratum], pa.string()).take(of_donor)
        for name, kind in (("carried", pa.int64()), ("expected", pa.float64()), ("score", pa.float64())):
            columns[name] = pa.nulls(len(names), kind)
            if scores is not None:
                columns[name] = pa.array(getattr(scores, name), mask=scores.none).take(of_donor)
    return pa.table(columns)
