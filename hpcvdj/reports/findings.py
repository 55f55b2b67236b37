"""The sections about what `contamination`, `sharing` and `enrich` found."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from hpcvdj.reports import charts
from hpcvdj.reports.elements import Figure, Section, Table, shown
from hpcvdj.reports.outputs import Finding, Outputs

MOST_IN_MATRIX = 120
"""A heat map of individuals shows those with the largest values, if there are more."""

MOST_NODES = 400
"""Hits in the network, by p-value."""

MOST_SPREAD = 8
"""V genes with a colour of their own in the network."""


def finding_sections(outputs: Outputs) -> list[Section]:
    """The sections of all tables of findings."""
    sections = []
    for command, section in (("contamination", contamination), ("sharing", sharing)):
        for k, finding in enumerate(outputs.of(command), start=1):
            sections.append(section(outputs, finding, k))
    enriched = outputs.of("enrich")
    return [*sections, enrichment(outputs, enriched)] if enriched else sections


def _anchor(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _individuals(outputs: Outputs, finding: Finding, name: str, keys: str, /, **titles: str) -> Table:
    """A row for each individual that was compared."""
    rows = [
        {
            **own, "individual": own["name"], "group": outputs.group(own["name"]),
            "left_out": sum(own.get("left_out", {}).values()),
            "reason": "; ".join(f"{why}: {often:,}" for why, often in own.get("left_out", {}).items()),
        }
        for own in finding.individuals
    ]  # fmt: skip
    return Table.of(
        name, "Individuals that were compared", f"individual group {keys}", rows, left_out="rows left out", **titles
    )


def _matrix(
    outputs: Outputs, finding: Finding, name: str, caption: str, cells: list[list[Any]], others: dict[str,
    list[list[Any]]],
    /,
    **titles: str,
) -> tuple[Table, list[str]]:  # fmt: skip
    """A table with a row for each pair of individuals, both ways round, by group; and the order of the individuals."""
    names = [own["name"] for own in finding.individuals]
    shown_rows = sorted(
        range(len(names)), key=lambda k: -max((cells[k][i] or 0 for i in range(len(names)) if i != k), default=0)
    )
    kept = sorted(shown_rows[:MOST_IN_MATRIX], key=lambda k: (outputs.group(names[k]) or "", k))
    rows = [
        {
            "individual_1": names[i], "individual_2": names[j], "value": cells[i][j],
            **{key: matrix[i][j] for key, matrix in others.items()},
        }
        for i, j in itertools.permutations(kept, 2)
    ]  # fmt: skip
    table = Table.of(name, caption, f"individual_1 individual_2 value {' '.join(others)}", rows, **titles)
    if len(kept) < len(names):
        note = f"The {len(kept)} of {len(names)} individuals with the largest values."
        table = Table(table.name, table.caption, table.columns, table.rows, note)
    return table, [names[k] for k in kept]


def contamination(outputs: Outputs, finding: Finding, number: int) -> Section:
    """Figure 2: the rates at which individuals share improbable junctions, and carry-over by clone size."""
    facts, prefix = finding.facts, f"contamination_{number}"
    words = [
        f"Junctions with a generation probability below {shown(facts['max_pgen'])} are too improbable to be made "
        "twice. If two individuals share them, one sample has probably got into the other. The rate is the number of "
        "improbable junctions that both have, divided by the product of the numbers of improbable junctions of each.",
        pairs_standing_out(finding),
    ]
    table, order = _matrix(
        outputs, finding, f"{prefix}_rates", "Rates of pairs of individuals", facts["rate"],
        {"shared_low": facts["shared_low"]}, value="rate",
    )  # fmt: skip
    most = table.peak("value", "{individual_1} with {individual_2}, {value}") if table.has("value") else "none"
    figures = []
    if table.has("value"):
        caption = (
            "Rates at which pairs of individuals share improbable junctions, in the order of groups; grey is 0. "
            f"Largest: {most}."
        )
        chart = charts.heatmap(table, "individual_2", "individual_1", "value", (order, order))
        figures.append(
            Figure(f"{prefix}_heatmap", "Heat map", caption, chart, (table,), wide=len(order) > charts.NARROW)
        )
    rows = [
        {"reads of the clone": own["reads"], "clones": own["clones"], "series": name, "rate": own.get(key)}
        for key, name in (("met_same_group", "same group"), ("met_other_group", "other group"))
        for own in facts.get("carry_over", [])
    ]
    carried = Table.of(
        f"{prefix}_carry_over",
        "Carry-over by clone size",
        ["reads of the clone", "clones", "series", "rate"],
        rows,
        rate="share met in another individual",
        series="individuals of",
    )
    if carried.has("rate") and carried.rows:
        most = carried.peak("rate", "{rate} of clones with {reads of the clone} reads, {series}")
        caption = (
            "Share of clones with an improbable junction that are found in a given other individual, by reads. "
            f"Largest: {most}."
        )
        figures.append(Figure(f"{prefix}_carried", "Lines", caption, charts.carry_over(carried), (carried,)))
    keys = (
        "individual_1 individual_2 verdict low_1 low_2 shared_low expected_low common_source rate share_of_1 "
        "share_of_2 more_reads_1 more_reads_2 detectable p_value q_value"
    )
    pairs = Table.of(f"{prefix}_pairs", "Pairs of individuals", keys, finding.rows).first(
        finding.total, finding.path.name
    )
    individuals = _individuals(
        outputs, finding, f"{prefix}_individuals", "rows low zero", rows="rows",
        low="improbable junctions", zero="rows that the model cannot make",
    )  # fmt: skip
    return Section(_anchor("contamination", number), "Contamination", words, figures, [pairs, individuals])


def pairs_standing_out(finding: Finding) -> str:
    """The pairs that share more than chance explains, in a sentence."""
    names = [own["name"] for own in finding.individuals]
    pairs = [f"{names[i]} and {names[j]}" for i, j in finding.facts.get("standing_out") or []]
    total = len(names) * (len(names) - 1) // 2
    same = [f"{names[i]} and {names[j]}" for i, j in finding.facts.get("of_one_person", [])]
    of_one = f" Samples of one person: {'; '.join(same[:5])}{'; …' if len(same) > 5 else ''}." if same else ""
    common = finding.facts.get("common_source") or 0
    common = common.get("junctions", 0) if isinstance(common, dict) else common
    of_one += f" {common:,} improbable junctions are of a common source." if common else ""
    if not pairs:
        return f"None of {total:,} pairs stands out.{of_one}"
    listed = "; ".join(pairs[:5]) + ("; …" if len(pairs) > 5 else "")
    return f"{len(pairs):,} of {total:,} pairs share more improbable junctions than chance explains: {listed}.{of_one}"


def sharing(outputs: Outputs, finding: Finding, number: int) -> Section:
    """Figure 1: observed and expected sharing; the overlap of individuals; sequences shared beyond expectation."""
    facts, prefix = finding.facts, f"sharing_{number}"
    words = [
        f"A sequence ({facts['unit']}) that recombination makes often is found in many individuals without any common "
        f"antigen. The model {facts['model']} gives the number of individuals expected for each; q is the fraction of "
        f"sequences that survive selection, fitted to all sequences: {shown(_float(facts['q']))}.",
        "A hit is shared by more individuals than the model explains. The test does not say why: a common "
        "antigen, selection "
        "that the model lacks, and contamination all look the same.",
    ]
    titles = {
        "expected": f"expected, q = {shown(_float(facts['q']))}",
        "expected_q1": "expected without selection, q = 1",
    }
    spectrum = facts["spectrum"]
    rows = [
        {"n_individuals": own["individuals"], "series": titles.get(key, key), "number": own.get(key),
         **({"low": own["low"], "high": own["high"]} if key == "expected" else {})}
        for key in ("observed", "expected", "expected_q1") for own in spectrum
    ]  # fmt: skip
    table = Table.of(
        f"{prefix}_spectrum",
        "Sequences by number of individuals",
        "n_individuals series number low high",
        rows,
        number="sequences",
        low="from",
        high="to",
    )
    shared = [own for own in spectrum if own["individuals"] > 1 and own["expected"]]
    numbers = "; ".join(
        f"{own['individuals']}: {own['observed']:,} and {shown(_float(own['expected']))}" for own in shared[:4]
    )
    caption = f"Sequences in exactly so many individuals, observed and expected with a 95 % band. {numbers}."
    figures = [Figure(f"{prefix}_sharing", "Points and lines", caption, charts.spectrum(table), (table,))]
    if shared:
        rows = [
            {"n_individuals": own["individuals"], "ratio": own["observed"] / own["expected"],
             "low": own["low"] / own["expected"], "high": own["high"] / own["expected"]}
            for own in shared
        ]  # fmt: skip
        ratios = Table.of(
            f"{prefix}_ratios",
            "Observed over expected",
            "n_individuals ratio low high",
            rows,
            ratio="observed / expected",
            low="band, from",
            high="band, to",
        )
        caption = (
            "Observed over expected sequences; the dashed line is 1. Largest: "
            f"{ratios.peak('ratio', '{ratio} at {n_individuals}')}."
        )
        figures.append(Figure(f"{prefix}_ratio", "Points", caption, charts.ratio(ratios), (ratios,)))
    overlap = facts["overlap"]
    cells, order = _matrix(
        outputs, finding, f"{prefix}_overlap", "Shared sequences of pairs of individuals", overlap["shared"],
        {"expected": overlap["expected"]}, value="shared sequences",
    )  # fmt: skip
    if cells.has("value") and cells.rows:
        caption = (
            "Sequences that pairs of individuals share. Most: "
            f"{cells.peak('value', '{individual_1} with {individual_2}, {value}')}."
        )
        chart = charts.heatmap(cells, "individual_2", "individual_1", "value", (order, order))
        figures.append(Figure(f"{prefix}_pairs", "Heat map", caption, chart, (cells,), wide=len(order) > charts.NARROW))
    of_groups = [name for name in (finding.rows or [{}])[0] if name.startswith("n_") and name != "n_individuals"]
    first, last = (
        "v_call j_call junction_aa junction n_individuals",
        "individuals nt_variants max_duplicate_count pgen p_post expected_individuals effect p_value q_value "
        "same_nt likely_copy not_tested",
    )
    keys = [*first.split(), *of_groups, *last.split()]
    hits = Table.of(
        f"{prefix}_sequences", "Shared sequences, the smallest p-value first", keys, map(_spaced, finding.rows)
    )
    areas = Table.of(
        f"{prefix}_auc", "How well sharing is predicted: area under the ROC curve (0.5 is "
        "chance)", "predictor area low high",
        [{"predictor": name, **dict(zip(("area", "low", "high"), own, strict=True))} for name,
         own in facts.get("auc", {}).items()],
        low="95 % interval, from", high="to",
    )  # fmt: skip
    individuals = _individuals(outputs, finding, f"{prefix}_individuals", "rows left_out reason", rows="rows used")
    tables = [hits.first(finding.total, finding.path.name), *[areas] * bool(areas.rows), individuals]
    return Section(_anchor("sharing", number), "Sharing", words, figures, tables)


def _spaced(row: dict[str, Any]) -> dict[str, Any]:
    """With blanks in the list of individuals, so that lines can break there."""
    return {**row, "individuals": str(row.get("individuals") or "").replace(",", ", ")}


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def hits_of(finding: Finding) -> list[dict[str, Any]]:
    """The listed rows of a table of `enrich` that are hits."""
    return [row for row in finding.rows if row.get("cluster") is not None]


def enrichment(outputs: Outputs, findings: list[Finding]) -> Section:
    """Figure 3: p-values against what is expected without any effect, the network of hits, and the clonotypes."""
    words = [
        "Neighbours of a clonotype are junctions of the same V and J genes with the same amino acids, or with one "
        "residue "
        "exchanged. A hit has more of them than recombination explains, times the factor κ for selection. It is a "
        "neighbourhood, not proof for one receptor. On real data q-values are nominal: rank by them."
    ]
    figures = [*_quantiles(outputs, findings), *_network(outputs, findings)]
    if len(figures) < 2 and not any(hits_of(finding) for finding in findings):
        words.append("There is no hit, so there is no network.")
    rows = [
        {
            "sample": own.sample, "group": outputs.group(own.sample), "clonotypes": own.facts.get("clonotypes"),
            "tested": own.facts.get("tested"), "kappa": _float(own.facts.get("kappa")), "hits": own.facts.get("hits"),
            "clusters": own.facts.get("clusters"), "model": own.facts.get("model"),
        }
        for own in findings
    ]  # fmt: skip
    summary = Table.of(
        "enrich_samples",
        "Samples that were tested",
        "sample group clonotypes tested kappa hits clusters model",
        rows,
        kappa="κ",
    )
    keys = (
        "sample group v_call j_call junction_aa duplicate_count nt_variants neighbours expected control_neighbours "
        "class_size control_size pgen_aa pgen_ball p_productive_vj kappa p_value q_value cluster"
    )
    listed = [{"sample": own.sample, "group": outputs.group(own.sample), **row} for own in findings for row in own.rows]
    listed.sort(key=lambda row: row["p_value"])
    table = Table.of(
        "enrich_clonotypes", "Clonotypes with neighbours, the smallest p-value first", keys, listed, kappa="κ"
    )
    paths = ", ".join(own.path.name for own in findings[:3]) + ("…" if len(findings) > 3 else "")
    tables = [table.first(sum(own.total for own in findings), paths), summary]
    return Section("enrich", "Neighbourhoods beyond chance", words, figures, tables)


def _quantiles(outputs: Outputs, findings: list[Finding]) -> Iterator[Figure]:
    def rows() -> Iterator[dict[str, Any]]:
        for own in findings:
            qq = own.facts.get("qq")
            for numbers in (
                zip(*(qq[key] for key in ("expected", "observed", "low", "high")), strict=True) if qq else ()
            ):
                if min(numbers) > 0:
                    names = ("expected", "observed", "low", "high")
                    logs = {name: -math.log10(number) for name, number in zip(names, numbers, strict=True)}
                    yield {"sample": own.sample, "group": outputs.group(own.sample), **logs}

    table = Table.of(
        "qq_table", "Quantiles of p-values, −log10", "sample group expected observed low high", rows(),
        expected="expected p-value, −log10", observed="observed p-value, −log10", low="band, from", high="band, to",
    )  # fmt: skip
    if table.rows:
        most = table.peak("observed", "{observed} in {sample}, where {expected} is expected")
        caption = (
            "Observed p-values of clonotypes by those expected without any effect, −log10; the band holds 95 % of "
            "chance. "
            f"Largest: {most}."
        )
        yield Figure("qq", "Quantiles", caption, charts.quantiles(table), (table,))


def _network(outputs: Outputs, findings: list[Finding]) -> Iterator[Figure]:
    """The hits of all samples, lines between those of the same genes that differ in at most one residue."""
    import networkx as nx

    hits = [
        {"sample": own.sample, "group": outputs.group(own.sample), **row} for own in findings for row in hits_of(own)
    ]
    total = len(hits)
    hits = sorted(hits, key=lambda row: row["p_value"])[:MOST_NODES]
    if not hits:
        return
    graph = nx.Graph()
    graph.add_nodes_from(range(len(hits)))
    balls = defaultdict(list)
    for k, row in enumerate(hits):
        text = row["junction_aa"]
        for place in range(len(text)):
            balls[row["v_call"], row["j_call"], text[:place], text[place + 1 :]].append(k)
    for members in balls.values():
        graph.add_edges_from(itertools.combinations(members, 2))
    places = _layout(graph)
    genes = [str(row["v_call"] or "–") for row in hits]
    common = [gene for gene, _ in Counter(genes).most_common(MOST_SPREAD)]
    order = {name: k for k, name in enumerate([*common, "other"])}
    for k, row in enumerate(hits):
        against = row.get("expected")
        if against is None:  # a control in place of a model
            against = row["control_neighbours"] * (row["class_size"] - 1) / max(1, row["control_size"])
        row |= {"x": places[k][0], "y": places[k][1], "colour": genes[k] if genes[k] in common else "other"}
        row["excess"] = row["neighbours"] / max(float(against), 1e-6)
    keys = "sample group v_call j_call junction_aa neighbours expected excess p_value q_value cluster x y colour"
    nodes = Table.of(
        "network_nodes",
        "Hits in the network",
        keys,
        sorted(hits, key=lambda row: order[row["colour"]]),
        excess="neighbours / expected",
        colour="colour",
    )
    edges = [
        {**{f"{one}_{side}": hits[end][one] for side, end in enumerate(edge, start=1) for one in ("sample",
         "junction_aa")},
         "x": places[edge[0]][0], "y": places[edge[0]][1], "x2": places[edge[1]][0], "y2": places[edge[1]][1]}
        for edge in graph.edges
    ]  # fmt: skip
    lines = Table.of(
        "network_edges",
        "Pairs of neighbours in the network",
        "sample_1 junction_aa_1 sample_2 junction_aa_2 x y x2 y2",
        edges,
    )
    parts = sorted(nx.connected_components(graph), key=len)
    largest = hits[min(parts[-1])]["junction_aa"]
    caption = (
        f"{len(hits):,} of {total:,} hits, {graph.number_of_edges():,} pairs of neighbours, {len(parts):,} "
        "connected groups. "
        f"The largest group has {len(parts[-1]):,} clonotypes, among them {largest}. The larger the circle, the more "
        "neighbours the clonotype has over the number expected."
    )
    yield Figure("network", "Network", caption, charts.network(nodes, lines), (nodes, lines), wide=True)


def _layout(graph: Any) -> dict[int, tuple[float, float]]:
    """The places of nodes: each connected group on a disc, the discs in rows, the largest first."""
    import networkx as nx

    places, left, top, height = {}, 0.0, 0.0, 0.0
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    width = 2.6 * math.sqrt(sum(len(part) for part in parts)) + 2
    for part in parts:
        radius = math.sqrt(len(part)) - 0.5
        if left and left + 2 * radius > width:
            left, top, height = 0.0, top + height + 0.6, 0.0
        centre = left + radius, top + radius
        own = nx.spring_layout(graph.subgraph(sorted(part)), seed=1, scale=radius, center=centre)
        places.update({node: (float(x), float(y)) for node, (x, y) in own.items()})
        left, height = left + 2 * radius + 0.6, max(height, 2 * radius)
    return places
