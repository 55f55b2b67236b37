"""What is wrong with alleles of the installed OLGA's models, and what that does to generation probabilities?

python benchmarks/olga_alleles.py [--observed mouse_trb=TABLE ...]

Prints the tables of docs/olga_alleles.md.  OLGA's files are read; its code is not used.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hpcvdj
from hpcvdj.recombination.germline import SegmentType, extended_j, extended_v
from hpcvdj.recombination.igor import OLGA_FOLDERS, PUBLISHED, load_model
from hpcvdj.recombination.models import Model, Template

MISSING = {
    "mouse_tra": {
        "TRAJ24*01": "TGACAAC", "TRAJ45*02": "TGA", "TRAJ47*01": "TG", "TRAV9-2*01": "GTTTTGAGCG",
        "TRAV9N-2*01": "GTTTTGAGCG", "TRAV7D-3*02": "CA", "TRAV9-4*01": "CA", "TRAV9D-3*02": "CA", "TRAV9D-1*02": "G",
        "TRAV15D-1/DV6D-1*06": "TGG",
    },
    "human_tra": {"TRAJ32*02": "TGAATT", "TRAJ31*01": "G"},
    "mouse_igh": {"IGHV0-TOCH*00": "AA"},
    "mouse_igk": {
        "IGKV0-32WP*00": "CT", "IGKV0-YZJK*00": "CC", "IGKV0-B2Y6*00": "CC", "IGKV0-T2T6*00": "CT",
        "IGKV0-NOE5*00": "C", "IGKV0-ZLYT*00": "C",
    },
}  # fmt: skip
"""Bases that close relatives or IMGT have beyond the end of a truncated allele: after V, before J."""

PEAK = 0.8
"""A profile of deletions of which one value has more is one of few observations."""

COMMON = 0.001
"""P(V) or P(J) above which such an allele is listed."""

DRAWS = 400_000
"""Recombinations drawn from a model to find junctions with its rarer alleles."""

SIDES: tuple[SegmentType, ...] = ("V", "J")

STOPS = ("TAA", "TAG", "TGA")

Rows = Sequence[tuple[str, str, str]]
"""(V call, J call, junction)."""


def probabilities(model: Model, rows: Rows) -> Any:
    """pgen_nt of rows, float64; NaN where a call is not in the model."""
    columns = dict(zip(("v_call", "j_call", "junction"), map(list, zip(*rows, strict=True)), strict=True))
    return hpcvdj.pgen(pa.table(columns), model, sequence="nt", backend="cpu")["pgen_nt"].to_numpy()


def drawn(model: Model, alleles: Iterable[str], most: int, *, genes: bool = False) -> dict[str, Rows]:
    """Up to `most` drawn rows of each V or J allele; `genes`: their calls name genes."""
    found: dict[str, list[tuple[str, str, str]]] = {allele: [] for allele in alleles}
    table = hpcvdj.generate(model, DRAWS, seed=1, backend="cpu").select(["v_call", "j_call", "junction"])
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        for call in row[:2]:
            if call in found and len(found[call]) < most:
                calls = [own.partition("*")[0] for own in row[:2]] if genes else row[:2]
                found[call].append((*calls, row[2]))
    return found


def factor(less: Any, more: Any) -> str:
    """The median of the ratio of two arrays, and how often the first is 0."""
    known = np.isfinite(less) & (more > 0)
    ratio = less[known] / more[known]
    zeros = f", 0 for {int((ratio == 0).sum()):,}" if (ratio == 0).any() else ""
    return f"{np.median(ratio):.2g}{zeros} ({int(known.sum()):,})" if known.any() else "not drawn"


def share(model: Model, segment: SegmentType, allele: str) -> float:
    """P(V) or P(J) of an allele."""
    names = [own.allele for own in model.templates(segment)]
    return float(model.p_segment(segment)[names.index(allele)])


def side_of(model: Model, allele: str) -> SegmentType:
    """Whether an allele is a V or a J."""
    return "V" if any(own.allele == allele for own in model.v) else "J"


def corrected(names: Iterable[str], most: int, observed: dict[str, Rows]) -> Iterator[list[str]]:
    """A row for each allele that is corrected."""
    for name in names:
        model, kept = load_model(name), load_model(f"{name}{PUBLISHED}")
        able = [allele for allele in model.corrected if model.alleles("V", model.find("V", allele)).places]
        for allele, rows in drawn(model, able, most).items():
            gene = allele.partition("*")[0]
            real = [row for row in observed.get(name, ()) if row[0].partition("*")[0] == gene]
            values = [probabilities(own, rows) for own in (kept, model)] if rows else [np.zeros(0)] * 2
            seen = factor(*(probabilities(own, real) for own in (kept, model))) if real else ""
            what = model.corrected[allele]
            yield [name, allele, what, f"{100 * share(model, 'V', allele):.3g} %", factor(*values), seen]


def whole_segments(model: Model, name: str) -> dict[str, str]:
    """The whole segments of truncated alleles: with the bases of `MISSING`, or those of the gene's other alleles."""
    found = {}
    for allele, what in model.faults.items():
        own = next(one for one in (*model.v, *model.j) if one.allele == allele)
        bases = MISSING.get(name, {}).get(allele)
        if bases is not None:
            found[allele] = own.segment + bases if side_of(model, allele) == "V" else bases + own.segment
        elif what.startswith(("truncated", "reads on")):
            relative = what.partition(" than ")[2] or what.partition(": ")[2].partition(" ")[0]
            found[allele] = next(one.segment for one in model.v if one.allele == relative)
    return found


