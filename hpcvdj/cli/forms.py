"""`hpcvdj forms`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common

if TYPE_CHECKING:
    from hpcvdj.studies.memory import FormsTable

NAME = "forms"


def command(
    germline: Annotated[Path, typer.Argument(help="Germline table.", metavar="GERMLINE", show_default=False)],
    in_vivo: Annotated[
        int | None, typer.Option("--in-vivo", min=0, help="Also the bytes of this many in vivo sequences.")
    ] = None,
    d_forms: common.DFormsOption = common.DForms.paper,
    d_alleles: common.DAllelesOption = common.DAlleles.first,
    max_p: common.MaxP = common.MAX_P_DEFAULT,
) -> None:
    """Count the forms of each segment type and their bytes: the paper's Table III.

    Baseline is one byte a base, bit-wise two bits a base with every form padded to whole bytes. Every V and J allele
    of the table is counted; of the D alleles, those that take part in recombination.
    """
    from hpcvdj.studies.memory import forms_tables

    common.begin()
    table = common.load_germline(germline, max_p, d_alleles)
    for part in forms_tables(table, d_forms.value):
        _report(part)
    if in_vivo is not None:
        _report_in_vivo(in_vivo)


def _report(table: FormsTable) -> None:
    common.say(f"{table.locus}")
    common.say("  type  segments    forms  baseline (bytes)  bit-wise (bytes)  reduction")
    for row in table.rows:
        common.say(
            f"  {row.segment_type:4} {row.segments:9,} {row.forms:8,} {row.baseline_bytes:17,} {row.bitwise_bytes:17,}"
            f" {row.reduction:9.2f} %"
        )
    common.say(f"  in silico sequences per n-nucleotide string (V x J x D forms): {table.in_silico_per_string:,}")
    common.say(f"  threads of the V-J alternative (V x J forms): {table.v_j_threads:,}")
    if table.is_paper_set():
        _report_misprint(table)


def _report_misprint(table: FormsTable) -> None:
    from hpcvdj.studies.memory import PAPER_TABLE_3

    d = next(row for row in table.rows if row.segment_type == "D")
    left = PAPER_TABLE_3["V"]
    common.say(
        "  The paper's Table III prints these V bytes in its row J and these J bytes in its row D: its rows stand one\n"
        f"  line off. The figures that remain, {left[0]:,} and {left[1]:,} in its row V, must be D's; the D forms\n"
        f"  counted here have {d.baseline_bytes:,} and {d.bitwise_bytes:,}, and no convention tried gives the paper's."
    )


def _report_in_vivo(count: int) -> None:
    from hpcvdj.studies.memory import IN_VIVO_BYTES, IN_VIVO_PACKED_BYTES

    wide, packed = count * IN_VIVO_BYTES, count * IN_VIVO_PACKED_BYTES
    common.say(
        f"in vivo, {count:,} sequences: {wide:,} bytes at {IN_VIVO_BYTES} each, {packed:,} at {IN_VIVO_PACKED_BYTES}"
    )
