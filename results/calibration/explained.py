"""How probable a junction must be with other genes for its calls to be wrong: python explained.py SEED [SEED ...].

For several values of `EXPLAINED`: of human TRB, the planted amino acids that random codons spell and that are excluded
beside wrong calls (none should be); of human IGK with wrong calls, the rows that are excluded and the hits of `enrich`.
"""

import sys
import warnings

import numpy as np
import pyarrow as pa

import hpcvdj
from hpcvdj.chance import dealing

ROWS = 60_000
warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
codons = np.array([a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"])
letters = np.array(list(hpcvdj.translate(codons.tolist())))


def with_wrong_calls(name: str, gene: str, other: str, seed: int) -> tuple[pa.Table, list[bool]]:
    """Draw junctions, and call 30 % of those of a gene to another one."""
    table = hpcvdj.generate(name, ROWS, seed=seed, productive=True)
    calls = table["v_call"].to_pylist()
    turned = [k % 10 < 3 and call.startswith(f"{gene}*") for k, call in enumerate(calls)]
    called = pa.array([other if wrong else call for call, wrong in zip(calls, turned, strict=True)])
    table = table.set_column(table.column_names.index("v_call"), "v_call", called)
    return table.select(["v_call", "j_call", "junction", "junction_aa"]), turned


print("seed,EXPLAINED,spelled by random codons,excluded,IGK rows turned,excluded,hits of enrich,kappa")
for seed in map(int, sys.argv[1:]):
    light, turned = with_wrong_calls("human_igk", "IGKV3-20", "IGKV4-1*01", seed)
    beta, _ = with_wrong_calls("human_trb", "TRBV20-1", "TRBV5-1*01", seed)
    planted = [k % 20 == 7 for k in range(ROWS)]
    texts = zip(planted, *(beta[name].to_pylist() for name in ("junction_aa", "junction")), strict=True)
    junctions = [
        "".join(rng.choice(codons[letters == letter]) for letter in text) if of else junction
        for of, text, junction in texts
    ]
    beta = beta.set_column(2, "junction", pa.array(junctions))
    honest = beta.filter(pa.array([not of for of in planted]))
    for share in (0.003, 0.01, 0.03, 0.1, 0.25, 0.5):
        dealing.EXPLAINED = share
        every, others = (hpcvdj.enrich(rows, "human_trb").excluded for rows in (beta, honest))
        found = hpcvdj.enrich(light, "human_igk")
        numbers = sum(planted), every - others, sum(turned), found.excluded, found.hits, f"{found.kappa:.3f}"
        print(seed, share, *numbers, sep=",", flush=True)
