"""The sections about what `count` and `pgen` wrote: rows left out, genes, values, lengths, junctions."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.germline_import.genes import natural_key
from hpcvdj.recombination.alphabet import translate
from hpcvdj.reports import charts
from hpcvdj.reports.clonotypes import listed_clonotypes, listed_score
from hpcvdj.reports.elements import Figure, Section, Table
from hpcvdj.reports.outputs import Outputs
from hpcvdj.reports.survey import MOST_ROWS, TOP, Survey, merged

MOST_SERIES = 60
"""More samples than this are drawn as their groups, or as one."""

VALUES = {
    "pathways_total": "pathways of a junction", "pgen_nt": "Pgen of the nucleotides",
    "pgen_aa": "Pgen of the amino acids", "pgen_aa_1mm": "Pgen within one mismatch",
}  # fmt: skip
_WORDS = {
    "count": "A pathway is one way to make a junction from a V, a D and a J gene, cut back, extended by P-nucleotides "
    "and joined with n-nucleotides. Numbers of pathways are not probabilities. The weight of a junction is the sum of "
    "its pathways, each divided by 4 to the power of its number of n-nucleotides: it says better than their number "
    "how easily recombination makes the junction.",
    "pgen": "Pgen, the generation probability, says how often recombination makes a junction, before selection. "
    "Junctions with a high Pgen are found in many people without any common antigen.",
}
_NAMES = {"count": "Pathways", "pgen": "Generation probabilities"}


@dataclass(frozen=True)
class _Series:
    """What a line of a figure is: samples that are drawn as one."""

    name: str
    group: str | None
    members: list[tuple[Survey, int]]


def sample_sections(outputs: Outputs) -> list[Section]:
    """The sections of all files of `count` and `pgen`."""
    if not outputs.surveys:
        return []
    sections = [left_out(outputs), genes(outputs)]
    for command in _NAMES:
        surveys = [survey for survey in outputs.surveys if survey.command == command]
        if surveys:
            sections += [values(outputs, surveys, command), junctions(outputs, surveys, command)]
    return [*sections, lengths(outputs)]


def once(outputs: Outputs) -> Iterator[tuple[Survey, int]]:
    """Each sample once, with the first of its files: those of one table, which is known by its digest."""
    seen: set[Any] = set()
    for survey in outputs.surveys:
        for k, name in enumerate(survey.samples):
            digest = survey.facts.get("junctions_sha256")
            sample = (outputs.individual(name), digest) if digest else name
            if not seen & {name, sample}:
                yield survey, k
            seen |= {name, sample}


def series(outputs: Outputs, members: Iterable[tuple[Survey, int]]) -> list[_Series]:
    """The lines of a figure: samples by group or, if these are more than `MOST_SERIES`, groups."""
    counted = [(survey, k, outputs.group(survey.samples[k])) for survey, k in members if survey.counted[k]]
    counted.sort(key=lambda item: item[2] or "")
    if len(counted) <= MOST_SERIES:
        return [_Series(survey.samples[k], group, [(survey, k)]) for survey, k, group in counted]
    groups = defaultdict(list)
    for survey, k, group in counted:
        groups[group].append((survey, k))
    return [_Series(group or "samples without a group", group, drawn) for group, drawn in groups.items()]


def left_out(outputs: Outputs) -> Section:
    """Rows without a value, by reason."""

    def rows() -> Iterator[dict[str, Any]]:
        for survey in outputs.surveys:
            name = survey.samples[0] if len(survey.samples) == 1 else f"all of {survey.path.name}"
            total = max(1, int(survey.rows_read.sum()))
            for reason, often, option, examples in survey.excluded:
                share = 100 * often / total
                yield {
                    "sample": name, "command": survey.command, "reason": reason, "rows": often, "of_rows": share,
                    "option": option, "examples": examples,
                }  # fmt: skip

    table = Table.of(
        "left_out_table", "Rows left out, by reason", "sample command reason rows of_rows option examples", rows()
    )
    if not table.rows:
        return Section("left-out", "Rows left out", ["No row was left out."])
    words = ["The results list each row that was left out, with the reason: `hpcvdj export` writes them."]
    return Section("left-out", "Rows left out", words, tables=[table.first(len(table.rows), "the results")])


def shares(
    outputs: Outputs, members: Iterable[tuple[Survey, int]], tables: Callable[[Survey], pa.Table], keys: list[str]
) -> Iterator[dict[str, Any]]:
    """The rows of a tally by the series of a figure.

    sample (the series), group, keys, rows, and their share in percent
    """
    for line in series(outputs, members):
        parts = [tables(survey).filter(pc.field("sample") == k).select([*keys, "rows"]) for survey, k in line.members]
        table = merged(parts, keys).sort_by([(key, "ascending") for key in keys])
        total = max(1, sum(int(survey.counted[k]) for survey, k in line.members))
        for row in table.to_pylist():
            yield {"sample": line.name, "group": line.group, **row, "share": 100 * row["rows"] / total}


def genes(outputs: Outputs) -> Section:
    """V–J pairs of one sample; the V genes and the J genes of several."""
    members = list(once(outputs))
    figures = []
    if len(members) == 1:
        rows = list(shares(outputs, members, lambda survey: survey.usage, ["v", "j"]))
        table = Table.of("pairs_table", "V–J pairs", "v j rows share", sorted(rows, key=lambda row: -row["rows"]))
        j, v = (sorted({row[key] for row in rows}, key=natural_key) for key in "jv")
        most = table.peak("share", "{v} with {j}, {share} %")
        caption = f"Junctions by V and J gene, in percent. The most frequent pair: {most}."
        chart = charts.heatmap(table, "j", "v", "share", (j, v))
        figures.append(Figure("vj", "Heat map", caption, chart, (table,), wide=len(j) > charts.NARROW))
    else:
        for key, name in (("v", "V"), ("j", "J")):
            rows = list(shares(outputs, members, lambda survey: survey.usage, [key]))
            table = Table.of(f"{key}_table", f"{name} genes by sample", f"sample group {key} rows share", rows)
            order = sorted({row[key] for row in rows}, key=natural_key)
            samples = list(dict.fromkeys(row["sample"] for row in rows))
            most = table.peak("share", f"{{{key}}} in {{sample}}, {{share}} %")
            caption = f"{name} genes of each sample, in percent. Largest share: {most}."
            chart = charts.heatmap(table, key, "sample", "share", (order, samples))
            figures.append(Figure(f"{key}_genes", "Heat map", caption, chart, (table,), wide=True))
    words = ["All alleles of a gene are taken together. A missing field has no junction."]
    return Section("genes", "V and J genes", words, figures)


def doublings(survey: Survey, measure: str) -> pa.Table:
    """The rows of each sample by their value of a measure, from the power of two `low`; those above 0."""
    bins = survey.values.filter((pc.field("measure") == measure) & (pc.field("bin") > 0))
    power = pc.power(2.0, pc.subtract(pc.shift_right(bins["bin"], 7), 1023))
    return merged([bins.select(["sample", "rows"]).append_column("low", power)], ["sample", "low"])


def values(outputs: Outputs, surveys: list[Survey], command: str) -> Section:
    """How the values of junctions are distributed."""
    members = [(survey, k) for survey in surveys for k in range(len(survey.samples))]
    figures = []
    for measure in [name for name in VALUES if all(name in survey.measures for survey in surveys)]:

        def of_survey(survey: Survey, measure: str = measure) -> pa.Table:
            return doublings(survey, measure)

        title = VALUES[measure]
        rows = list(shares(outputs, members, of_survey, ["low"]))
        keys = "sample group low rows share"
        table = Table.of(f"{measure}_values", f"Junctions by {title}", keys, rows, low=f"{title}, from")
        if rows:
            most = table.peak("share", "{share} % of the junctions of {sample} from {low}")
            caption = (
                f"{title.capitalize()}; each point is a doubling. Most: {most}. Junctions with the value 0 are in the "
                "table of samples."
            )
            chart = charts.lines(table, "low", "share", log_x=True)
            figures.append(Figure(f"{measure}_distribution", "Distribution", caption, chart, (table,)))
    reached = [(survey, k) for survey, k in members if survey.reached is not None]
    if reached:
        figures += _reached(outputs, reached)
    return Section(command, _NAMES[command], [_WORDS[command], *_different(surveys)], figures)


def _reached(outputs: Outputs, members: list[tuple[Survey, int]]) -> Iterator[Figure]:
    """The share of junctions that have a pathway with at most so many n-nucleotides."""
    rows: list[dict[str, Any]] = []
    for row in shares(outputs, members, lambda survey: survey.reached, ["needs"]):
        before = rows[-1]["reached"] if rows and rows[-1]["sample"] == row["sample"] else 0.0
        if row["needs"] >= 0:
            rows.append({**row, "n": row["needs"], "reached": before + row["share"]})
    titles = {"reached": "junctions with a pathway, %", "rows": "junctions that need so many"}
    caption = "Junctions with a pathway, by number of n-nucleotides"
    table = Table.of("reached_table", caption, "sample group n rows reached", rows, **titles)
    if rows:
        most = table.peak("reached", "{reached} % at {n} in {sample}")
        caption = f"Junctions that have a pathway with at most so many n-nucleotides. Most: {most}."
        yield Figure("reached", "Lines", caption, charts.lines(table, "n", "reached"), (table,))


def _different(surveys: list[Survey]) -> list[str]:
    """A warning if values of these files cannot be compared."""
    asked: dict[str, dict[str, None]] = defaultdict(dict)
    for survey in surveys:
        facts, config = survey.facts, survey.facts.get("config", {})
        for name, setting in (
            ("largest n-lengths", config.get("max_n_asked", config.get("max_n", ""))),
            ("D forms", config.get("d_forms", "")),
            ("D alleles", facts.get("d_alleles", "")),
            ("numbers of P-nucleotides", facts.get("max_p", "")),
            ("models", str(facts.get("model_sha256", ""))[:12]),
        ):
            if str(setting):
                asked[name][str(setting)] = None
    differ = [f"{name} ({', '.join(settings)})" for name, settings in asked.items() if len(settings) > 1]
    words = "These values cannot be compared with each other: the files have different"
    return [f"{words} {'; '.join(differ)}."] if differ else []


def lengths(outputs: Outputs) -> Section:
    """How long the CDR3s are, in amino acids for files of amino acids."""
    figures = []
    for name, unit in (("lengths", "nucleotides"), ("lengths_aa", "amino acids")):
        members = [(survey, k) for survey, k in once(outputs) if survey.amino == (unit == "amino acids")]
        rows = list(shares(outputs, members, lambda survey: survey.lengths, ["length"]))
        if rows:
            title = f"CDR3 length, {unit}"
            keys = "sample group length rows share"
            table = Table.of(f"{name}_table", f"Junctions by {title}", keys, rows, length=title)
            most = table.peak("share", "{length} in {sample}, {share} %")
            caption = f"CDR3 length in {unit}, without the conserved ends of the junction. Most frequent: {most}."
            figures.append(Figure(name, "Lines", caption, charts.lines(table, "length", "share"), (table,)))
    return Section("length", "CDR3 length", figures=figures)


def junctions(outputs: Outputs, surveys: list[Survey], command: str) -> Section:
    """The junctions with the largest score, and amino-acid clonotypes: a table for each score that files have."""
    words = [
        "A junction is a V allele, a J allele and a CDR3: rows with the same are one. The CDR3 lacks the "
        "conserved Cys and Phe or Trp at the ends of a junction."
    ]
    scores = dict.fromkeys(survey.score for survey in surveys)
    tables = [
        _top(outputs, [survey for survey in surveys if survey.score == score], command, score) for score in scores
    ]
    clonotypes = [survey for survey in surveys if survey.clonotypes is not None]
    if len(clonotypes) < len(surveys):
        words.append(f"Amino-acid clonotypes of files with more than {MOST_ROWS:,} rows are left out.")
    for score in dict.fromkeys(map(listed_score, clonotypes)):
        tables.append(listed_clonotypes([survey for survey in clonotypes if listed_score(survey) == score], command))
    if clonotypes:
        words.append(
            "An amino-acid clonotype is a V gene, a J gene and the amino acids of a CDR3. Each nucleotide variant is a "
            "recombination of its own: clonotypes with many variants, in many samples, were made again and again."
        )
    return Section(f"{command}-junctions", f"{_NAMES[command]}: junctions and clonotypes", words, tables=tables)


def _top(outputs: Outputs, surveys: list[Survey], command: str, score: str) -> Table:
    """The junctions of files with this score, the largest first."""
    ranked = [(survey, row) for survey in surveys for row in survey.named(survey.top).to_pylist()]
    ranked.sort(key=lambda item: -item[1][score])
    rows = [
        {
            **row, "group": outputs.group(row["sample"]), "aa": _residues(row["cdr3"], survey),
            "cdr3": None if survey.amino else row["cdr3"],
        }
        for survey, row in ranked
    ]  # fmt: skip
    measures = dict.fromkeys((score, *(name for survey in surveys for name in survey.measures)))
    keys = ["sample", "group", "v_call", "j_call", "aa", "cdr3", "rows", *measures]
    caption = f"Junctions with the largest {VALUES.get(score, score)}: up to {TOP} of each sample"
    return Table.of(f"{command}_top_{score}", caption, keys, rows).first(len(rows), "the files")


def _residues(cdr3: str, survey: Survey) -> str:
    return cdr3 if survey.amino else "out of frame" if len(cdr3) % 3 else "".join(translate([cdr3])) or "(empty)"
