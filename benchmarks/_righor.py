"""Inference by righor (MIT licence): a peer of benchmarks/infer.py, imported if it is installed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hpcvdj.api.models import write_model
from hpcvdj.recombination.igor import FILES
from hpcvdj.recombination.models import Model

INSTALLED = find_spec("righor") is not None

VERSION = metadata.version("righor") if INSTALLED else ""


def iteration(model: Model, rows: Sequence[dict[str, str]]) -> Callable[[], Any]:
    """One iteration on one thread after another, from a start where everything is equally likely.

    righor reads the model from a folder that hpcvdj writes.
    """
    righor = _on_one_thread()
    with tempfile.TemporaryDirectory() as folder:
        write_model(model, Path(folder) / "model")
        paths = [str(Path(folder) / "model" / name) for name in FILES]
        names = ("path_params", "path_marginals", "path_anchor_vgene", "path_anchor_jgene")
        start = righor.load_model_from_files(**dict(zip(names, paths, strict=True))).uniform()
    v, j = ({gene.name: gene for gene in genes} for genes in (start.v_segments, start.j_segments))
    sequences = [(row["junction"], [v[row["v_call"]]], [j[row["j_call"]]]) for row in rows]
    return lambda: start.infer(sequences)


@cache
def _on_one_thread() -> Any:
    import righor

    righor.set_number_threads(1)  # which it does once only
    return righor
