"""A cohort of individuals with planted signals: what is true of it is known.

Each individual has productive junctions and some out of frame, drawn from a model, with read counts.  Planted are

- public clonotypes: amino acids that the model rarely makes, in many individuals, each with its own nucleotides; every
  second one only in individuals of group A;
- clusters: a rare junction and others with one residue exchanged, in one individual;
- carry-over: the largest clones of the first individual, with one read in the second.

The seed gives the same bytes.  `python benchmarks/_cohort.py FOLDER MODEL '{"individuals": 5}'` makes one.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hpcvdj
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.writers import write_table

PUBLIC, CLUSTER, CARRIED = "public", "cluster", "carried"

Row = dict[str, Any]

Clonotype = tuple[str, str, str]
"""V gene, J gene, amino acids."""


@dataclass(frozen=True)
class Cohort:
    """What to make.

    individuals  tables
    junctions    productive junctions of each
    seed         of everything
    public       public clonotypes
    share        of the individuals that have each, if they may
    clusters     clusters, each in an individual of its own if there are enough
    members      junctions of a cluster
    carried      clones that are carried over
    rarest       the largest generation probability (amino acids, V and J) of what is planted
    selection    draw with the model's selection factor
    """

    individuals: int = 5
    junctions: int = 5_000
    seed: int = 0
    public: int = 10
    share: float = 0.8
    clusters: int = 5
    members: int = 8
    carried: int = 40
    rarest: float = 1e-10
    selection: bool = False


COLUMNS = ("sequence_id", "v_call", "j_call", "junction", "junction_aa", "productive", "duplicate_count")
TRUTH = ("kind", "number", "repertoire_id", "sequence_id", "v_call", "j_call", "junction", "junction_aa")


def make(folder: Path, model: Any, plan: Cohort) -> None:
    """Write samples/*.tsv.gz, metadata.tsv and truth.tsv into a folder."""
    names = [f"individual_{k + 1:03}" for k in range(plan.individuals)]
    groups = ["AB"[k % 2] for k in range(plan.individuals)]
    samples = {name: _sample(model, plan, k) for k, name in enumerate(names)}
    truth: list[Row] = []

    def plant(kind: str, number: int, name: str, row: Row, reads: int) -> None:
        planted = {**row, "sequence_id": f"{kind}_{number}_{len(truth)}", "duplicate_count": str(reads)}
        samples[name].append(planted)
        truth.append({"kind": kind, "number": str(number), "repertoire_id": name, **planted})

    rng = np.random.default_rng([plan.seed, 1])
    _plant_public(plan, list(zip(names, groups, strict=True)), _rare(model, plan, plan.public, 2), rng, plant)
    for number, row in enumerate(_rare(model, plan, plan.clusters, 3)):
        for text in exchanged(row["junction"], plan.members, 9, rng):
            member = {**row, "junction": text, "junction_aa": hpcvdj.translate([text])[0]}
            plant(CLUSTER, number, names[-1 - number % plan.individuals], member, int(rng.integers(2, 30)))
    largest = sorted(samples[names[0]][: plan.junctions], key=lambda row: -int(row["duplicate_count"]))
    for number, row in enumerate(largest[: plan.carried]):
        plant(CARRIED, number, names[1], row, 1)
    (folder / "samples").mkdir(parents=True)
    for name, rows in samples.items():
        _write(folder / "samples" / f"{name}.tsv", rows, COLUMNS)
    _write(folder / "truth.tsv", truth, TRUTH)
    metadata = [{"repertoire_id": name, "group": group} for name, group in zip(names, groups, strict=True)]
    _write(folder / "metadata.tsv", metadata, ("repertoire_id", "group"))


def _write(path: Path, rows: list[Row], columns: tuple[str, ...]) -> None:
    table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in columns})
    write_table(path, table.to_batches(), overwrite=False)


def _seed(plan: Cohort, *parts: int) -> int:
    return int(np.random.SeedSequence([plan.seed, *parts]).generate_state(1, np.uint64)[0])


def _sample(model: Any, plan: Cohort, individual: int) -> list[Row]:
    """Productive junctions, then a quarter as many out of frame; with reads that few clones have many of."""
    drawn = {"seed": _seed(plan, 10, individual), "productive": True, "selection": plan.selection}
    productive = hpcvdj.generate(model, plan.junctions, **drawn)
    others = hpcvdj.generate(model, plan.junctions, seed=_seed(plan, 11, individual))
    out_of_frame = others.filter(pc.equal(others["junction_aa"], "")).slice(0, plan.junctions // 4)
    rows = [*productive.to_pylist(), *out_of_frame.to_pylist()]
    reads = np.minimum(np.random.default_rng([plan.seed, 12, individual]).zipf(2.0, len(rows)), 100_000)
    for number, (row, count) in enumerate(zip(rows, reads.tolist(), strict=True)):
        row |= {"sequence_id": f"s{number}", "duplicate_count": str(count), "productive": "FT"[row["productive"]]}
    return rows


def _rare(model: Any, plan: Cohort, number: int, part: int) -> list[Row]:
    """Productive junctions of small probability."""
    drawn = hpcvdj.generate(model, 200 * number + 1_000, seed=_seed(plan, 20, part), productive=True)
    known = hpcvdj.pgen(drawn, model, sequence="aa")
    rare = known.filter(pc.less(known["pgen_aa"], plan.rarest)).slice(0, number)
    if len(rare) < number:
        raise ValueError(f"only {len(rare)} junctions are as rare as {plan.rarest}")
    return [{**row, "productive": "T"} for row in rare.select([*COLUMNS[:-2], "productive"]).to_pylist()]


def _plant_public(
    plan: Cohort,
    individuals: list[tuple[str, str]],
    rows: list[Row],
    rng: np.random.Generator,
    plant: Callable[[str, int, str, Row, int], None],
) -> None:
    for number, row in enumerate(rows):
        may = [name for name, group in individuals if number % 2 == 0 or group == "A"]
        for name in sorted(rng.choice(may, max(2, round(plan.share * len(may))), replace=False).tolist()):
            plant(PUBLIC, number, name, {**row, "junction": _respelled(row["junction"], rng)}, int(rng.integers(2, 30)))


def _respelled(junction: str, rng: np.random.Generator) -> str:
    """Other nucleotides of the same amino acids: each inner codon is drawn from those of its residue."""
    codons = [junction[k : k + 3] for k in range(0, len(junction), 3)]
    for place in range(3, len(codons) - 3):
        same = [codon for codon, residue in AMINO_ACIDS.items() if residue == AMINO_ACIDS[codons[place]]]
        codons[place] = str(rng.choice(same))
    return "".join(codons)


def exchanged(junction: str, number: int, margin: int, rng: np.random.Generator) -> list[str]:
    """A junction and others without a stop codon, `number` in all, in which a base inside the margins is exchanged."""
    texts = {junction}
    while len(texts) < number:
        at = int(rng.integers(margin, len(junction) - margin))
        other = junction[:at] + "ACGT"[rng.integers(4)] + junction[at + 1 :]
        if "*" not in hpcvdj.translate([other])[0]:
            texts.add(other)
    return sorted(texts)


def exchanges(one: str, other: str) -> int:
    """In how many places two sequences differ; many, if they differ in length."""
    return sum(a != b for a, b in zip(one, other, strict=True)) if len(one) == len(other) else 99


def near(a: Clonotype, b: Clonotype) -> bool:
    """Whether two clonotypes are equal, or differ in one residue."""
    return a[:2] == b[:2] and exchanges(a[2], b[2]) <= 1


if __name__ == "__main__":
    folder, name, plan = sys.argv[1:]
    make(Path(folder), load_model(name), Cohort(**json.loads(plan)))
