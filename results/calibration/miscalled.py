"""Rows that are called to a wrong gene, in three tests: python results/calibration/miscalled.py SEED [WAY ...].

60,000 drawn junctions of each locus, whose V genes are called in five ways.  `sharing` takes them as eight individuals,
`enrich` as one, and `annotate` two thirds as a sample and the others as records of 200 epitopes.  Nothing should be a
hit, and right calls should exclude no row.
"""

import sys
import warnings

import numpy as np
import pyarrow as pa

import hpcvdj

ROWS, RECORDS = 60_000, 20_000
SEED, *ASKED = sys.argv[1:]
warnings.simplefilter("ignore")
print("model,V calls,rows turned,misfits,excluded,hits of sharing,hits of enrich,kappa", end=",")
print("epitopes called,hits of annotate,expected")
for name in ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb"):
    table = hpcvdj.generate(name, ROWS, seed=int(SEED), productive=True)
    table = table.select(["v_call", "j_call", "junction", "junction_aa"])
    calls = np.array(table["v_call"].to_pylist(), dtype=object)
    genes, codes = np.unique([call.partition("*")[0] for call in calls], return_inverse=True)
    call_of = np.array([calls[codes == code][0] for code in range(len(genes))], dtype=object)
    first, second = np.argsort(-np.bincount(codes), kind="stable")[:2]
    rng = np.random.default_rng(int(SEED))
    chance, another = rng.random(ROWS), call_of[rng.integers(0, len(genes), ROWS)]
    exchanged = np.where(codes == first, call_of[second], np.where(codes == second, call_of[first], calls))
    ways = {
        "right": calls,
        "30 % of the commonest gene are the next": np.where((codes == first) & (chance < 0.3), call_of[second], calls),
        "both of these exchanged": exchanged,
        "10 % any gene": np.where(chance < 0.1, another, calls),
        "40 % any gene": np.where(chance < 0.4, another, calls),
    }
    individual, epitope = pa.array([f"i{k % 8}" for k in range(ROWS)]), rng.integers(0, 200, RECORDS)
    for way in ASKED or ways:
        rows = table.set_column(0, "v_call", pa.array(ways[way].tolist()))
        records = rows.slice(0, RECORDS).append_column("epitope", pa.array([f"E{k}" for k in epitope]))
        for keep in (False, True):
            shared = hpcvdj.sharing(rows.append_column("repertoire_id", individual), name, q=1, keep_misfits=keep)
            enriched = hpcvdj.enrich(rows, name, keep_misfits=keep)
            found = hpcvdj.annotate(rows.slice(RECORDS), records, name, kappa=1.0, keep_misfits=keep).epitopes
            left_out = [own.left_out for own in shared.cohort.individuals]
            numbers = [sum(n for own in left_out for reason, n in own.items() if "contradicts" in reason)]
            numbers += [shared.hits, enriched.hits, f"{enriched.kappa:.3f}"]
            numbers += [sum(q is not None and q <= 0.05 for q in found["q_value"].to_pylist())]
            numbers += [sum(found["found"].to_pylist()), f"{sum(found['expected'].to_pylist()):.1f}"]
            turned = int((ways[way] != calls).sum())
            print(name, way, turned, "kept" if keep else "left out", *numbers, sep=",", flush=True)
