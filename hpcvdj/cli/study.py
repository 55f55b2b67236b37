"""`hpcvdj study`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hpcvdj.cli import common, options
from hpcvdj.cli.declared import App
from hpcvdj.counting.config import Config, MethodName, ThreadsPerBlock
from hpcvdj.errors import InputError, choice
from hpcvdj.generation.settings import range_of
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.kernels.method import THREADS_PER_BLOCK
from hpcvdj.kernels.pathways.methods import PathwayMethod
from hpcvdj.options import Option, setting
from hpcvdj.recombination.germline import PaperDForms
from hpcvdj.repertoires.settings import DForms, GermlineSettings
from hpcvdj.runs.settings import Launch, Threads
from hpcvdj.studies.settings import MethodsPlan, Repeats, Several, TablesPlan, numbers

if TYPE_CHECKING:
    from hpcvdj.recombination.repertoire import Problem
    from hpcvdj.runs.run import Run
    from hpcvdj.studies.memory import FormsRow

app = App(
    help="The tables and figures of the paper and the thesis on your machine: raw rows, a page with tables, plots."
)

_PATHWAYS = "Counting pathways"
_MOTIFS = "Comparing sequences by k-mers"
_RENDER = "Make tables and plots again"

StudyFolder = Annotated[Path, options.output("DIR", "Folder of the study.")]
Folder = Annotated[Path, options.argument("DIR", "Folder of the study.")]
Lengths = Annotated[
    range,
    Option("n-lengths to measure", metavar="A-B", parse=range_of, remedy="give a range such as 0-10, or one number"),
]
Sample = Annotated[int | None, Option("measure a random sample of this size", unset="all", least=1)]
Label = Annotated[str, Option("added to the name of the raw file")]
Longest = Annotated[
    float,
    Option("seconds. A pass that is expected to take longer is measured on part of the n-nucleotide strings and marked",
           least=0.01),
]  # fmt: skip
Fasta = Annotated[Path | None, options.argument("FASTA", "Sequences; random ones without a file.")]
Number = Annotated[int, Option("sequences to compare", flags="--number -n", least=2)]
Length = Annotated[int, Option("bases of a random sequence", least=32)]
Seed = Annotated[int, Option("seed of the random sequences", least=0)]
BothStrands = Annotated[bool, Option("compare also the reverse complements")]


def problem_of(
    run: Run,
    junctions: Path,
    germline: list[Path],
    max_n: int = 0,
    sample: int | None = None,
    longest: int | None = None,
) -> tuple[Problem, int]:
    """Return the junctions of a table, or a random sample of them, on every rank, and their number in the table.

    longest  nucleotides of the longest CDR3; by default that of the paper
    """
    from hpcvdj.counting.verify import sampled_problem
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.repertoires.reading import Reading

    table = run.from_root(lambda: read_germline(germline))
    inputs = run.from_root(lambda: Inputs.of_file(junctions, Reading(longest=longest or PAPER_LONGEST_CDR3)))
    return sampled_problem(run, inputs, table, max_n, sample, 0, PaperDForms.name)


def begin_alone(name: str, threads: int | None) -> Run:
    """Start a study of a single process.  Raise InputError, on every rank, if there are more."""
    run = common.begin(Launch(threads))
    if run.ranks > 1:
        raise InputError(f"study {name} measures one process; start it without mpiexec").everywhere()
    return run


@contextmanager
def recording(run: Run, study: str, folder: Path, name: str, label: str = "") -> Iterator[list[Any]]:
    """Yield a list for raw rows.  After the block, root writes them to raw-NAME-LABEL.csv in the study's folder."""
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
    n_lengths: Lengths = range(7),
    methods: str = setting("methods to measure", "baseline,bitwise,direct"),
    backend: BackendName = AUTO,
    repeats: Repeats = 2,
    longest: Longest = 20.0,
    sample: Sample = None,
    threads_per_block: ThreadsPerBlock = THREADS_PER_BLOCK,
    label: Label = "",
    threads: Threads = None,
) -> None:
    """Table IV: the methods side by side, n-length by n-length."""
    run = common.begin(Launch(threads))
    from hpcvdj.studies.measuring import measure

    chosen = run.from_root(lambda: [choice(PathwayMethod, name.strip(), "methods").name for name in methods.split(",")])
    configs = [
        Config(max_n=max(n_lengths), method=name, backend=backend, threads_per_block=threads_per_block)
        for name in chosen
    ]
    with recording(run, "methods", output, f"methods-{run.ranks}", label) as rows:
        problem, of = problem_of(run, junctions, germline, max(n_lengths), sample)
        for config in configs:
            rows += measure(problem, of, config, run, n_lengths, repeats, longest)


