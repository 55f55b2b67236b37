"""The options of generation probabilities."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.kernels.pgen.method import ForwardSum, SelectedSum
from hpcvdj.options import Settings, setting
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.exclusions import ExclusionKind
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import given_productive
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, SELECTION_COLUMNS, JunctionField, PgenProblem, Repertoire
from hpcvdj.repertoires.settings import Joint
from hpcvdj.values.plan import Plan

if TYPE_CHECKING:
    # Slow to import, and the help needs the defaults of this module.
    from hpcvdj.repertoires.reading import Reading

Normalize = Literal["productive", "none"]
"""The recombinations among which a probability is computed."""

PGEN_THREADS = 256
"""The largest number of threads per block of the kernels on a GPU; each kernel has its own number."""


class PgenSettings(Settings, kw_only=True):
    """The options of generation probabilities."""

    sequence: Literal["nt", "aa", "both"] | None = setting(
        "the probability of the nucleotides, `nt`, of their amino acids, `aa`, or `both`", None,
        unset="all that there is")  # fmt: skip
    sequence_field: JunctionField | None = setting(
        "the AIRR field to read: `junction`; or `junction_aa`, amino acids in which X, B, J and Z are several; or "
        "`cdr3_aa`, without the conserved C and F/W", None, unset="the first of them that the table has")  # fmt: skip
    alphabet: Any = setting("more symbols of amino acids: for each the symbols and codons that it stands for, as in "
                            "{\"x\": [\"D\", \"E\", \"AAA\"]}; or the file that defines them", None,
                            shell="more symbols of amino acids or codons in junction_aa: a file with lines such as 'x: "
                            "D, E, AAA', as OLGA reads them", metavar="FILE", parse=Path, more=True)  # fmt: skip
    mismatches: int = setting("1: also of all amino-acid sequences within one mismatch, added up", 0, least=0, most=1,
                              shell="1: also of all amino acids within one mismatch, added up")  # fmt: skip
    genes: Genes = setting("`call`: of scenarios with the V and J alleles that the calls name; `any`: of all scenarios",
                           "call")  # fmt: skip
    normalize: Normalize = setting("the probability among `productive` recombinations (other junctions are excluded), "
                                   "or, `none`, among all", "none")  # fmt: skip
    selection: bool = setting(
        "also the model's selection factor (hpcvdj infer-selection), `q_factor`, and the probability among productive "
        "junctions after selection, `p_post`; `q_excluded` says why a junction has none", False,
        shell="also the model's selection factor (hpcvdj infer-selection) of each productive junction, and its "
        "probability after selection")  # fmt: skip
    joint: Joint = False
    backend: BackendName = AUTO
    strict_binding: StrictBinding = False

    def config(self, *, amino_acids: bool) -> "PgenConfig":
        """Return what is computed; raises InputError for what cannot be computed.

        amino_acids  whether the sequences are amino acids, without nucleotides
        """
        asked = self.sequence or ("aa" if amino_acids else "both")
        if amino_acids and asked != "aa":
            raise InputError(
                f"{option('sequence', asked)}: amino acids (junction_aa) are read, no nucleotides; give aa"
            )
        if self.selection and asked == "nt":
            raise InputError(
                f"{option('selection')}: the factor is one of amino acids; give {option('sequence', 'aa')} or both"
            )
        wanted_columns = (asked != "aa", asked != "nt", self.mismatches == 1)
        names = tuple(name for name, wanted in zip(PGEN_COLUMNS, wanted_columns, strict=True) if wanted)
        return PgenConfig(
            names + SELECTION_COLUMNS * self.selection, self.genes, self.backend, strict_binding=self.strict_binding,
            normalize=self.normalize, joint=self.joint,
        )  # fmt: skip


@dataclass(frozen=True)
class PgenConfig(Plan):
    """How generation probabilities are computed.

    names      the members of `PGEN_COLUMNS` that are computed, and `SELECTION_COLUMNS`
    genes      `call`: of the V and J alleles that a row's calls name; `any`: of all
    normalize  `none`: among all recombinations; `productive`: among productive ones
    joint      take P(V, D, J) as the model has it, not P(V) P(D, J)
    """

    identity: ClassVar[tuple[str, ...]] = (
        "model_sha256", "selection_sha256", "ties", "missing_alleles", "method", "names", "genes", "alphabet",
        "normalize", "joint",
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
        if self.normalize == "productive" and "pgen_aa_1mm" in self.names:
            raise InputError(
                f"{option('normalize', 'productive')}: {option('mismatches', 1)} adds up sequences that are not "
                "productive, too; leave one out"
            )
        if self.selected and (self.genes == "any" or self.joint):
            other = option("joint") if self.joint else option("genes", "any")
            raise InputError(
                f"{option('selection')}: the factor is one of V and J genes that are called; leave {other} out"
            )

    @property
    def selected(self) -> bool:
        return SELECTION_COLUMNS[0] in self.names

    def method_class(self) -> ForwardSum:
        """Return the only method, with the selection factor or without it."""
        return (SelectedSum if self.selected else ForwardSum)(self.names)

    def model(self, model: Model) -> Model:
        """Return the model whose probabilities are computed; raises InputError if it lacks what is asked for."""
        chosen = model.with_joint_choice() if self.joint else model
        if self.selected:
            model.require_selection()
        return given_productive(chosen) if self.normalize == "productive" else chosen

    def reads(self, reading: "Reading") -> "Reading":
        """Read the codons of Cys 104 and Phe/Trp 118, too, as recombination makes them."""
        if reading.alphabet is not None and "pgen_aa_1mm" in self.names:
            reading.alphabet.require_mismatches()
        if self.selected and reading.sequence_field == "cdr3_aa":
            raise InputError(
                f"{option('selection')}: the factor is one of productive junctions, whose last amino acid (Phe/Trp "
                f"118) cdr3_aa lacks; give junction_aa, or leave {option('selection')} out"
            )
        productive = ExclusionKind.NOT_PRODUCTIVE if self.normalize == "productive" else None
        if productive is not None and reading.sequence_field == "cdr3_aa" and reading.alphabet is not None:
            reading = replace(reading, alphabet=reading.alphabet.with_productive_end())
        return reading.of_junctions(self.genes, productive)

    @property
    def judged(self) -> tuple[str, ...]:
        """The names of probabilities of a junction itself, not of all sequences within one mismatch."""
        return tuple(name for name in ("pgen_nt", "pgen_aa", "p_post") if name in self.names)

    def judged_values(self, problem: PgenProblem, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of `judged` among productive recombinations."""
        from hpcvdj.probabilities.productive import among_productive  # compiled by numba, which is slow to import

        return among_productive(problem, values, self.judged, divided=self.normalize == "productive")

    def problem(self, repertoire: Repertoire, reference: Model) -> PgenProblem:
        return PgenProblem(repertoire, reference, self.names)
