"""`hpcvdj germline`."""

from collections import Counter
from pathlib import Path
from typing import Annotated

from hpcvdj.cli import common, options
from hpcvdj.cli.declared import App
from hpcvdj.errors import choices
from hpcvdj.germline_import import AUTO, Imported, Source, import_germline, summaries
from hpcvdj.germline_import.table import require_writable_germline
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite

app = App(help="Germline tables: which ones have a name, and how to make one from what a database publishes.")


@app.command("list", of_root=True)
def list_tables() -> None:
    """List the germline tables that can be named, with their numbers of V, D and J alleles.

    They come with hpcvdj. The name of a species, such as human, means the tables of all its loci. Any file with such a
    table can be given, too.

    Example: hpcvdj count repertoire.tsv -g human_trb -o counts.tsv
    """
    from hpcvdj.recombination.germline import SEGMENT_TYPES, read_germline
    from hpcvdj.recombination.packaged import germline_names

    rows, species = [], []
    for name, tables in germline_names().items():
        if tables != (name,):
            species.append(f"{name}: {', '.join(tables)}")
            continue
        table = read_germline(name)
        numbers = [f"{len(table.of(segment_type)):,}" for segment_type in SEGMENT_TYPES]
        rows.append([name, ", ".join(table.loci), *numbers])
    common.print_table(common.console(), ["table", "locus", *SEGMENT_TYPES], rows, left=2)
    for line in species:
        common.answer(line)


@app.command("import", of_root=True)
def import_(
    sources: Annotated[list[Path], options.argument("SOURCE...", f"Files or folders. {summaries()}.")],
    output: Annotated[
        Path,
        options.output("GERMLINE.tsv", "Table to write: .tsv or .tsv.gz. Refused alleles go to GERMLINE.refused.tsv "
                       "beside it."),
    ],
    locus: tuple[str, ...] = setting(
        "keep only this locus, such as TRB; may be given several times. Also the locus of alleles whose names do not "
        "tell theirs", (), unset="all", several=True),
    species: str | None = setting("keep only this species, as the source names it: 'Homo sapiens'", None, unset="all"),
    anchors: Path | None = setting(
        "anchors that are missing or wrong in the source: allele,anchor_index (base of codon 104 or 118, from 0), and "
        "optionally function, strand, reads, note, refuse", None, metavar="CSV", unset="none"),
    source_format: str = setting("kind of the sources; auto detects it from their content", AUTO,
                                 choices=lambda: (AUTO, *choices(Source))),
    source_note: str | None = setting("text for the column source", None, unset="the source's own name"),
    species_note: str | None = setting("text to add to the column source, such as the species", None, unset="none"),
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Make a germline table: the parts of V, D and J genes that are in the CDR3.

    A V gene is cut after Cys 104, which is found by IMGT's numbering of gapped sequences, by coordinates or by the
    model's anchors; a J gene before Phe/Trp 118, which is found by the motif F/W-G-X-G, by coordinates or by the
    model's anchors. hpcvdj refuses alleles that it cannot cut with certainty, and lists them with the reason.

    Example: hpcvdj germline import TRBV.fasta TRBD.fasta TRBJ.fasta --species 'Homo sapiens' -o human_trb.tsv
    """
    require_writable_germline(output, overwrite=overwrite)
    imported = import_germline(
        sources,
        source_format=source_format,
        loci=locus,
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
    counts: Counter[tuple[str, str, str]] = Counter(
        (row.locus, row.segment_type, row.functional) for row in imported.rows
    )
    for locus in dict.fromkeys(row.locus for row in imported.rows):
        cells = []
        for segment_type in "VDJ":
            numbers = [counts[locus, segment_type, status] for status in ("F", "ORF", "P")]
            cells.append(f"{segment_type} {' / '.join(f'{number:,}' for number in numbers)}")
        common.say(f"{locus:10} {', '.join(cells)}  (F / ORF / P)")
    common.say(f"refused    {len(imported.refusals):,}")
    for reason, count in imported.reasons():
        common.say(f"  {count:6,}   {reason}")
