"""Generation probabilities beside OLGA: the same numbers, for thousands of junctions of every locus.

python benchmarks/pgen_olga.py               compute, write results/pgen_olga/{raw.csv,README.md}
python benchmarks/pgen_olga.py --render      make README.md again from raw.csv

OLGA (GPL-3.0) is imported if it is installed; nothing of it is copied.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _common import say

from hpcvdj.studies.pages import Block, Check
from hpcvdj.studies.tables import grouped, listing

VALUES = ("pgen_nt", "pgen_aa")

LARGEST_DIFFERENCE = 1e-12
"""Relative; the bound that hpcvdj promises."""


@dataclass(frozen=True)
class Row:
    """The values of one kind of the junctions with one kind of call.

    mask          allele, gene, list or none: what the calls of V and J say
    value         pgen_nt or pgen_aa
    junctions     how many; mutated and random ones are among them
    positive      how many have a probability above 0
    zeros         whether hpcvdj and OLGA have zeros at the same rows
    different     the largest relative difference from OLGA with its loop over insertions completed
    shipped       the same from OLGA as shipped
    shipped_wrong  how many of OLGA's values as shipped differ by more than LARGEST_DIFFERENCE
    lengths       how many lengths each insertion has, with "+" between
    """

    locus: str = ""
    mask: str = ""
    value: str = ""
    junctions: int = 0
    positive: int = 0
    zeros: bool = True
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


def measure_locus(name: str, number: int, seed: int, *, fast: bool) -> Iterator[Row]:
    """The rows of one locus."""
    from hpcvdj.recombination.igor import load_model
    from tests.kernels.pgen.models import queries, values_of

    model = load_model(name)
    rows = queries(model, number, seed)
    own = values_of(model, rows)
    complete, shipped = (peer_values(name, rows, complete=whole, fast=fast) for whole in (True, False))
    lengths = "+".join(str(len(insertion.lengths)) for insertion in model.insertions)
    masks = np.array([row.mask for row in rows])
    for mask in dict.fromkeys(masks.tolist()):
        for column, value in enumerate(VALUES):
            ours, whole, as_is = (values[masks == mask, column] for values in (own, complete, shipped))
            from_shipped = differences(whole, as_is)
            yield Row(
                locus=name, mask=mask, value=value, junctions=len(ours), positive=int((whole > 0).sum()),
                zeros=bool(np.array_equal(ours == 0, whole == 0)),
                different=float(differences(ours, whole).max(initial=0.0)),
                shipped=float(from_shipped.max(initial=0.0)),
                shipped_wrong=int((from_shipped > LARGEST_DIFFERENCE).sum() + ((as_is == 0) & (whole > 0)).sum()),
                lengths=lengths,
            )  # fmt: skip
    say(f"{name}: {len(rows):,} junctions")


class PgenOlga(common.Benchmark):
    """hpcvdj and OLGA."""

    name = "pgen_olga"
    title = "Generation probabilities beside OLGA"
    row = Row
    renderer = "python benchmarks/pgen_olga.py --render"
    about = "Compare hpcvdj's generation probabilities with OLGA's for junctions drawn from each of its models."
    output = Path("results/pgen_olga")
    notes = """
    Half of the junctions are drawn from the model of the locus, a third are drawn and mutated, a sixth are random
    between Cys and the end of a J. Calls: an allele, a gene, a list of genes, or none.

    OLGA 1.3.0 does not sum the longest insertion in one of three reading frames if the number of lengths of an
    insertion is 2 (mod 3). *As shipped* has its values as they are; the other columns have its loop completed by three
    zeros after the lengths.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which loci, and how many junctions."""
        from hpcvdj.recombination.igor import OLGA_FOLDERS

        add = parser.add_argument
        add("--loci", metavar="NAME", nargs="*", default=list(OLGA_FOLDERS), help="names of models")
        add("--number", metavar="N", type=int, default=2000, help="junctions of a locus")
        add("--number-igh", metavar="N", type=int, default=250, help="junctions of IGH, where OLGA is slow")
        add("--plain", action="store_true", help="OLGA without its numba-compiled FastPgen")
        add("--threads", metavar="N", type=int, default=0, help="threads of hpcvdj; 0: all usable cores")
        add("--seed", metavar="S", type=int, default=1, help="seed of the junctions")

    def facts(self, options: argparse.Namespace) -> dict[str, str]:
        """OLGA's version; ends the benchmark if it is not installed."""
        try:
            return {"olga": metadata.version("olga"), "olga's class": "plain" if options.plain else "FastPgen"}
        except metadata.PackageNotFoundError:
            sys.exit("OLGA is not installed; pip install olga==1.3.0")

    def measure(self, options: argparse.Namespace) -> Iterator[Row]:
        """All loci."""
        sys.path.append(str(common.ROOT))
        for name in options.loci:
            number = options.number_igh if name.endswith("igh") else options.number
            yield from measure_locus(name, number, options.seed, fast=not options.plain)

    def page(self, rows: list[Row]) -> Iterator[Block]:
        """A table of the loci, and one of the calls."""
        worst = max(row.different for row in rows)
        equal = worst <= LARGEST_DIFFERENCE and all(row.zeros for row in rows)
        junctions = sum(row.junctions for row in rows) // len(VALUES)
        yield Check(equal, f"generation probabilities (to {LARGEST_DIFFERENCE:g}, and their zeros)", "programs")
        yield f"{junctions:,} junctions, nucleotides and amino acids; largest relative difference {worst:.1e}."
        yield "## Loci"
        yield table_of(rows, "locus")
        yield "## Calls"
        yield table_of(rows, "mask")


def table_of(rows: list[Row], by: str) -> str:
    """A line for each value of a column, and each kind of probability."""
    return listing(
        grouped(rows, by, "value").values(),
        {
            by: lambda group: getattr(group[0], by),
            "value": lambda group: f"`{group[0].value}`",
            "junctions": lambda group: f"{sum(row.junctions for row in group):,}",
            "above 0": lambda group: f"{sum(row.positive for row in group):,}",
            "zeros at the same rows": lambda group: "yes" if all(row.zeros for row in group) else "**NO**",
            "largest relative difference": lambda group: f"{max(row.different for row in group):.1e}",
            "OLGA as shipped: largest": lambda group: f"{max(row.shipped for row in group):.1e}",
            "OLGA as shipped: wrong values": lambda group: f"{sum(row.shipped_wrong for row in group):,}",
        }
        | ({"lengths of insertions": lambda group: group[0].lengths} if by == "locus" else {}),
    )


if __name__ == "__main__":
    raise SystemExit(PgenOlga().main())
