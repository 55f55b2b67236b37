"""hpcvdj counts, exactly, how many V(D)J recombination pathways produce each observed junction.

From Python, three lines count a table::

    import hpcvdj
    counted = hpcvdj.count(junctions, "mouse_trb")   # a pandas or pyarrow table
    counted.sort_values("weight")

docs/api.md shows the rest: opening results, choosing sequences, joining tables and cells.

From the shell, `hpcvdj --help`.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcvdj.api import (
        annotate_cells,
        compare_models,
        count,
        explain,
        generate,
        infer,
        likely_scenarios,
        model_tables,
        pgen,
        write_model,
    )
    from hpcvdj.api import open_result as open
    from hpcvdj.errors import HpcvdjError, InputError
    from hpcvdj.germline_import import import_germline
    from hpcvdj.recombination.germline import Germline, read_germline
    from hpcvdj.recombination.igor import load_model
    from hpcvdj.recombination.models import Model
    from hpcvdj.results.export import export
    from hpcvdj.results.reader import Result
    from hpcvdj.results.selection import Selection

__version__ = "0.2.0"

__all__ = [
    "Germline",
    "HpcvdjError",
    "InputError",
    "Model",
    "Result",
    "Selection",
    "__version__",
    "annotate_cells",
    "compare_models",
    "count",
    "explain",
    "export",
    "generate",
    "import_germline",
    "infer",
    "likely_scenarios",
    "load_model",
    "model_tables",
    "open",
    "pgen",
    "read_germline",
    "write_model",
]

_HOMES = {
    "Germline": "recombination.germline.Germline",
    "HpcvdjError": "errors.HpcvdjError",
    "InputError": "errors.InputError",
    "Model": "recombination.models.Model",
    "Result": "results.reader.Result",
    "Selection": "results.selection.Selection",
    "annotate_cells": "api.annotate_cells",
    "compare_models": "api.compare_models",
    "count": "api.count",
    "explain": "api.explain",
    "export": "results.export.export",
    "generate": "api.generate",
    "import_germline": "germline_import.import_germline",
    "infer": "api.infer",
    "likely_scenarios": "api.likely_scenarios",
    "load_model": "recombination.igor.load_model",
    "model_tables": "api.model_tables",
    "open": "api.open_result",
    "pgen": "api.pgen",
    "read_germline": "recombination.germline.read_germline",
    "write_model": "api.write_model",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: numba and pyarrow take a second, and `hpcvdj --help` needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return resolve_name(f"hpcvdj.{_HOMES[name]}")


def __dir__() -> list[str]:
    return sorted(__all__)
