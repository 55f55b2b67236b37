"""Generation probabilities beside OLGA: the same numbers, for thousands of junctions of every locus.

python benchmarks/pgen_olga.py               compute, write results/pgen_olga/{raw.csv,README.md}
python benchmarks/pgen_olga.py --render      make README.md again from raw.csv

OLGA (GPL-3.0) is imported if it is installed; nothing of it is copied.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _common import say
from _pgen import LARGEST_DIFFERENCE, PgenBenchmark

from hpcvdj.recombination.igor import OLGA_FOLDERS, PUBLISHED
from hpcvdj.studies.pages import Block, Check
from hpcvdj.studies.tables import grouped, listing, pivot

VALUES = ("pgen_nt", "pgen_aa")

PROGRAMS = ("plain", "FastPgen")
"""OLGA's classes; the second is compiled by numba."""

BATCH = 100
"""Junctions that hpcvdj computes at a time: its tables grow with the number of different lists of genes."""


@dataclass(frozen=True)
class Row:
    """The values of one kind of the junctions with one kind of call.

    program       OLGA's class: FastPgen or plain
    source        model: junctions drawn from it, and changed; table: observed junctions
    mask          allele, gene, list or none: what the calls of V and J say
    value         pgen_nt or pgen_aa
    junctions     how many
    positive      how many have a probability above 0
    zeros_apart   how many have probability 0 by only one of hpcvdj and OLGA
    different     the largest relative difference from OLGA with its loop over insertions completed
    shipped       the same from OLGA as shipped
    shipped_wrong  how many of OLGA's values as shipped differ by more than LARGEST_DIFFERENCE
    lengths       how many lengths each insertion has, with "+" between
    """

    locus: str = ""
    program: str = ""
    source: str = ""
    mask: str = ""
    value: str = ""
    junctions: int = 0
    positive: int = 0
    zeros_apart: int = 0
    different: float = math.nan
    shipped: float = math.nan
    shipped_wrong: int = 0
    lengths: str = ""


def differences(values: Any, expected: Any) -> Any:
    """Relative differences from `expected` where it is above 0."""
    positive = expected > 0
    return np.abs(values - expected)[positive] / expected[positive]


def peer_values(name: str, rows: list[Any], *, complete: bool, fast: bool) -> Any:
    """OLGA's values, float64 [rows, 2]."""
    from hpcvdj.recombination.alphabet import translate
    from tests.kernels.pgen.olga_peer import Olga

    olga = Olga(name, complete=complete, fast=fast)
    out = np.zeros((len(rows), len(VALUES)))
    for place, (row, text) in enumerate(zip(rows, translate(row.junction for row in rows), strict=True)):
        out[place] = olga.nt(row.junction, row.v_call, row.j_call), olga.aa(text, row.v_call, row.j_call)
    return out


def observed(model: Any, table: Path, number: int, seed: int) -> list[Any]:
    """Different junctions of whole codons, up to 90 bases, from an AIRR table; their genes and none take turns.

    Only rows with genes of the model: OLGA takes all genes for a name that it does not know.
    """
    from tests.kernels.pgen.models import Query

    with (gzip.open if table.suffix == ".gz" else open)(table, "rt") as stream:
        rows = {(row["junction"], row["v_call"], row["j_call"]) for row in csv.DictReader(stream, delimiter="\t")}
    chosen: list[Any] = []
    for junction, *calls in random.Random(seed).sample(sorted(rows), len(rows)):
        known = all(model.find(segment, call) for segment, call in zip("VJ", calls, strict=True))
        if known and len(junction) % 3 == 0 and 6 <= len(junction) <= 90 and set(junction) <= set("ACGT"):
            mask = ("gene", "none")[len(chosen) % 2]
            genes = [call.partition("*")[0] if mask == "gene" else "" for call in calls]
            chosen.append(Query(junction, *genes, mask, "observed"))
    return chosen[:number]


def measure_locus(name: str, source: str, rows: list[Any], *, fast: bool) -> Iterator[Row]:
    """The rows of one locus and source."""
    from hpcvdj.recombination.igor import load_model
    from tests.kernels.pgen.models import values_of

    model = load_model(f"{name}{PUBLISHED}")
    own = np.concatenate([values_of(model, rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)])
    complete, shipped = (peer_values(name, rows, complete=whole, fast=fast) for whole in (True, False))
    lengths = "+".join(str(len(insertion.lengths)) for insertion in model.insertions)
    masks = np.array([row.mask for row in rows])
    for mask in dict.fromkeys(masks.tolist()):
        for column, value in enumerate(VALUES):
            ours, whole, as_is = (values[masks == mask, column] for values in (own, complete, shipped))
            from_shipped = differences(whole, as_is)
            yield Row(
                locus=name, program=PROGRAMS[fast], source=source, mask=mask, value=value, junctions=len(ours),
                positive=int((whole > 0).sum()),
                zeros_apart=int(((ours == 0) != (whole == 0)).sum()),
                different=float(differences(ours, whole).max(initial=0.0)),
                shipped=float(from_shipped.max(initial=0.0)),
                shipped_wrong=int((from_shipped > LARGEST_DIFFERENCE).sum() + ((as_is == 0) & (whole > 0)).sum()),
                lengths=lengths,
            )  # fmt: skip
    say(f"{name}, {source}: {len(rows):,} junctions")


