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
    # Names that are imported as themselves are public for type checkers.
    from hpcvdj import motifs as motifs
    from hpcvdj.api.analysis import analyze as analyze
    from hpcvdj.api.cells import annotate_cells as annotate_cells
    from hpcvdj.api.cohorts import associate as associate
    from hpcvdj.api.cohorts import contamination as contamination
    from hpcvdj.api.cohorts import sharing as sharing
    from hpcvdj.api.counting import count as count
    from hpcvdj.api.counting import explain as explain
    from hpcvdj.api.models import compare_models as compare_models
    from hpcvdj.api.models import infer as infer
    from hpcvdj.api.models import infer_selection as infer_selection
    from hpcvdj.api.models import model_from_sonia as model_from_sonia
    from hpcvdj.api.models import model_tables as model_tables
    from hpcvdj.api.models import write_model as write_model
    from hpcvdj.api.neighbours import enrich as enrich
    from hpcvdj.api.probabilities import generate as generate
    from hpcvdj.api.probabilities import likely_scenarios as likely_scenarios
    from hpcvdj.api.probabilities import pgen as pgen
    from hpcvdj.api.probabilities import simulate as simulate
    from hpcvdj.api.results import open as open
    from hpcvdj.api.results import report as report
    from hpcvdj.api.specificity import annotate as annotate
    from hpcvdj.api.tables import convert as convert
    from hpcvdj.api.tables import germline as germline
    from hpcvdj.api.tables import germlines as germlines
    from hpcvdj.api.tables import models as models
    from hpcvdj.api.tables import read_table as read_table
    from hpcvdj.errors import HpcvdjError as HpcvdjError
    from hpcvdj.errors import HpcvdjWarning as HpcvdjWarning
    from hpcvdj.errors import InputError as InputError
    from hpcvdj.germline_import import import_germline as import_germline
    from hpcvdj.recombination.alphabet import translate as translate
    from hpcvdj.recombination.germline import Germline as Germline
    from hpcvdj.recombination.germline import read_germline as read_germline
    from hpcvdj.recombination.igor import load_model as load_model
    from hpcvdj.recombination.models import Model as Model
    from hpcvdj.results.export import export as export
    from hpcvdj.results.reader import Result as Result
    from hpcvdj.results.selection import Selection as Selection

__version__ = "1.0.0"

_MODULES = {
    "api.analysis": "analyze",
    "api.cells": "annotate_cells",
    "api.cohorts": "associate contamination sharing",
    "api.counting": "count explain",
    "api.models": "compare_models infer infer_selection model_from_sonia model_tables write_model",
    "api.neighbours": "enrich",
    "api.probabilities": "generate likely_scenarios pgen simulate",
    "api.results": "open report",
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
_HOMES |= {"motifs": "motifs:"}
"""Where each public name is defined: `module:name`."""

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    # Import on first use: numba and pyarrow take a second to load, and `hpcvdj --help` needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hpcvdj.public import public

    return public(globals(), name, f"hpcvdj.{_HOMES[name]}")


def __dir__() -> list[str]:
    return __all__
