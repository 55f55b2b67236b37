"""The options of in silico junctions."""

from dataclasses import KW_ONLY

from hpcvdj.errors import OptionError
from hpcvdj.options import Settings, setting

MOST_JUNCTIONS = 10**10
"""The largest number of junctions to draw, 1 TB of text.  A larger number is a typing error."""

MOST_SIMULATED = 10**9
"""The largest number of junctions to simulate: they are kept in memory, which takes 150 GB."""

PAPER_SEQUENCES = 101_822
"""The number of in vivo sequences of the paper's mouse data set."""

PAPER_LARGEST_PAIR = 3_249
"""The number of in vivo sequences of its largest V–J pair (section VI)."""

_SEED = "the same seed gives the same junctions"


class GenerationSettings(Settings):
    """What to draw."""

    number: int = setting("junctions to draw, or productive ones, if only these are asked for", 100_000,
                          flags="--number -n", metavar="N", least=1, most=MOST_JUNCTIONS)  # fmt: skip
    _: KW_ONLY
    seed: int = setting(_SEED, 0, least=0, most=(1 << 64) - 1)
    productive: bool = setting("only productive junctions: in frame, without a stop codon, from Cys 104 to Phe, Trp or "
                               "Val 118; they keep the numbers that they were drawn with", False)  # fmt: skip
    scenarios: bool = setting("add the columns of the scenario that made each junction: trims, P- and n-nucleotides",
                              False)  # fmt: skip
    selection: bool = setting("only productive junctions, in proportion to the model's selection factor (hpcvdj "
                              "infer-selection)", False)  # fmt: skip


def range_of(text: str) -> range:
    """Parse `0-10`, or one number, as a range that includes the last number; raises ValueError for other texts."""
    first, _, last = text.partition("-")
    numbers = range(int(first), int(last or first) + 1)
    if not numbers or not first.isdigit():
        raise ValueError(text)
    return numbers


class SimulationSettings(Settings):
    """What to simulate: junctions that are distinct within each V–J pair."""

    number: int = setting("junctions to make", PAPER_SEQUENCES, flags="--number -n", metavar="N", least=1,
                          most=MOST_SIMULATED)  # fmt: skip
    seed: int = setting(_SEED, 0, least=0)
    n_lengths: range = setting(
        "the n-lengths to draw from, as in range(11)", range(11), shell="n-lengths to draw from", metavar="A-B",
        parse=range_of, remedy="give a range such as 0-10, or one number")  # fmt: skip
    productive: bool = setting("only junctions in frame without a stop codon", False)
    orf: bool = setting("use V and J genes that IMGT calls ORF beside the functional ones", False, more=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.n_lengths, range) and len(self.n_lengths) and min(self.n_lengths) >= 0):
            raise OptionError.of("n_lengths", self.n_lengths, "give a range of n-lengths, such as range(11)")
