"""`hpcvdj associate`."""

from pathlib import Path
from typing import Annotated, Any

from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.cli import asking, common, options
from hpcvdj.errors import InputError, option
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite


def command(
    tables: options.Tables,
    model: options.ModelName,
    output: Annotated[Path, options.output("OUT", "Table of tests to write: .tsv, .tsv.gz or .parquet.")],
    naming: Donors,
    settings: AssociationSettings,
    asked: asking.QuestionOptions,
    donors: Path | None = setting("table to write of the donors, with scores by hits found without each", None,
                                  metavar="OUT"),
    plot: options.Plot = None,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Find what goes with a disease, an HLA allele or a number, given depths; or what expanded.

    Deeper donors have more of every sequence, so comparing presence finds what is deep, not what is ill. Here the
    p-value of a sequence is the probability of as many cases among its carriers, given how many carriers there are and
    how many recombinations each donor has: exact, and Fisher's test where all are equally deep. Q-values are over the
    sequences that can reach the threshold; q_weighted gives more weight to classes of sequences with many small
    p-values.

    Each table is one donor, or each repertoire_id of a table that has several. Likely copies of another donor's
    junction are no carriers, and if all cases are of one batch, --strata is needed. hpcvdj annotate reads the table of
    hits. OUT.json has what the summary says, and quantiles of p-values.

    With --subject and --time, clonotypes that expanded from one time to the next of a person are found, given the
    depths of both, and noise that is estimated from replicates: samples of one subject and time.

    Example: hpcvdj associate donors/ -m human_trb --metadata donors.tsv --case disease=MS --strata batch -o hits.tsv
    """
    if naming.time is not None and donors is not None:
        raise InputError(f"{option('donors', str(donors))}: {option('time')} gives donors no scores; leave it out")
    run = common.begin(asked, shared=True)
    from hpcvdj.association.question import DONORS, question_of
    from hpcvdj.reports.plots import PlottedTable

    further = {DONORS: donors} if donors is not None else {}
    written = PlottedTable[Any](output, overwrite, further=further, plot=plot)
    question: Any = question_of(naming, settings)
    asking.answer(run, question, tables, model, asked, written)
