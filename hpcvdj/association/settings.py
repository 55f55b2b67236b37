"""The settings of association: which donors are cases, what counts as one sequence, and how it is tested."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hpcvdj.chance import DRAWS
from hpcvdj.chance.settings import Draws
from hpcvdj.cohorts.settings import Individuals, Seed
from hpcvdj.errors import InputError, option
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.options import Settings, setting
from hpcvdj.repertoires.settings import pairs_in

if TYPE_CHECKING:
    # Slow to import, and the help needs this module.
    from hpcvdj.cohorts.cohort import People

AssociationUnit = Literal["vj-aa", "v-aa", "aa", "ball"]
WITH_GENES: tuple[AssociationUnit, ...] = ("vj-aa", "ball")
"""Units of one V and one J gene."""

CALLS: dict[AssociationUnit, tuple[str, ...]] = {**dict.fromkeys(WITH_GENES, ("v_call", "j_call")), "v-aa": ("v_call",)}
"""The genes that units have."""

Depth = Literal["recombinations", "none"]


def _names_in(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


class Donors(Individuals, kw_only=True):
    """The donors, and their phenotypes in the metadata."""

    metadata: Any = setting(
        "a table with a row for each donor: its name, or that of its file, in one column, and what is known of it in "
        "others", None, shell="a table with a row for each donor and a column of their names", metavar="TABLE",
        parse=Path)  # fmt: skip
    case: Mapping[str, Any] | None = setting(
        "which donors are cases, as in {disease: MS}: those that have this value in the column; donors without a value "
        "are left out", None, shell="the column and value of cases, as in disease=MS", metavar="COLUMN=VALUE",
        parse=pairs_in, remedy="give one COLUMN=VALUE, as in disease=MS")  # fmt: skip
    hla: str | None = setting(
        "the column that has the HLA alleles of each donor, separated by commas: each allele of ten donors or more is "
        "tested like a disease", None, shell="a column of HLA alleles: each of ten donors or more is tested",
        metavar="COLUMN")  # fmt: skip
    trend: str | None = setting(
        "the column of a number, such as age: its ranks are compared between carriers and other donors", None,
        shell="a column of numbers, such as age", metavar="COLUMN")  # fmt: skip
    strata: Sequence[str] | None = setting(
        "columns, such as batch or sex: donors are compared with others that agree in these", None,
        shell="compare donors that agree in these columns, as in batch,sex", metavar="COLUMNS",
        parse=_names_in)  # fmt: skip
    subject: str | None = setting(
        "the column of the metadata that says whose each sample is: samples of one subject are one donor, or, with "
        "{time}, are compared", None, shell="a column that says whose each sample is", metavar="COLUMN",
        more=True)  # fmt: skip
    time: str | None = setting(
        "the column of the metadata that has the time of each sample, a number: which clonotypes of a subject expanded "
        "from a time to its next one? Samples of one time are replicates", None,
        shell="find what expanded in each --subject from a time to the next", metavar="COLUMN")  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metadata is None:
            raise InputError(f"{option('metadata')}: is needed, a table that says what is known of each donor")
        if self.time is not None:
            self._require_times(self.time)
        elif self.case is None and self.hla is None and self.trend is None:
            raise InputError(
                f"say what sequences may go with: {option('case', {'disease': 'MS'})}, {option('hla')} or "
                f"{option('trend')}; or give {option('subject')} and {option('time')}"
            )
        if self.case is not None and len(self.case) != 1:
            raise InputError(f"{option('case')}: give one column and its value, as in disease=MS")

    def _require_times(self, column: str) -> None:
        other = next((name for name in ("case", "hla", "trend", "strata") if getattr(self, name) is not None), None)
        if other is not None:
            raise InputError(
                f"{option('time', column)}: compares samples of one person, and {option(other)} different people; "
                "leave one of them out"
            )
        if self.subject is None:
            raise InputError(
                f"{option('time', column)}: needs {option('subject')}, the column of the metadata that says whose each "
                "sample is"
            )

    def people(self, names: Sequence[str]) -> "People":
        """The donor of each sample; with times, each sample counts as a donor."""
        from hpcvdj.cohorts.cohort import People
        from hpcvdj.repertoires.metadata import column_of

        if self.subject is None or self.time is not None:
            return People({name: name for name in names})
        return People(column_of(self.metadata, self.subject, names, "subject"))


class AssociationSettings(Settings, kw_only=True):
    """What counts as one sequence, and how it is tested."""

    unit: AssociationUnit = setting(
        "what counts as one sequence: `vj-aa`, amino acids with V and J genes; `v-aa`, amino acids with V genes; `aa`, "
        "amino acids alone; `ball`, one of `vj-aa` and all within one mismatch of it", "vj-aa",
        shell="amino acids with V and J, V, none; ball: one mismatch")  # fmt: skip
    depth: Depth = setting("`recombinations`: deeper donors have more of everything; `none`: all donors are taken to "
                           "be equally deep, which is Fisher's test", "recombinations",
                           shell="whether depth counts; if not, it is Fisher's test")  # fmt: skip
    min_individuals: int = setting("test sequences that at least so many donors have", 3, least=2, more=True)
    max_q: float = setting("the false discovery rate of hits", 0.05, above=0, below=1)
    max_p: float = setting("the table has tests with p-values up to this", 0.05, above=0, most=1, more=True)
    draws: Draws = DRAWS
    seed: Seed = 0
    backend: BackendName = AUTO
    strict_binding: StrictBinding = False
