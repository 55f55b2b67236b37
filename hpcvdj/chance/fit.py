"""The fit of a model to a table, gene by gene: usage, lengths, and junctions that are too improbable under the model.

Rows of the table are compared with junctions that the model makes.  Selection does not act on rows that are out of
frame, so their shares are compared with a narrow margin if there are enough of them.  The shares of productive rows are
compared with a wide margin.  A productive row is **improbable** if its probability is below that of 99 % of the
productive junctions that the model makes with its gene.  This is one row in a hundred by chance, and fewer after
selection, which favours probable junctions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Model, twin_genes
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import kinds_of

FEWEST_ROWS = 30
"""The smallest number of rows of a gene that is judged."""

FEWEST_DRAWN = 300
"""The smallest number of draws of a gene that define what is improbable; with fewer, the draws of all genes do."""

TAIL = 0.01
"""The share of the draws that is improbable."""

MISFIT, BROKEN = 0.1, 0.5
"""The shares of improbable rows from which on a gene fails, and from which on tests leave it out.  The largest share of
43 V genes of the CD8 T cells of one donor under OLGA's model is 0.096; that of mouse TRBV31, which is
reverse-complemented in OLGA's files, is 0.78."""

MISFIT_SHIFT, BROKEN_SHIFT = 2.0, 4.0
"""The shifts from which on a gene fails, and from which on tests leave it out.  A shift says by how many decades the
probabilities of a gene's rows are smaller than those of the draws, in the median and relative to all genes.  In that
donor, the largest shift is 1.1; that of the reversed TRBV31 is eight."""

ALWAYS = 0.95
"""The probability of one number of deleted bases from which on an allele's deletions are unknown.  Among OLGA's alleles
that are chosen more often than once in a thousand, only those of mouse TRAJ24, whose sequence is truncated, of human
IGLJ5 and IGKJ0-ABRI, and two others of mouse IGK exceed it."""

FEWEST_OUT_OF_FRAME = 1_000
"""The number of rows out of frame from which on shares are compared among them."""

MARGIN = {"out-of-frame": 4.0, "productive": 12.0}
"""How many times as common, or as rare, as in the model a gene may be among the rows of a frame."""

LENGTH_MARGIN = {"out-of-frame": 10.0, "productive": 60.0}
"""The same for lengths: selection removes long junctions, and makes 22 residues 35 times as rare in that donor."""

COMMON = 0.005
"""The share below which, in table and model, a gene or a length is not judged by its share."""


def is_told(finding: str | None, share: float) -> bool:
    """Return whether users hear of a gene that fails: most truncated genes are rare, and explain no other finding."""
    return finding != "truncated" or share > COMMON


HABIT = 8.0
"""The factor by which the odds of a gene among its twins may differ between table and model."""

_Z = 3.0
"""The number of standard errors by which a share must exceed its bound."""

Frame = Literal["out-of-frame", "productive"]

Finding = Literal["broken", "truncated", "unmade", "improbable", "habit", "usage"]


@dataclass(frozen=True)
class Side:
    """Junctions of a table, or draws of the model, in one frame.

    repertoire  by genes, as of `hpcvdj.repertoires.genes.by_gene`
    p           float64 [junctions]: generation probabilities with the genes
    """

    repertoire: Repertoire
    p: Floats

    def __len__(self) -> int:
        return len(self.p)

    def log10_given(self, segment: SegmentType, model: Model) -> Floats:
        """Return log10 of each probability given the V gene, or the J gene; -inf for 0."""
        chance, side = model.p_segment(segment), 0 if segment == "V" else 1
        prior = np.array([chance[list(pair[side].places)].sum() for pair in self.repertoire.pairs])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.p > 0, np.log10(self.p / prior[kinds_of(self.repertoire)]), -np.inf)

    def rows_by_gene(self, segment: SegmentType) -> dict[str, Counts]:
        """Return the rows of the junctions of each gene."""
        of_pair = [pair[0 if segment == "V" else 1].allele for pair in self.repertoire.pairs]
        names = sorted(set(of_pair))
        gene = np.array([names.index(name) for name in of_pair], dtype=np.int64)[kinds_of(self.repertoire)]
        order = np.argsort(gene, kind="stable")
        ends = np.cumsum(np.bincount(gene, minlength=len(names)))
        return dict(zip(names, np.split(order, ends[:-1]), strict=True)) if names else {}


