"""The options of cohorts: how individuals are named, and how sharing and contamination are tested."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hpcvdj.chance import DRAWS
from hpcvdj.chance.settings import Draws
from hpcvdj.cohorts import Unit
from hpcvdj.errors import InputError, option
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.options import Option, Settings, setting
from hpcvdj.recombination.calls import Genes

if TYPE_CHECKING:
    # Slow to import, and the help needs this module.
    from hpcvdj.cohorts.cohort import People
    from hpcvdj.repertoires.formats.format import Opening

SMALLEST_Q = 1e-3
"""The smallest share of survivors that is plausible."""

Seed = Annotated[int, Option("seed of what is drawn", least=0)]


class SharingSettings(Settings, kw_only=True):
    """How sharing is tested."""

    unit: Unit = setting("what counts as one sequence: `nt`, nucleotides with V and J genes; `vj-aa`, amino acids with "
                         "V and J genes; `aa`, amino acids alone", "vj-aa")  # fmt: skip
    min_individuals: int = setting("the table has sequences of at least so many individuals", 2, least=1)
    q: float | None = setting("the share of sequences that survive selection", None, unset="fitted", least=SMALLEST_Q,
                              most=1)  # fmt: skip
    genes: Genes = setting("`any`: V and J calls are not read, as of a list of CDR3s; for the unit `aa`", "call")
    draws: Draws = DRAWS
    seed: Seed = 0
    backend: BackendName = AUTO
    strict_binding: StrictBinding = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.genes == "any" and self.unit != "aa":
            raise InputError(
                f"{option('genes', 'any')}: the unit {self.unit} has V and J genes; give {option('unit', 'aa')}"
            )


class ContaminationSettings(Settings, kw_only=True):
    """How contamination is found."""

    max_pgen: float | None = setting(
        "junctions with a smaller probability, among productive ones, are improbable", None,
        unset="1e-11, or more where that leaves too few", above=0, most=1e-6)  # fmt: skip
    min_low: int | None = setting("improbable junctions that each individual must have", None,
                                  unset="as many as copies of 1 % of a sample need to be seen, or the pair has no "
                                  "power", least=1, more=True)  # fmt: skip
    draws: Draws = DRAWS
    seed: Seed = 0
    backend: BackendName = AUTO
    strict_binding: StrictBinding = False


IndividualColumn = Annotated[
    str | None,
    Option("the column that names the individual of each row", metavar="COLUMN",
           unset="`repertoire_id`, or each table is one"),
]  # fmt: skip


class Individuals(Settings, kw_only=True):
    """How individuals are named."""

    individual: IndividualColumn = None

    def opening(self, opening: "Opening | None" = None) -> "Opening":
        """Return how tables are opened so that their repertoires are the individuals."""
        from hpcvdj.repertoires.formats.format import BY_HEADER
        from hpcvdj.repertoires.table import REPERTOIRE

        opening, metadata = opening or BY_HEADER, getattr(self, "metadata", None)
        if isinstance(metadata, str | Path):
            opening = replace(opening, besides=Path(metadata))
        if self.individual in (None, REPERTOIRE):
            return opening
        return replace(opening, columns=(*opening.columns, (REPERTOIRE, str(self.individual))))

    def people(self, names: Sequence[str]) -> "People":
        """Return the subject and the group of each sample."""
        raise NotImplementedError


class Naming(Individuals, kw_only=True):
    """How individuals are named, and which group each one is in."""

    metadata: Any = setting("a table with a row for each individual: its name, or that of its file, in one column, its "
                            "group in another", None, metavar="TABLE", parse=Path)  # fmt: skip
    group: Any = setting(
        "the column of the metadata that has the groups, or a dict with the group of each individual", None,
        shell="the column of the metadata that has the groups", metavar="COLUMN", parse=str)  # fmt: skip
    subject: str | None = setting("the column of the metadata that says whose each sample is: samples of one subject "
                                  "are one individual", None, metavar="COLUMN")  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.group, Mapping):
            self._list_groups()
        for name, column in (("group", self.group), ("subject", self.subject)):
            if column is not None and self.metadata is None:
                raise InputError(f"{option(name, column)}: needs {option('metadata')}, the table that has this column")
        if self.metadata is not None and self.group is None and self.subject is None:
            raise InputError(
                f"{option('metadata')}: needs {option('group')}, or {option('subject')}, the column that has them"
            )

    def _list_groups(self) -> None:
        """Replace a dict with the group of each individual, which Python functions take, by a table."""
        if self.metadata is not None:
            raise InputError("group is a dict, which has the groups; leave metadata out, or name its column")
        import pyarrow as pa

        listed = {"individual": list(map(str, self.group)), "group": list(map(str, self.group.values()))}
        object.__setattr__(self, "metadata", pa.table(listed))
        object.__setattr__(self, "group", "group")

    def people(self, names: Sequence[str]) -> "People":
        """Return the subject and the group of each sample; raises InputError as `column_of` does."""
        from hpcvdj.cohorts.cohort import People
        from hpcvdj.repertoires.metadata import column_of

        subject = {name: name for name in names}
        if self.subject is not None:
            subject = column_of(self.metadata, self.subject, names, "subject")
        if self.group is None:
            return People(subject, None)
        groups: dict[str, str] = {}
        for name, group in column_of(self.metadata, self.group, names).items():
            if groups.setdefault(subject[name], group) != group:
                raise InputError(
                    f"{subject[name]}: its samples are of the groups {groups[subject[name]]} and {group}; correct the "
                    f"column {self.group}, or leave {option('subject')} out"
                )
        return People(subject, groups)


def require_like(individual: str | None, like: Any) -> None:
    """Raise InputError for a column that names the individuals of no cohort."""
    if individual is not None and (like is None or (isinstance(like, list) and not like)):
        raise InputError(f"{option('individual', individual)}: names individuals of {option('like')}; give this, too")
