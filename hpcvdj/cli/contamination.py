"""`hpcvdj contamination`."""

from pathlib import Path
from typing import Annotated

from hpcvdj.cli import asking, common, options
from hpcvdj.cohorts.settings import ContaminationSettings, Naming
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite


def command(
    tables: options.Tables,
    model: options.ModelName,
    output: Annotated[Path, options.output("OUT", "Table of pairs to write: .tsv, .tsv.gz or .parquet.")],
    naming: Naming,
    settings: ContaminationSettings,
    asked: asking.QuestionOptions,
    write_clean: Path | None = setting(
        "write the tables to this new folder, without the copies of improbable junctions that are not the largest; "
        "needs duplicate_count", None, metavar="FOLDER"),
    junctions_out: Path | None = setting("table to write of the improbable junctions that are shared, and by whom",
                                         None, metavar="OUT"),
    plot: options.Plot = None,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Find samples that contaminated each other, by the improbable junctions that they share.

    Two individuals hardly ever make the same junction if its generation probability is small. So junctions below
    --max-pgen that two samples share (nucleotides, V and J genes) came from one to the other. Writes for each pair how
    many there are, how many chance makes, and the rate. With duplicate_count, also how often clones of each size are
    met in other individuals. Give --metadata and --group with the batches: carry-over happens within a batch.

    Each table is one individual, or each repertoire_id of a table that has several. Needs productive nucleotide
    junctions with V and J calls. OUT.json has the numbers, and each row that --write-clean left out.

    Example: hpcvdj contamination donors/ -m human_trb -o pairs.tsv --metadata donors.tsv --group batch
    """
    run = common.begin(asked, shared=True)
    from hpcvdj.cohorts.contamination_question import JUNCTIONS, CleanOutput, ContaminationQuestion

    further = {JUNCTIONS: junctions_out} if junctions_out is not None else {}
    written = CleanOutput(output, overwrite, further=further, plot=plot, clean=write_clean)
    question = ContaminationQuestion(naming, settings)
    asking.answer(run, question, tables, model, asked, written)
