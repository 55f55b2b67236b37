"""`hpcvdj models`."""

from typing import Annotated

import typer

from hpcvdj.cli import common
from hpcvdj.cli.common import Command

app = typer.Typer(help="Recombination models: what there is, and what is in one.", no_args_is_help=True)


@app.command("list", cls=Command)
def list_models() -> None:
    """List the models that can be named.

    They are those of an installed olga (pip install 'hpcvdj[models]'). Any folder in IGoR's format can be named, too.
    """
    if not common.begin().is_root:
        return
    from hpcvdj.recombination.igor import OLGA_FOLDERS, olga_folder

    folder = olga_folder()
    if folder is None:
        common.say("no models found: pip install 'hpcvdj[models]', or name a folder in IGoR's format")
        return
    for name, place in OLGA_FOLDERS.items():
        common.say(f"{name:<12} {folder / place}")


@app.command("show", cls=Command)
def show(
    model: Annotated[
        str, typer.Argument(help="Name, or folder in IGoR's format.", metavar="MODEL", show_default=False)
    ],
) -> None:
    """Show what a model has: its genes, how often they are chosen, and the lengths of insertions.

    Example: hpcvdj models show mouse_trb
    """
    if not common.begin().is_root:
        return
    from hpcvdj.recombination.germline import SEGMENT_TYPES
    from hpcvdj.recombination.igor import load_model

    found = load_model(model)
    common.say(f"model      {found.name}, SHA-256 {found.digest}")
    for segment in SEGMENT_TYPES.values():
        templates, usable = found.templates(segment), found.contributing(segment)
        if not templates:
            continue
        chance = found.p_segment(segment)
        common.say(
            f"{segment} alleles  {len(templates):,}, of which {len(usable):,} can make a junction: "
            f"{100 * chance[list(usable)].sum():.2f} % of P({segment})"
        )
        most = sorted(usable, key=lambda place: -chance[place])[:5]
        common.say("           " + ", ".join(f"{templates[k].allele} {100 * chance[k]:.1f} %" for k in most) + " …")
    for name, insertion in zip(("VD", "DJ") if found.has_d else ("VJ",), found.insertions, strict=True):
        lengths = insertion.lengths
        mean = sum(length * chance for length, chance in enumerate(lengths)) / lengths.sum()
        bases = ", ".join(f"{base} {100 * chance:.1f} %" for base, chance in zip("ACGT", insertion.first, strict=True))
        common.say(f"insertion  {name}: mean {mean:.2f} nt, at most {len(lengths) - 1}; first base {bases}")
