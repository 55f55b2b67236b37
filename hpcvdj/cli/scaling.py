"""`hpcvdj scaling`."""

import typer

from hpcvdj.cli import common, options, study
from hpcvdj.counting.config import Config

app = typer.Typer(
    help="Strong-scaling study: measure each number of ranks in its own launch, then make tables and a plot of all.",
    no_args_is_help=True,
)


@app.command()
def measure(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    output: study.StudyFolder,
    n_lengths: study.Lengths = "0-6",
    method: options.MethodOption = "bitwise",
    backend: options.BackendOption = "auto",
    repeats: study.Repeats = 3,
    sample: study.Sample = None,
    threads_per_block: options.ThreadsPerBlock = options.DEFAULT_THREADS_PER_BLOCK,
    label: study.Label = "",
    strict_binding: options.StrictBinding = False,
    threads: options.Threads = None,
) -> None:
    """Measure a method with the ranks of this launch; writes DIR/raw-METHOD-RANKS.csv.

    Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj scaling measure … ; done
    """
    run = common.begin(threads)
    from hpcvdj.studies import measuring

    lengths = run.from_root(lambda: options.parse_range("--n-lengths", n_lengths))
    config = Config(max(lengths), method, backend, threads_per_block=threads_per_block, strict_binding=strict_binding)
    longest = config.method_class().longest_cdr3
    with study.recording(run, "scaling", output, f"{method}-{run.ranks}", label) as rows:
        problem, of = study.problem_of(run, junctions, germline, max(lengths), sample, longest)
        rows += measuring.measure(problem, of, config, run, lengths, repeats)
    for row in rows if run.is_root else []:
        common.say(f"{row.work}, {row.ranks} rank(s), repeat {row.repeat}: {row.wall:.4f} s")


app.command()(study.render)
