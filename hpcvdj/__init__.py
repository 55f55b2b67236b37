"""Compute probabilities, pathways and models of V(D)J recombination, and test repertoires against chance.

From Python, three lines count a table::

    import hpcvdj
    counted = hpcvdj.count(junctions, "mouse_trb")   # a pandas, polars or pyarrow table, or the path of one
    counted.sort_values("weight")

docs/api.md lists the function for each question, and shows results, selections, joins and cells.

From the shell, `hpcvdj --help`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcvdj import motifs
    from hpcvdj.api.analysis import analyze
    from hpcvdj.api.cells import annotate_cells
    from hpcvdj.api.cohorts import associate, contamination, sharing
    from hpcvdj.api.counting import count, explain
    from hpcvdj.api.models import compare_models, infer, infer_selection, model_from_sonia, model_tables, write_model
    from hpcvdj.api.neighbours import enrich
    from hpcvdj.api.probabilities import generate, likely_scenarios, pgen, simulate
    from hpcvdj.api.results import open_result as open
    from hpcvdj.api.results import report
    from hpcvdj.api.specificity import annotate
    from hpcvdj.api.tables import convert, germline, germlines, models, read_table
    from hpcvdj.errors import HpcvdjError, HpcvdjWarning, InputError
    from hpcvdj.germline_import import import_germline
    from hpcvdj.recombination.alphabet import translate
    from hpcvdj.recombination.germline import Germline, read_germline
    from hpcvdj.recombination.igor import load_model
    from hpcvdj.recombination.models import Model
    from hpcvdj.results.export import export
    from hpcvdj.results.reader import Result
    from hpcvdj.results.selection import Selection

__version__ = "1.0.0"

__all__ = [
    "Germline",
    "HpcvdjError",
    "HpcvdjWarning",
    "InputError",
    "Model",
    "Result",
    "Selection",
    "__version__",
    "analyze",
    "annotate",
    "annotate_cells",
    "associate",
    "compare_models",
    "contamination",
    "convert",
    "count",
    "enrich",
    "explain",
    "export",
    "generate",
    "germline",
    "germlines",
    "import_germline",
    "infer",
    "infer_selection",
    "likely_scenarios",
    "load_model",
    "model_from_sonia",
    "model_tables",
    "models",
    "motifs",
    "open",
    "pgen",
    "read_germline",
    "read_table",
    "report",
    "sharing",
    "simulate",
    "translate",
    "write_model",
]

_MODULES = {
    "api.analysis": "analyze",
    "api.cells": "annotate_cells",
    "api.cohorts": "associate contamination sharing",
    "api.counting": "count explain",
    "api.models": "compare_models infer infer_selection model_from_sonia model_tables write_model",
    "api.neighbours": "enrich",
    "api.probabilities": "generate likely_scenarios pgen simulate",
    "api.results": "report",
    "api.specificity": "annotate",
    "api.tables": "convert germline germlines models read_table",
    "errors": "HpcvdjError HpcvdjWarning InputError",
    "germline_import": "import_germline",
    "recombination.alphabet": "translate",
    "recombination.germline": "Germline read_germline",
    "recombination.igor": "load_model",
    "recombination.models": "Model",
    "results.export": "export",
    "results.reader": "Result",
    "results.selection": "Selection",
}
_HOMES = {name: f"{module}:{name}" for module, names in _MODULES.items() for name in names.split()}
_HOMES |= {"motifs": "motifs:", "open": "api.results:open_result"}
"""Where each public name is defined: `module:name`."""


def __getattr__(name: str) -> Any:
    # Import on first use: numba and pyarrow take a second to load, and `hpcvdj --help` needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hpcvdj.public import public

    return public(globals(), name, f"hpcvdj.{_HOMES[name]}")


def __dir__() -> list[str]:
    return sorted(__all__)
