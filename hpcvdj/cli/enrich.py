"""`hpcvdj enrich`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.cli import asking, common, options
from hpcvdj.cli.computing import make_folder_of_several, not_all
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError, naming, option
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite

if TYPE_CHECKING:
    from hpcvdj.repertoires.table import Table
    from hpcvdj.runs.run import Run


def command(
    junctions: options.Tables,
    model: options.ModelName,
    output: Annotated[
        Path,
        options.output("OUT", "Table of tested clonotypes to write: .tsv, .tsv.gz or .parquet. Several tables: a "
                       "folder, for NAME.tsv of each."),
    ],
    settings: EnrichmentSettings,
    choice: ClonotypeChoice,
    asked: asking.QuestionOptions,
    control: Path | None = setting("junctions of other people, a table or a folder: take the number of neighbours that "
                                   "they have for chance, not the model's probabilities", None, metavar="TABLES"),
    plot: Path | None = setting(
        "figure to draw, of a single table: p-values beside uniform ones, and the hits as a network; .png or .svg; "
        "needs the extra report", None, metavar="FIGURE"),
    resume: bool = setting("of several tables, leave those whose output is complete", False),
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Find clonotypes with more neighbours than chance explains, as clonotypes that answer the same antigen have.

    A neighbour of a clonotype (V gene, J gene, amino acids) is a nucleotide junction of the same genes with the same
    amino acids, or with one exchanged. Their number is compared with what recombination makes of so many junctions,
    times the model's selection factor, if it has one, and a factor kappa for the rest of selection, which clonotypes
    without neighbours tell. P-values are Poisson, q-values are those of Benjamini and Hochberg over all clonotypes,
    hits that are neighbours form clusters.

    Takes productive junctions with V and J calls, of one individual in each table, in nucleotides or, of tables that
    have only these, in amino acids; each clonotype then counts as one junction, and likely sequencing errors are not
    known. The numbers are the same for any number of ranks and threads. enriched.tsv.json, beside enriched.tsv, says
    what was read, kappa of each length, and how many hits there are.

    Examples: hpcvdj enrich sample.tsv -m human_trb -o enriched.tsv;
    hpcvdj enrich samples/ -m human_trb -o enriched/
    """
    run = common.begin(asked, shared=True)
    from hpcvdj.api.tables import used_model
    from hpcvdj.chance.question import ask
    from hpcvdj.enrichment.question import EnrichmentQuestion, read_once_lines
    from hpcvdj.repertoires.folders import tables_in
    from hpcvdj.repertoires.inputs import name_of, targets_of
    from hpcvdj.repertoires.writers import writer_of
    from hpcvdj.reports.plots import PlottedTable

    opened = run.from_root(asked.opening)

    def plan() -> "list[tuple[list[Table], Path]]":
        several = "run hpcvdj once for each table"
        tables = tables_in(junctions, opened)
        work = targets_of(junctions, tables, output, suffix=".tsv", require=writer_of, alone=several)
        if plot is not None and len(work) > 1:
            raise InputError(f"{option('plot', plot)}: draws one table, and {len(work):,} are given; {several}")
        make_folder_of_several(junctions, output, [target for _, target in work])
        return work

    def compute(item: "tuple[list[Table], Path]", run: "Run") -> int | None:
        tables, target = item
        written = PlottedTable[Any](target, overwrite, resume, plot=plot)
        with naming(name_of(tables).name):
            answer = ask(question, tables, loaded, asked.checks, run, written)
        if answer is not None and len(work) == 1:
            asking.report(question, answer, written)
        elif answer is not None:
            advice = "".join(f"; {line}" for line in read_once_lines(answer))
            common.say(f"{name_of(tables).name}: {question.line(answer)}, {target}{advice}")
        return answer.hits if answer is not None else None

    with run.request:
        others = run.from_root(lambda: tables_in([control], opened) if control is not None else [])
        question = EnrichmentQuestion(settings, choice, others)
        work = run.from_root(plan)
        loaded = run.from_root(lambda: used_model(model))
        sizes = [sum(table.bytes for table in tables) for tables, _ in work]
        with common.saying_once():
            tested, refused = run.deal(work, compute, sizes, common.complain)
    if len(work) > 1 and tested and run.is_root:
        hits = [number or 0 for _, number in tested]
        complete = len(work) - len(tested) - len(refused)
        more = f"; {complete:,} more complete already" if complete else ""
        common.say(f"{sum(hits):,} hits in {sum(map(bool, hits)):,} of {len(hits):,} table(s) tested{more}")
    if refused:
        raise not_all([name_of(tables).name for (tables, _), _ in refused], len(work), "tested")
