"""The settings of an analysis: who the individuals are, what is known of them, and which steps are done."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpcvdj.annotation.settings import Decoys
from hpcvdj.association.settings import Donors
from hpcvdj.cohorts.settings import Individuals, Naming
from hpcvdj.errors import InputError, few, option, require_choice
from hpcvdj.kernels.backends import AUTO, BackendName
from hpcvdj.options import Settings, setting

STEPS = (
    "contamination", "infer", "infer-selection", "pgen", "sharing", "associate", "enrich", "annotate", "report",
)  # fmt: skip
"""The steps in their order; each has the name of the command that does it alone."""


class CohortSettings(Donors, Naming, kw_only=True):
    """Who the individuals are, and what the metadata say of them."""

    metadata: Any = setting(
        "a table with a row for each individual: its name, or that of its file, in one column, and what is known of it "
        "in others", None, shell="a table with a row for each individual and a column of their names", metavar="TABLE",
        parse=Path)  # fmt: skip

    def __post_init__(self) -> None:
        Individuals.__post_init__(self)
        if isinstance(self.group, Mapping):
            self._list_groups()
        if self.metadata is not None:
            if not any((self.group, self.subject, self._asks)):
                raise InputError(
                    f"{option('metadata')}: say what its columns are for: {option('group')}, "
                    f"{option('case', {'disease': 'MS'})}, {option('hla')}, {option('trend')} or {option('subject')}"
                )
        elif self.group or self.subject or self._asks:
            raise InputError(f"{option('metadata')}: is needed, a table that says what is known of each individual")
        # Errors appear now, not when the step begins.
        self.donors()

    @property
    def _asks(self) -> bool:
        return any((self.case, self.hla, self.trend, self.time))

    def naming(self) -> Naming:
        """The settings of steps that compare individuals."""
        metadata = self.metadata if self.group or self.subject else None
        return Naming(individual=self.individual, metadata=metadata, group=self.group, subject=self.subject)

    def donors(self) -> Donors | None:
        """The settings of `associate`; None if nothing is asked of the metadata."""
        return Donors.of(vars(self)) if self._asks else None


class AnalysisSettings(Settings, kw_only=True):
    """Which steps are done, and with what."""

    database: Any = setting("receptors of known specificity, a file of VDJdb, McPAS-TCR or IEDB: to find clonotypes "
                            "like them", None, metavar="FILE", parse=Path)  # fmt: skip
    decoys: Decoys = ()
    only: Sequence[str] = setting(f"do only this step, of {', '.join(STEPS)}", (),
                                  shell="do only this step; may be repeated", metavar="STEP", several=True)  # fmt: skip
    without: Sequence[str] = setting("leave this step out", (), shell="leave this step out; may be repeated",
                                     metavar="STEP", several=True)  # fmt: skip
    backend: BackendName = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("only", "without"):
            for step in getattr(self, name):
                require_choice(name, step, STEPS)
        if self.only and self.without:
            raise InputError(f"{option('without', few(self.without))}: give {option('only')} or this, not both")
        if self.decoys and self.database is None:
            raise InputError(f"{option('decoys', self.decoys[0])}: names records of {option('database')}, which is "
                             "not given")  # fmt: skip

    def asks(self, step: str) -> bool:
        """Whether the user asks for a step."""
        return step in self.only if self.only else step not in self.without
