"""Does the installed OLGA sum the longest insertions of its own models?

python benchmarks/olga_insertions.py

OLGA computes probabilities twice: as it is, and with three zeros behind the probabilities of the numbers of inserted
bases.  The zeros change no probability, so a difference means that the loop over insertions ends too early.  The
sequences are junctions that OLGA draws from the model, with their V and J alleles, and X…X of each length: the
probability that a junction has this length.  For the drawn junction with the largest difference, hpcvdj's value is
shown, too, if hpcvdj is installed.

OLGA (GPL-3.0) is imported if it is installed; nothing of it is copied.  docs/olga_insertions.md has the results.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

LOCI = {"T_alpha": "tra", "T_beta": "trb", "B_heavy": "igh", "B_kappa": "igk", "B_lambda": "igl"}

COLUMNS = (
    "model", "numbers of inserted bases", "of them 2 (mod 3): P(largest)", "junctions", "nt too small",
    "factor, at most",
    "aa too small", "factor, at most", "of all probability lost", "of a length, factor at most",
)  # fmt: skip

DIFFERENT = 1e-12
"""Relative; values that differ by more are counted."""

CODONS = range(4, 46)
"""Lengths of X…X."""


@dataclass(frozen=True)
class Drawn:
    """A junction that OLGA drew."""

    nt: str
    aa: str
    v: str
    j: str


@dataclass(frozen=True)
class Shipped:
    """A model that OLGA ships.

    vdj    whether it has a D
    plain  without OLGA's faster class FastPgen
    """

    name: str
    folder: Path
    vdj: bool
    plain: bool

    def loaded(self) -> tuple[Any, Any]:
        """OLGA's genomic data and generative model, read again: drawing changes them in place."""
        from olga import load_model

        genomic, generative = (
            getattr(load_model, f"{part}{self.kind}")() for part in ("GenomicData", "GenerativeModel")
        )
        anchors = (str(self.folder / f"{segment}_gene_CDR3_anchors.csv") for segment in "VJ")
        genomic.load_igor_genomic_data(str(self.folder / "model_params.txt"), *anchors)
        generative.load_and_process_igor_model(str(self.folder / "model_marginals.txt"))
        return genomic, generative

    @property
    def kind(self) -> str:
        """The end of the names of OLGA's classes."""
        return "VDJ" if self.vdj else "VJ"

    def drawn(self, number: int) -> list[Drawn]:
        """Junctions in frame and without a stop."""
        from olga import sequence_generation

        genomic, generative = self.loaded()
        generator = getattr(sequence_generation, f"SequenceGeneration{self.kind}")(generative, genomic)
        rows = (generator.gen_rnd_prod_CDR3() for _ in range(number))
        return [Drawn(nt, aa, genomic.genV[v][0], genomic.genJ[j][0]) for nt, aa, v, j in rows]

    def sums(self, zeros: int) -> Any:
        """OLGA's sums, with zeros behind the probabilities of the numbers of inserted bases."""
        from olga import generation_probability

        genomic, generative = self.loaded()
        sums = getattr(generation_probability, f"GenerationProbability{self.kind}")(generative, genomic)
        for name in self.insertions:
            setattr(sums, name, np.append(getattr(sums, name), np.zeros(zeros)))
        if self.plain:
            return sums
        from olga.performance.fast_pgen import FastPgen

        return FastPgen(sums)

    @property
    def insertions(self) -> tuple[str, ...]:
        """OLGA's names of the probabilities of the numbers of inserted bases."""
        return ("PinsVD", "PinsDJ") if self.vdj else ("PinsVJ",)

    def lengths(self) -> list[Any]:
        """The probabilities of 0, 1, … inserted bases, to the largest number that has one, of each insertion."""
        generative = self.loaded()[1]
        found = [np.asarray(getattr(generative, name)) for name in self.insertions]
        return [values[: np.flatnonzero(values)[-1] + 1] for values in found]


