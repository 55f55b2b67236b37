"""`hpcvdj explain`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hpcvdj.cli import common, options
from hpcvdj.counting.config import DEFAULT_MAX_N, MaxN
from hpcvdj.errors import InputError, option
from hpcvdj.options import Option
from hpcvdj.recombination.explanation import Explanation, Pathway
from hpcvdj.recombination.germline import PaperDForms
from hpcvdj.repertoires.reference_settings import DForms, GermlineSettings, Joint
from hpcvdj.repertoires.settings import RowSettings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hpcvdj.recombination.likely import LikelyScenarios
    from hpcvdj.results.reader import Result

STYLES = {
    "V": "bold blue", "v": "cyan", "D": "bold magenta", "d": "bright_magenta", "J": "bold green", "j": "bright_green",
    "n": "bold yellow", "·": "dim",
}  # fmt: skip
"""Style of each letter of a track; the letters alone say the same."""


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
    sequence_id: Annotated[
        str | None,
        Option("explain this row of the result file JUNCTION, as it was counted", flags="--id", metavar="SEQUENCE_ID"),
    ] = None,
    v: Annotated[
        str | None,
        Option("V gene or allele, as TRBV5 or TRBV5*01", metavar="CALL", unset="with a model any"),
    ] = None,
    j: Annotated[str | None, Option("J gene or allele", metavar="CALL", unset="with a model any")] = None,
    germline: options.OptionalGermline = None,
    model: options.OptionalModel = None,
    max_n: MaxN = DEFAULT_MAX_N,
    output_format: Annotated[
        Literal["table", "json"], Option("tables and an alignment for people, or JSON")
    ] = "table",
    most: Annotated[
        int,
        Option("number of pathways to list, most direct first, or of scenarios, most likely first; sums include all",
               flags="--list", least=0, most=100_000),
    ] = 10,
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
    table or model, that the result records. Give -g if the table is elsewhere now, or -m for another model.

    Example: hpcvdj explain TGTGCCAGCAGTCTGGGACAGGGTAACCAAGACACCCAGTACTTT --v TRBV26 --j TRBJ2-5
    -g mouse_trb

    Example: hpcvdj explain out.h5 --id insilico_7
    """
    if not common.begin().is_root:
        return
    from hpcvdj.api.counting import explain
    from hpcvdj.api.probabilities import likely_scenarios

    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
    if sequence_id is not None:
        wrong = [name for name in given if name in RECORDED]
        if wrong:
            raise InputError(f"{_flags(wrong)}: the result records it; leave it out with --id")
        n_lengths = max_n if "max_n" in given else None
        for found in _rows(Path(junction), sequence_id, germline, model, n_lengths, most):
            _print(found, most, output_format)
        return
    if (germline is None) == (model is None):
        raise InputError(
            "give --germline to list pathways, or --model to list scenarios, or --id for a row of a result"
        )
    if model is not None:
        wrong = [name for name in given if name in ONLY_PATHWAYS]
        if wrong:
            raise InputError(f"{_flags(wrong)}: for --germline only; leave out what lists pathways, or --model")
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


def _flags(names: list[str]) -> str:
    return ", ".join(map(option, names))


def _rows(
    path: Path,
    sequence_id: str,
    germline: list[Path] | None,
    model: str | None,
    max_n: int | Literal["all"] | None,
    top: int,
) -> Iterator[Explanation | LikelyScenarios]:
    """The rows of a result with this id (several, if it has several repertoires), as the result records them.

    germline, model  instead of what the result records; max_n: likewise
    """
    from hpcvdj.api.counting import explain
    from hpcvdj.api.probabilities import likely_scenarios
    from hpcvdj.recombination.germline import MAX_P, read_germline
    from hpcvdj.recombination.igor import PUBLISHED, load_model
    from hpcvdj.results.reader import Result

    with Result(path) as result:
        chosen = result.select(sequence_id=sequence_id)
        facts = result.provenance
        of_model = "germline_path" not in facts
        scenarios = of_model or model is not None
        if scenarios:
            _require_junctions(result)
        names = ["v_call", "j_call", "cdr3"] + ["anchors"] * scenarios
        rows = list(zip(*map(chosen.texts, names), strict=True))
        config = json.loads(facts.get("config", "{}"))
        counted = 0 if of_model else result.max_n
    recorded = facts.get("germline_path", facts.get("model", ""))
    if scenarios:
        if germline is not None:
            raise InputError(f"{path}: has probabilities of the model {recorded}; give -m, or nothing")
        loaded = load_model(model or recorded)
        if model is None and loaded.digest != facts.get("model_sha256"):
            kept = f", such as {recorded}{PUBLISHED}" if loaded.corrected else ""
            raise InputError(f"{path}: the model {recorded} has changed since; name one with -m{kept}")
        for v, j, cdr3, anchors in rows:
            junction = anchors[:3] + cdr3 + anchors[3:]
            named = {} if config.get("genes") == "any" else {"v_call": v, "j_call": j}
            yield likely_scenarios(junction, loaded, **named, number=top, joint=bool(config.get("joint")))
        return
    try:
        table = read_germline(
            germline or recorded.split(", "),
            max_p=int(facts.get("max_p", MAX_P)),
            d_alleles=facts.get("d_alleles", "first"),
        )
    except InputError:
        if germline is not None:
            raise
        raise InputError(f"{path}: was counted with {recorded}, which is not there; say where it is with -g") from None
    if table.digest() != facts.get("germline_sha256"):
        raise InputError(f"{table.name}: is not the germline table that {path} was counted with; name that with -g")
    for v, j, cdr3 in rows:
        n_lengths = counted if max_n is None else max_n
        yield explain(cdr3, v, j, table, max_n=n_lengths, d_forms=config["d_forms"], sequence_field="cdr3")


