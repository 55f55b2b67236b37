"""How many junctions without errors are taken for likely sequencing errors, and how long does the search take?

python benchmarks/likely_errors.py --output results/likely_errors/raw.csv

Junctions and their reads are drawn, so none is an error: those that are taken for errors are so by chance.  `donor`
draws the reads as one donor has them (human TRB, CD8 T cells, Minervina et al. 2021): 76 % of the junctions have one
read, 1 % have 20 or more.  `heavy` is a Pareto distribution with exponent 1: 33 % have one read, 5 % have 20 or more.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from _common import record, timed

import hpcvdj
from hpcvdj.api.tables import model_of
from hpcvdj.chance.clonotypes import distinct_junctions
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.inference.tables import reading_for
from hpcvdj.kernels.neighbours.counted import CountedSequences
from hpcvdj.kernels.neighbours.exchanges import exchanged
from hpcvdj.kernels.neighbours.indels import one_indel_away
from hpcvdj.kernels.neighbours.likely_errors import likely_errors
from hpcvdj.repertoires.genes import kinds_of
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from tests.dealt import dealt_of

DONOR = {1: 1.0, 2: 0.2365, 3: 0.0944, 5: 0.0399, 10: 0.0191, 20: 0.0098, 50: 0.0041, 100: 0.0020, 400: 0.00077,
         1000: 0.00042, 8000: 0.00009, 40_000: 0.00001}  # fmt: skip
"""The share of a donor's rows that have so many reads or more."""


def drawn_reads(name: str, number: int) -> np.ndarray:
    """Reads of so many junctions, int64."""
    rng = np.random.default_rng(7)
    if name == "heavy":
        return np.round(rng.pareto(1, number) + 1).astype(np.int64)
    tail, reads = np.log(list(DONOR.values())), np.log(list(DONOR))
    return np.floor(np.exp(np.interp(-np.log(1 - rng.random(number)), -tail, reads))).astype(np.int64)


def percent(flags: np.ndarray) -> str:
    return f"{100 * flags.mean():.3f}" if len(flags) else ""


def searched(every: CountedSequences, pairs: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Likely errors among some rows, and processor seconds."""
    likely_errors(every, pairs, rows[:100])
    found, times = timed(lambda: likely_errors(every, pairs, rows))
    return found, times["cpu_seconds"]


def productive(model: Any, number: int, name: str) -> dict[str, Any]:
    """Of productive junctions: likely errors, and those by the same genes and up to two bases."""
    drawn = hpcvdj.generate(model, number, seed=1, productive=True)
    reads = drawn_reads(name, number)
    read = read_table(drawn, model, productive_reading())
    found = distinct_junctions(dealt_of(replace(read, reads=reads[read.row]), model).whole, errors=True)
    own, pairs = found.repertoire, kinds_of(found.repertoire)[found.rows]
    every = CountedSequences(own.words[found.rows], own.lengths[found.rows], found.reads, np.zeros_like(pairs))
    errors, seconds = searched(every, pairs, np.arange(len(every)))
    of_pair = replace(every, individuals=pairs)
    large = of_pair.largest_first()
    same = exchanged(of_pair, large, 1, 20) | exchanged(of_pair, large, 2, 400)
    return {
        "junctions": len(every), "read_once": percent(every.reads == 1), "errors": percent(errors),
        "same_genes_two_bases": percent(same), "cpu_seconds": seconds,
    }  # fmt: skip


def out_of_frame(model: Any, number: int, name: str) -> dict[str, Any]:
    """Of rows out of frame: those that are one base from a row in frame with the same genes, and with any."""
    junctions = read_table(hpcvdj.generate(model, number, seed=1), model, reading_for(InferenceSettings()))
    own, pairs = junctions.repertoire, kinds_of(junctions.repertoire)
    every = CountedSequences(own.words, own.lengths, drawn_reads(name, number)[junctions.row], np.zeros_like(pairs))
    in_frame = own.lengths % 3 == 0
    near = [
        one_indel_away(given[~in_frame], given[in_frame].largest_first())
        for given in (replace(every, individuals=pairs), every)
    ]
    _, seconds = searched(every, pairs, np.flatnonzero(~in_frame))
    return {
        "out_of_frame": int((~in_frame).sum()), "indels": percent(near[0]), "indels_any_genes": percent(near[1]),
        "cpu_seconds_out_of_frame": seconds,
    }  # fmt: skip


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    for name in options.models:
        model = model_of(name)
        for number in options.rows:
            for reads in ("donor", "heavy"):
                found = productive(model, number, reads) | out_of_frame(model, number, reads)
                yield {"model": name, "reads": reads, **found}


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(["human_trb", "human_tra", "human_igk", "mouse_tra"], "models"),
        rows=([20_000, 100_000, 1_000_000], "junctions drawn from each"),
    )  # fmt: skip
