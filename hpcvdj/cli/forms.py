"""`hpcvdj forms`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.cli import common, options
from hpcvdj.options import Option
from hpcvdj.recombination.germline import PaperDForms
from hpcvdj.repertoires.reference_settings import DForms, GermlineSettings

if TYPE_CHECKING:
    from hpcvdj.studies.memory import FormsRow


def command(
    germline: Annotated[Path, options.argument("GERMLINE", "Germline table, name or file.")],
    alleles: GermlineSettings,
    in_vivo: Annotated[int | None, Option("also the bytes of this many in vivo sequences", least=0)] = None,
    d_forms: DForms = PaperDForms.name,
) -> None:
    """Count the forms of each segment type and their bytes: the paper's Table III.

    Baseline is one byte a base, bit-wise two bits a base with every form padded to whole bytes. Every V and J allele
    of the table is counted; of the D alleles, those that take part in recombination.
    """
    from hpcvdj.studies.memory import IN_VIVO_BYTES, IN_VIVO_PACKED_BYTES, forms_tables

    common.begin()
    table = alleles.read(germline)
    for locus, rows in forms_tables(table, d_forms).items():
        _report(locus, rows)
    if in_vivo is not None:
        wide, packed = in_vivo * IN_VIVO_BYTES, in_vivo * IN_VIVO_PACKED_BYTES
        common.answer(
            f"in vivo, {in_vivo:,} sequences: {wide:,} bytes at {IN_VIVO_BYTES} each, {packed:,} at "
            f"{IN_VIVO_PACKED_BYTES}"
        )


def _report(locus: str, rows: "list[FormsRow]") -> None:
    from hpcvdj.studies.memory import PAPER_TABLE_3

    common.answer(locus)
    common.answer("  type  segments    forms  baseline (bytes)  bit-wise (bytes)  reduction")
    for row in rows:
        common.answer(
            f"  {row.segment_type:4} {row.segments:9,} {row.forms:8,} {row.baseline_bytes:17,} {row.bitwise_bytes:17,}"
            f" {row.reduction:9.2f} %"
        )
    v, d, j = rows
    common.answer(
        f"  in silico sequences per n-nucleotide string (V x J x D forms): {v.forms * j.forms * max(1, d.forms):,}"
    )
    common.answer(f"  threads of the V-J alternative (V x J forms): {v.forms * j.forms:,}")
    if (v.bytes, j.bytes) == (PAPER_TABLE_3["J"], PAPER_TABLE_3["D"]):
        left, counted = (" and ".join(f"{size:,}" for size in sizes) for sizes in (PAPER_TABLE_3["V"], d.bytes))
        common.answer(
            "  The paper's Table III prints these V bytes in its row J and these J bytes in its row D: its rows are "
            "one\n"
            f"  line off. The figures that remain, {left} in its row V, must be D's; the D forms counted here have\n"
            f"  {counted}, and no convention tried gives the paper's."
        )
