"""Whether the models fit the tables, as the commands found when they compared them."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from hpcvdj.errors import few
from hpcvdj.reports.elements import PageTable, Section, Statement, Verdict, percent
from hpcvdj.reports.outputs import Outputs

SERIOUS = ("broken", "truncated", "improbable")
"""Findings about genes that make tests wrong."""

MANY_IMPOSSIBLE, MANY_CONTRADICTED = 0.1, 0.02
"""From these shares of rows on, results need care."""

MOST_LISTED = 3
"""At most this many comparisons are listed with their rows."""

MEANINGS = {
    "broken": "most rows are improbable: left out of tests",
    "truncated": "no deletions known: left out of tests",
    "improbable": "many rows are improbable",
    "unmade": "the model never makes it",
    "habit": "called in place of twins",
    "usage": "usage differs",
}


def _fits(outputs: Outputs) -> list[tuple[str, dict[str, Any]]]:
    """The comparisons of models and tables, each once, with the name of its file, or of one of its files.

    All files of one run have the same comparison.
    """
    fits: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for path, _, facts in outputs.files:
        fit = facts.get("fit")
        if isinstance(fit, dict) and fit.get("rows"):
            fits.setdefault(json.dumps(fit, sort_keys=True), ([], fit))[0].append(outputs.label(path))
    return [
        (f"{len(names):,} files such as {names[0]}" if names[1:] else names[0], fit) for names, fit in fits.values()
    ]


def fit_statements(outputs: Outputs) -> Iterator[Statement]:
    """Whether the model fits: a statement for each verdict, which names each cause once."""
    by_verdict = defaultdict[Verdict, list[tuple[str, dict[str, Any]]]](list)
    for name, fit in _fits(outputs):
        by_verdict[_verdict(fit)].append((name, fit))
    for verdict, fits in by_verdict.items():
        files = defaultdict[str, list[str]](list)
        for name, fit in fits:
            for cause in _causes(fit):
                files[cause].append(name)
        # Many tables that were compared one by one are not listed.
        largest = max(fit["rows"] for _, fit in fits)
        compared = (
            " and ".join(f"{fit['rows']:,} rows of {name}" for name, fit in fits)
            if len(fits) <= MOST_LISTED
            else f"Up to {largest:,} rows at a time, of {few([name for name, _ in fits])},"
        )
        causes = [cause if len(names) == len(fits) else f"{few(names)}: {cause}" for cause, names in files.items()]
        answer = ". ".join([f"{compared} were compared with what the model makes", *causes])
        yield Statement("Does the model fit the table?", verdict, f"{answer}.")


def _verdict(fit: dict[str, Any]) -> Verdict:
    if fit["impossible"] >= 0.5:
        return "no"
    care = fit.get("better") or fit["alleles"] or fit["genes"] or fit["lengths"]
    care = care or fit["impossible"] >= MANY_IMPOSSIBLE
    return "with care" if care or fit["miscalled"] > MANY_CONTRADICTED * max(fit["calls"], 1) else "yes"


def _causes(fit: dict[str, Any]) -> Iterator[str]:
    """Say what speaks against the model, or against the table."""
    if better := fit.get("better"):
        yield f"{better[0]} fits better, by {better[1]:.2g} nats (natural logarithms) per row"
    if fit["impossible"]:
        yield f"{percent(round(fit['impossible'] * fit['rows']), fit['rows'])} are impossible"
    if wrong := [gene["gene"] for gene in fit["genes"] if gene["finding"] in SERIOUS]:
        yield f"genes that the model makes wrongly: {', '.join(wrong[:8])}{', …' * (len(wrong) > 8)}"
    if alleles := [allele[0] for allele in fit["alleles"]]:
        yield f"alleles that the model hardly ever chooses: {', '.join(alleles)}"
    if fit["miscalled"]:
        yield f"at least {fit['miscalled']:,} of {fit['calls']:,} rows have a call that contradicts the bases"


def fit_sections(outputs: Outputs) -> list[Section]:
    """The section about the genes and lengths that fail, if there are any."""
    fits = _fits(outputs)
    rows = [
        {**gene, "file": name, "finding": MEANINGS.get(gene["finding"], gene["finding"]),
         "reads hardly tell it from": ", ".join(gene.get("twins", []))}
        for name, fit in fits for gene in fit["genes"]
    ]  # fmt: skip
    lengths = [{**length, "file": name} for name, fit in fits for length in fit["lengths"]]
    words = [
        "A probability is right for the model and the rows that it is given. A productive row is improbable if 99 % of "
        "the junctions that the model makes with its gene are more probable: one in a hundred by chance, fewer after "
        "selection. A gene that fails makes its junctions look rarer than they are, and so like discoveries."
    ]
    shares = {"share": "share of rows", "model_share": "share in the model"}
    genes = PageTable.of(
        "fit_genes", "Genes that fail", ["file", "gene", "finding", "rows", "improbable", "zero", "log10_shift",
        "share", "model_share", "frame", "reads hardly tell it from"], rows, improbable="share improbable",
        zero="share impossible", log10_shift="log10 p, minus that of draws", frame="shares among", **shares,
    )  # fmt: skip
    of_length = PageTable.of("fit_lengths", "Lengths that fail", "file nucleotides rows share model_share frame",
                             lengths, frame="shares among", **shares)  # fmt: skip
    tables = [table for table in (genes, of_length) if table.rows]
    return [Section("fit", "How the model fits", words, tables=tables)] if tables else []
