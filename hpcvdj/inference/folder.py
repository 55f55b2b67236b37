"""The folder of an inferred model: IGoR's four files, and files that say where the model comes from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.errors import InputError
from hpcvdj.inference.infer import Fit
from hpcvdj.inference.search import Evaluated
from hpcvdj.recombination.corrections import checked
from hpcvdj.recombination.events import events
from hpcvdj.recombination.igor import FILES, folder_texts, model_digest
from hpcvdj.recombination.igor_writer import model_texts
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.origin import (
    FACTS,
    FORMAT,
    ORIGIN,
    ORIGIN_FORMAT,
    SELECTION_FACTS,
    SELECTION_FORMAT,
    read_facts,
)
from hpcvdj.recombination.selection import FILE as SELECTION
from hpcvdj.runs.folder import Identity, complete, is_of_another_run
from hpcvdj.storage.folders import atomic_folder, require_unchanged_folder
from hpcvdj.storage.json_text import json_text

ITERATIONS, ERRORS, UNEXPLAINED = "iterations.tsv", "standard_errors.tsv", "unexplained.tsv"
"""The evaluations; the standard error of each probability; the rows that the model cannot make."""

_RECORDS = (FACTS, ORIGIN, ITERATIONS, ERRORS, UNEXPLAINED, SELECTION_FACTS)
MODEL_FILES = (*FILES, SELECTION, *_RECORDS)
"""All files that hpcvdj reads from, or writes to, the folder of a model."""


def named(model: Model, name: str) -> Model:
    """Give a model a name, and the digest of the files that will be written, which need no corrections."""
    texts = model_texts(model)
    return replace(model, name=name, digest=model_digest(texts[file] for file in FILES), corrected={})


def write_folder(
    target: Path, fit: Fit, facts: Mapping[str, Any], unexplained: Sequence[Mapping[str, Any]], *, overwrite: bool
) -> None:
    """Write the folder of an inferred model; all files appear together.

    facts        for inference.json
    unexplained  the rows with probability 0, all with the same keys
    """
    texts = model_texts(fit.model)
    columns = [column.name for column in fields(Evaluated) if column.name != "error_rate" or _with_errors(fit)]
    texts[ITERATIONS] = _tsv(columns, ([getattr(evaluation, name) for name in columns] for evaluation in fit.trace))
    if fit.errors is not None:
        texts[ERRORS] = _errors(fit.model, fit.errors)
    if unexplained:
        texts[UNEXPLAINED] = _tsv(list(unexplained[0]), (row.values() for row in unexplained))
    texts[FACTS] = json_text({"format": FORMAT, **facts})
    write_files(target, texts, overwrite=overwrite)


def texts_of(model: Model) -> dict[str, str]:
    """Return the files of a model in memory: IGoR's, the selection factor, and the origin, so that cautions stay."""
    texts = model_texts(model)
    if model.selection is not None:
        texts[SELECTION] = model.selection.text(named(model, model.name).digest)
    known = {"purpose": model.origin.purpose, "rows_counted": model.origin.rows, "species": model.species}
    if facts := {name: value for name, value in known.items() if value not in ("", None)}:
        texts[ORIGIN] = json_text({"format": ORIGIN_FORMAT, **facts})
    return texts


def _with_errors(fit: Fit) -> bool:
    """Return whether sequencing errors were taken into account."""
    return any(evaluation.error_rate for evaluation in fit.trace)


def write_with_selection(
    source: Path, target: Path, model: Model, facts: Mapping[str, Any], *, overwrite: bool
) -> None:
    """Write a copy of a model's folder, with corrected files and the selection factor of `model`.

    facts  for selection.json
    """
    assert model.selection is not None
    texts = checked(folder_texts(source), published=not model.corrected).texts
    digest = model_digest(texts[name] for name in FILES)
    if digest != model.digest:
        raise InputError(f"{source}: changed while it was read; start again when it is complete")
    texts |= {name: (source / name).read_text() for name in _RECORDS if (source / name).is_file()}
    species = {"species": model.species} if model.species else {}
    texts[SELECTION] = model.selection.text(digest)
    texts[SELECTION_FACTS] = json_text({"format": SELECTION_FORMAT, **species, **facts})
    write_files(target, texts, overwrite=overwrite)


