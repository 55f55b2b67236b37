"""In silico junctions: pathways drawn at random and written as an AIRR table.

A junction is made as recombination makes it: a V form, a J form, a D form and an n-nucleotide string with its
cut, each uniform over all there are, so that every pathway of one n-length is equally likely.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import BASES, encode
from hpcvdj.recombination.germline import Germline, Segment, d_forms, extended_j, extended_v
from hpcvdj.recombination.repertoire import LONGEST_CDR3, PAPER_LONGEST_CDR3

PAPER_SEQUENCES = 101_822
"""In vivo sequences of the paper's mouse data set."""

PAPER_LARGEST_PAIR = 3_249
"""In vivo sequences of its largest V–J pair (section VI)."""

CYS, PHE = "TGT", "TTT"
"""The anchor codons written around each CDR3; counts do not depend on these codons."""

_LETTERS = np.frombuffer(BASES.encode(), dtype=np.uint8)
_STOPS = ("TAA", "TAG", "TGA")
_MOST_ROUNDS = 200
_BATCH = 1 << 17


@dataclass(frozen=True)
class Simulation:
    """What to simulate.

    count          junctions, distinct within each V–J pair
    n_lengths      the n-lengths to draw from
    weighting      `uniform`: each n-length equally likely; `pathways`: as likely as it has pathways
    largest_share  share of the largest V–J pair; the others fall off as a power of their rank
    longest        longest CDR3 in nucleotides; longer draws are thrown away
    productive     keep only junctions in frame and without a stop codon
    orf            use V and J genes that IMGT calls ORF beside the functional ones
    """

    count: int = PAPER_SEQUENCES
    seed: int = 0
    n_lengths: range = field(default_factory=lambda: range(11))
    weighting: Literal["uniform", "pathways"] = "uniform"
    largest_share: float = PAPER_LARGEST_PAIR / PAPER_SEQUENCES
    longest: int = PAPER_LONGEST_CDR3
    productive: bool = False
    orf: bool = False


def simulate(germline: Germline, plan: Simulation) -> Iterator[pa.RecordBatch]:
    """Junctions as AIRR record batches, V–J pairs in random order throughout.

    Columns: sequence_id, v_call, d_call, j_call, junction, productive, n1_length, n2_length (n-nucleotides left
    and right of D).  The same germline, plan and seed give the same rows.  Memory: about 150 bytes a junction.
    """
    _check(plan)
    rng = np.random.default_rng(plan.seed)
    pairs = usable_pairs(germline, ("F", "ORF") if plan.orf else ("F",))
    sizes = rng.permutation(pair_sizes(plan.count, len(pairs), plan.largest_share))
    drawn = [_draw_pair(germline, plan, rng, v, j, int(size)) for (v, j), size in zip(pairs, sizes, strict=True)]
    pair_of = np.repeat(np.arange(len(pairs)), sizes)
    columns = [np.concatenate([part[k] for part in drawn]) for k in range(5)]
    drawn.clear()
    order = rng.permutation(plan.count)
    for first in range(0, plan.count, _BATCH):
        rows = order[first : first + _BATCH]
        yield _batch(germline, pairs, pair_of[rows], first, [column[rows] for column in columns])


def usable_pairs(germline: Germline, statuses: tuple[str, ...]) -> list[tuple[Segment, Segment]]:
    """Every V–J pair of genes with one of the `statuses`, each gene by its first such allele; InputError if none."""
    pairs = [
        (v, j)
        for locus in germline.loci
        for v in _used(germline, "V", locus, statuses)
        for j in _used(germline, "J", locus, statuses)
    ]
    if not pairs:
        raise InputError(f"{germline.name}: no functional V–J pair to simulate")
    return pairs


