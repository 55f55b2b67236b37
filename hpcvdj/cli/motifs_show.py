"""`hpcvdj motifs show`."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hpcvdj.cli import common, options
from hpcvdj.errors import InputError, few, option
from hpcvdj.motifs.settings import D, K, RowsOption, SequenceField, Strands, relations_of
from hpcvdj.motifs.shared import Region, SharedKmers, find, shared_kmers
from hpcvdj.options import Option

if TYPE_CHECKING:
    from rich.text import Text

LINE = 60
"""Bases in a line of an alignment."""


def command(
    sequences: options.Sequences,
    a: Annotated[str, options.argument("A", "Name of a sequence, or its number (from 1).")],
    b: Annotated[str, options.argument("B", "Name or number of the other sequence.")],
    k: K = 12,
    d: D = 2,
    strands: Strands = "one",
    output_format: Annotated[
        Literal["table", "json", "tsv"],
        Option("table: totals and alignments to read; json; tsv: one row per region"),
    ] = "table",
    most: Annotated[
        int,
        Option("how many of the longest regions to list; the totals cover all", flags="--list", least=0, most=100_000),
    ] = 20,
    sequence_field: SequenceField = "junction",
    rows: RowsOption = "productive",
) -> None:
    """Show the k-mers that two sequences share, and where they are.

    K-mers within Hamming distance D that follow each other base by base in both sequences are one region. Positions
    count from 1; on strand - those of B go down, and its text is the reverse complement. Bases that differ are in lower
    case. D0, D1 … are the region's pairs of k-mers at that distance, and `nearest` is the smallest distance of any. The
    totals are the counters of `hpcvdj motifs compare`, each occurrence counted. Name the same tables as there, and the
    same --rows, for the same names.

    Example: hpcvdj motifs show genes.fasta YAL003W YBR118W -k 12 -d 2 --strands both
    """
    if not common.begin().is_root:
        return
    from hpcvdj.motifs.sequences import inputs_of, read_inputs

    read = read_inputs(inputs_of(sequences), sequence_field, rows)
    try:
        numbers = find(read.sequences, a), find(read.sequences, b)
    except InputError as error:
        left = sum(source.not_productive for source in read.inputs)
        remedy = f"; {left:,} rows that are not productive were left out ({option('rows', 'all')})" if left else ""
        raise InputError(f"{few(map(str, read.inputs))}: {error}{remedy}") from None
    shared = shared_kmers(read.sequences, *numbers, k, d, strands=relations_of(strands), top=most)
    if tables := read.tables:
        shared = replace(shared, tables=(tables[numbers[0]], tables[numbers[1]]))
    if output_format == "json":
        common.answer(json.dumps(shared.as_json(), indent=1))
    elif output_format == "tsv":
        _print_table(shared)
    else:
        _report(shared)


def _print_table(shared: SharedKmers) -> None:
    heads = ["strand", "first_a", "last_a", "first_b", "last_b", "length", "mismatches", "distance"]
    heads += [f"d{h}" for h in range(shared.d + 1)]
    tables = shared.tables or ()
    common.answer("\t".join([*heads, "text_a", "text_b", *["tables_a", "tables_b"][: len(tables)]]))
    for region in shared.regions:
        values = [*_positions(region), region.length, region.mismatches, region.nearest, *region.pairs]
        common.answer("\t".join(map(str, [*values, region.text_a, region.text_b, *tables])))


def _positions(region: Region) -> list[Any]:
    return [region.strand, region.first_a, region.last_a, region.first_b, region.last_b]


def _report(shared: SharedKmers) -> None:
    console = common.console()
    of_tables = [f", of {listed_in}" for listed_in in shared.tables] if shared.tables else ["", ""]
    for letter, name, length, listed_in in zip("AB", shared.names, shared.lengths, of_tables, strict=True):
        console.print(f"{letter}          {name}, {length:,} bases{listed_in}", markup=False)
    for strand, totals in shared.totals.items():
        counts = ", ".join(f"{count:,} at distance {h}" for h, count in enumerate(totals))
        console.print(f"strand {strand}   pairs of {shared.k}-mers: {counts}")
    console.print(f"regions    {shared.region_count:,}, listed {len(shared.regions):,}", end="\n\n")
    if not shared.regions:
        return
    heads = ["", "strand", "in A", "in B", "length", "mismatches", "nearest"]
    rows = []
    for number, region in enumerate(shared.regions, start=1):
        strand, a0, a1, b0, b1 = _positions(region)
        facts = [number, strand, f"{a0}-{a1}", f"{b0}-{b1}", region.length, region.mismatches, region.nearest]
        rows.append(list(map(str, [*facts, *region.pairs])))
    common.print_table(console, [*heads, *(f"D{h}" for h in range(shared.d + 1))], rows)
    for number, region in enumerate(shared.regions, start=1):
        for line in _alignment(number, region):
            console.print(line, soft_wrap=True)


def _alignment(number: int, region: Region) -> Iterator["Text"]:
    """Yield the lines of an alignment in blocks of four: A, bars where the bases agree, B, and an empty line."""
    from rich.text import Text

    margin = max(len(str(position)) for position in _positions(region)[1:])
    step = -1 if region.strand == "-" else 1
    for at in range(0, region.length, LINE):
        text_a, text_b = region.text_a[at : at + LINE], region.text_b[at : at + LINE]
        label = str(number) if at == 0 else ""
        bars = "".join("|" if x == y else " " for x, y in zip(text_a, text_b, strict=True))
        line_a = Text(f"{label:>4}  A {region.first_a + at:>{margin}} {text_a}")
        line_b = Text(f"      B {region.first_b + step * at:>{margin}} {text_b}")
        for line in (line_a, line_b):
            line.highlight_regex("[acgt]", "bold red")
        yield from (line_a, Text(" " * (9 + margin) + bars, style="dim"), line_b, Text())
