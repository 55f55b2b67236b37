"""`hpcvdj annotate`."""

from pathlib import Path
from typing import Annotated

from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.cli import asking, common, options
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite


def command(
    tables: options.Tables,
    model: options.ModelName,
    database: Annotated[
        Path,
        options.valued(
            "--database", "FILE", "Receptors of known specificity: a file of VDJdb, McPAS-TCR or IEDB, or any table."
        ),
    ],
    output: Annotated[
        Path, options.output("FOLDER", "Folder to write: NAME.epitopes.tsv and NAME.hits.tsv of each sample.")
    ],
    of: DatabaseSettings,
    settings: AnnotationSettings,
    choice: ClonotypeChoice,
    asked: asking.QuestionOptions,
    resume: bool = setting("leave a folder that is complete and of the same run", False),
    overwrite: Overwrite = False,
) -> None:
    """Find clonotypes like receptors of known specificity, and say how many of these hits chance makes.

    A hit has the V and J genes of a record of the database and its amino acids, or one exchanged. The number of hits of
    each epitope is compared with what recombination makes of so many junctions, times the model's selection factor, if
    it has one, and a factor kappa for the rest, which decoys tell: records of an antigen that the donors cannot have
    met. If the decoys come out more often than chance allows, nothing is called. Q-values are those of Benjamini and
    Hochberg over all epitopes of all samples.

    Each table is one sample, or each repertoire_id of a table that has several. The database is your own file;
    docs/annotate.md says where each is. Every record that is left out has its reason in the facts.

    Example: hpcvdj annotate donors/ --database vdjdb.slim.txt -m human_trb -o annotated/ --decoys SARS-CoV-2
    """
    run = common.begin(asked, shared=True)
    from hpcvdj.annotation.question import AnnotationOutput, AnnotationQuestion

    records = run.from_root(lambda: of.records(database))
    question = AnnotationQuestion(records, of, settings, choice)
    written = AnnotationOutput(output, overwrite, resume)
    asking.answer(run, question, tables, model, asked, written)
