"""In silico junctions: random pathways as an AIRR table.

A junction consists of a V form, a J form, a D form and an n-nucleotide string with its cut.  Each of these is drawn
uniformly, so that all pathways of a V-J pair and one n-length are equally likely; `pair_sizes` says how many rows each
pair has.
"""

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.generation.settings import PAPER_LARGEST_PAIR, PAPER_SEQUENCES, SimulationSettings
from hpcvdj.recombination.alphabet import BASES, translate
from hpcvdj.recombination.germline import Germline, Segment, d_forms, first_alleles, j_forms, v_forms
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3
from hpcvdj.runs.progress import Progress

CYS, PHE = "TGT", "TTT"
"""The anchor codons written around each CDR3; counts do not depend on these codons."""

_LETTERS = np.frombuffer(BASES.encode(), dtype=np.uint8)
_MOST_ROUNDS = 200
_BATCH = 1 << 17


def sequence_ids(numbers: NDArray[np.int64]) -> Any:
    """Return the ids of in silico sequences, insilico_0, …, as a pyarrow string Array."""
    return pc.binary_join_element_wise("insilico_", pa.array(numbers).cast(pa.string()), "")


def simulate(germline: Germline, plan: SimulationSettings) -> Iterator[pa.RecordBatch]:
    """Yield junctions as AIRR record batches, in random order.

    Columns: sequence_id, v_call, d_call, j_call, junction, productive, n1_length, n2_length (n-nucleotides left and
    right of D).  The same germline, plan and seed give the same rows.  A junction takes about 150 bytes of memory, or
    500 while its V–J pair is drawn.
    """
    rng = np.random.default_rng(plan.seed)
    pairs = usable_pairs(germline, ("F", "ORF") if plan.orf else ("F",))
    sizes = rng.permutation(pair_sizes(plan.number, len(pairs), PAPER_LARGEST_PAIR / PAPER_SEQUENCES))
    drawn = []
    with Progress(plan.number, "junctions", shown=True, what="drawing") as progress:
        for (v, j), size in zip(pairs, sizes.tolist(), strict=True):
            drawn.append(_draw_pair(germline, plan, rng, v, j, size))
            progress.advance(size)
    rows = np.concatenate(drawn)
    drawn.clear()
    order = rng.permutation(plan.number)
    for first in range(0, plan.number, _BATCH):
        chosen = rows[order[first : first + _BATCH]]
        columns = {
            "sequence_id": sequence_ids(np.arange(first, first + len(chosen))),
            **{name: chosen[name].tolist() for name in ("v_call", "d_call", "j_call")},
            "junction": [f"{CYS}{cdr3}{PHE}" for cdr3 in chosen["cdr3"].astype(str)],
            "productive": np.where(chosen["productive"], "T", "F").tolist(),
            **{name: chosen[name].astype(str).tolist() for name in ("n1_length", "n2_length")},
        }
        yield pa.RecordBatch.from_pydict(columns)


def usable_pairs(germline: Germline, statuses: tuple[str, ...]) -> list[tuple[Segment, Segment]]:
    """List the V–J pairs of genes by their first allele with one of `statuses`; raises InputError if there is none."""
    pairs: list[tuple[Segment, Segment]] = []
    for locus in germline.loci:
        v, j = (first_alleles(s for s in germline.of(kind, locus) if s.functional in statuses) for kind in "VJ")
        pairs += product(v, j)
    if not pairs:
        raise InputError(f"{germline.name}: no functional V–J pair to simulate")
    return pairs


