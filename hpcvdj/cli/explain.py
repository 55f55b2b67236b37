"""`hpcvdj explain`."""

from __future__ import annotations

import json
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcvdj.cli import common

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hpcvdj.recombination.explanation import Explanation, Pathway

NAME = "explain"

STYLES = {
    "V": "bold blue", "v": "cyan", "D": "bold magenta", "d": "bright_magenta", "J": "bold green", "j": "bright_green",
    "n": "bold yellow", "·": "dim",
}  # fmt: skip
"""Colour of each letter of a track; the letters say the same without colour."""

WIDTH_WITHOUT_TERMINAL = 160


class Format(StrEnum):
    """What is printed."""

    table = "table"
    json = "json"


def command(
    junction: Annotated[
        str, typer.Argument(help="The junction (or CDR3), in nucleotides.", metavar="JUNCTION", show_default=False)
    ],
    v: Annotated[str, typer.Option("--v", metavar="CALL", help="V gene or allele, as TRBV5 or TRBV5*01.")],
    j: Annotated[str, typer.Option("--j", metavar="CALL", help="J gene or allele.")],
    germline: common.GermlineFile,
    max_n: Annotated[
        str, typer.Option("--max-n", metavar="N", help="Largest n-length; all: up to the CDR3's length.")
    ] = "10",
    output_format: Annotated[
        Format, typer.Option("--format", help="Tables and an alignment for people, or JSON.")
    ] = Format.table,
    top: Annotated[
        int, typer.Option("--top", min=0, max=100_000, help="Most direct pathways to list; the sums cover all.")
    ] = 10,
    d_forms: common.DFormsOption = common.DForms.paper,
    d_alleles: common.DAllelesOption = common.DAlleles.first,
    max_p: common.MaxP = common.MAX_P_DEFAULT,
    sequence_field: common.FieldOption = common.SequenceField.junction,
    ambiguous_calls: common.AmbiguousOption = common.Policy.exclude,
    unlisted_alleles: common.UnlistedOption = common.Policy.exclude,
) -> None:
    """List the recombination pathways of one junction.

    Every pathway is counted, by n-length and by D gene: the counters of `hpcvdj count`. Listed are the most direct
    ones: fewest n-nucleotides, then fewest bases lost by V, D and J. Pathways that differ only in how D was chewed
    away whole, and where it stood, are one line.

    Example: hpcvdj explain TGTGCCAGCAGTCTGGGACAGGGTAACCAAGACACCCAGTACTTT --v TRBV26 --j TRBJ2-5
    -g inputs/germline/mouse_trb.tsv
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.recombination.explanation import explain
    from hpcvdj.repertoires.junctions import CallPolicy

    limit: Any = common.parse_max_n(max_n)
    table = common.load_germline(germline, max_p, d_alleles)
    found = explain(
        junction, v, j, table, max_n=limit, d_forms=d_forms.value, sequence_field=sequence_field.value,
        calls=CallPolicy(ambiguous_calls.value, unlisted_alleles.value),
    )  # fmt: skip
    if output_format is Format.json:
        common.say(json.dumps(found.as_json(top), indent=1))
        return
    anchors = (junction[:3].upper(), junction[-3:].upper()) if sequence_field.value == "junction" else ("", "")
    _report(_console(), found, found.most_direct(top), anchors)


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    # A file or a pipe has no width, and rows cut at rich's 80 columns would lose their right half.
    return console if console.is_terminal else Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)


def _report(console: Console, found: Explanation, listed: list[Pathway], anchors: tuple[str, str]) -> None:
    total = sum(found.counters)
    d_genes = f"{len(found.d)} D genes" if found.d else "no D genes"
    console.print(f"CDR3       {len(found.cdr3)} nt; {found.v.allele}, {found.j.allele}; {d_genes} of {found.v.locus}")
    germline = f"{found.longest_v} from V on, {found.longest_j} from J back, P-nucleotides included"
    console.print(f"germline   bases as in the germline: {germline}")
    console.print(f"pathways   {total:,}, n-lengths 0-{found.max_n}, D forms {found.d_forms}", end="\n\n")
    if not total:
        console.print(f"No pathway has at most {found.max_n} n-nucleotides; --max-n all goes on to the end.")
        return
    console.print(_by_n_length(found, total))
    if found.d:
        console.print(_by_gene(found))
    if not listed:
        return
    shown = sum(pathway.multiplicity for pathway in listed)
    console.print(f"\nThe most direct: {shown:,} of {total:,} pathways in {len(listed):,} line(s)")
    _align(console, found, listed, anchors)
    console.print(_listing(found, listed))


def _by_n_length(found: Explanation, total: int) -> Any:
    from rich.table import Table

    table = Table("n-nucleotides", "pathways", "share", "up to here", title="By n-length", title_justify="left")
    _right(table, 4)
    done = 0
    for m, count in enumerate(found.counters):
        done += count
        if count:
            table.add_row(str(m), f"{count:,}", f"{100 * count / total:.2f} %", f"{100 * done / total:.2f} %")
    return table


def _by_gene(found: Explanation) -> Any:
    from rich.table import Table

    table = Table(
        "D gene", "with bases of it", "fewest n", "chewed away", "total", title="By D gene", title_justify="left"
    )
    _right(table, 5, first=1)
    for gene in found.genes:
        fewest = "–" if gene.fewest_n is None else str(gene.fewest_n)
        cells = f"{sum(gene.with_bases):,}", fewest, f"{sum(gene.chewed_away):,}", f"{gene.total:,}"
        table.add_row(gene.allele, *cells)
    return table


def _right(table: Any, columns: int, first: int = 0) -> None:
    from rich import box

    table.box = box.SIMPLE_HEAD
    for column in table.columns[first:columns]:
        column.justify = "right"


def _align(console: Console, found: Explanation, listed: list[Pathway], anchors: tuple[str, str]) -> None:
    """The junction, and beneath it what each base of it is in each pathway."""
    margin = len(str(len(listed))) + 2
    left, right = anchors
    console.print(" " * margin + f"[dim]{left}[/dim]{found.cdr3}[dim]{right}[/dim]", soft_wrap=True)
    for number, pathway in enumerate(listed, start=1):
        track = "·" * len(left) + found.track(pathway) + "·" * len(right)
        console.print(_coloured(f"{number:>{margin - 2}}  ", track), soft_wrap=True)
    legend = _coloured(" " * margin, "VDJ")
    legend.append(" of the germline, ").append_text(_coloured("", "vdj"))
    legend.append(" their P-nucleotides, ").append_text(_coloured("", "n")).append(" n-nucleotides")
    console.print(legend, soft_wrap=True)


def _coloured(margin: str, track: str) -> Text:
    from rich.text import Text

    line = Text(margin)
    for letter, run in groupby(track):
        line.append("".join(run), style=STYLES[letter])
    return line


def _listing(found: Explanation, listed: list[Pathway]) -> Any:
    from rich.table import Table

    heads = ["", "n", "V lost", "V P", "n (V–D)", "D gene", "D 5' lost", "D 5' P", "D", "D 3' P", "D 3' lost"]
    heads += ["n' (D–J)", "J P"]
    if not found.d:
        heads = ["", "n", "V lost", "V P", "n", "J P"]
    table = Table(*heads, "J lost", "pathways")
    _right(table, len(table.columns))
    for number, pathway in enumerate(listed, start=1):
        facts = found.describe(pathway)
        names = ["n_length", "v_trim", "p3v_length", "n1"]
        if found.d:
            names += ["d_call", "d_trim_5", "p5d_length", "d_piece", "p3d_length", "d_trim_3", "n2"]
        if pathway.d is not None and pathway.d.empty:
            n = f"{facts['n']}, cut anywhere" if facts["n"] else ""
            facts |= {"n1": n, "n2": "", "d_piece": "all lost"}
        cells = [facts[name] for name in [*names, "p5j_length", "j_trim"]]
        texts = ["" if cell is None else str(cell) for cell in cells]
        table.add_row(str(number), *texts, f"{pathway.multiplicity:,}")
    return table
