"""The settings of annotation: which records of a database take part, what matches, and how hits are tested."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hpcvdj.errors import InputError, log, option
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.options import Option, Settings, setting
from hpcvdj.recombination.calls import Genes
from hpcvdj.repertoires.settings import pairs_in

if TYPE_CHECKING:
    # Slow to import, and the help needs this module.
    from hpcvdj.repertoires.databases import Records

Match = Literal["vj", "v", "none"]
Decoys = Annotated[
    Sequence[str],
    Option("an antigen, its organism, or an epitope, as the database names it, that the donors cannot have met: its "
           "hits say what selection makes of chance, and whether the test is right",
           shell="an organism, antigen or epitope that the donors cannot have met (SARS-CoV-2 before 2019); may be "
           "repeated", metavar="NAME", several=True),
]  # fmt: skip


class DatabaseSettings(Settings, kw_only=True):
    """Which records of a database take part."""

    species: str | None = setting("records of this species, such as human or mouse", None, unset="the model's")
    exclude_reference: Sequence[str] = setting(
        "leave out records of this reference, as the database names it: the study that the sample is of", (),
        shell="leave out records of this study, as that of the sample; may be repeated", metavar="REFERENCE",
        several=True)  # fmt: skip
    database_columns: Mapping[str, str] | None = setting(
        "of a database that hpcvdj does not know, which columns are which fields, as in {epitope: peptide, "
        "junction_aa: cdr3}", None, shell="of a database that hpcvdj does not know, which columns are which fields, as "
        "in epitope=peptide,junction_aa=cdr3,v_call=v,j_call=j", metavar="FIELD=COLUMN", parse=pairs_in,
        remedy="give FIELD=COLUMN, each field once, as in epitope=peptide,junction_aa=cdr3", more=True)  # fmt: skip

    def records(self, database: Any) -> "Records":
        """Read the records of a database: a file, or a table in memory."""
        from hpcvdj.repertoires.databases import database_of, read_database

        if isinstance(database, str | Path):
            records = read_database(Path(database), self.database_columns)
        else:
            records = database_of(database, self.database_columns)
        if self.species is not None and not any(layout.get("species") for layout in records.layouts):
            log.warning(
                "%s: %s has no column of species, so that all records take part; name it with %s",
                option("species", self.species), records.path or "the database",
                option("database_columns", {"species": "COLUMN"}),
            )  # fmt: skip
        return records


class AnnotationSettings(Settings, kw_only=True):
    """What matches, and how hits are tested."""

    match: Match = setting(
        "the genes that a clonotype has in common with a record: `vj`, both; `v`, V; `none`: none, and calls are not "
        "read. Without J the model's selection factor is left out", "vj",
        shell="the genes that a clonotype has in common with a record: both, V, or none")  # fmt: skip
    mismatches: int = setting("residues exchanged between a clonotype and a record, at most", 1, least=0, most=1)
    decoys: Decoys = ()
    kappa: float | None = setting("by how much hits are more common than the model says: 1 for generated junctions",
                                  None, unset="estimated", above=0)  # fmt: skip
    max_q: float = setting("the false discovery rate up to which epitopes and clonotypes are called", 0.05, above=0,
                           below=1)  # fmt: skip
    seed: int = setting("seed of the draws, and of the randomised p-values that are compared with uniform ones", 0,
                        least=0, more=True)  # fmt: skip
    selection: bool = setting(
        "take the model's selection factor (hpcvdj infer-selection) into account, if it has one", True,
        shell="take the model's selection factor into account, if it has one", more=True)  # fmt: skip
    cache: Path | str | None = setting(
        "an existing folder where the sequences near a database's records, and their probabilities, are kept for the "
        "next run", None, metavar="FOLDER", more=True)  # fmt: skip
    backend: BackendName = AUTO
    strict_binding: StrictBinding = False

    @property
    def selects(self) -> bool:
        """Whether the model's selection factor may take part: it needs V and J genes."""
        return self.selection and self.match == "vj"

    @property
    def genes(self) -> Genes:
        """Whether V and J calls are read."""
        return "any" if self.match == "none" else "call"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cache is not None and not Path(self.cache).is_dir():
            raise InputError(f"{option('cache', self.cache)}: no such folder; create it first")