def pair_sizes(count: int, pairs: int, largest_share: float) -> NDArray[np.int64]:
    """Split `count` over `pairs` in falling order, proportional to rank^-s; the first pair has `largest_share`.

    With fewer pairs than 1 / largest_share, the split is even.
    """
    largest = max(round(count * largest_share), -(-count // pairs))
    rank = np.arange(1.0, pairs + 1)
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 1.0 / (rank**-middle).sum() < largest / count else (low, middle)
    share = rank**-low / (rank**-low).sum()
    sizes = np.floor(share * count).astype(np.int64)
    sizes[0] = largest
    surplus = count - int(sizes.sum())
    # Rounding down leaves less than one sequence per pair; the first of the other pairs get these.
    others = np.arange(1, pairs) if pairs > 1 else np.array([0])
    np.add.at(sizes, others[np.arange(abs(surplus)) % len(others)], np.sign(surplus))
    return np.asarray(sizes)


def _draw_pair(
    germline: Germline, plan: SimulationSettings, rng: np.random.Generator, v: Segment, j: Segment, size: int
) -> NDArray[np.void]:
    """Draw `size` distinct junctions of a V–J pair."""
    kinds = [
        ("v_call", object), ("d_call", object), ("j_call", object), ("cdr3", f"S{PAPER_LONGEST_CDR3}"),
        ("productive", bool), ("n1_length", np.uint8), ("n2_length", np.uint8),
    ]  # fmt: skip
    # d_call names the gene if any of it is left.
    d = [
        (form, gene.allele if form else "")
        for gene in germline.d_segments(v.locus)
        for form in d_forms(gene.sequence, max_p=germline.max_p)
    ]
    parts = v_forms(v.sequence, germline.max_p), d, j_forms(j.sequence, germline.max_p)
    kept: dict[str, tuple[object, ...]] = {}
    insertions = sum((n + 1 if d else 1) * 4**n for n in plan.n_lengths)
    # Without as many ways, drawing would take minutes.
    ways = len(parts[0]) * max(1, len(d)) * len(parts[2]) * insertions
    for _ in range(_MOST_ROUNDS if ways >= size else 0):
        draws = _draw(plan, rng, *parts, max(64, (size - len(kept)) * 5 // 4))
        fits = [draw for draw in draws if len(draw[0]) <= PAPER_LONGEST_CDR3]
        amino_acids = translate([cdr3 for cdr3, *_ in fits])
        for (cdr3, d_call, left, right), protein in zip(fits, amino_acids, strict=True):
            productive = len(cdr3) % 3 == 0 and "*" not in protein
            if productive or not plan.productive:
                kept.setdefault(cdr3, (v.allele, d_call, j.allele, cdr3, productive, left, right))
        if len(kept) >= size:
            return np.array(list(islice(kept.values(), size)), dtype=kinds)
    raise InputError(
        f"{germline.name}: {v.allele}–{j.allele} does not give {size} distinct CDR3s of at most {PAPER_LONGEST_CDR3} "
        f"nt with n-lengths {plan.n_lengths.start}-{plan.n_lengths.stop - 1}; ask for fewer junctions or more n-lengths"
    )


def _draw(
    plan: SimulationSettings, rng: np.random.Generator, v_parts: list[str], d_parts: list[tuple[str, str]],
    j_parts: list[str], size: int,
) -> Iterator[tuple[str, str, int, int]]:  # fmt: skip
    """Yield `size` draws: (CDR3, D allele, n-nucleotides left of D, n-nucleotides right of D)."""
    m = np.array(plan.n_lengths)
    lengths = rng.choice(m, size=size, p=np.ones(len(m)) / len(m))
    cuts = rng.integers(0, lengths + 1) if d_parts else lengths
    v, j, d = (rng.integers(0, max(1, len(parts)), size=size) for parts in (v_parts, j_parts, d_parts))
    letters = _LETTERS[rng.integers(0, 4, size=(size, max(1, m.max())), dtype=np.uint8)]
    n = letters.view(f"S{letters.shape[1]}").ravel().astype(str)
    for k, cut in enumerate(cuts.tolist()):
        form, d_call = d_parts[d[k]] if d_parts else ("", "")
        cdr3 = v_parts[v[k]] + n[k][:cut] + form + n[k][cut : lengths[k]] + j_parts[j[k]]
        yield cdr3, d_call, cut, lengths[k] - cut
