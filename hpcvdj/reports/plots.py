"""The figure of `--plot`: the figures that the report has of a table, side by side."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.question import AnswerTable, Question
from hpcvdj.reports.elements import Figure, PageTable
from hpcvdj.results.frames import require
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.progress import told_if_slow
from hpcvdj.runs.run import Run
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.plots import require_picture

Curves = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""False and true positive rates, by predictor; the name of a predictor includes the area under its curve."""

_POINTS = 400
"""How many points of a ROC curve are drawn, equally far apart along it."""


A = TypeVar("A")


@dataclass(frozen=True)
class PlottedTable(AnswerTable[A]):
    """A table with its facts and, if it is asked for, its figure.

    plot  the path of the figure
    """

    plot: Path | None = None

    @property
    def beside(self) -> tuple[Path, ...]:
        return (*super().beside, *([self.plot] if self.plot is not None else []))

    def begin(self, stack: ExitStack, files: Sequence[Path], run: Run, identity: Callable[[], Identity]) -> None:
        # A run that resumes may replace its table, but not a figure, which may be another one.
        overwrite = run.overwrite
        super().begin(stack, files, run, identity)
        if self.plot is not None:
            require_drawable(self.plot, overwrite=overwrite)

    def draw(self, question: Question[A], answer: A, run: Run) -> None:
        if self.plot is not None:
            assert run.target is not None
            with told_if_slow(f"drawing {self.plot}", shown=True):
                draw(run.target, self.plot, curves=question.curves(answer), overwrite=run.overwrite)


def require_drawable(target: Path, *, overwrite: bool) -> None:
    """Raise InputError if no figure can be drawn to `target`, a new .png or .svg; callers check before they compute."""
    require_picture(target, overwrite=overwrite)
    for library in ("networkx", "vl_convert"):
        require(library, "report")


def draw(table: Path, target: Path, *, curves: Curves | None = None, overwrite: bool = False) -> None:
    """Draw the figures of a table that has facts beside it, and ROC curves, to `target` (.png or .svg)."""
    from hpcvdj.reports import charts
    from hpcvdj.reports.findings import finding_sections
    from hpcvdj.reports.outputs import read_outputs

    outputs = read_outputs([table])
    assert outputs is not None
    figures = [figure for section in finding_sections(outputs) for figure in section.figures]
    if curves:
        figures.append(_roc(curves))
    picture = {".png": charts.png, ".svg": charts.svg}[target.suffix.lower()]
    with atomic_path(target, overwrite=overwrite) as temporary:
        temporary.write_bytes(picture(*figures))


def _roc(curves: Curves) -> Figure:
    from hpcvdj.reports import charts

    rows: list[dict[str, Any]] = []
    for predictor, (false, true) in curves.items():
        drawn = np.unique(np.searchsorted(false + true, np.linspace(0, 2, _POINTS)).clip(max=len(false) - 1))
        rows += [
            {"predictor": predictor, "false": x, "true": y}
            for x, y in zip(false[drawn].tolist(), true[drawn].tolist(), strict=True)
        ]
    titles = {"false": "false positive rate", "true": "true positive rate"}
    table = PageTable.of("roc", "ROC curves", "predictor false true", rows, **titles)
    caption = "Predictors of two individuals or more, with the area under the curve and its 95 % interval (DeLong)."
    return Figure("roc", "Lines", caption, charts.roc(table), (table,))
