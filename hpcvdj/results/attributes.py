"""The attributes of results and the facts of tables: what both record of their run, declared once.

The writers, the reader, the export and the test of docs/file_format.md read these declarations.  Results have lists and
objects as JSON text, and the facts of a table (OUT.json) as JSON values.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.runs.provenance import LIBRARIES
from hpcvdj.storage.damage import damaged

FORMAT = "hpcvdj-counts"
VERSION = 2

_WORDS: dict[Any, str] = {str: "text", int: "int64", float: "float64", dict: "text, JSON", list: "text, JSON"}

_JSON: dict[Any, str] = {dict: "object", list: "array"}


@dataclass(frozen=True)
class Attribute:
    """An attribute and its type.

    kind     str, int, float, or dict and list, which results have as JSON text
    meaning  text for the documentation
    """

    name: str
    kind: type[Any]
    meaning: str

    @property
    def described(self) -> str:
        """Its row in the documentation."""
        return f"| `{self.name}` | {_WORDS[self.kind]} | {self.meaning} |"

    def fits(self, value: Any) -> bool:
        """Return whether a value is of its kind."""
        if self.kind in (int, float):
            return isinstance(value, int | float | np.number) and not (self.kind is int and isinstance(value, float))
        return isinstance(value, self.kind)


ATTRIBUTES = {attribute.name: attribute for attribute in (
    Attribute("format", str, "`hpcvdj-counts`"),
    Attribute("format_version", int, "2"),
    Attribute("quantity", str, "what the values are: `pathways`, or `pgen` of `hpcvdj pgen`"),
    Attribute(
        "columns", list,
        "of `pgen`: the names of the columns of `/pgen`; in a column `q_excluded`, 1 is out of frame, 2 not "
        "productive, 3 symbols for several amino acids, 4 several V or J genes, 0 none of these",
    ),
    Attribute(
        "model", str,
        "of `pgen`: the name of the recombination model; there is then no `germline_…`, `max_p` or `d_alleles`",
    ),
    Attribute(
        "model_sha256", str,
        "of `pgen`: SHA-256 of the digests of the model's four files, [corrected](pgen.md#corrected-alleles) if "
        "they have to be",
    ),
    Attribute("selection_sha256", str, "of `pgen`, if the model has a selection factor: SHA-256 of it"),
    Attribute(
        "model_corrected", str,
        "of `pgen`, if there are such: the alleles that were corrected, and what was wrong with each",
    ),
    Attribute(
        "fit", dict,
        "of `pgen`: how the model [fits the table](pgen.md#does-the-model-fit): `rows` compared, the share "
        "`impossible`, `genes` and `lengths` that fail, `calls` compared and how many are `contradicted`, another"
        " model that fits `better`",
    ),
    Attribute("ties", str, "of `pgen --ties auto`: V genes that were taken together"),
    Attribute("model_purpose", str, "of `pgen`, if known: what the model is good for"),
    Attribute("model_rows", int, "of `pgen`, if known: from how many rows the model was inferred"),
    Attribute("hpcvdj_version", str, "version of hpcvdj"),
    Attribute("command_line", str, "as started"),
    Attribute("created_utc", str, "when the run ended, ISO 8601"),
    Attribute(
        "config", dict,
        "of `count`: `max_n` (a number), `max_n_asked` (a number or `all`), `d_forms`, `calls` (`ambiguous`, "
        "`unlisted`: `exclude` or `first`); of `pgen`: `names` (the columns), `genes` (`call` or `any`), "
        "`normalize` (`productive` or `none`), `joint`; of both: `method`, `backend` (as asked for), "
        "`threads_per_block`, `strict_binding`, `strict`, `alphabet` (of `junction_aa`: the codons of each symbol"
        " that the standard alphabet does not have; else empty)",
    ),
    Attribute("identity", dict, "what a run must have in common with this one for `--resume` to find it complete"),
    Attribute("sums", list, "sum of each column of the values, as decimal text: sums may exceed 64 bits"),
    Attribute(
        "makers", dict,
        "of `pgen`: [who makes the junctions](pgen.md#who-makes-these-junctions): of `recombinations` productive "
        "junctions with a value, how many `anyone` would make, and how many `hardly_anybody`, by column",
    ),
    Attribute("nonzero", int, "sequences with at least one value other than 0"),
    Attribute("rows_read", int, "data rows of the input"),
    Attribute(
        "excluded_counts", list,
        "list of [kind, details, rows], the most frequent first, at most 10,000; `/excluded` has all rows",
    ),
    Attribute(
        "substituted_calls", list,
        "list of [call in the input, allele used for it, rows], for calls that name anything else than the "
        "segment that was used; of a model, the alleles, for calls with orphons that it lacks",
    ),
    Attribute("max_p", int, "largest number of P-nucleotides at an end"),
    Attribute("d_alleles", str, "`first` or `all`"),
    Attribute("sequence_field", str, "`junction`, `cdr3` or `junction_aa`"),
    Attribute(
        "repertoire_id", str,
        "the table's file name without its suffix; empty for tables counted [together](#together), where each row"
        " has its own",
    ),
    Attribute("junctions_path", str, "absolute path of the table; together: the folder that contains all tables"),
    Attribute(
        "junctions_sha256", str,
        "SHA-256 of the file's bytes; together: of lines `SHA256  NAME`, one for each table in order",
    ),
    Attribute("germline_path", str, "the name or the path, as given; of several tables, with commas between them"),
    Attribute(
        "germline_sha256", str,
        "SHA-256 of what counting depends on (not of the file): locus, type, allele, functionality and sequence "
        "of all rows in order, `max_p` and `d_alleles`",
    ),
    Attribute("checkpoint_seconds", float, "time spent saving checkpoints; not in parts"),
    Attribute("parts", int, "of a result [in parts](#in-parts): the number of part files"),
    Attribute("slice_rows", int, "of a result [in parts](#in-parts): the rows of a slice"),
    Attribute("first_row", int, "of a part file: the number of its first row"),
    Attribute("mpi_library", str, "MPI library, or `none (serial)`"),
    Attribute("mpi_size", int, "number of ranks"),
    Attribute("slurm_job_id", str, "empty outside Slurm"),
    Attribute("python", str, "version of Python"),
    Attribute("platform", str, "operating system"),
    *(Attribute(f"version_{name}", str, f"version of {name}, or `not installed`") for name in LIBRARIES),
)}  # fmt: skip
"""The attributes by name, in the order of the documentation."""


def declared(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a run writes, by name in alphabetical order.

    Raises KeyError for a name that is not declared, and TypeError for a value of another type.
    """
    for name, value in values.items():
        if not ATTRIBUTES[name].fits(value):
            raise TypeError(f"{name} is of type {type(value).__name__}")
    return dict(sorted(values.items()))


def facts_of_result(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a result as facts: the values of JSON texts."""
    return {name: json.loads(value) if _is_json(name) else value for name, value in attributes.items()}


def require_attributes(path: Path, attributes: Mapping[str, Any]) -> None:
    """Raise InputError unless the attributes of a result are of their kinds.  Later versions may have more of them."""
    for name, value in attributes.items():
        attribute = ATTRIBUTES.get(name)
        if attribute is not None and not attribute.fits(json.loads(value) if _is_json(name) else value):
            what = f"a JSON {_JSON[attribute.kind]}" if attribute.kind in _JSON else _WORDS[attribute.kind]
            raise damaged(path, f"its attribute {name} is not {what}")


def _is_json(name: str) -> bool:
    return name in ATTRIBUTES and ATTRIBUTES[name].kind in _JSON
