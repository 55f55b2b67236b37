"""`hpcvdj study`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcvdj.cli import common, options
from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError, choice, choices
from hpcvdj.kernels.kmers.methods import KmerMethod
from hpcvdj.kernels.pathways.methods import PathwayMethod

if TYPE_CHECKING:
    from hpcvdj.recombination.repertoire import Problem
    from hpcvdj.runs.run import Run

app = typer.Typer(
    help="The tables and figures of the paper and the thesis on your machine: raw rows, a page with tables, plots.",
    no_args_is_help=True,
)

_PATHWAYS = "Counting pathways"
_MOTIFS = "Comparing sequences by k-mers"
_RENDER = "Make tables and plots again"

StudyFolder = Annotated[Path, options.option("--output -o", "DIR", "Folder of the study.")]
Folder = Annotated[Path, typer.Argument(help="Folder of the study.", metavar="DIR", show_default=False)]
Lengths = Annotated[str, typer.Option("--n-lengths", metavar="A-B", help="n-lengths to measure.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Measured repeats of each.")]
Sample = Annotated[
    int | None, typer.Option("--sample", min=1, help="Measure a random sample of this size.", show_default="all")
]
Label = Annotated[str, typer.Option("--label", help="Added to the name of the raw file.")]
Longest = Annotated[
    float,
    typer.Option(
        "--longest",
        min=0.01,
        help="Seconds. A pass that is expected to take longer is measured on part of the n-nucleotide strings and "
        "marked.",
    ),
]
Fasta = Annotated[
    Path | None, typer.Argument(help="Sequences; random ones without a file.", metavar="FASTA", show_default=False)
]
Number = Annotated[int, typer.Option("--number", "-n", min=2, help="Sequences to compare.")]
Length = Annotated[int, typer.Option("--length", min=32, help="Bases of a random sequence.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the random sequences.")]
BothStrands = Annotated[bool, typer.Option("--both-strands", help="Compare also the reverse complements.")]
Distance = Annotated[int, typer.Option("--d", min=0, max=3, help="Largest Hamming distance.")]


def problem_of(
    run: Run,
    junctions: Path,
    germline: list[Path],
    max_n: int = 0,
    sample: int | None = None,
    longest: int | None = None,
) -> tuple[Problem, int]:
    """The junctions of a table, or a random sample of them, on every rank, and how many there are in all.

    longest  nucleotides of the longest CDR3; by default the paper's
    """
    from hpcvdj.counting.verify import sampled_problem
    from hpcvdj.recombination.germline import PaperDForms, read_germline
    from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.repertoires.reading import Reading

    table = run.from_root(lambda: read_germline(germline))
    inputs = run.from_root(lambda: Inputs.of_file(junctions, Reading(longest=longest or PAPER_LONGEST_CDR3)))
    return sampled_problem(run, inputs, table, max_n, sample, 0, PaperDForms.name)


def begin_alone(name: str, threads: int | None) -> Run:
    """Start a study of one process; InputError, on every rank, if there are more."""
    run = common.begin(threads)

    def require_one() -> None:
        if run.ranks > 1:
            raise InputError(f"study {name} measures one process; start it without mpiexec")

    run.on_root(require_one)
    return run


@contextmanager
def recording(run: Run, study: str, folder: Path, name: str, label: str = "") -> Iterator[list[Any]]:
    """Yields a list for raw rows; when the block ends, root writes them to raw-NAME-LABEL.csv in the study's folder."""
    from hpcvdj.studies.rows import launch_facts, write_rows

    facts = run.on_root(lambda: launch_facts(study, ["hpcvdj", *sys.argv[1:]], run))
    rows: list[Any] = []
    yield rows
    path = folder / f"raw-{'-'.join(filter(None, (name, label)))}.csv"

    def write() -> None:
        write_rows(path, facts or {}, rows)
        common.say(f"written    {path}")

    run.on_root(write)


