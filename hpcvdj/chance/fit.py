"""Whether a model fits a table, gene by gene: usage, lengths, and junctions that the model finds too improbable.

Rows of the table are compared with junctions that the model makes.  Selection has not seen rows that are out of frame,
so their shares are compared with a narrow margin if there are enough of them, those of productive rows with a wide one.
A productive row is **improbable** if its probability is below that of 99 % of the productive junctions that the model
makes with its gene: one row in a hundred by chance, and fewer after selection, which favours probable junctions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hpcvdj.chance.depth import Counts, Floats
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Model, twin_genes
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import kinds_of

FEWEST_ROWS = 30
"""Rows of a gene, or of a length, that are judged."""

FEWEST_DRAWN = 300
"""Draws of a gene that tell what is improbable for it; with fewer, the draws of all genes do."""

TAIL = 0.01
"""The share of the draws that are improbable."""

MISFIT, BROKEN = 0.1, 0.5
"""The shares of improbable rows from which on a gene fails, and from which on tests leave it out.  Of 43 V genes of the
CD8 T cells of one donor under OLGA's model, the largest share is 0.096; of mouse TRBV31, which is reverse-complemented
in OLGA's files, it is 0.78."""

MISFIT_SHIFT, BROKEN_SHIFT = 2.0, 4.0
"""By how many decades the probabilities of a gene's rows are smaller than the draws', in the median and compared with
those of all genes, from which on it fails, and from which on tests leave it out.  In that donor, the largest is 1.1;
that of the reversed TRBV31 is eight."""

ALWAYS = 0.95
"""The probability of one number of deleted bases from which on an allele's deletions are not known.  Of OLGA's alleles
that are chosen more often than once in a thousand, only those of mouse TRAJ24, whose sequence is truncated, and human
IGLJ5 and IGKJ0-ABRI and two others of mouse IGK, have a larger one."""

FEWEST_OUT_OF_FRAME = 1_000
"""Rows out of frame from which on shares are compared among them."""

MARGIN = {"out-of-frame": 4.0, "productive": 12.0}
"""How many times as common, or as rare, as the model makes it a gene may be among rows of a frame."""

LENGTH_MARGIN = {"out-of-frame": 10.0, "productive": 60.0}
"""The same of lengths: selection removes long junctions, and makes 22 residues 35 times as rare in that donor."""

COMMON = 0.005
"""A gene or a length that is rarer in the table and in the model is not judged by its share."""

HABIT = 8.0
"""By how much the ratio of a gene to its twins may differ between table and model."""

_Z = 3.0
"""Standard errors that a share must be beyond its bound."""

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
        """log10 of each probability given the V gene, or the J gene; -inf of 0."""
        chance, side = model.p_segment(segment), 0 if segment == "V" else 1
        prior = np.array([chance[list(pair[side].places)].sum() for pair in self.repertoire.pairs])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.p > 0, np.log10(self.p / prior[kinds_of(self.repertoire)]), -np.inf)

    def rows_by_gene(self, segment: SegmentType) -> dict[str, Counts]:
        """The junctions of each gene."""
        of_pair = [pair[0 if segment == "V" else 1].allele for pair in self.repertoire.pairs]
        names = sorted(set(of_pair))
        gene = np.array([names.index(name) for name in of_pair], dtype=np.int64)[kinds_of(self.repertoire)]
        order = np.argsort(gene, kind="stable")
        ends = np.cumsum(np.bincount(gene, minlength=len(names)))
        return dict(zip(names, np.split(order, ends[:-1]), strict=True)) if names else {}


