"""`hpcvdj convergence`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common
from hpcvdj.errors import InputError

if TYPE_CHECKING:
    from hpcvdj.sharing.convergence import Level, Observations

NAME = "convergence"

MOST_SHOWN = 5
"""Numbers of individuals that have a line of their own in the summary."""


class Rows(StrEnum):
    """Which rows go in."""

    productive = "productive"
    all = "all"


def command(
    results: Annotated[
        list[Path],
        typer.Argument(help="Result files of `hpcvdj count`, counted alike.", metavar="OUT.h5...", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Table of nucleotide junctions: .tsv, .tsv.gz or .parquet.",
            show_default=False,
        ),
    ],
    amino_acids: Annotated[
        Path | None, typer.Option("--aa", metavar="OUT", help="Table of amino-acid junctions, likewise.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="OUT", help="Figure to draw: .png or .svg; needs matplotlib.")
    ] = None,
    individual: Annotated[
        str | None,
        typer.Option(
            "--individual", metavar="COLUMN", help="Column of the counted table that names the individual.",
            show_default="the result's repertoire_id: each table is one",
        ),
    ] = None,
    rows: Annotated[
        Rows, typer.Option("--rows", help="Rows that the table's column `productive`, if it has one, calls so; or all.")
    ] = Rows.productive,
    public: Annotated[
        int, typer.Option("--public", min=2, help="Individuals that make a junction public: what the AUC is for.")
    ] = 2,
    with_genes: Annotated[
        bool, typer.Option("--aa-with-genes", help="Tell amino-acid junctions of different V or J genes apart.")
    ] = False,
    junctions: Annotated[
        Path | None,
        typer.Option(
            "--junctions", help="Where the counted table (a folder: tables) lies now.",
            show_default="where it was counted",
        ),
    ] = None,
    overwrite: common.Overwrite = False,
) -> None:  # fmt: skip
    """Compare in how many individuals junctions occur with how many pathways they have.

    Writes each distinct nucleotide junction with its pathways, its weight (pathways with m n-nucleotides count 4^-m:
    every n-nucleotide string as likely as any other) and the number of individuals that have it; with --aa the same
    summed over the nucleotide junctions of each amino-acid junction. Printed is how well pathways, weight and length
    predict which junctions are public: areas under the ROC curve with 95 % intervals (DeLong).

    Example: hpcvdj convergence mice.h5 --individual subject -o shared.tsv --aa shared_aa.tsv --plot shared.png
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.sharing.convergence import amino_acid_level, nucleotide_level, read
    from hpcvdj.plotting import require_plottable
    from hpcvdj.repertoires.tables import table_suffix
    from hpcvdj.results.reader import Result
    from hpcvdj.storage import require_apart, require_writable

    tables = [path for path in (output, amino_acids) if path is not None]
    for path in tables:
        table_suffix(path)
    targets = [*tables, *([plot] if plot is not None else [])]
    if len(set(targets)) < len(targets):
        raise InputError(f"{output}: named for two outputs; give each its own name")
    for path in tables:
        require_writable(path, overwrite=overwrite)
    if plot is not None:
        require_plottable(plot, overwrite=overwrite)
    for path in results:
        with Result(path) as result:
            inputs = [table.path for table in result.tables] + ([junctions] if junctions else [])
        for target in targets:
            require_apart(target, *inputs)
    seen = read(results, individual=individual, rows=rows.value, junctions=junctions)
    if not len(seen):
        remedy = "--rows all takes all that were counted" if seen.not_productive else "see what was excluded, and why"
        raise InputError(f"{results[0]}: no row goes in ({_left_out(seen)}); {remedy}")
    levels = [nucleotide_level(seen), amino_acid_level(seen, with_genes=with_genes)]
    levels[0].write(output, overwrite=overwrite)
    if amino_acids is not None:
        levels[1].write(amino_acids, overwrite=overwrite)
    if plot is not None:
        from hpcvdj.sharing.plot import draw

        draw(levels, plot, public, seen.max_n, overwrite=overwrite)
    _report(seen, levels, public, individual)
    common.say(f"written    {', '.join(map(str, targets))}")


def _left_out(seen: Observations) -> str:
    without = f"{seen.without_individual:,} of no named individual"
    return f"{seen.counted:,} counted, {seen.not_productive:,} not productive, {without}"


def _report(seen: Observations, levels: list[Level], public: int, individual: str | None) -> None:
    column = f"column {individual}" if individual else "repertoire_id"
    common.say(f"results    {seen.results:,}, of {len(seen.individual[0]):,} individual(s), by {column}")
    if not individual and len(seen.individual[0]) == 1:
        common.say("           a column of the counted table can name them: --individual COLUMN; or count --together")
    unsaid = "" if seen.productive_column else "; whether productive was not asked"
    common.say(f"rows       {len(seen):,} of {_left_out(seen)}{unsaid}")
    for level in levels:
        _report_level(level, public, seen.max_n)


def _report_level(level: Level, public: int, max_n: int) -> None:
    import numpy as np

    shared = int((level.individuals >= public).sum())
    share = 100 * shared / max(1, len(level))
    common.say(
        f"\n{level.name} junctions: {len(level):,}, of which {shared:,} ({share:.2f} %) in >= {public} individuals"
    )
    common.say(f"  individuals  junctions  median pathways (n 0-{max_n})  median weight")
    most = int(level.individuals.max(initial=0))
    for number in range(1, min(most, MOST_SHOWN) + 1):
        last = number == MOST_SHOWN < most
        chosen = level.individuals >= number if last else level.individuals == number
        if chosen.any():
            pathways = float(np.median(level.columns["pathways_total"][chosen]))
            weight = float(np.median(level.columns["weight"][chosen]))
            label = f"{number}{'+' if last else ''}"
            common.say(f"  {label:>11}  {int(chosen.sum()):9,}  {pathways:25,.1f}  {weight:13.4g}")
    _report_aucs(level, public)


def _report_aucs(level: Level, public: int) -> None:
    from hpcvdj.sharing.convergence import LENGTH

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