@dataclass(frozen=True)
class GeneFit:
    """How a gene of the table compares with the model.

    rows         the number of productive rows of the table that have the gene
    zero         the share of these that the model cannot make
    improbable   the share of these that are improbable; impossible rows are included
    log10_shift  the median of log10 p, given the gene, of rows that the model can make, minus that of the draws; None
                 without such rows
    share        the gene's share of the table's rows of a frame
    model_share  the gene's share of the model's draws of the frame
    frame        in which shares are compared
    finding      what is wrong; None if nothing is
    twins        genes that reads hardly distinguish from it
    """

    segment: SegmentType
    gene: str
    rows: int
    zero: float
    improbable: float
    log10_shift: float | None
    share: float
    model_share: float
    frame: Frame
    finding: Finding | None = None
    twins: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say what is wrong."""
        if self.finding == "truncated":
            return (
                f"{self.gene}: {self.rows:,} rows, and in the model it loses always as many bases, or has none to lose"
            )
        if self.finding == "unmade":
            return f"{self.gene}: {self.rows:,} rows, and the model never makes it"
        if self.finding in ("broken", "improbable"):
            zero = f", {100 * self.zero:.0f} % impossible" if self.zero >= 0.005 else ""
            short = -(self.log10_shift or 0.0)
            shift = f"; p is about {times_text(short)} times too small" if short >= 1 else ""
            return f"{self.gene}: {100 * self.improbable:.0f} % of {self.rows:,} rows are improbable{zero}{shift}"
        twins = f"; reads hardly tell it from {', '.join(self.twins)}" if self.finding == "habit" else ""
        return f"{self.gene}: {_shares_text(self.share, self.model_share, self.frame)}{twins}"


@dataclass(frozen=True)
class LengthFit:
    """A length whose share of the rows of a frame differs from that of the draws."""

    nucleotides: int
    rows: int
    share: float
    model_share: float
    frame: Frame

    def __str__(self) -> str:
        """Say what is wrong."""
        return f"{self.nucleotides} nt: {_shares_text(self.share, self.model_share, self.frame)}"


def two_digits(number: float) -> str:
    """A number up to 100 in two digits; 100 as such, not as a power of ten."""
    return f"{number:.2g}" if number < 99.5 else f"{number:.0f}"


def times_text(log10: float) -> str:
    """Say how many times as large, in two digits or as a power of ten."""
    return two_digits(10**log10) if log10 < 2 else f"10^{log10:.0f}"


def _shares_text(share: float, model_share: float, frame: Frame) -> str:
    return f"{two_digits(100 * share)} % of the {frame} rows, {two_digits(100 * model_share)} % of what the model makes"


def compare(
    table: Mapping[Frame, Side], drawn: Mapping[Frame, Side], model: Model
) -> tuple[list[GeneFit], list[LengthFit]]:
    """Compare all V and J genes of the table and of the draws; also return the lengths that fail."""
    twins = () if model.ties else twin_genes(model.v)
    frame: Frame = "out-of-frame" if len(table["out-of-frame"]) >= FEWEST_OUT_OF_FRAME else "productive"
    fits: list[GeneFit] = []
    for segment in ("V", "J"):
        shares = {of: (_shares(table[of], segment), _shares(drawn[of], segment)) for of in table}
        habits = _habits(*shares["productive"], twins) if segment == "V" else {}
        for fit in _improbable(segment, table["productive"], drawn["productive"], model):
            # Twins are selected alike, so their productive rows can be compared, and there are more of these.
            of: Frame = "productive" if fit.gene in habits else frame
            (number, share), (_, of_model) = (side.get(fit.gene, (0, 0.0)) for side in shares[of])
            (most, _), (_, most_of_model) = (_with_any_of(fit.gene, side) for side in shares[of])
            if "," in fit.gene:
                of_model = 0.0
            finding, others = fit.finding, tuple[str, ...]()
            if not fit.rows and any(fit.gene in twins_of for twins_of in habits.values()):
                continue  # another gene is called in its place
            if finding is None and fit.gene in habits:
                finding, others = "habit", habits[fit.gene]
            elif finding is None and _differs((number, most), len(table[of]), (of_model, most_of_model), MARGIN[of]):
                finding = "usage"
            of_model = most_of_model if "," in fit.gene else of_model
            fits.append(replace(fit, share=share, model_share=of_model, frame=of, finding=finding, twins=others))
    return fits, _lengths(table[frame], drawn[frame], frame)


def _improbable(segment: SegmentType, table: Side, drawn: Side, model: Model) -> list[GeneFit]:
    """Judge the probabilities of productive rows of each gene of table or model; the shares stay empty."""
    truncated = truncated_genes(model, segment)
    drawn_of = drawn.rows_by_gene(segment)
    rows_of = dict.fromkeys(drawn_of, np.empty(0, dtype=np.int64)) | table.rows_by_gene(segment)
    # Probabilities given the gene can be compared between common and rare genes.
    logs, log_drawn = (side.log10_given(segment, model) for side in (table, drawn))
    pooled = _typical(log_drawn)
    typical = {name: _typical(log_drawn[rows]) for name, rows in drawn_of.items() if len(rows) >= FEWEST_DRAWN}
    shifts = {name: logs[rows][logs[rows] > -np.inf] - typical.get(name, pooled)[1] for name, rows in rows_of.items()}
    all_shifts = np.concatenate([*shifts.values(), np.zeros(0)])
    common = float(np.median(all_shifts)) if len(all_shifts) else 0.0
    fits = []
    for name, rows in rows_of.items():
        improbable = int((logs[rows] < typical.get(name, pooled)[0]).sum())
        shift = float(np.median(shifts[name])) if len(shifts[name]) else None
        zero = (len(rows) - len(shifts[name])) / max(len(rows), 1)
        fit = GeneFit(segment, name, len(rows), zero, improbable / max(len(rows), 1), shift, 0.0, 0.0, "productive")
        finding: Finding | None = None
        if len(rows) >= FEWEST_ROWS:
            less = common - shift - 3 * _error(shifts[name]) if shift is not None else 0.0
            if zero == 1 and name not in drawn_of:
                finding = "unmade"
            elif at_least(improbable, len(rows)) >= BROKEN or less >= BROKEN_SHIFT:
                finding = "broken"
            elif at_least(improbable, len(rows)) >= MISFIT or less >= MISFIT_SHIFT:
                finding = "improbable"
        fits.append(replace(fit, finding="truncated" if len(rows) and truncated & {*name.split(",")} else finding))
    return fits


def truncated_genes(model: Model, segment: SegmentType) -> set[str]:
    """Find the genes whose deletions the model does not know, as their sequence is truncated or was hardly ever seen.

    Most chosen alleles of such a gene end at the conserved codon, or always lose the same number of bases.  Real
    junctions have other ends, so their probabilities are far too small.
    """
    deletions = model.v_deletions if segment == "V" else model.j_deletions
    chance, chosen, cut = model.p_segment(segment), dict[str, float](), dict[str, float]()
    for allele in model.contributing(segment):
        template = model.templates(segment)[allele]
        gene = template.allele.partition("*")[0]
        is_cut = len(template.segment) <= 3 or deletions[allele].max() > ALWAYS
        chosen[gene] = chosen.get(gene, 0.0) + chance[allele]
        cut[gene] = cut.get(gene, 0.0) + chance[allele] * is_cut
    return {gene for gene in chosen if cut[gene] > chosen[gene] / 2}


def _error(values: Floats) -> float:
    """Return the standard error of the median of normal values."""
    return float(1.2533 * values.std() / np.sqrt(len(values)))


def _typical(log_p: Floats) -> tuple[float, float]:
    """Return the value of the draws below which a junction is improbable, and their median."""
    if not len(log_p):
        return -np.inf, 0.0
    low, median = np.quantile(log_p, [TAIL, 0.5]).tolist()
    return low, median


def _shares(side: Side, segment: SegmentType) -> dict[str, tuple[int, float]]:
    """Return the number and the share of the junctions of each gene."""
    return {name: (len(rows), len(rows) / max(len(side), 1)) for name, rows in side.rows_by_gene(segment).items()}


def _with_any_of(name: str, shares: Mapping[str, tuple[int, float]]) -> tuple[int, float]:
    """Return the number and the share of the junctions whose calls name any of the genes of a call."""
    genes = {*name.split(",")}
    of = [own for other, own in shares.items() if not genes.isdisjoint(other.split(","))]
    return sum(number for number, _ in of), sum(share for _, share in of)


def at_least(successes: int, trials: int) -> float:
    """Return the lower end of Wilson's interval of a share, with three standard errors."""
    share = successes / trials
    middle = share + _Z**2 / (2 * trials)
    half = _Z * np.sqrt(share * (1 - share) / trials + (_Z / (2 * trials)) ** 2)
    return max(0.0, float((middle - half) / (1 + _Z**2 / trials)))


