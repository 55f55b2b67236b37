"""Explain how recombination makes the rows of a result."""

import json
from collections.abc import Iterator
from typing import Literal

import numpy as np

from hpcvdj.api.counting import explain
from hpcvdj.api.probabilities import likely_scenarios
from hpcvdj.errors import InputError
from hpcvdj.recombination.explanation import Explanation
from hpcvdj.recombination.germline import MAX_P, Germline, Tables, read_germline
from hpcvdj.recombination.igor import PUBLISHED, load_model
from hpcvdj.recombination.likely import LikelyScenarios
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.results.reader import Result


def explained_rows(
    result: Result, sequence_id: str, germline: Tables | None, model: str | None, max_n: int | Literal["all"] | None,
    number: int,
) -> Iterator[tuple[str, Explanation | LikelyScenarios]]:  # fmt: skip
    """Yield the repertoire_id, and the pathways or scenarios, of the rows of a result with this id.

    Several repertoires may share an id; their rows follow in the order of the input.

    germline, model, max_n  replace what the result records
    number                  number of scenarios

    Raises InputError if the result lacks what scenarios need, or if the germline table or model that it records is
    missing.
    """
    config = json.loads(result.provenance.get("config", "{}"))
    rows = result.select(sequence_id=sequence_id)
    names = rows.texts(REPERTOIRE) if result.together else [*result.repertoires]
    in_order = np.argsort(rows.row).tolist()
    calls = [*zip(names, *map(rows.texts, ("v_call", "j_call", "cdr3")), strict=True)]
    if model is None and "germline_path" in result.provenance:
        table = _recorded_germline(result, germline)
        largest = result.max_n if max_n is None else max_n
        for name, v, j, cdr3 in map(calls.__getitem__, in_order):
            yield name, explain(cdr3, v, j, table, max_n=largest, d_forms=config["d_forms"], sequence_field="cdr3")
        return
    _require_junctions(result)
    if germline is not None:
        raise InputError(f"{result.path}: has probabilities of the model {_recorded(result)}; give -m, or nothing")
    loaded = load_model(model) if model is not None else _recorded_model(result)
    all_anchors = rows.texts("anchors")
    for k in in_order:
        (name, v, j, cdr3), anchors = calls[k], all_anchors[k]
        junction = anchors[:3] + cdr3 + anchors[3:]
        named = {} if config.get("genes") == "any" else {"v_call": v, "j_call": j}
        yield name, likely_scenarios(junction, loaded, **named, number=number, joint=bool(config.get("joint")))


def _recorded(result: Result) -> str:
    """Return the germline table or the model that a result names."""
    return str(result.provenance.get("germline_path", result.provenance.get("model", "")))


def _recorded_germline(result: Result, germline: Tables | None) -> Germline:
    """Return the germline table that a result was counted with; `germline` says where it is now."""
    facts, name = result.provenance, _recorded(result)
    max_p, d_alleles = int(facts.get("max_p", MAX_P)), facts.get("d_alleles", "first")
    try:
        table = read_germline(germline or name.split(", "), max_p=max_p, d_alleles=d_alleles)
    except InputError:
        if germline is not None:
            raise
        raise InputError(
            f"{result.path}: was counted with {name}, which is not there; say where it is with -g"
        ) from None
    if table.digest() != facts.get("germline_sha256"):
        raise InputError(
            f"{table.name}: is not the germline table that {result.path} was counted with; name that with -g"
        )
    return table


def _recorded_model(result: Result) -> Model:
    name = _recorded(result)
    model = load_model(name)
    if model.digest != result.provenance.get("model_sha256"):
        kept = f", such as {name}{PUBLISHED}" if model.corrected else ""
        raise InputError(f"{result.path}: the model {name} has changed since; name one with -m{kept}")
    return model


def _require_junctions(result: Result) -> None:
    """Raise InputError unless a result has nucleotide junctions with anchors, as scenarios make them."""
    if str(result.provenance.get("sequence_field")).endswith("_aa"):
        raise InputError(
            f"{result.path}: has amino acids, and scenarios make nucleotides; give JUNCTION and -m instead"
        )
    if "anchors" not in result.columns:
        raise InputError(
            f"{result.path}: has CDR3s without anchors, and scenarios make junctions; give a result of `hpcvdj pgen` "
            "by this version, or JUNCTION and -m instead"
        )
