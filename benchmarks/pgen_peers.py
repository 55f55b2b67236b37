"""Do hpcvdj, OLGA and vdjtools compute the same generation probabilities, for thousands of junctions of every locus?

python benchmarks/pgen_peers.py              compute, write results/pgen_peers/{raw.csv,README.md}
python benchmarks/pgen_peers.py --render     make README.md again from raw.csv

OLGA and, if it is installed, vdjtools (both GPL) are imported; nothing of them is copied.
"""

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import ROOT, record, say
from _vdjtools import INSTALLED, Vdjtools

from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import OLGA_FOLDERS, PUBLISHED, load_model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.studies.pages import Block, IdentityCheck, Study
from hpcvdj.studies.tables import grouped, listing, pivot
from tests.kernels.pgen.models import Query, pgens, queries
from tests.kernels.pgen.olga_peer import Olga

LARGEST_DIFFERENCE = 1e-12
"""Relative; hpcvdj promises that its values differ by no more from the definition."""

SHIPPED, COMPLETED, VDJTOOLS = "OLGA as shipped", "OLGA completed", "vdjtools"

OTHER_ANCHORS = {"human_trb": "TRBV4-3*02"}
"""V alleles of which OLGA's file of anchors and vdjtools begin the junction at different bases."""

BATCH = 100
"""Junctions that hpcvdj computes at a time: its tables grow with the number of different lists of genes."""


@dataclass(frozen=True)
class Row:
    """The values of a program for the junctions with one kind of call, beside those of hpcvdj.

    source        model: junctions drawn from it, and changed; table: observed junctions
    mask          allele, gene, list or none: what the calls of V and J say
    positive      how many have a probability above 0 by hpcvdj
    zeros_apart   how many have probability 0 by only one of both
    different     how many of the others differ by more than LARGEST_DIFFERENCE
    below, above  by what share of the smaller value they are too small and too large at most
    """

    locus: str
    source: str
    mask: str
    value: str
    program: str
    junctions: int
    positive: int
    zeros_apart: int
    different: int
    below: float
    above: float


def compared(own: Any, peer: Any, **what: Any) -> Row:
    """The row of a program's values."""
    both = (own > 0) & (peer > 0)
    below, above = (np.maximum(a / b - 1, 0) for a, b in ((own[both], peer[both]), (peer[both], own[both])))
    return Row(
        **what, junctions=len(own), positive=int((own > 0).sum()), zeros_apart=int(((own > 0) != (peer > 0)).sum()),
        different=int((np.maximum(below, above) > LARGEST_DIFFERENCE).sum()),
        below=float(below.max(initial=0.0)), above=float(above.max(initial=0.0)),
    )  # fmt: skip


