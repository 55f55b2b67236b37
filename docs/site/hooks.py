"""What mkdocs cannot do by itself: pages from outside docs/, and reference pages made from the code.

Links in the pages are those that work in the repository. A page of another folder keeps its path on the site, and a
page of docs/ moves up to the site's root, so links between the two are written anew here.
"""

from __future__ import annotations

import logging
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import reference

ROOT = Path(__file__).parents[2]

FOLDERS = ("inputs", "slurm", "results", "benchmarks")
"""Folders whose README files are pages of the site."""

PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE")
"""Files at the root that are pages, or that pages link to."""

NOT_YET: tuple[str, ...] = ()
"""Pages with a place in the nav that are still to be written: left out as long as they are not there."""

LOG = logging.getLogger("mkdocs.hooks.links")

LINK = re.compile(r"(\]\()([^()\s#]+)(#[^()\s]*)?(\))")


CODE_IN_TABLE = re.compile(r"(?<=\|).*`[^`\n]*\\\|[^`\n]*`")


def on_config(config: Any) -> Any:
    config.nav = _without(config.nav, {name for name in NOT_YET if not (ROOT / "docs" / name).exists()})
    config.watch += [str(ROOT / folder) for folder in ("hpcvdj", *FOLDERS)]
    return config


def _without(nav: list[Any], absent: set[str]) -> list[Any]:
    kept = []
    for entry in nav:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            kept.append({title: _without(target, absent)})
        elif target not in absent:
            kept.append(entry)
    return kept


def on_files(files: Files, config: Any) -> Files:
    wanted = [ROOT / name for name in PAGES]
    for folder in FOLDERS:
        wanted += sorted((ROOT / folder).rglob("README.md"))
    for path in list(wanted):
        if path.suffix == ".md":
            wanted += [target for target in _linked(path) if target.suffix != ".md"]
    wanted += [target for page in sorted((ROOT / "docs").rglob("*.md")) for target in _linked(page)]
    for path in dict.fromkeys(wanted):
        where = path.relative_to(ROOT).as_posix()
        if path.is_file() and not where.startswith("docs/") and where != "README.md":
            files.append(File.generated(config, where, abs_src_path=str(path)))
    for name, text in reference.pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def _linked(page: Path) -> list[Path]:
    """The files that a page links to, as far as they are there; mkdocs complains of the others."""
    targets = [match.group(2) for match in LINK.finditer(page.read_text()) if "://" not in match.group(2)]
    return [path for path in ((page.parent / target).resolve() for target in targets) if path.is_file()]


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    if page.file.src_uri.startswith("reference/"):
        return markdown
    outside = files.get_file_from_path(page.file.src_uri)
    in_docs = outside is None or outside.generated_by is None
    home = posixpath.join("docs", page.file.src_uri) if in_docs else page.file.src_uri

    def moved(match: re.Match[str]) -> str:
        start, target, anchor, end = match.groups(default="")
        if ":" in target:
            return match.group()
        there = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        if there == "README.md":
            there = "docs/index.md"
        site = there.removeprefix("docs/") if there.startswith("docs/") else there
        here = posixpath.dirname(page.file.src_uri)
        return f"{start}{posixpath.relpath(site, here or '.')}{anchor}{end}"

    # In a table repository hosts want `a\\|b` for the code a|b; Python-Markdown shows the backslash.
    return CODE_IN_TABLE.sub(lambda match: match.group().replace("\\|", "|"), LINK.sub(moved, markdown))


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """mkdocs leaves the links of notebooks as they are: they become those of the site here."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html

    def moved(match: re.Match[str]) -> str:
        target, anchor = match.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), target))
        found = files.get_file_from_path(path)
        if found is None:
            LOG.warning("Doc file '%s' contains a link '%s', but there is no such page.", page.file.src_uri, target)
            return match.group()
        if anchor:  # For mkdocs to look for, when all pages are made.
            page.links_to_anchors = page.links_to_anchors or {}
            page.links_to_anchors.setdefault(found, {})[anchor.removeprefix("#")] = target + anchor
        return f'href="{found.url_relative_to(page.file)}{anchor}"'

    return re.sub(r'href="([^":#]+\.(?:md|ipynb))(#[^"]*)?"', moved, html)
