"""Options and arguments that several commands share; their choices come from where they are declared."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from hpcvdj.cli.helping import MORE
from hpcvdj.errors import InputError, choices
from hpcvdj.kernels.backends import AUTO, Backend
from hpcvdj.kernels.method import THREADS_PER_BLOCK
from hpcvdj.kernels.pathways.methods import PathwayMethod
from hpcvdj.recombination.calls import Policy, Ties
from hpcvdj.recombination.germline import LARGEST_MAX_P, DAlleles, DFormConvention
from hpcvdj.recombination.repertoire import SequenceField
from hpcvdj.runs.pacing import SAVE_SECONDS
from hpcvdj.runs.ranks import PATIENCE_SECONDS

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from hpcvdj.recombination.models import Model
    from hpcvdj.repertoires.formats import Opening

    MethodName: TypeAlias = str
    BackendName: TypeAlias = str
    DFormsName: TypeAlias = str
else:
    MethodName = Literal[tuple(choices(PathwayMethod))]
    BackendName = Literal[(AUTO, *choices(Backend))]
    DFormsName = Literal[tuple(choices(DFormConvention))]


def listed(base: type[Any]) -> str:
    """What each choice means, for the help."""
    return "; ".join(f"{name}: {kind.summary}" for name, kind in choices(base).items())


def opening(table_format: str | None, columns: str | None) -> "Opening":
    """How tables are opened, of --format and --columns; InputError for what these cannot be."""
    from hpcvdj.repertoires.formats import Opening

    pairs = [tuple(part.strip() for part in pair.split("=", 1)) for pair in (columns or "").split(",") if pair.strip()]
    wrong = next((pair for pair in pairs if len(pair) != 2 or not all(pair)), None)
    if wrong is not None:
        raise InputError(f"--columns {'='.join(wrong)}: give FIELD=COLUMN, as in junction=cdr3nt,v_call=v,j_call=j")
    return Opening(table_format, tuple(pairs))  # type: ignore[arg-type]


def option(flags: str, metavar: str, text: str) -> Any:
    """An option that takes one value and has no default to show; `flags` as in "--output -o"."""
    return typer.Option(*flags.split(), metavar=metavar, help=text, show_default=False)


Junctions = Annotated[
    Path,
    typer.Argument(
        help="AIRR rearrangement table ({tables}) with sequence_id, v_call, j_call, junction.",
        metavar="JUNCTIONS",
        show_default=False,
    ),
]
Tables = Annotated[
    list[Path],
    typer.Argument(
        help="AIRR rearrangement tables ({tables}) with sequence_id, v_call, j_call, junction; tables of the programs "
        "that --format lists; or folders, of which all such files are taken; - is "
        "standard input.",
        metavar="JUNCTIONS",
        show_default=False,
    ),
]
Output = Annotated[
    Path,
    option(
        "--output -o",
        "OUT",
        "What to write: the table with the values beside its rows (.tsv, .tsv.gz, .parquet; - is standard output), or "
        "a result file (.h5); for several tables the folder of their results, or with --together one file.",
    ),
]
TableFormat = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="Format of the tables. {formats}.", show_default="by the header"),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="FIELD=COLUMN,...",
        help="Which columns are which AIRR fields, as in junction=cdr3nt,v_call=v,j_call=j.",
        show_default=False,
    ),
]
IndividualColumn = Annotated[
    str | None,
    typer.Option(
        "--individual",
        metavar="COLUMN",
        help="Column that names the individual of each row.",
        show_default="repertoire_id, or the table's name",
    ),
]
Metadata = Annotated[
    Path | None,
    option(
        "--metadata",
        "TABLE",
        "Table with a row for each individual: its name, or that of its file, in one column, its group in another.",
    ),
]
SubjectColumn = Annotated[
    str | None,
    option("--subject", "COLUMN", "Column of the metadata that says whose each sample is; those of one are one."),
]
TiesOption = Annotated[
    Ties,
    typer.Option("--ties", help="auto: V genes that reads hardly tell apart are taken together, as TRBV12-3 and 12-4."),
]
KeepMisfits = Annotated[
    bool,
    typer.Option(
        "--keep-misfits",
        help="Keep, and test, what does not fit the model: genes, alleles, calls.",
        rich_help_panel=MORE,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Go on although the model cannot make half of the rows.", rich_help_panel=MORE),
]
GroupColumn = Annotated[str | None, option("--group", "COLUMN", "Column of the metadata that has the groups.")]
Draws = Annotated[
    int,
    typer.Option(
        "--draws", min=1000, help="Productive sequences to draw from the model, to find out what chance makes."
    ),
]
Together = Annotated[
    bool,
    typer.Option("--together", help="Take all tables as one, in which each row keeps its repertoire_id."),
]
BatchRows = Annotated[
    int | None,
    typer.Option(
        "--batch-rows",
        min=0,
        show_default="all rows at once; 4,194,304 if Parquet, or tables --together, have over 16,777,216",
        help="Take slices of this many rows, each read, computed and written by one rank, into OUT.h5.parts, for "
        "tables larger than memory; 0: all rows at once. Not for bitwise and baseline.",
        rich_help_panel=MORE,
    ),
]
ResultFile = Annotated[
    Path, typer.Argument(help="Result file of `hpcvdj count` or `hpcvdj pgen`.", metavar="OUT.h5", show_default=False)
]
_GERMLINE = option(
    "--germline -g",
    "TABLE",
    "Germline table: a name that `hpcvdj germline list` shows, such as human_trb, or human for all human tables; or a "
    "file. May be repeated, for several loci.",
)
GermlineTables = Annotated[list[Path], _GERMLINE]
OptionalGermline = Annotated[list[Path] | None, _GERMLINE]
OutputTable = Annotated[
    Path, option("--output -o", "OUT", "Table to write: .tsv, .tsv.gz or .parquet; - is standard output.")
]
_MODEL = option(
    "--model -m",
    "MODEL",
    "Recombination model: a name that `hpcvdj models list` shows, or a folder in IGoR's format. NAME:published is the "
    "model without hpcvdj's corrections of alleles.",
)
ModelName = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
Joint = Annotated[
    bool,
    typer.Option(
        "--joint",
        help="Take P(V, D, J) as a model of IGH has it; by default P(V) P(D, J), as in OLGA.",
        rich_help_panel=MORE,
    ),
]
Number = Annotated[int, typer.Option("-n", "--number", min=1, help="Junctions to make.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=(1 << 64) - 1, help="Seed; the same seed gives the same junctions.")
]
MaxN = Annotated[
    str,
    typer.Option(
        "--max-n", metavar="N|all", help="Largest number of n-nucleotides; all: up to the longest CDR3's length."
    ),
]
MethodOption = Annotated[
    MethodName, typer.Option("--method", help=f"How to count. {listed(PathwayMethod)}.", rich_help_panel=MORE)
]
BackendOption = Annotated[
    BackendName,
    typer.Option(
        "--backend", help=f"Where to compute. {listed(Backend)}; auto: a GPU if there is one.", rich_help_panel=MORE
    ),
]
DForms = Annotated[
    DFormsName,
    typer.Option("--d-forms", help=f"How D forms are counted. {listed(DFormConvention)}.", rich_help_panel=MORE),
]
DAllelesOption = Annotated[
    DAlleles,
    typer.Option(
        "--d-alleles",
        help="D alleles to use: the first functional allele of each gene, or all functional alleles.",
        rich_help_panel=MORE,
    ),
]
MaxP = Annotated[
    int,
    typer.Option(
        "--max-p",
        min=0,
        max=LARGEST_MAX_P,
        help="Largest number of P-nucleotides at one end of a segment.",
        rich_help_panel=MORE,
    ),
]
Field = Annotated[
    SequenceField,
    typer.Option(
        "--sequence-field",
        help="AIRR field to read: junction (with the Cys and Phe/Trp codons, which are removed) or cdr3.",
    ),
]
AmbiguousCalls = Annotated[
    Policy,
    typer.Option(
        "--ambiguous-calls",
        help="Rows with several calls (TRBV6-1,TRBV6-4) of different segments: exclude, or use the first.",
    ),
]
UnlistedAlleles = Annotated[
    Policy,
    typer.Option(
        "--unlisted-alleles",
        help="Rows with an allele that the germline table lacks, of a gene that it lists: exclude, or use the gene's "
        "first allele.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        help="CPU threads per rank.",
        show_default="the host's cores over its ranks",
        rich_help_panel=MORE,
    ),
]
ThreadsPerBlock = Annotated[
    int,
    typer.Option(
        "--threads-per-block",
        min=1,
        max=1024,
        help="Tasks per block; each rank gets whole blocks (the paper's equation 2). Changes only the speed of bitwise "
        "and baseline on a GPU.",
        rich_help_panel=MORE,
    ),
]
DEFAULT_THREADS_PER_BLOCK = THREADS_PER_BLOCK
StrictBinding = Annotated[
    bool, typer.Option("--strict-binding", help="Fail, not warn, if two ranks have the same GPU.", rich_help_panel=MORE)
]
Patience = Annotated[
    float,
    typer.Option(
        "--patience", min=1.0, help="Seconds to wait for a rank that hangs before giving up.", rich_help_panel=MORE
    ),
]
DEFAULT_PATIENCE = PATIENCE_SECONDS
Resume = Annotated[bool, typer.Option("--resume", help="Continue an unfinished run, if there is one.")]
CheckpointEvery = Annotated[
    float,
    typer.Option(
        "--checkpoint-every", min=0.0, help="Seconds after which finished work is saved.", rich_help_panel=MORE
    ),
]
DEFAULT_CHECKPOINT_SECONDS = SAVE_SECONDS
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]


def used_model(name: str) -> "Model":
    """The model of --model, for tests that rest on it; logs a warning if it is not good enough for that."""
    from hpcvdj.recombination.igor import load_model

    model = load_model(name)
    if model.caution is not None:
        log.warning("%s", model.caution)
    return model


def parse_max_n(text: str) -> int | Literal["all"]:
    """`--max-n`: a number, or `all`."""
    if text == "all":
        return "all"
    if not text.isdigit():
        raise InputError(f"--max-n {text!r}: give a number such as 10, or all")
    return int(text)


def parse_range(option: str, text: str) -> range:
    """`0-10`, or one number, as the range from the first to the last, both included."""
    first, _, last = text.partition("-")
    if not first.isdigit() or not (last or first).isdigit() or int(last or first) < int(first):
        raise InputError(f"{option} {text!r}: give a range such as 0-10, or one number")
    return range(int(first), int(last or first) + 1)