@app.command(rich_help_panel=_PATHWAYS)
def blocks(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    output: StudyFolder,
    n_lengths: Lengths = range(4, 8),
    sizes: Annotated[Several, numbers("threads per block to compare")] = (32, 64, 128, 256),
    backend: BackendName = AUTO,
    repeats: Repeats = 2,
    longest: Longest = 5.0,
    sample: Sample = None,
    label: Label = "",
    threads: Threads = None,
) -> None:
    """Figure 4: the bitwise enumeration by threads per block."""
    run = common.begin(Launch(threads))
    from hpcvdj.studies.measuring import measure

    configs = [
        Config(max_n=max(n_lengths), method="bitwise", backend=backend, threads_per_block=size) for size in sizes
    ]
    with recording(run, "blocks", output, f"blocks-{run.ranks}", label) as rows:
        problem, of = problem_of(run, junctions, germline, max(n_lengths), sample)
        for config in configs:
            rows += measure(problem, of, config, run, n_lengths, repeats, longest)


@app.command(rich_help_panel=_PATHWAYS)
def scaling(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    output: StudyFolder,
    n_lengths: Lengths = range(7),
    method: MethodName = "bitwise",
    backend: BackendName = AUTO,
    repeats: Repeats = 3,
    sample: Sample = None,
    threads_per_block: ThreadsPerBlock = THREADS_PER_BLOCK,
    label: Label = "",
    strict_binding: StrictBinding = False,
    threads: Threads = None,
) -> None:
    """Table V: strong scaling of a method, a launch for each number of ranks; writes DIR/raw-METHOD-RANKS.csv.

    Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj study scaling … ; done; hpcvdj study render DIR
    """
    run = common.begin(Launch(threads))
    from hpcvdj.studies.measuring import measure

    config = Config(
        max_n=max(n_lengths),
        method=method,
        backend=backend,
        threads_per_block=threads_per_block,
        strict_binding=strict_binding,
    )
    longest = config.method_class().longest_cdr3
    with recording(run, "scaling", output, f"{method}-{run.ranks}", label) as rows:
        problem, of = problem_of(run, junctions, germline, max(n_lengths), sample, longest)
        rows += measure(problem, of, config, run, n_lengths, repeats)
    for row in rows if run.is_root else []:
        common.say(f"{row.work}, {row.ranks} rank(s), repeat {row.repeat}: {row.wall:.4f} s")


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


@app.command(rich_help_panel=_PATHWAYS, of_root=True)
def forms(
    germline: Annotated[Path, options.argument("GERMLINE", "Germline table, name or file.")],
    alleles: GermlineSettings,
    in_vivo: int | None = setting("also the bytes of this many in vivo sequences", None, least=0),
    d_forms: DForms = PaperDForms.name,
) -> None:
    """Table III, computed: forms of each segment type and their bytes.

    Baseline is one byte a base, bit-wise two bits a base with every form padded to whole bytes. Every V and J allele
    of the table is counted; of the D alleles, those that take part in recombination.
    """
    from hpcvdj.studies.memory import IN_VIVO_BYTES, IN_VIVO_PACKED_BYTES, forms_tables

    table = alleles.read(germline)
    for locus, rows in forms_tables(table, d_forms).items():
        _report_forms(locus, rows)
    if in_vivo is not None:
        wide, packed = in_vivo * IN_VIVO_BYTES, in_vivo * IN_VIVO_PACKED_BYTES
        common.answer(
            f"in vivo, {in_vivo:,} sequences: {wide:,} bytes at {IN_VIVO_BYTES} each, {packed:,} at "
            f"{IN_VIVO_PACKED_BYTES}"
        )


