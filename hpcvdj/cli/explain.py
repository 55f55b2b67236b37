"""`hpcvdj explain`."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hpcvdj.cli import common, options
from hpcvdj.errors import InputError
from hpcvdj.recombination.explanation import Explanation, Pathway

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hpcvdj.recombination.likely import LikelyScenarios

STYLES = {
    "V": "bold blue", "v": "cyan", "D": "bold magenta", "d": "bright_magenta", "J": "bold green", "j": "bright_green",
    "n": "bold yellow", "·": "dim",
}  # fmt: skip
"""Style of each letter of a track; the letters alone say the same."""


ONLY_PATHWAYS = ("max_n", "d_forms", "d_alleles", "max_p", "sequence_field", "ambiguous_calls", "unlisted_alleles")
"""Options that apply to pathways, not to scenarios."""


def command(
    context: typer.Context,
    junction: Annotated[
        str, typer.Argument(help="The junction (or CDR3), in nucleotides.", metavar="JUNCTION", show_default=False)
    ],
    v: Annotated[
        str | None,
        typer.Option(
            "--v", metavar="CALL", help="V gene or allele, as TRBV5 or TRBV5*01.", show_default="with --model any"
        ),
    ] = None,
    j: Annotated[
        str | None, typer.Option("--j", metavar="CALL", help="J gene or allele.", show_default="with --model any")
    ] = None,
    germline: options.OptionalGermline = None,
    model: options.OptionalModel = None,
    max_n: options.MaxN = "10",
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", help="Tables and an alignment for people, or JSON.")
    ] = "table",
    top: Annotated[
        int,
        typer.Option(
            "--top",
            min=0,
            max=100_000,
            help="Number of pathways to list, most direct first, or of scenarios, most likely first; sums include all.",
        ),
    ] = 10,
    d_forms: options.DForms = "paper",
    d_alleles: options.DAllelesOption = "first",
    max_p: options.MaxP = 4,
    sequence_field: options.Field = "junction",
    ambiguous_calls: options.AmbiguousCalls = "exclude",
    unlisted_alleles: options.UnlistedAlleles = "exclude",
    joint: options.Joint = False,
) -> None:
    """List the recombination pathways of one junction, or its most likely scenarios under a recombination model.

    With --germline: counts all pathways by n-length and by D gene, as `hpcvdj count` does, and lists the most direct
    ones: fewest n-nucleotides, then fewest bases lost by V, D and J. If D lost all its bases, pathways that differ only
    in how and where it did share one line.

    With --model: the generation probability of the junction, and the most likely scenarios with their posterior
    probability: the scenario's probability divided by the junction's. With --v and --j scenarios have these genes, else
    any. The options of the germline table, of n-lengths and of how to read the sequence are for --germline only.

    Example: hpcvdj explain TGTGCCAGCAGTCTGGGACAGGGTAACCAAGACACCCAGTACTTT --v TRBV26 --j TRBJ2-5
    -g inputs/germline/mouse_trb.tsv
    """
    if not common.begin().is_root:
        return
    from hpcvdj.api.counting import explain
    from hpcvdj.api.probabilities import likely_scenarios
    from hpcvdj.recombination.germline import read_germline

    if (germline is None) == (model is None):
        raise InputError("give --germline to list pathways, or --model to list scenarios")
    if model is not None:
        sources = {name: context.get_parameter_source(name) for name in ONLY_PATHWAYS}
        given = [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise InputError(f"{names}: for --germline only; leave out what lists pathways, or --model")
        found = likely_scenarios(junction, model, v_call=v, j_call=j, number=top, joint=joint)
        if output_format == "json":
            common.say(json.dumps(found.as_json(), indent=1))
        else:
            _report_scenarios(common.console(), found)
        return
    assert germline is not None
    if joint:
        raise InputError("--joint: for --model only; leave it out")
    if v is None or j is None:
        raise InputError("pathways are those of a V and a J gene: give --v and --j")
    table = read_germline(germline, max_p=max_p, d_alleles=d_alleles)
    explanation = explain(
        junction,
        v,
        j,
        table,
        max_n=options.parse_max_n(max_n),
        d_forms=d_forms,
        sequence_field=sequence_field,
        ambiguous_calls=ambiguous_calls,
        unlisted_alleles=unlisted_alleles,
    )
    if output_format == "json":
        common.say(json.dumps(explanation.as_json(top), indent=1))
        return
    anchors = (junction[:3].upper(), junction[-3:].upper()) if sequence_field == "junction" else ("", "")
    _report(common.console(), explanation, explanation.most_direct(top), anchors)


def _report(console: Console, explanation: Explanation, listed: list[Pathway], anchors: tuple[str, str]) -> None:
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
    console.print(_by_n_length(explanation, total))
    if explanation.d:
        console.print(_by_gene(explanation))
    if not listed:
        return
    shown = sum(pathway.multiplicity for pathway in listed)
    console.print(f"\nThe most direct: {shown:,} of {total:,} pathways in {len(listed):,} line(s)")
    left, right = ("·" * len(anchor) for anchor in anchors)
    sequence = f"[dim]{anchors[0]}[/dim]{explanation.cdr3}[dim]{anchors[1]}[/dim]"
    _align(console, sequence, [left + explanation.track(pathway) + right for pathway in listed])
    console.print(_listing(explanation, listed))


def _by_n_length(explanation: Explanation, total: int) -> Table:
    rows = []
    done = 0
    for m, count in enumerate(explanation.counters):
        done += count
        if count:
            rows.append([str(m), f"{count:,}", f"{100 * count / total:.2f} %", f"{100 * done / total:.2f} %"])
    return common.table(["n-nucleotides", "pathways", "share", "up to here"], rows, title="By n-length")


def _by_gene(explanation: Explanation) -> Table:
    rows = []
    for gene in explanation.genes:
        fewest = "–" if gene.fewest_n is None else str(gene.fewest_n)
        rows.append([gene.allele, f"{sum(gene.with_bases):,}", fewest, f"{sum(gene.chewed_away):,}", f"{gene.total:,}"])
    heads = ["D gene", "with bases of it", "fewest n", "chewed away", "total"]
    return common.table(heads, rows, title="By D gene", left=1)


def _report_scenarios(console: Console, found: LikelyScenarios) -> None:
    console.print(f"junction   {len(found.junction)} nt")
    console.print(f"model      {found.model.name}")
    console.print(f"pgen_nt    {found.pgen:.6g}", end="\n\n")
    if not found.pgen:
        console.print("No scenario makes this junction.")
    if not found.scenarios:
        return
    share = f"{100 * found.shown:.2f} % of the posterior probability"
    console.print(f"The most likely: {len(found.scenarios):,} scenario(s) with {share}")
    _align(console, found.junction, list(map(found.track, found.scenarios)))
    columns = [("V", "v_call"), ("V lost", "v_trim"), ("n (V–D)" if found.model.has_d else "n", "n1")]
    if found.model.has_d:
        columns += [column for column in _D_COLUMNS if not column[1].endswith("_length")]
    columns += [("J lost", "j_trim"), ("J", "j_call")]
    rows = []
    for number, scenario in enumerate(found.scenarios, start=1):
        facts = found.describe(scenario)
        rows.append([str(number), f"{100 * facts['posterior']:.2f} %", *(str(facts[name]) for _, name in columns)])
    console.print(common.table(["", "posterior", *(head for head, _ in columns)], rows))


def _align(console: Console, sequence: str, tracks: list[str]) -> None:
    """Print a sequence, and below it what each of its bases is in each pathway or scenario."""
    margin = len(str(len(tracks))) + 2
    console.print(" " * margin + sequence, soft_wrap=True)
    for number, track in enumerate(tracks, start=1):
        console.print(_coloured(f"{number:>{margin - 2}}  ", track), soft_wrap=True)
    legend = _coloured(" " * margin, "VDJ")
    legend.append(" of the germline, ").append_text(_coloured("", "vdj"))
    legend.append(" their P-nucleotides, ").append_text(_coloured("", "n")).append(" n-nucleotides")
    console.print(legend, soft_wrap=True)


def _coloured(margin: str, track: str) -> Text:
    from rich.text import Text

    line = Text(margin)
    for letter, run in groupby(track):
        line.append("".join(run), style=STYLES[letter])
    return line


_D_COLUMNS = [
    ("D gene", "d_call"), ("D 5' lost", "d_trim_5"), ("D 5' P", "p5d_length"), ("D", "d_form"),
    ("D 3' P", "p3d_length"), ("D 3' lost", "d_trim_3"), ("n' (D–J)", "n2"),
]  # fmt: skip


def _listing(explanation: Explanation, listed: list[Pathway]) -> Table:
    columns = [("n", "n_length"), ("V lost", "v_trim"), ("V P", "p3v_length")]
    if explanation.d:
        columns += [("n (V–D)", "n1"), *_D_COLUMNS]
    else:
        columns.append(("n", "n1"))
    columns += [("J P", "p5j_length"), ("J lost", "j_trim")]
    rows = []
    for number, pathway in enumerate(listed, start=1):
        facts = explanation.describe(pathway)
        if pathway.d is not None and pathway.d.empty:
            n = f"{facts['n']}, cut anywhere" if facts["n"] else ""
            facts |= {"n1": n, "n2": "", "d_form": "all lost"}
        cells = ["" if facts[name] is None else str(facts[name]) for _, name in columns]
        rows.append([str(number), *cells, f"{pathway.multiplicity:,}"])
    return common.table(["", *(head for head, _ in columns), "pathways"], rows)
