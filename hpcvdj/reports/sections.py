"""The sections of the page: tables, the figures that are drawn from them, and words."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, few
from hpcvdj.germline_import.genes import natural_key
from hpcvdj.recombination.exclusions import by_summary
from hpcvdj.recombination.explanation import Explanation, Pathway
from hpcvdj.recombination.germline import Germline
from hpcvdj.reports import charts
from hpcvdj.reports.bins import doublings, median
from hpcvdj.reports.elements import Cell, Figure, Section, Table, columns, percent, shown
from hpcvdj.reports.survey import Junction, Survey
from hpcvdj.storage.opening import damage

_DRAWN = 20
"""Top junctions in the figure; the table has more."""

_MOST_LINES = 24
"""Lines of an alignment."""

_LAST_N = 10
"""The last n-length that is shown in any case, and has a column of its own."""

_MOST_REPERTOIRES = 100

_NOT_LISTED = ("calls", "config", "excluded_counts", "format", "format_version", "identity", "nonzero", "sums")
"""Attributes of results that other parts of the page show."""

_BIN = "low high junctions share"

FACTS = ("v_trim", "n1", "d_call", "d_form", "d_trim_5", "d_trim_3", "n2", "j_trim")
"""What of `Explanation.describe` tells groups of pathways apart."""


def all_sections(surveys: list[Survey], germlines: Sequence[Germline | None], *, asked: bool) -> list[Section]:
    """The page; `germlines` are the results' germline tables, `asked` tells whether any was given."""
    sections = [summary(surveys), excluded(surveys)]
    if any(survey.counted for survey in surveys):
        sections += [part(surveys) for part in (pairs, distribution, n_lengths, lengths, top)]
        sections.append(alignments(surveys, germlines, asked=asked))
    return [*sections, run_facts(surveys)]


def quantile(survey: Survey, share: float) -> str:
    """A quantile of pathways per junction, in words."""
    if not survey.counted:
        return "–"
    value, exact = survey.quantiles.quantile(share)
    return f"{'' if exact else 'about '}{value:,.1f}".removesuffix(".0")


def lead(survey: Survey) -> str:
    """A result in a sentence."""
    if not survey.counted:
        return f"0 of {survey.rows_read:,} rows could be counted."
    return (
        f"{survey.counted:,} junctions were counted; {percent(survey.with_pathway, survey.counted)} of them have a "
        f"pathway with at most {survey.max_n} n-nucleotides. {_score_name(survey).capitalize()} of a junction, median: "
        f"{shown(survey.scores.median())}."
    )


def summary(surveys: list[Survey]) -> Section:

    def repertoires(survey: Survey) -> Iterable[list[Cell]]:
        ranked = sorted(survey.repertoires.items(), key=lambda item: -item[1])[:_MOST_REPERTOIRES]
        return [[name, junctions, survey.share(junctions)] for name, junctions in ranked]

    tables = [Table.beside("summary_table", "Summary of what was counted", surveys, _summary)]
    if any(survey.repertoires for survey in surveys):
        caption = f"The repertoires, at most the {_MOST_REPERTOIRES} largest"
        columns = "repertoire_id junctions share"
        tables.append(Table.of("repertoires_table", caption, columns, surveys, repertoires))
    words = [] if any(survey.counted for survey in surveys) else ["No junction was counted, so there are no figures."]
    return Section("summary", "Summary", _differences(surveys) + words, tables=tables)


def _differences(surveys: list[Survey]) -> list[str]:
    """A warning if the results were counted differently, so that their pathways cannot be compared."""
    asked = {
        "largest n-lengths": [str(survey.config.get("max_n_asked", survey.max_n)) for survey in surveys],
        "D forms": [str(survey.config.get("d_forms")) for survey in surveys],
        "D alleles": [str(survey.facts.get("d_alleles")) for survey in surveys],
        "numbers of P-nucleotides": [f"at most {survey.facts.get('max_p')}" for survey in surveys],
    }
    differ = [f"{name} ({', '.join(values)})" for name, values in asked.items() if len(set(values)) > 1]
    warning = "Numbers of pathways cannot be compared here: the results were counted with different"
    return [f"{warning} {'; '.join(differ)}."] if differ else []


