"""Rows that are called to a wrong gene, in `sharing` and `enrich`: python results/calibration/miscalled.py SEED.

Eight drawn individuals of 6,000 junctions.  Rightly called, no row should be excluded for its calls.  Then 30 % of the
rows of the commonest V gene are called to the next one: these should be excluded, and nothing be a hit.
"""

import sys
import warnings
from typing import Any

import pyarrow as pa

import hpcvdj

warnings.simplefilter("ignore")


def excluded(answer: Any) -> int:
    return sum(n for own in answer.cohort.individuals for reason, n in own.left_out.items() if "contradicts" in reason)


print("model,rows turned,excluded as drawn,excluded turned", end=",")
print("hits of sharing as drawn,turned,turned and kept,hits of enrich as drawn,turned,turned and kept", end=",")
print("kappa as drawn,turned,turned and kept")
for name in ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb"):
    table = hpcvdj.generate(name, 48_000, seed=int(sys.argv[1]), productive=True)
    table = table.select(["v_call", "j_call", "junction"])
    calls = table["v_call"].to_pylist()
    genes = [call.partition("*")[0] for call in calls]
    first, second = sorted({*genes}, key=lambda gene: -genes.count(gene))[:2]
    other = next(call for call in calls if call.partition("*")[0] == second)
    turned = [other if genes[k] == first and k % 10 < 3 else call for k, call in enumerate(calls)]
    wrong = table.set_column(0, "v_call", pa.array(turned))
    individual = pa.array([f"i{k % 8}" for k in range(len(table))])
    shared, enriched = [], []
    for rows, keep in ((table, False), (wrong, False), (wrong, True)):
        cohort = rows.append_column("repertoire_id", individual)
        shared.append(hpcvdj.sharing(cohort, name, q=1, keep_misfits=keep))
        enriched.append(hpcvdj.enrich(rows, name, keep_misfits=keep))
    numbers = [sum(a != b for a, b in zip(calls, turned, strict=True)), *map(excluded, shared[:2])]
    numbers += [answer.hits for answer in (*shared, *enriched)] + [f"{answer.kappa:.3f}" for answer in enriched]
    print(name, *numbers, sep=",", flush=True)
