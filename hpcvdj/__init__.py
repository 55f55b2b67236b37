"""hpcvdj counts, exactly, how many V(D)J recombination pathways produce each observed junction.

From Python, three lines count a table::

    import hpcvdj
    counted = hpcvdj.count(junctions, "inputs/germline/mouse_trb.tsv")   # a pandas or pyarrow table
    counted.sort_values("pathways_total")

From the shell, `hpcvdj --help`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcvdj.airr_export import export
    from hpcvdj.api import count
    from hpcvdj.errors import HpcvdjError, InputError
    from hpcvdj.germline import Germline, read_germline
    from hpcvdj.results import Result

__version__ = "0.1.0"

__all__ = ["Germline", "HpcvdjError", "InputError", "Result", "__version__", "count", "export", "read_germline"]

_HOME = {
    "Germline": "germline",
    "HpcvdjError": "errors",
    "InputError": "errors",
    "Result": "results",
    "count": "api",
    "export": "airr_export",
    "read_germline": "germline",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: numba and pyarrow take a second, and `hpcvdj --help` needs neither.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"hpcvdj.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