def mended(model: Model, whole: dict[str, str]) -> Model:
    """The model with whole segments, whose deletions are the mean of those of the alleles without a fault."""
    changes: dict[str, Any] = {}
    for segment, extended in (("V", extended_v), ("J", extended_j)):
        templates = model.templates(segment)
        most = max(len(own.extended) - len(own.segment) for own in templates)
        deletions = (model.v_deletions if segment == "V" else model.j_deletions).copy()
        sound = [k for k in model.contributing(segment) if templates[k].allele not in {*model.faults, *whole}]
        mean = model.p_segment(segment)[sound] @ deletions[sound]
        out: list[Template] = list(templates)
        for k, own in enumerate(templates):
            if own.allele in whole:
                text = extended(whole[own.allele], most)
                p5 = 0 if segment == "V" else len(text) - len(whole[own.allele])
                out[k] = replace(own, segment=whole[own.allele], extended=text, p5=p5)
                deletions[k] = mean / mean.sum()
        changes |= {segment.lower(): tuple(out), f"{segment.lower()}_deletions": deletions}
    return replace(model, **changes)


def peaked(model: Model) -> dict[str, str]:
    """Alleles with P above `COMMON` of which nearly all recombinations delete the same number of bases."""
    found = {}
    for segment, deletions in (("V", model.v_deletions), ("J", model.j_deletions)):
        templates = model.templates(segment)
        most = max(len(own.extended) - len(own.segment) for own in templates)
        for k in model.contributing(segment):
            top = int(deletions[k].argmax())
            if deletions[k][top] > PEAK and model.p_segment(segment)[k] > COMMON:
                found[templates[k].allele] = f"{100 * deletions[k][top]:.0f} % delete exactly {top - most} bases"
    return found


def faulty(names: Iterable[str], most: int, observed: dict[str, Rows]) -> Iterator[list[str]]:
    """A row for each allele that is not corrected, the most frequent first."""
    for name in names:
        model = load_model(name)
        whole = whole_segments(model, name)
        faults = peaked(model) | dict(model.faults)
        own_segments = {own.allele: own.segment for own in (*model.v, *model.j)}
        whole |= {allele: own_segments[allele] for allele in faults.keys() - model.faults.keys()}
        better = mended(model, whole)
        rows_of = drawn(better, whole, most, genes=True)
        shares = {allele: share(model, side_of(model, allele), allele) for allele in faults}
        for allele in sorted(faults, key=lambda own: -shares[own]):
            place, gene = "VJ".index(side_of(model, allele)), allele.partition("*")[0]
            rows = rows_of.get(allele, ())
            real = [row for row in observed.get(name, ()) if allele in whole and row[place].partition("*")[0] == gene]
            values = [
                factor(*(probabilities(own, seen) for own in (model, better))) if seen else "" for seen in (rows, real)
            ]
            yield [name, allele, faults[allele], f"{100 * shares[allele]:.2g} %", *values]


