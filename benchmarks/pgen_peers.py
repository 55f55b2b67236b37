"""Generation probabilities by three programs: hpcvdj, OLGA and vdjtools.

python benchmarks/pgen_peers.py              compute, write results/pgen_peers/{raw.csv,README.md}
python benchmarks/pgen_peers.py --render     make README.md again from raw.csv

OLGA and vdjtools (both GPL) are imported if they are installed; nothing of them is copied.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _common import say
from _pgen import LARGEST_DIFFERENCE, PgenBenchmark, asked_with, drawn
from _vdjtools import VERSION, Vdjtools

from hpcvdj.studies.pages import Block
from hpcvdj.studies.tables import listing, number

OTHER_ANCHORS = {"human_trb": "TRBV4-3*02"}
"""V alleles of which OLGA's file of anchors and vdjtools begin the junction at different bases."""


@dataclass(frozen=True)
class Row:
    """The values of one program beside those of hpcvdj.

    genes         given (the V and J alleles of each junction) or any
    value         pgen_nt, pgen_aa or pgen_aa_1mm
    positive      how many junctions have a probability above 0 by hpcvdj
    zeros_apart   how many have probability 0 by only one of both
    different     how many of the others differ by more than LARGEST_DIFFERENCE
    lowest, highest, median  relative differences from hpcvdj, the last without its sign
    """

    locus: str = ""
    genes: str = ""
    value: str = ""
    program: str = ""
    junctions: int = 0
    positive: int = 0
    zeros_apart: int = 0
    different: int = 0
    lowest: float = math.nan
    highest: float = math.nan
    median: float = math.nan


def compared(own: Any, peer: Any, **what: Any) -> Row:
    """The row of a program's values."""
    both = (own > 0) & (peer > 0)
    relative = (peer - own)[both] / own[both]
    return Row(
        **what, junctions=len(own), positive=int((own > 0).sum()),
        zeros_apart=int(((own > 0) != (peer > 0)).sum()), different=int((np.abs(relative) > LARGEST_DIFFERENCE).sum()),
        lowest=float(relative.min()), highest=float(relative.max()), median=float(np.median(np.abs(relative))),
    )  # fmt: skip


def peer_values(name: str, texts: list[str], amino_acids: list[str], calls: list[Any], ball: int) -> Iterator[Any]:
    """(value, program, values) of the peers, for the first `ball` junctions of the sum over one mismatch."""
    from tests.kernels.pgen.olga_peer import Olga

    for complete, program in ((False, "OLGA as shipped"), (True, "OLGA completed")):
        olga = Olga(name, complete=complete, fast=True)
        for value, compute, sequences in (("pgen_nt", olga.nt, texts), ("pgen_aa", olga.aa, amino_acids)):
            yield value, program, [compute(text, *call) for text, call in zip(sequences, calls, strict=True)]
    vdjtools = Vdjtools(name)
    found = {"pgen_nt": vdjtools.nt(texts, calls), "pgen_aa": vdjtools.aa(amino_acids, calls)}
    found["pgen_aa_1mm"] = vdjtools.aa(amino_acids[:ball], calls[:ball], mismatches=1)
    for value, values in found.items():
        yield value, "vdjtools", values
    if name in OTHER_ANCHORS and calls[0][0] == "":
        only = [(OTHER_ANCHORS[name], "")] * len(texts)
        less = vdjtools.nt(texts, only), vdjtools.aa(amino_acids, only)
        less = (*less, vdjtools.aa(amino_acids[:ball], only[:ball], mismatches=1))
        for (value, values), part in zip(found.items(), less, strict=True):
            yield value, f"vdjtools, less {OTHER_ANCHORS[name]}", np.subtract(values, part)


