"""How long do whole commands take on junctions that a model draws, how much memory do they need, what do they find?

python benchmarks/commands.py --rows 100000 1000000 10000000 --steps enrich --output results/enrich/cpu.csv
python benchmarks/commands.py --steps pgen report --output results/report/raw.csv

Draws productive junctions as one Parquet file, and runs each command on it in a process of its own.  Nothing was
selected, so kappa of `enrich` should be 1 and nothing a hit.  `stages` is the line of the summary that names them.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _common import HPCVDJ, record, run

FACTS = "clonotypes", "tested", "kappa", "hits"


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each number of rows and command."""
    model = ["-m", options.model]
    given = ["--backend", options.backend, "--threads", options.threads]
    with tempfile.TemporaryDirectory() as name:
        for number in options.rows:
            table, result, page = (Path(name) / f"{number}{suffix}" for suffix in (".parquet", ".h5", ".html"))
            enriched, counted = result.with_suffix(".tsv"), result.with_suffix(".count.h5")
            commands = {
                "generate": (["--productive", *model, "-n", number, "--backend", options.backend], table),
                "count": ([table, "-g", options.germline, *given], counted),
                "pgen": ([table, *model, *given], result),
                "enrich": ([table, *model, *given], enriched),
                "report": ([result], page),
            }
            needed = {"generate"} | ({"pgen"} if "report" in options.steps else set())
            for command, (words, target) in commands.items():
                if command not in needed.union(options.steps):
                    continue
                done = run([*HPCVDJ, command, *words, "-o", target])
                if command not in options.steps:
                    continue
                stages = re.search(r"^time +(.*)$", done.stdout, re.MULTILINE)
                row = {"command": command, "model": options.model, "rows": number, **done.used}
                row |= {"bytes": target.stat().st_size, "stages": stages.group(1) if stages else ""}
                if command == "enrich":
                    facts = json.loads(target.with_name(target.name + ".json").read_text())
                    row |= {fact: facts[fact] for fact in FACTS}
                yield row


if __name__ == "__main__":
    record(
        __doc__, measured,
        rows=([100_000, 1_000_000], "junctions, the smallest number first"),
        steps=(["generate", "count", "pgen", "enrich", "report"], "commands to measure"),
        model=("human_trb_m15", "a recombination model"),
        germline=("human_trb", "germline table of count"),
        backend=("cpu", "cpu or cuda"),
        threads=(0, "of each command; 0: all cores"),
    )  # fmt: skip
