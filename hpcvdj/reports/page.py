"""The page of a report: results are read, sections put into the template, files written."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import MAX_P, Germline, read_germline
from hpcvdj.recombination.models import Model
from hpcvdj.reports.elements import Section, shown
from hpcvdj.reports.survey import Survey, survey
from hpcvdj.results.frames import require
from hpcvdj.results.reader import Result
from hpcvdj.storage.files import atomic_path, require_distinct, require_writable

MOST_RESULTS = 8


@dataclass(frozen=True)
class Highlights:
    """Which junctions a report shows.

    junction  the sequence_id of the junction whose most direct pathways are drawn
    model     the recombination model whose generation probabilities rank the junctions; if None, weights rank them
    """

    junction: str | None = None
    model: Model | None = None


def write_report(
    results: Sequence[str | Path],
    target: str | Path,
    *,
    germlines: Sequence[str | Path] = (),
    names: Sequence[str] = (),
    figures: str | Path | None = None,
    highlights: Highlights = Highlights(),
    overwrite: bool = False,
) -> int:
    """Write the report of `results` to `target`, and its figures into the folder `figures`; returns their number.

    germlines   the tables that the results were counted with, as of `hpcvdj.read_germline` and in any order: with them
                the report shows the most direct pathways of the first junction and of a typical one
    names       what the results are called; by default as their files
    highlights  how junctions are ranked, and the junction whose pathways are shown
    """
    junction, model = highlights.junction, highlights.model
    for library in ("altair", "jinja2", "vl_convert"):
        require(library, "report")
    paths, target, folder = [Path(path) for path in results], Path(target), Path(figures) if figures else None
    _require_usable(paths, names, target, folder, overwrite=overwrite)
    if junction is not None and not germlines:
        raise InputError(f"--junction {junction}: its pathways need --germline, the table that it was counted with")
    tables = _germlines(paths, germlines)
    surveys = [survey(path, name, junction, model) for path, name in zip(paths, _names(paths, names), strict=True)]
    if junction is not None and not any(each.shown for each in surveys):
        raise InputError(f"--junction {junction}: no such sequence_id was counted in {', '.join(map(str, paths))}")
    # Altair takes time to import, and may be missing.
    from hpcvdj.reports.charts import png, svg
    from hpcvdj.reports.sections import all_sections

    sections = all_sections(surveys, tables, asked=bool(germlines))
    drawn = [figure for section in sections for figure in section.figures]
    formats = {".svg": svg, ".png": png} if folder else {}
    files = [(folder / f"{each.name}{suffix}", each) for each in drawn for suffix in formats if folder]
    for path, _ in files:
        require_writable(path, overwrite=overwrite)
    # The page gets its name last, after all figures.
    with atomic_path(target, overwrite=overwrite) as page:
        page.write_text(_render(surveys, sections), encoding="utf-8", errors="replace")
        for path, figure in files:
            with atomic_path(path, overwrite=overwrite) as temporary:
                temporary.write_bytes(formats[path.suffix](figure))
    return len(drawn)


def _require_usable(
    paths: list[Path], names: Sequence[str], target: Path, folder: Path | None, *, overwrite: bool
) -> None:
    if len(paths) > MOST_RESULTS:
        raise InputError(f"{len(paths)} results: a report shows at most {MOST_RESULTS}; name fewer")
    if names and len(names) != len(paths):
        raise InputError(f"{len(names)} names for {len(paths)} results; give --name once for each, or not at all")
    require_distinct(target, *paths)
    require_writable(target, overwrite=overwrite)
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); name another folder with --figures") from None


def _names(paths: list[Path], names: Sequence[str]) -> list[str]:
    """What the results are called; equal names are numbered."""
    chosen = list(names) or [path.name.removesuffix(".h5") for path in paths]
    chosen = ["".join(letter if letter.isprintable() else "\ufffd" for letter in name) for name in chosen]
    often = Counter(chosen)
    return [f"{name} ({k})" if often[name] > 1 else name for k, name in enumerate(chosen, start=1)]


def _germlines(paths: list[Path], germlines: Sequence[str | Path]) -> list[Germline | None]:
    """The germline table of each result, None if it was not given; InputError for a table that no result has.

    Each is one of `germlines`, or all of them together, for results that were counted with several.
    """
    tables: dict[Path, Germline] = {}
    used: set[str | Path] = set()
    for path in paths:
        with Result(path) as result:
            facts = result.provenance
        settings = {"max_p": int(facts.get("max_p", MAX_P)), "d_alleles": facts.get("d_alleles", "first")}
        for names in (*((name,) for name in germlines), tuple(germlines)):
            try:
                germline = read_germline(names, **settings)
            except InputError:
                if len(names) == 1:
                    raise
                continue  # Tables that do not go together are those of different results.
            if germline.digest() == facts.get("germline_sha256"):
                tables[path] = germline
                used.update(names)
                break
    unused = next((name for name in germlines if name not in used), None)
    if unused is not None:
        raise InputError(
            f"{unused}: none of the results was counted with this germline table; name the one that `hpcvdj count` was "
            "given"
        )
    return [tables.get(path) for path in paths]


def _render(surveys: list[Survey], sections: list[Section]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from hpcvdj.reports.charts import CONFIG, bundle
    from hpcvdj.reports.sections import lead

    environment = Environment(
        loader=PackageLoader("hpcvdj.reports", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["shown"] = shown
    return environment.get_template("report.html").render(
        title=" and ".join(each.name for each in surveys) if len(surveys) < 4 else f"{len(surveys)} repertoires",
        lead=[(each.name, lead(each)) for each in surveys],
        sections=sections,
        config=CONFIG,
        bundle=bundle(),
        version=hpcvdj.__version__,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
