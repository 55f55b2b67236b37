"""The sections about what `associate` found: what goes with a phenotype, and what expanded in a person."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hpcvdj.chance.p_values import FEWEST_TESTS
from hpcvdj.reports import charts
from hpcvdj.reports.elements import Figure, Section, Table, shown
from hpcvdj.reports.outputs import Finding, Outputs
from hpcvdj.reports.parts import anchor, individuals_table, number_of, quantiles_figure, spaced
from hpcvdj.results.facts import Facts

MOST_PAIRS = 4
"""Pairs of times whose clonotypes are drawn: those with the most hits."""

MOST_QUANTILES = 3
"""Phenotypes whose p-values are drawn, beside those of Fisher's test; those with the most hits."""


def inflation_of(facts: Facts, tests: str = "tested") -> float | None:
    """The inflation of p-values, if it comes from enough `tests`."""
    inflation = number_of(facts.get("inflation"))
    return inflation if facts[tests] >= FEWEST_TESTS else None


def association(outputs: Outputs, finding: Finding, number: int) -> Section:
    """P-values against what is expected by chance, beside Fisher's; phenotypes; tests; donors."""
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
    titles = {"inflation_of_fisher": "inflation of Fisher's test", "hits_weighted": "hits with weights",
              "hits_that_are_copies": "likely copies among hits"}  # fmt: skip
    keys = ("phenotype donors cases strata sequences tested hits hits_weighted hits_that_are_copies inflation "
            "inflation_of_fisher")  # fmt: skip
    ranked = sorted(facts["phenotypes"], key=lambda each: -each["hits"])
    phenotypes = Table.of(f"{prefix}_phenotypes", "What was tested, most hits first", keys, ranked, **titles)
    keys = ("phenotype v_call j_call junction_aa cdr3_aa carriers case_carriers cases control_carriers controls "
            "expected odds_ratio odds_ratio_low odds_ratio_high z p_value q_value q_weighted p_fisher pgen p_post "
            "members nt_variants likely_copy individuals")  # fmt: skip
    titles = {"odds_ratio": "odds ratio", "odds_ratio_low": "95 % interval, from", "odds_ratio_high": "to",
              "members": "sequences of the ball"}  # fmt: skip
    caption = "Tests, the smallest p-value first"
    tests = Table.of(f"{prefix}_tests", caption, keys, map(spaced, finding.rows), **titles)
    series = [
        replace(finding, sample=f"{each['phenotype']}{word}", facts={"qq": each[key]})
        for each in ranked[:MOST_QUANTILES] for key, word in (("qq", ""), ("qq_of_fisher", ", Fisher")) if each.get(key)
    ]  # fmt: skip
    figures = list(quantiles_figure(outputs, series, f"{prefix}_qq", "sequences"))
    individuals = individuals_table(outputs, finding, f"{prefix}_individuals", "rows recombinations left_out reason",
                               rows="rows used")  # fmt: skip
    tables = [tests.first(finding.total, finding.path.name), phenotypes, individuals]
    return Section(anchor("associate", number), "Associations", words, figures, tables)


def noise_text(finding: Finding) -> str:
    """How reads vary, and from what that is known, in a sentence."""
    noise = finding.facts["noise"]
    linear, quadratic = (number_of(noise[name]) or 0.0 for name in ("linear", "quadratic"))
    text = f"The variance of m reads is {shown(1 + linear)} m + {shown(quadratic)} m². "
    if noise["pairs_of_replicates"]:
        return f"{text}It is that of replicates ({noise['pairs_of_replicates']:,} pairs)."
    return f"{text}There are no replicates: what changed between times counts as noise, so fewer clonotypes are found."


