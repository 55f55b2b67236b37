"""What to count and how."""

from dataclasses import dataclass
from typing import Literal

from hpcvdj.errors import choice, require_integer
from hpcvdj.kernels.backends import AUTO
from hpcvdj.kernels.pathways.methods import THREADS_PER_BLOCK, Direct, Method
from hpcvdj.recombination.germline import PaperDForms

DEFAULT_MAX_N = 10
"""The paper's largest n-length, which regenerates 99.5 % of its in vivo set (section II-A)."""


@dataclass(frozen=True)
class Config:
    """How to count.

    max_n              the largest n-length, or `all`: up to the longest CDR3's length
    method             the name of a `Method`
    backend            the name of a `Backend`, or `auto`
    d_forms            the name of a `DFormConvention`
    threads_per_block  tasks in a block; ranks share work in whole blocks
    strict_binding     two ranks on one GPU are an error, not a warning
    """

    max_n: int | Literal["all"] = DEFAULT_MAX_N
    method: str = Direct.name
    backend: str = AUTO
    d_forms: str = PaperDForms.name
    threads_per_block: int = THREADS_PER_BLOCK
    strict_binding: bool = False

    def method_class(self) -> Method:
        """The method; InputError if there is none of that name."""
        return choice(Method, self.method, "method")

    def resolve_max_n(self, longest: int) -> int:
        """The largest n-length as a number, `longest` nt being the longest CDR3; InputError if the method cannot."""
        max_n = longest if self.max_n == "all" else require_integer("max_n", self.max_n, "give a number, or all")
        self.method_class().require(max_n)
        return max_n
