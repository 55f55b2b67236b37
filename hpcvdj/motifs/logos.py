"""Sequence logos of clusters, by logomaker (Tareen and Kinney, Logomaker, Bioinformatics 36 (2020) 2272).

A logo shows the information of each position, in bits (Schneider and Stephens, Nucleic Acids Res 18 (1990) 6097),
without a correction for small samples.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.motifs.clusters import most_frequent_length
from hpcvdj.recombination.alphabet import BASES, translate

Letters = Literal["amino-acids", "nucleotides"]

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"

MOST_LOGOS = 12
"""Logos of a figure."""

LONGEST = 100
"""Letters of a logo."""

_COLOURS = {
    **dict.fromkeys("AVLIPMFW", "#333333"),
    **dict.fromkeys("GSTCYNQ", "#009E73"),
    **dict.fromkeys("KRH", "#0072B2"),
    **dict.fromkeys("DE", "#D55E00"),
}
_BASE_COLOURS = {"A": "#009E73", "C": "#0072B2", "G": "#E69F00", "T": "#D55E00"}


def require_logomaker() -> Any:
    """The module logomaker; InputError without it."""
    try:
        import logomaker
    except ImportError:
        raise InputError("logos need logomaker: install hpcvdj[plots]") from None
    return logomaker


def alignment(sequences: Sequence[str], letters: Letters) -> list[str]:
    """Those of the sequences that have the most frequent length (of equal ones the longest), as amino acids or bases.

    Amino acids are those of sequences in frame.  Sequences with other letters (N, stop codons) are left out.

    >>> alignment(["TGTGCCTTT", "TGTGCTTTC", "TGTGCCA", "TGTTAATTT"], "amino-acids")
    ['CAF', 'CAF']
    """
    known = set(BASES if letters == "nucleotides" else RESIDUES)
    texts = sequences
    if letters == "amino-acids":
        texts = translate(text for text in sequences if set(text) <= set(BASES))
    fitting = [text for text in texts if text and set(text) <= known]
    return most_frequent_length(fitting) if fitting else []


def information(aligned: Sequence[str], letters: Letters) -> Any:
    """Bits of each letter at each position, a pandas DataFrame [positions, letters]."""
    logomaker = require_logomaker()
    columns = list(BASES if letters == "nucleotides" else RESIDUES)
    counts = logomaker.alignment_to_matrix(list(aligned), to_type="counts").reindex(columns=columns, fill_value=0)
    # Sorted, as the letters of BASES are not; logomaker compares the columns in their order.
    return logomaker.transform_matrix(counts[sorted(columns)], from_type="counts", to_type="information", pseudocount=0)


def draw_logos(figure: Any, alignments: dict[str, list[str]], letters: Letters) -> None:
    """Draw the logos of alignments, which have titles, three beside each other."""
    logomaker = require_logomaker()
    across = min(3, len(alignments))
    panels: NDArray[Any] = np.array(figure.subplots(-(-len(alignments) // across), across, squeeze=False)).ravel()
    colours = _BASE_COLOURS if letters == "nucleotides" else _COLOURS
    for axes, (title, aligned) in zip(panels, alignments.items(), strict=False):
        logomaker.Logo(information(aligned, letters), ax=axes, color_scheme=colours, show_spines=False)
        axes.set_title(title, fontsize=8)
        axes.set(ylim=(0, np.log2(len(BASES if letters == "nucleotides" else RESIDUES))), xticks=[])
        axes.tick_params(labelsize=6)
        axes.set_ylabel("bits", fontsize=7)
    for axes in panels[len(alignments) :]:
        axes.set_axis_off()
