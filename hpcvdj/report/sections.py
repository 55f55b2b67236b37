"""The sections with figures: tables, the figures that are drawn from them, and words."""

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.explanation import Explanation
from hpcvdj.recombination.germline import Germline
from hpcvdj.report import charts
from hpcvdj.report.bins import doublings, median
from hpcvdj.report.divisions import FACTS, most_direct
from hpcvdj.report.elements import Cell, Figure, Section, Table, columns
from hpcvdj.report.facts import excluded, run_facts, summary
from hpcvdj.report.survey import Junction, Survey

_DRAWN = 20
"""Top junctions in the figure; the table has more."""

_MOST_LINES = 24
"""Lines of an alignment."""

_LAST_N = 10
"""The last n-length that is shown in any case, and has a column of its own."""

_BIN = "low high junctions share"


def all_sections(surveys: list[Survey], germlines: Sequence[Germline | None], *, asked: bool) -> list[Section]:
    """The page; `germlines` are the results' germline tables, `asked` tells whether any was given."""
    sections = [summary(surveys), excluded(surveys)]
    if any(survey.counted for survey in surveys):
        sections += [part(surveys) for part in (pairs, distribution, n_lengths, lengths, top)]
        sections.append(alignments(surveys, germlines, asked=asked))
    return [*sections, run_facts(surveys)]


def pairs(surveys: list[Survey]) -> Section:
    """V and J genes."""

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for (v, j), (number, ways) in sorted(survey.pairs.items(), key=lambda item: (-item[1][0], item[0])):
            yield [v, j, number, survey.share(number), ways, 100 * ways / max(1, survey.pathways), ways / number]

    table = Table.of("pairs_table", "V–J pairs", "v j junctions share pathways ways mean", surveys, rows)
    genes = [sorted({pair[k] for survey in surveys for pair in survey.pairs}, key=_natural) for k in (0, 1)]
    figures = []
    for key in ("junctions", "pathways", "mean"):
        most = table.peak(key, f"{{v}} with {{j}}, {{{key}}}")
        caption = f"{table.column(key).title.capitalize()}, by V–J pair. Most: {most}."
        figures.append(Figure(f"vj_{key}", "Heatmap", caption, charts.pairs(table, key, *genes), table))
    return Section("pairs", "V and J genes", figures=figures)


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts TRBV2 before TRBV10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def _binned(survey: Survey, histogram: NDArray[np.int64]) -> Iterable[list[Cell]]:
    """(from, to, junctions, share) of each bin that has junctions, of a fine histogram."""
    counts = doublings(histogram)
    for k in np.flatnonzero(counts).tolist():
        yield [2 ** (k - 1) if k else 0, 2**k - 1, int(counts[k]), survey.share(int(counts[k]))]


def distribution(surveys: list[Survey]) -> Section:
    """Pathways per junction."""
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
    """Junctions and pathways by number of n-nucleotides."""
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
    """Junctions and pathways by CDR3 length."""

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
    """The junctions with the largest weight."""
    last = min(_LAST_N, max(survey.max_n for survey in surveys))
    beyond = any(survey.max_n > last for survey in surveys)
    by_n = [f"n={m}" for m in range(last + 1)] + [f"n>{last}"] * beyond

    def rows(survey: Survey) -> Iterable[list[Cell]]:
        for rank, junction in enumerate(survey.top, start=1):
            counts = junction.counters.tolist()
            rest = [sum(counts[last + 1 :]) if survey.max_n > last else None] * beyond
            counted = [*counts[: last + 1], *[None] * (last - survey.max_n), *rest]
            yield [
                rank, junction.amino_acids, junction.v_call, junction.j_call, junction.rows, junction.weight,
                junction.pathways, *counted, junction.cdr3, junction.sequence_id,
            ]  # fmt: skip

    keys = f"rank aa v_call j_call rows weight pathways {' '.join(by_n)} cdr3 id"
    table = Table.of("top_table", "Junctions with the largest weight", keys, surveys, rows)
    if not table.rows:
        return Section("top", table.caption, ["No junction has a pathway."])
    best = table.peak("weight", "{aa}, {weight}")
    caption = f"Pathways of the first junctions, by number of n-nucleotides. Largest weight: {best}."
    chart = charts.top_junctions(table, by_n, _DRAWN)
    figure = Figure("top_junctions", "Heatmap", caption, chart, table)
    return Section("top", table.caption, figures=[figure], tables=[table])


def alignments(surveys: list[Survey], germlines: Sequence[Germline | None], *, asked: bool) -> Section:
    """The most direct pathways of a junction of each result."""
    words, figures = [], []
    for number, (survey, germline) in enumerate(zip(surveys, germlines, strict=True), start=1):
        if germline is None:
            why = "none of the tables given with --germline is that table" if asked else "give it with --germline"
            words.append(f"This figure needs the germline table that {survey.name} was counted with: {why}.")
            continue
        if not survey.shown:
            words.append(f"No junction of {survey.name} has a pathway.")
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
