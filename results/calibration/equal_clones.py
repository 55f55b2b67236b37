"""Copies whose clones are all equally large: are they hits of `associate`, and are planted sequences still found?

24 drawn donors, half of them cases, one read for each junction, three seeds.  30 junctions of one donor are copied into
the other cases, into all other donors, into half of them, drawn at random, or into nobody.  Planted are five sequences:
each case has one junction of each, of `several` (of which the draws have four to twelve) or of `one`.  `tests` are
those of which carriers may be copies, that could reach the threshold; of these, `p` and `p_told` are at most 0.05 so
often.
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
DONORS, COPIES, PLANTED, SEEDS = 24, 30, 5, (40711, 40712, 40713)
COHORTS = (
    ("nobody", "several"), ("cases", "several"), ("cases", "no"), ("nobody", "one"), ("all", "one"), ("half", "one"),
    ("all", "no"), ("half", "no"),
)  # fmt: skip
"""Who has the copies, and the junctions of the planted sequences."""
Key = tuple[str, str, str]


def names_of(table: pa.Table) -> list[Key]:
    """V gene, J gene and amino acids of each row."""
    calls = ([call.partition("*")[0] for call in table[name].to_pylist()] for name in ("v_call", "j_call"))
    return list(zip(*calls, hpcvdj.translate(table["junction"].to_pylist()), strict=True))


def answered(tables: dict[str, pa.Table], model: str, copied: set[Key], planted: set[Key]) -> list[int]:
    """The hits among copied sequences, among planted ones, and others; tests, and those with a small p and p_told."""
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
    (test,), has = found.tested, found.carriers.has
    asked = test.kept & np.isin(test.rows, has.sequence[has.reads > 0]) & ~found.carriers.copy[test.rows]
    small = [int((asked & (p <= 0.05)).sum()) for p in (test.p, test.p_told)]
    return [of_copies, of_planted, len(rows) - of_copies - of_planted, int(asked.sum()), *small]


def cohort(model: str, seed: int, receivers: str, kind: str) -> tuple[dict[str, pa.Table], set[Key], set[Key]]:
    """The tables of donors, the copied sequences, and the planted ones."""
    size, rng = SIZES[model], np.random.default_rng(seed)
    drawn = hpcvdj.generate(model, (DONORS + 40) * size, seed=seed, productive=True, backend="cpu")
    drawn = drawn.select(["v_call", "j_call", "junction"])
    tables = {f"d{k:02}": drawn.slice(k * size, size) for k in range(DONORS)}
    cases, copies = [name for k, name in enumerate(tables) if k % 2], tables["d01"].slice(0, COPIES)
    half = rng.choice(list(tables), DONORS // 2, replace=False).tolist()
    for name in {"cases": cases, "all": list(tables), "half": half, "nobody": []}[receivers]:
        tables[name] = pa.concat_tables([tables[name], copies])
    chosen: list[Key] = []
    if kind != "no":
        rows_of, junctions = dict[Key, dict[str, list[int]]](), drawn["junction"].to_pylist()
        for row, key in enumerate(names_of(drawn)):
            rows_of.setdefault(key, {}).setdefault(junctions[row], []).append(row)
        fits = {
            "several": lambda own: 4 <= len(own) <= 12,
            "one": lambda own: len(own) == 1 and len(next(iter(own.values()))) > 1,
        }[kind]
        suitable = sorted(key for key, own in rows_of.items() if fits(own))
        chosen = [suitable[k] for k in rng.permutation(len(suitable))[:PLANTED]]
        for name in cases:
            more = [rng.choice([rows[0] for rows in rows_of[key].values()]) for key in chosen]
            tables[name] = pa.concat_tables([tables[name], drawn.take(pa.array(more, pa.int64()))])
    return tables, {*names_of(copies)}, {*chosen}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print("model copies_in planted hits_of_copies hits_of_planted of other_hits tests p p_told")
    for model in SIZES:
        for receivers, kind in COHORTS:
            number, sums = 0, np.zeros(6, dtype=int)
            for seed in SEEDS:
                tables, copied, planted = cohort(model, seed, receivers, kind)
                sums += answered(tables, model, copied, planted)
                number += len(planted)
            print(model, receivers, kind, *sums[:2], number, *sums[2:], flush=True)


if __name__ == "__main__":
    main()
