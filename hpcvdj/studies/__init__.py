"""Studies: what the papers tabulate and plot, computed or measured again."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from hpcvdj.errors import InputError

STUDIES = ("scaling", "methods", "blocks", "pairs", "memory", "throughput", "motif_tables", "motifs")
"""Every study, by the name of its module and in its raw files."""


def renderer(folder: Path) -> Callable[[Path], str]:
    """What makes README.md and the plot of the study whose raw rows lie in `folder`; InputError if none does."""
    named = set()
    for path in sorted(folder.glob("raw-*.csv")):
        with open(path) as stream:
            named.add(stream.readline().removeprefix("# study: ").strip())
    if len(named) != 1 or not named <= set(STUDIES):
        raise InputError(f"{folder}: expected raw-*.csv of one study ({', '.join(STUDIES)}), found {sorted(named)}")
    render: Callable[[Path], str] = importlib.import_module(f"{__name__}.{named.pop()}").render
    return render
