"""Do the tests of hpcvdj find nothing in cohorts that a model makes, and what is planted in them?

python benchmarks/calibration.py --output results/calibration/raw.csv

Of each locus and seed, `drawn` takes productive junctions of individuals of unequal depth from the model, with read
counts of a Pareto distribution, and runs the check of the model, `hpcvdj sharing` (both units), `contamination` and
`enrich` on them.  `planted` adds what they should find:

pair            1 of 200 junctions of the first individual, with one read, in the second
common source   20 improbable junctions in 6 to 14 individuals each
copies          40 large clones of the third individual, of the more probable junctions; 5 to 8 others have each with
                1 to 3 reads
public          40 amino-acid sequences in 10 individuals or more, whose nucleotides are drawn for each: no copies
clusters        10 groups of 8 junctions that differ in one base from one that the model hardly makes

`kappa` estimates the factor κ of `enrich` from samples that are so small that few junctions are drawn twice, of
nucleotides and of amino acids.  `share` says whether the interval of the share of survivors q has the true one: 1, or
0.4 of all draws, of junctions whose amino acids a lot kept alive in everybody.

A row of the output is one number: what is measured, of which locus, with which seed.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from _cohort import exchanged, exchanges
from _common import LOCI, record

import hpcvdj
from hpcvdj.chance.check import SAMPLE, check_fit
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.alphabet import translate
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.reading import Reading

COLUMNS = ["v_call", "j_call", "junction", "junction_aa"]
FOUND_BY_CHANCE = ("truncated", "unmade")
"""Findings about the model itself, which rows that it makes have, too."""

SMALL = {"human_tra": 10_000, "human_trb": 40_000, "human_igk": 1_500, "human_igh": 60_000, "mouse_tra": 6_000,
         "mouse_trb": 12_000}  # fmt: skip
"""Productive junctions of each locus from which κ is estimated."""

Numbers = Iterator[tuple[str, str, float]]
"""(command, what is measured, how much)."""


def drawn(model: Any, number: int, seed: int) -> pd.DataFrame:
    """Productive junctions."""
    return hpcvdj.generate(model, number, seed=seed, productive=True).select(COLUMNS).to_pandas()


def cohort(model: Any, individuals: int, seed: int, smallest: int, largest: int) -> pd.DataFrame:
    """Individuals of unequal depth, with reads."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(smallest, largest, individuals)
    table = drawn(model, int(sizes.sum()), 1000 + seed)
    table["repertoire_id"] = np.repeat([f"s{k:02d}" for k in range(individuals)], sizes)
    table["duplicate_count"] = np.minimum(np.floor(rng.pareto(1.0, len(table)) + 1), 1e6).astype(int)
    return table


def without_effect(model: Any, table: pd.DataFrame) -> Numbers:
    """What is found in a cohort in which nothing is."""
    fit = check_fit(Inputs.of_table(table, PgenConfig().reads(Reading()), together=True).sample(model, SAMPLE), model)
    yield "check", "genes that fail", sum(own.finding not in FOUND_BY_CHANCE for own in fit.genes)
    yield "check", "lengths that fail", len(fit.lengths)
    yield "check", "calls that contradict the bases", sum(rows for _, rows in fit.contradicted)
    yield "check", "calls compared", fit.calls
    for name, unit in (("sharing vj-aa", "vj-aa"), ("sharing nt", "nt")):
        found = hpcvdj.sharing(table, model, unit=unit)
        for what, value in zip(("q", "q, low", "q, high"), (found.q, *found.q_interval), strict=True):
            yield name, what, value
        yield name, "recombinations for each distinct junction", float(found.sizes.sum() / found.cohort.has.sizes.sum())
        for number in range(2, 6):
            yield name, f"in {number}, observed", int(found.observed[number])
            yield name, f"in {number}, expected", float(found.expected[number])
            error = np.hypot(np.sqrt(found.expected[number]), (found.high[number] - found.low[number]) / 3.92)
            yield name, f"in {number}, z", float((found.observed[number] - found.expected[number]) / error)
        yield name, "sequences tested", found.table.num_rows
        yield name, "hits", found.hits
        yield name, "likely copies", sum(found.table["likely_copy"].to_pylist())
    contaminated = hpcvdj.contamination(table, model)
    yield from pairs_of(contaminated)
    yield "contamination", "pairs of one person", len(contaminated.pairs.of_one_person)
    yield from enriched(model, one_of(table), "")


