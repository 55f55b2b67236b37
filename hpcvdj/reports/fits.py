"""Whether the models fit the tables: what the commands found when they compared them."""

import json
from collections.abc import Iterator
from typing import Any

from hpcvdj.reports.elements import Section, Statement, Table, Verdict, percent
from hpcvdj.reports.outputs import Outputs

SERIOUS = ("broken", "truncated", "improbable")
"""Findings about genes that make tests wrong."""

MANY_IMPOSSIBLE, MANY_CONTRADICTED = 0.1, 0.02
"""Shares of rows from which on results are to be taken with care."""

MEANINGS = {
    "broken": "most rows are improbable: left out of tests",
    "truncated": "no deletions known: left out of tests",
    "improbable": "many rows are improbable",
    "unmade": "the model never makes it",
    "habit": "called in place of twins",
    "usage": "usage differs",
}


def _fits(outputs: Outputs) -> list[tuple[str, dict[str, Any]]]:
    """What was found, by the file; of equal findings one."""
    own = [(finding.path.name, finding.facts.get("fit")) for finding in outputs.findings]
    own += [(survey.path.name, survey.facts.get("fit")) for survey in outputs.surveys]
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, given in own:
        fit = json.loads(given) if isinstance(given, str) else given
        if isinstance(fit, dict) and fit.get("rows"):
            found.setdefault(json.dumps(fit, sort_keys=True), (name, fit))
    return list(found.values())


def fit_statements(outputs: Outputs) -> Iterator[Statement]:
    """Whether the model fits, in a line for each comparison."""
    for name, fit in _fits(outputs):
        wrong = [own["gene"] for own in fit["genes"] if own["finding"] in SERIOUS]
        doubted, better = fit["miscalled"], fit.get("better")
        parts = [f"{fit['rows']:,} rows of {name} were compared with what the model makes"]
        if better:
            parts.append(f"{better[0]} fits better, by {better[1]:.2g} nats (natural logarithms) per row")
        if fit["impossible"]:
            parts.append(f"{percent(round(fit['impossible'] * fit['rows']), fit['rows'])} are impossible")
        if wrong:
            parts.append(f"genes that the model makes wrongly: {', '.join(wrong[:8])}{', …' * (len(wrong) > 8)}")
        if alleles := [own[0] for own in fit["alleles"]]:
            parts.append(f"alleles that the model hardly ever chooses: {', '.join(alleles)}")
        if doubted:
            parts.append(f"{doubted:,} of {fit['calls']:,} rows have a call that contradicts the bases")
        care = better or wrong or alleles or fit["genes"] or fit["lengths"] or fit["impossible"] >= MANY_IMPOSSIBLE
        care = care or doubted > MANY_CONTRADICTED * max(fit["calls"], 1)
        verdict: Verdict = "no" if fit["impossible"] >= 0.5 else "with care" if care else "yes"
        yield Statement("Does the model fit the table?", verdict, ". ".join(parts) + ".")


def fit_sections(outputs: Outputs) -> list[Section]:
    """The genes and lengths that fail, if there are any."""
    rows = [
        {
            **own, "file": name, "gene": own["gene"], "finding": MEANINGS.get(own["finding"], own["finding"]),
            "reads hardly tell it from": ", ".join(own.get("twins", [])),
        }
        for name, fit in _fits(outputs)
        for own in fit["genes"]
    ]  # fmt: skip
    lengths = [{**own, "file": name} for name, fit in _fits(outputs) for own in fit["lengths"]]
    words = [
        "A probability is right for the model and the rows that it is given. A productive row is improbable if 99 % of "
        "the junctions that the model makes with its gene are more probable: one in a hundred by chance, fewer after "
        "selection. A gene that fails makes its junctions look rarer than they are, and so like discoveries."
    ]
    shares = {"share": "share of rows", "model_share": "share in the model"}
    genes = Table.of(
        "fit_genes", "Genes that fail", ["file", "gene", "finding", "rows", "improbable", "zero", "log10_shift",
        "share", "model_share", "frame", "reads hardly tell it from"], rows, improbable="share improbable",
        zero="share impossible", log10_shift="log10 p, minus that of draws", frame="shares among", **shares,
    )  # fmt: skip
    of_length = Table.of("fit_lengths", "Lengths that fail", "file nucleotides rows share model_share frame", lengths,
                         frame="shares among", **shares)  # fmt: skip
    tables = [table for table in (genes, of_length) if table.rows]
    return [Section("fit", "How the model fits", words, tables=tables)] if tables else []