def measure_locus(name: str, junctions: int, ball: int, seed: int) -> Iterator[Row]:
    """The rows of one locus; a quarter of its junctions are mutated."""
    from hpcvdj.recombination.alphabet import translate
    from hpcvdj.recombination.igor import PUBLISHED, load_model
    from hpcvdj.recombination.repertoire import PGEN_COLUMNS
    from tests.kernels.pgen.models import mutated, pgens

    model, rng = load_model(f"{name}{PUBLISHED}"), np.random.default_rng(seed)
    rows = drawn(model, junctions, seed)
    texts = [row.junction for row in rows]
    changed = [mutated(text, rng) if place % 4 == 3 else text for place, text in enumerate(texts)]
    texts = [new if "*" not in own else old for new, own, old in zip(changed, translate(changed), texts, strict=True)]
    amino_acids = translate(texts)
    for genes in ("given", "any"):
        asked, calls = asked_with(genes, model, rows, texts)
        own = dict(zip(PGEN_COLUMNS, pgens(model, asked).T, strict=True))
        for value, program, values in peer_values(name, texts, amino_acids, calls, ball):
            what = {"locus": name, "genes": genes, "value": value, "program": program}
            yield compared(own[value][: len(values)], np.array(values), **what)
    say(f"{name}: {len(texts):,} junctions")


class PgenPeers(PgenBenchmark):
    """hpcvdj, OLGA and vdjtools."""

    name = "pgen_peers"
    title = "Generation probabilities by three programs"
    row = Row
    renderer = "python benchmarks/pgen_peers.py --render"
    about = "Compare hpcvdj's generation probabilities with those of OLGA and vdjtools under the same models."
    output = Path("results/pgen_peers")
    peers = ("olga==1.3.0", f"vdjtools=={VERSION}")
    remedy = ", in an own environment"
    loci = ("mouse_trb", "human_trb", "mouse_tra", "human_igk")
    junctions = 400
    threads = 1
    notes = """
    Relative differences of each program from hpcvdj, where both are above 0. Junctions drawn from the models, in frame
    and without a stop; a quarter is mutated. *Given*: the V and J alleles of each junction. vdjtools reads
    OLGA's models (`vdjtools.model.io.from_olga`). It takes alleles, but no genes and no lists, so these are not
    compared. OLGA has no sum over one mismatch.

    hpcvdj's models are those with OLGA's alleles as they are (`human_trb:published`). By default hpcvdj
    [corrects](../../docs/olga_alleles.md) some of them, TRBV4-3*02 among them.

    **Human TRB.** The programs begin the junction of TRBV4-3*02 at different bases. OLGA's file of anchors places it
    one codon before the Cys (CTC TGC), and `human_trb:published` follows the file: the allele makes no junction that
    begins with Cys. vdjtools begins at the Cys. So vdjtools gives 0, or next to nothing, to a junction that was drawn
    with this allele (LCASS…). With any genes it adds the allele's part to the junctions that begin with Cys; without
    that part the values agree.

    **OLGA as shipped** does not sum the longest insertions of some models in one reading frame
    ([why](../../docs/olga_insertions.md)); *completed* has this mended.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Also those of the sum over one mismatch."""
        super().add_arguments(parser)
        help_text = "junctions of which the sum over one mismatch is computed, too"
        parser.add_argument("--ball", metavar="N", type=int, default=60, help=help_text)

    def measure(self, options: argparse.Namespace) -> Iterator[Row]:
        """All loci."""
        sys.path.append(str(common.ROOT))
        for name in options.loci:
            yield from measure_locus(name, options.number, options.ball, options.seed)

    def page(self, rows: list[Row]) -> Iterator[Block]:
        """A table for each locus."""
        for name in dict.fromkeys(row.locus for row in rows):
            yield f"## {name}"
            yield listing(
                [row for row in rows if row.locus == name],
                {
                    "genes": lambda row: row.genes,
                    "value": lambda row: f"`{row.value}`",
                    "program": lambda row: row.program,
                    "junctions": lambda row: row.junctions,
                    "zeros at other rows": lambda row: row.zeros_apart,
                    f"differ by more than {LARGEST_DIFFERENCE:g}": lambda row: row.different,
                    "lowest": lambda row: number(row.lowest, "+.1e"),
                    "highest": lambda row: number(row.highest, "+.1e"),
                    "median, without sign": lambda row: number(row.median, ".1e"),
                },
            )


if __name__ == "__main__":
    raise SystemExit(PgenPeers().main())
