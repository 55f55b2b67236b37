"""In vivo sequences of each V–J pair, the paper's Figure 2: how uneven a partition over pairs would be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hpcvdj.plotting import pyplot
from hpcvdj.repertoires.junctions import Repertoire
from hpcvdj.studies.measuring import commands, read


@dataclass(frozen=True)
class PairRow:
    """A V–J pair and its in vivo sequences."""

    v_call: str
    j_call: str
    sequences: int


def pair_rows(repertoire: Repertoire) -> list[PairRow]:
    """Every V–J pair of a repertoire in the order of the germline table."""
    sizes = (repertoire.offsets[1:] - repertoire.offsets[:-1]).tolist()
    return [PairRow(v.allele, j.allele, size) for (v, j), size in zip(repertoire.pairs, sizes, strict=True)]


def render(folder: Path) -> str:
    """Make README.md and pairs.png from the raw rows; returns the Markdown."""
    rows, facts = read(folder, PairRow)
    ranked = sorted(rows, key=lambda row: -row.sequences)
    total = sum(row.sequences for row in rows)
    mean = total / len(rows)
    largest = ranked[0]
    top = sum(row.sequences for row in ranked[: max(1, len(rows) // 10)])
    text = "\n\n".join(
        [
            "# In vivo sequences per V-J pair\n\nMade from the raw rows by `hpcvdj study render`.",
            f"{total:,} sequences in {len(rows)} pairs: {mean:.1f} on average, {largest.sequences:,} in the largest\n"
            f"({largest.v_call}, {largest.j_call}), {ranked[-1].sequences:,} in the smallest; the largest tenth of\n"
            f"the pairs holds {100 * top / total:.1f} % of the sequences. A pair to a processor would thus keep the\n"
            f"slowest {largest.sequences / mean:.1f} times as long as the mean (the paper, section IV); hpcvdj shares\n"
            "out n-nucleotide strings or sequences instead.",
            "![sequences of each pair, relative to the largest](pairs.png)",
            commands(facts),
        ]
    )
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    axes.bar(range(1, len(ranked) + 1), [row.sequences / largest.sequences for row in ranked], width=1.0)
    axes.set(xlabel="V-J pair, by size", ylabel="sequences / largest pair", xlim=(0.5, len(ranked) + 0.5))
    figure.savefig(folder / "pairs.png", dpi=130)
    (folder / "README.md").write_text(text + "\n")
    return text