def expansion(outputs: Outputs, finding: Finding, number: int) -> Section:
    """P-values against what is expected by chance; shares before and after; pairs of times; tests; samples."""
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
        {**each, "subject": str(each["subject"]),
         **{f"{name}_{end}": each[f"{name}s"][k] for name in ("time", "depth") for k, end in enumerate(_ENDS)}}
        for each in facts["pairs"]
    ]  # fmt: skip
    keys = "subject time_before time_after depth_before depth_after depth_ratio clonotypes tested hits"
    titles = {f"{name}_{end}": f"{title} {end}" for end in _ENDS for name, title in
              (("time", "time"), ("depth", "reads of all"), ("reads", "reads"))}  # fmt: skip
    titles["depth_ratio"] = "depth ratio"
    ranked = sorted(pairs, key=lambda each: -each["hits"])
    compared = Table.of(f"{prefix}_pairs", "Pairs of times that were compared, most hits first", keys, ranked, **titles)
    keys = (
        "subject v_call j_call junction junction_aa cdr3_aa time_before time_after reads_before reads_after "
        "depth_before depth_after expected log2_fold_change log2_fold_change_low log2_fold_change_high p_value q_value"
    )
    more = {"expected": "reads after, expected", "log2_fold_change": "fold change, log2",
            "log2_fold_change_low": "95 % interval, from", "log2_fold_change_high": "to"}  # fmt: skip
    caption = "Clonotypes, the smallest p-value first"
    tests = Table.of(f"{prefix}_tests", caption, keys, finding.rows, **titles, **more)
    figures = [figure for k, pair in enumerate(ranked[:MOST_PAIRS], start=1)
               for figure in _shares(finding, pair, f"{prefix}_shares_{k}")]  # fmt: skip
    series = [replace(finding, sample="all pairs of times")]
    figures += quantiles_figure(outputs, series, f"{prefix}_qq", "clonotypes")
    individuals = individuals_table(
        outputs, finding, f"{prefix}_individuals", "rows left_out reason", rows="clonotypes"
    )  # fmt: skip
    tables = [tests.first(finding.total, finding.path.name), compared, individuals]
    return Section(anchor("expansion", number), "Expansions", words, figures, tables)


_ENDS = ("before", "after")


def _shares(finding: Finding, pair: dict[str, Any], name: str) -> Iterator[Figure]:
    """The shares of a pair's clonotypes after by those before, with its hits."""

    def placed(before: int, after: int) -> dict[str, float]:
        """Half a read more on each side, so that none is at 0."""
        shares = [(reads + 0.5) / pair[f"depth_{end}"] for reads, end in zip((before, after), _ENDS, strict=True)]
        same = shares[0] * pair["depth_ratio"] * pair["depth_before"] / pair["depth_after"]
        return {"reads_before": before, "reads_after": after, "share_before": shares[0], "share_after": shares[1],
                "unchanged": same}  # fmt: skip

    titles = {
        "share_before": f"share of the reads at {pair['time_before']:g}", "reads_before": "reads before",
        "share_after": f"share of the reads at {pair['time_after']:g}", "reads_after": "reads after",
        "unchanged": "share after without a change",
    }  # fmt: skip
    of_pair = f"{pair['subject']}, {pair['time_before']:g} to {pair['time_after']:g}"
    rows = [{**placed(before, after), "clonotypes": often} for before, after, often in pair.get("reads") or ()]
    if not rows:
        return
    keys = "share_before share_after reads_before reads_after"
    cells = Table.of(f"{name}_all", f"Clonotypes by their reads: {of_pair}", f"{keys} clonotypes unchanged", rows,
                     **titles)  # fmt: skip
    most_q = float(finding.facts["settings"]["max_q"])
    own = ("subject", "time_before", "time_after")
    hits = [
        {**row, **placed(row["reads_before"], row["reads_after"])} for row in finding.rows
        if all(row[key] == pair[key] for key in own) and row["q_value"] is not None and row["q_value"] <= most_q
    ]  # fmt: skip
    keys = f"v_call j_call junction junction_aa cdr3_aa {keys} log2_fold_change p_value q_value"
    drawn = Table.of(f"{name}_hits", f"Hits: {of_pair}", keys, hits, **titles, log2_fold_change="fold change, log2")
    caption = (
        f"{of_pair}: shares of clonotypes after by those before, with half a read more each. The larger the circle, "
        f"the more clonotypes have these reads; the dashed line is no change; {pair['hits']:,} hits in colour"
    )
    caption += f", of which {len(hits):,} are drawn" if len(hits) < pair["hits"] else ""
    if hits:
        caption += f". Largest fold change, log2: {drawn.peak('log2_fold_change', '{log2_fold_change}')}"
    tables = (cells, drawn) if hits else (cells,)
    yield Figure(name, "Points", f"{caption}.", charts.shares(*tables), tables)
