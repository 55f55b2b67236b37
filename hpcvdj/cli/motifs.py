"""`hpcvdj motifs`: the comparison of sequences by their common k-mers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hpcvdj.cli import common, options
from hpcvdj.cli.declared import App
from hpcvdj.errors import InputError, few, option
from hpcvdj.motifs import clusters
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.settings import ClusterSettings, D, K, MotifConfig, RowsOption, SequenceField, Strands, relations_of
from hpcvdj.motifs.shared import Region, SharedKmers, find, shared_kmers
from hpcvdj.options import setting
from hpcvdj.runs.settings import Launch, Overwrite, Resume
from hpcvdj.storage.plots import require_networkx

if TYPE_CHECKING:
    from rich.text import Text

    from hpcvdj.motifs.comparison import MotifSummary
    from hpcvdj.motifs.sequences import Input

app = App(help="Compare all sequences of a set with all others by their common k-mers.")

MOST_SHOWN = 10
"""The most clusters whose sizes are printed."""

LINE = 60
"""Bases in a line of an alignment."""


@app.command()
def compare(
    sequences: options.Sequences,
    output: Annotated[Path, options.output("OUT.h5", "Result file (HDF5) to write.")],
    config: MotifConfig,
    edge_filter: EdgeFilter,
    launch: Launch,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Compare all sequences of a set with all others by their common k-mers within a Hamming distance.

    For each pair of sequences and each distance h up to d, counts the pairs of k-mers that differ in exactly h bases.
    k-mers with an ambiguous base do not count. OUT.h5 has the counters of all pairs or, with --min-score or --top,
    the edges of the similarity graph. Under mpiexec or srun the ranks share the work; the result is the same for any
    number of ranks.

    SIGTERM, SIGINT or SIGUSR1 to any rank stops the run within seconds with exit code 75; the finished tiles are then
    in OUT.h5.checkpoint, and --resume continues with them, on any number of ranks and with any method. After a crash,
    --resume continues with the tiles finished before it.

    Example: hpcvdj motifs compare inputs/mouse_trb/small.tsv -k 8 -d 1 -o motifs.h5
    """
    run = common.begin(launch)
    from hpcvdj.motifs.comparison import compare_sequences
    from hpcvdj.motifs.sequences import inputs_of

    config = config.keeping(edge_filter)
    with run.request:
        target = run.to(output, resume=resume, overwrite=overwrite)
        summary = compare_sequences(run.from_root(lambda: inputs_of(sequences)), config, target)
    if run.is_root:
        _print_comparison(summary, output)


def _rows_of(source: "Input", rows: str) -> str:
    """Return how many rows a table has, and which rows are left out."""
    left_out = f"{source.not_productive:,} not productive by the column {source.told_by} left out"
    if not source.told_by:
        left_out = "all used" if rows == "all" else "all used, as no column says which are productive"
    return f"{source.rows:,} rows, {left_out}" + (f", {source.without:,} without a sequence" if source.without else "")


def _print_comparison(summary: "MotifSummary", output: Path) -> None:
    task = summary.task
    for source in summary.inputs:
        count = _rows_of(source, task.config.rows) if source.is_table else f"{source.rows:,} sequences"
        common.say(f"read       {source}: {count}")
    n, bases = len(task.profile), len(task.profile.sequences.codes)
    possible = n * (n - 1) // 2
    common.say(f"sequences  {n:,} of {bases:,} bases; {task.profile.skipped:,} windows with an ambiguous base skipped")
    for pairs_of_strand, strand in zip(summary.pairs, ("", ", opposite strands"), strict=False):
        for h, pairs in enumerate(pairs_of_strand):
            share = 100 * pairs / possible if possible else 0.0
            common.say(f"pairs      {pairs:,} ({share:.2f} %) share k-mers at distance {h}{strand}")
    if summary.edges is not None:
        common.say(f"edges      {summary.edges:,}")
    common.say(f"score      {task.config.score}")
    common.say(f"method     {task.method} on {task.backend.describe()}, {summary.ranks} rank(s)")
    common.say("time       " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in summary.seconds.items()))
    common.say(f"result     {output}")


