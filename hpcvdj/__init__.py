"""hpcvdj counts, exactly, how many V(D)J recombination pathways produce each observed junction.

From Python, three lines count a table::

    import hpcvdj
    counted = hpcvdj.count(junctions, "inputs/germline/mouse_trb.tsv")   # a pandas or pyarrow table
    counted.sort_values("pathways_total")

docs/api.md shows the rest: opening results, choosing sequences, joining tables and cells.

From the shell, `hpcvdj --help`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcvdj.api import annotate_cells, count, explain
    from hpcvdj.api import open_result as open
    from hpcvdj.errors import HpcvdjError, InputError
    from hpcvdj.germline_import import import_germline
    from hpcvdj.recombination.germline import Germline, read_germline
    from hpcvdj.results.export import export
    from hpcvdj.results.reader import Result
    from hpcvdj.results.selection import Selection

__version__ = "0.2.0"

__all__ = [
    "Germline",
    "HpcvdjError",
    "InputError",
    "Result",
    "Selection",
    "__version__",
    "annotate_cells",
    "count",
    "explain",
    "export",
    "import_germline",
    "open",
    "read_germline",
]

_MODULES = {
    "Germline": "recombination.germline",
    "HpcvdjError": "errors",
    "InputError": "errors",
    "Result": "results.reader",
    "Selection": "results.selection",
    "annotate_cells": "api",
    "count": "api",
    "explain": "api",
    "export": "results.export",
    "import_germline": "germline_import",
    "open": "api",
    "read_germline": "recombination.germline",
}
_OTHER_NAMES = {"open": "open_result"}


def __getattr__(name: str) -> Any:
    # Imported when first used: numba and pyarrow take a second, and `hpcvdj --help` needs neither.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"hpcvdj.{_MODULES[name]}"), _OTHER_NAMES.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)
