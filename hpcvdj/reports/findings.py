"""The sections about what `contamination`, `sharing`, `enrich` and `annotate` found, and all others."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hpcvdj.reports import charts
from hpcvdj.reports.associations import association, expansion
from hpcvdj.reports.elements import Figure, Section, Table, shown
from hpcvdj.reports.outputs import EPITOPES, HITS, TIMES, Finding, Outputs, hits_text
from hpcvdj.reports.parts import anchor, individuals_table, number_of, quantiles_figure, spaced

MOST_IN_MATRIX = 120
"""A heat map of individuals shows those with the largest values, if there are more."""

MOST_NODES = 400
"""Hits in the network, by p-value."""

MOST_SPREAD = 8
"""V genes that have a colour in the network."""


def finding_sections(outputs: Outputs) -> list[Section]:
    """The sections of all tables of findings."""
    sections = []
    for command, section in (("contamination", contamination), ("sharing", sharing), ("associate", association),
                             (TIMES, expansion)):  # fmt: skip
        for k, finding in enumerate(outputs.of(command), start=1):
            sections.append(section(outputs, finding, k))
    for command, of_all in (("enrich", enrichment), ("annotate", annotation)):
        if findings := outputs.of(command):
            sections.append(of_all(outputs, findings))
    return sections


def _matrix(
    outputs: Outputs, finding: Finding, name: str, caption: str, cells: dict[str, list[list[Any]]], title: str
) -> tuple[Table, list[str]]:
    """A table with a row for each pair of individuals, both ways round, by group; and the order of the individuals.

    cells  by column; `value`, of this title, says which individuals have the largest values
    """
    names = [individual["name"] for individual in finding.individuals]
    largest = [max((row[i] or 0 for i in range(len(names)) if i != k), default=0)
               for k, row in enumerate(cells["value"][: len(names)])]  # fmt: skip
    ranked = sorted(range(len(names)), key=lambda k: -largest[k])
    kept = sorted(ranked[:MOST_IN_MATRIX], key=lambda k: (outputs.group(names[k]) or "", k))
    rows = [
        {"individual_1": names[i], "individual_2": names[j], **{key: matrix[i][j] for key, matrix in cells.items()}}
        for i, j in itertools.permutations(kept, 2)
    ]
    table = Table.of(name, caption, f"individual_1 individual_2 {' '.join(cells)}", rows, value=title)
    if len(kept) < len(names):
        table = replace(table, note=f"The {len(kept)} of {len(names)} individuals with the largest values.")
    return table, [names[k] for k in kept]


def _of_pairs(name: str, table: Table, order: list[str], caption: str) -> list[Figure]:
    """The heat map of a table of `_matrix`, if it has values."""
    if not table.has("value") or not table.rows:
        return []
    chart = charts.heatmap(table, "individual_2", "individual_1", "value", (order, order))
    caption += table.peak("value", "{individual_1} with {individual_2}, {value}") + "."
    return [Figure(name, "Heat map", caption, chart, (table,), wide=len(order) > charts.NARROW)]


def contamination(outputs: Outputs, finding: Finding, number: int) -> Section:
    """Figure 2: the rates at which individuals share improbable junctions, and carry-over by clone size."""
    facts, prefix = finding.facts, f"contamination_{number}"
    words = [
        f"Junctions with a generation probability below {shown(facts['max_pgen'])} are too improbable to be made "
        "twice. If two individuals share them, one sample has probably got into the other. The rate is the number of "
        "improbable junctions that both have, divided by the product of the numbers of improbable junctions of each.",
        pairs_standing_out(finding),
    ]
    cells = {"value": facts["rate"], "shared_low": facts["shared_low"]}
    table, order = _matrix(outputs, finding, f"{prefix}_rates", "Rates of pairs of individuals", cells, "rate")
    caption = (
        "Rates at which pairs of individuals share improbable junctions, in the order of groups; grey is 0. Largest: "
    )
    figures = _of_pairs(f"{prefix}_heatmap", table, order, caption)
    rows = [
        {"reads of the clone": size["reads"], "clones": size["clones"], "series": series, "rate": size.get(key)}
        for key, series in (("met_same_group", "same group"), ("met_other_group", "other group"))
        for size in facts.get("carry_over", [])
    ]
    keys = ["reads of the clone", "clones", "series", "rate"]
    titles = {"rate": "share met in another individual", "series": "individuals of"}
    carried = Table.of(f"{prefix}_carry_over", "Carry-over by clone size", keys, rows, **titles)
    if carried.has("rate") and carried.rows:
        most = carried.peak("rate", "{rate} of clones with {reads of the clone} reads, {series}")
        caption = (
            "Share of clones with an improbable junction that are found in a given other individual, by reads. "
            f"Largest: {most}."
        )
        figures.append(Figure(f"{prefix}_carried", "Lines", caption, charts.carry_over(carried), (carried,)))
    keys_of_pairs = (
        "individual_1 individual_2 verdict low_1 low_2 shared_low expected_low common_source rate share_of_1 "
        "share_of_2 more_reads_1 more_reads_2 detectable p_value q_value"
    )
    pairs = Table.of(f"{prefix}_pairs", "Pairs of individuals", keys_of_pairs, finding.rows)
    titles = {"rows": "rows", "low": "improbable junctions", "zero": "rows that the model cannot make"}
    individuals = individuals_table(outputs, finding, f"{prefix}_individuals", "rows low zero", **titles)
    tables = [pairs.first(finding.total, finding.path.name), individuals]
    return Section(anchor("contamination", number), "Contamination", words, figures, tables)


def pairs_standing_out(finding: Finding) -> str:
    """The pairs that share more than chance explains, in a sentence."""
    names = finding.names
    pairs = [f"{names[i]} and {names[j]}" for i, j in finding.facts.get("standing_out") or []]
    total = len(names) * (len(names) - 1) // 2
    same = [f"{names[i]} and {names[j]}" for i, j in finding.facts.get("of_one_person", [])]
    further = f" Samples of one person: {'; '.join(same[:5])}{'; …' if len(same) > 5 else ''}." if same else ""
    common = finding.facts.get("common_source") or 0
    common = common.get("junctions", 0) if isinstance(common, dict) else common
    further += f" {common:,} improbable junctions are of a common source." if common else ""
    if not pairs:
        return f"None of {total:,} pairs stands out.{further}"
    listed = "; ".join(pairs[:5]) + ("; …" if len(pairs) > 5 else "")
    return f"{len(pairs):,} of {total:,} pairs share more improbable junctions than chance explains: {listed}.{further}"


def sharing(outputs: Outputs, finding: Finding, number: int) -> Section:
    """Figure 1: observed and expected sharing; the overlap of individuals; sequences shared beyond expectation."""
    facts, prefix = finding.facts, f"sharing_{number}"
    q = shown(number_of(facts["q"]))
    words = [
        f"A sequence ({facts['unit']}) that recombination makes often is found in many individuals without any common "
        f"antigen. The model {facts['model']} gives the number of individuals expected for each; q is the fraction of "
        f"sequences that survive selection, fitted to all sequences: {q}.",
        "A hit is shared by more individuals than the model explains. The test does not say why: a common antigen, "
        "selection that the model lacks, and contamination all look the same.",
    ]
    cells = {"value": facts["overlap"]["shared"], "expected": facts["overlap"]["expected"]}
    caption = "Shared sequences of pairs of individuals"
    overlap, order = _matrix(outputs, finding, f"{prefix}_overlap", caption, cells, "shared sequences")
    caption = "Sequences that pairs of individuals share. Most: "
    figures = [*_spectrum(facts["spectrum"], q, prefix), *_of_pairs(f"{prefix}_pairs", overlap, order, caption)]
    of_groups = [name for name in (finding.rows or [{}])[0] if name.startswith("n_") and name != "n_individuals"]
    first, last = (
        "v_call j_call junction_aa junction n_individuals",
        "individuals nt_variants max_duplicate_count pgen p_post expected_individuals effect p_value q_value "
        "same_nt likely_copy not_tested",
    )
    keys = [*first.split(), *of_groups, *last.split()]
    caption = "Shared sequences, the smallest p-value first"
    hits = Table.of(f"{prefix}_sequences", caption, keys, map(spaced, finding.rows))
    rows = [
        {"predictor": name, "area": area, "low": low, "high": high}
        for name, (area, low, high) in facts.get("auc", {}).items()
    ]
    caption = "How well sharing is predicted: area under the ROC curve (0.5 is chance)"
    titles = {"low": "95 % interval, from", "high": "to"}
    areas = Table.of(f"{prefix}_auc", caption, "predictor area low high", rows, **titles)
    individuals = individuals_table(outputs, finding, f"{prefix}_individuals", "rows left_out reason", rows="rows used")
    tables = [hits.first(finding.total, finding.path.name), *[areas] * bool(areas.rows), individuals]
    return Section(anchor("sharing", number), "Sharing", words, figures, tables)


def _spectrum(spectrum: list[dict[str, Any]], q: str, prefix: str) -> Iterator[Figure]:
    """Observed and expected numbers of sequences by the number of individuals, and their ratio."""
    series = {
        "observed": "observed", "expected": f"expected, q = {q}", "expected_q1": "expected without selection, q = 1",
    }  # fmt: skip
    rows = [
        {"n_individuals": each["individuals"], "series": title, "number": each.get(key),
         **({"low": each["low"], "high": each["high"]} if key == "expected" else {})}
        for key, title in series.items() for each in spectrum
    ]  # fmt: skip
    keys, titles = "n_individuals series number low high", {"number": "sequences", "low": "from", "high": "to"}
    table = Table.of(f"{prefix}_spectrum", "Sequences by number of individuals", keys, rows, **titles)
    shared = [each for each in spectrum if each["individuals"] > 1 and each["expected"]]
    numbers = "; ".join(
        f"{each['individuals']}: {each['observed']:,} and {shown(number_of(each['expected']))}" for each in shared[:4]
    )
    caption = f"Sequences in exactly so many individuals, observed and expected with a 95 % band. {numbers}."
    yield Figure(f"{prefix}_sharing", "Points and lines", caption, charts.spectrum(table), (table,))
    if shared:
        rows = [
            {"n_individuals": each["individuals"],
             "ratio": each["observed"] / each["expected"], "low": each["low"] / each["expected"],
             "high": each["high"] / each["expected"]}
            for each in shared
        ]  # fmt: skip
        titles = {"ratio": "observed / expected", "low": "band, from", "high": "band, to"}
        ratios = Table.of(f"{prefix}_ratios", "Observed over expected", "n_individuals ratio low high", rows, **titles)
        most = ratios.peak("ratio", "{ratio} at {n_individuals}")
        caption = f"Observed over expected sequences; the dashed line is 1. Largest: {most}."
        yield Figure(f"{prefix}_ratio", "Points", caption, charts.ratio(ratios), (ratios,))


def enrichment(outputs: Outputs, findings: list[Finding]) -> Section:
    """Figure 3: p-values against what is expected without any effect, the network of hits, and the clonotypes."""
    words = [
        "Neighbours of a clonotype are junctions of the same V and J genes with the same amino acids, or with one "
        "residue exchanged. A hit has more of them than recombination explains, times the factor κ for selection. It "
        "is a neighbourhood, not proof for one receptor. On real data q-values are nominal: rank by them."
    ]
    listed = [
        {"sample": finding.sample, "group": outputs.group(finding.sample), **row}
        for finding in findings
        for row in finding.rows
    ]
    listed.sort(key=lambda row: row["p_value"])
    hits = [row for row in listed if row.get("cluster") is not None]
    figures = [*quantiles_figure(outputs, findings, "qq", "clonotypes"), *_network(hits)]
    if len(figures) < 2 and not hits:
        words.append("There is no hit, so there is no network.")
    rows = [
        {**{key: finding.facts.get(key) for key in ("clonotypes", "tested", "hits", "clusters", "model")},
         "sample": finding.sample, "group": outputs.group(finding.sample),
         "kappa": number_of(finding.facts.get("kappa"))}
        for finding in findings
    ]  # fmt: skip
    keys = "sample group clonotypes tested kappa hits clusters model"
    summary = Table.of("enrich_samples", "Samples that were tested", keys, rows, kappa="κ")
    keys = (
        "sample group v_call j_call junction_aa duplicate_count nt_variants neighbours expected control_neighbours "
        "class_size control_size pgen_aa pgen_ball p_productive_vj kappa p_value q_value cluster"
    )
    caption = "Clonotypes with neighbours, the smallest p-value first"
    table = Table.of("enrich_clonotypes", caption, keys, listed, kappa="κ")
    paths = ", ".join(finding.path.name for finding in findings[:3]) + ("…" if len(findings) > 3 else "")
    tables = [table.first(sum(finding.total for finding in findings), paths), summary]
    return Section("enrich", "Neighbourhoods beyond chance", words, figures, tables)


def annotation(outputs: Outputs, findings: list[Finding]) -> Section:
    """P-values against what is expected by chance, the samples, their epitopes, and the hits."""
    words = [
        "A hit is a clonotype that is like a receptor of known specificity: of its genes, with its amino acids or one "
        "residue exchanged. Chance makes most hits, as probable sequences are common in people and in databases alike. "
        "The expected number is what recombination explains, times the factor κ for selection. Trust hits with a small "
        "false discovery rate; the number of hits of an antigen says nothing by itself.",
        *(f"{finding.sample}: {chance_of_hits(finding)}" for finding in findings[:MOST_SPREAD]),
    ]

    def listed(rows: Iterator[tuple[Finding, dict[str, Any]]], by: str) -> list[dict[str, Any]]:
        named = [{"sample": own.sample, "group": outputs.group(own.sample), **row} for own, row in rows]
        return sorted(named, key=lambda row: math.inf if row[by] is None else row[by])

    epitopes = listed(((own, row) for own in findings for row in own.rows), "p_value")
    hits = listed(((own, row) for own in findings for row in own.hits[0]), "expected")
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
    titles = {"found": "hits", "epitopes_called": "epitopes called", "hits_called": "hits called", "kappa": "κ",
              "kappa from": "κ from", "expected": "by chance", "decoys": "decoy epitopes"}  # fmt: skip
    summary = Table.of("annotate_samples", "Samples that were annotated", keys, samples, **titles)
    caption = "Epitopes, the smallest p-value first"
    keys_of_epitopes = (
        "sample group epitope antigen organism mhc records decoy found expected ratio ratio_low ratio_high p_value "
        "q_value precursor_frequency"
    )
    titles = {"found": "hits", "ratio": "hits / expected", "ratio_low": "95 % interval, from", "ratio_high": "to",
              "precursor_frequency": "precursor frequency"}  # fmt: skip
    of_epitopes = Table.of("annotate_epitopes", caption, keys_of_epitopes, epitopes, **titles)
    keys_of_hits = (
        "sample group v_call j_call junction_aa duplicate_count nt_variants epitope antigen organism mhc decoy record "
        "distance reference pgen_aa p_post expected fdr"
    )
    titles = {"record": "nearest record", "distance": "residues exchanged", "fdr": "false discovery rate",
              "expected": "hits of the record by chance"}  # fmt: skip
    caption = "Hits, those that chance hardly makes first"
    of_hits = Table.of("annotate_hits", caption, keys_of_hits, hits, **titles)
    paths = ", ".join(finding.path.name for finding in findings[:3]) + ("…" if len(findings) > 3 else "")
    tables = [of_hits.first(sum(own.hits[1] for own in findings), paths.replace(EPITOPES, HITS)),
              of_epitopes.first(sum(own.total for own in findings), paths), summary]  # fmt: skip
    figures = list(quantiles_figure(outputs, findings, "annotate_qq", "epitopes"))
    return Section("annotate", "Known specificities", words, figures, tables)


def chance_of_hits(finding: Finding) -> str:
    """How many of a sample's hits are expected by chance, in a sentence."""
    facts = finding.facts
    return f"{hits_text(facts['found'], facts['expected'], facts['kappa']['source'])}."


