"""What to count and how."""

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from hpcvdj.errors import InputError, choice, require_choice, require_integer
from hpcvdj.kernels.backends import AUTO
from hpcvdj.kernels.method import THREADS_PER_BLOCK, Method
from hpcvdj.kernels.pathways.methods import Direct, PathwayMethod
from hpcvdj.kernels.pgen.method import ForwardSum, SelectedSum
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.germline import Germline, PaperDForms
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import given_productive
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, SELECTION_COLUMNS, PgenProblem, Problem, Repertoire

if TYPE_CHECKING:
    # Slow to import, and the help needs the defaults of this module.
    from hpcvdj.repertoires.reading import Reading

DEFAULT_MAX_N = 10
"""The paper's largest n-length, which regenerates 99.5 % of its in vivo set (section II-A)."""


class Plan:
    """What a run computes of its junctions, and how; the same run layer serves all plans.

    backend            the name of a `Backend`, or `auto`
    threads_per_block  tasks in a block; ranks share work in whole blocks
    strict_binding     two ranks on one GPU are an error, not a warning
    identity           what two runs must have in common, by the names of the attributes of results
    """

    backend: str
    threads_per_block: int
    strict_binding: bool
    identity: ClassVar[tuple[str, ...]]

    def method_class(self) -> Method:
        """The method; InputError if there is none of that name."""
        raise NotImplementedError

    def reads(self, reading: "Reading") -> "Reading":
        """How junctions are read for it."""
        raise NotImplementedError

    def settled(self, longest: int) -> Self:
        """The plan for junctions of which the longest has `longest` nt; InputError if the method cannot."""
        return self

    def require_sliceable(self) -> None:
        """Raise InputError if slices cannot be computed one by one."""

    def problem(self, repertoire: Repertoire, reference: Any) -> Any:
        """The problem for the kernels, once the plan is settled."""
        raise NotImplementedError

    def recorded(self) -> dict[str, Any]:
        """What results record of it."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True)
class Config(Plan):
    """How to count pathways.

    max_n              the largest n-length, or `all`: up to the longest CDR3's length
    method             the name of a `PathwayMethod`
    backend            the name of a `Backend`, or `auto`
    d_forms            the name of a `DFormConvention`
    threads_per_block  tasks in a block; ranks share work in whole blocks
    strict_binding     two ranks on one GPU are an error, not a warning
    """

    identity: ClassVar[tuple[str, ...]] = (
        "germline_sha256",
        "max_p",
        "d_alleles",
        "method",
        "max_n",
        "d_forms",
        "calls",
    )

    max_n: int | Literal["all"] = DEFAULT_MAX_N
    method: str = Direct.name
    backend: str = AUTO
    d_forms: str = PaperDForms.name
    threads_per_block: int = THREADS_PER_BLOCK
    strict_binding: bool = False

    def method_class(self) -> PathwayMethod:
        """The method; InputError if there is none of that name."""
        return choice(PathwayMethod, self.method, "method")

    def resolve_max_n(self, longest: int) -> int:
        """The largest n-length as a number, `longest` nt being the longest CDR3; InputError if the method cannot."""
        max_n = longest if self.max_n == "all" else require_integer("max_n", self.max_n, "give a number, or all")
        self.method_class().require(max_n)
        return max_n

    def reads(self, reading: "Reading") -> "Reading":
        """Up to the longest CDR3 of the method."""
        return replace(reading, longest=self.method_class().longest_cdr3)

    def settled(self, longest: int) -> "Config":
        """With the largest n-length as a number."""
        return replace(self, max_n=self.resolve_max_n(longest))

    def require_sliceable(self) -> None:
        """Not an enumeration, and not up to a length that is known only once all rows are read."""
        method = self.method_class()
        if not method.disjoint:
            raise InputError(f"--batch-rows needs --method direct; {method.name} counts a repertoire as a whole")
        if not isinstance(self.max_n, int):
            raise InputError(
                "--max-n all needs the longest sequence before counting begins; with slices give a number, or count "
                "all rows at once with --batch-rows 0"
            )
        method.require(self.max_n)

    def problem(self, repertoire: Repertoire, reference: Germline) -> Problem:
        """With the segments of a germline table."""
        return Problem(repertoire, reference, int(self.max_n), self.d_forms)


LONGEST_JUNCTION = 192
"""The longest junction in nucleotides whose probability is computed."""

Normalize = Literal["productive", "none"]
"""Among which recombinations a probability is one."""

PGEN_THREADS = 256
"""Threads per block of the kernels on a GPU, at most; each kernel has its own number."""


def pgen_names(
    sequence: str | None, mismatches: int, *, amino_acids: bool = False, selection: bool = False
) -> tuple[str, ...]:
    """The columns for `sequence` (`nt`, `aa` or `both`, None for what there is) and 0 or 1 `mismatches`.

    amino_acids  the sequences are amino acids, without nucleotides
    selection    with those of the model's selection factor

    InputError for other values, and for nucleotides of amino acids.
    """
    asked = sequence or ("aa" if amino_acids else "both")
    require_choice("sequence", asked, ("nt", "aa", "both"))
    if mismatches not in (0, 1):
        raise InputError(f"mismatches {mismatches}: give 0 or 1")
    if amino_acids and asked != "aa":
        raise InputError(f"sequence {asked}: amino acids (junction_aa) are read, no nucleotides; give aa")
    if selection and asked == "nt":
        raise InputError("--selection: the factor is one of amino acids; give --sequence aa or both")
    wanted_columns = (asked != "aa", asked != "nt", mismatches == 1)
    names = tuple(name for name, wanted in zip(PGEN_COLUMNS, wanted_columns, strict=True) if wanted)
    return names + SELECTION_COLUMNS * selection


@dataclass(frozen=True)
class PgenConfig(Plan):
    """How to compute generation probabilities.

    names      those of `PGEN_COLUMNS` that are computed, and `SELECTION_COLUMNS`
    genes      `call`: of the V and J alleles that a row's calls name; `any`: of all
    normalize  `none`: among all recombinations; `productive`: among productive ones
    joint      take P(V, D, J) as the model has it, not P(V) P(D, J)
    """

    identity: ClassVar[tuple[str, ...]] = (
        "model_sha256", "selection_sha256", "ties", "method", "names", "genes", "alphabet", "normalize", "joint",
    )  # fmt: skip

    names: tuple[str, ...] = PGEN_COLUMNS[:2]
    genes: Genes = "call"
    backend: str = AUTO
    threads_per_block: int = PGEN_THREADS
    strict_binding: bool = False
    normalize: Normalize = "none"
    joint: bool = False
    method: str = field(default=ForwardSum.name, init=False)

    def __post_init__(self) -> None:
        require_choice("normalize", self.normalize, get_args(Normalize))
        if self.normalize == "productive" and "pgen_aa_1mm" in self.names:
            raise InputError(
                "--normalize productive: --mismatches 1 adds up sequences that are not productive, too; leave one out"
            )

        if self.selected and (self.genes == "any" or self.joint):
            option = "--joint" if self.joint else "--genes any"
            raise InputError(f"--selection: the factor is one of V and J genes that are called; leave {option} out")

    @property
    def selected(self) -> bool:
        """Whether the selection factor is computed."""
        return SELECTION_COLUMNS[0] in self.names

    def method_class(self) -> ForwardSum:
        """The only method, with the selection factor or without it."""
        return (SelectedSum if self.selected else ForwardSum)(self.names)

    def model(self, model: Model) -> Model:
        """The model whose probabilities are computed; InputError if it has not what is asked for."""
        chosen = model.with_joint_choice() if self.joint else model
        if self.selected:
            model.require_selection()
        return given_productive(chosen) if self.normalize == "productive" else chosen

    def reads(self, reading: "Reading") -> "Reading":
        """With the codons of Cys 104 and Phe/Trp 118, which are part of what recombination makes."""
        if reading.sequence_field == "cdr3":
            raise InputError("--sequence-field cdr3: a probability is that of a junction")
        if reading.alphabet is not None and "pgen_aa_1mm" in self.names:
            reading.alphabet.require_mismatches()
        productive = ExclusionKind.NOT_PRODUCTIVE if self.normalize == "productive" else None
        return replace(reading, longest=LONGEST_JUNCTION, anchors=True, genes=self.genes, productive=productive)

    def problem(self, repertoire: Repertoire, reference: Model) -> PgenProblem:
        """With a recombination model."""
        return PgenProblem(repertoire, reference, self.names)
