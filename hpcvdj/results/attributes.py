"""The attributes of results and the facts of tables: what both record of their run.

The writers, the reader, the export and the test of docs/file_format.md, which says what they mean, read these
declarations.  Results have lists and objects as JSON text, and the facts of a table (OUT.json) as JSON values.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.runs.provenance import LIBRARIES
from hpcvdj.storage.damage import damaged

FORMAT = "hpcvdj-counts"
VERSION = 2

_NAMES: dict[type[Any], str] = {
    str: (
        "format quantity model model_sha256 selection_sha256 model_corrected ties missing_alleles model_purpose "
        "hpcvdj_version command_line created_utc d_alleles sequence_field repertoire_id junctions_path "
        "junctions_sha256 germline_path germline_sha256 mpi_library slurm_job_id python platform"
    ),
    int: "format_version model_rows nonzero rows_read max_p parts slice_rows first_row mpi_size",
    float: "checkpoint_seconds",
    dict: "fit config identity makers",
    list: "columns sums excluded_counts substituted_calls",
}

ATTRIBUTES: dict[str, type[Any]] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""The type of each attribute: str, int, float, or dict and list, which results have as JSON text."""

ATTRIBUTES |= {f"version_{name}": str for name in LIBRARIES}

TYPES: dict[Any, str] = {str: "text", int: "int64", float: "float64", dict: "a JSON object", list: "a JSON array"}
"""The types in words."""


def fits(name: str, value: Any) -> bool:
    """Return whether a value is of the type of an attribute."""
    kind = ATTRIBUTES[name]
    if kind in (int, float):
        return isinstance(value, int | float | np.number) and not (kind is int and isinstance(value, float))
    return isinstance(value, kind)


def declared(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a run writes, by name in alphabetical order.

    Raises KeyError for a name that is not declared, and TypeError for a value of another type.
    """
    for name, value in values.items():
        if not fits(name, value):
            raise TypeError(f"{name} is of type {type(value).__name__}")
    return dict(sorted(values.items()))


def facts_of_result(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a result as facts: the values of JSON texts."""
    return {name: _fact(name, value) for name, value in attributes.items()}


def require_attributes(path: Path, attributes: Mapping[str, Any]) -> None:
    """Raise InputError unless the attributes of a result are of their types.  Later versions may have more of them."""
    for name, value in attributes.items():
        if name in ATTRIBUTES and not fits(name, _fact(name, value)):
            raise damaged(path, f"its attribute {name} is not {TYPES[ATTRIBUTES[name]]}")


def _fact(name: str, value: Any) -> Any:
    return json.loads(value) if ATTRIBUTES.get(name) in (dict, list) else value
