"""The page of a report: files are read, sections put into the template, the page and its figures written."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import hpcvdj
from hpcvdj.errors import InputError, option
from hpcvdj.reports.elements import Section
from hpcvdj.reports.multiqc import custom_content
from hpcvdj.reports.outputs import Outputs, each_file, read_outputs, refused_steps
from hpcvdj.reports.settings import Grouping
from hpcvdj.results.facts import facts_path
from hpcvdj.results.frames import require
from hpcvdj.storage.files import atomic_path, require_distinct, require_writable
from hpcvdj.storage.opening import MISREAD, damage

LIBRARIES = ("altair", "itables", "jinja2", "networkx", "vl_convert")


_UNGROUPED = Grouping()


def write_report(
    files: Sequence[str | Path],
    target: str | Path,
    *,
    figures: str | Path | None = None,
    multiqc: str | Path | None = None,
    grouping: Grouping = _UNGROUPED,
    overwrite: bool = False,
    undone: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Write the report of `files` to `target`, and its figures into the folder `figures`; returns their number.

    multiqc  the folder of the tables of samples for MultiQC
    undone   what was asked for and not done, with the reason
    """
    for library in LIBRARIES:
        require(library, "report")
    paths, target, folder = [Path(path) for path in files], Path(target), Path(figures) if figures else None
    metadata = None if grouping.metadata is None else Path(grouping.metadata)
    undone = {**refused_steps(paths), **undone}
    paths = each_file(paths)
    require_distinct(target, *paths, *map(facts_path, paths), *filter(None, [metadata]))
    require_writable(target, overwrite=overwrite)
    content_folder = Path(multiqc) if multiqc else None
    for made, name in ((folder, "figures"), (content_folder, "multiqc")):
        try:
            if made:
                made.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{made}: cannot be made ({error.strerror}); name another folder with {option(name)}"
            ) from None
    outputs = replace(read_outputs(paths, grouping.name, metadata, grouping.group), undone=undone)
    # Altair takes time to import, and may be missing.
    from hpcvdj.reports.charts import png, svg

    sections, text = _page(outputs)
    drawn = [figure for section in sections for figure in section.figures]
    formats = {".svg": svg, ".png": png} if folder else {}
    pictures = [(folder / f"{each.name}{suffix}", each) for each in drawn for suffix in formats if folder]
    contents = {content_folder / name: own for name, own in custom_content(sections).items() if content_folder}
    for path in (*(path for path, _ in pictures), *contents):
        require_writable(path, overwrite=overwrite)
    # The page gets its name last, after all figures.
    with atomic_path(target, overwrite=overwrite) as page:
        page.write_text(text, encoding="utf-8", errors="replace")
        for path, figure in pictures:
            with atomic_path(path, overwrite=overwrite) as temporary:
                temporary.write_bytes(formats[path.suffix](figure))
        for path, content in contents.items():
            with atomic_path(path, overwrite=overwrite) as temporary:
                temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(drawn)


def _page(outputs: Outputs) -> tuple[list[Section], str]:
    """The sections and the text of the page.

    Facts that a program or a person changed may have any value anywhere: if the page cannot be made, InputError names
    the file whose own page cannot be made either.
    """
    try:
        return _rendered(outputs)
    except (InputError, *MISREAD):
        for finding in outputs.findings:
            with finding.reading():
                _rendered(replace(outputs, surveys=[], findings=[finding]))
        for survey in outputs.surveys:
            with damage(survey.path):
                _rendered(replace(outputs, surveys=[survey], findings=[]))
        raise


def _rendered(outputs: Outputs) -> tuple[list[Section], str]:
    sections = all_sections(outputs)
    return sections, _render(outputs, sections)


def all_sections(outputs: Outputs) -> list[Section]:
    """The page, from what the data support to where the files come from."""
    from hpcvdj.reports.findings import finding_sections
    from hpcvdj.reports.fits import fit_sections
    from hpcvdj.reports.samples import samples
    from hpcvdj.reports.sections import sample_sections
    from hpcvdj.reports.support import origins, support

    parts = (
        support(outputs),
        samples(outputs),
        *fit_sections(outputs),
        *finding_sections(outputs),
        *sample_sections(outputs),
    )
    return [*parts, origins(outputs)]


@cache
def table_library() -> tuple[str, str]:
    """The JavaScript and the style sheet of DataTables, as itables brings them, with `jQuery` as a name of the page."""
    folder = resources.files("itables").joinpath("html")
    script, style = (folder.joinpath(f"dt_bundle.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    exported = re.search(r"export\s*\{[^}]*?(\w+) as jQuery\b[^}]*\};?", script)
    if exported is None:
        raise InputError("the installed itables does not export jQuery; pip install 'itables>=2.7,<3'")
    return script.replace(exported[0], f"window.jQuery = {exported[1]};"), style


def _render(outputs: Outputs, sections: list[Section]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from hpcvdj.reports.charts import CONFIG, bundle

    environment = Environment(
        loader=PackageLoader("hpcvdj.reports", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    tables = {table.name: table for section in sections for table in [*section.tables, *section.folded] if table.rows}
    specs = {figure.name: figure.spec for section in sections for figure in section.figures}
    names = outputs.names
    script, style = table_library()
    return environment.get_template("report.html").render(
        title=" and ".join(names) if len(names) < 4 else f"{len(names):,} samples",
        sections=sections,
        data=_compact({
            "config": CONFIG, "specs": specs,
            "tables": {name: {"columns": [vars(column) for column in table.columns], "rows": table.rows} for name,
            table in tables.items()},
        }),
        charts_script=bundle(), tables_script=script, tables_style=style,
        version=hpcvdj.__version__, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )  # fmt: skip


def _compact(data: dict[str, Any]) -> str:
    """JSON that may be in a script element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
