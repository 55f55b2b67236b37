"""vdjtools 5, a peer: its generation probabilities, and its tests of neighbourhoods as a program for enrich_peers.py.

vdjtools (GPL-3.0-or-later) is imported if it is installed; nothing of it is copied.
"""

import json
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

VERSION = "5.2.2"

INSTALLED = find_spec("vdjtools") is not None

Call = tuple[str, str]
"""V and J allele; both empty for all genes."""


def template(name: str) -> Any:
    """A model of OLGA as vdjtools reads it."""
    from vdjtools.model.io import from_olga

    from hpcvdj.recombination.igor import OLGA_FOLDERS, olga_folder

    folder = olga_folder()
    assert folder is not None
    organism, locus = name.split("_")
    return from_olga(folder / OLGA_FOLDERS[name], locus=locus.upper(), organism=organism)


class Vdjtools:
    """A model of OLGA as vdjtools reads it, and its compiled sums on one thread."""

    def __init__(self, name: str) -> None:
        from vdjtools.model import native

        self._model, self._native = template(name), native

    def values(self, what: str, texts: Sequence[str], calls: Sequence[Call]) -> list[float]:
        """Probabilities of nucleotides (pgen_nt), amino acids (pgen_aa), or all within one mismatch (pgen_aa_1mm)."""
        v, j = ([name or None for name in names] for names in zip(*calls, strict=True))
        if what == "pgen_nt":
            return [self._native.pgen_nt(self._model, *asked) for asked in zip(texts, v, j, strict=True)]
        mismatches = int(what == "pgen_aa_1mm")
        return list(self._native.pgen_aa_batch(self._model, list(texts), v, j, mismatches=mismatches, threads=1))


def neighbourhoods(folder: Path) -> None:
    """`alice` and `tcrnet` of sample.parquet and control.parquet in a folder, and their processor seconds."""
    import polars as pl
    import seqtree
    import vdjtools
    from vdjtools.overlap.alice import alice
    from vdjtools.overlap.tcrnet import tcrnet

    model = template("human_trb")
    sample = pl.read_parquet(folder / "sample.parquet")
    control = pl.read_parquet(folder / "control.parquet")["junction_aa"].unique().sort().to_list()
    seconds: dict[str, object] = {"version": vdjtools.__version__}
    # What is loaded and cached at the first call is not measured.
    alice(sample.head(2000), model, locus="TRB", min_count=1, threads=1)
    for name, work in (
        ("alice", lambda: alice(sample, model, locus="TRB", min_count=1, threads=1)),
        ("tcrnet", lambda: tcrnet(sample, seqtree.Index.build(control, alphabet="aa"), threads=1)),
    ):
        started = time.process_time()
        found = work()
        seconds[name] = time.process_time() - started
        found.write_parquet(folder / f"{name}.parquet")
    (folder / "seconds.json").write_text(json.dumps(seconds))


if __name__ == "__main__":
    neighbourhoods(Path(sys.argv[1]))