def _summary(survey: Survey) -> dict[str, Cell]:
    counted = survey.counted

    def share(part: int, total: int = counted) -> str:
        return f"{part:,} ({percent(part, total)})"

    return {
        "repertoires": len(survey.repertoires) or 1,
        "rows read": survey.rows_read,
        "junctions counted": counted,
        "rows excluded": share(survey.rows_read - counted, survey.rows_read),
        "V–J pairs of alleles": survey.allele_pairs,
        "V–J pairs of genes": len(survey.pairs),
        "junctions in frame": share(int(survey.sizes[::3].sum())),
        "n-lengths counted": f"0–{survey.max_n}",
        "pathways in all": survey.pathways,
        "junctions with a pathway": share(survey.with_pathway),
        "junctions without a pathway": counted - survey.with_pathway,
        "junctions with a pathway without n-nucleotides": share(int(survey.reached[0])),
        "pathways per junction, mean": survey.pathways / counted if counted else None,
        "pathways per junction, median": quantile(survey, 0.5),
        "pathways per junction, middle half": f"{quantile(survey, 0.25)} to {quantile(survey, 0.75)}",
        "pathways per junction, most": survey.most,
        f"{_score_name(survey)} of a junction, median": survey.scores.median(),
    }


def _score_name(survey: Survey) -> str:
    return "weight" if survey.model is None else "generation probability"


def excluded(surveys: list[Survey]) -> Section:

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for reason, number, group in by_summary(survey.excluded):
            examples = few([f"{exclusion} ({count:,})" for exclusion, count in group], 5)
            yield [reason, number, 100 * number / survey.rows_read, group[0][0].kind.option or None, examples]

    columns = "reason rows of_rows option examples"
    table = Table.of("excluded_table", "Excluded rows by reason", columns, surveys, rows)
    if not table.rows:
        return Section("excluded", "Excluded rows", ["No row was excluded."])
    return Section("excluded", "Excluded rows", ["The result file lists each excluded row."], tables=[table])


def run_facts(surveys: list[Survey]) -> Section:
    """How the results were counted, and in what time."""
    facts = Table.beside("run_table", "Facts of the run, as the result file records them", surveys, _run)
    times = Table.beside("times_table", "Seconds of the slowest rank, summed over units of work", surveys, _times)
    return Section("run", "How it was counted", tables=[table for table in (facts, times) if table.rows])


def _run(survey: Survey) -> dict[str, Cell]:
    """The attributes of the file, its configuration, and the different facts of the ranks."""
    with damage(survey.path):
        calls = json.loads(survey.facts.get("substituted_calls", "[]"))
        replaced = few([f"{call} → {allele} ({rows:,} rows)" for call, allele, rows in calls], 8)
        names = ("host", "hardware", "software")
        ranks = {name: few(dict.fromkeys(rank[name] for rank in survey.ranks), 8) for name in names}
        facts = survey.facts | survey.config | survey.config.get("calls", {}) | {"substituted_calls": replaced} | ranks
    listed = {name.replace("_", " "): str(value) or None for name, value in facts.items() if name not in _NOT_LISTED}
    return {"file": survey.path.name, **listed}


def _times(survey: Survey) -> dict[str, Cell]:
    times, seconds = survey.timings, Counter[str]()
    with damage(survey.path):
        for unit, (first, stop) in enumerate(zip(times["n_first"], times["n_stop"], strict=True)):
            for stage in ("kernel", "reduce", "wall"):
                seconds[f"n-lengths {first}–{stop - 1}, {stage}"] += times[f"{stage}_seconds"][unit]
    return {name: float(value) for name, value in seconds.items()}


def pairs(surveys: list[Survey]) -> Section:

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for (v, j), (number, ways) in sorted(survey.pairs.items(), key=lambda item: (-item[1][0], item[0])):
            yield [v, j, number, survey.share(number), ways, 100 * ways / max(1, survey.pathways), ways / number]

    table = Table.of("pairs_table", "V–J pairs", "v j junctions share pathways ways mean", surveys, rows)
    genes = [sorted({pair[k] for survey in surveys for pair in survey.pairs}, key=natural_key) for k in (0, 1)]
    figures = []
    for key in ("junctions", "pathways", "mean"):
        most = table.peak(key, f"{{v}} with {{j}}, {{{key}}}")
        caption = f"{table.column(key).title.capitalize()}, by V–J pair. Most: {most}."
        figures.append(Figure(f"vj_{key}", "Heatmap", caption, charts.pairs(table, key, *genes), table))
    return Section("pairs", "V and J genes", figures=figures)


def _binned(survey: Survey, histogram: NDArray[np.int64]) -> Iterable[list[Cell]]:
    """(from, to, junctions, share) of each bin that has junctions, of a fine histogram."""
    counts = doublings(histogram)
    for k in np.flatnonzero(counts).tolist():
        yield [2 ** (k - 1) if k else 0, 2**k - 1, int(counts[k]), survey.share(int(counts[k]))]