def _differs(number: tuple[int, int], rows: int, of_model: tuple[float, float], margin: float) -> bool:
    """Return whether a share is significantly more than `margin` times as large or as small as the model's.

    number, of_model  the least and the most that they may be, as calls of several genes leave open which one it was
    """
    if not rows or max(number[1] / rows, of_model[0]) < COMMON:
        return False
    more = at_least(number[0], rows) > margin * of_model[1]
    return more or 1 - at_least(rows - number[1], rows) < of_model[0] / margin


def _habits(
    shares: Mapping[str, tuple[int, float]], of_model: Mapping[str, tuple[int, float]], twins: Sequence[tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Find the genes that are much more common among their twins than in the model; return the twins of each."""
    habits = {}
    for group in twins:
        total = sum(shares.get(gene, (0, 0.0))[0] for gene in group)
        total_share = sum(of_model.get(gene, (0, 0.0))[1] for gene in group)
        for gene in group if total >= FEWEST_ROWS and total_share > 0 else ():
            low, share = at_least(shares.get(gene, (0, 0.0))[0], total), of_model.get(gene, (0, 0.0))[1] / total_share
            if low * (1 - share) > HABIT * share * (1 - low):
                habits[gene] = tuple(other for other in group if other != gene)
    return habits


def _lengths(table: Side, drawn: Side, frame: Frame) -> list[LengthFit]:
    """Find the lengths that fail, ascending."""
    if not len(table) or not len(drawn):
        return []
    numbers, of_model = (np.bincount(side.repertoire.lengths, minlength=256).tolist() for side in (table, drawn))
    misfits = []
    for length, (number, number_drawn) in enumerate(zip(numbers, of_model, strict=True)):
        share = number_drawn / len(drawn)
        if _differs((number, number), len(table), (share, share), LENGTH_MARGIN[frame]):
            misfits.append(LengthFit(length, number, number / len(table), share, frame))
    return misfits
