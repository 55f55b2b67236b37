"""`hpcvdj convergence`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.helping import MORE
from hpcvdj.recombination.productive import Rows
from hpcvdj.runs.progress import told_if_slow

if TYPE_CHECKING:
    from hpcvdj.sharing.convergence import Level

MOST_SHOWN = 5
"""Numbers of individuals that have a line of their own in the summary."""


def command(
    results: Annotated[
        list[Path],
        typer.Argument(
            help="Result files of `hpcvdj count`, with the same options.", metavar="OUT.h5...", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        options.option("--output -o", "OUT", "Table of nucleotide junctions: .tsv, .tsv.gz or .parquet."),
    ],
    amino_acids: Annotated[
        Path | None, typer.Option("--aa", metavar="OUT", help="Table of amino-acid junctions, in the same formats.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="OUT", help="Figure to draw: .png or .svg; needs matplotlib.")
    ] = None,
    individual: Annotated[
        str | None,
        typer.Option(
            "--individual", metavar="COLUMN", help="Column of the counted table that names the individual.",
            show_default="each table is one individual, or, counted together, each repertoire_id",
        ),
    ] = None,
    rows: Annotated[
        Rows, typer.Option("--rows", help="Use only productive rows (if the counted table says which), or all rows.")
    ] = "productive",
    public: Annotated[
        int, typer.Option(
            "--public", min=2, help="Individuals from which on a junction is public, for the AUC.",
            rich_help_panel=MORE,
        )
    ] = 2,
    with_genes: Annotated[
        bool, typer.Option(
            "--aa-with-genes", help="Distinguish amino-acid junctions of different V or J genes.",
            rich_help_panel=MORE,
        )
    ] = False,
    junctions: Annotated[
        Path | None,
        typer.Option(
            "--junctions", help="Where the counted table is now (a folder, for several).",
            show_default="where it was counted", rich_help_panel=MORE),
    ] = None,
    model: options.OptionalModel = None,
    backend: options.BackendOption = "auto",
    overwrite: options.Overwrite = False,
) -> None:  # fmt: skip
    """Compare the number of individuals that have a junction with how easily recombination makes it.

    Writes each distinct nucleotide junction with its pathways, its weight (a pathway with m n-nucleotides counts 4^-m,
    as if every n-nucleotide string were equally likely) and the number of individuals that have it; with --aa the same,
    summed over the nucleotide junctions of each amino-acid junction. With --model also their generation probabilities.
    Of junctions in as many individuals, those with the largest weight, or probability, come first.

    Prints how well probability, weight, pathways and length predict which junctions are public: areas under the ROC
    curve with 95 % intervals (DeLong).

    Example: hpcvdj convergence mice.h5 --individual subject -o shared.tsv --aa shared_aa.tsv --plot shared.png
    """
    if not common.begin().is_root:
        return
    from hpcvdj.api.results import convergence

    tables = [path for path in (output, amino_acids) if path is not None]
    together = _require_targets(results, tables, plot, junctions, overwrite=overwrite)
    with told_if_slow(f"reading {len(results):,} result(s) and comparing their junctions", shown=True):
        found = convergence(
            results,
            individual=individual,
            rows=rows,
            aa_with_genes=with_genes,
            junctions=junctions,
            model=model,
            backend=backend,
        )
    levels, observations = [found.nucleotides, found.amino_acids], found.observations
    for level, target in zip(levels, tables, strict=False):
        with told_if_slow(f"writing {target}", shown=True):
            level.write(target, overwrite=overwrite)
    if plot is not None:
        from hpcvdj.sharing.plot import draw

        draw([level.scored for level in levels], plot, public, observations.max_n, overwrite=overwrite)
    by = f"column {individual}" if individual else "repertoire_id" if together else "table"
    common.say(f"results    {len(results):,}, of {len(observations.individuals):,} individual(s), by {by}")
    if not individual and len(observations.individuals) == 1:
        common.say("           if a column of the counted table names them: --individual COLUMN, such as repertoire_id")
    unknown = "" if observations.productive_column else "; not checked whether productive"
    common.say(f"rows       {len(observations):,} of {observations.left_out}{unknown}")
    for level in levels:
        _report(level, public, observations.max_n)
    common.say(f"written    {', '.join(str(path) for path in (output, amino_acids, plot) if path is not None)}")


def _require_targets(
    results: list[Path], tables: list[Path], plot: Path | None, junctions: Path | None, *, overwrite: bool
) -> bool:
    """Raise InputError unless every output can be written; whether a result is of tables counted together."""
    from hpcvdj.repertoires.tables import table_suffix
    from hpcvdj.results.reader import Result
    from hpcvdj.storage.files import require_distinct, require_writable
    from hpcvdj.storage.plots import require_plottable

    targets = [*tables, *([plot] if plot is not None else [])]
    for path in tables:
        table_suffix(path)
        require_writable(path, overwrite=overwrite)
    if plot is not None:
        require_plottable(plot, overwrite=overwrite)
    together = False
    for result_path in results:
        with Result(result_path) as result:
            together |= result.together
            inputs = [table.path for table in result.tables] + ([junctions] if junctions else [])
        for target in targets:
            require_distinct(target, *inputs)
    return together


def _report(level: Level, public: int, max_n: int) -> None:
    import numpy as np

    individuals = level.column("individuals")
    shared = int((individuals >= public).sum())
    share = 100 * shared / max(1, len(level))
    common.say(
        f"\n{level.name} junctions: {len(level):,}, of which {shared:,} ({share:.2f} %) in >= {public} individuals"
    )
    for reason, junctions in level.excluded.items():
        common.say(f"  {junctions:,} without a probability, left out below: {reason}")
    level = level.scored
    individuals, score = level.column("individuals"), level.scores[level.score]
    heading = f"median {level.score}" + (f" (n 0-{max_n})" if "weight" in level.score else "")
    common.say(f"  individuals  junctions  {heading}")
    most = int(individuals.max(initial=0))
    for number in range(1, min(most, MOST_SHOWN) + 1):
        last = number == MOST_SHOWN < most
        chosen = individuals >= number if last else individuals == number
        if chosen.any():
            median = f"{np.median(score[chosen]):.4g}".rjust(len(heading))
            common.say(f"  {f'{number}+' if last else number:>11}  {int(chosen.sum()):9,}  {median}")
    _report_aucs(level, public)


def _report_aucs(level: Level, public: int) -> None:
    from hpcvdj.sharing.convergence import LENGTH

    with told_if_slow(f"computing the ROC curves of {len(level):,} {level.name} junctions", shown=True):
        areas = level.aucs(public)
    if not areas:
        common.say(f"  no AUC: it takes junctions in >= {public} individuals and junctions in fewer")
        return
    common.say(f"  predictor of >= {public}       AUC   95 % interval    less that of length")
    for name, area in areas.items():
        label = "length, shorter first" if name == LENGTH else name
        line = f"  {label:22} {area.area:.3f}   {_interval(area.interval)}"
        if name != LENGTH:
            difference, interval = area.less(areas[LENGTH])
            line += f"     {difference:+.3f}  ({_interval(interval)})"
        common.say(line)


def _interval(ends: tuple[float, float]) -> str:
    low, high = ends
    return "unknown" if low != low else f"{low:.3f} to {high:.3f}"
