"""`hpcvdj study`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common
from hpcvdj.cli.count import BackendName
from hpcvdj.cli.study_files import Folder, StudyFolder, load_problem, write_study
from hpcvdj.errors import InputError
from hpcvdj.runs.partition import THREADS_PER_BLOCK

NAME = "study"

app = typer.Typer(
    help="The paper's tables and figures on your machine: each leaves raw rows, a table and, if it can, a plot.",
    no_args_is_help=True,
)

_PATHWAYS = "Counting pathways"
_MOTIFS = "Comparing sequences by k-mers"
_RENDER = "Tables and plots anew"

Lengths = Annotated[str, typer.Option("--n-lengths", metavar="A-B", help="n-lengths to measure.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Measured repeats of each.")]
Longest = Annotated[
    float,
    typer.Option(
        "--longest",
        min=0.01,
        help="Seconds: a pass expected to take longer is measured on part of the n-nucleotide strings, and marked.",
    ),
]
Device = Annotated[BackendName, typer.Option("--backend", help="Where to measure: auto takes a GPU if there is one.")]
Sample = Annotated[
    int | None, typer.Option("--sample", min=1, help="A random sample of so many sequences.", show_default="all")
]
BlockSize = Annotated[int, typer.Option("--threads-per-block", min=1, max=1024, help="Threads in a block.")]

Label = Annotated[str, typer.Option("--label", help="Added to the name of the raw file.")]


@app.command(rich_help_panel=_PATHWAYS)
def methods(
    junctions: common.Junctions,
    germline: common.GermlineFile,
    output: StudyFolder,
    n_lengths: Lengths = "0-6",
    names: Annotated[str, typer.Option("--methods", help="Methods to measure.")] = "baseline,bitwise,direct",
    backend: Device = BackendName.auto,
    repeats: Repeats = 2,
    longest: Longest = 20.0,
    sample: Sample = None,
    threads_per_block: BlockSize = THREADS_PER_BLOCK,
    label: Label = "",
    threads: common.Threads = None,
) -> None:
    """Table IV: the methods beside each other, n-length by n-length."""
    world = common.begin(threads)
    from hpcvdj.counting.config import Config
    from hpcvdj.kernels.pathways.methods import method_named
    from hpcvdj.studies.measuring import measure

    lengths = common.parse_range("--n-lengths", n_lengths)
    chosen = [method_named(name.strip()).name for name in names.split(",")]
    problem, whole = load_problem(world, junctions, germline, max(lengths), sample, "bitwise")
    rows = []
    for name in chosen:
        config = Config(max(lengths), name, backend.value, threads_per_block=threads_per_block)
        rows += measure(problem, config, world, lengths, repeats, whole, longest)
    if world.is_root:
        write_study(world, rows, output, _name("methods", world.size, label), "methods")


@app.command(rich_help_panel=_PATHWAYS)
def blocks(
    junctions: common.Junctions,
    germline: common.GermlineFile,
    output: StudyFolder,
    n_lengths: Lengths = "4-7",
    sizes: Annotated[str, typer.Option("--sizes", help="Threads per block to compare.")] = "32,64,128,256",
    backend: Device = BackendName.auto,
    repeats: Repeats = 2,
    longest: Longest = 5.0,
    sample: Sample = None,
    label: Label = "",
    threads: common.Threads = None,
) -> None:
    """Figure 4: the bitwise enumeration by threads per block."""
    world = common.begin(threads)
    from hpcvdj.counting.config import Config
    from hpcvdj.studies.measuring import measure

    lengths = common.parse_range("--n-lengths", n_lengths)
    problem, whole = load_problem(world, junctions, germline, max(lengths), sample, "bitwise")
    rows = []
    for size in _numbers("--sizes", sizes):
        config = Config(max(lengths), "bitwise", backend.value, threads_per_block=size)
        rows += measure(problem, config, world, lengths, repeats, whole, longest)
    if world.is_root:
        write_study(world, rows, output, _name("blocks", world.size, label), "blocks")


@app.command(rich_help_panel=_PATHWAYS)
def pairs(junctions: common.Junctions, germline: common.GermlineFile, output: StudyFolder) -> None:
    """Figure 2: in vivo sequences of each V-J pair."""
    world = common.begin()
    from hpcvdj.studies.pairs import pair_rows

    problem, _ = load_problem(world, junctions, germline, 0, None, "bitwise")
    if world.is_root:
        write_study(world, pair_rows(problem.repertoire), output, "pairs", "pairs")


@app.command(rich_help_panel=_PATHWAYS)
def memory(junctions: common.Junctions, germline: common.GermlineFile, output: StudyFolder) -> None:
    """Table III: bytes of the forms and sequences as they lie on the GPU."""
    world = common.begin()
    from hpcvdj.kernels.backends import open_backend
    from hpcvdj.runs.ranks import root_does
    from hpcvdj.studies.memory import memory_rows

    problem, _ = load_problem(world, junctions, germline, 0, None, "bitwise")
    rows = root_does(world, lambda: memory_rows(problem, open_backend("auto", world.local_rank())))
    if rows is not None:
        write_study(world, rows, output, "memory", "memory")


@app.command(rich_help_panel=_PATHWAYS)
def throughput(
    germline: common.GermlineFile,
    output: StudyFolder,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="In silico junctions to count.")] = 10_000_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the junctions.")] = 1,
    max_n: Annotated[int, typer.Option("--max-n", min=0, max=60, help="Largest number of n-nucleotides.")] = 10,
    backend: Device = BackendName.auto,
    repeats: Repeats = 3,
    threads: common.Threads = None,
) -> None:
    """Count very many in silico junctions with direct, made by each rank in its own memory.

    Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj study throughput -g GERMLINE.tsv -n 1000000000 -o DIR; done
    """
    world = common.begin(threads)
    from hpcvdj.counting.config import Config
    from hpcvdj.studies.throughput import measure

    table = common.load_germline(germline)
    rows = measure(table, number, seed, Config(max_n, "direct", backend.value), world, repeats)
    if world.is_root:
        write_study(world, rows, output, f"throughput-{world.size}", "throughput")


@app.command("motif-tables", rich_help_panel=_MOTIFS)
def motif_tables(
    output: StudyFolder,
    fasta: Annotated[
        Path | None, typer.Argument(help="Sequences; random ones without.", metavar="FASTA", show_default=False)
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=2, help="Sequences to compare.")] = 1024,
    length: Annotated[int, typer.Option("--length", min=32, help="Bases of a random sequence.")] = 500,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random sequences.")] = 1,
    both_strands: Annotated[bool, typer.Option("--both-strands", help="The reverse complements too.")] = False,
    parts: Annotated[
        str, typer.Option("--parts", help="What to measure: figure 5, figures 6 and 7, figure 8, figure 9.")
    ] = "construction,settings,speedup,lengths",
    k: Annotated[str, typer.Option("--k", help="k-mer lengths of construction and speedup.")] = "8,12,16,20",
    settings_k: Annotated[int, typer.Option("--settings-k", min=4, help="k of settings and lengths.")] = 12,
    d: Annotated[int, typer.Option("--d", min=0, max=3, help="Largest Hamming distance.")] = 2,
    bucket_counts: Annotated[
        str | None, typer.Option("--buckets", help="Buckets of construction.", show_default="1 to 256")
    ] = None,
    cpu_number: Annotated[int, typer.Option("--cpu-number", min=2, help="Sequences that CPU cores compare.")] = 256,
    repeats: Repeats = 3,
    backend: Device = BackendName.auto,
    label: Label = "",
    threads: common.Threads = None,
) -> None:
    """The motif thesis's figures 5 to 9: hash tables, their construction and comparison, setting by setting.

    Without a GPU only the construction and the CPU comparison are measured.
    """
    world = common.begin(threads)
    if world.size > 1:
        raise InputError("motif-tables measures one process; start it without mpiexec")
    from hpcvdj.studies.motif_sources import Source
    from hpcvdj.studies.motif_tables_runs import measure

    source = Source(fasta, number, length, seed, both_strands)
    counts = _numbers("--buckets", bucket_counts) if bucket_counts else None
    chosen = [name.strip() for name in parts.split(",")]
    rows = measure(
        source, chosen, _numbers("--k", k), settings_k, d, counts, cpu_number, repeats, backend.value, common.say
    )
    write_study(world, rows, output, _name("motif_tables", world.size, label), "motif_tables")


@app.command(rich_help_panel=_MOTIFS)
def motifs(
    output: StudyFolder,
    fasta: Annotated[
        Path | None, typer.Argument(help="Sequences; random ones without.", metavar="FASTA", show_default=False)
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=2, help="Sequences to compare.")] = 9184,
    length: Annotated[int, typer.Option("--length", min=32, help="Bases of a random sequence.")] = 500,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random sequences.")] = 1,
    both_strands: Annotated[
        bool, typer.Option("--both-strands", help="The reverse complements as so many sequences more.")
    ] = False,
    k: Annotated[str, typer.Option("--k", help="k-mer lengths.")] = "8,12,16,20",
    d: Annotated[int, typer.Option("--d", min=0, max=3, help="Largest Hamming distance.")] = 2,
    methods: Annotated[
        str, typer.Option("--methods", help="Methods; one with :N takes the first N sequences only.")
    ] = "pigeonhole,index,matrix,bitslice:512,tables:256",
    repeats: Repeats = 3,
    backend: Device = BackendName.auto,
    label: Label = "",
    threads: common.Threads = None,
) -> None:
    """Motif comparison, method by method: sequences in, counters of all pairs out.

    Example: hpcvdj study motifs --k 12,20 -o DIR
    """
    world = common.begin(threads)
    if world.size > 1:
        raise InputError("motifs measures one process; start it without mpiexec")
    from hpcvdj.studies.motif_sources import Source
    from hpcvdj.studies.motifs import measure

    named = [part.strip().partition(":") for part in methods.split(",")]
    limits = {name: int(limit) for name, _, limit in named if limit.isdigit()}
    rows = measure(
        Source(fasta, number, length, seed, both_strands), _numbers("--k", k), d, [name for name, _, _ in named],
        limits, repeats, backend.value, common.say,
    )  # fmt: skip
    write_study(world, rows, output, _name("motifs", world.size, label), "motifs")


@app.command(rich_help_panel=_RENDER)
def render(folder: Folder) -> None:
    """Make DIR/README.md and the plot of any study from its raw rows; needs no GPU."""
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.studies import renderer

    renderer(folder)(folder)
    common.say(f"written    {folder / 'README.md'}")


def _name(study: str, ranks: int, label: str) -> str:
    return f"{study}-{ranks}" + (f"-{label}" if label else "")


def _numbers(option: str, text: str) -> list[int]:
    """`32,64` as numbers that can be threads per block."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 1 <= int(part) <= 1024 for part in parts):
        raise InputError(f"{option} {text!r}: give numbers from 1 to 1024, such as 32,64,128")
    return [int(part) for part in parts]
