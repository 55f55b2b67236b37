"""Is Q of a SONIA model the same in hpcvdj as in the program?

python benchmarks/sonia_models.py --output results/sonia/raw.csv

Takes the models of one chain that installed packages `sonia` and `sonnia` come with.  Draws junctions from each model,
half of them with random residues and lengths, and asks the package for the features of each.  The reference adds the
energies of these up in 64 bits, keeps the sum within the limits, and divides by Z.

The packages import Keras, which finding features does not need: if it is missing, something without a function takes
its place.  So the packages' own addition, in 32 bits, does not run; NumPy adds the same energies in 32 bits instead.

A row has the largest relative difference of Q of hpcvdj and of 32 bits from the reference, and how often the limits
were met.  Junctions of genes that the package does not find under the name in its own file are counted apart.

Further draws give the mean of Q, which is 1 if Z is that of the model: with the alleles of the folder, with hpcvdj's
corrected ones, and without J genes that the junctions lacked to which the package compared real ones.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from _common import record

import hpcvdj
from hpcvdj.recombination.selection import RESIDUES

PACKAGES = {"sonia": ("sonia.sonia_leftpos_rightpos", "SoniaLeftposRightpos"), "sonnia": ("sonnia.sonia", "Sonia")}
"""Where the packages find the features of a junction."""

NOT_NEEDED = (
    "tensorflow", "tensorflow.keras", "tensorflow.keras.backend", "tensorflow.keras.callbacks",
    "tensorflow.keras.initializers", "tensorflow.keras.layers", "tensorflow.keras.losses", "tensorflow.keras.models",
    "tensorflow.keras.optimizers", "tensorflow.keras.regularizers", "tensorflow.math", "keras", "keras.callbacks",
    "keras.layers", "keras.losses", "keras.models", "keras.ops", "keras.optimizers", "keras.regularizers", "tqdm",
    "matplotlib", "matplotlib.pyplot", "seaborn",
)  # fmt: skip
"""What the packages import, and finding features does not use."""

Junction = tuple[str, str, str]
"""V gene, J gene, amino acids."""


def finder(package: str) -> Callable[[dict[tuple[str, ...], int], Junction], list[int]]:
    """The package's own function that finds the features of a junction."""
    missing = {name: MagicMock() for name in NOT_NEEDED if name not in sys.modules and _is_missing(name)}
    sys.modules.update(missing)
    module, of_class = PACKAGES[package]
    find = getattr(import_module(module), of_class).find_seq_features
    logging.getLogger().setLevel(logging.WARNING)
    return lambda known, junction: find(SimpleNamespace(feature_dict=known), [junction[2], *junction[:2]])


def _is_missing(name: str) -> bool:
    first = name.partition(".")[0]
    return isinstance(sys.modules.get(first), MagicMock) or find_spec(first) is None


def drawn_from(model: hpcvdj.Model, number: int) -> list[Junction]:
    """Productive junctions."""
    table = hpcvdj.generate(model, number, seed=11, productive=True, backend="cpu")
    return list(zip(*(table[name].to_pylist() for name in ("v_call", "j_call", "junction_aa")), strict=True))


def junctions_of(model: hpcvdj.Model, number: int) -> list[Junction]:
    """Half of them are drawn; the others have random residues and lengths, and genes of the draws."""
    drawn = drawn_from(model, number // 2)
    rng = np.random.default_rng(11)
    texts = ["".join(rng.choice(list(RESIDUES), rng.integers(3, 40))) for _ in drawn]
    return drawn + [(v, j, text) for (v, j, _), text in zip(drawn, texts, strict=True)]


def own_q(model: hpcvdj.Model, junctions: list[Junction]) -> np.ndarray:
    """Q of hpcvdj."""
    v, j, texts = map(list, zip(*junctions, strict=True))
    letters = np.array([list(text.encode().ljust(64, b"\0")) for text in texts], dtype=np.uint8)
    lengths = np.array([len(text) for text in texts])
    return np.exp(model.require_selection().log_factor(v, j, np.arange(len(texts)), letters, lengths))


def means(model: hpcvdj.Model, folder: Path, known: dict[tuple[str, ...], float], number: int) -> dict[str, Any]:
    """The mean of Q over draws.

    known  how common the features were among the junctions that the package generated
    """
    drawn = drawn_from(model, number)
    q = own_q(model, drawn)
    j = np.array([call.partition("*")[0] for _, call, _ in drawn])
    common: dict[str, float] = {}
    for names, share in known.items():
        common[names[-1]] = common.get(names[-1], 0.0) + share
    # Names of J genes in features have no leading zeros, and neither have those of these models.
    never = sorted(gene for gene in set(j.tolist()) if common.get(gene[3:].lower()) == 0)
    row: dict[str, Any] = {"mean_of_q": float(q.mean()), "never_generated": " ".join(never)}
    row["mean_without_these"] = float(q[~np.isin(j, never)].mean()) if never else ""
    corrected = hpcvdj.load_model(folder)
    with_corrected = own_q(model, drawn_from(corrected, number)).mean() if corrected.corrected else ""
    return {**row, "mean_with_corrected_alleles": with_corrected}


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each model of each package that is installed."""
    # Before `finder`, as it puts something in the place of what is missing.
    specs = {package: find_spec(package) for package in PACKAGES}
    for package, spec in specs.items():
        if spec is None or spec.origin is None:
            print(f"{package} is not installed: left out", file=sys.stderr)
            continue
        find = finder(package)
        for path in sorted(Path(spec.origin).parent.glob("default_models/*/model_params.txt")):
            yield compared(package, find, path.parent, options)


def compared(package: str, find: Callable[..., list[int]], folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One model."""
    with warnings.catch_warnings(action="ignore"):
        model = hpcvdj.model_from_sonia(folder, backend="cpu")
    rows = [line.split(",") for line in (folder / "features.tsv").read_text().strip().split("\n")[1:]]
    known = {tuple(row[0].split(";")): place for place, row in enumerate(rows)}
    energies = np.array([float(row[1]) for row in rows])
    z, _, lowest, highest = (float(line.split("=")[1]) for line in (folder / "log.txt").read_text().split("\n")[:4])
    junctions = junctions_of(model, options.rows)
    of_each = [find(known, junction) for junction in junctions]
    sums = np.array([energies[places].sum() for places in of_each])
    short = np.array([energies[places].astype(np.float32).sum(dtype=np.float32) for places in of_each])
    reference, in_32_bits = (np.exp(-np.clip(energy.astype(float), lowest, highest)) / z for energy in (sums, short))
    # Where the file has a gene under a name that the package does not look for.
    apart = np.array(["/" in v and any("/" in name for key in known for name in key) for v, *_ in junctions])
    generated = {tuple(row[0].split(";")): float(row[4]) for row in rows}
    off = np.abs(own_q(model, junctions) / reference - 1)
    return {
        "package": package, "version": metadata.version(package), "model": folder.name, "features": len(rows),
        "junctions": int((~apart).sum()), "at_limits": int(((sums < lowest) | (sums > highest))[~apart].sum()),
        "largest_difference": float(off[~apart].max()), "in_32_bits": float(np.abs(in_32_bits / reference - 1).max()),
        "gene_not_found": int(apart.sum()), "difference_of_these": float(np.median(off[apart])) if apart.any() else "",
        "z": z, **means(model, folder, generated, options.draws),
    }  # fmt: skip


if __name__ == "__main__":
    record(__doc__, measured, rows=(20_000, "junctions for each model"), draws=(300_000, "for the mean of Q"))
