"""The most direct pathways of a junction as lines: each a way to divide its CDR3, with all pathways that share it.

What the pathways are `hpcvdj.recombination.explanation` says; here they are chosen, ordered and joined for a picture and
its table.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpcvdj.recombination.explanation import Explanation, Pathway

Ends = tuple[int, int]
"""An end of a form: its P-nucleotides, and the bases that its segment lost there."""


@dataclass(frozen=True)
class Share:
    """The pathways of a line that one D gene has; `d_5` and `d_3` are None where several chew-backs give its form."""

    d_gene: str
    d_5: Ends | None
    d_3: Ends | None
    pathways: int


@dataclass(frozen=True)
class Line:
    """A way to divide a CDR3 of `size` nt: V is its first `v` nt, J its last `j`, D lies at [d_start, d_stop)."""

    size: int
    v: int
    v_3: Ends
    d_start: int
    d_stop: int
    j: int
    j_5: Ends
    shares: tuple[Share, ...]

    @property
    def pathways(self) -> int:
        """How many pathways share it."""
        return sum(share.pathways for share in self.shares)


def most_direct_lines(found: Explanation) -> tuple[int, list[Line]] | None:
    """The fewest n-nucleotides that the CDR3 needs, and the lines with so many; None if it has no pathway.

    Lines are in order of the V form's length, then of the J form's, the longest first, then of D genes and D's place.
    """
    m = next((m for m, ways in enumerate(found.counters) if ways), None)
    if m is None:
        return None
    alleles = [segment.allele for segment in found.d]

    def order(pathway: Pathway) -> tuple[int, int, int, int, int]:
        piece = pathway.d
        rest = (alleles.index(piece.segment.allele), piece.start, pathway.d_at or 0) if piece else (0, 0, 0)
        return -pathway.v_length, -pathway.j_length, *rest

    lines: dict[tuple[int, int, int, int], dict[str, list[Pathway]]] = {}
    for pathway in sorted(found.with_n(m), key=order):
        piece = pathway.d
        size = piece.stop - piece.start if piece else 0
        for at in _places(pathway):
            line = lines.setdefault((pathway.v_length, at, at + size, pathway.j_length), {})
            line.setdefault(piece.segment.allele if piece else "", []).append(pathway)
    return m, [_line(found, *division, list(genes.values())) for division, genes in lines.items()]


def _places(pathway: Pathway) -> range:
    """Where D may stand: a form without bases at any cut of the n-nucleotides, behind them all where there is no D."""
    last = pathway.v_length + pathway.n_length
    if pathway.d is None:
        return range(last, last + 1)
    return range(pathway.v_length, last + 1) if pathway.d_at is None else range(pathway.d_at, pathway.d_at + 1)


def _line(found: Explanation, v: int, d_start: int, d_stop: int, j: int, genes: list[list[Pathway]]) -> Line:
    v_3, j_5 = _ends(v, len(found.v.sequence)), _ends(j, len(found.j.sequence))
    return Line(len(found.cdr3), v, v_3, d_start, d_stop, j, j_5, tuple(_share(pathways) for pathways in genes))


def _ends(length: int, segment: int) -> Ends:
    return max(0, length - segment), max(0, segment - length)


def _share(pathways: list[Pathway]) -> Share:
    ways = sum(pathway.multiplicity // len(_places(pathway)) for pathway in pathways)
    piece = pathways[0].d
    if piece is None or piece.empty or len(pathways) > 1 or piece.chew_backs > 1:
        return Share(piece.segment.gene if piece else "", None, None, ways)
    return Share(piece.segment.gene, (piece.p5d, piece.trim_5), (piece.p3d, piece.trim_3), ways)