def by_rule(names: Iterable[str]) -> Iterator[list[str]]:
    """A row for V and J of each model: P of the alleles that its numbers and sequences alone show."""
    for name in names:
        model, every = load_model(name), load_model(name, pseudogenes=True)
        for segment in SIDES:
            chance, templates = model.p_segment(segment), model.templates(segment)
            able = model.contributing(segment)
            deletions = model.v_deletions if segment == "V" else model.j_deletions
            codons = {"V": ("TGT", "TGC"), "J": ("TTT", "TTC", "TGG")}[segment]
            unable = {k for k in range(len(templates)) if chance[k] > 0} - set(able)
            nowhere = {k for k in unable if not every.templates(segment)[k].segment}
            found = [
                unable - nowhere,
                nowhere,
                [k for k in able if _anchor(templates[k], segment) not in codons],
                [k for k in able if segment == "V" and _stops(templates[k])],
                [k for k in able if deletions[k].max() > PEAK],
            ]
            lost = sum(chance[k] * (1 - deletions[k][: len(templates[k].extended)].sum()) for k in able)
            alike = Counter(templates[k].sequence for k in able)
            totals = [_total(chance, places, templates) for places in found]
            same = sum(number for number in alike.values() if number > 1)
            yield [name, segment, *totals, f"{100 * max(lost, 0):.2g} %" if lost > 1e-4 else "", f"{same or ''}"]


def _anchor(own: Template, segment: SegmentType) -> str:
    return own.segment[:3] if segment == "V" else own.segment[-3:]


def _stops(own: Template) -> bool:
    """Whether a stop codon is in frame before codon 104."""
    anchor = len(own.sequence) - len(own.segment)
    return any(own.sequence[at : at + 3] in STOPS for at in range(anchor % 3, anchor, 3))


def _total(chance: Any, places: Iterable[int], templates: Sequence[Template]) -> str:
    """How many alleles, P of all of them, and the most frequent."""
    ranked = sorted(places, key=lambda k: -chance[k])
    if not ranked:
        return ""
    most = ", ".join(f"{templates[k].allele} {100 * chance[k]:.2g} %" for k in ranked[:2])
    return f"{len(ranked)}: {100 * sum(chance[k] for k in ranked):.2g} % ({most}{', …' * (len(ranked) > 2)})"


def read_rows(path: Path) -> Rows:
    """The distinct rows of an AIRR table, plain or gzip."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as stream:
        rows = {(row["v_call"], row["j_call"], row["junction"]) for row in csv.DictReader(stream, delimiter="\t")}
    return sorted(row for row in rows if row[2])


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table, each row as soon as it is known."""
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=list(OLGA_FOLDERS))
    parser.add_argument("--junctions", type=int, default=500, help="drawn with each allele, at most")
    parser.add_argument("--observed", metavar="NAME=TABLE", nargs="*", default=[], help="AIRR tables of junctions")
    own = parser.parse_args()
    tables = {name: read_rows(Path(path)) for name, path in (one.split("=", 1) for one in own.observed)}
    heads = ["model", "allele", "what is wrong", "share of P(V) or P(J)", "factor, drawn", "factor, observed"]
    print_table(heads, corrected(own.models, own.junctions, tables))
    print_table(heads, faulty(own.models, own.junctions, tables))
    rules = ["model", "", "not functional", "no anchor", "codon 104 or 118", "stop before 104"]
    rules += [f"one deletion has over {100 * PEAK:.0f} %", "lost by deletions", "same sequence"]
    print_table(rules, by_rule(own.models))


if __name__ == "__main__":
    main()