def one_of(table: pd.DataFrame) -> pd.DataFrame:
    """The junctions of the deepest individual, without reads."""
    name = table["repertoire_id"].value_counts().index[0]
    return table[table["repertoire_id"] == name][COLUMNS]


def pairs_of(found: Any) -> Numbers:
    """What `contamination` says of pairs and common sources."""
    yield "contamination", "pairs", found.table.num_rows
    yield "contamination", "pairs that stand out", len(found.pairs.standing_out)
    yield "contamination", "junctions of a common source", found.improbable.common


def enriched(model: Any, rows: pd.DataFrame, of: str, centres: frozenset[str] = frozenset()) -> Numbers:
    """What `enrich` says of the rows of an individual."""
    found = hpcvdj.enrich(rows, model, max_q=0.05)
    table = found.table.to_pandas()
    hits = set(table["junction_aa"][table["q_value"] <= 0.05])
    yield f"enrich{of}", "kappa", found.kappa or 0.0
    yield f"enrich{of}", "clonotypes", found.clonotypes
    yield f"enrich{of}", "hits", len(hits)
    if centres:
        yield f"enrich{of}", "planted centres", len(centres)
        yield f"enrich{of}", "planted centres that are hits", len(centres & hits)
        near = {text for text in hits if any(exchanges(text, centre) <= 2 for centre in centres)}
        yield f"enrich{of}", "hits near no centre", len(hits - near)
    else:
        observed, expected = (np.array(found.qq[name]) for name in ("observed", "expected"))
        place = int(np.searchsorted(expected, 0.01))
        yield f"enrich{of}", "p-value at the rank of 0.01", float(observed[place])


def kappas(model: Any, number: int, seed: int) -> Numbers:
    """κ of drawn junctions, and its interval."""
    table = hpcvdj.generate(model, number, seed=seed, productive=True).select(COLUMNS)
    for sequence in COLUMNS[2:]:
        found = hpcvdj.enrich(table.select([*COLUMNS[:2], sequence]), model)
        yield f"enrich {sequence}", "kappa", found.estimate.value
        yield f"enrich {sequence}", "kappa, low", found.estimate.low
        yield f"enrich {sequence}", "kappa, high", found.estimate.high
        yield f"enrich {sequence}", "hits", found.hits


def shares(model: Any, table: pd.DataFrame, seed: int) -> Numbers:
    """q, its interval, and the share of draws that survive."""
    # Not crc32: with it, sequences that differ in the same way survive together.
    lots = (blake2b(f"{seed} {text}".encode(), digest_size=8).digest() for text in table["junction_aa"])
    alive = np.array([int.from_bytes(lot) / 2**64 < 0.4 for lot in lots])
    for kept, truth in ((table, 1.0), (table[alive], float(alive.mean()))):
        for unit in ("vj-aa", "nt"):
            found = hpcvdj.sharing(kept, model, unit=unit)
            name = f"sharing {unit}, {'all' if truth == 1 else 'some'} survive"
            yield name, "survivors", truth
            yield from zip([name] * 3, ("q", "q, low", "q, high"), (found.q, *found.q_interval), strict=True)
            yield name, "shared", int(found.observed[2:].sum())


def key_of(table: pd.DataFrame) -> pd.Series:
    """V gene, J gene and amino acids of rows."""
    genes = [table[name].str.split("*").str[0] for name in ("v_call", "j_call")]
    return genes[0] + "|" + genes[1] + "|" + table["junction_aa"]