@dataclass(frozen=True)
class GeneFit:
    """How a gene of the table compares with the model.

    rows         productive rows of the table that have it
    zero         share of these that the model cannot make
    improbable   share of these that are improbable, the former among them
    log10_shift  the median of log10 p, given the gene, of those that the model can make, minus that of the draws; None
                 without any
    share        its share of the table's rows of a frame
    model_share  of the model's draws of the frame
    frame        in which shares are compared
    finding      what is wrong; None if nothing is
    twins        genes that reads hardly tell from it
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
        """What is wrong, in words."""
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
        """What is wrong, in words."""
        return f"{self.nucleotides} nt: {_shares_text(self.share, self.model_share, self.frame)}"


def times_text(log10: float) -> str:
    """How many times as large, in two digits or as a power of ten."""
    return f"{10**log10:,.2g}" if log10 < 2 else f"10^{log10:.0f}"


def _shares_text(share: float, model_share: float, frame: Frame) -> str:
    return f"{100 * share:.2g} % of the {frame} rows, {100 * model_share:.2g} % of what the model makes"


def compare(
    table: Mapping[Frame, Side], drawn: Mapping[Frame, Side], model: Model
) -> tuple[list[GeneFit], list[LengthFit]]:
    """All V and J genes of the table, with what is wrong of each, and the lengths that fail."""
    twins = () if model.ties else twin_genes(model.v)
    frame: Frame = "out-of-frame" if len(table["out-of-frame"]) >= FEWEST_OUT_OF_FRAME else "productive"
    fits: list[GeneFit] = []
    for segment in ("V", "J"):
        shares = {of: (_shares(table[of], segment), _shares(drawn[of], segment)) for of in table}
        habits = _habits(*shares["productive"], twins) if segment == "V" else {}
        for fit in _improbable(segment, table["productive"], drawn["productive"], model):
            # Twins are selected alike, so productive rows tell as much, and there are more.
            of: Frame = "productive" if fit.gene in habits else frame
            (number, share), (_, of_model) = (side.get(fit.gene, (0, 0.0)) for side in shares[of])
            finding, others = fit.finding, tuple[str, ...]()
            if finding is None and fit.gene in habits:
                finding, others = "habit", habits[fit.gene]
            elif finding is None and _differs(number, len(table[of]), of_model, MARGIN[of]):
                finding = "usage"
            fits.append(replace(fit, share=share, model_share=of_model, frame=of, finding=finding, twins=others))
    return fits, _lengths(table[frame], drawn[frame], frame)


def _improbable(segment: SegmentType, table: Side, made: Side, model: Model) -> list[GeneFit]:
    """Each gene of productive rows; its shares are left empty."""
    truncated = truncated_genes(model, segment)
    rows_of, drawn_of = table.rows_by_gene(segment), made.rows_by_gene(segment)
    # Given the gene, so that genes can be compared of which one is chosen more often.
    logs, log_drawn = (side.log10_given(segment, model) for side in (table, made))
    pooled = _typical(log_drawn)
    typical = {name: _typical(log_drawn[rows]) for name, rows in drawn_of.items() if len(rows) >= FEWEST_DRAWN}
    shifts = {name: logs[rows][logs[rows] > -np.inf] - typical.get(name, pooled)[1] for name, rows in rows_of.items()}
    common = (
        float(np.median(np.concatenate([*shifts.values(), np.zeros(0)]))) if any(map(len, shifts.values())) else 0.0
    )
    fits = []
    for name, rows in rows_of.items():
        improbable = int((logs[rows] < typical.get(name, pooled)[0]).sum())
        shift = float(np.median(shifts[name])) if len(shifts[name]) else None
        zero = 1 - len(shifts[name]) / len(rows)
        fit = GeneFit(segment, name, len(rows), zero, improbable / len(rows), shift, 0.0, 0.0, "productive")
        finding: Finding | None = None
        if len(rows) >= FEWEST_ROWS:
            less = common - shift - 3 * _error(shifts[name]) if shift is not None else 0.0
            if zero == 1 and name not in drawn_of:
                finding = "unmade"
            elif at_least(improbable, len(rows)) >= BROKEN or less >= BROKEN_SHIFT:
                finding = "broken"
            elif at_least(improbable, len(rows)) >= MISFIT or less >= MISFIT_SHIFT:
                finding = "improbable"
        fits.append(replace(fit, finding="truncated" if truncated & {*name.split(",")} else finding))
    return fits


def truncated_genes(model: Model, segment: SegmentType) -> set[str]:
    """Genes of which the model knows no deletions, as of a sequence that was cut short, or that was seen hardly ever.

    Most of what is chosen of them are alleles that end at the conserved codon, or that always lose as many bases.
    Their junctions keep bases that the sequence lacks, or lose others, so their probabilities are far too small.
    """
    deletions = model.v_deletions if segment == "V" else model.j_deletions
    chance, chosen, cut = model.p_segment(segment), dict[str, float](), dict[str, float]()
    for allele in model.contributing(segment):
        template = model.templates(segment)[allele]
        gene = template.allele.partition("*")[0]
        alike = len(template.segment) <= 3 or deletions[allele].max() > ALWAYS
        chosen[gene] = chosen.get(gene, 0.0) + chance[allele]
        cut[gene] = cut.get(gene, 0.0) + chance[allele] * alike
    return {gene for gene in chosen if cut[gene] > chosen[gene] / 2}


def _error(values: Floats) -> float:
    """The standard error of a median, as of normal values."""
    return float(1.2533 * values.std() / np.sqrt(len(values)))


def _typical(log_p: Floats) -> tuple[float, float]:
    """Of draws: below what a junction is improbable, and the median."""
    if not len(log_p):
        return -np.inf, 0.0
    low, median = np.quantile(log_p, [TAIL, 0.5]).tolist()
    return low, median


def _shares(side: Side, segment: SegmentType) -> dict[str, tuple[int, float]]:
    """How many junctions have each gene, and their share."""
    return {name: (len(rows), len(rows) / max(len(side), 1)) for name, rows in side.rows_by_gene(segment).items()}


def at_least(successes: int, trials: int) -> float:
    """The lower end of a share's interval (Wilson), with three standard errors."""
    share = successes / trials
    middle = share + _Z**2 / (2 * trials)
    half = _Z * np.sqrt(share * (1 - share) / trials + (_Z / (2 * trials)) ** 2)
    return max(0.0, float((middle - half) / (1 + _Z**2 / trials)))


