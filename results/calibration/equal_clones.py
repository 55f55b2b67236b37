"""Copies among cases whose clones are all equally large: are they hits, and are planted sequences still found?

24 drawn donors, half of them cases, one read for each junction, three seeds.  30 junctions of the first case are copied
into the other cases.  With `planted`, each case also has one of the nucleotide junctions of five sequences, of each of
which the draws have four to twelve.
`python results/calibration/equal_clones.py > results/calibration/equal_clones.txt`
"""

import logging
import warnings

import numpy as np
import pyarrow as pa

import hpcvdj

SIZES = {"human_igk": 400, "human_tra": 1_500, "mouse_tra": 1_000, "mouse_trb": 2_000, "human_trb": 6_000,
         "human_igh": 6_000}  # fmt: skip
"""Junctions of a donor."""
DONORS, COPIES, PLANTED, SEEDS = 24, 30, 5, (9131, 9132, 9133)


def names_of(table: pa.Table) -> list[tuple[str, str, str]]:
    """V gene, J gene and amino acids of each row."""
    calls = ([call.partition("*")[0] for call in table[name].to_pylist()] for name in ("v_call", "j_call"))
    return list(zip(*calls, hpcvdj.translate(table["junction"].to_pylist()), strict=True))


def hits_of(tables: dict[str, pa.Table], model: str, copied: set, planted: set) -> tuple[int, int, int]:
    """The hits among copied sequences, among planted ones, and others."""
    metadata = pa.table({"donor": list(tables), "ill": ["y" if k % 2 else "n" for k in range(DONORS)]})
    reads = {
        name: own.append_column("duplicate_count", pa.array(np.ones(len(own), dtype=int)))
        for name, own in tables.items()
    }
    found = hpcvdj.associate(reads, model, metadata=metadata, case={"ill": "y"}, draws=3_000, backend="cpu", max_p=1.0)
    rows = [
        (row["v_call"], row["j_call"], row["junction_aa"])
        for row in found.table.to_pylist()
        if row["q_value"] is not None and row["q_value"] <= 0.05 and not row["likely_copy"]
    ]
    of_copies, of_planted = sum(row in copied for row in rows), sum(row in planted for row in rows)
    return of_copies, of_planted, len(rows) - of_copies - of_planted


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print("model planted hits_of_copies hits_of_planted of other_hits")
    for model, size in SIZES.items():
        for planted in (False, True):
            sums, number = np.zeros(3, dtype=int), 0
            for seed in SEEDS:
                drawn = hpcvdj.generate(model, (DONORS + 40) * size, seed=seed, productive=True, backend="cpu")
                drawn = drawn.select(["v_call", "j_call", "junction"])
                tables = {f"d{k:02}": drawn.slice(k * size, size) for k in range(DONORS)}
                cases = [name for k, name in enumerate(tables) if k % 2]
                copies = tables[cases[0]].slice(0, COPIES)
                chosen: list[tuple[str, str, str]] = []
                rng, rows_of = np.random.default_rng(seed), dict[tuple[str, str, str], dict[str, int]]()
                if planted:
                    junctions = drawn["junction"].to_pylist()
                    for row, name in enumerate(names_of(drawn)):
                        rows_of.setdefault(name, {})[junctions[row]] = row
                    several = sorted(name for name, own in rows_of.items() if 4 <= len(own) <= 12)
                    chosen = [several[k] for k in rng.permutation(len(several))[:PLANTED]]
                for name in cases:
                    more = [int(rng.choice(list(rows_of[key].values()))) for key in chosen]
                    tables[name] = pa.concat_tables([tables[name], copies, drawn.take(pa.array(more, pa.int64()))])
                sums += hits_of(tables, model, {*names_of(copies)}, {*chosen})
                number += len(chosen)
            print(model, "yes" if planted else "no", sums[0], sums[1], number, sums[2], flush=True)


if __name__ == "__main__":
    main()