def own_values(model: Any, rows: list[Any], value: str) -> Any:
    """hpcvdj's values, float64 [rows]."""
    asked = [
        (row.junction, *(model.resolve(kind, call).places if call else None
                         for kind, call in (("V", row.v_call), ("J", row.j_call))))
        for row in rows
    ]  # fmt: skip
    batches = [asked[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    return np.concatenate([pgens(model, batch, (value,))[:, 0] for batch in batches])


def peer_values(name: str, rows: list[Any], options: argparse.Namespace) -> Iterator[tuple[str, str, Any, Any]]:
    """(program, value, places of the rows that it computes, values)."""
    texts, amino_acids = [row.junction for row in rows], translate(row.junction for row in rows)
    calls = [(row.v_call, row.j_call) for row in rows]
    every = np.arange(len(rows))
    for program in (SHIPPED, COMPLETED):
        olga = Olga(name, complete=program == COMPLETED, fast=not options.plain)
        for value, compute, sequences in zip(PGEN_COLUMNS, (olga.nt, olga.aa), (texts, amino_acids), strict=False):
            yield program, value, every, [compute(text, *call) for text, call in zip(sequences, calls, strict=True)]
    if not INSTALLED:
        return
    vdjtools = Vdjtools(name)

    def by_vdjtools(value: str, places: Any, v_call: str | None = None) -> Any:
        asked = [(texts if value == "pgen_nt" else amino_acids)[place] for place in places]
        return vdjtools.values(value, asked, [calls[place] if v_call is None else (v_call, "") for place in places])

    # It takes neither genes nor lists, nor stop codons.
    taken = {
        mask: np.array([k for k in every if rows[k].mask == mask and "*" not in amino_acids[k]])
        for mask in ("allele", "none")
    }
    for value in PGEN_COLUMNS:
        for mask, places in taken.items():
            used = places[: options.ball] if value == PGEN_COLUMNS[-1] else places
            if not len(used):
                continue
            values = by_vdjtools(value, used)
            yield VDJTOOLS, value, used, values
            if mask == "none" and name in OTHER_ANCHORS:
                other = OTHER_ANCHORS[name]
                yield f"{VDJTOOLS}, less {other}", value, used, np.subtract(values, by_vdjtools(value, used, other))


def observed(model: Any, table: Path, number: int, seed: int) -> list[Any]:
    """Different junctions of whole codons, up to 90 bases, from an AIRR table; their genes and none take turns.

    Only rows with genes of the model: OLGA takes all genes for a name that it does not know.
    """
    every, chosen = pd.read_csv(table, sep="\t", dtype=str, keep_default_na=False), []
    rows = set(every[["junction", "v_call", "j_call"]].itertuples(index=False, name=None))
    for junction, *calls in random.Random(seed).sample(sorted(rows), len(rows)):
        known = all(model.find(segment, call) for segment, call in zip("VJ", calls, strict=True))
        if known and len(junction) % 3 == 0 and 6 <= len(junction) <= 90 and set(junction) <= set("ACGT"):
            mask = ("gene", "none")[len(chosen) % 2]
            genes = [call.partition("*")[0] if mask == "gene" else "" for call in calls]
            chosen.append(Query(junction, *genes, mask, "observed"))
    return chosen[:number]


def measured(options: argparse.Namespace) -> Iterator[Row]:
    """All loci."""
    tables = dict(entry.split("=", 1) for entry in options.observed)
    for name in options.loci:
        model = load_model(f"{name}{PUBLISHED}")
        number = options.number_igh if name.endswith("igh") else options.number
        sources = {"model": queries(model, number, options.seed)}
        if name in tables:
            sources["table"] = observed(model, ROOT / tables[name], number, options.seed)
        for source, rows in sources.items():
            own = {value: own_values(model, rows, value) for value in PGEN_COLUMNS[:2]}
            masks = np.array([row.mask for row in rows])
            for program, value, places, values in peer_values(name, rows, options):
                # The sum over one mismatch is of few rows, and takes longer.
                ours = own[value][places] if value in own else own_values(model, [rows[k] for k in places], value)
                theirs = np.array(values)
                for mask in dict.fromkeys(masks[places].tolist()):
                    of = masks[places] == mask
                    what = {"locus": name, "source": source, "mask": mask, "value": value, "program": program}
                    yield compared(ours[of], theirs[of], **what)
            say(f"{name}, {source}: {len(rows):,} junctions")


def largest(rows: list[Row]) -> float:
    """The largest relative difference of some rows."""
    return max(max(row.below, row.above) for row in rows)


class PgenPeers(Study):
    """hpcvdj, OLGA and vdjtools."""

    name = "pgen_peers"
    title = "Generation probabilities by three programs"
    row = Row
    renderer = "python benchmarks/pgen_peers.py --render"
    notes = """
    Half of the junctions of a model are drawn from it, a third are drawn and mutated, a sixth are random between Cys
    and the end of a J. Calls: an allele, a gene, a list of genes, or none. The observed ones are those of Dash et al.
    2017 (mouse) and Minervina et al. 2021 (human), from the repository of tcrdist3: different ones of whole codons,
    with genes that the model has; their calls are genes or none. vdjtools reads OLGA's models
    (`vdjtools.model.io.from_olga`). It takes alleles or none, and no stop codons. OLGA has no sum over one mismatch.

    hpcvdj's models are those with OLGA's alleles as they are (`human_trb:published`). By default hpcvdj
    [corrects](../../docs/olga_alleles.md) some of them, TRBV4-3*02 among them.

    **OLGA as shipped** does not sum the longest insertions of some models in one reading frame
    ([why](../../docs/olga_insertions.md)); *completed* has three zeros after the lengths of insertions, which mend
    this.

    **Human TRB.** The programs begin the junction of TRBV4-3*02 at different bases. OLGA's file of anchors places it
    one codon before the Cys (CTC TGC), and `human_trb:published` follows the file: the allele makes no junction that
    begins with Cys. vdjtools begins at the Cys. So vdjtools gives 0, or next to nothing, to a junction that was drawn
    with this allele (LCASS…). With any genes it adds the allele's part to the junctions that begin with Cys; without
    that part the values agree.
    """

    def page(self, rows: list[Row]) -> Iterator[Block]:
        """A table of the loci, and one of the calls."""
        completed = [row for row in rows if row.program == COMPLETED]
        equal = not any(row.zeros_apart or row.different for row in completed)
        yield IdentityCheck(equal, f"generation probabilities (to {LARGEST_DIFFERENCE:g}, and their zeros)", "programs")
        junctions = sum(row.junctions for row in completed if row.value == PGEN_COLUMNS[0])
        yield f"""
            This is of hpcvdj and OLGA completed: {junctions:,} junctions, nucleotides and amino acids; largest relative
            difference {largest(completed):.1e}.
        """
        yield listing(
            grouped(rows, "locus", "source", "value", "program").values(),
            {
                "locus": lambda group: group[0].locus,
                "junctions": lambda group: {"model": "of the model", "table": "observed"}[group[0].source],
                "value": lambda group: f"`{group[0].value}`",
                "program": lambda group: group[0].program,
                "number": lambda group: f"{sum(row.junctions for row in group):,}",
                "above 0": lambda group: f"{sum(row.positive for row in group):,}",
                "zeros at other rows": lambda group: sum(row.zeros_apart for row in group),
                f"differ by more than {LARGEST_DIFFERENCE:g}": lambda group: sum(row.different for row in group),
                "too small by, at most": lambda group: f"{max(row.below for row in group):.1e}",
                "too large by, at most": lambda group: f"{max(row.above for row in group):.1e}",
            },
        )
        yield "## By calls"
        yield "Largest relative differences of OLGA completed."
        yield pivot(completed, "locus", "mask", lambda group: f"{largest(group):.1e}", "locus")


if __name__ == "__main__":
    record(
        __doc__, measured, PgenPeers(),
        loci=(list(OLGA_FOLDERS), "names of models"),
        number=(2000, "junctions of a locus"),
        number_igh=(250, "junctions of IGH, where OLGA is slow"),
        ball=(60, "junctions with each kind of call of which vdjtools sums over one mismatch"),
        observed=([], "NAME=TABLE: AIRR tables of observed junctions"),
        plain=(False, "OLGA without its numba-compiled FastPgen; far slower"),
        seed=(1, "of the junctions"),
    )  # fmt: skip
