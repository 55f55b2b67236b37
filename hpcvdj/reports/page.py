"""The page of a report: it reads files, puts sections into the template, and writes the page and its figures."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from pathlib import Path

import hpcvdj
from hpcvdj.errors import InputError, option
from hpcvdj.reports.elements import Section
from hpcvdj.reports.files import NotDone, each_file, steps_not_done
from hpcvdj.reports.multiqc import custom_content
from hpcvdj.reports.outputs import Outputs, read_outputs
from hpcvdj.reports.settings import ReportSettings
from hpcvdj.results.facts import facts_path
from hpcvdj.results.frames import require
from hpcvdj.runs.run import Run
from hpcvdj.storage.damage import MISREAD, damage
from hpcvdj.storage.files import atomic_path, require_distinct, require_writable
from hpcvdj.storage.folders import make_folder

LIBRARIES = ("itables", "jinja2", "networkx", "vl_convert")

_DEFAULTS = ReportSettings()


def write_report(
    files: Sequence[str | Path],
    target: str | Path,
    settings: ReportSettings = _DEFAULTS,
    *,
    overwrite: bool = False,
    run: Run | None = None,
) -> int | None:
    """Write the report of `files` to `target`, and what `settings` ask for beside it.

    All ranks of the run read the files.  Root returns the number of figures, the other ranks None.
    """
    run, target = run or Run(), Path(target)
    metadata = None if settings.metadata is None else Path(settings.metadata)
    folders = {name: Path(folder) for name in ("figures", "multiqc") if (folder := getattr(settings, name))}

    def begin() -> tuple[list[Path], NotDone]:
        for library in LIBRARIES:
            require(library, "report")
        paths = [Path(path) for path in files]
        if not paths:
            raise InputError("nothing to report; give outputs of hpcvdj")
        not_done = steps_not_done(paths)
        paths = each_file(paths)
        require_distinct(target, *paths, *map(facts_path, paths), *filter(None, [metadata]))
        require_writable(target, overwrite=overwrite)
        for name, folder in folders.items():
            make_folder(folder, f"name another folder with {option(name)}")
        return paths, not_done

    paths, not_done = run.from_root(begin)
    outputs = read_outputs(paths, settings.name, metadata, settings.group, run)

    def write() -> int:
        assert outputs is not None
        return _write(replace(outputs, not_done=not_done), target, folders, overwrite=overwrite)

    return run.on_root(write)


def _write(outputs: Outputs, target: Path, folders: Mapping[str, Path], *, overwrite: bool) -> int:
    """Write the page, and what else `folders` are for; return the number of figures."""
    # vl_convert takes time to import, and may be missing.
    from hpcvdj.reports.charts import png, svg

    sections, text = _page(outputs)
    drawn = [figure for section in sections for figure in section.figures]
    # What each file has; figures are drawn when they are written.
    contents: dict[Path, Callable[[], bytes]] = {}
    if "figures" in folders:
        for figure in drawn:
            for suffix, picture in ((".svg", svg), (".png", png)):
                contents[folders["figures"] / f"{figure.name}{suffix}"] = partial(picture, figure)
    if "multiqc" in folders:
        for name, table in custom_content(sections).items():
            contents[folders["multiqc"] / name] = f"{json.dumps(table, indent=1, ensure_ascii=False)}\n".encode
    for path in contents:
        require_writable(path, overwrite=overwrite)
    # The page gets its name last, after all figures.
    with atomic_path(target, overwrite=overwrite) as page:
        page.write_text(text, encoding="utf-8", errors="replace")
        for path, content in contents.items():
            with atomic_path(path, overwrite=overwrite) as temporary:
                temporary.write_bytes(content())
    return len(drawn)


def _page(outputs: Outputs) -> tuple[list[Section], str]:
    """The sections and the text of the page.

    Somebody may have changed the facts, so that they have any value anywhere.  If the page cannot be made, InputError
    names the file whose own page cannot be made either.
    """
    try:
        return _rendered(outputs)
    except (InputError, *MISREAD):
        for finding in outputs.findings:
            with damage(facts_path(finding.path)):
                _rendered(replace(outputs, surveys=[], findings=[finding]))
        for survey in outputs.surveys:
            with damage(survey.path):
                _rendered(replace(outputs, surveys=[survey], findings=[]))
        raise


def _rendered(outputs: Outputs) -> tuple[list[Section], str]:
    """The sections, from what the data support to where the files come from, and the text of their page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from hpcvdj.reports.charts import CONFIG, bundle
    from hpcvdj.reports.findings import finding_sections
    from hpcvdj.reports.fits import fit_sections
    from hpcvdj.reports.samples import samples
    from hpcvdj.reports.sections import sample_sections
    from hpcvdj.reports.support import origins, support

    sections = [
        support(outputs),
        samples(outputs),
        *fit_sections(outputs),
        *finding_sections(outputs),
        *sample_sections(outputs),
        origins(outputs),
    ]
    environment = Environment(
        loader=PackageLoader("hpcvdj.reports", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    tables = {table.name: table for section in sections for table in [*section.tables, *section.folded] if table.rows}
    specs = {figure.name: figure.spec for section in sections for figure in section.figures}
    columns = {name: [vars(column) for column in table.columns] for name, table in tables.items()}
    data = {
        "config": CONFIG, "specs": specs,
        "tables": {name: {"columns": columns[name], "rows": table.rows} for name, table in tables.items()},
    }  # fmt: skip
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # These letters would end a script element or a line of JavaScript.
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    names = outputs.names
    script, style = table_library()
    return sections, environment.get_template("report.html").render(
        title=" and ".join(names) if len(names) < 4 else f"{len(names):,} samples",
        sections=sections, data=text, charts_script=bundle(), tables_script=script, tables_style=style,
        version=hpcvdj.__version__, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )  # fmt: skip


@cache
def table_library() -> tuple[str, str]:
    """The JavaScript of DataTables, which sets `window.jQuery`, and its style sheet, both from itables."""
    folder = resources.files("itables").joinpath("html")
    script, style = (folder.joinpath(f"dt_bundle.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    exported = re.search(r"export\s*\{[^}]*?(\w+) as jQuery\b[^}]*\};?", script)
    if exported is None:
        raise InputError("the installed itables does not export jQuery; pip install 'itables>=2.7,<3'")
    return script.replace(exported[0], f"window.jQuery = {exported[1]};"), style
