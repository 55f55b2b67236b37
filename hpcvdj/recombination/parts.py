"""The origin of each base of a sequence, in one of the ways in which recombination makes the sequence.

An extended segment has a letter for each base: V, D and J for bases of the gene, `v`, 5, 3 and `j` for P-nucleotides,
where 5 and 3 mean the two ends of D.
"""

from typing import Any, NamedTuple


def letters(kind: str, bases: int, p5: int = 0, p3: int = 0) -> str:
    """Return the letters of an extended V, D or J with `bases` bases, and `p5` and `p3` P-nucleotides at its ends."""
    at_5, at_3 = ("5", "3") if kind == "D" else (kind.lower(), kind.lower())
    return at_5 * p5 + kind * bases + at_3 * p3


class Parts(NamedTuple):
    """V, D and J in a sequence; all other bases are n-nucleotides.

    v, d, j  the letters of the extended segments; `d` is empty if there is no D
    v_kept   number of bases of V, at the beginning
    j_kept   number of bases of J, at the end
    d_kept   which bases of D are kept
    d_at     the position of the first of them; None if there is no D, or if the position is not determined
    """

    sequence: str
    v: str
    v_kept: int
    j: str
    j_kept: int
    d: str = ""
    d_kept: slice = slice(0)
    d_at: int | None = None

    def track(self) -> str:
        """Return one letter for each base: V, D, J, or `v`, `d`, `j` for P-nucleotides, or `n`."""
        track = self.v[: self.v_kept]
        if self.d_at is not None:
            track = track.ljust(self.d_at, "n") + self.d[self.d_kept].translate(str.maketrans("53", "dd"))
        return track.ljust(len(self.sequence) - self.j_kept, "n") + self.j[len(self.j) - self.j_kept :]

    def describe(self) -> dict[str, Any]:
        """Return the parts as facts by name: the names of AIRR's Rearrangement schema if it has them, else plain names.

        Chewed bases are those of the extended segment, trimmed bases those of the gene.  Facts that are not determined
        are absent.
        """
        j_lost = len(self.j) - self.j_kept
        p3v, p5j = self.v[: self.v_kept].count("v"), self.j[j_lost:].count("j")
        facts = {"v_trim": self.v[self.v_kept :].count("V"), "p3v_length": p3v}
        facts |= {"p5j_length": p5j, "j_trim": self.j[:j_lost].count("J")}
        if self.d_at is None:
            return facts | self._inserted(1, self.v_kept, len(self.sequence) - self.j_kept, p3v, p5j)
        lost_5, kept, lost_3 = self.d[: self.d_kept.start], self.d[self.d_kept], self.d[self.d_kept.stop :]
        p5d, p3d, stop = kept.count("5"), kept.count("3"), self.d_at + len(kept)
        return {
            **facts, "d_form": self.sequence[self.d_at : stop], "p5d_length": p5d, "p3d_length": p3d,
            "d_chew_5": len(lost_5), "d_chew_3": len(lost_3),
            "d_trim_5": lost_5.count("D"), "d_trim_3": lost_3.count("D"),
            **self._inserted(1, self.v_kept, self.d_at, p3v, p5d),
            **self._inserted(2, stop, len(self.sequence) - self.j_kept, p3d, p5j),
        }  # fmt: skip

    def _inserted(self, number: int, start: int, stop: int, p_before: int, p_after: int) -> dict[str, Any]:
        """Return the facts of an insertion, without and with the P-nucleotides beside it."""
        n, np = self.sequence[start:stop], self.sequence[start - p_before : stop + p_after]
        return {f"n{number}": n, f"n{number}_length": len(n), f"np{number}": np, f"np{number}_length": len(np)}
