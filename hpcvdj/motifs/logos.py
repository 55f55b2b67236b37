"""Sequence logos of clusters, by logomaker (Tareen and Kinney, Logomaker, Bioinformatics 36 (2020) 2272).

A logo shows the information of each position, in bits (Schneider and Stephens, Nucleic Acids Res 18 (1990) 6097),
without a correction for small samples.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.motifs.clusters import most_frequent_length
from hpcvdj.recombination.alphabet import BASES, translate
from hpcvdj.recombination.selection import RESIDUES
from hpcvdj.storage.plots import optional

Letters = Literal["amino-acids", "nucleotides"]

MOST_LOGOS = 12
"""The largest number of logos of a figure."""

LONGEST = 100
"""The largest number of letters of a logo."""

_COLOURS = {
    **dict.fromkeys("AVLIPMFW", "#333333"),
    **dict.fromkeys("GSTCYNQ", "#009E73"),
    **dict.fromkeys("KRH", "#0072B2"),
    **dict.fromkeys("DE", "#D55E00"),
}
_BASE_COLOURS = {"A": "#009E73", "C": "#0072B2", "G": "#E69F00", "T": "#D55E00"}


def require_logomaker() -> Any:
    """Return the module logomaker.  Raise InputError if it is not installed."""
    return optional("logomaker", "logos need", "plots")


def _symbols(letters: Letters) -> str:
    return BASES if letters == "nucleotides" else RESIDUES


def alignment(sequences: Sequence[str], letters: Letters) -> list[str]:
    """Return the sequences of the most frequent length (the longest of equally frequent ones), as amino acids or bases.

    Amino acids need sequences in frame.  Sequences with other letters (N, stop codons) are left out.

    >>> alignment(["TGTGCCTTT", "TGTGCTTTC", "TGTGCCA", "TGTTAATTT"], "amino-acids")
    ['CAF', 'CAF']
    """
    texts = sequences
    if letters == "amino-acids":
        texts = translate(text for text in sequences if set(text) <= set(BASES))
    fitting = [text for text in texts if text and set(text) <= set(_symbols(letters))]
    return most_frequent_length(fitting) if fitting else []


def information(aligned: Sequence[str], letters: Letters) -> Any:
    """Return the bits of each letter at each position, a pandas DataFrame [positions, letters]."""
    logomaker = require_logomaker()
    counts = logomaker.alignment_to_matrix(list(aligned), to_type="counts")
    # logomaker compares the columns in their order.
    counts = counts.reindex(columns=sorted(_symbols(letters)), fill_value=0)
    return logomaker.transform_matrix(counts, from_type="counts", to_type="information", pseudocount=0)


def draw_logos(figure: Any, alignments: dict[str, list[str]], letters: Letters) -> None:
    """Draw the logos of alignments by title, three beside each other."""
    logomaker = require_logomaker()
    across = min(3, len(alignments))
    panels: NDArray[Any] = np.array(figure.subplots(-(-len(alignments) // across), across, squeeze=False)).ravel()
    colours = _BASE_COLOURS if letters == "nucleotides" else _COLOURS
    for axes, (title, aligned) in zip(panels, alignments.items(), strict=False):
        logomaker.Logo(information(aligned, letters), ax=axes, color_scheme=colours, show_spines=False)
        axes.set_title(title, fontsize=8)
        axes.set(ylim=(0, np.log2(len(_symbols(letters)))), xticks=[])
        axes.tick_params(labelsize=6)
        axes.set_ylabel("bits", fontsize=7)
    for axes in panels[len(alignments) :]:
        axes.set_axis_off()