def distribution(surveys: list[Survey]) -> Section:
    table = Table.of(
        "distribution_table", "Junctions by number of pathways", _BIN, surveys,
        lambda survey: _binned(survey, survey.bins_by_size.sum(axis=0)),
    )  # fmt: skip
    most = table.peak("share", "{share} % with {low} to {high}")
    caption = f"Pathways of a junction, all n-lengths together; each bar is a doubling. Most junctions: {most}."
    figure = Figure("pathways_per_junction", "Histogram", caption, charts.distribution(table), table)
    return Section("distribution", "Pathways per junction", figures=[figure])


def _spread(x: str, surveys: list[Survey], words: str, histograms: Callable[[Survey], NDArray[np.int64]]) -> Figure:
    """A heatmap of fine histograms, int64 [x, bins], and its table."""

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for place, histogram in enumerate(histograms(survey)):
            middle = median(histogram)
            for cells in _binned(survey, histogram):
                yield [place, *cells, middle]

    name, caption = f"pathways_by_{x}", f"Junctions by {columns([x])[0].title} and number of pathways"
    table = Table.of(f"{name}_table", caption, f"{x} {_BIN} median", surveys, rows)
    caption = f"{words} Circles are medians; the largest: {table.peak('median', f'{{median}} at {{{x}}}')}."
    return Figure(name, "Heatmap", caption, charts.spread(table, x), table)


def n_lengths(surveys: list[Survey]) -> Section:
    # Above 10, up to the first n-length that reaches no further junctions.
    last = max(_LAST_N, *(int(np.flatnonzero(survey.reached).max(initial=0)) + 1 for survey in surveys))

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for m in range(min(last, survey.max_n) + 1 if survey.counted else 0):
            upto, ways = survey.share(int(survey.reached[: m + 1].sum())), survey.by_n[m]
            yield [m, int(survey.reached[m]), upto, ways, ways / survey.counted, median(survey.bins_by_n[m])]

    caption = "Junctions and pathways by number of n-nucleotides"
    table = Table.of("by_n_table", caption, "n first reached pathways mean median", surveys, rows)
    most = table.peak("reached", "{reached} % at {n}")
    reached = f"Junctions that have a pathway with at most that many n-nucleotides. Most: {most}."
    exactly = "Pathways of a junction with exactly that many n-nucleotides"
    mean = f"{exactly}, mean. Most: {table.peak('mean', '{mean} at {n}')}."
    figures = [
        Figure("reached_by_n", "Line", reached, charts.lines(table, "reached"), table),
        Figure("mean_by_n", "Line", mean, charts.lines(table, "mean", "log"), table),
        _spread("n", surveys, f"{exactly}.", lambda survey: survey.bins_by_n[: last + 1]),
    ]
    return Section("n-nucleotides", "By number of n-nucleotides", figures=figures)


def lengths(surveys: list[Survey]) -> Section:

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for nt in np.flatnonzero(survey.sizes).tolist():
            number, fine = int(survey.sizes[nt]), survey.bins_by_size[nt]
            yield [nt, number, survey.share(number), int(fine[0]), median(fine)]

    caption = "Junctions and their pathways by CDR3 length"
    table = Table.of("by_size_table", caption, "size junctions share none median", surveys, rows)
    most = table.peak("share", "{size} nt, {share} %")
    caption = f"CDR3 lengths, without the codons of Cys 104 and Phe/Trp 118. Most frequent: {most}."
    words = "Pathways of a junction, all n-lengths together, by the length of its CDR3."
    figures = [
        Figure("lengths", "Histogram", caption, charts.lengths(table), table),
        _spread("size", surveys, words, lambda survey: survey.bins_by_size),
    ]
    return Section("length", "By CDR3 length", figures=figures)


def top(surveys: list[Survey]) -> Section:
    last = min(_LAST_N, max(survey.max_n for survey in surveys))
    beyond = any(survey.max_n > last for survey in surveys)
    by_n = [f"n={m}" for m in range(last + 1)] + [f"n>{last}"] * beyond
    ranked = surveys[0].model is not None

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for rank, junction in enumerate(survey.top, start=1):
            counts = junction.counters.tolist()
            rest = [sum(counts[last + 1 :]) if survey.max_n > last else None] * beyond
            counted = [*counts[: last + 1], *[None] * (last - survey.max_n), *rest]
            yield [
                rank, junction.amino_acids, junction.v_call, junction.j_call, junction.rows,
                *([junction.score] * ranked), junction.weight, junction.pathways, *counted, junction.cdr3,
                junction.sequence_id,
            ]  # fmt: skip

    score = "pgen" if ranked else "weight"
    heading = "The most probable junctions" if ranked else "Junctions with the largest weight"
    keys = f"rank aa v_call j_call rows {'pgen ' * ranked}weight pathways {' '.join(by_n)} cdr3 id"
    table = Table.of("top_table", heading, keys, surveys, rows)
    words = [text for survey in surveys for text in _by_model(survey)]
    if not table.rows:
        none = "No junction has a probability above 0." if ranked else "No junction has a pathway."
        return Section("top", heading, [*words, none])
    best = f"Largest {table.column(score).title}: {table.peak(score, f'{{aa}}, {{{score}}}')}"
    caption = f"Pathways of the first junctions, by number of n-nucleotides. {best}."
    chart = charts.top_junctions(table, by_n, _DRAWN)
    figure = Figure("top_junctions", "Heatmap", caption, chart, table)
    return Section("top", heading, words, figures=[figure], tables=[table])


