"""The section about samples: the rows, depth and diversity of each, and how probable its junctions are."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.diversity import ORDERS, clonality, hill_number
from hpcvdj.errors import few
from hpcvdj.reports import charts
from hpcvdj.reports.elements import Figure, PageTable, Section, shown
from hpcvdj.reports.outputs import Outputs, spelled
from hpcvdj.reports.repertoires import Repertoire, repertoire_of, repertoires
from hpcvdj.reports.sections import VALUES, doublings, once, shares

_UNKNOWN = (
    "Reads, clonality and Hill numbers are not known: no file of this page says how many reads clonotypes have. "
    "hpcvdj sharing, contamination, associate, enrich and annotate record it, if their tables have the "
    "column duplicate_count."
)


def samples(outputs: Outputs) -> Section:
    """The section about samples: a table with a row for each, and the overview.

    The table has a row for each sample of each file of `count` and `pgen`, and one for each repertoire that only other
    files have.
    """
    found = repertoires(outputs)
    # Samples of a locus are compared with each other.
    with_reads = sorted((each for each in found if each.reads), key=lambda each: (-each.reads, each.name))
    smallest = {spelled(each.loci): each for each in with_reads}
    depths = {locus: each.reads for locus, each in smallest.items()}
    diverse = {each.name: _diversity(each.sizes, depths[spelled(each.loci)]) for each in with_reads if each.sizes}
    rows = [*_of_surveys(outputs, found)]
    surveyed = {row["repertoire"] for row in rows}
    rows += [
        {"sample": each.name, "group": outputs.groups.get(each.individual), "locus": spelled(each.loci),
         "repertoire": each.name}
        for each in found if each.name not in surveyed
    ]  # fmt: skip
    rows = [{**row, **diverse.get(row["repertoire"], {})} for row in rows]
    measures = [name for name in VALUES if any(name in survey.measures for survey in outputs.surveys)]
    keys = ["sample", "group", "locus", "file", "command", "read", "counted", "reads", "clonotypes", "clonality"]
    keys += [key for order in ORDERS for key in (f"hill_{order}", f"hill_{order}_interval")]
    keys += [key for name in measures for key in (name, f"{name}_none")]
    titles = {f"{name}_none": f"{title}: none, %" for name, title in VALUES.items()}
    titles |= {name: f"{title}, median" for name, title in VALUES.items()}
    titles |= {f"hill_{order}": f"Hill number, order {order}" for order in ORDERS}
    titles |= {f"hill_{order}_interval": "95 % interval" for order in ORDERS}
    table = PageTable.of("samples_table", "Samples", keys, rows, **titles)
    words = _words(
        [(locus, depth, [each.name for each in with_reads if (spelled(each.loci), each.reads) == (locus, depth)])
         for locus, depth in sorted(depths.items())],
        [row["sample"] for row in rows if row["repertoire"] not in diverse],
    )  # fmt: skip
    words += ["Medians of probabilities are at most 1 % too low."] * bool(measures)
    missing = [survey.samples[k] for survey, k in once(outputs) if not outputs.group(survey.samples[k])]
    if outputs.groups and missing:
        words.append(f"Samples without a group: {few(missing)}.")
    return Section("samples", "Samples", words, list(_overview(outputs)), [table])


def _of_surveys(outputs: Outputs, found: list[Repertoire]) -> Iterator[dict[str, Any]]:
    """The rows and values of each sample of each file of `count` and `pgen`."""
    for survey in outputs.surveys:
        for k, name in enumerate(survey.samples):
            repertoire = repertoire_of(found, outputs, survey, k)
            row: dict[str, Any] = {
                "sample": name, "group": outputs.group(name), "locus": spelled(survey.loci(k)),
                "file": outputs.labels[survey.path], "command": survey.command,
                "read": int(survey.rows_read[k]) or None, "counted": int(survey.counted[k]),
                "repertoire": repertoire and repertoire.name,
            }  # fmt: skip
            for measure in survey.measures:
                bins, often = survey.histogram(measure, k)
                row[f"{measure}_none"] = 100 * int(often[bins == 0].sum()) / max(1, int(often.sum()))
                row[measure] = survey.median(measure, k)
            yield row


def _diversity(sizes: CloneSizes, depth: int) -> dict[str, Any]:
    """The cells of a sample with reads; its Hill numbers are those at a number of reads, `depth`."""
    clonotypes = int(sizes.clonotypes.sum())
    row: dict[str, Any] = {"reads": sizes.total, "clonotypes": clonotypes, "clonality": clonality(sizes)}
    for order in ORDERS:
        hill = hill_number(sizes, order, depth)
        row |= {f"hill_{order}": hill.value, f"hill_{order}_interval": f"{shown(hill.low)} to {shown(hill.high)}"}
    return row


def _words(depths: list[tuple[str, int, list[str]]], lacking: list[str]) -> list[str]:
    """Explain reads, clonality and Hill numbers, and name the samples without them.

    depths   each locus with the reads of its smallest samples, and these samples
    lacking  the samples whose reads are not known
    """
    if not depths:
        return [_UNKNOWN]
    among = "; ".join(
        f"among {depth:,} reads of each sample{f' of {locus}' if depths[1:] and locus else ''}, which is all that "
        f"{few(sorted(smallest))} {'have' if smallest[1:] else 'has'}"
        for locus, depth, smallest in depths
    )
    words = [
        "A clonotype is here a productive junction with its V and J genes; its reads are those of all of its rows. "
        "Clonality is 0 if all clonotypes have as many reads, and near 1 if one of them has nearly all.",
        "A Hill number is a number of clonotypes of equal size that would be as diverse: of order 0 all clonotypes "
        "count alike, of order 1 by their reads, of order 2 large ones count nearly alone. Deep samples have more "
        f"clonotypes, so the Hill numbers are those expected {among}.",
    ]
    return [*words, *[f"Reads are not known of {few(list(dict.fromkeys(lacking)))}."] * bool(lacking)]


def _overview(outputs: Outputs) -> Iterator[Figure]:
    """A heat map of how probable junctions are, with a row for each sample, or for each group of many samples."""
    measures = {name for survey in outputs.surveys for name in survey.measures}
    measure = next((name for name in ("pgen_aa", "pgen_nt") if name in measures), None)
    if measure is None:
        return
    members = [
        (survey, k) for survey in outputs.surveys if measure in survey.measures for k in range(len(survey.samples))
    ]
    rows = list(shares(outputs, members, partial(doublings, measure=measure), ["low"]))
    title = VALUES[measure]
    table = PageTable.of("overview_table", f"Junctions of each sample by {title}", "sample group low rows share", rows,
                         low=f"{title}, from")  # fmt: skip
    names = list(dict.fromkeys(row["sample"] for row in rows))
    if len(names) < 2:
        # Another figure shows the distribution of a single sample.
        return
    powers = [math.frexp(row["low"])[1] - 1 for row in rows]
    lows = [2.0**power for power in range(min(powers), max(powers) + 1)]
    most = table.peak("share", "{share} % of the junctions of {sample} from {low}")
    caption = (
        f"{title}, by sample: each column is a doubling, and the colour the share of the sample's junctions, in "
        f"percent. Most: {most}."
    )
    chart = charts.heatmap(table, "low", "sample", "share", (lows, names))
    yield Figure("overview", "Heat map", caption, chart, (table,), wide=True)
