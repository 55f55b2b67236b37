"""Junctions drawn from a model, as the benchmarks of generation probabilities ask all programs for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def drawn(model: Any, number: int, seed: int) -> list[Any]:
    """Junctions in frame without a stop codon, of at most 128 bases."""
    from hpcvdj.recombination.alphabet import translate
    from tests.kernels.pgen.models import sample

    rng, rows = np.random.default_rng(seed), []
    while len(rows) < number:
        own = sample(model, rng)
        amino_acids = translate([own.junction])[0]
        if amino_acids and "*" not in amino_acids and len(own.junction) <= 128:
            rows.append(own)
    return rows


def asked_with(genes: str, model: Any, rows: list[Any], texts: Sequence[str] = ()) -> tuple[list[Any], list[Any]]:
    """What hpcvdj and its peers are asked: drawn junctions, or `texts` in their place, and the calls of V and J.

    genes  given (the V and J alleles that made each junction) or any
    """
    texts = texts or [row.junction for row in rows]
    if genes == "any":
        return [(text, None, None) for text in texts], [("", "")] * len(rows)
    asked = [(text, (row.v,), (row.j,)) for text, row in zip(texts, rows, strict=True)]
    return asked, [(model.v[row.v].allele, model.j[row.j].allele) for row in rows]
