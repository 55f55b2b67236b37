"""Is `hpcvdj annotate` calibrated?  Samples and databases drawn from one model, so that every hit is by chance.

python benchmarks/annotate_calibration.py --models human_trb human_igk --samples 4 --planted 100 --output figures.jsonl

A line of JSON for each model: hits found and expected, whether randomised p-values are uniform (the KS distance among
those of drawn samples, as epitopes have sequences in common), epitopes called at q <= 0.05; and, with planted hits, how
many are called at a false discovery rate of 0.2, and how many of these are false, and are estimated to be.  With
--by-decoys, κ from the decoys, and hits of the other epitopes that are found and expected.  With --pairs, hits found
and expected of cells with two chains.
"""

import time
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _common import LOCI, record
from scipy import stats

import hpcvdj
from hpcvdj.annotation import annotate, statistics
from hpcvdj.chance.p_values import randomised
from hpcvdj.recombination.igor import load_model
from tests.annotation.test_pairs import answered, records_of

EPITOPES = 200
REDRAWN = 99
"""Sets of numbers that are drawn to find out how far p-values are from uniform ones by chance."""

CALLED = 0.2
"""The false discovery rate up to which planted hits are called."""


def database_of(rows, seed):
    """Records of drawn junctions, with epitopes in groups of uneven sizes."""
    rng = np.random.default_rng(seed)
    epitope = np.minimum((EPITOPES * rng.random(len(rows)) ** 2).astype(int), EPITOPES - 1)
    return pa.table({
        "v_call": rows["v_call"], "j_call": rows["j_call"], "junction_aa": rows["junction_aa"],
        "epitope": pa.array([f"E{k:03}" for k in epitope]),
        "organism": pa.array(np.where(epitope < EPITOPES // 2, "decoy", "other")),
    })  # fmt: skip


def with_planted(sample, database, model, number, seed):
    """The sample, and junctions whose amino acids are those of improbable records; and these."""
    rng = np.random.default_rng(seed)
    p = hpcvdj.pgen(database.select(["v_call", "j_call", "junction_aa"]), model, sequence="aa", backend="cpu")
    others = np.flatnonzero(pc.equal(database["organism"], "other").to_numpy(zero_copy_only=False))
    chosen = rng.choice(others[np.argsort(p["pgen_aa"].to_numpy()[others])[: len(others) // 4]], number, replace=False)
    rows = database.take(chosen).select(["v_call", "j_call", "junction_aa"])
    own = pa.table({name: sample[name].cast(pa.string()) for name in rows.column_names})
    planted = pa.table({name: rows[name].cast(pa.string()) for name in rows.column_names})
    keys = set(zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True))
    return pa.concat_tables([own, planted]), {(v.split("*")[0], j.split("*")[0], text) for v, j, text in keys}


def tail_of(chance):
    """P(K >= k) of a sum of indicators, for k = 0, 1, ...; the last one is nearly 0."""
    large, rest = chance[chance > statistics.EXACT], chance[chance <= statistics.EXACT].sum()
    top = int(chance.sum() + 12 * np.sqrt(chance.sum() + 1) + 12)
    weights = stats.poisson.pmf(np.arange(top), rest)
    for p in large:
        weights[1:] = weights[1:] * (1 - p) + weights[:-1] * p
        weights[0] *= 1 - p
    return np.cumsum(weights[::-1])[::-1]


def uniform_p_value(uniform, numbers, seed):
    """The p-value of the KS distance of p-values from uniform ones, among those of drawn samples.

    Epitopes that have sequences in common depend on one another: KS's usual p-value is then too small.
    """
    rng, distances = np.random.default_rng(seed), []
    tails = [[tail_of(tested.chance[union.of_member[union.of_epitope == row]]) for row in np.flatnonzero(has)]
             for tested, union in numbers for has in [tested.expected > 0]]  # fmt: skip
    for k in range(REDRAWN):
        drawn = []
        for (tested, union), of_epitopes in zip(numbers, tails, strict=True):
            found = union.by_epitope((rng.random(len(union)) < tested.chance).astype(float)).astype(np.int64)
            found = found[tested.expected > 0]
            both = list(zip(of_epitopes, found, strict=True))
            at_least, more = (
                np.array([own[min(number + step, len(own) - 1)] for own, number in both]) for step in (0, 1)
            )
            drawn.append(randomised(at_least, more, seed + k))
        distances.append(stats.kstest(np.concatenate(drawn), "uniform").statistic)
    return float((1 + (np.array(distances) >= stats.kstest(uniform, "uniform").statistic).sum()) / (1 + REDRAWN))


def with_tests(tables, database, model, **options):
    """What `hpcvdj.annotate` answers, and the last test of each sample, with the union of the records."""
    tests, test = {}, annotate._tested

    def recorded(sample, judged, *further):
        tests[sample.name] = test(sample, judged, *further), judged.union
        return tests[sample.name][0]

    with patch.object(annotate, "_tested", recorded):
        answer = hpcvdj.annotate(tables, database, model, backend="cpu", **options)
    return answer, list(tests.values())


def by_decoys(tables, database, model):
    """The figures of epitopes that are no decoys, with κ from the decoys."""
    answer, tests = with_tests(tables, database, model, decoys=("decoy",))
    found, expected = (
        sum(getattr(tested, what)[~union.decoy].sum() for tested, union in tests) for what in ("k", "expected")
    )
    return {
        "found": int(found), "expected": float(expected), "ratio": float(found / expected),
        "decoys_of_samples": [tested.of_decoys[0] for tested, _ in tests],
        "kappa": [(each.kappa.value, each.kappa.source) for each in answer.samples],
        "epitopes_called": sum(each.called[0] for each in answer.samples),
        "hits_called": sum(each.called[1] for each in answer.samples),
    }  # fmt: skip


def of_samples(name, options):
    """The figures of a locus."""
    junctions, records, samples, seed = options.junctions, options.records, options.samples, options.seed
    model = load_model(name)
    selection = model.selection is not None
    number = records + samples * junctions
    drawn = hpcvdj.generate(model, number, seed=seed, productive=True, selection=selection, backend="cpu")
    database = database_of(drawn.slice(0, records), seed)
    parts = [drawn.slice(records + k * junctions, junctions) for k in range(samples)]
    tables = {f"s{k}": part.select(["v_call", "j_call", "junction"]) for k, part in enumerate(parts)}
    if options.by_decoys:
        return by_decoys(tables, database, model) | {
            "junctions": junctions, "records": records, "samples": samples, "seed": seed}  # fmt: skip
    answer, numbers = with_tests(tables, database, model, kappa=1.0)
    found, expected = (sum(getattr(each, what) for each in answer.samples) for what in ("found", "expected"))
    # Sums of independent indicators vary less than Poisson numbers.
    deviation = np.sqrt(sum((tested.chance * (1 - tested.chance)).sum() for tested, _ in numbers))
    uniform = np.concatenate([each.uniform for each in answer.samples])
    line = {
        "junctions": junctions, "records": records, "samples": samples, "seed": seed,
        "found": found, "expected": expected, "ratio": found / expected,
        "z": float((found - expected) / deviation), "uniform_p_value": uniform_p_value(uniform, numbers, seed),
        "epitopes_tested": len(uniform), "epitopes_called": sum(each.called[0] for each in answer.samples),
        "hits_called": sum(each.called[1] for each in answer.samples),
        "kappa_of_epitopes": [each.kappa_of_epitopes and each.kappa_of_epitopes.value for each in answer.samples],
        "dispersion": [each.dispersion for each in answer.samples],
    }  # fmt: skip
    if options.planted:
        line |= of_planted(parts, database, model, options.planted, seed)
    return line


def of_planted(parts, database, model, planted, seed):
    """What is called of planted hits in all samples, how many calls are false, and how many are estimated to be."""
    tables, keys = {}, {}
    for k, part in enumerate(parts):
        texts = pa.array(hpcvdj.translate(part["junction"].to_pylist()))
        whole = part.select(["v_call", "j_call"]).append_column("junction_aa", texts)
        tables[f"s{k}"], keys[f"s{k}"] = with_planted(whole, database, model, planted, seed + k)
    answer = hpcvdj.annotate(tables, database, model, decoys=("decoy",), backend="cpu")
    called = [row for row in answer.hits.to_pylist() if row["fdr"] is not None and row["fdr"] <= CALLED]
    true = sum((row["v_call"], row["j_call"], row["junction_aa"]) in keys[row["sample"]] for row in called)
    rates = {name: [row["fdr"] for row in called if row["sample"] == name] for name in tables}
    return {
        "planted": sum(map(len, keys.values())), "planted_called": true, "called": len(called),
        "false_called": len(called) - true,
        "false_estimated": sum(max(own) * len(own) for own in rates.values() if own),
        "kappa_of_decoys": [each.kappa.value for each in answer.samples],
        "decoys_passed": [each.passed for each in answer.samples],
        "epitopes_called_with_planted": [each.called[0] for each in answer.samples],
    }  # fmt: skip


def of_pairs(name, options):
    """The figures of cells with two chains of a locus, and of receptors, which are one epitope."""
    model, junctions, records, seed = load_model(name), options.junctions, options.records, options.seed
    drawn = hpcvdj.generate(model, 2 * (junctions + records), seed=seed, productive=True, backend="cpu")
    database = records_of([drawn.slice(0, records), drawn.slice(records, records)], 1)
    cells = [drawn.slice(2 * records, junctions), drawn.slice(2 * records + junctions)]
    answer, _ = answered(cells, database, [model, model], kappa=1.0)
    (row,) = answer.epitopes.to_pylist()
    return {
        "pairs": junctions, "receptors": records, "seed": seed, "found": row["found"], "expected": row["expected"],
        "z": (row["found"] - row["expected"]) / np.sqrt(row["expected"]),
    }  # fmt: skip


def measured(options):
    """A line for each model."""
    for name in options.models:
        started = time.perf_counter()
        line = (of_pairs if options.pairs else of_samples)(name, options)
        about = {"model": name, "version": hpcvdj.__version__}
        yield about | line | {"seconds": time.perf_counter() - started}


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(LOCI, "models"),
        junctions=(30_000, "recombinations of each sample, or cells"),
        records=(3_000, "of the database, or receptors"),
        samples=(2, "samples"),
        planted=(40, "records that are put into each sample, 0: none"),
        by_decoys=(False, "instead: κ from the decoys, and the hits of the other epitopes"),
        pairs=(False, "of cells with two chains"),
        seed=(1, "of what is drawn"),
    )  # fmt: skip
