"""`hpcvdj sharing`."""

from pathlib import Path
from typing import Annotated, Any

from hpcvdj.cli import asking, common, options
from hpcvdj.cohorts.settings import Naming, SharingSettings
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite


def command(
    tables: options.Tables,
    model: options.ModelName,
    output: Annotated[Path, options.output("OUT", "Table of shared sequences to write: .tsv, .tsv.gz or .parquet.")],
    naming: Naming,
    settings: SharingSettings,
    asked: asking.QuestionOptions,
    overlap: Path | None = setting("table to write of the sequences that each two individuals share", None,
                                   metavar="OUT"),
    plot: options.Plot = None,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Find the sequences that individuals share, and those that are shared by more of them than chance explains.

    Compares how many sequences are in 2, 3, ... individuals with how many recombination makes there, from their
    generation probabilities and the numbers of distinct junctions. A share q of all sequences survives selection in
    everybody; it is fitted. The p-value of a sequence is the probability that so many individuals have it if one has.
    Also prints how well generation probability and length predict which sequences are shared (AUC).

    Each table is one individual, or each repertoire_id of a table that has several. Takes productive junctions with V
    and J calls, in nucleotides or, of tables that have only these, in amino acids; copies and nucleotide variants are
    then not known. Run hpcvdj contamination first: copies between samples look like sharing. OUT.json has the numbers
    of the summary and the overlap of all pairs.

    Example: hpcvdj sharing donors/ -m human_trb -o shared.tsv --plot shared.png
    """
    run = common.begin(asked, shared=True)
    from hpcvdj.cohorts.sharing_question import OVERLAP, SharingQuestion
    from hpcvdj.reports.plots import PlottedTable

    further = {OVERLAP: overlap} if overlap is not None else {}
    written = PlottedTable[Any](output, overwrite, further=further, plot=plot)
    question = SharingQuestion(naming, settings)
    asking.answer(run, question, tables, model, asked, written)
