"""The sections about what `associate` found: sequences that go with a phenotype, clonotypes that expanded."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hpcvdj.chance.p_values import FEWEST_TESTS
from hpcvdj.reports import charts
from hpcvdj.reports.elements import Figure, PageTable, Section, shown
from hpcvdj.reports.outputs import Finding, Outputs
from hpcvdj.reports.parts import individuals_table, number_of, quantiles_figure, spaced
from hpcvdj.results.facts import Facts

MOST_PAIRS = 4
"""How many pairs of times have a figure of their clonotypes: those with the most hits."""

MOST_QUANTILES = 3
"""For how many phenotypes p-values are drawn beside those of Fisher's test: those with the most hits."""

_ENDS = ("before", "after")


def inflation_of(facts: Facts, tests: str = "tested") -> float | None:
    """The inflation of p-values; None if it comes from too few tests, whose number is the fact `tests`."""
    return number_of(facts.get("inflation")) if facts[tests] >= FEWEST_TESTS else None


def association(outputs: Outputs, finding: Finding, number: int) -> Section:
    """The section about sequences that go with a phenotype: p-values, also Fisher's; tests; phenotypes; donors."""
    facts, prefix = finding.facts, f"associate_{number}"
    words = [
        "A hit is a sequence that more cases carry than chance explains, given how many donors carry it and how deep "
        "each donor is. Fisher's test beside it takes all donors to be equally deep: where cases are deeper, it finds "
        "depth. An inflation near 1 says that the test is right for these data. One above 1 says that many sequences "
        "go with the phenotype, or with something that differs between cases and controls, such as their batch.",
    ]
    if facts["settings"].get("unit") == "ball":
        words.append("Each sequence stands for all of its V and J genes that differ from it in at most one residue. "
                     "Neighbours have much the same carriers, so one cause makes several hits.")  # fmt: skip
    if facts.get("auc"):
        area, low, high = map(shown, map(number_of, facts["auc"]))
        words.append(f"Hits that were found without a donor tell whether it is a case: AUC {area} ({low} to {high}).")
    ranked = sorted(facts["phenotypes"], key=lambda phenotype: -phenotype["hits"])
    phenotypes = PageTable.of(
        f"{prefix}_phenotypes", "What was tested, most hits first",
        "phenotype donors cases strata donors_in_strata_of_one_value sequences tested hits hits_weighted "
        "hits_that_are_copies hits_that_may_be_copies inflation inflation_of_fisher", ranked,
    )  # fmt: skip
    tests = PageTable.of(
        f"{prefix}_tests", "Tests, the smallest p-value first",
        "phenotype v_call j_call junction_aa cdr3_aa carriers case_carriers cases control_carriers controls expected "
        "odds_ratio odds_ratio_low odds_ratio_high z p_value q_value q_weighted p_fisher pgen p_post members "
        "nt_variants likely_copy individuals", map(spaced, finding.rows),
    )  # fmt: skip
    series = [
        replace(finding, sample=f"{phenotype['phenotype']}{word}", facts={"qq": phenotype[key]})
        for phenotype in ranked[:MOST_QUANTILES]
        for key, word in (("qq", ""), ("qq_of_fisher", ", Fisher")) if phenotype.get(key)
    ]  # fmt: skip
    figures = list(quantiles_figure(outputs, series, f"{prefix}_qq", "sequences"))
    individuals = individuals_table(outputs, finding, f"{prefix}_individuals", "recombinations")
    tables = [tests.first(finding.total, outputs.labels[finding.path]), phenotypes, individuals]
    return Section("associate", "Associations", words, figures, tables)


def noise_text(finding: Finding) -> str:
    """Say how reads vary, and how that is known."""
    noise = finding.facts["noise"]
    linear, quadratic = (number_of(noise[name]) or 0.0 for name in ("linear", "quadratic"))
    text = f"The variance of m reads is {shown(1 + linear)} m + {shown(quadratic)} m². "
    if noise["pairs_of_replicates"]:
        return f"{text}It is that of replicates ({noise['pairs_of_replicates']:,} pairs)."
    return f"{text}There are no replicates: what changed between times counts as noise, so fewer clonotypes are found."