@app.command(of_root=True)
def export(
    result: options.MotifResultFile,
    output: Annotated[
        Path,
        options.output(
            "OUT",
            "File to write: a table (.tsv, .tsv.gz, .parquet), a graph (.graphml), which needs networkx, or the matrix "
            "of scores (.npz), for scipy.sparse.load_npz.",
        ),
    ],
    edge_filter: EdgeFilter,
    strand: options.Strand = "both",
    raw: bool = setting("add columns r0 ... rd: the counters of the thesis's meta-tables, where a match counts "
                        "several times", False),
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Write the edges of the similarity graph for other programs.

    A table has the columns name_1, name_2, strand (+ or -), d0 ... dd (pairs of k-mers at each Hamming distance) and
    score. A result with all pairs needs --min-score or --top; they also apply to a result with edges.

    Example: hpcvdj motifs export genes.h5 --min-score 0.2 -o genes.graphml
    """
    from hpcvdj.motifs import export as exporting
    from hpcvdj.motifs.results import MotifResult

    with MotifResult(result) as source:
        edges = exporting.export(source, output, edge_filter, strand=strand, raw=raw, overwrite=overwrite)
        common.say(f"sequences  {len(source):,}")
    common.say(f"edges      {edges:,}")
    common.say(f"written    {output}")


@app.command(of_root=True)
def cluster(
    result: options.MotifResultFile,
    output: options.OutputTable,
    settings: ClusterSettings,
    edge_filter: EdgeFilter,
    strand: options.Strand = "both",
    sequences: options.Moved = None,
    overwrite: Overwrite = False,
) -> None:
    """Cluster the similarity graph.

    Writes a row for each sequence: name, cluster (1 is the largest; 0: in none), size of the cluster, degree
    (neighbours) and weighted degree (sum of its edges' scores). The weight of an edge is its score; for a pair with an
    edge on both strands, the larger score. Edges without a positive score are left out.

    If several tables were compared, also `tables`: those that have the junction. For junctions of a table, also
    v_call, j_call, the junction, and the consensus of its cluster: of the junctions of
    the most frequent length, the base that more than half of them have, else N.

    Example: hpcvdj motifs cluster genes.h5 --min-score 0.2 -o clusters.tsv
    """
    from hpcvdj.motifs.graph import score_matrix, selected_edges
    from hpcvdj.motifs.results import MotifResult
    from hpcvdj.motifs.sequences import read_again
    from hpcvdj.repertoires.writers import require_writable_table, write_table

    require_writable_table(output, overwrite=overwrite)
    if settings.algorithm != "components":
        require_networkx()
    with MotifResult(result) as source:
        matrix = score_matrix(selected_edges(source, edge_filter, strand), len(source))
        names, tables = source.names, source.tables
        read = read_again(source.compared, names, sequences)
    clustering = clusters.cluster(matrix, settings)
    write_table(output, clustering.to_table(names, tables, read).to_batches(), overwrite=overwrite)
    _print_clusters(clustering)
    common.say(f"written    {output}")


def _print_clusters(clustering: clusters.Clustering) -> None:
    sizes = clustering.sizes
    edges = int(clustering.degree.sum(dtype="int64")) // 2
    dropped = f", {clustering.left_out:,} without a positive score left out" if clustering.left_out else ""
    common.say(f"graph      {len(clustering.cluster):,} sequences, {edges:,} edges{dropped}")
    isolated, none = int((clustering.degree == 0).sum()), int((clustering.cluster == 0).sum())
    common.say(f"clusters   {len(sizes):,}, {none:,} sequences in none; {isolated:,} have no edge")
    if len(sizes):
        more = f", ... {sizes[-1]:,}" if len(sizes) > MOST_SHOWN else ""
        common.say(f"sizes      {', '.join(f'{size:,}' for size in sizes[:MOST_SHOWN])}{more}")
    if edges:
        common.say(f"modularity {clustering.modularity:.4f}")


@app.command(of_root=True)
def show(
    sequences: options.Sequences,
    a: Annotated[str, options.argument("A", "Name of a sequence, or its number (from 1).")],
    b: Annotated[str, options.argument("B", "Name or number of the other sequence.")],
    k: K = 12,
    d: D = 2,
    strands: Strands = "one",
    output_format: Literal["table", "json", "tsv"] = setting(
        "table: totals and alignments to read; json; tsv: one row per region", "table"),
    most: int = setting("how many of the longest regions to list; the totals cover all", 20, flags="--list", least=0,
                        most=100_000),
    sequence_field: SequenceField = "junction",
    rows: RowsOption = "productive",
) -> None:  # fmt: skip
    """Show the k-mers that two sequences share, and where they are.

    K-mers within Hamming distance D that follow each other base by base in both sequences are one region. Positions
    count from 1; on strand - those of B go down, and its text is the reverse complement. Bases that differ are in lower
    case. D0, D1 … are the region's pairs of k-mers at that distance, and `nearest` is the smallest distance of any. The
    totals are the counters of `hpcvdj motifs compare`, each occurrence counted. Name the same tables as there, and the
    same --rows, for the same names.

    Example: hpcvdj motifs show genes.fasta YAL003W YBR118W -k 12 -d 2 --strands both
    """
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
        _print_shared(shared)


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


def _print_shared(shared: SharedKmers) -> None:
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


@app.command(of_root=True)
def plot(
    result: options.MotifResultFile,
    output: Annotated[Path, options.output("FIG", "Figure to write: .png or .svg.")],
    edge_filter: EdgeFilter,
    kind: Literal["network", "logos"] = setting("network: the graph, its largest clusters coloured; logos: of the "
                                                "largest clusters", "network"),
    clusters: Path | None = setting("clusters of hpcvdj motifs cluster: the colours of a network, what logos are of",
                                    None, metavar="CLUSTERS.tsv", unset="those of hpcvdj motifs cluster"),
    letters: Literal["amino-acids", "nucleotides"] | None = setting(
        "letters of logos and consensus sequences", None,
        unset="amino-acids of junctions, else nucleotides"),
    sequences: options.Moved = None,
    strand: options.Strand = "both",
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Draw the similarity graph: its clusters as a network, or their sequences as logos. Needs matplotlib; the network
    also networkx, logos also logomaker.

    A network leaves sequences without edges out, and of more than 1,500 sequences it draws the largest clusters. Up to
    30 of them have a colour and a label: size and consensus. A logo is of a cluster's sequences of the most frequent
    length. Both read the compared file again. A result with all pairs needs --min-score or --top.

    Example: hpcvdj motifs plot genes.h5 --min-score 0.2 --clusters clusters.tsv -o genes.png
    """
    from hpcvdj.motifs.clusters import read_clusters
    from hpcvdj.motifs.plots import Drawing, draw
    from hpcvdj.motifs.results import MotifResult
    from hpcvdj.motifs.sequences import read_again
    from hpcvdj.storage.plots import require_plottable

    require_plottable(output, overwrite=overwrite)
    with MotifResult(result) as source:
        assigned = None if clusters is None else read_clusters(clusters, source.names)
        read = read_again(source.compared, source.names, sequences)
        drawing = Drawing(kind, edge_filter, strand, assigned, read, letters)
        shown = draw(source, output, drawing, overwrite=overwrite)
    common.say(f"shown      {shown}")
    common.say(f"written    {output}")
