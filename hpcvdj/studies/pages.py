"""Studies and their pages.  A study makes blocks (text, checks, figures) from raw rows, and `render` writes them."""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, ClassVar

import numpy as np

from hpcvdj import studies
from hpcvdj.errors import InputError, choices, few
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.plots import COLOURS, pyplot, save
from hpcvdj.studies.rows import RawFile

PAGE = "README.md"


@dataclass(frozen=True)
class IdentityCheck:
    """A check: whether `what` is identical across all `across`."""

    holds: bool
    what: str
    across: str

    def __str__(self) -> str:
        if self.holds:
            return f"**{self.what} identical for all {self.across}**"
        return f"**{self.what.upper()} DIFFER between {self.across}**"


Panel = tuple[Mapping[str, Mapping[Any, float]], Mapping[str, Any]]
"""A coordinate system of a figure: lines by label, each as y by x; and arguments of matplotlib's `Axes.set`."""


@dataclass(frozen=True)
class Plot:
    """A picture `name`.png with line plots in `columns` columns, and a common legend with the title `legend`."""

    name: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 2
    legend: str = ""

    def __str__(self) -> str:
        return f"![{self.caption}]({self.name}.png)"

    def draw(self, folder: Path) -> None:
        """Write the picture.  Raise InputError if matplotlib is not installed."""
        plt = pyplot()
        columns = min(self.columns, len(self.panels))
        rows = -(-len(self.panels) // columns)
        size = 4.6 * columns + 1.8, 3.6 * rows
        figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        labels = list(dict.fromkeys(label for lines, _ in self.panels for label in lines))
        colours = COLOURS
        if len(labels) > len(COLOURS):
            colours = plt.get_cmap("viridis")(np.linspace(0, 0.95, len(labels)))
        handles = {}
        for plot, (lines, settings) in zip(axes.flat, self.panels, strict=False):
            for label, points in lines.items():
                x, y = zip(*sorted(points.items()), strict=True)
                (handles[label],) = plot.plot(x, y, marker=".", color=colours[labels.index(label)])
            plot.set(**settings)
        if len(labels) > 1:
            figure.legend(handles.values(), handles, title=self.legend, frameon=False, loc="outside right center")
        save(figure, folder / f"{self.name}.png", overwrite=True, dpi=130)


Block = str | IdentityCheck | Plot
"""A part of a page; texts are Markdown."""


class Study:
    """A study or benchmark: the type of its raw rows, and the page that it makes from them.

    name      the name in raw files
    title     the title of the page
    row       the dataclass of a raw row
    notes     paragraphs below the tables that explain them
    renderer  the command that makes the page
    """

    name: ClassVar[str]
    title: ClassVar[str]
    row: ClassVar[type[Any]]
    notes: ClassVar[str] = ""
    renderer: ClassVar[str] = "hpcvdj study render"

    def page(self, rows: list[Any]) -> Iterator[Block]:
        """Return the blocks of the page, between title and notes."""
        raise NotImplementedError


def render(folder: Path, study: Study | None = None) -> bool:
    """Make README.md and the pictures of a study from the raw files in its folder.  Return whether all checks hold.

    study  the study; by default the study that the raw files name

    Raise InputError unless the folder has raw rows of a single study.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; measuring makes it")
    files = [RawFile.read(path) for path in sorted(folder.glob("raw*.csv"))]
    if not files:
        has = few(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise InputError(
            f"{folder}: not the folder of a study, which has raw*.csv (it has {has}); name the DIR that `hpcvdj study "
            "STUDY -o DIR` wrote"
        )
    study = study or _study_of(folder, files)
    rows = [row for file in files for row in file.rows(study.row)]
    if not rows:
        raise InputError(f"{folder}: the raw files have no rows; measure again")
    blocks = list(study.page(rows))
    for block in blocks:
        if isinstance(block, Plot):
            block.draw(folder)
    paragraphs = [f"# {study.title}", f"Made from the raw rows by `{study.renderer}`.", *map(str, blocks)]
    paragraphs += [*study.notes.split("\n\n"), "## How it was measured", _how_measured(files)]
    with atomic_path(folder / PAGE, overwrite=True) as temporary:
        temporary.write_text("\n\n".join(filter(None, map(_wrapped, paragraphs))) + "\n")
    return all(block.holds for block in blocks if isinstance(block, IdentityCheck))


def _wrapped(block: str) -> str:
    """Wrap a paragraph into lines of at most 120 characters; headings, tables, lists and pictures stay as they are."""
    if block.startswith(("#", "|", "-", "!")):
        return block
    return fill(" ".join(block.split()), 120, break_on_hyphens=False)


def all_studies() -> dict[str, type[Study]]:
    """Return all studies of this package and of other imported modules, by name."""
    for module in pkgutil.iter_modules(studies.__path__):
        import_module(f"{studies.__name__}.{module.name}")
    return choices(Study)


def _study_of(folder: Path, files: list[RawFile]) -> Study:
    names, kinds = list(dict.fromkeys(file.facts.get("study", "") for file in files)), all_studies()
    if len(names) > 1 or names[0] not in kinds:
        named = ", ".join(name or "no name" for name in names)
        raise InputError(
            f"{folder}: not the folder of one study ({', '.join(kinds)}): its raw files are of {named}; what measured "
            "them renders them"
        )
    return kinds[names[0]]()


def _how_measured(files: list[RawFile]) -> str:
    """Return a list of the commands that made the raw files, and of the other facts."""
    lines = []
    for file in files:
        command, date = file.facts.get("command"), file.facts.get("date")
        lines.append(f"- `{file.path.name}`: " + (f"`{command}`, {date}" if command else "(not recorded)"))
    for name in dict.fromkeys(name for file in files for name in file.facts):
        if name not in ("study", "command", "date"):
            values = dict.fromkeys(file.facts[name] for file in files if name in file.facts)
            lines.append(f"- {name}: {'; '.join(values)}")
    return "\n".join(lines)
