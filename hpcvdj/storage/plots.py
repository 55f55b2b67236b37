"""What the plots of all commands share: matplotlib and networkx, if installed, colours, and atomic figure files."""

from importlib import import_module
from pathlib import Path
from typing import Any

from hpcvdj.errors import InputError, installing
from hpcvdj.storage.files import atomic_path, require_writable

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Okabe and Ito's palette.  Colour-blind readers can distinguish its colours."""


def optional(library: str, need: str, extra: str) -> Any:
    """Return an optional library.  Raise InputError, which begins with `need`, if it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        raise InputError(f"{need} {library}: {installing(extra)}") from None


def pyplot() -> Any:
    """Return matplotlib's pyplot, which draws to files.  Raise InputError without matplotlib."""
    optional("matplotlib", "the plot needs", "plots").use("Agg")
    return import_module("matplotlib.pyplot")


def require_networkx() -> Any:
    """Return the module networkx.  Raise InputError if it is not installed."""
    return optional("networkx", "graphs need", "graphs")


def require_plottable(target: Path, *, overwrite: bool) -> None:
    """Raise InputError unless matplotlib can draw to `target`, a new .png or .svg.  Call it before the work begins."""
    require_picture(target, overwrite=overwrite)
    pyplot()


def require_picture(target: Path, *, overwrite: bool) -> None:
    """Raise InputError unless `target` is the name of a new .png or .svg that can be written."""
    if target.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"{target}: the name must end in .png or .svg")
    require_writable(target, overwrite=overwrite)


def save(figure: Any, target: Path, *, overwrite: bool, dpi: int = 150) -> None:
    """Write a figure of `pyplot` to `target`, in the format of its suffix, and close the figure."""
    with atomic_path(target, overwrite=overwrite) as temporary:
        figure.savefig(temporary, dpi=dpi, format=target.suffix[1:].lower())
    pyplot().close(figure)
