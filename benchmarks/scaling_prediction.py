"""How long would it take on 4 and 8 GPUs?  A prediction from what was measured on 1 and 2.

    python benchmarks/scaling_prediction.py > results/strong_scaling_h200/prediction.md

Takes the raw rows of results/strong_scaling_h200.  On g GPUs a step takes a + b / g seconds: a is what one rank does
alone or all ranks do each, b what they share.  Two numbers of GPUs tell both, so nothing is left to test the form with,
but for `bitwise`: an earlier host had eight GPUs (results/scaling_h200).
"""

import csv
import re
import statistics
from collections import defaultdict
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
MEASURED = RESULTS / "strong_scaling_h200"
PREDICTED = (4, 8)

Times = dict[str, dict[int, float]]


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path) as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def bitwise(folder: Path) -> Times:
    """Medians of seconds by n-length and GPUs."""
    every: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("raw-bitwise-*.csv")):
        for row in rows_of(path):
            every[f"`bitwise`, m = {row['m']}"][int(row["ranks"])].append(float(row["wall"]))
    return {what: {gpus: statistics.median(own) for gpus, own in of.items()} for what, of in every.items()}


def commands(path: Path) -> Times:
    """The faster of the repeats, as the first run of some compiles: whole commands, and an iteration of `infer`."""
    every: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(path):
        gpus = int(row["gpus"])
        every[f"`{row['step']}`, {row['what']}, the whole command"][gpus].append(float(row["wall_seconds"]))
        if found := re.search(r"iteration ([\d.]+) s", row["stages"]):
            every["`infer`, an iteration"][gpus].append(float(found[1]))
    return {what: {gpus: min(own) for gpus, own in of.items()} for what, of in every.items()}


def parts(of: dict[int, float]) -> tuple[float, float]:
    """a and b, neither below 0."""
    alone = min(max(2 * of[2] - of[1], 0.0), of[1])
    return alone, of[1] - alone


def main() -> None:
    earlier = bitwise(RESULTS / "scaling_h200")
    print("# On 4 and 8 GPUs: a prediction\n")
    print("**Nothing on this page was measured on 4 or 8 GPUs, but for the last column.** Made by\n")
    print("    python benchmarks/scaling_prediction.py > results/strong_scaling_h200/prediction.md\n")
    print(
        "from the seconds on 1 and 2 H200s ([page](README.md)): a + b / g on g GPUs. The last column is an earlier host"
    )
    print("with eight ([page](../scaling_h200/README.md)), of the first version of the program.\n")
    print("| what | 1 | 2 | a | b | 4, predicted | 8, predicted | 8, of an earlier host |")
    print("|---|---|---|---|---|---|---|---|")
    for what, of in {**bitwise(MEASURED / "bitwise"), **commands(MEASURED / "raw.csv")}.items():
        if {1, 2} <= of.keys():
            alone, shared = parts(of)
            predicted = [f"{alone + shared / gpus:.3g}" for gpus in PREDICTED]
            other = earlier.get(what, {}).get(8)
            cells = [f"{of[1]:.3g}", f"{of[2]:.3g}", f"{alone:.3g}", f"{shared:.3g}", *predicted]
            print(f"| {what} | {' | '.join(cells)} | {'' if other is None else f'{other:.3g}'} |")
    print("\nWhole commands are bound by starting, reading and writing, which more GPUs do not shorten.")


if __name__ == "__main__":
    main()