def planted(model: Any, table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, dict[str, set[str]]]:
    """The cohort with all that is planted, and the keys of copies and public sequences."""
    rng = np.random.default_rng([seed, 1])
    names = sorted(set(table["repertoire_id"]))
    p = hpcvdj.pgen(table[COLUMNS[:3]], model)["pgen_nt"].to_numpy()
    first, third = ((table["repertoire_id"] == names[k]).to_numpy() for k in (0, 2))
    added: list[dict[str, Any]] = []

    def add(row: dict[str, Any], holders: Any, least: int, most: int) -> None:
        added.extend(
            {**row, "repertoire_id": name, "duplicate_count": int(rng.integers(least, most))} for name in holders
        )

    for row in table[first].sample(frac=0.005, random_state=seed).to_dict("records"):
        add(row, names[1:2], 1, 2)
    for row in table[p < np.quantile(p, 0.2)].sample(20, random_state=seed).to_dict("records"):
        add(row, rng.choice(names, rng.integers(6, min(15, len(names))), replace=False), 1, 4)
    probable = third & (p > np.quantile(p[third], 0.6))
    clones = table[probable].drop_duplicates("junction").sample(40, random_state=seed)
    for row in clones.to_dict("records"):
        add(row, names[2:3], 3_000, 60_000)
        add(row, rng.choice(names[3:], rng.integers(5, 9), replace=False), 1, 4)
    others = drawn(model, 1_500_000, 2000 + seed)
    others["key"] = key_of(others)
    times = others["key"].value_counts()
    # The most probable ones, without those that everybody has.
    public = set(rng.permutation(sorted(times[times <= 40].head(400).index))[:40].tolist())
    for _, rows in others[others["key"].isin(public)].groupby("key"):
        holders = rng.permutation(names)[: int(rng.integers(10, len(names) + 1))]
        chosen = rows.sample(min(len(holders), len(rows)), random_state=seed).to_dict("records")
        for row, name in zip(chosen, holders, strict=False):
            add({column: row[column] for column in COLUMNS}, [name], 1, 30)
        added[-1]["duplicate_count"] = int(rng.integers(2_000, 30_000))
    return pd.concat([table, pd.DataFrame(added)], ignore_index=True), {"copies": set(key_of(clones)), "public": public}


def with_effect(model: Any, table: pd.DataFrame, seed: int) -> Numbers:
    """What is found of what is planted."""
    every, keys = planted(model, table, seed)
    contaminated = hpcvdj.contamination(every, model)
    yield from pairs_of(contaminated)
    rows = contaminated.table.to_pylist()
    pair = next(row for row in rows if (row["individual_1"], row["individual_2"]) == ("s00", "s01"))
    yield "contamination", "the planted pair stands out", float((0, 1) in contaminated.pairs.standing_out)
    yield "contamination", "share of the planted pair (0.005)", float(pair["share_of_1"])
    for unit in ("vj-aa", "nt"):
        name, found = f"sharing {unit}", hpcvdj.sharing(every, model, unit=unit).table.to_pandas()
        hits = found[found["q_value"] <= 0.05]
        key = key_of(hits)
        for kind, own in keys.items():
            yield name, f"{kind} among the hits", int(key.isin(own).sum())
            yield name, f"{kind} called likely copies", int(hits["likely_copy"][key.isin(own)].sum())
    sample, centres = with_clusters(model, one_of(table), seed)
    yield from enriched(model, sample, " planted", centres)


def with_clusters(model: Any, rows: pd.DataFrame, seed: int, clusters: int = 10, members: int = 8) -> Any:
    """The rows and clusters of junctions, and the amino acids in their middle."""
    rng = np.random.default_rng([seed, 2])
    rare = drawn(model, 5_000, 3000 + seed)
    p = hpcvdj.pgen(rare[COLUMNS[:3]], model, sequence="aa")["pgen_aa"].to_numpy()
    long = rare["junction"].str.len().to_numpy() >= 36
    rare = rare[long & (p < np.quantile(p[long], 0.05))]
    added, centres = [], []
    for row in rare.head(clusters).to_dict("records"):
        texts = exchanged(row["junction"], members, 6, rng)
        centres.append(row["junction_aa"])
        added += [{**row, "junction": own, "junction_aa": translate([own])[0]} for own in texts]
    return pd.concat([rows, pd.DataFrame(added)], ignore_index=True), frozenset(centres)


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    for name in options.models:
        model = hpcvdj.load_model(name)
        for seed in options.seeds:
            table = cohort(model, options.individuals, seed, *options.recombinations)
            steps = {
                "drawn": without_effect(model, table),
                "planted": with_effect(model, table, seed),
                "kappa": kappas(model, SMALL[name], seed),
                "share": shares(model, table, seed),
            }
            for kind, numbers in ((step, steps[step]) for step in options.steps):
                begun = time.perf_counter()
                of = {"model": name, "seed": seed, "cohort": kind}
                with warnings.catch_warnings(action="ignore"):
                    for command, what, value in numbers:
                        yield of | {"command": command, "measured": what, "value": float(value)}
                yield of | {"command": "all", "measured": "seconds", "value": time.perf_counter() - begun}


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(LOCI, "models"),
        steps=(["drawn", "planted", "kappa", "share"], "what is measured"),
        seeds=([1, 2], "two cohorts for each"),
        individuals=(14, "of a cohort"),
        recombinations=([10_000, 50_000], "of the smallest and the largest individual"),
    )  # fmt: skip
