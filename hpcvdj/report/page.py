"""The page of a report: results read, sections put into the template, files written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import MAX_P, Germline, read_germline
from hpcvdj.report.survey import Survey, survey
from hpcvdj.results.reader import Result
from hpcvdj.storage import atomic_path, require_writable

if TYPE_CHECKING:
    from hpcvdj.report.elements import Section


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
    from hpcvdj.report.figures.drawing import png_file, svg_file
    from hpcvdj.report.figures.style import MOST_RESULTS, style
    from hpcvdj.report.sections import all_sections

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
        sections = all_sections(surveys, tables, asked=bool(germlines))
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


def _render(surveys: list[Survey], sections: list[Section]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from hpcvdj.report.figures.drawing import inline_svg
    from hpcvdj.report.sections.summary import lead

    environment = Environment(
        loader=PackageLoader("hpcvdj.report", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals["svg"] = lambda drawing: Markup(inline_svg(drawing.figure, drawing.name))
    style = environment.get_template("report.css").render()
    return environment.get_template("report.html").render(
        title=" and ".join(one.name for one in surveys) if len(surveys) < 4 else f"{len(surveys)} repertoires",
        lead=lead(surveys),
        sections=sections,
        style=Markup(style),
        version=hpcvdj.__version__,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
