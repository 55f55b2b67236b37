"""The tables of `hpcvdj associate`: tests, and donors."""

from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.association.carriers import Carriers
from hpcvdj.association.scores import Scores
from hpcvdj.association.settings import WITH_GENES, AssociationSettings
from hpcvdj.association.tested import Tested
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.cohort import Cohort, names_of_holders
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.repertoires.genes import amino_acid_column, has_nucleotides, kinds_of


def association_table(
    cohort: Cohort, carriers: Carriers, tests: list[Tested], settings: AssociationSettings, model: Model
) -> pa.Table:
    """The tests with small p-values, the smallest first within each family."""
    families = list(dict.fromkeys(own.phenotype.family for own in tests))
    parts, order = [], []
    for own in tests:
        shown = np.flatnonzero((own.p <= settings.max_p) | (own.q <= settings.max_q))
        parts.append(_rows(cohort, carriers, own, shown, settings, model))
        order.append(np.stack([np.full(len(shown), families.index(own.phenotype.family)), own.p[shown]]))
    family, p = np.concatenate(order, axis=1)
    return pa.concat_tables(parts).take(pa.array(np.lexsort((np.arange(len(p)), p, family))))


def _rows(
    cohort: Cohort, carriers: Carriers, own: Tested, shown: Counts, settings: AssociationSettings, model: Model
) -> pa.Table:
    rows, phenotype, sequences = own.rows[shown], own.phenotype, carriers.sequences
    trend = np.full(len(rows), phenotype.family == "trend")
    cases = int(phenotype.case.sum())
    columns: dict[str, Any] = {"phenotype": pa.array([phenotype.name] * len(rows), pa.string())}
    kinds = kinds_of(sequences.repertoire)
    for name, side in (("v_call", 0), ("j_call", 1)):
        if settings.unit in WITH_GENES or (settings.unit == "v-aa" and side == 0):
            genes = pa.array([pair[side].allele for pair in sequences.repertoire.pairs], pa.string())
            columns[name] = genes.take(pa.array(kinds[rows]))
    columns |= amino_acid_column(sequences.repertoire, sequences.letters[rows], sequences.lengths[rows])
    deviation = own.laws.deviation[shown]
    z = np.divide(own.value[shown] - own.laws.mean[shown], deviation, out=np.zeros(len(rows)), where=deviation > 0)
    ratio, low, high = _odds_ratios(own, shown).T
    columns |= {
        "carriers": own.carriers[shown],
        "case_carriers": pa.array(own.value[shown], mask=trend),
        "cases": pa.array(np.full(len(rows), cases), mask=trend),
        "control_carriers": pa.array((own.carriers - own.value)[shown], mask=trend),
        "controls": pa.array(np.full(len(rows), len(phenotype.donors) - cases), mask=trend),
        "expected": pa.array(own.laws.mean[shown], mask=trend),
        "odds_ratio": _or_null(ratio, len(rows)),
        "odds_ratio_low": _or_null(low, len(rows)),
        "odds_ratio_high": _or_null(high, len(rows)),
        "z": z,
        "p_value": own.p[shown],
        "q_value": pa.array(own.q[shown], mask=~own.kept[shown]),
        "q_weighted": pa.array(own.q_weighted[shown], mask=~own.kept[shown]),
        "p_fisher": _or_null(own.fisher[0][shown] if own.fisher else np.empty(0), len(rows)),
        "pgen": carriers.p[rows] * productive_probability(model),
        "p_post": pa.array(carriers.p[rows] * np.exp(carriers.log_factor[rows]), mask=carriers.p[rows] <= 0),
        **({} if carriers.members is None else {"members": carriers.members[rows]}),
        "nt_variants": sequences.variants[rows] if has_nucleotides(sequences.repertoire)
        else pa.nulls(len(rows), pa.int64()),
        "likely_copy": pa.array(carriers.copy[rows]) if carriers.copy is not None
        else pa.nulls(len(rows), pa.bool_()),
        "individuals": names_of_holders(cohort, carriers.has.only(rows)).cast(pa.large_string()),
    }  # fmt: skip
    return pa.table(columns)


def _odds_ratios(own: Tested, shown: Counts) -> Floats:
    """The odds ratio of each test, and its interval, float64 [tests, 3]; none of a trend."""
    if own.phenotype.family == "trend":
        return np.empty((0, 3))
    # Tests of as many carriers and cases have the same one.
    keys = np.stack([own.laws.of[shown], own.value[shown]], axis=1)
    _, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    ratios = [own.laws.odds_ratio(k, int(own.value[k])) for k in shown[first].tolist()]
    return np.array(ratios).reshape(-1, 3)[of.reshape(-1)]


def _or_null(values: Floats, rows: int) -> Any:
    return pa.array(values) if len(values) == rows else pa.nulls(rows, pa.float64())


def donors_table(cohort: Cohort, own: Tested | None, sizes: Floats, scores: Scores | None) -> pa.Table:
    """A row for each donor, with its score if there are cases."""
    names = pa.array(cohort.names, pa.string())
    columns: dict[str, Any] = {
        "individual": names, "junctions": pa.array([each.rows for each in cohort.individuals], pa.int64()),
        "recombinations": sizes,
    }  # fmt: skip
    if own is not None:
        donors = own.phenotype.donors
        columns["case"] = _of_donors(len(names), donors, own.phenotype.case, pa.bool_())
        if len(own.phenotype.strata) > 1:
            strata = np.array(own.phenotype.strata)[own.phenotype.stratum]
            columns["stratum"] = _of_donors(len(names), donors, strata, pa.string())
        for name, kind in (("carried", pa.int64()), ("expected", pa.float64()), ("score", pa.float64())):
            known = np.empty(0, dtype=np.int64) if scores is None else np.flatnonzero(~scores.none)
            values = np.empty(0) if scores is None else getattr(scores, name)[known]
            columns[name] = _of_donors(len(names), donors[known], values, kind)
    return pa.table(columns)


def _of_donors(number: int, donors: Any, values: Any, kind: Any) -> pa.Array:
    """The values of some donors; null for the others."""
    listed: list[Any] = [None] * number
    for donor, value in zip(donors.tolist(), values.tolist(), strict=True):
        listed[donor] = value
    return pa.array(listed, kind)
