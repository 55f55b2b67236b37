"""Arguments and outputs that several commands share."""

from collections.abc import Iterable
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

import typer

from hpcvdj.options import Option


def valued(flags: str, metavar: str, text: str, names: str = "") -> Any:
    """Return an option with a value and without a default; `flags` as in "--output -o".

    names  function that returns the names that the shell completes besides paths: `module:function`, imported then
    """
    complete = (lambda incomplete: _completed(resolve_name(names)(), incomplete)) if names else None
    return typer.Option(*flags.split(), metavar=metavar, help=text, show_default=False, autocompletion=complete)


def output(metavar: str, text: str) -> Any:
    """Return the option --output."""
    return valued("--output -o", metavar, text)


def _completed(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names and the paths that begin with the typed text."""
    path = Path(incomplete)
    folder, begin = (path, "") if incomplete.endswith("/") else (path.parent, path.name if incomplete else "")
    beside = incomplete[: len(incomplete) - len(begin)]
    matches = sorted(folder.glob(f"{begin}*")) if incomplete else []
    paths = [f"{beside}{path.name}{'/' * path.is_dir()}" for path in matches]
    return [*(name for name in names if name.startswith(incomplete)), *paths]


def argument(metavar: str, text: str) -> Any:
    """Return an argument without a default."""
    return typer.Argument(help=text, metavar=metavar, show_default=False)


Junctions = Annotated[
    Path, argument("JUNCTIONS", "AIRR rearrangement table ({tables}) with sequence_id, v_call, j_call, junction.")
]
Tables = Annotated[
    list[Path],
    argument(
        "JUNCTIONS",
        "AIRR tables ({tables}), others that hpcvdj formats lists, or folders of such files; - is standard input.",
    ),
]
Output = Annotated[
    Path,
    output(
        "OUT",
        "Table with the values beside its rows (.tsv, .tsv.gz, .tsv.zst, .parquet, .dataset; - is standard output), "
        "or result file (.h5); of several tables the folder.",
    ),
]
Together = Annotated[bool, Option("take all tables as one, in which each row keeps its repertoire_id")]
ResultFile = Annotated[Path, argument("OUT.h5", "Result file of hpcvdj count or hpcvdj pgen.")]
_GERMLINE = valued(
    "--germline -g",
    "TABLE",
    "Germline table: a name that hpcvdj germline list shows (human_trb; human: all loci), or a file; may be repeated.",
    "hpcvdj.recombination.packaged:germline_names",
)
GermlineTables = Annotated[list[Path], _GERMLINE]
OptionalGermline = Annotated[list[Path] | None, _GERMLINE]
OutputTable = Annotated[
    Path, output("OUT", "Table to write: .tsv, .tsv.gz, .tsv.zst, .parquet or .dataset; - is standard output.")
]
Plot = Annotated[Path | None, Option("figure to draw: .png or .svg; needs the extra report", metavar="FIGURE")]
_MODEL = valued(
    "--model -m",
    "MODEL",
    "Model: a name that hpcvdj models list shows, or a folder in IGoR's format.",
    "hpcvdj.recombination.igor:model_folders",
)
ModelName = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]

Sequences = Annotated[
    list[Path],
    argument(
        "SEQUENCES...",
        "AIRR tables ({tables}) whose distinct junctions are compared, or FASTA files (plain or compressed); several "
        "are compared as one set.",
    ),
]
MotifResultFile = Annotated[Path, argument("RESULT.h5", "Result file of hpcvdj motifs compare.")]
Moved = Annotated[
    Path | None,
    Option("where the compared file is now, for its sequences and genes; of several, their folder",
           flags="--sequences", unset="where it was compared"),
]  # fmt: skip
Strand = Annotated[
    Literal["both", "+", "-"],
    Option("pairs of which strands: + (both as given), - (one reverse-complemented), or both"),
]
