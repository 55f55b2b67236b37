"""`hpcvdj explain`."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import accumulate, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hpcvdj.cli import common, options
from hpcvdj.counting.config import DEFAULT_MAX_N, MaxN
from hpcvdj.errors import InputError, option
from hpcvdj.options import setting
from hpcvdj.recombination.explanation import Explanation, Pathway
from hpcvdj.recombination.germline import PaperDForms
from hpcvdj.repertoires.settings import DForms, GermlineSettings, Joint, RowSettings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hpcvdj.recombination.likely import LikelyScenarios

STYLES = {
    "V": "bold blue", "v": "cyan", "D": "bold magenta", "d": "bright_magenta", "J": "bold green", "j": "bright_green",
    "n": "bold yellow", "·": "dim",
}  # fmt: skip
"""The style of each letter of a track; the letters alone say the same."""

ONLY_PATHWAYS = ("max_n", "d_forms", "d_alleles", "max_p", "sequence_field", "ambiguous_calls", "unlisted_alleles")
"""Options that apply to pathways, not to scenarios."""

RECORDED = ("v", "j", "joint", *ONLY_PATHWAYS[1:])
"""Options that a result records."""


def command(
    context: typer.Context,
    junction: Annotated[
        str, options.argument("JUNCTION", "The junction (or CDR3), in nucleotides; with --id a result file.")
    ],
    rows: RowSettings,
    alleles: GermlineSettings,
    sequence_id: str | None = setting("explain this row of the result file JUNCTION, as it was counted", None,
                                      flags="--id", metavar="SEQUENCE_ID"),
    v: str | None = setting("V gene or allele, as TRBV5 or TRBV5*01", None, metavar="CALL", unset="with a model any"),
    j: str | None = setting("J gene or allele", None, metavar="CALL", unset="with a model any"),
    germline: options.OptionalGermline = None,
    model: options.OptionalModel = None,
    max_n: MaxN = DEFAULT_MAX_N,
    output_format: Literal["table", "json"] = setting("tables and an alignment for people, or JSON", "table"),
    most: int = setting("number of pathways to list, most direct first, or of scenarios, most likely first; sums "
                        "include all", 10, flags="--list", least=0, most=100_000),
    d_forms: DForms = PaperDForms.name,
    joint: Joint = False,
) -> None:  # fmt: skip
    """List the recombination pathways of one junction, or its most likely scenarios under a recombination model.

    With --germline: counts all pathways by n-length and by D gene, as `hpcvdj count` does, and lists the most direct
    ones: fewest n-nucleotides, then fewest bases lost by V, D and J. If D lost all its bases, pathways that differ only
    in how and where it did share one line.

    With --model: the generation probability of the junction, and the most likely scenarios with their posterior
    probability: the scenario's probability divided by the junction's. With --v and --j scenarios have these genes, else
    any. The options of the germline table, of n-lengths and of how to read the sequence are for --germline only.

    With --id: the row of a result of `hpcvdj count` or `hpcvdj pgen`, with its calls and the options, and the germline
    table or model, that the result records. Give -g if the table is elsewhere now, or -m for another model. If several
    repertoires have the id, the rows of all are explained, in the order of the input.

    Example: hpcvdj explain TGTGCCAGCAGTCTGGGACAGGGTAACCAAGACACCCAGTACTTT --v TRBV26 --j TRBJ2-5
    -g mouse_trb

    Example: hpcvdj explain out.h5 --id insilico_7
    """
    if not common.begin().is_root:
        return
    from hpcvdj.api.counting import explain
    from hpcvdj.api.explained import explained_rows
    from hpcvdj.api.probabilities import likely_scenarios
    from hpcvdj.results.reader import Result

    sources = {name: context.get_parameter_source(name) for name in context.params}
    typed = [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
    if sequence_id is not None:
        if wrong := [option(name) for name in typed if name in RECORDED]:
            raise InputError(f"{', '.join(wrong)}: the result records it; leave it out with --id")
        with Result(Path(junction)) as result:
            largest = max_n if "max_n" in typed else None
            explained = explained_rows(result, sequence_id, germline, model, largest, most)
            if output_format == "json":
                objects = [{"repertoire_id": name} | _facts(ways, most) for name, ways in explained]
                common.answer(json.dumps(objects[0] if len(objects) == 1 else objects, indent=1))
                return
            for name, ways in explained:
                if result.together:
                    common.console().print(f"repertoire {name}", markup=False)
                _print(ways, most, output_format)
        return
    if (germline is None) == (model is None):
        raise InputError(
            "give --germline to list pathways, or --model to list scenarios, or --id for a row of a result"
        )
    if model is not None:
        if wrong := [option(name) for name in typed if name in ONLY_PATHWAYS]:
            raise InputError(f"{', '.join(wrong)}: for --germline only; leave out what lists pathways, or --model")
        _print(likely_scenarios(junction, model, v_call=v, j_call=j, number=most, joint=joint), most, output_format)
        return
    assert germline is not None
    if joint:
        raise InputError(f"{option('joint')}: for {option('model')} only; leave it out")
    if v is None or j is None:
        raise InputError("pathways are those of a V and a J gene: give --v and --j")
    explanation = explain(junction, v, j, alleles.read(germline), max_n=max_n, d_forms=d_forms, **asdict(rows))
    anchors = (junction[:3].upper(), junction[-3:].upper()) if rows.sequence_field == "junction" else ("", "")
    _print(explanation, most, output_format, anchors)


def _facts(ways: Explanation | LikelyScenarios, most: int) -> dict[str, Any]:
    return ways.as_json(most) if isinstance(ways, Explanation) else ways.as_json()


def _print(
    ways: Explanation | LikelyScenarios, most: int, output_format: str, anchors: tuple[str, str] = ("", "")
) -> None:
    """Print pathways or scenarios; `anchors` are the codons around the CDR3 of pathways."""
    if output_format == "json":
        common.answer(json.dumps(_facts(ways, most), indent=1))
    elif isinstance(ways, Explanation):
        _print_pathways(common.console(), ways, ways.most_direct(most), anchors)
    else:
        _print_scenarios(common.console(), ways)


def _print_pathways(
    console: Console, explanation: Explanation, listed: list[Pathway], anchors: tuple[str, str]
) -> None:
    total = sum(explanation.counters)
    d_genes = f"{len(explanation.d)} D genes" if explanation.d else "no D genes"
    calls = f"{explanation.v.allele}, {explanation.j.allele}; {d_genes} of {explanation.v.locus}"
    console.print(f"CDR3       {len(explanation.cdr3)} nt; {calls}")
    germline = f"{explanation.longest_v} at the V end, {explanation.longest_j} at the J end, P-nucleotides included"
    console.print(f"germline   bases that match the germline: {germline}")
    console.print(f"pathways   {total:,}, n-lengths 0-{explanation.max_n}, D forms {explanation.d_forms}", end="\n\n")
    if not total:
        console.print(f"No pathway has at most {explanation.max_n} n-nucleotides; --max-n all counts every n-length.")
        return
    by_n_length = [
        [str(m), f"{count:,}", f"{100 * count / total:.2f} %", f"{100 * done / total:.2f} %"]
        for m, (count, done) in enumerate(zip(explanation.counters, accumulate(explanation.counters), strict=True))
        if count
    ]
    common.print_table(console, ["n-nucleotides", "pathways", "share", "up to here"], by_n_length, title="By n-length")
    if explanation.d:
        by_gene = [
            [gene.allele, f"{sum(gene.with_bases):,}", "–" if gene.fewest_n is None else str(gene.fewest_n),
             f"{sum(gene.chewed_away):,}", f"{gene.total:,}"]
            for gene in explanation.genes
        ]  # fmt: skip
        heads = ["D gene", "with bases of it", "fewest n", "chewed away", "total"]
        common.print_table(console, heads, by_gene, title="By D gene", left=1)
    if not listed:
        return
    shown = sum(pathway.multiplicity for pathway in listed)
    console.print(f"\nThe most direct: {shown:,} of {total:,} pathways in {len(listed):,} line(s)")
    _print_tracks(console, explanation.cdr3, list(map(explanation.track, listed)), anchors)
    rows = list(map(explanation.describe, listed))
    for row in rows:
        if row["d_form"] == "":
            row |= {"n1": f"{row['n']}, cut anywhere" if row["n"] else "", "d_form": "all lost"}
        row["pathways"] = f"{row['pathways']:,}"
    of_v = [("n", "n_length"), ("V lost", "v_trim"), ("V P", "p3v_length")]
    of_j = [("J P", "p5j_length"), ("J lost", "j_trim"), ("pathways", "pathways")]
    _print_ways(console, [*of_v, *(_MIDDLE if explanation.d else [("n", "n1")]), *of_j], rows)


def _print_scenarios(console: Console, likely: LikelyScenarios) -> None:
    console.print(f"junction   {len(likely.junction)} nt")
    console.print(f"model      {likely.model.name}")
    console.print(f"pgen_nt    {likely.pgen:.6g}", end="\n\n")
    if not likely.pgen:
        console.print("No scenario makes this junction.")
    if not likely.scenarios:
        return
    share = f"{100 * likely.shown:.2f} % of the posterior probability"
    console.print(f"The most likely: {len(likely.scenarios):,} scenario(s) with {share}")
    _print_tracks(console, likely.junction, list(map(likely.track, likely.scenarios)))
    rows = list(map(likely.describe, likely.scenarios))
    for row in rows:
        row["posterior"] = f"{100 * row['posterior']:.2f} %"
    of_v = [("posterior", "posterior"), ("V", "v_call"), ("V lost", "v_trim")]
    middle = [column for column in _MIDDLE if not column[1].endswith("_length")]
    of_j = [("J lost", "j_trim"), ("J", "j_call")]
    _print_ways(console, [*of_v, *(middle if likely.model.has_d else [("n", "n1")]), *of_j], rows)


_MIDDLE = [
    ("n (V–D)", "n1"), ("D gene", "d_call"), ("D 5' lost", "d_trim_5"), ("D 5' P", "p5d_length"), ("D", "d_form"),
    ("D 3' P", "p3d_length"), ("D 3' lost", "d_trim_3"), ("n' (D–J)", "n2"),
]  # fmt: skip
"""Heads and names of the columns between V and J in a locus with D genes."""


def _print_ways(console: Console, columns: list[tuple[str, str]], rows: list[dict[str, Any]]) -> None:
    """Print a numbered row for each pathway or scenario; `columns` are heads and names."""
    cells = [
        [str(number), *("" if row[name] is None else str(row[name]) for _, name in columns)]
        for number, row in enumerate(rows, start=1)
    ]
    common.print_table(console, ["", *(head for head, _ in columns)], cells)


def _print_tracks(console: Console, sequence: str, tracks: list[str], anchors: tuple[str, str] = ("", "")) -> None:
    """Print a sequence, and below it the track of each pathway or scenario, in blocks if the sequence is long.

    anchors  bases before and after the sequence, which are dim
    """
    from rich.text import Text

    margin = len(str(len(tracks))) + 2
    width = max(console.width - margin, 1)
    left, right = ("·" * len(anchor) for anchor in anchors)
    bases = Text.assemble((anchors[0], "dim"), sequence, (anchors[1], "dim"))
    for start in range(0, len(bases), width):
        console.print(Text(" " * margin) + bases[start : start + width])
        for number, track in enumerate(tracks, start=1):
            console.print(_coloured(f"{number:>{margin - 2}}  ", f"{left}{track}{right}"[start : start + width]))
    legend = _coloured(" " * margin, "VDJ")
    legend.append(" of the germline, ").append_text(_coloured("", "vdj"))
    legend.append(" their P-nucleotides, ").append_text(_coloured("", "n")).append(" n-nucleotides")
    console.print(legend)


def _coloured(margin: str, track: str) -> Text:
    from rich.text import Text

    line = Text(margin)
    for letter, run in groupby(track):
        line.append("".join(run), style=STYLES[letter])
    return line