def ratios(shipped: Any, complete: Any) -> Any:
    """By what factor the values as shipped are too small; 1 where they do not differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(complete - shipped > DIFFERENT * complete, complete / shipped, 1.0)


def reported(model: Shipped, number: int) -> tuple[list[Any], str]:
    """The cells of a model, and lines on the drawn junction with the largest factor."""
    rows, sums = model.drawn(number), [model.sums(zeros) for zeros in (0, 3)]
    nt = [np.array([own.compute_nt_CDR3_pgen(row.nt, row.v, row.j, False) for row in rows]) for own in sums]
    aa = [np.array([own.compute_aa_CDR3_pgen(row.aa, row.v, row.j, False) for row in rows]) for own in sums]
    totals = [
        np.array([own.compute_aa_CDR3_pgen("X" * codons, None, None, False) for codons in CODONS]) for own in sums
    ]
    lengths = model.lengths()
    lost = ", ".join(f"{own[-1]:.1e}" for own in lengths if len(own) % 3 == 2)
    cells: list[Any] = [model.name, "+".join(str(len(own)) for own in lengths), lost or "-", len(rows)]
    for values in (nt, aa):
        factors = ratios(*values)
        cells += [int((factors > 1).sum()), f"{factors.max():.6g}"]
    cells += [f"{max(0.0, 1 - totals[0].sum() / totals[1].sum()):.1e}", f"{ratios(*totals).max():.6g}"]
    factors = ratios(*aa)
    worst = int(factors.argmax())
    if factors[worst] == 1:
        return cells, ""
    row = rows[worst]
    text = f"{model.name}, {row.aa}, {row.v}, {row.j}: OLGA {aa[0][worst]:.6g}, with zeros {aa[1][worst]:.6g}"
    return cells, text + own_value(model.name, row)


def loaded(folder: Path, vdj: bool) -> tuple[Any, Any]:
    """OLGA's genomic data and generative model of a folder."""
    from olga import load_model

    kind = "VDJ" if vdj else "VJ"
    genomic, generative = getattr(load_model, f"GenomicData{kind}")(), getattr(load_model, f"GenerativeModel{kind}")()
    anchors = (str(folder / f"{segment}_gene_CDR3_anchors.csv") for segment in "VJ")
    genomic.load_igor_genomic_data(str(folder / "model_params.txt"), *anchors)
    generative.load_and_process_igor_model(str(folder / "model_marginals.txt"))
    return genomic, generative


def drawn(folder: Path, vdj: bool, number: int) -> list[tuple[str, str, str, str]]:
    """Nucleotides, amino acids, V and J allele of junctions in frame and without a stop.

    They come from a copy of the model of their own: drawing changes it in place.
    """
    from olga import sequence_generation

    genomic, generative = loaded(folder, vdj)
    generator = getattr(sequence_generation, f"SequenceGeneration{'VDJ' if vdj else 'VJ'}")(generative, genomic)
    rows = (generator.gen_rnd_prod_CDR3() for _ in range(number))
    return [(nt, aa, genomic.genV[v][0], genomic.genJ[j][0]) for nt, aa, v, j in rows]


def values(folder: Path, vdj: bool, rows: list[tuple[str, str, str, str]], zeros: int) -> Any:
    """The probabilities of nucleotides and amino acids, float64 [rows, 2]."""
    from olga import generation_probability

    genomic, generative = loaded(folder, vdj)
    model = getattr(generation_probability, f"GenerationProbability{'VDJ' if vdj else 'VJ'}")(generative, genomic)
    for name in ("PinsVD", "PinsDJ") if vdj else ("PinsVJ",):
        setattr(model, name, np.append(getattr(model, name), np.zeros(zeros)))
    return np.array(
        [
            (
                model.compute_nt_CDR3_pgen(nt, v, j, print_warnings=False),
                model.compute_aa_CDR3_pgen(aa, v, j, print_warnings=False),
            )
            for nt, aa, v, j in rows
        ]
    )


def lengths(folder: Path, vdj: bool) -> list[int]:
    """How many numbers of inserted bases OLGA keeps."""
    from olga import generation_probability

    genomic, generative = loaded(folder, vdj)
    model = getattr(generation_probability, f"GenerationProbability{'VDJ' if vdj else 'VJ'}")(generative, genomic)
    return [len(getattr(model, name)) for name in (("PinsVD", "PinsDJ") if vdj else ("PinsVJ",))]


def own_value(name: str, row: Drawn) -> str:
    """hpcvdj's value of the amino acids of one junction."""
    try:
        import pyarrow as pa

        import hpcvdj
    except ImportError:
        return ""
    table = hpcvdj.pgen(pa.table({"junction": [row.nt], "v_call": [row.v], "j_call": [row.j]}), name)
    return f", hpcvdj {table['pgen_aa'][0].as_py():.6g}"


def main() -> None:
    """Print a line for each model, and the worst junctions below."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--number", metavar="N", type=int, default=1000, help="junctions of a model")
    parser.add_argument("--number-igh", metavar="N", type=int, default=200, help="junctions of IGH, where OLGA is slow")
    parser.add_argument("--plain", action="store_true", help="OLGA's plain class, not FastPgen; it is slow")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="seed of OLGA's drawing")
    options = parser.parse_args()
    try:
        import olga
    except ImportError:
        sys.exit("OLGA is not installed; pip install olga==1.3.0")
    print(f"OLGA {metadata.version('olga')}\n\n| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    worst = []
    for species in ("human", "mouse"):
        for kind, locus in LOCI.items():
            folder = Path(olga.__file__).parent / "default_models" / f"{species}_{kind}"
            np.random.seed(options.seed)
            number = options.number_igh if locus == "igh" else options.number
            cells, text = reported(
                Shipped(f"{species}_{locus}", folder, kind in ("T_beta", "B_heavy"), options.plain), number
            )
            worst.append(text)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print("", *filter(None, worst), sep="\n")


if __name__ == "__main__":
    main()
