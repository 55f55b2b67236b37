"""The sections about the tables of findings, written here for `contamination`, `sharing`, `enrich` and `annotate`."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from hpcvdj.reports import charts
from hpcvdj.reports.associations import association, expansion
from hpcvdj.reports.elements import MOST_LISTED, Figure, PageTable, Section, shown
from hpcvdj.reports.files import EPITOPES, HITS
from hpcvdj.reports.outputs import TIMES, Finding, Outputs, hits_text
from hpcvdj.reports.parts import (
    ROW_TITLES,
    individuals_table,
    left_out_cells,
    number_of,
    quantiles_figure,
    rows_of_run,
    spaced,
)
from hpcvdj.results.facts import Facts

MOST_IN_MATRIX = 120
"""A heat map shows at most this many individuals: those with the largest values."""

MOST_NODES = 400
"""The network shows at most this many hits: those with the smallest p-values."""

MOST_SPREAD = 8
"""At most this many V genes have a colour in the network, and as many annotated samples a sentence."""


def finding_sections(outputs: Outputs) -> list[Section]:
    """The sections about all tables of findings."""
    of_files = {"contamination": contamination, "sharing": sharing, "associate": association, TIMES: expansion}
    sections = list[Section]()
    for command, section_of in of_files.items():
        findings = outputs.of(command)
        for number, finding in enumerate(findings, start=1):
            section = section_of(outputs, finding, number)
            if findings[1:]:
                section = replace(section, heading=f"{section.heading}: {outputs.labels[finding.path]}")
            sections.append(replace(section, anchor=f"{section.anchor}-{number}") if number > 1 else section)
    for command, of_all in (("enrich", enrichment), ("annotate", annotation)):
        if findings := outputs.of(command):
            sections.append(of_all(outputs, findings))
    return sections


def _pairs_figure(
    outputs: Outputs, finding: Finding, name: str, caption: str, table: tuple[str, str, str],
    cells: dict[str, list[list[Any]]],
) -> list[Figure]:  # fmt: skip
    """The heat map of the individuals of a finding, by group, if there are values.

    caption  of the figure; it ends with the pair of the largest value
    table    the name and the caption of the table, and the title of its column `value`
    cells    the matrices of the columns; that of `value` is drawn, and decides which individuals are kept
    """
    names = finding.names
    largest = [max((row[i] or 0 for i in range(len(names)) if i != k), default=0)
               for k, row in enumerate(cells["value"][: len(names)])]  # fmt: skip
    ranked = sorted(range(len(names)), key=lambda k: -largest[k])
    kept = sorted(ranked[:MOST_IN_MATRIX], key=lambda k: (outputs.group(names[k]) or "", k))
    rows = [
        {"individual_1": names[i], "individual_2": names[j], **{key: matrix[i][j] for key, matrix in cells.items()}}
        for i, j in itertools.permutations(kept, 2)
    ]
    pairs = PageTable.of(*table[:2], f"individual_1 individual_2 {' '.join(cells)}", rows, value=table[2])
    if not pairs.has("value") or not pairs.rows:
        return []
    if len(kept) < len(names):
        pairs = replace(pairs, note=f"The {len(kept)} of {len(names)} individuals with the largest values.")
    order = [names[k] for k in kept]
    chart = charts.heatmap(pairs, "individual_2", "individual_1", "value", (order, order))
    caption += pairs.peak("value", "{individual_1} with {individual_2}, {value}") + "."
    return [Figure(name, "Heat map", caption, chart, (pairs,), wide=len(order) > charts.NARROW)]


def contamination(outputs: Outputs, finding: Finding, number: int) -> Section:
    """The section about contamination: how often individuals share improbable junctions, and carry-over of clones."""
    facts, prefix = finding.facts, f"contamination_{number}"
    words = [
        f"Junctions with a generation probability below {shown(facts['max_pgen'])} are too improbable to be made "
        "twice. If two individuals share them, one sample has probably got into the other. The rate is the number of "
        "improbable junctions that both have, divided by the product of the numbers of improbable junctions of each.",
        pairs_standing_out(finding),
    ]
    figures = _pairs_figure(
        outputs, finding, f"{prefix}_heatmap",
        "Rates at which pairs of individuals share improbable junctions, in the order of groups; grey is 0. Largest: ",
        (f"{prefix}_rates", "Rates of pairs of individuals", "rate"),
        {"value": facts["rate"], "shared_low": facts["shared_low"]},
    )  # fmt: skip
    rows = [
        {"reads of the clone": size["reads"], "clones": size["clones"], "series": series, "rate": size.get(key)}
        for key, series in (("met_same_group", "same group"), ("met_other_group", "other group"))
        for size in facts.get("carry_over", [])
    ]
    keys = ["reads of the clone", "clones", "series", "rate"]
    carried = PageTable.of(f"{prefix}_carry_over", "Carry-over by clone size", keys, rows,
                           rate="share met in another individual", series="individuals of")  # fmt: skip
    # A logarithmic axis has no room for 0, of cohorts without copies.
    if any(number_of(row["rate"]) for row in rows):
        caption = carried.peak(
            "rate", "Share of clones with an improbable junction that are found in a given other individual, by reads. "
            "Largest: {rate} of clones with {reads of the clone} reads, {series}.",
        )  # fmt: skip
        figures.append(Figure(f"{prefix}_carried", "Lines", caption, charts.carry_over(carried), (carried,)))
    pairs = PageTable.of(
        f"{prefix}_pairs", "Pairs of individuals",
        "individual_1 individual_2 verdict low_1 low_2 shared_low expected_low common_source rate share_of_1 "
        "share_of_2 more_reads_1 more_reads_2 detectable third p_value q_value", finding.rows,
    )  # fmt: skip
    individuals = individuals_table(outputs, finding, f"{prefix}_individuals", "low zero",
                                    low="improbable junctions", zero="rows that the model cannot make")  # fmt: skip
    tables = [pairs.first(finding.total, outputs.labels[finding.path]), individuals]
    return Section("contamination", "Contamination", words, figures, tables)


def common_junctions(finding: Finding) -> int:
    """The number of improbable junctions of a common source."""
    common = finding.facts.get("common_source") or 0
    number: int = common.get("junctions", 0) if isinstance(common, dict) else common
    return number


def pairs_standing_out(finding: Finding) -> str:
    """Say which pairs share more than chance explains."""
    names = finding.names
    pairs, same = ([f"{names[i]} and {names[j]}" for i, j in finding.facts.get(key) or []]
                   for key in ("standing_out", "of_one_person"))  # fmt: skip
    total = len(names) * (len(names) - 1) // 2
    further = f" Samples of one person: {'; '.join(same[:5])}{'; …' if len(same) > 5 else ''}." if same else ""
    common = common_junctions(finding)
    further += f" {common:,} improbable junctions are of a common source." if common else ""
    lacking: int = finding.facts.get("no_power") or 0
    if lacking:
        further += f" In {lacking:,} of {total:,} pairs, copies would hardly be seen, for want of improbable junctions."
    if not pairs:
        return f"None of {total:,} pairs stands out.{further}"
    listed = "; ".join(pairs[:5]) + ("; …" if len(pairs) > 5 else "")
    return f"{len(pairs):,} of {total:,} pairs share more improbable junctions than chance explains: {listed}.{further}"


def is_given(facts: Facts) -> bool:
    """Whether q was given, not fitted."""
    return (facts.get("settings") or {}).get("q") is not None


def is_too_small(facts: Facts) -> bool:
    """Whether q was fitted to individuals of whom some contaminated each other, for want of others."""
    everybody = facts.get("q_individuals") == len(facts.get("individuals") or [])
    return everybody and not is_given(facts) and bool(facts.get("standing_out"))


def share_text(facts: Facts) -> str:
    """q, and what it is fitted to."""
    q = shown(number_of(facts["q"]))
    if is_given(facts):
        return f"which was given: {q}"
    chosen, everybody = facts.get("q_individuals"), len(facts.get("individuals") or [])
    of = f" {chosen:,} individuals, no two of whom contaminated each other" if chosen and chosen < everybody else ""
    copies = facts.get("copies_shared")
    text = f"fitted to{of or ' all sequences'}{f', without {copies:,} likely copies' if copies else ''}: {q}"
    # Facts of older versions have no interval.
    if interval := facts.get("q_interval"):
        text += " (95 % interval {} to {})".format(*map(shown, interval))
    if is_too_small(facts):
        text += "; too small, as some individuals contaminated each other, and the others share too little for a fit"
    return text


def sharing(outputs: Outputs, finding: Finding, number: int) -> Section:
    """The section about sharing: observed and expected sharing, the overlap of individuals, shared sequences."""
    facts, prefix = finding.facts, f"sharing_{number}"
    q = shown(number_of(facts["q"]))
    words = [
        f"A sequence ({facts['unit']}) that recombination makes often is found in many individuals without any common "
        f"antigen. The model {facts['model']} gives the number of individuals expected for each; q is the fraction of "
        f"sequences that survive selection, {share_text(facts)}.",
        "A hit is shared by more individuals than the model explains. The test does not say why: a common antigen, "
        "selection that the model lacks, and contamination all look the same.",
    ]
    figures = [*_spectrum(facts["spectrum"], q, prefix), *_pairs_figure(
        outputs, finding, f"{prefix}_pairs", "Sequences that pairs of individuals share. Most: ",
        (f"{prefix}_overlap", "Shared sequences of pairs of individuals", "shared sequences"),
        {"value": facts["overlap"]["shared"], "expected": facts["overlap"]["expected"]},
    )]  # fmt: skip
    of_groups = [name for name in (finding.rows or [{}])[0] if name.startswith("n_") and name != "n_individuals"]
    keys = ["v_call", "j_call", "junction_aa", "junction", "n_individuals", *of_groups, "individuals", "nt_variants",
            "max_duplicate_count", "pgen", "p_post", "expected_individuals", "effect", "p_value", "q_value", "same_nt",
            "likely_copy", "not_tested"]  # fmt: skip
    caption = "Shared sequences, the smallest p-value first"
    hits = PageTable.of(f"{prefix}_sequences", caption, keys, map(spaced, finding.rows))
    rows = [
        {"predictor": name, "area": area, "low": low, "high": high}
        for name, (area, low, high) in facts.get("auc", {}).items()
    ]
    caption = "How well sharing is predicted: area under the ROC curve (0.5 is chance)"
    areas = PageTable.of(
        f"{prefix}_auc", caption, "predictor area low high", rows, low="95 % interval, from", high="to"
    )
    individuals = individuals_table(outputs, finding, f"{prefix}_individuals")
    tables = [hits.first(finding.total, outputs.labels[finding.path]), *[areas] * bool(areas.rows), individuals]
    return Section("sharing", "Sharing", words, figures, tables)


def _spectrum(spectrum: list[dict[str, Any]], q: str, prefix: str) -> Iterator[Figure]:
    """Observed and expected numbers of sequences by the number of individuals, and their ratio."""
    series = {
        "observed": "observed", "expected": f"expected, q = {q}", "expected_q1": "expected without selection, q = 1",
    }  # fmt: skip
    rows = [
        {"n_individuals": point["individuals"], "series": title, "number": point.get(key),
         **({"low": point["low"], "high": point["high"]} if key == "expected" else {})}
        for key, title in series.items() for point in spectrum
    ]  # fmt: skip
    table = PageTable.of(f"{prefix}_spectrum", "Sequences by number of individuals",
                         "n_individuals series number low high", rows, number="sequences", low="from",
                         high="to")  # fmt: skip
    shared = [point for point in spectrum if point["individuals"] > 1 and point["expected"]]
    numbers = "; ".join(
        f"{point['individuals']}: {point['observed']:,} and {shown(number_of(point['expected']))}"
        for point in shared[:4]
    )
    caption = f"Sequences in exactly so many individuals, observed and expected with a 95 % band. {numbers}."
    yield Figure(f"{prefix}_sharing", "Points and lines", caption, charts.spectrum(table), (table,))
    if shared:
        rows = [
            {"n_individuals": point["individuals"], "ratio": point["observed"] / point["expected"],
             "low": point["low"] / point["expected"], "high": point["high"] / point["expected"]}
            for point in shared
        ]  # fmt: skip
        ratios = PageTable.of(f"{prefix}_ratios", "Observed over expected", "n_individuals ratio low high", rows,
                              ratio="observed / expected", low="band, from", high="band, to")  # fmt: skip
        words = "Observed over expected sequences; the dashed line is 1. Largest: {ratio} at {n_individuals}."
        caption = ratios.peak("ratio", words)
        yield Figure(f"{prefix}_ratio", "Points", caption, charts.ratio(ratios), (ratios,))


def enrichment(outputs: Outputs, findings: list[Finding]) -> Section:
    """The section about neighbourhoods: p-values, the network of hits, the clonotypes with neighbours."""
    words = [
        "Neighbours of a clonotype are junctions of the same V and J genes with the same amino acids, or with one "
        "residue exchanged. A hit has more of them than recombination explains, times the factor κ for selection. It "
        "is a neighbourhood, not proof for one receptor. On real data q-values are nominal: rank by them."
    ]
    listed = [{"sample": finding.sample, "group": outputs.group(finding.sample), **row}
              for finding in findings for row in finding.rows]  # fmt: skip
    listed.sort(key=lambda row: row["p_value"])
    hits = [row for row in listed if row.get("cluster") is not None]
    figures = [*quantiles_figure(outputs, findings, "qq", "clonotypes"), *_network(hits)]
    if len(figures) < 2 and not hits:
        words.append("There is no hit, so there is no network.")
    rows = [
        {**{key: finding.facts.get(key) for key in ("clonotypes", "tested", "hits", "clusters", "model")},
         "sample": finding.sample, "group": outputs.group(finding.sample),
         "kappa": number_of(finding.facts.get("kappa")),
         **left_out_cells(*rows_of_run([finding.facts]))}
        for finding in findings
    ]  # fmt: skip
    keys = "sample group clonotypes tested kappa hits clusters model rows_read rows left_out reason"
    summary = PageTable.of("enrich_samples", "Samples that were tested", keys, rows, **ROW_TITLES)
    table = PageTable.of(
        "enrich_clonotypes", "Clonotypes with neighbours, the smallest p-value first",
        "sample group v_call j_call junction_aa duplicate_count nt_variants neighbours expected control_neighbours "
        "class_size control_size pgen_aa pgen_ball p_productive_vj kappa p_value q_value cluster", listed[:MOST_LISTED],
    )  # fmt: skip
    tables = [table.first(sum(finding.total for finding in findings), _names_of(outputs, findings)), summary]
    return Section("enrich", "Neighbourhoods beyond chance", words, figures, tables)


def _names_of(outputs: Outputs, findings: list[Finding]) -> str:
    """The names of the files of findings: of the first three, if there are more."""
    return ", ".join(outputs.labels[finding.path] for finding in findings[:3]) + ("…" if len(findings) > 3 else "")


def annotation(outputs: Outputs, findings: list[Finding]) -> Section:
    """The section about known specificities: p-values, the hits, the epitopes, the samples."""
    words = [
        "A hit is a clonotype that is like a receptor of known specificity: of its genes, with its amino acids or one "
        "residue exchanged. Chance makes most hits, as probable sequences are common in people and in databases alike. "
        "The expected number is what recombination explains, times the factor κ for selection. Trust hits with a small "
        "false discovery rate. The number of hits of an antigen says nothing without the number that chance makes; "
        "beside it, an epitope can be called of whose hits none can be told from chance by itself.",
    ]
    for finding in findings[:MOST_SPREAD]:
        facts = finding.facts
        text = hits_text(facts["found"], facts["expected"], facts["kappa"]["source"])
        words.append(f"{finding.sample}: {text}.")
    if others := findings[MOST_SPREAD:]:
        words.append(f"The table of samples has these numbers of {len(others):,} more.")

    def ranked(of_files: Iterable[list[dict[str, Any]]], by: str) -> list[dict[str, Any]]:
        """The rows of the files of `findings`, the smallest value in the column `by` first."""
        named = [{"sample": finding.sample, "group": outputs.group(finding.sample), **row}
                 for finding, rows in zip(findings, of_files, strict=True) for row in rows]  # fmt: skip
        return sorted(named, key=lambda row: math.inf if row[by] is None else row[by])

    epitopes = ranked((finding.rows for finding in findings), "p_value")
    hits = ranked((finding.hits[0] for finding in findings), "expected")
    samples = []
    for finding in findings:
        facts, decoys = finding.facts, finding.facts.get("decoys") or {}
        samples.append({
            "sample": finding.sample, "group": outputs.group(finding.sample),
            "kappa": number_of(facts["kappa"]["value"]), "kappa from": facts["kappa"]["source"],
            "decoys": decoys.get("epitopes"), "decoys called": decoys.get("called"),
            **{key: facts.get(key) for key in ("clonotypes", "found", "expected", "dispersion", "epitopes_called",
                                               "hits_called", "model")},
        })  # fmt: skip
    keys = ["sample", "group", "clonotypes", "found", "expected", "kappa", "kappa from", "dispersion", "decoys",
            "decoys called", "epitopes_called", "hits_called", "model"]  # fmt: skip
    summary = PageTable.of("annotate_samples", "Samples that were annotated", keys, samples, expected="by chance",
                           decoys="decoy epitopes")  # fmt: skip
    of_epitopes = PageTable.of(
        "annotate_epitopes", "Epitopes, the smallest p-value first",
        "sample group epitope antigen organism mhc records decoy found expected ratio ratio_low ratio_high p_value "
        "q_value precursor_frequency", epitopes, ratio="hits / expected",
    )  # fmt: skip
    of_hits = PageTable.of(
        "annotate_hits", "Hits, those that chance hardly makes first",
        "sample group v_call j_call junction_aa duplicate_count nt_variants epitope antigen organism mhc decoy record "
        "distance reference pgen_aa p_post expected fdr", hits, expected="hits of the record by chance",
    )  # fmt: skip
    paths = _names_of(outputs, findings)
    tables = [of_hits.first(sum(finding.hits[1] for finding in findings), paths.replace(EPITOPES, HITS)),
              of_epitopes.first(sum(finding.total for finding in findings), paths), summary]  # fmt: skip
    figures = list(quantiles_figure(outputs, findings, "annotate_qq", "epitopes"))
    return Section("annotate", "Known specificities", words, figures, tables)


def _network(listed: list[dict[str, Any]]) -> Iterator[Figure]:
    """The network of the hits of all samples.

    listed  the hits, the smallest p-value first

    Lines connect hits of the same genes that differ in at most one residue.
    """
    import networkx as nx

    if not listed:
        return
    hits = [{**row} for row in listed[:MOST_NODES]]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(hits)))
    balls = defaultdict(list)
    for k, row in enumerate(hits):
        text = row["junction_aa"]
        for position in range(len(text)):
            balls[row["v_call"], row["j_call"], text[:position], text[position + 1 :]].append(k)
    for members in balls.values():
        graph.add_edges_from(itertools.combinations(members, 2))
    positions = _layout(graph)
    genes = [str(row["v_call"] or "–") for row in hits]
    common = [gene for gene, _ in Counter(genes).most_common(MOST_SPREAD)]
    colours = [*common, "other"]
    for k, row in enumerate(hits):
        expected = row.get("expected")
        if expected is None:  # a control in place of a model
            expected = row["control_neighbours"] * (row["class_size"] - 1) / max(1, row["control_size"])
        row |= {"x": positions[k][0], "y": positions[k][1], "colour": genes[k] if genes[k] in common else "other"}
        row["excess"] = row["neighbours"] / max(float(expected), 1e-6)
    keys = "sample group v_call j_call junction_aa neighbours expected excess p_value q_value cluster x y colour"
    by_colour = sorted(hits, key=lambda row: colours.index(row["colour"]))
    nodes = PageTable.of("network_nodes", "Hits in the network", keys, by_colour, excess="neighbours / expected")
    edges = [
        {"sample_1": left["sample"], "junction_aa_1": left["junction_aa"], "x": left["x"], "y": left["y"],
         "sample_2": right["sample"], "junction_aa_2": right["junction_aa"], "x2": right["x"], "y2": right["y"]}
        for left, right in ((hits[start], hits[end]) for start, end in graph.edges)
    ]  # fmt: skip
    keys = "sample_1 junction_aa_1 sample_2 junction_aa_2 x y x2 y2"
    lines = PageTable.of("network_edges", "Pairs of neighbours in the network", keys, edges)
    parts = sorted(nx.connected_components(graph), key=len)
    largest = hits[min(parts[-1])]["junction_aa"]
    caption = (
        f"{len(hits):,} of {len(listed):,} hits, {graph.number_of_edges():,} pairs of neighbours, {len(parts):,} "
        f"connected groups. The largest group has {len(parts[-1]):,} clonotypes, among them {largest}. The larger the "
        "circle, the more neighbours the clonotype has over the number expected."
    )
    yield Figure("network", "Network", caption, charts.network(nodes, lines), (nodes, lines), wide=True)


def _layout(graph: Any) -> dict[int, tuple[float, float]]:
    """The positions of nodes: each connected group has a square, and the squares form rows, the largest first."""
    import networkx as nx

    positions, left, top, height = {}, 0.0, 0.0, 0.0
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    width = 2.6 * math.sqrt(sum(len(part) for part in parts)) + 2
    for part in parts:
        radius = math.sqrt(len(part)) - 0.5
        if left and left + 2 * radius > width:
            left, top, height = 0.0, top + height + 0.6, 0.0
        centre = left + radius, top + radius
        laid_out = nx.spring_layout(graph.subgraph(sorted(part)), seed=1, scale=radius, center=centre)
        positions.update({node: (float(x), float(y)) for node, (x, y) in laid_out.items()})
        left, height = left + 2 * radius + 0.6, max(height, 2 * radius)
    return positions
