"""`hpcvdj scaling`."""

from hpcvdj.cli import common, options, study
from hpcvdj.cli.declared import App
from hpcvdj.counting.config import Config, MethodName, ThreadsPerBlock
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.kernels.method import THREADS_PER_BLOCK
from hpcvdj.runs.settings import Launch, Threads

app = App(
    help="Strong-scaling study: measure each number of ranks in its own launch, then make tables and a plot of all."
)


@app.command()
def measure(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    output: study.StudyFolder,
    n_lengths: study.Lengths = range(7),
    method: MethodName = "bitwise",
    backend: BackendName = AUTO,
    repeats: study.Repeats = 3,
    sample: study.Sample = None,
    threads_per_block: ThreadsPerBlock = THREADS_PER_BLOCK,
    label: study.Label = "",
    strict_binding: StrictBinding = False,
    threads: Threads = None,
) -> None:
    """Measure a method with the ranks of this launch; writes DIR/raw-METHOD-RANKS.csv.

    Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj scaling measure … ; done
    """
    run = common.begin(Launch(threads))
    from hpcvdj.studies import measuring

    config = Config(max(n_lengths), method, backend, threads_per_block=threads_per_block, strict_binding=strict_binding)
    longest = config.method_class().longest_cdr3
    with study.recording(run, "scaling", output, f"{method}-{run.ranks}", label) as rows:
        problem, of = study.problem_of(run, junctions, germline, max(n_lengths), sample, longest)
        rows += measuring.measure(problem, of, config, run, n_lengths, repeats)
    for row in rows if run.is_root else []:
        common.say(f"{row.work}, {row.ranks} rank(s), repeat {row.repeat}: {row.wall:.4f} s")


app.command()(study.render)
