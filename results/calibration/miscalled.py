"""Rows that are called to a wrong gene, in `hpcvdj sharing`: python results/calibration/miscalled.py SEED.

Eight drawn individuals of 6,000 junctions.  Rightly called, no shared sequence should be left out for its calls.  Then
30 % of the rows of the commonest V gene are called to the next one: these should be left out, and none be a hit.
"""

import sys
import warnings

import pyarrow as pa

import hpcvdj

warnings.simplefilter("ignore")
REASON = "a call contradicts the bases"
print("model,rows turned,shared,left out rightly called,hits,left out turned,hits,hits without leaving out")
for name in ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb"):
    table = hpcvdj.generate(name, 48_000, seed=int(sys.argv[1]), productive=True)
    table = table.select(["v_call", "j_call", "junction"])
    table = table.append_column("repertoire_id", pa.array([f"i{k % 8}" for k in range(len(table))]))
    calls = table["v_call"].to_pylist()
    genes = [call.partition("*")[0] for call in calls]
    first, second = sorted({*genes}, key=lambda gene: -genes.count(gene))[:2]
    other = next(call for call in calls if call.partition("*")[0] == second)
    turned = [other if genes[k] == first and k % 10 < 3 else call for k, call in enumerate(calls)]
    right = hpcvdj.sharing(table, name, q=1)
    wrong, kept = (
        hpcvdj.sharing(table.set_column(0, "v_call", pa.array(turned)), name, q=1, keep_misfits=keep)
        for keep in (False, True)
    )
    numbers = [sum(a != b for a, b in zip(calls, turned, strict=True)), int(right.observed[2:].sum())]
    numbers += [right.not_tested[REASON], right.hits, wrong.not_tested[REASON], wrong.hits, kept.hits]
    print(name, *numbers, sep=",", flush=True)