def _network(listed: list[dict[str, Any]]) -> Iterator[Figure]:
    """The hits of all samples, lines between those of the same genes that differ in at most one residue.

    listed  the smallest p-value first
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
        for residue in range(len(text)):
            balls[row["v_call"], row["j_call"], text[:residue], text[residue + 1 :]].append(k)
    for members in balls.values():
        graph.add_edges_from(itertools.combinations(members, 2))
    positions = _layout(graph)
    genes = [str(row["v_call"] or "–") for row in hits]
    common = [gene for gene, _ in Counter(genes).most_common(MOST_SPREAD)]
    order = {name: k for k, name in enumerate([*common, "other"])}
    for k, row in enumerate(hits):
        against = row.get("expected")
        if against is None:  # a control in place of a model
            against = row["control_neighbours"] * (row["class_size"] - 1) / max(1, row["control_size"])
        row |= {"x": positions[k][0], "y": positions[k][1], "colour": genes[k] if genes[k] in common else "other"}
        row["excess"] = row["neighbours"] / max(float(against), 1e-6)
    keys = "sample group v_call j_call junction_aa neighbours expected excess p_value q_value cluster x y colour"
    by_colour = sorted(hits, key=lambda row: order[row["colour"]])
    titles = {"excess": "neighbours / expected"}
    nodes = Table.of("network_nodes", "Hits in the network", keys, by_colour, **titles)
    edges = [
        {"sample_1": left["sample"], "junction_aa_1": left["junction_aa"], "x": left["x"], "y": left["y"],
         "sample_2": right["sample"], "junction_aa_2": right["junction_aa"], "x2": right["x"], "y2": right["y"]}
        for left, right in ((hits[start], hits[end]) for start, end in graph.edges)
    ]  # fmt: skip
    keys = "sample_1 junction_aa_1 sample_2 junction_aa_2 x y x2 y2"
    lines = Table.of("network_edges", "Pairs of neighbours in the network", keys, edges)
    parts = sorted(nx.connected_components(graph), key=len)
    largest = hits[min(parts[-1])]["junction_aa"]
    caption = (
        f"{len(hits):,} of {len(listed):,} hits, {graph.number_of_edges():,} pairs of neighbours, {len(parts):,} "
        f"connected groups. The largest group has {len(parts[-1]):,} clonotypes, among them {largest}. The larger the "
        "circle, the more neighbours the clonotype has over the number expected."
    )
    yield Figure("network", "Network", caption, charts.network(nodes, lines), (nodes, lines), wide=True)


def _layout(graph: Any) -> dict[int, tuple[float, float]]:
    """The positions of nodes: each connected group in a square, the squares in rows, the largest first."""
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
