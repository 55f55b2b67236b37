"""The options of inference: which rows take part, where it starts and when it ends."""

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from hpcvdj.errors import OptionError
from hpcvdj.options import Settings, setting
from hpcvdj.recombination.calls import Genes

Rows = Literal["out-of-frame", "nonproductive", "all"]
"""Which rows take part: those whose length is no multiple of three; these and other unproductive rows; or all rows."""

Start = Literal["model", "uniform", "mixed"]
"""The model itself, the model in which everything is equally likely, or 95 % of the one and 5 % of the other."""

MOST_ROWS = 1_000_000
"""The default number of rows: it gives the probability of an allele of one row in 10,000 with an error of 10 %."""

MOST_JUNCTIONS = 300_000
"""The default number of real junctions: more change little, and take longer."""

FEWEST_JUNCTIONS = 1_000
"""The smallest number of real junctions that a factor is inferred from."""

Parameters = Sequence[str]


class RowChoice(Settings, kw_only=True):
    """Which rows take part."""

    rows: Rows = setting("rows to infer from: `out-of-frame`, `nonproductive` (these and those in frame that are not "
                         "productive), or `all`", "out-of-frame")  # fmt: skip
    duplicates: bool = setting("count a junction that several rows of a repertoire have for each of them, not once",
                               False, more=True)  # fmt: skip
    likely_errors: bool = setting(
        "keep rows that are likely sequencing errors: one base inserted into or deleted from a row in frame with the "
        "same V and J and more reads (duplicate_count), or one base exchanged in any row with 20 times as many, two in "
        "one with 400 times, or three in one with 8,000 times", False,
        shell="keep likely sequencing errors, as docs/infer.md defines them", more=True)  # fmt: skip
    max_rows: int = setting("take at most this many of these rows, drawn at random", MOST_ROWS, least=1, more=True)


class InferenceSettings(Settings, kw_only=True):
    """How a model is inferred.

    rows  which rows take part
    """

    rows: RowChoice = field(default_factory=RowChoice)
    genes: Genes = setting("`call`: V and J are those that a row's calls name, one or several; `any`: they are not "
                           "known", "call")  # fmt: skip
    start: Start | None = setting("where to start: at the `model`, where everything is equally likely (`uniform`), or "
                                  "at 95 % of the one and 5 % of the other (`mixed`)", None,
                                  unset="mixed with a model, uniform with a germline table", more=True)  # fmt: skip
    only: Parameters = setting("infer only these parameters, by name", (),
                               shell="infer only this parameter, which docs/infer.md lists; may be repeated",
                               metavar="PARAMETER", unset="all", several=True, more=True)  # fmt: skip
    fix: Parameters = setting("leave these parameters as they are at the start", (),
                              shell="leave this parameter as it is at the start; may be repeated", metavar="PARAMETER",
                              several=True, more=True)  # fmt: skip
    prior: float = setting("rows to count in addition for each functional V and J allele", 0.0, least=0, more=True)
    iterations: int = setting("evaluations of the likelihood at most", 60, least=1, more=True)
    tolerance: float = setting("stop when an iteration gains fewer nats per row", 1e-5, least=0, more=True)
    hold_out: float = setting("share of the rows to set aside: the result is the model that makes them most likely; 0: "
                              "none", 0.1, metavar="SHARE", least=0, below=1, more=True)  # fmt: skip
    bootstrap: int = setting("standard errors, from so many draws of the rows; each search starts from the result", 0,
                             least=0, more=True)  # fmt: skip
    seed: int = setting("seed of what is drawn: the rows that are held out, and bootstrap draws", 0, least=0)
    errors: bool = setting("infer the rate of sequencing errors as well: the probability that a base of V, D or J is "
                           "misread; many times slower", False, more=True)  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bootstrap == 1:
            raise OptionError.of("bootstrap", 1, "give 2 or more, as one draw has no standard deviation, or 0")


class SelectionSettings(Settings, kw_only=True):
    """How a selection factor is inferred."""

    max_junctions: int = setting("take at most this many of the distinct real junctions, drawn at random",
                                 MOST_JUNCTIONS, least=FEWEST_JUNCTIONS)  # fmt: skip
    seed: int = setting("seed of what is drawn", 0, least=0, most=(1 << 63) - 1)
