"""What the tests of selection share: a small model, known factors, and the features of a junction by a loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import hpcvdj
from hpcvdj.inference.distinct import SingleGeneJunctions
from hpcvdj.inference.selection import normalised
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.selection import SIDE, SelectionFactor
from hpcvdj.repertoires.genes import by_gene
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading

V_ALLELES = ["TRBV5-1*01", "TRBV9*01", "TRBV20-1*01", "TRBV6-5*01"]
J_ALLELES = ["TRBJ1-1*01", "TRBJ2-1*01", "TRBJ2-7*01"]


def few_genes():
    """Human TRB with four V and three J genes: a factor of few weights, and classes of many junctions."""
    full = load_model("human_trb_m15")
    v, j = (np.isin([own.allele for own in all_], names) for all_, names in ((full.v, V_ALLELES), (full.j, J_ALLELES)))
    p_v, p_dj = full.p_v * v, full.p_dj * j
    return replace(full, p_v=p_v / p_v.sum(), p_dj=p_dj / p_dj.sum(), p_vdj=None)


def distinct(table, model):
    """The distinct junctions of drawn rows, with how often each was drawn."""
    return SingleGeneJunctions.drawn(by_gene(read_table(table, model, productive_reading()).repertoire, model)[0])


def with_factor(model, weights, draws=60_000):
    """The model with a factor of these weights, whose mean is 1 over draws."""
    drawn = hpcvdj.generate(model, draws, seed=21, productive=True, backend="cpu")
    fresh = distinct(drawn, model)
    logs = fresh.log_factor(SelectionFactor(weights, 0.0, -50.0, 50.0))
    own = SelectionFactor(weights, 0.0, float(logs.min()), float(logs.max()))
    return replace(model, selection=normalised(own, fresh))


def features_of(v, j, text):
    """The features of one junction."""
    inner = text[1:-1]
    sides = [f"left:{k}:{c}" for k, c in enumerate(inner[:SIDE], 1)]
    sides += [f"right:{k}:{c}" for k, c in enumerate(inner[::-1][:SIDE], 1)]
    return {f"V_J:{v}:{j}", f"V_length:{v}:{len(text)}", f"J_length:{j}:{len(text)}", *sides}


def log_factor_of(selection, v, j, text):
    """ln Q of one junction."""
    total = selection.intercept + sum(selection.weights.get(name, 0.0) for name in features_of(v, j, text))
    return min(max(total, selection.smallest), selection.largest)