class PgenOlga(PgenBenchmark):
    """hpcvdj and OLGA."""

    name = "pgen_olga"
    title = "Generation probabilities beside OLGA"
    row = Row
    renderer = "python benchmarks/pgen_olga.py --render"
    about = "Compare hpcvdj's generation probabilities with OLGA's for junctions drawn from each of its models."
    output = Path("results/pgen_olga")
    peers = ("olga==1.3.0",)
    loci = tuple(OLGA_FOLDERS)
    junctions = 2000
    threads = 0
    notes = """
    Half of the junctions of a model are drawn from it, a third are drawn and mutated, a sixth are random between Cys
    and the end of a J. Calls: an allele, a gene, a list of genes, or none. The observed ones are those of Dash et al.
    2017 (mouse) and Minervina et al. 2021 (human), from the repository of tcrdist3: different ones of whole codons,
    with genes that the model has; their calls are genes or none.

    hpcvdj's models are those with OLGA's alleles as they are (`human_trb:published`). By default hpcvdj
    [corrects](../../docs/olga_alleles.md) some of them.

    OLGA 1.3.0 does not sum the longest insertion in one of three reading frames if the number of lengths of an
    insertion is 2 (mod 3). *As shipped* has its values as they are; the other columns have its loop completed by three
    zeros after the lengths.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Also those of IGH and of tables, and which class of OLGA."""
        super().add_arguments(parser)
        add = parser.add_argument
        add("--number-igh", metavar="N", type=int, default=250, help="junctions of IGH, where OLGA is slow")
        add("--observed", metavar="NAME=TABLE", nargs="*", default=[], help="AIRR tables of observed junctions")
        add("--plain", action="store_true", help="OLGA without its numba-compiled FastPgen")

    def measure(self, options: argparse.Namespace) -> Iterator[Row]:
        """All loci."""
        sys.path.append(str(common.ROOT))
        from hpcvdj.recombination.igor import load_model
        from tests.kernels.pgen.models import queries

        tables = dict(entry.split("=", 1) for entry in options.observed)
        for name in options.loci:
            model = load_model(f"{name}{PUBLISHED}")
            number = options.number_igh if name.endswith("igh") else options.number
            rows = {"model": queries(model, number, options.seed)}
            if name in tables:
                rows["table"] = observed(model, common.ROOT / tables[name], number, options.seed)
            for source, queried in rows.items():
                yield from measure_locus(name, source, queried, fast=not options.plain)

    def page(self, rows: list[Row]) -> Iterator[Block]:
        """A table of the loci, and one of the calls."""
        worst = largest(rows)
        equal = worst <= LARGEST_DIFFERENCE and all(row.zeros_apart == 0 for row in rows)
        junctions = sum(row.junctions for row in rows) // len(VALUES)
        yield Check(equal, f"generation probabilities (to {LARGEST_DIFFERENCE:g}, and their zeros)", "programs")
        yield f"{junctions:,} junctions, nucleotides and amino acids; largest relative difference {worst:.1e}."
        yield listing(
            grouped(rows, "locus", "program", "source", "value").values(),
            {
                "locus": lambda group: group[0].locus,
                "OLGA": lambda group: group[0].program,
                "lengths of insertions": lambda group: group[0].lengths,
                "junctions": lambda group: {"model": "of the model", "table": "observed"}[group[0].source],
                "value": lambda group: f"`{group[0].value}`",
                "number": lambda group: f"{sum(row.junctions for row in group):,}",
                "above 0": lambda group: f"{sum(row.positive for row in group):,}",
                "zeros at other rows": lambda group: sum(row.zeros_apart for row in group),
                "largest relative difference": lambda group: f"{largest(group):.1e}",
                "as shipped: largest": lambda group: f"{max(row.shipped for row in group):.1e}",
                "as shipped: wrong values": lambda group: f"{sum(row.shipped_wrong for row in group):,}",
            },
        )
        yield "## By calls"
        yield "Largest relative differences from OLGA with its loop completed; zeros are at the same rows" + (
            "." if all(row.zeros_apart == 0 for row in rows) else ", **EXCEPT FOR SOME**."
        )
        yield pivot(rows, "locus", "mask", lambda group: f"{largest(group):.1e}", "locus")


def largest(rows: list[Row]) -> float:
    """The largest relative difference of some rows."""
    return max(row.different for row in rows)


if __name__ == "__main__":
    raise SystemExit(PgenOlga().main())
