"""hpcvdj counts, exactly, how many V(D)J recombination pathways produce each observed junction.

From Python, three lines count a table::

    import hpcvdj
    counted = hpcvdj.count(junctions, "inputs/germline/mouse_trb.tsv")   # a pandas or pyarrow table
    counted.sort_values("pathways_total")

docs/api.md shows the rest: opening results, choosing sequences, joining tables and cells.

From the shell, `hpcvdj --help`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcvdj.api import count
    from hpcvdj.api import open_result as open
    from hpcvdj.errors import HpcvdjError, InputError
    from hpcvdj.germline_import import import_germline
    from hpcvdj.recombination.germline import Germline, read_germline
    from hpcvdj.results.airr_export import export
    from hpcvdj.results.file import Result
    from hpcvdj.results.joining import annotate_cells
    from hpcvdj.results.selection import Selection

__version__ = "0.1.0"

__all__ = [
    "Germline",
    "HpcvdjError",
    "InputError",
    "Result",
    "Selection",
    "__version__",
    "annotate_cells",
    "count",
    "export",
    "import_germline",
    "open",
    "read_germline",
]

_HOME = {
    "Germline": "recombination.germline.Germline",
    "HpcvdjError": "errors.HpcvdjError",
    "InputError": "errors.InputError",
    "Result": "results.file.Result",
    "Selection": "results.selection.Selection",
    "annotate_cells": "results.joining.annotate_cells",
    "count": "api.count",
    "export": "results.airr_export.export",
    "import_germline": "germline_import.import_germline",
    "open": "api.open_result",
    "read_germline": "recombination.germline.read_germline",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: numba and pyarrow take a second, and `hpcvdj --help` needs neither.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOME[name].rpartition(".")
    return getattr(import_module(f"hpcvdj.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