def _require_junctions(result: Result) -> None:
    """Raise InputError unless a result has the nucleotides of its junctions with their anchors: scenarios make both."""
    if str(result.provenance.get("sequence_field")).endswith("_aa"):
        raise InputError(
            f"{result.path}: has amino acids, and scenarios make nucleotides; give JUNCTION and -m instead"
        )
    if "anchors" not in result.columns:
        raise InputError(
            f"{result.path}: has CDR3s without anchors, and scenarios make junctions; give a result of `hpcvdj pgen` "
            "by this version, or JUNCTION and -m instead"
        )


def _print(
    found: Explanation | LikelyScenarios, top: int, output_format: str, anchors: tuple[str, str] = ("", "")
) -> None:
    """Print pathways or scenarios; `anchors` are the codons around the CDR3 of pathways."""
    if isinstance(found, Explanation):
        if output_format == "json":
            common.answer(json.dumps(found.as_json(top), indent=1))
        else:
            _report(common.console(), found, found.most_direct(top), anchors)
    elif output_format == "json":
        common.answer(json.dumps(found.as_json(), indent=1))
    else:
        _report_scenarios(common.console(), found)


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
    _by_n_length(console, explanation, total)
    if explanation.d:
        _by_gene(console, explanation)
    if not listed:
        return
    shown = sum(pathway.multiplicity for pathway in listed)
    console.print(f"\nThe most direct: {shown:,} of {total:,} pathways in {len(listed):,} line(s)")
    left, right = ("·" * len(anchor) for anchor in anchors)
    _align(console, anchors, explanation.cdr3, [left + explanation.track(pathway) + right for pathway in listed])
    _listing(console, explanation, listed)


def _by_n_length(console: Console, explanation: Explanation, total: int) -> None:
    rows = []
    done = 0
    for m, count in enumerate(explanation.counters):
        done += count
        if count:
            rows.append([str(m), f"{count:,}", f"{100 * count / total:.2f} %", f"{100 * done / total:.2f} %"])
    common.print_table(console, ["n-nucleotides", "pathways", "share", "up to here"], rows, title="By n-length")


def _by_gene(console: Console, explanation: Explanation) -> None:
    rows = []
    for gene in explanation.genes:
        fewest = "–" if gene.fewest_n is None else str(gene.fewest_n)
        rows.append([gene.allele, f"{sum(gene.with_bases):,}", fewest, f"{sum(gene.chewed_away):,}", f"{gene.total:,}"])
    heads = ["D gene", "with bases of it", "fewest n", "chewed away", "total"]
    common.print_table(console, heads, rows, title="By D gene", left=1)


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
    _align(console, ("", ""), found.junction, list(map(found.track, found.scenarios)))
    columns = [("V", "v_call"), ("V lost", "v_trim"), ("n (V–D)" if found.model.has_d else "n", "n1")]
    if found.model.has_d:
        columns += [column for column in _D_COLUMNS if not column[1].endswith("_length")]
    columns += [("J lost", "j_trim"), ("J", "j_call")]
    rows = []
    for number, scenario in enumerate(found.scenarios, start=1):
        facts = found.describe(scenario)
        rows.append([str(number), f"{100 * facts['posterior']:.2f} %", *(str(facts[name]) for _, name in columns)])
    common.print_table(console, ["", "posterior", *(head for head, _ in columns)], rows)


def _align(console: Console, anchors: tuple[str, str], cdr3: str, tracks: list[str]) -> None:
    """Print a sequence, and below it what each of its bases is in each pathway or scenario; in blocks if it is long.

    anchors  bases before and after the CDR3, which are dim
    """
    from rich.text import Text

    margin = len(str(len(tracks))) + 2
    width = max(console.width - margin, 1)
    sequence = Text.assemble((anchors[0], "dim"), cdr3, (anchors[1], "dim"))
    for at in range(0, len(sequence), width):
        console.print(Text(" " * margin) + sequence[at : at + width])
        for number, track in enumerate(tracks, start=1):
            console.print(_coloured(f"{number:>{margin - 2}}  ", track[at : at + width]))
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


_D_COLUMNS = [
    ("D gene", "d_call"), ("D 5' lost", "d_trim_5"), ("D 5' P", "p5d_length"), ("D", "d_form"),
    ("D 3' P", "p3d_length"), ("D 3' lost", "d_trim_3"), ("n' (D–J)", "n2"),
]  # fmt: skip


def _listing(console: Console, explanation: Explanation, listed: list[Pathway]) -> None:
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
    common.print_table(console, ["", *(head for head, _ in columns), "pathways"], rows)