@app.command(rich_help_panel=_PATHWAYS)
def methods(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    output: StudyFolder,
    n_lengths: Lengths = "0-6",
    names: Annotated[str, typer.Option("--methods", help="Methods to measure.")] = "baseline,bitwise,direct",
    backend: options.BackendOption = "auto",
    repeats: Repeats = 2,
    longest: Longest = 20.0,
    sample: Sample = None,
    threads_per_block: options.ThreadsPerBlock = options.DEFAULT_THREADS_PER_BLOCK,
    label: Label = "",
    threads: options.Threads = None,
) -> None:
    """Table IV: the methods side by side, n-length by n-length."""
    run = common.begin(threads)
    from hpcvdj.studies.measuring import measure

    lengths = run.from_root(lambda: options.parse_range("--n-lengths", n_lengths))
    chosen = run.from_root(lambda: [choice(PathwayMethod, name.strip(), "--methods").name for name in names.split(",")])
    configs = [Config(max(lengths), name, backend, threads_per_block=threads_per_block) for name in chosen]
    with recording(run, "methods", output, f"methods-{run.ranks}", label) as rows:
        problem, of = problem_of(run, junctions, germline, max(lengths), sample)
        for config in configs:
            rows += measure(problem, of, config, run, lengths, repeats, longest)


@app.command(rich_help_panel=_PATHWAYS)
def blocks(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    output: StudyFolder,
    n_lengths: Lengths = "4-7",
    sizes: Annotated[str, typer.Option("--sizes", help="Threads per block to compare.")] = "32,64,128,256",
    backend: options.BackendOption = "auto",
    repeats: Repeats = 2,
    longest: Longest = 5.0,
    sample: Sample = None,
    label: Label = "",
    threads: options.Threads = None,
) -> None:
    """Figure 4: the bitwise enumeration by threads per block."""
    run = common.begin(threads)
    from hpcvdj.studies.measuring import measure

    lengths = run.from_root(lambda: options.parse_range("--n-lengths", n_lengths))
    chosen = run.from_root(lambda: _numbers("--sizes", sizes))
    configs = [Config(max(lengths), "bitwise", backend, threads_per_block=size) for size in chosen]
    with recording(run, "blocks", output, f"blocks-{run.ranks}", label) as rows:
        problem, of = problem_of(run, junctions, germline, max(lengths), sample)
        for config in configs:
            rows += measure(problem, of, config, run, lengths, repeats, longest)


@app.command(rich_help_panel=_PATHWAYS)
def pairs(junctions: options.Junctions, germline: options.GermlineTables, output: StudyFolder) -> None:
    """Figure 2: in vivo sequences of each V-J pair."""
    run = common.begin()
    from hpcvdj.studies.pairs import pair_rows

    with recording(run, "pairs", output, "pairs") as rows:
        problem, _ = problem_of(run, junctions, germline)
        rows += pair_rows(problem.repertoire)


@app.command(rich_help_panel=_PATHWAYS)
def memory(junctions: options.Junctions, germline: options.GermlineTables, output: StudyFolder) -> None:
    """Table III: bytes of the forms and sequences on the GPU."""
    run = common.begin()
    from hpcvdj.kernels.backends import open_backend
    from hpcvdj.studies.memory import memory_rows

    with recording(run, "memory", output, "memory") as rows:
        problem, _ = problem_of(run, junctions, germline)
        rows += run.on_root(lambda: memory_rows(problem, open_backend())) or []


@app.command(rich_help_panel=_PATHWAYS)
def throughput(
    germline: options.GermlineTables,
    output: StudyFolder,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="In silico junctions to count.")] = 10_000_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the junctions.")] = 1,
    max_n: Annotated[int, typer.Option("--max-n", min=0, max=60, help="Largest number of n-nucleotides.")] = 10,
    backend: options.BackendOption = "auto",
    repeats: Repeats = 3,
    threads: options.Threads = None,
) -> None:
    """Count many in silico junctions with direct; each rank makes its own in memory.

    Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj study throughput -g GERMLINE.tsv -n 1000000000 -o DIR; done
    """
    run = common.begin(threads)
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.studies.throughput import PackedSet, measure

    table = run.from_root(lambda: read_germline(germline))
    with recording(run, "throughput", output, f"throughput-{run.ranks}") as rows:
        rows += measure(PackedSet(table, number, seed), Config(max_n, backend=backend), run, repeats)


