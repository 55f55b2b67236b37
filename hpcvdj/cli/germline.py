"""`hpcvdj germline`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common

if TYPE_CHECKING:
    from hpcvdj.germline_import import Imported

NAME = "germline"

app = typer.Typer(help="Germline tables: make one from what databases publish.", no_args_is_help=True)


class Format(StrEnum):
    """Kinds of source."""

    auto = "auto"
    fasta = "fasta"
    airr = "airr"
    model = "model"


@app.callback()
def group() -> None:
    """Germline tables: make one from what databases publish."""


@app.command("import")
def import_(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="IMGT-gapped FASTA, AIRR GermlineSet JSON (OGRDB), either plain or .gz, or IGoR/OLGA model folders.",
            metavar="SOURCE...",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="GERMLINE.tsv",
            help="Table to write; refused alleles go to GERMLINE.refused.tsv beside it.",
            show_default=False,
        ),
    ],
    locus: Annotated[
        list[str] | None,
        typer.Option(
            "--locus",
            help="Keep this locus alone, such as TRB; may be given several times. Also the locus of alleles whose "
            "names tell none.",
            show_default="all there are",
        ),
    ] = None,
    species: Annotated[
        str | None,
        typer.Option(
            "--species", help="Keep this species alone, as the source names it: 'Homo sapiens'.", show_default="all"
        ),
    ] = None,
    anchors: Annotated[
        Path | None,
        typer.Option(
            "--anchors",
            metavar="CSV",
            help="Anchors that the source lacks or has wrong: allele,anchor_index (base from 0 of codon 104 or 118), "
            "and perhaps function, strand, reads, note, refuse.",
            show_default="none",
        ),
    ] = None,
    source_format: Annotated[
        Format, typer.Option("--format", help="Kind of the sources; auto tells it by their content.")
    ] = Format.auto,
    source_note: Annotated[
        str | None,
        typer.Option("--source-note", help="Text for the column source.", show_default="the source's own name"),
    ] = None,
    species_note: Annotated[
        str | None,
        typer.Option("--species-note", help="Added to the column source, such as the species.", show_default="none"),
    ] = None,
    overwrite: common.Overwrite = False,
) -> None:
    """Make a germline table: the parts of V, D and J genes that lie in the CDR3.

    A V gene is cut behind Cys 104, found by IMGT's numbering of gapped sequences, by coordinates or by the model's
    anchors; a J gene before Phe/Trp 118, found by the motif F/W-G-X-G or likewise. Alleles are kept. One that cannot
    be cut for certain is refused and listed with the reason.

    Example: hpcvdj germline import TRBV.fasta TRBD.fasta TRBJ.fasta --species 'Homo sapiens' -o human_trb.tsv
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.germline_import import import_germline
    from hpcvdj.storage import require_writable

    require_writable(output, overwrite=overwrite)
    imported = import_germline(
        sources,
        name=output.name,
        source_format=source_format.value,
        loci=locus or (),
        species=species,
        anchors=anchors,
        source_note=source_note,
        species_note=species_note,
    )
    beside = imported.write(output, overwrite=overwrite)
    _report(imported)
    common.say(f"written    {output}")
    common.say(f"refusals   {beside}")


def _report(imported: Imported) -> None:
    for locus, counts in imported.counts().items():
        cells = []
        for kind in "VDJ":
            numbers = [counts[kind, status] for status in ("F", "ORF", "P")]
            cells.append(f"{kind} {' / '.join(f'{number:,}' for number in numbers)}")
        common.say(f"{locus:10} {', '.join(cells)}  (F / ORF / P)")
    common.say(f"refused    {len(imported.refusals):,}")
    for reason, count in imported.reasons():
        common.say(f"  {count:6,}   {reason}")