def pair_sizes(count: int, pairs: int, largest_share: float) -> NDArray[np.int64]:
    """`count` split over `pairs` in falling order, proportional to rank^-s, the first with `largest_share`.

    With fewer pairs than 1 / largest_share the split is even.
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
    # Flooring leaves less than one sequence per pair; hand what is left to the first of the others.
    places = np.arange(1, pairs) if pairs > 1 else np.array([0])
    for k in range(abs(surplus)):
        sizes[places[k % len(places)]] += int(np.sign(surplus))
    return np.asarray(sizes)


def _check(plan: Simulation) -> None:
    if plan.count < 1:
        raise InputError("the number of junctions must be at least 1")
    if not plan.n_lengths or plan.n_lengths.start < 0:
        raise InputError("give n-lengths as A-B with 0 <= A <= B")
    if not 0 < plan.largest_share <= 1:
        raise InputError("the share of the largest V–J pair must be above 0 and at most 1")
    if not 0 <= plan.longest <= LONGEST_CDR3:
        raise InputError(f"the longest CDR3 must have 0 to {LONGEST_CDR3} nt")


def _used(germline: Germline, kind: str, locus: str, statuses: tuple[str, ...]) -> list[Segment]:
    """The first listed allele of every gene with one of the `statuses`."""
    first: dict[str, Segment] = {}
    for segment in germline.of(kind, locus):
        if segment.functional in statuses:
            first.setdefault(segment.gene, segment)
    return list(first.values())


def _draw_pair(
    germline: Germline, plan: Simulation, rng: np.random.Generator, v: Segment, j: Segment, size: int
) -> tuple[NDArray[Any], ...]:
    """`size` distinct CDR3s of one V–J pair: letters uint8 [size, longest], lengths, D gene, n left, n right."""
    forms = _PairForms(germline, v, j)
    kept: tuple[NDArray[Any], ...] | None = None
    for _ in range(_MOST_ROUNDS):
        have = 0 if kept is None else len(kept[1])
        if have == size and kept is not None:
            return kept
        fresh = forms.draw(plan, rng, max(64, (size - have) * 5 // 4))
        kept = fresh if kept is None else tuple(np.concatenate(both) for both in zip(kept, fresh, strict=True))
        _, first = np.unique(kept[0].view(f"V{plan.longest + 1}"), return_index=True)
        kept = tuple(part[np.sort(first)[:size]] for part in kept)
    raise InputError(
        f"{germline.name}: {v.allele}–{j.allele} does not give {size} distinct CDR3s of at most {plan.longest} nt "
        f"with n-lengths {plan.n_lengths.start}-{plan.n_lengths.stop - 1}; ask for fewer junctions or longer ones"
    )


class _PairForms:
    """The forms of one V–J pair as the assembling loop takes them."""

    def __init__(self, germline: Germline, v: Segment, j: Segment) -> None:
        self.v = encode(extended_v(v.sequence, germline.max_p))
        self.j = encode(extended_j(j.sequence, germline.max_p))
        genes = germline.d_segments(v.locus)
        texts = [(k, text) for k, gene in enumerate(genes) for text in d_forms(gene.sequence, "paper", germline.max_p)]
        self.has_d = bool(texts)
        texts = texts or [(-1, "")]
        self.gene = np.array([k for k, _ in texts])
        self.d_length = np.array([len(text) for _, text in texts])
        self.d = np.zeros((len(texts), max(1, int(self.d_length.max()))), dtype=np.uint8)
        for row, (_, text) in enumerate(texts):
            self.d[row, : len(text)] = encode(text)

    def draw(self, plan: Simulation, rng: np.random.Generator, size: int) -> tuple[NDArray[Any], ...]:
        """About `size` CDR3s: those of `size` draws that fit the plan."""
        m = rng.choice(np.array(plan.n_lengths), size=size, p=self._weights(plan))
        cut = rng.integers(0, m + 1) if self.has_d else m
        a = rng.integers(0, len(self.v) + 1, size=size)
        b = rng.integers(0, len(self.j) + 1, size=size)
        form = rng.integers(0, len(self.gene), size=size)
        n = rng.integers(0, 4, size=(size, max(1, plan.n_lengths.stop - 1)), dtype=np.uint8)
        length = a + m + self.d_length[form] + b
        fits = np.flatnonzero(length <= plan.longest)
        # One zero column at the end keeps a view of the rows possible when longest is 0.
        letters = np.zeros((len(fits), plan.longest + 1), dtype=np.uint8)
        _assemble(
            self.v, self.j, self.d, self.d_length, a[fits], b[fits], form[fits], m[fits], cut[fits], n[fits], letters
        )
        gene = np.where(self.d_length[form] > 0, self.gene[form], -1)
        parts = letters, length[fits], gene[fits], cut[fits], (m - cut)[fits]
        keep = _productive(letters, length[fits]) if plan.productive else np.ones(len(fits), dtype=bool)
        return tuple(part[keep] for part in parts)

    def _weights(self, plan: Simulation) -> NDArray[np.float64]:
        m = np.array(plan.n_lengths, dtype=np.float64)
        # Shifting the exponent keeps 4^m finite; only ratios matter.
        pathways = 4.0 ** (m - m.max()) * (m + 1 if self.has_d else 1)
        weights = pathways if plan.weighting == "pathways" else np.ones(len(m))
        return np.asarray(weights / weights.sum())


@njit(cache=True)
def _assemble(v, j, d, d_length, a, b, form, m, cut, n, out):  # type: ignore[no-untyped-def]
    """V + n[:cut] + D + n[cut:] + J of each draw as letters into the rows of `out`."""
    for row in range(len(a)):
        place = 0
        for k in range(a[row]):
            out[row, place] = _LETTERS[v[k]]
            place += 1
        for k in range(cut[row]):
            out[row, place] = _LETTERS[n[row, k]]
            place += 1
        for k in range(d_length[form[row]]):
            out[row, place] = _LETTERS[d[form[row], k]]
            place += 1
        for k in range(cut[row], m[row]):
            out[row, place] = _LETTERS[n[row, k]]
            place += 1
        for k in range(len(j) - b[row], len(j)):
            out[row, place] = _LETTERS[j[k]]
            place += 1


def _productive(letters: NDArray[np.uint8], length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """In frame, and no stop codon in frame."""
    codons = letters[:, : letters.shape[1] // 3 * 3].reshape(len(letters), -1, 3)
    stop = np.zeros(len(letters), dtype=bool)
    for text in _STOPS:
        stop |= (codons == np.frombuffer(text.encode(), dtype=np.uint8)).all(axis=2).any(axis=1)
    return np.asarray((length % 3 == 0) & ~stop)


def _batch(
    germline: Germline,
    pairs: list[tuple[Segment, Segment]],
    pair_of: NDArray[np.int64],
    first: int,
    columns: list[NDArray[Any]],
) -> pa.RecordBatch:
    letters, length, gene, left, right = columns
    genes = {locus: germline.d_segments(locus) for locus in germline.loci}
    text = letters.view(f"S{letters.shape[1]}").reshape(-1).astype(str)
    productive = _productive(letters, length)
    # AIRR d_call: the gene when any of it is left.
    d_call = ["" if g < 0 else genes[pairs[p][0].locus][g].allele for p, g in zip(pair_of, gene, strict=True)]
    return pa.RecordBatch.from_pydict(
        {
            "sequence_id": [f"insilico_{first + k}" for k in range(len(length))],
            "v_call": [pairs[p][0].allele for p in pair_of],
            "d_call": d_call,
            "j_call": [pairs[p][1].allele for p in pair_of],
            "junction": [f"{CYS}{cdr3}{PHE}" for cdr3 in text],
            "productive": ["T" if flag else "F" for flag in productive],
            "n1_length": left.astype(str).tolist(),
            "n2_length": right.astype(str).tolist(),
        }
    )
