"""What mkdocs cannot do by itself: pages from outside docs/, and reference pages made from the code.

Links in the pages work in the repository.  On the site, pages of docs/ are at the root and pages of other folders keep
their paths, so links between them are rewritten here.
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

FOLDERS = ("inputs", "slurm", "results", "benchmarks", "packaging")
"""Folders whose README files are pages of the site."""

ROOT_FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE")
"""Files at the root of the repository that are pages, or that pages link to."""

LOG = logging.getLogger("mkdocs.hooks.links")

LINK = re.compile(r"(\]\()([^()\s#]+)(#[^()\s]*)?(\))")
"""A Markdown link: `](`, target, anchor, `)`."""

CODE_IN_TABLE = re.compile(r"(?<=\|).*`[^`\n]*\\\|[^`\n]*`")
"""A table cell with code that contains an escaped vertical bar."""


def on_config(config: Any) -> Any:
    """Let `mkdocs serve` notice changes in the package and the other folders."""
    config.watch += [str(ROOT / folder) for folder in ("hpcvdj", *FOLDERS)]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/, the files that pages link to, and the reference pages."""
    paths = [ROOT / name for name in ROOT_FILES]
    for folder in FOLDERS:
        paths += sorted((ROOT / folder).rglob("README.md"))
    for path in list(paths):
        if path.suffix == ".md":
            paths += _linked_files(path)
    paths += [target for page in sorted((ROOT / "docs").rglob("*.md")) for target in _linked_files(page)]
    for path in dict.fromkeys(paths):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and not name.startswith("docs/") and name != "README.md":
            files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, text in reference.pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def _linked_files(page: Path) -> list[Path]:
    """The existing files that a page links to; mkdocs warns of the others."""
    targets = [match.group(2) for match in LINK.finditer(page.read_text()) if "://" not in match.group(2)]
    return [path for path in ((page.parent / target).resolve() for target in targets) if path.is_file()]


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Rewrite the links of a page from paths in the repository to paths on the site."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    source = files.get_file_from_path(page.file.src_uri)
    in_docs = source is None or source.generated_by is None
    repository_path = posixpath.join("docs", page.file.src_uri) if in_docs else page.file.src_uri

    def rewritten(match: re.Match[str]) -> str:
        start, target, anchor, end = match.groups(default="")
        if ":" in target:
            return match.group()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(repository_path), target))
        if target == "README.md":
            target = "docs/index.md"
        folder = posixpath.dirname(page.file.src_uri)
        return f"{start}{posixpath.relpath(target.removeprefix('docs/'), folder or '.')}{anchor}{end}"

    # In a table, repository hosts need `a\\|b` for the code a|b, but Python-Markdown would show the backslash.
    return CODE_IN_TABLE.sub(lambda match: match.group().replace("\\|", "|"), LINK.sub(rewritten, markdown))


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """Rewrite the links of a notebook, which mkdocs leaves unchanged."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html

    def rewritten(match: re.Match[str]) -> str:
        target, anchor = match.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), target))
        file = files.get_file_from_path(path)
        if file is None:
            LOG.warning("Doc file '%s' contains a link '%s', but there is no such page.", page.file.src_uri, target)
            return match.group()
        if anchor:  # mkdocs checks these anchors after it has made all pages.
            page.links_to_anchors = page.links_to_anchors or {}
            page.links_to_anchors.setdefault(file, {})[anchor.removeprefix("#")] = target + anchor
        return f'href="{file.url_relative_to(page.file)}{anchor}"'

    return re.sub(r'href="([^":#]+\.(?:md|ipynb))(#[^"]*)?"', rewritten, html)