def write_files(target: Path, texts: Mapping[str, str], *, overwrite: bool) -> None:
    """Write the files of a model's folder, within `exclusive_folder`."""
    with atomic_folder(target, overwrite=overwrite) as folder:
        for name, text in texts.items():
            (folder / name).write_text(text)


def _tsv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = ["\t".join(columns), *("\t".join(map(_text, row)) for row in rows)]
    return "\n".join([*lines, ""])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else repr(value)
    return str(value)


def _errors(model: Model, errors: Model) -> str:
    """Return a row for each probability: event, condition, outcome, probability, standard error."""
    rows: list[list[Any]] = []
    of_errors = events(errors)
    for name, event in events(model).items():
        if event.derived or name.endswith("_first"):
            continue
        keys = list(zip(*event.columns.values(), strict=True))
        for key, chance, error in zip(keys, event.probability, of_errors[name].probability, strict=True):
            if chance or error:
                split = 1 if event.weights else 0
                rows.append([name, ",".join(map(str, key[:split])), ",".join(map(str, key[split:])), chance, error])
    if model.error_rate:
        rows.append(["error_rate", "", "", model.error_rate, errors.error_rate])
    return _tsv(["event", "condition", "outcome", "probability", "standard_error"], rows)


def read_trace(folder: Path) -> list[Evaluated]:
    """Read the evaluations of an inferred model; return an empty list if the folder has none."""
    try:
        head, *lines = (folder / ITERATIONS).read_text().splitlines()
        rows = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
        return [
            Evaluated(
                int(row["iteration"]), row["kind"], row["accepted"] == "True", float(row["log_likelihood"]),
                float(row["held_out"] or "nan"), int(row["lost"]), float(row["seconds"]),
                float(row.get("error_rate", 0)),
            )
            for row in rows
        ]  # fmt: skip
    except (OSError, ValueError, KeyError):
        return []


def read_errors(folder: Path) -> dict[tuple[str, str, str], float]:
    """Read the standard errors of an inferred model by (event, condition, outcome); empty if there are none."""
    try:
        _, *lines = (folder / ERRORS).read_text().splitlines()
        rows = [line.split("\t") for line in lines]
        return {(event, condition, outcome): float(error) for event, condition, outcome, _, error in rows}
    except (OSError, ValueError):
        return {}


def raise_if_inferred(target: Path, identity: Identity) -> None:
    """Raise CompleteError if the target is the model of a run with this identity, InputError if it is anything else."""
    if not (target.exists() or target.is_symlink()):
        return
    facts = read_facts(target)
    if facts is None:
        raise InputError(f"{target}: exists, and is not the folder of an inferred model; give another name")
    is_of_another_run(target, dict(facts.get("identity", {})), identity)
    require_unchanged_folder(target)
    raise complete(target)


def fit_facts(fit: Fit) -> dict[str, Any]:
    return {
        "rows_counted": fit.counted[0],
        "rows_held_out": fit.counted[1],
        "iterations": len(fit.trace),
        "result_of_iteration": fit.best.iteration,
        "log_likelihood_per_row": fit.best.log_likelihood,
        "held_out_log_likelihood_per_row": fit.best.held_out,
        "gain_over_start": asdict(fit.gain) if fit.gain is not None else None,
        "rows_with_probability_0": fit.best.lost,
        "error_rate": fit.model.error_rate if _with_errors(fit) else None,
        "first_and_last_evaluation": [asdict(fit.trace[0]), asdict(fit.trace[-1])],
        "warnings": list(fit.warnings),
    }