def _differs(number: int, rows: int, of_model: float, margin: float) -> bool:
    """Whether a share of rows is `margin` times as large or as small as the model's, and not by chance."""
    if not rows or max(number / rows, of_model) < COMMON:
        return False
    return at_least(number, rows) > margin * of_model or 1 - at_least(rows - number, rows) < of_model / margin


def _habits(
    shares: Mapping[str, tuple[int, float]], of_model: Mapping[str, tuple[int, float]], twins: Sequence[tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Genes that the table has much more often, against their twins, than the model makes them; and the twins."""
    habits = {}
    for group in twins:
        total = sum(shares.get(gene, (0, 0.0))[0] for gene in group)
        made = sum(of_model.get(gene, (0, 0.0))[1] for gene in group)
        for gene in group if total >= FEWEST_ROWS and made > 0 else ():
            low, share = at_least(shares.get(gene, (0, 0.0))[0], total), of_model.get(gene, (0, 0.0))[1] / made
            if low * (1 - share) > HABIT * share * (1 - low):
                habits[gene] = tuple(other for other in group if other != gene)
    return habits


def _lengths(table: Side, made: Side, frame: Frame) -> list[LengthFit]:
    """The lengths that fail, ascending."""
    if not len(table) or not len(made):
        return []
    of_rows, of_drawn = (side.repertoire.lengths.astype(np.int64) for side in (table, made))
    longest = int(max(of_rows.max(), of_drawn.max()))
    numbers, drawn = (np.bincount(lengths, minlength=longest + 1) for lengths in (of_rows, of_drawn))
    misfits = []
    for length in range(longest + 1):
        number, share = int(numbers[length]), drawn[length] / len(made)
        if _differs(number, len(table), share, LENGTH_MARGIN[frame]):
            misfits.append(LengthFit(length, number, number / len(table), share, frame))
    return misfits
