"""Whether the models fit the tables, as the commands found when they compared them."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcvdj.chance.fit import is_told
from hpcvdj.errors import few
from hpcvdj.reports.elements import PageTable, Section, Statement, Verdict, percent
from hpcvdj.reports.outputs import Outputs, tables_read

VERDICTS: tuple[Verdict, ...] = ("no", "with care", "yes", "not checked")
"""The verdicts about a comparison, the worst first."""

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


@dataclass(frozen=True)
class Comparison:
    """A comparison of a model and tables.

    tables  the names of the tables, by what tells them apart
    fit     what it found
    model   the name of the model if others were compared, too; else empty
    """

    tables: Mapping[str, str]
    fit: dict[str, Any]
    model: str = ""

    @property
    def name(self) -> str:
        return _spelled(self.tables) + f" ({self.model})" * bool(self.model)

    @property
    def judged(self) -> set[tuple[str, str]]:
        """The tables, with the model."""
        return {(self.model, table) for table in self.tables}

    @property
    def verdict(self) -> Verdict:
        fit, unfit = self.fit, _unfit(self.fit)
        if unfit >= 0.5:
            return "no"
        care = fit.get("better") or fit["alleles"] or _failing(fit) or fit["lengths"]
        if care or unfit >= MANY_IMPOSSIBLE or fit["miscalled"] > MANY_CONTRADICTED * max(fit["calls"], 1):
            return "with care"
        return "yes" if fit.get("compared", True) else "not checked"


def _spelled(tables: Mapping[str, str]) -> str:
    """The name of a table, or how many there are, and the first."""
    first, *others = tables.values()
    return f"{len(tables):,} files such as {first}" if others else first


def _comparisons(outputs: Outputs) -> list[Comparison]:
    """The comparisons of models and tables, each once: all files of one run have the same."""
    compared: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {}
    for path, _, facts in outputs.files:
        fit, model = facts.get("fit"), str(facts.get("model") or "")
        if isinstance(fit, dict) and (fit.get("rows") or fit.get("lacking")):
            tables, *_ = compared.setdefault(json.dumps([fit, model], sort_keys=True), ({}, fit, model))
            tables |= tables_read(facts) or {str(path): outputs.labels[path]}
    several = len({model for *_, model in compared.values()}) > 1
    return [Comparison(tables, fit, model if several else "") for tables, fit, model in compared.values()]


def _worst_first(comparisons: Sequence[Comparison]) -> dict[Verdict, list[Comparison]]:
    """The comparisons of each verdict, without those whose tables all have a worse one.

    Another command may have read other rows of a table, or compared it alone.
    """
    by_verdict: dict[Verdict, list[Comparison]] = {}
    judged = set[tuple[str, str]]()
    for verdict in VERDICTS:
        own = [each for each in comparisons if each.verdict == verdict and not judged.issuperset(each.judged)]
        if own:
            by_verdict[verdict] = own
        judged.update(*(each.judged for each in own))
    return by_verdict


def fit_statements(outputs: Outputs) -> Iterator[Statement]:
    """Whether the model fits: a statement for each verdict, which names each table and each cause once."""
    for verdict, comparisons in _worst_first(_comparisons(outputs)).items():
        files = defaultdict[str, list[str]](list)
        for each in comparisons:
            for cause in _causes(each.fit):
                files[cause].append(each.name)
        tables = {key: name for each in comparisons for key, name in each.tables.items()}
        # Many tables that were compared one by one, or several times, are not listed.
        if len(comparisons) <= MOST_LISTED and len(tables) == sum(len(each.tables) for each in comparisons):
            compared = " and ".join(f"{each.fit['rows']:,} rows of {each.name}" for each in comparisons)
        else:
            largest = max(each.fit["rows"] for each in comparisons)
            models = ", ".join(dict.fromkeys(each.model for each in comparisons if each.model))
            compared = f"Up to {largest:,} rows at a time, of {_spelled(tables)}{f' ({models})' * bool(models)},"
        causes = [
            cause if len(names) == len(comparisons) else f"{few(dict.fromkeys(names))}: {cause}"
            for cause, names in files.items()
        ]
        how = (
            "were"
            if any(each.fit.get("compared", True) for each in comparisons)
            else "have too few productive ones to be"
        )
        answer = ". ".join([f"{compared} {how} compared with what the model makes", *causes])
        yield Statement("Does the model fit the table?", verdict, f"{answer}.")


def _failing(fit: dict[str, Any]) -> list[dict[str, Any]]:
    """The genes that fail, without those of which commands say nothing."""
    return [gene for gene in fit["genes"] if is_told(gene["finding"], gene["share"])]


def _unfit(fit: dict[str, Any]) -> float:
    """The share of rows that the model cannot make, for their bases or for their genes and alleles."""
    lacking = fit.get("lacking", 0)
    return float((fit["impossible"] * fit["rows"] + lacking) / (fit["rows"] + lacking))


def _causes(fit: dict[str, Any]) -> Iterator[str]:
    """Say what speaks against the model, or against the table."""
    if better := fit.get("better"):
        yield f"{better[0]} fits better, by {better[1]:.2g} nats (natural logarithms) per row"
    if fit["impossible"]:
        yield f"{percent(round(fit['impossible'] * fit['rows']), fit['rows'])} of these are impossible"
    if lacking := fit.get("lacking"):
        yield f"{percent(lacking, fit['rows'] + lacking)} of all rows have genes or alleles that the model lacks"
    if wrong := [gene["gene"] for gene in _failing(fit) if gene["finding"] in SERIOUS]:
        yield f"genes that the model makes wrongly: {few(wrong, 8)}"
    for finding, words in (
        ("habit", "genes called in place of twins, which --ties auto takes together"),
        ("unmade", "genes that the model never makes"),
        ("usage", "genes whose usage differs"),
    ):
        if genes := [gene["gene"] for gene in _failing(fit) if gene["finding"] == finding]:
            yield f"{words}: {few(genes, 8)}"
    if lengths := [str(length["nucleotides"]) for length in fit["lengths"]]:
        yield f"lengths whose shares differ, in nucleotides: {few(lengths, 8)}"
    if alleles := [allele[0] for allele in fit["alleles"]]:
        yield f"alleles that the model hardly ever chooses: {', '.join(alleles)}"
    if fit["miscalled"]:
        yield f"at least {fit['miscalled']:,} of {fit['calls']:,} rows have a call that contradicts the bases"


def fit_sections(outputs: Outputs) -> list[Section]:
    """The section about the genes and lengths that fail, if there are any."""
    compared = _comparisons(outputs)
    rows = [
        {**gene, "file": each.name, "finding": MEANINGS.get(gene["finding"], gene["finding"]),
         "reads hardly tell it from": ", ".join(gene.get("twins", []))}
        for each in compared for gene in each.fit["genes"]
    ]  # fmt: skip
    lengths = [{**length, "file": each.name} for each in compared for length in each.fit["lengths"]]
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
