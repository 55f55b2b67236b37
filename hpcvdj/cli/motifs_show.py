"""`hpcvdj motifs show`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcvdj.cli import common
from hpcvdj.cli.motifs_options import SequenceField, Strands

if TYPE_CHECKING:
    from rich.text import Text

    from hpcvdj.motifs.shared import Region, Shared

NAME = "show"

WIDTH_WITHOUT_TERMINAL = 160

LINE = 60
"""Bases of a line of an alignment."""


class Format(StrEnum):
    """What is printed."""

    table = "table"
    json = "json"
    tsv = "tsv"


def command(
    sequences: Annotated[
        Path,
        typer.Argument(
            help="FASTA file, or an AIRR table of which the distinct junctions are taken, as `motifs compare` does.",
            metavar="SEQUENCES",
            show_default=False,
        ),
    ],
    a: Annotated[str, typer.Argument(help="A sequence's name, or its number from 1.", metavar="A", show_default=False)],
    b: Annotated[str, typer.Argument(help="The other's.", metavar="B", show_default=False)],
    k: Annotated[int, typer.Option("-k", metavar="K", help="Bases of a k-mer, 4 to 32.")] = 12,
    d: Annotated[int, typer.Option("-d", metavar="D", help="Largest Hamming distance between k-mers, 0 to 3.")] = 2,
    strands: Annotated[
        Strands, typer.Option("--strands", help="Compare as given, or also with the reverse complement of B.")
    ] = Strands.one,
    output_format: Annotated[
        Format, typer.Option("--format", help="Alignments for people, JSON, or a table of the regions.")
    ] = Format.table,
    top: Annotated[
        int, typer.Option("--top", min=0, max=100_000, help="Longest regions to list; the totals cover all.")
    ] = 20,
    sequence_field: SequenceField = "junction",
) -> None:
    """Show the k-mers that two sequences share, and where they lie.

    K-mers within Hamming distance D that follow each other base by base in both sequences are one region. Places count
    from 1; on strand - those of B go down, and its text is the reverse complement. Bases that differ are in lower
    case. Of a region, D0, D1 … are its pairs of k-mers at that distance, and `nearest` is the smallest distance of
    any. The totals are the counters of `hpcvdj motifs compare`, each occurrence counted.

    Example: hpcvdj motifs show genes.fasta YAL003W YBR118W -k 12 -d 2 --strands both
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.errors import InputError
    from hpcvdj.kernels.kmers.kmers import require_parameters
    from hpcvdj.motifs.sequences import read_sequences
    from hpcvdj.motifs.shared import find, shared_kmers

    require_parameters(k, d)
    some = read_sequences(sequences, sequence_field)
    try:
        places = find(some, a), find(some, b)
    except InputError as error:
        raise InputError(f"{sequences}: {error}") from None
    found = shared_kmers(some, *places, k, d, strands=2 if strands is Strands.both else 1, top=top)
    if output_format is Format.json:
        common.say(json.dumps(found.as_json(), indent=1))
    elif output_format is Format.tsv:
        for line in _tsv(found):
            common.say(line)
    else:
        _report(found)


def _tsv(found: Shared) -> list[str]:
    heads = ["strand", "first_a", "last_a", "first_b", "last_b", "length", "mismatches", "distance"]
    heads += [f"d{h}" for h in range(found.d + 1)]
    lines = ["\t".join([*heads, "text_a", "text_b"])]
    for region in found.regions:
        values = [*_places(region), region.length, region.mismatches, region.nearest, *region.pairs]
        lines.append("\t".join(map(str, [*values, region.text_a, region.text_b])))
    return lines


def _places(region: Region) -> list[Any]:
    return [region.strand, region.first_a, region.last_a, region.first_b, region.last_b]


def _report(found: Shared) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)
    for letter, name, length in zip("AB", found.names, found.lengths, strict=True):
        console.print(f"{letter}          {name}, {length:,} bases", markup=False)
    for strand, totals in found.totals.items():
        counts = ", ".join(f"{count:,} at distance {h}" for h, count in enumerate(totals))
        console.print(f"strand {strand}   pairs of {found.k}-mers: {counts}")
    console.print(f"regions    {found.found:,}, listed {len(found.regions):,}", end="\n\n")
    if not found.regions:
        return
    heads = ["", "strand", "in A", "in B", "length", "mismatches", "nearest"]
    table = Table(*heads, *(f"D{h}" for h in range(found.d + 1)), box=box.SIMPLE_HEAD)
    for column in table.columns:
        column.justify = "right"
    for number, region in enumerate(found.regions, start=1):
        strand, a0, a1, b0, b1 = _places(region)
        facts = [number, strand, f"{a0}-{a1}", f"{b0}-{b1}", region.length, region.mismatches, region.nearest]
        table.add_row(*map(str, [*facts, *region.pairs]))
    console.print(table)
    for number, region in enumerate(found.regions, start=1):
        for line in _alignment(number, region):
            console.print(line, soft_wrap=True)


def _alignment(number: int, region: Region) -> list[Text]:
    """Blocks of three lines: A, a bar where the bases agree, B."""
    from rich.text import Text

    lines = []
    margin = max(len(str(place)) for place in _places(region)[1:])
    step = -1 if region.strand == "-" else 1
    for at in range(0, region.length, LINE):
        one, two = region.text_a[at : at + LINE], region.text_b[at : at + LINE]
        label = str(number) if at == 0 else ""
        bars = "".join("|" if x == y else " " for x, y in zip(one, two, strict=True))
        ends = (region.first_a + at, region.first_b + step * at)
        lines.append(_coloured(f"{label:>4}  A {ends[0]:>{margin}} ", one))
        lines.append(Text(" " * (9 + margin) + bars, style="dim"))
        lines.append(_coloured(f"      B {ends[1]:>{margin}} ", two))
        lines.append(Text())
    return lines


def _coloured(margin: str, text: str) -> Text:
    from rich.text import Text

    line = Text(margin)
    for letter in text:
        line.append(letter, style="bold red" if letter.islower() else "")
    return line