def _by_model(survey: Survey) -> Iterable[str]:
    """The sentences about a ranking by a model; none if the weights rank the junctions."""
    if survey.model is not None:
        yield (
            f"The junctions of {survey.name} are ranked by their generation probability under the model "
            f"{survey.model.name}: the probability that one recombination makes this junction with this V and J allele."
        )
        if survey.unscored:
            reasons = few([f"{reason} ({junctions:,})" for reason, junctions in survey.unscored.most_common()], 8)
            yield f"{survey.unscored.total():,} junctions have no probability: {reasons}."


def alignments(surveys: list[Survey], germlines: Sequence[Germline | None], *, asked: bool) -> Section:
    words, figures = [], []
    for number, (survey, germline) in enumerate(zip(surveys, germlines, strict=True), start=1):
        if germline is None:
            why = "none of the tables given with --germline is that table" if asked else "give it with --germline"
            words.append(f"This figure needs the germline table that {survey.name} was counted with: {why}.")
            continue
        if not survey.shown:
            words.append(f"No junction of {survey.name} has a {_score_name(survey)} above 0.")
        for kind, (which, junction) in enumerate(survey.shown, start=1):
            title = f"{survey.name}, {which}: {junction.sequence_id}, {junction.amino_acids}"
            if junction.pathways:
                figures.append(_alignment(survey, germline, junction, title, f"alignment_{number}_{kind}"))
            else:
                words.append(f"{title}. It has no pathway with at most {survey.max_n} n-nucleotides.")
    return Section("alignment", "The most direct pathways of a junction", words, figures)


def _alignment(survey: Survey, germline: Germline, junction: Junction, title: str, name: str) -> Figure:
    v, j = germline.find("V", junction.v_call), germline.find("J", junction.j_call)
    assert v
    assert j
    d, forms = germline.d_segments(v.locus), survey.config["d_forms"]
    m, groups = most_direct(Explanation(junction.cdr3, v, j, d, survey.max_n, forms, germline.max_p))
    if junction.counters.tolist()[: m + 1] != [0] * m + [groups.total()]:
        raise InputError(
            f"{survey.path}: {junction.sequence_id} has other pathways than the germline table gives; check the table "
            "with `hpcvdj verify`, and count again"
        )
    lines = {track: line for line, track in enumerate(dict.fromkeys(track for track, *_ in groups), start=1)}
    shown = {group: pathways for group, pathways in groups.items() if lines[group[0]] <= _MOST_LINES}
    rows = [[lines[group[0]], *group, pathways] for group, pathways in shown.items()]
    table = Table(f"{name}_table", f"The lines of {title}", columns(("line", "track", *FACTS, "pathways")), rows)
    caption = (
        f"{title}, {junction.v_call} with {junction.j_call}, CDR3 {junction.cdr3}. Fewest n-nucleotides: {m}; pathways "
        f"with that many: {groups.total():,}; different lines: {len(lines):,}; shown: {min(len(lines), _MOST_LINES)}."
    )
    return Figure(name, "Alignment", caption, charts.alignment(table, junction.cdr3), table)


def most_direct(explanation: Explanation) -> tuple[int, Counter[tuple[Any, ...]]]:
    """The fewest n-nucleotides that the CDR3 needs, and the pathways with that many: {(track, *FACTS): pathways}.

    A track has one letter for each base, as of `Explanation.track`.  The longest V forms come first, then the longest
    J forms, then D genes and D's positions in their order.  (0, {}) for a CDR3 without a pathway.
    """
    m = next((m for m, pathways in enumerate(explanation.counters) if pathways), 0)
    alleles = [segment.allele for segment in explanation.d]

    def order(pathway: Pathway) -> tuple[int, int, int, int]:
        d = alleles.index(pathway.d.segment.allele) if pathway.d else 0
        return -pathway.v_length, -pathway.j_length, d, pathway.d_at or 0

    groups: Counter[tuple[Any, ...]] = Counter()
    for pathway in sorted(explanation.with_n(m), key=order):
        facts = explanation.describe(pathway)
        groups[explanation.track(pathway), *(facts[name] for name in FACTS)] += pathway.multiplicity
    return m, groups