@app.command("motif-tables", rich_help_panel=_MOTIFS)
def motif_tables(
    output: StudyFolder,
    fasta: Fasta = None,
    number: Number = 1024,
    length: Length = 500,
    seed: Seed = 1,
    both_strands: BothStrands = False,
    parts: Annotated[
        str,
        typer.Option(
            "--parts", help="Parts to measure: construction (figure 5), settings (6, 7), speedup (8), lengths (9)."
        ),
    ] = "construction,settings,speedup,lengths",
    k: Annotated[str, typer.Option("--k", help="k-mer lengths of construction and speedup.")] = "8,12,16,20",
    settings_k: Annotated[int, typer.Option("--settings-k", min=4, help="k of settings and lengths.")] = 12,
    d: Distance = 2,
    bucket_counts: Annotated[
        str | None, typer.Option("--buckets", help="Buckets of construction.", show_default="1 to 256")
    ] = None,
    cpu_number: Annotated[int, typer.Option("--cpu-number", min=2, help="Sequences that CPU cores compare.")] = 256,
    repeats: Repeats = 3,
    backend: options.BackendOption = "auto",
    label: Label = "",
    threads: options.Threads = None,
) -> None:
    """The motif thesis's figures 5 to 9: hash tables, their construction and comparison, setting by setting.

    Without a GPU only the construction and the CPU comparison are measured.
    """
    run = begin_alone("motif-tables", threads)
    from hpcvdj.studies.motif_tables import CONSTRUCTION_BUCKETS, Plan, measure
    from hpcvdj.studies.motifs import Source

    source = Source(fasta, number, length, seed, both_strands)
    buckets = _numbers("--buckets", bucket_counts) if bucket_counts else CONSTRUCTION_BUCKETS
    chosen = [name.strip() for name in parts.split(",")]
    plan = Plan(chosen, _numbers("--k", k), settings_k, d, cpu_number, repeats, backend, buckets)
    with recording(run, "motif_tables", output, "motif_tables-1", label) as rows:
        rows += measure(source, plan, common.say)


@app.command(rich_help_panel=_MOTIFS)
def motifs(
    output: StudyFolder,
    fasta: Fasta = None,
    number: Number = 9184,
    length: Length = 500,
    seed: Seed = 1,
    both_strands: BothStrands = False,
    k: Annotated[str, typer.Option("--k", help="k-mer lengths.")] = "8,12,16,20",
    d: Distance = 2,
    methods: Annotated[
        str, typer.Option("--methods", help="Methods; NAME:N measures a method on the first N sequences only.")
    ] = ",".join((*choices(KmerMethod), "tables:256")),
    repeats: Repeats = 3,
    backend: options.BackendOption = "auto",
    label: Label = "",
    threads: options.Threads = None,
) -> None:
    """Motif comparison, method by method: sequences in, counters of all pairs out.

    Example: hpcvdj study motifs --k 12,20 -o DIR
    """
    run = begin_alone("motifs", threads)
    from hpcvdj.studies.motifs import Plan, Source, measure

    named = [part.strip().partition(":") for part in methods.split(",")]
    limits = {name: int(limit) if limit.isdigit() else None for name, _, limit in named}
    source = Source(fasta, number, length, seed, both_strands)
    with recording(run, "motifs", output, "motifs-1", label) as rows:
        rows += measure(source, Plan(_numbers("--k", k), d, limits, repeats, backend), common.say)


@app.command(rich_help_panel=_RENDER)
def render(folder: Folder) -> None:
    """Make DIR/README.md and the plots of a study from its raw rows; needs no GPU."""
    run = common.begin()
    if run.is_root:
        from hpcvdj.studies import pages

        pages.render(folder)
        common.say(f"written    {folder / pages.PAGE}")


def _numbers(option: str, text: str) -> list[int]:
    """`32,64` as numbers from 1 to 1024."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 1 <= int(part) <= 1024 for part in parts):
        raise InputError(f"{option} {text!r}: give numbers from 1 to 1024, such as 32,64,128")
    return [int(part) for part in parts]
