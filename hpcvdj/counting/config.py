"""How pathways are counted."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from hpcvdj.errors import InputError, choice, choices, option
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.kernels.method import THREADS_PER_BLOCK
from hpcvdj.kernels.pathways.methods import Direct, PathwayMethod
from hpcvdj.options import Option, Settings
from hpcvdj.recombination.germline import Germline, PaperDForms
from hpcvdj.recombination.repertoire import LONGEST_CDR3, Problem, Repertoire
from hpcvdj.repertoires.settings import DForms
from hpcvdj.values.plan import Plan

if TYPE_CHECKING:
    # Slow to import, and the help needs the defaults of this module.
    from hpcvdj.repertoires.reading import Reading

DEFAULT_MAX_N = 10
"""The paper's largest n-length, which regenerates 99.5 % of its in vivo set (section II-A)."""

MaxN = Annotated[
    int | Literal["all"],
    Option("the largest number of n-nucleotides; `all` goes up to the longest CDR3's length", metavar="N|all", least=0,
           most=LONGEST_CDR3),
]  # fmt: skip
MethodName = Annotated[
    str,
    Option("`direct`; `bitwise` and `baseline` enumerate as the paper does and return the same counters",
           choices=lambda: choices(PathwayMethod), more=True),
]  # fmt: skip
ThreadsPerBlock = Annotated[
    int,
    Option("tasks per block; each rank gets whole blocks (the paper's equation 2). Changes only the speed of bitwise "
           "and baseline on a GPU", least=1, most=1024, more=True, python=False),
]  # fmt: skip


class Config(Settings, Plan, kw_only=True):
    """How pathways are counted."""

    identity: ClassVar[tuple[str, ...]] = (
        "germline_sha256", "max_p", "d_alleles", "method", "max_n", "d_forms", "calls",
    )  # fmt: skip

    max_n: MaxN = DEFAULT_MAX_N
    method: MethodName = Direct.name
    backend: BackendName = AUTO
    d_forms: DForms = PaperDForms.name
    threads_per_block: ThreadsPerBlock = THREADS_PER_BLOCK
    strict_binding: StrictBinding = False

    def method_class(self) -> PathwayMethod:
        return choice(PathwayMethod, self.method, "method")

    def resolve_max_n(self, longest: int) -> int:
        """Return the largest n-length if `longest` nt is the longest CDR3; raises InputError if the method cannot."""
        max_n = longest if self.max_n == "all" else int(self.max_n)
        self.method_class().require(max_n)
        return max_n

    def reads(self, reading: "Reading") -> "Reading":
        """Read sequences up to the longest CDR3 of the method."""
        return replace(reading, longest=self.method_class().longest_cdr3)

    def settled(self, longest: int) -> "Config":
        return replace(self, max_n=self.resolve_max_n(longest))

    def require_sliceable(self) -> None:
        """Raise InputError for enumerations, and for a largest n-length that depends on all rows."""
        method = self.method_class()
        if not method.disjoint:
            raise InputError(
                f"{option('batch_rows')} needs {option('method', 'direct')}; {method.name} counts a repertoire as a "
                "whole"
            )
        if not isinstance(self.max_n, int):
            raise InputError(
                f"{option('max_n', 'all')} needs the longest sequence before counting begins; with slices give a "
                f"number, or count all rows at once with {option('batch_rows', 0)}"
            )
        method.require(self.max_n)

    def problem(self, repertoire: Repertoire, reference: Germline) -> Problem:
        return Problem(repertoire, reference, int(self.max_n), self.d_forms)