def _report_forms(locus: str, rows: list[FormsRow]) -> None:
    from hpcvdj.studies.memory import PAPER_TABLE_3

    common.answer(locus)
    common.answer("  type  segments    forms  baseline (bytes)  bit-wise (bytes)  reduction")
    for row in rows:
        common.answer(
            f"  {row.segment_type:4} {row.segments:9,} {row.forms:8,} {row.baseline_bytes:17,} {row.bitwise_bytes:17,}"
            f" {row.reduction:9.2f} %"
        )
    v, d, j = rows
    common.answer(
        f"  in silico sequences per n-nucleotide string (V x J x D forms): {v.forms * j.forms * max(1, d.forms):,}"
    )
    common.answer(f"  threads of the V-J alternative (V x J forms): {v.forms * j.forms:,}")
    if (v.bytes, j.bytes) == (PAPER_TABLE_3["J"], PAPER_TABLE_3["D"]):
        left, counted = (" and ".join(f"{size:,}" for size in sizes) for sizes in (PAPER_TABLE_3["V"], d.bytes))
        common.answer(
            "  The paper's Table III prints these V bytes in its row J and these J bytes in its row D: its rows are "
            "one\n"
            f"  line off. The figures that remain, {left} in its row V, must be D's; the D forms counted here have\n"
            f"  {counted}, and no convention tried gives the paper's."
        )


@app.command(rich_help_panel=_PATHWAYS)
def throughput(
    germline: options.GermlineTables,
    output: StudyFolder,
    number: int = setting("in silico junctions to count", 10_000_000, flags="--number -n", least=1),
    seed: int = setting("seed of the junctions", 1, least=0),
    max_n: int = setting("largest number of n-nucleotides", 10, least=0, most=60),
    backend: BackendName = AUTO,
    repeats: Repeats = 3,
    threads: Threads = None,
) -> None:
    """Count many in silico junctions with direct; each rank makes its own in memory.

    Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj study throughput -g GERMLINE.tsv -n 1000000000 -o DIR; done
    """
    run = common.begin(Launch(threads))
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.studies.throughput import PackedSet, measure

    table = run.from_root(lambda: read_germline(germline))
    with recording(run, "throughput", output, f"throughput-{run.ranks}") as rows:
        rows += measure(PackedSet(table, number, seed), Config(max_n=max_n, backend=backend), run, repeats)


@app.command("motif-tables", rich_help_panel=_MOTIFS)
def motif_tables(
    output: StudyFolder,
    plan: TablesPlan,
    fasta: Fasta = None,
    number: Number = 1024,
    length: Length = 500,
    seed: Seed = 1,
    both_strands: BothStrands = False,
    label: Label = "",
    threads: Threads = None,
) -> None:
    """The motif thesis's figures 5 to 9: hash tables, their construction and comparison, setting by setting.

    Without a GPU only the construction and the CPU comparison are measured.
    """
    run = begin_alone("motif-tables", threads)
    from hpcvdj.studies.motif_tables import measure
    from hpcvdj.studies.motifs import SequenceSource

    source = SequenceSource(fasta, number, length, seed, both_strands)
    with recording(run, "motif_tables", output, "motif_tables-1", label) as rows:
        rows += measure(source, plan, common.say)


@app.command(rich_help_panel=_MOTIFS)
def motifs(
    output: StudyFolder,
    plan: MethodsPlan,
    fasta: Fasta = None,
    number: Number = 9184,
    length: Length = 500,
    seed: Seed = 1,
    both_strands: BothStrands = False,
    label: Label = "",
    threads: Threads = None,
) -> None:
    """Motif comparison, method by method: sequences in, counters of all pairs out.

    Example: hpcvdj study motifs -k 12,20 -o DIR
    """
    run = begin_alone("motifs", threads)
    from hpcvdj.studies.motifs import SequenceSource, measure

    source = SequenceSource(fasta, number, length, seed, both_strands)
    with recording(run, "motifs", output, "motifs-1", label) as rows:
        rows += measure(source, plan, common.say)


@app.command(of_root=True, rich_help_panel=_RENDER)
def render(folder: Folder) -> None:
    """Make DIR/README.md and the plots of a study from its raw rows; needs no GPU."""
    from hpcvdj.studies import pages

    pages.render(folder)
    common.say(f"written    {folder / pages.PAGE}")
