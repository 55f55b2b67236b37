"""The page of a report: what stands in its tables and between its figures, put into the template."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.explain import Explanation
from hpcvdj.germline import MAX_P, Germline, read_germline
from hpcvdj.report.divisions import Ends, Line, most_direct_lines
from hpcvdj.report.survey import EDGES, Junction, Survey, coarse, survey
from hpcvdj.results import Result
from hpcvdj.storage import atomic_path, require_writable

if TYPE_CHECKING:
    from hpcvdj.report.figures import Drawing

MOST_LINES = 24
"""Lines of an alignment picture."""

_MOST_PAIRS = 15


@dataclass(frozen=True)
class Table:
    """A table of a page: texts, the first of each row its header.

    Columns: `text` are no numbers, `code` are sequences, `wrap` are long texts that may be broken.
    """

    caption: str
    columns: list[str]
    rows: list[list[str]]
    text: frozenset[int] = frozenset({0})
    code: frozenset[int] = frozenset()
    wrap: frozenset[int] = frozenset()


@dataclass
class Block:
    """Something under a heading, in this order: sentences, figures in columns, tables, tables that unfold."""

    words: list[str] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    unfold: list[tuple[str, Table]] = field(default_factory=list)
    heading: str = ""
    small: bool = False


@dataclass
class Section:
    """A heading of the page, and what stands under it."""

    anchor: str
    heading: str
    blocks: list[Block]


def write_report(
    results: Sequence[str | Path],
    target: str | Path,
    *,
    germlines: Sequence[str | Path] = (),
    names: Sequence[str] = (),
    figures: str | Path | None = None,
    junction: str | None = None,
    overwrite: bool = False,
) -> int:
    """Write the report of `results` to `target`, and its figures into the folder `figures`; returns their number.

    `germlines` are the tables that the results were counted with, in any order: with them the report shows one
    junction's most direct pathways: that of the most convergent and of a typical one, or of `junction`, a sequence_id.
    `names` are what the results are called, their files' names by default.
    """
    require_libraries()
    from hpcvdj.report.figures import MOST_RESULTS, png_file, style, svg_file

    target = Path(target)
    folder = None if figures is None else Path(figures)
    _require_usable(results, names, target, folder, MOST_RESULTS, overwrite=overwrite)
    if junction is not None and not germlines:
        raise InputError(f"--junction {junction}: its pathways need --germline, the table that it was counted with")
    tables = [_germline_of(path, germlines) for path in results]
    _require_all_used(germlines, tables)
    surveys = [survey(path, name, junction) for path, name in zip(results, _names(results, names), strict=True)]
    if junction is not None and not any(one.shown for one in surveys):
        raise InputError(f"--junction {junction}: no such sequence_id was counted in {', '.join(map(str, results))}")
    with style():
        sections = _sections(surveys, tables, bool(germlines))
    page = _render(surveys, sections)
    drawings = [drawing for section in sections for block in section.blocks for drawing in block.drawings]
    files = [] if folder is None else [(d, folder / (d.name + suffix)) for d in drawings for suffix in (".svg", ".png")]
    for _, path in files:
        require_writable(path, overwrite=overwrite)
    # The page gets its name last, when its figures have theirs.
    with atomic_path(target, overwrite=overwrite) as whole:
        whole.write_text(page, encoding="utf-8", errors="replace")
        for drawing, path in files:
            with atomic_path(path, overwrite=overwrite) as temporary:
                temporary.write_bytes((svg_file if path.suffix == ".svg" else png_file)(drawing.figure))
    return len(drawings)


def require_libraries() -> None:
    """InputError that names the extra unless what a report needs is installed."""
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise InputError(f"a report needs {' and '.join(missing)}: install hpcvdj[report]")


def _require_usable(
    results: Sequence[str | Path],
    names: Sequence[str],
    target: Path,
    folder: Path | None,
    most: int,
    *,
    overwrite: bool,
) -> None:
    if len(results) > most:
        raise InputError(f"{len(results)} results: a report compares at most {most}; name fewer")
    if names and len(names) != len(results):
        raise InputError(f"{len(names)} names for {len(results)} results; give --name once for each, or not at all")
    if any(target.resolve() == Path(path).resolve() for path in results):
        raise InputError(f"{target}: is the result itself; name another file for the report")
    require_writable(target, overwrite=overwrite)
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); name another folder with --figures") from None
    # The first figure of every report: the others' names are known once the results are read.
    require_writable(folder / "pathways_per_junction.svg", overwrite=overwrite)


def _names(results: Sequence[str | Path], names: Sequence[str]) -> list[str]:
    """What the results are called: apart from each other."""
    chosen = list(names) or [Path(path).name.removesuffix(".h5") for path in results]
    chosen = ["".join(letter if letter.isprintable() else "\ufffd" for letter in name) for name in chosen]
    often = Counter(chosen)
    return [f"{name} ({k})" if often[name] > 1 else name for k, name in enumerate(chosen, start=1)]


# --- germlines --------------------------------------------------------------------------------------------------------


def _germline_of(path: str | Path, germlines: Sequence[str | Path]) -> tuple[str, Germline] | None:
    """Of the germline tables the one that the result was counted with, and its path; None if it is not there."""
    if not germlines:
        return None
    with Result(path) as result:
        facts = result.provenance
    for table in germlines:
        germline = read_germline(table, max_p=int(facts.get("max_p", MAX_P)), d_alleles=facts.get("d_alleles", "first"))
        if germline.digest() == facts.get("germline_sha256"):
            return str(table), germline
    return None


def _require_all_used(germlines: Sequence[str | Path], found: Sequence[tuple[str, Germline] | None]) -> None:
    for table in germlines:
        if not any(one and one[0] == str(table) for one in found):
            raise InputError(
                f"{table}: no result was counted with it (the digest of its segments differs from theirs); "
                "name the table that `hpcvdj count` was given"
            )


# --- sections ---------------------------------------------------------------------------------------------------------


def _sections(surveys: list[Survey], tables: Sequence[tuple[str, Germline] | None], asked: bool) -> list[Section]:
    from hpcvdj.report import figures

    one = surveys[0] if len(surveys) == 1 else None
    sections = [
        Section("summary", "Summary", [Block(_differences(surveys), tables=[_summary(surveys)])]),
        Section("excluded", "Rows that were not counted", [_excluded(item, one is None) for item in surveys]),
    ]
    if not any(item.counted for item in surveys):
        sections[0].blocks[0].words.append("No junction was counted, so there is nothing to draw.")
        return [*sections, _run_facts(surveys)]
    heat = figures.draw_pairs(surveys)
    pair_words = [
        "A pair is a V gene with a J gene, the alleles of a gene taken together. Small dots: no junctions; 0: "
        "junctions, but no pathway. The scales are logarithmic"
        + ("." if one else ", and the same for all results.")
        + (" The results have few genes in common, so each shows its own." if figures.few_in_common(surveys) else "")
    ]
    sections.append(
        Section(
            "pairs",
            "V and J genes",
            [Block(words=pair_words)]
            + [
                Block(
                    heading="" if one else item.name,
                    drawings=row,
                    small=True,
                    unfold=[(f"The {_MOST_PAIRS} V–J pairs with the most junctions{_in(item, one)}", _pairs(item))],
                )
                for item, row in zip(surveys, heat, strict=True)
            ],
        )
    )
    sections += [
        Section(
            "distribution",
            "Pathways per junction",
            [
                Block(
                    drawings=[figures.draw_distribution(surveys)],
                    unfold=[("The numbers of this figure", _distribution(surveys))],
                )
            ],
        ),
        Section(
            "n-nucleotides",
            "By number of n-nucleotides",
            [
                Block(
                    words=["Recombination adds n-nucleotides at random between V, D and J. A pathway with few of them "
                           "asks little of chance; one with many exists for almost any sequence."],
                    drawings=[figures.draw_reached(surveys), figures.draw_mean_by_n(surveys)],
                ),
                Block(
                    drawings=figures.draw_spread_by_n(surveys),
                    unfold=[("The numbers of these figures", _by_n(surveys))],
                ),
            ],
        ),
        Section(
            "length",
            "By junction length",
            [
                *([] if one else [Block(drawings=[figures.draw_lengths(surveys)])]),
                Block(
                    drawings=[figures.draw_lengths(surveys)] * bool(one) + figures.draw_spread_by_size(surveys),
                    unfold=[("The numbers of these figures", _by_size(surveys))],
                ),
            ],
        ),
        _convergent(surveys, one),
        _alignments(surveys, tables, asked, one),
        _run_facts(surveys),
    ]  # fmt: skip
    return sections


def _differences(surveys: list[Survey]) -> list[str]:
    """A warning if the results count different things, so that their pathways cannot be compared."""
    asked: dict[str, list[str]] = {}
    for one in surveys:
        config = json.loads(one.facts.get("config", "{}"))
        values = {
            "n-lengths": f"0–{config.get('max_n_asked', one.max_n)}",
            "D forms": config.get("d_forms", "?"),
            "D alleles": one.facts.get("d_alleles", "?"),
            "P-nucleotides at an end": f"at most {one.facts.get('max_p', '?')}",
        }
        for what, value in values.items():
            asked.setdefault(what, []).append(str(value))
    differ = [f"{what} ({', '.join(values)})" for what, values in asked.items() if len(set(values)) > 1]
    if not differ:
        return []
    return [
        f"Numbers of pathways cannot be compared here: the results were counted with different {'; '.join(differ)}."
    ]


def _in(item: Survey, one: Survey | None) -> str:
    return "" if one else f" of {item.name}"


def percent(part: int, whole: int) -> str:
    """A share in percent, with two digits behind the point."""
    return f"{100 * part / whole:.2f} %" if whole else "–"


def _summary(surveys: list[Survey]) -> Table:
    rows: list[list[str]] = [
        ["rows read", *(f"{s.rows_read:,}" for s in surveys)],
        ["junctions counted", *(f"{s.counted:,}" for s in surveys)],
        ["rows not counted", *(f"{s.excluded:,} ({percent(s.excluded, s.rows_read)})" for s in surveys)],
        ["V–J pairs of alleles", *(f"{s.allele_pairs:,}" for s in surveys)],
        ["V–J pairs of genes", *(f"{len(s.pairs):,}" for s in surveys)],
        ["junctions in frame", *(f"{s.in_frame:,} ({percent(s.in_frame, s.counted)})" for s in surveys)],
        ["n-lengths counted", *(f"0–{s.max_n}" for s in surveys)],
        ["pathways in all", *(f"{s.pathways:,}" for s in surveys)],
        ["junctions with a pathway", *(f"{s.with_pathway:,} ({percent(s.with_pathway, s.counted)})" for s in surveys)],
        ["junctions without a pathway", *(f"{s.counted - s.with_pathway:,}" for s in surveys)],
        ["junctions with a pathway without n-nucleotides",
         *(f"{int(s.reached[0]):,} ({percent(int(s.reached[0]), s.counted)})" for s in surveys)],
        ["pathways per junction, mean", *(f"{s.pathways / s.counted:,.1f}" if s.counted else "–" for s in surveys)],
        ["pathways per junction, median", *(_quantile(s, 0.5) for s in surveys)],
        ["pathways per junction, middle half",
         *(f"{_quantile(s, 0.25)} to {_quantile(s, 0.75)}" if s.counted else "–" for s in surveys)],
        ["pathways per junction, most", *(f"{s.most:,}" for s in surveys)],
    ]  # fmt: skip
    return Table("Summary of what was counted", ["", *(s.name for s in surveys)], rows)


def _quantile(one: Survey, share: float) -> str:
    if not one.counted:
        return "–"
    value, exact = one.per_junction.quantile(share)
    return f"{'' if exact else 'about '}{value:,.1f}".removesuffix(".0")


def _excluded(one: Survey, several: bool) -> Block:
    heading = one.name if several else ""
    if not one.excluded:
        said = f"All {one.counted:,} rows were counted." if one.counted else "The table has no rows."
        return Block([said], heading=heading)
    rows = []
    for kind, count, examples in one.reasons:
        said = "; ".join(f"{text} ({number:,})" for text, number in examples)
        rows.append([kind, f"{count:,}", percent(count, one.rows_read), said])
    words = [f"{one.excluded:,} of {one.rows_read:,} rows could not be counted; the result file names each of them."]
    columns = ["reason", "rows", "of all rows", "word for word, the commonest"]
    return Block(words, tables=[Table(f"Rows not counted{f' in {one.name}' if several else ''}, by reason", columns,
                                      rows, frozenset({0, 3}), wrap=frozenset({0, 3}))], heading=heading)  # fmt: skip


def _pairs(one: Survey) -> Table:
    ranked = sorted(one.pairs.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_PAIRS]
    rows = [
        [f"{v} {j}", f"{count:,}", percent(count, one.counted), f"{ways:,}", percent(ways, one.pathways),
         f"{ways / count:,.1f}"]
        for (v, j), (count, ways) in ranked
    ]  # fmt: skip
    return Table(
        f"V–J pairs with the most junctions, {one.name}",
        ["V and J gene", "junctions", "of all", "pathways", "of all", "pathways per junction"],
        rows,
    )


def _distribution(surveys: list[Survey]) -> Table:
    histograms = [coarse(one.totals) for one in surveys]
    last = max(int(np.flatnonzero(histogram).max(initial=0)) for histogram in histograms)
    rows = []
    for k in range(last + 1):
        low, high = (0, 0) if k == 0 else (int(EDGES[k - 1]), int(EDGES[k]) - 1)
        label = "none" if k == 0 else f"{low:,}" if low == high else f"{low:,}–{high:,}"
        cells = [(int(h[k]), one.counted) for h, one in zip(histograms, surveys, strict=True)]
        rows.append([label, *(text for part, whole in cells for text in (f"{part:,}", percent(part, whole)))])
    names = [text for one in surveys for text in (f"{one.name}: junctions", "of all")]
    return Table("Junctions by number of pathways", ["pathways", *names], rows)


def _by_n(surveys: list[Survey]) -> Table:
    last = max(max(one.max_n, 0) for one in surveys)
    last = min(last, max(10, *(int(np.flatnonzero(one.reached).max(initial=0)) + 1 for one in surveys)))
    rows = []
    for m in range(last + 1):
        row = [str(m)]
        for one in surveys:
            if m > one.max_n:
                row += ["–"] * 4
                continue
            upto = int(one.reached[: m + 1].sum())
            mean = f"{one.by_n[m] / one.counted:,.2f}" if one.counted else "–"
            row += [f"{int(one.reached[m]):,}", percent(upto, one.counted), f"{one.by_n[m]:,}", mean]
        rows.append(row)
    columns = ["n"]
    for one in surveys:
        columns += [f"{one.name}: junctions whose most direct pathway has n", "reached with at most n",
                    "pathways with n", "pathways with n, per junction"]  # fmt: skip
    return Table("Junctions and pathways by number of n-nucleotides", columns, rows)


def _by_size(surveys: list[Survey]) -> Table:
    from hpcvdj.report.figures import median_bin
    from hpcvdj.report.survey import FINE_EDGES

    def median(fine: Any) -> str:
        found = median_bin(fine)
        if found is None:
            return "–"
        if found == 0:
            return "0"
        low = int(FINE_EDGES[found - 1])
        high = int(FINE_EDGES[found]) - 1
        return f"{low:,}" if high <= low else f"{low:,}–{high:,}"

    sizes = np.flatnonzero(sum(one.totals_by_size.sum(axis=1) for one in surveys))
    rows = []
    for size in sizes.tolist():
        row = [str(size)]
        for one in surveys:
            fine = one.totals_by_size[size]
            row += [f"{int(fine.sum()):,}", f"{int(fine[0]):,}", median(fine)]
        rows.append(row)
    columns = ["CDR3, nt"]
    for one in surveys:
        columns += [f"{one.name}: junctions", "without a pathway", "median of pathways, between"]
    return Table("Junctions and their pathways by CDR3 length", columns, rows)


def _convergent(surveys: list[Survey], one: Survey | None) -> Section:
    from hpcvdj.report.figures import draw_convergent

    words = [
        "The junctions with the most pathways: those that recombination makes most easily, if every pathway counts "
        "the same. Rows that share V, J and CDR3 are one junction here. The amino acids are those of what the result "
        "stores, the CDR3, IMGT positions 105 to 117: the codons of Cys 104 before it and Phe/Trp 118 behind it are "
        "not stored, so their letters are not shown."
    ]
    blocks = [Block(words)]
    for item, drawing in zip(surveys, draw_convergent(surveys), strict=True):
        if drawing is None:
            blocks.append(Block([f"No junction{_in(item, one)} has a pathway."], heading="" if one else item.name))
            continue
        blocks.append(Block(heading="" if one else item.name, drawings=[drawing], tables=[_convergent_table(item)]))
    return Section("convergent", "The most convergent junctions", blocks)


def _convergent_table(one: Survey) -> Table:
    shown = min(10, one.max_n)
    beyond = one.max_n > shown
    lengths = [f"n = {m}" for m in range(shown + 1)] + [f"n > {shown}"] * beyond
    columns = ["", "CDR3, amino acids", "V", "J", "rows", "pathways", *lengths, "CDR3, nucleotides",
               "first sequence_id"]  # fmt: skip
    rows = []
    for number, junction in enumerate(one.convergent, start=1):
        counts = [int(value) for value in junction.counters]
        by_n = counts[: shown + 1] + [sum(counts[shown + 1 :])] * beyond
        rows.append(
            [str(number), junction.amino_acids, junction.v_call, junction.j_call, f"{junction.rows:,}",
             f"{junction.pathways:,}", *(f"{value:,}" for value in by_n), junction.cdr3, junction.sequence_id]
        )  # fmt: skip
    cdr3 = len(columns) - 2
    wrap = frozenset({cdr3 + 1} if any(len(junction.sequence_id) > 40 for junction in one.convergent) else ())
    return Table(
        f"The {len(rows)} junctions of {one.name} with the most pathways, by number of n-nucleotides",
        columns, rows, frozenset({1, 2, 3, cdr3, cdr3 + 1}), frozenset({1, cdr3}), wrap,
    )  # fmt: skip


def _alignments(
    surveys: list[Survey], tables: Sequence[tuple[str, Germline] | None], asked: bool, one: Survey | None
) -> Section:
    words = [
        "Every way to divide a junction into V, D, J and as few n-nucleotides as it can have. Pathways that differ "
        "only in the D gene, or in how an empty D or one that occurs twice in its gene was chewed back, share a line."
    ]
    blocks = [Block(words)]
    for number, (item, table) in enumerate(zip(surveys, tables, strict=True), start=1):
        heading = "" if one else item.name
        if table is None:
            why = "none of the tables given with --germline is the one" if asked else "give --germline to see it"
            text = f"This picture needs the germline table that {item.name} was counted with: {why}."
            blocks.append(Block([text], heading=heading))
        elif not item.shown:
            blocks.append(Block([f"No junction{_in(item, one)} to show: none has a pathway."], heading=heading))
        else:
            for kind, (of, junction) in enumerate(item.shown, start=1):
                blocks.append(
                    _alignment(item, table[1], junction, of, f"{number}_{kind}", heading if kind == 1 else "")
                )
    return Section("alignment", "The most direct pathways of a junction", blocks)


def _alignment(item: Survey, germline: Germline, junction: Junction, of: str, kind: str, heading: str) -> Block:
    from hpcvdj.report.figures import draw_alignment

    if not junction.pathways:
        text = f"{junction.sequence_id}, {of}, has no pathway with at most {item.max_n} n-nucleotides."
        return Block([text], heading=heading)
    m, lines = _lines(item, germline, junction)
    total = sum(line.pathways for line in lines)
    rows = []
    for number, line in enumerate(lines[:MOST_LINES], start=1):
        left = junction.cdr3[line.v : line.d_start]
        right = junction.cdr3[line.d_stop : len(junction.cdr3) - line.j]
        for share in line.shares:
            rows.append(
                [str(number), _ends(line.v_3), left or "–", share.d_gene or "–",
                 junction.cdr3[line.d_start : line.d_stop] or "–", _ends(share.d_5), _ends(share.d_3), right or "–",
                 _ends(line.j_5), f"{share.pathways:,}"]
            )  # fmt: skip
    columns = ["line", "V, 3′ end", "n left", "D gene", "D form", "D, 5′ end", "D, 3′ end", "n right", "J, 5′ end",
               "pathways"]  # fmt: skip
    table = Table(
        f"The lines of the picture: {junction.v_call} with {junction.j_call}, CDR3 {junction.cdr3}. "
        "−3: three bases chewed off that end of the segment; +2 P: two P-nucleotides; 0: neither",
        columns, rows, frozenset(range(9)), frozenset({2, 4, 7}),
    )  # fmt: skip
    drawing = draw_alignment(junction, m, lines[:MOST_LINES], total, of, item.name, kind)
    rest = [f"Of {len(lines):,} lines the first {MOST_LINES} are drawn."] if len(lines) > MOST_LINES else []
    return Block(rest, heading=heading, drawings=[drawing], unfold=[("These pathways in a table", table)])


def _lines(item: Survey, germline: Germline, junction: Junction) -> tuple[int, list[Line]]:
    """The most direct pathways, checked against the counters."""
    v, j = germline.find("V", junction.v_call), germline.find("J", junction.j_call)
    forms = json.loads(item.facts["config"])["d_forms"]
    found = None
    if v and j:
        genes = germline.d_segments(v.locus)
        found = most_direct_lines(Explanation(junction.cdr3, v, j, genes, item.max_n, forms, germline.max_p))
    counted = next((m, int(ways)) for m, ways in enumerate(junction.counters) if ways)
    if not found or (found[0], sum(line.pathways for line in found[1])) != counted:
        raise InputError(
            f"{item.path}: {junction.sequence_id} has other pathways than the germline table gives; "
            "`hpcvdj verify` its table, and count again"
        )
    return found


def _ends(ends: Ends | None) -> str:
    """An end of a form, in the words of the table."""
    if ends is None:
        return "several"
    p, lost = ends
    return f"+{p} P" if p else f"−{lost}" if lost else "0"


# --- run facts --------------------------------------------------------------------------------------------------------


def _run_facts(surveys: list[Survey]) -> Section:
    return Section("run", "How it was counted", [Block(tables=[_facts(surveys), *_times(surveys)])])


def _facts(surveys: list[Survey]) -> Table:
    columns = [_facts_of(one) for one in surveys]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    rows = [[key, *(column.get(key, "–") for column in columns)] for key in keys]
    everything = frozenset(range(len(surveys) + 1))
    return Table("Facts of the run, as the result file records them", ["", *(s.name for s in surveys)], rows,
                 everything, wrap=everything - {0})  # fmt: skip


def _facts_of(one: Survey) -> dict[str, str]:
    facts = one.facts
    config = json.loads(facts.get("config", "{}"))
    calls = config.get("calls", {})
    hardware = Counter(rank.get("hardware", "").partition(", device ")[0] for rank in one.ranks)
    software = list(dict.fromkeys(rank.get("software", "") for rank in one.ranks))
    hosts = list(dict.fromkeys(rank.get("host", "") for rank in one.ranks))
    gpus = [rank["hardware"] for rank in one.ranks if ", device " in rank.get("hardware", "")]
    libraries = [f"{key.removeprefix('version_')} {facts[key]}" for key in facts if key.startswith("version_")]
    read = facts.get("junctions_sha256", "")
    found = {
        "result file": str(one.path.name),
        "counted by": f"hpcvdj {facts.get('hpcvdj_version', '?')}",
        "counting ended (UTC)": str(facts.get("created_utc", "")),
        "command line": str(facts.get("command_line", "")),
        "method": f"{config.get('method', '?')}, backend asked for: {config.get('backend', '?')}",
        "n-lengths": f"0–{one.max_n} (asked for: {config.get('max_n_asked', one.max_n)})",
        "D forms": f"{config.get('d_forms', '?')}; D alleles: {facts.get('d_alleles', '?')}",
        "P-nucleotides at an end, at most": str(facts.get("max_p", "?")),
        "field read": str(facts.get("sequence_field", "?")),
        "ambiguous calls, unlisted alleles": f"{calls.get('ambiguous', '?')}, {calls.get('unlisted', '?')}",
        "calls replaced": _replaced(facts),
        "ranks": f"{len(one.ranks)} on {len(hosts)} {'host' if len(hosts) == 1 else 'hosts'}",
        "GPUs": str(len(set(gpus))) if gpus else "none",
        "hardware": "; ".join(f"{count} × {name}" for name, count in hardware.items()),
        "kernels": "; ".join(software),
        "hosts": _few(hosts),
        "MPI library": str(facts.get("mpi_library", "")),
        "parts": str(facts["parts"]) if "parts" in facts else "one file",
        "junctions": str(facts.get("junctions_path", "")),
        "junctions, SHA-256 of the file": str(read),
        "germline": str(facts.get("germline_path", "")),
        "germline, SHA-256 of its segments": str(facts.get("germline_sha256", "")),
        "Python, platform": f"{facts.get('python', '?')}, {facts.get('platform', '?')}",
        "libraries": ", ".join(libraries),
        "user": str(facts.get("user", "")),
        "Slurm job": str(facts.get("slurm_job_id", "")) or "none",
    }
    return {key: value or "–" for key, value in found.items()}


def _replaced(facts: dict[str, Any]) -> str:
    calls = json.loads(facts.get("substituted_calls", "[]"))
    return _few([f"{call} → {allele} ({int(rows):,} rows)" for call, allele, rows in calls]) if calls else "none"


def _few(texts: Sequence[str], most: int = 8) -> str:
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def _times(surveys: list[Survey]) -> list[Table]:
    tables = []
    for one in surveys:
        times = one.timings
        if not len(times.get("n_first", [])):
            continue
        rows = []
        for first, stop in sorted({(int(a), int(b)) for a, b in zip(times["n_first"], times["n_stop"], strict=True)}):
            chosen = (times["n_first"] == first) & (times["n_stop"] == stop)
            label = str(first) if stop == first + 1 else f"{first}–{stop - 1}"
            rows.append([label, f"{int(chosen.sum()):,}", *(
                _seconds(float(times[f"{name}_seconds"][chosen].sum())) for name in ("kernel", "reduce", "wall")
            )])  # fmt: skip
        ranks = times.get("rank_kernel_seconds", np.zeros(0))
        spread = (
            f"; time in the kernel by rank: {_seconds(ranks.min())} to {_seconds(ranks.max())} s" if len(ranks) else ""
        )
        tables.append(
            Table(
                f"Seconds by stage, {one.name}: each unit of work by its slowest rank, summed over units{spread}",
                ["n-lengths", "units", "kernel, s", "combining the ranks’ counters, s", "in all, storing included, s"],
                rows,
            )
        )
    return tables


def _seconds(value: float) -> str:
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


# --- the page ---------------------------------------------------------------------------------------------------------


def _render(surveys: list[Survey], sections: list[Section]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from hpcvdj.report.figures import inline_svg

    environment = Environment(
        loader=PackageLoader("hpcvdj.report", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals["svg"] = lambda drawing: Markup(inline_svg(drawing.figure, drawing.name))
    style = environment.get_template("report.css").render()
    return environment.get_template("report.html").render(
        title=" and ".join(one.name for one in surveys) if len(surveys) < 4 else f"{len(surveys)} repertoires",
        lead=_lead(surveys),
        sections=sections,
        style=Markup(style),
        version=hpcvdj.__version__,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _lead(surveys: list[Survey]) -> list[str]:
    """Each result in a sentence."""
    out = []
    for one in surveys:
        name = f"{one.name}: " if len(surveys) > 1 else ""
        if not one.counted:
            out.append(f"{name}{one.counted:,} of {one.rows_read:,} rows could be counted.")
            continue
        median = _quantile(one, 0.5)
        out.append(
            f"{name}{one.counted:,} junctions, {percent(one.with_pathway, one.counted)} of which recombination "
            f"reaches with at most {one.max_n} n-nucleotides, in {median} ways at the median."
        )
    return out
