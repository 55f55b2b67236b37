"""The settings of the studies of motifs."""

from typing import Annotated

from hpcvdj.errors import choices
from hpcvdj.kernels.backends import AUTO, BackendName
from hpcvdj.kernels.kmers.methods import KmerMethod
from hpcvdj.motifs.settings import D
from hpcvdj.options import Option, Settings, setting

PARTS = ("construction", "settings", "speedup", "lengths")
"""The parts of the study, for figure 5, figures 6 and 7, figure 8, and figure 9 of the thesis."""

TABLES = "tables"
"""The name of the thesis's system beside the methods of `hpcvdj motifs compare`."""

Several = tuple[int, ...]

CONSTRUCTION_BUCKETS: Several = (1, 2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32, 64, 128, 256)

Repeats = Annotated[int, Option("measured repeats of each", least=1)]


def _numbers(text: str) -> tuple[int, ...]:
    """Parse a text such as `32,64`.  Raise ValueError for other texts."""
    numbers = tuple(int(part) for part in text.split(","))
    if not all(1 <= number <= 1024 for number in numbers):
        raise ValueError(text)
    return numbers


def numbers(text: str, flags: str = "", unset: str = "") -> Option:
    """Make an option that has several numbers."""
    remedy = "give numbers from 1 to 1024, such as 32,64,128"
    return Option(text, flags=flags, unset=unset, metavar="N,N,...", parse=_numbers, remedy=remedy)


class TablesPlan(Settings):
    """What to measure of the thesis's hash tables."""

    parts: tuple[str, ...] = setting(
        "parts to measure: construction (figure 5), settings (6, 7), speedup (8), lengths (9)", PARTS,
        parse=lambda text: tuple(name.strip() for name in text.split(",")))  # fmt: skip
    k: Annotated[Several, numbers("k-mer lengths of construction and speedup", flags="-k")] = (8, 12, 16, 20)
    settings_k: int = setting("k of settings and lengths", 12, least=4)
    d: D = 2
    buckets: Annotated[Several, numbers("buckets of construction")] = CONSTRUCTION_BUCKETS
    cpu_number: int = setting("sequences that CPU cores compare", 256, least=2)
    repeats: Repeats = 3
    backend: BackendName = AUTO


class MethodsPlan(Settings):
    """Which methods of comparing motifs to measure."""

    k: Annotated[Several, numbers("k-mer lengths", flags="-k")] = (8, 12, 16, 20)
    d: D = 2
    methods: str = setting("methods; NAME:N measures a method on the first N sequences only",
                           ",".join(
        (*choices(KmerMethod), f"{TABLES}:256")
    ))  # fmt: skip
    repeats: Repeats = 3
    backend: BackendName = AUTO

    @property
    def limits(self) -> dict[str, int | None]:
        """The largest number of sequences of each method by name; None for all sequences."""
        named = (part.strip().partition(":") for part in self.methods.split(","))
        return {name: int(limit) if limit.isdigit() else None for name, _, limit in named}