def expansion(outputs: Outputs, finding: Finding, number: int) -> Section:
    """The section about clonotypes that expanded: shares before and after, p-values; tests; pairs of times; samples."""
    facts, prefix = finding.facts, f"expansion_{number}"
    words = [
        "A hit is a clonotype whose share of the reads is larger at a time than at the time before, by more than noise "
        "explains, given the depths of both. The depth ratio is that of most clonotypes, which one large expansion "
        "does not change. An inflation near 1 says that the noise is right for these data, and that few expanded.",
        noise_text(finding),
    ]
    inflation = inflation_of(facts, "clonotypes")
    if inflation is not None:
        words[-1] += f" Inflation: {shown(inflation)}."
    pairs = [
        {**pair, "subject": str(pair["subject"]),
         **{f"{name}_{end}": pair[f"{name}s"][k] for name in ("time", "depth") for k, end in enumerate(_ENDS)}}
        for pair in facts["pairs"]
    ]  # fmt: skip
    ranked = sorted(pairs, key=lambda pair: -pair["hits"])
    titles = {f"{name}_{end}": f"{title} {end}" for end in _ENDS for name, title in
              (("time", "time"), ("depth", "reads of all"), ("reads", "reads"))}  # fmt: skip
    compared = PageTable.of(
        f"{prefix}_pairs", "Pairs of times that were compared, most hits first",
        "subject time_before time_after depth_before depth_after depth_ratio clonotypes tested hits", ranked, **titles,
    )  # fmt: skip
    tests = PageTable.of(
        f"{prefix}_tests", "Clonotypes, the smallest p-value first",
        "subject v_call j_call junction junction_aa cdr3_aa time_before time_after reads_before reads_after "
        "depth_before depth_after expected log2_fold_change log2_fold_change_low log2_fold_change_high p_value q_value",
        finding.rows, **titles, expected="reads after, expected",
    )  # fmt: skip
    figures = [figure for k, pair in enumerate(ranked[:MOST_PAIRS], start=1)
               for figure in _shares(finding, pair, f"{prefix}_shares_{k}")]  # fmt: skip
    series = [replace(finding, sample="all pairs of times")]
    figures += quantiles_figure(outputs, series, f"{prefix}_qq", "clonotypes")
    individuals = individuals_table(outputs, finding, f"{prefix}_individuals")
    tables = [tests.first(finding.total, outputs.labels[finding.path]), compared, individuals]
    return Section("expansion", "Expansions", words, figures, tables)


def _shares(finding: Finding, pair: dict[str, Any], name: str) -> Iterator[Figure]:
    """The shares of a pair's clonotypes after by those before, with its hits."""

    def cells_of(before: int, after: int) -> dict[str, float]:
        """Half a read is added to both numbers, so that no share is 0."""
        share = (before + 0.5) / pair["depth_before"]
        return {"reads_before": before, "reads_after": after, "share_before": share,
                "share_after": (after + 0.5) / pair["depth_after"],
                "unchanged": share * pair["depth_ratio"] * pair["depth_before"] / pair["depth_after"]}  # fmt: skip

    titles = {
        "share_before": f"share of the reads at {pair['time_before']:g}", "reads_before": "reads before",
        "share_after": f"share of the reads at {pair['time_after']:g}", "reads_after": "reads after",
        "unchanged": "share after without a change",
    }  # fmt: skip
    of_pair = f"{pair['subject']}, {pair['time_before']:g} to {pair['time_after']:g}"
    rows = [{**cells_of(before, after), "clonotypes": number} for before, after, number in pair.get("reads") or ()]
    if not rows:
        return
    keys = "share_before share_after reads_before reads_after"
    cells = PageTable.of(f"{name}_all", f"Clonotypes by their reads: {of_pair}", f"{keys} clonotypes unchanged", rows,
                         **titles)  # fmt: skip
    most_q = float(finding.facts["settings"]["max_q"])
    hits = [
        {**row, **cells_of(row["reads_before"], row["reads_after"])} for row in finding.rows
        if all(row[key] == pair[key] for key in ("subject", "time_before", "time_after"))
        and row["q_value"] is not None and row["q_value"] <= most_q
    ]  # fmt: skip
    keys = f"v_call j_call junction junction_aa cdr3_aa {keys} log2_fold_change p_value q_value"
    drawn = PageTable.of(f"{name}_hits", f"Hits: {of_pair}", keys, hits, **titles)
    caption = (
        f"{of_pair}: shares of clonotypes after by those before, with half a read more each. The larger the circle, "
        f"the more clonotypes have these reads; the dashed line is no change; {pair['hits']:,} hits in colour"
    )
    caption += f", of which {len(hits):,} are drawn" if len(hits) < pair["hits"] else ""
    if hits:
        caption += f". Largest fold change, log2: {drawn.peak('log2_fold_change', '{log2_fold_change}')}"
    tables = (cells, drawn) if hits else (cells,)
    yield Figure(name, "Points", f"{caption}.", charts.shares(*tables), tables)
