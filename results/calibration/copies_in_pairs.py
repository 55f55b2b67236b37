"""Are copies in one pair of individuals told by amino acids alone, and is nothing told without copies?

Five drawn individuals of equal and of unequal depth, three seeds each; 400 junctions of the first are copied into the
second.  `python results/calibration/copies_in_pairs.py > results/calibration/copies_in_pairs.txt`
"""

import logging
import warnings

import numpy as np
import pyarrow as pa

import hpcvdj

MODELS = ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb")
DEPTHS = {"equal": [4000] * 5, "unequal": [1000, 2000, 4000, 8000, 8000]}
SEEDS, COPIES = (9021, 9022, 9023), 400


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print("model depths told_without_copies told_with_copies refused_with_copies mean_shared_by_pairs")
    for model in MODELS:
        for name, depths in DEPTHS.items():
            without = told = refused = 0
            shared = []
            for seed in SEEDS:
                people = {
                    f"p{k}": hpcvdj.generate(model, rows, seed=10 * seed + k, productive=True, backend="cpu").select(
                        ["v_call", "j_call", "junction_aa"]
                    )
                    for k, rows in enumerate(depths)
                }
                clean = hpcvdj.sharing(people, model, draws=100_000, backend="cpu")
                without += bool(clean.refuted)
                shared.append(clean.shared[np.triu_indices(len(depths), 1)].mean())
                people["p1"] = pa.concat_tables([people["p1"], people["p0"].slice(0, COPIES)])
                try:
                    told += bool(hpcvdj.sharing(people, model, draws=100_000, backend="cpu").refuted)
                except hpcvdj.InputError:
                    # More is shared than any q explains.
                    refused += 1
            print(model, name, without, told, refused, f"{np.mean(shared):.1f}", flush=True)


if __name__ == "__main__":
    main()
