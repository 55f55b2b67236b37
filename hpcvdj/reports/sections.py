"""The sections about files of `count` and `pgen`: rows left out, genes, values, lengths, junctions."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.germline_import.genes import natural_key
from hpcvdj.recombination.alphabet import translate
from hpcvdj.reports import charts
from hpcvdj.reports.clonotypes import listed_clonotypes
from hpcvdj.reports.elements import Figure, PageTable, Section
from hpcvdj.reports.outputs import Outputs
from hpcvdj.reports.survey import MOST_ROWS, TOP, Survey, merged

MOST_SERIES = 60
"""If there are more samples than this, a figure has a line for each group, or one for all samples."""

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


Sample = tuple[Survey, int]
"""A sample of a file: the file, and the number of the sample in it."""


def sample_sections(outputs: Outputs) -> list[Section]:
    """The sections of all files of `count` and `pgen`."""
    if not outputs.surveys:
        return []
    sections = [left_out(outputs), genes(outputs)]
    for command in _NAMES:
        if surveys := [survey for survey in outputs.surveys if survey.command == command]:
            sections += [values(outputs, surveys, command), junctions(outputs, surveys, command)]
    return [*sections, lengths(outputs)]


def once(outputs: Outputs) -> Iterator[Sample]:
    """Each sample once, from the first of its files.

    Samples of one name are the same, and samples of one individual whose files are of the same table and locus.
    """
    seen: set[Any] = set()
    for survey in outputs.surveys:
        for k, name in enumerate(survey.samples):
            digest = survey.facts.get("junctions_sha256")
            sample = (outputs.individual(name), digest, survey.loci(k)) if digest else name
            if not seen & {name, sample}:
                yield survey, k
            seen |= {name, sample}


def _series(outputs: Outputs, samples: Iterable[Sample]) -> list[tuple[str, str | None, list[Sample]]]:
    """The lines of a figure, (name, group, samples): the samples by group, or groups of more than `MOST_SERIES`."""
    grouped = [(outputs.group(survey.samples[k]), (survey, k)) for survey, k in samples if survey.counted[k]]
    grouped.sort(key=lambda item: item[0] or "")
    if len(grouped) <= MOST_SERIES:
        return [(survey.samples[k], group, [(survey, k)]) for group, (survey, k) in grouped]
    groups = defaultdict[str | None, list[Sample]](list)
    for group, sample in grouped:
        groups[group].append(sample)
    return [(group or "samples without a group", group, members) for group, members in groups.items()]


def left_out(outputs: Outputs) -> Section:
    """The section about rows without a value, by reason."""
    rows = [
        {"sample": survey.samples[0] if len(survey.samples) == 1 else f"all of {outputs.labels[survey.path]}",
         "command": survey.command, "reason": reason, "rows": number,
         "of_rows": 100 * number / max(1, int(survey.rows_read.sum())), "option": option, "examples": examples}
        for survey in outputs.surveys for reason, number, option, examples in survey.excluded
    ]  # fmt: skip
    table = PageTable.of(
        "left_out_table", "Rows left out, by reason", "sample command reason rows of_rows option examples", rows
    )
    if not table.rows:
        return Section("left-out", "Rows left out", ["No row of count or pgen was left out."])
    words = ["The results list each row that was left out, with the reason: `hpcvdj export` writes them."]
    return Section("left-out", "Rows left out", words, tables=[table.first(len(table.rows), "the results")])


def shares(
    outputs: Outputs, samples: Iterable[Sample], tables: Callable[[Survey], pa.Table], keys: list[str]
) -> Iterator[dict[str, Any]]:
    """The rows of a tally for each line of a figure: `sample` (the line), `group`, keys, `rows`, `share` in percent.

    tables  returns the tally of a file
    """
    for name, group, members in _series(outputs, samples):
        parts = [tables(survey).filter(pc.field("sample") == k).select([*keys, "rows"]) for survey, k in members]
        table = merged(parts, keys).sort_by([(key, "ascending") for key in keys])
        total = max(1, sum(int(survey.counted[k]) for survey, k in members))
        for row in table.to_pylist():
            yield {"sample": name, "group": group, **row, "share": 100 * row["rows"] / total}


def genes(outputs: Outputs) -> Section:
    """The section about genes: the V–J pairs of a single sample, or the V genes and the J genes of several."""
    members = list(once(outputs))
    figures = []
    of_segment = {key: list(shares(outputs, members, lambda survey: survey.usage, [key])) for key in "vj"}
    # Bare lists of CDR3s have no genes.
    of_segment = {key: rows for key, rows in of_segment.items() if any(row[key] for row in rows)}
    if not of_segment:
        return Section("genes", "V and J genes", ["The genes of no row are known."])
    if len(members) == 1 and len(of_segment) == 2:
        rows = list(shares(outputs, members, lambda survey: survey.usage, ["v", "j"]))
        table = PageTable.of("pairs_table", "V–J pairs", "v j rows share", sorted(rows, key=lambda row: -row["rows"]))
        j, v = (sorted({row[key] for row in rows}, key=natural_key) for key in "jv")
        most = table.peak("share", "{v} with {j}, {share} %")
        caption = "Junctions by V and J gene, in percent." + (f" The most frequent pair: {most}." if most else "")
        chart = charts.heatmap(table, "j", "v", "share", (j, v))
        figures.append(Figure("vj", "Heat map", caption, chart, (table,), wide=len(j) > charts.NARROW))
    else:
        for key, rows in of_segment.items():
            name = key.upper()
            table = PageTable.of(f"{key}_table", f"{name} genes by sample", f"sample group {key} rows share", rows)
            order = sorted({row[key] for row in rows}, key=natural_key)
            samples = list(dict.fromkeys(row["sample"] for row in rows))
            most = table.peak("share", f"{{{key}}} in {{sample}}, {{share}} %")
            caption = f"{name} genes of each sample, in percent. Largest share: {most}."
            chart = charts.heatmap(table, key, "sample", "share", (order, samples))
            figures.append(Figure(f"{key}_genes", "Heat map", caption, chart, (table,), wide=True))
    words = ["All alleles of a gene are taken together. A missing field has no junction."]
    return Section("genes", "V and J genes", words, figures)


def doublings(survey: Survey, measure: str) -> pa.Table:
    """The rows of each bin of a measure, with the power of two, `low`, from which its values are; without zeros."""
    bins = survey.values.filter((pc.field("measure") == measure) & (pc.field("bin") > 0))
    power = pc.power(2.0, pc.subtract(pc.shift_right(bins["bin"], 7), 1023))
    return bins.select(["sample", "rows"]).append_column("low", power)


def values(outputs: Outputs, surveys: list[Survey], command: str) -> Section:
    """The section about the distributions of the values of junctions."""
    members = [(survey, k) for survey in surveys for k in range(len(survey.samples))]
    figures = []
    for measure, title in VALUES.items():
        if not all(measure in survey.measures for survey in surveys):
            continue
        rows = list(shares(outputs, members, partial(doublings, measure=measure), ["low"]))
        keys = "sample group low rows share"
        table = PageTable.of(f"{measure}_values", f"Junctions by {title}", keys, rows, low=f"{title}, from")
        if rows:
            most = table.peak("share", "{share} % of the junctions of {sample} from {low}")
            caption = (
                f"{title.capitalize()}; each point is a doubling. Most: {most}. Junctions with the value 0 are in the "
                "table of samples."
            )
            chart = charts.lines(table, "low", "share", log_x=True)
            figures.append(Figure(f"{measure}_distribution", "Distribution", caption, chart, (table,)))
    figures += _reached(outputs, [(survey, k) for survey, k in members if survey.reached is not None])
    return Section(command, _NAMES[command], [_WORDS[command], *_different(outputs, surveys)], figures)


def _reached(outputs: Outputs, members: list[Sample]) -> Iterator[Figure]:
    """The share of junctions that have a pathway, by the largest number of n-nucleotides."""
    rows: list[dict[str, Any]] = []
    for row in shares(outputs, members, lambda survey: survey.reached, ["needs"]):
        before = rows[-1]["reached"] if rows and rows[-1]["sample"] == row["sample"] else 0.0
        if row["needs"] >= 0:
            rows.append({**row, "n": row["needs"], "reached": before + row["share"]})
    titles = {"reached": "junctions with a pathway, %", "rows": "junctions that need so many"}
    caption = "Junctions with a pathway, by number of n-nucleotides"
    table = PageTable.of("reached_table", caption, "sample group n rows reached", rows, **titles)
    if rows:
        words = (
            "Junctions that have a pathway with at most so many n-nucleotides. Most: {reached} % at {n} in {sample}."
        )
        caption = table.peak("reached", words)
        yield Figure("reached", "Lines", caption, charts.lines(table, "n", "reached"), (table,))


def _different(outputs: Outputs, surveys: list[Survey]) -> list[str]:
    """A warning if the values of these files cannot be compared."""
    settings = defaultdict[str, dict[str, str]](dict)
    for survey in surveys:
        facts, config = survey.facts, survey.facts.get("config", {})
        for name, setting in (
            ("largest n-lengths", config.get("max_n_asked", config.get("max_n", ""))),
            ("D forms", config.get("d_forms", "")),
            ("D alleles", facts.get("d_alleles", "")),
            ("numbers of P-nucleotides", facts.get("max_p", "")),
            ("models", outputs.models.get(survey.path, "")),
        ):
            if str(setting):
                settings[name][str(setting)] = str(setting)
        if germline := str(facts.get("germline_path") or ""):
            # Copies of a table are the same.
            settings["germline tables"][str(facts.get("germline_sha256") or germline)] = germline
    differ = [f"{name} ({', '.join(texts.values())})" for name, texts in settings.items() if len(texts) > 1]
    words = "These values cannot be compared with each other: the files have different"
    return [f"{words} {'; '.join(differ)}."] if differ else []


def lengths(outputs: Outputs) -> Section:
    """The section about the lengths of CDR3s, in amino acids for files of amino acids."""
    figures = []
    for name, unit in (("lengths", "nucleotides"), ("lengths_aa", "amino acids")):
        members = [(survey, k) for survey, k in once(outputs) if survey.amino == (unit == "amino acids")]
        rows = list(shares(outputs, members, lambda survey: survey.lengths, ["length"]))
        if rows:
            title = f"CDR3 length, {unit}"
            keys = "sample group length rows share"
            table = PageTable.of(f"{name}_table", f"Junctions by {title}", keys, rows, length=title)
            most = table.peak("share", "{length} in {sample}, {share} %")
            caption = f"CDR3 length in {unit}, without the conserved ends of the junction. Most frequent: {most}."
            figures.append(Figure(name, "Lines", caption, charts.lines(table, "length", "share"), (table,)))
    return Section("length", "CDR3 length", figures=figures)


def junctions(outputs: Outputs, surveys: list[Survey], command: str) -> Section:
    """The section about junctions with the largest score and amino-acid clonotypes: tables for each score of files."""
    words = [
        "A junction is a V allele, a J allele and a CDR3: rows with the same are one. The CDR3 lacks the "
        "conserved Cys and Phe or Trp at the ends of a junction."
    ]
    tables = [
        _top(outputs, [survey for survey in surveys if survey.score == score], command, score)
        for score in dict.fromkeys(survey.score for survey in surveys)
    ]
    scores = dict.fromkeys(survey.listed for survey in surveys)
    if "" in scores:
        words.append(f"Amino-acid clonotypes of files with more than {MOST_ROWS:,} rows are left out.")
    listed = [(outputs.clonotypes[command, score], score) for score in scores if score]
    tables += [listed_clonotypes(found, command, score) for found, score in listed]
    if listed:
        words.append(
            "An amino-acid clonotype is a V gene, a J gene and the amino acids of a CDR3. Each nucleotide variant is a "
            "recombination of its own: clonotypes with many variants, in many samples, were made again and again."
        )
    return Section(f"{command}-junctions", f"{_NAMES[command]}: junctions and clonotypes", words, tables=tables)


def _top(outputs: Outputs, surveys: list[Survey], command: str, score: str) -> PageTable:
    """The junctions of files that have this score, the largest first."""
    ranked = [
        (survey, {**row, "sample": survey.samples[row["sample"]]})
        for survey in surveys for row in survey.top.to_pylist()
    ]  # fmt: skip
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
    return PageTable.of(f"{command}_top_{score}", caption, keys, rows).first(len(rows), "the files")


def _residues(cdr3: str, survey: Survey) -> str:
    """The amino acids of a CDR3, or why there are none."""
    return cdr3 if survey.amino else "out of frame" if len(cdr3) % 3 else "".join(translate([cdr3])) or "(empty)"
