"""Germline tables and models that come with hpcvdj, by name.

`hpcvdj/inputs` is a link to `inputs`, whose scripts make the files; an installed hpcvdj has copies.
"""

from pathlib import Path

from hpcvdj.errors import MachineError

_INPUTS = Path(__file__).resolve().parents[1] / "inputs"


def _folder(name: str) -> Path:
    """Return a folder of `inputs`.  Raise MachineError if there is none: models would silently stay uncorrected."""
    folder = _INPUTS / name
    if not folder.is_dir():
        raise MachineError(
            f"{folder}: no such folder, which comes with hpcvdj; install hpcvdj again (from a copy of its repository, "
            "hpcvdj/inputs must be a link to inputs)"
        )
    return folder


def germline_paths() -> dict[str, Path]:
    """Return the germline tables by name, such as human_trb."""
    paths = sorted(_folder("germline").glob("*.tsv"))
    return {path.stem: path for path in paths if path.stem != "REFUSED"}  # the list of refused alleles


def germline_names() -> dict[str, tuple[str, ...]]:
    """Return the tables that each name stands for.  A species, such as human, stands for the tables of all its loci.

    A variant of a table, such as mouse_trb_paper, belongs to no species.
    """
    species: dict[str, tuple[str, ...]] = {}
    for name in germline_paths():
        first, *others = name.split("_")
        if len(others) == 1:
            species[first] = (*species.get(first, ()), name)
    return species | {name: (name,) for name in germline_paths()}


def anchors_paths() -> list[Path]:
    """Return the anchors files with which the germline tables are made."""
    return sorted(_folder("germline/anchors").glob("*.csv"))


def model_paths() -> dict[str, Path]:
    """Return the folders of models by name, such as human_trb_m15."""
    paths = sorted(_folder("models").glob("*/model_params.txt"))
    return {path.parent.name: path.parent for path in paths}
