"""The origin of a model and its purpose, from the files in its folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FACTS = "inference.json"
"""The file in a model's folder with the facts about its inference."""

FORMAT = "hpcvdj-inference"

ORIGIN, ORIGIN_FORMAT = "origin.json", "hpcvdj-origin"
"""The file with the origin of a model that Python wrote, without the other facts about its inference; its `format`."""

SELECTION_FACTS, SELECTION_FORMAT = "selection.json", "hpcvdj-selection"
"""The file with the facts about the inference of the selection factor, and its `format`."""

SPECIES = ("human", "mouse")
"""The species at the beginning of names of models and germline tables."""

FEW_ROWS = 10_000
"""With fewer rows, the probabilities of rare events are not known well."""


@dataclass(frozen=True)
class Origin:
    """The origin of a model.

    purpose  the purpose of the model, in one line; empty if it is not known
    rows     how many junctions the model was inferred from, if that is known
    species  one of `SPECIES`; empty if it is not known
    """

    purpose: str = ""
    rows: int | None = None
    species: str = ""

    def facts(self) -> dict[str, str | int]:
        """Return the facts that results record."""
        purpose = {"model_purpose": self.purpose} if self.purpose else {}
        return purpose | ({} if self.rows is None else {"model_rows": self.rows})

    def caution(self, name: str) -> str | None:
        """Return a reason not to trust tests that rest on the model of this name, or None."""
        if self.rows is None or self.rows >= FEW_ROWS:
            return None
        if self.purpose:
            return f"{name} is {self.purpose}"
        return (
            f"model {name}: inferred from {self.rows:,} rows, fewer than {FEW_ROWS:,}; what is rare is not known well, "
            "and tests that rest on it may be wrong"
        )


def read_origin(folder: Path) -> Origin:
    """Return the origin of the model in a folder, from inference.json or origin.json.

    The species is also that of selection.json.
    """
    facts = read_facts(folder) or json_facts(folder / ORIGIN, ORIGIN_FORMAT) or {}
    rows, start = facts.get("rows_counted"), facts.get("start")
    selected = read_selection_facts(folder) or {}
    # Older versions wrote no species, but the name of the model or germline table.
    older = start.get("name") if isinstance(start, dict) else "", selected.get("model")
    names = facts.get("species"), selected.get("species"), *older
    species = next(filter(None, (species_in(str(name or "")) for name in names)), "")
    return Origin(str(facts.get("purpose", "")), rows if isinstance(rows, int) else None, species)


def species_in(name: str) -> str:
    """Return the species at the beginning of the name of a model or germline table; empty if there is none.

    >>> species_in("models/human_trb_selected"), species_in("the germline table mouse_tra"), species_in("my_model")
    ('human', 'mouse', '')
    """
    first = name.rpartition("/")[2].rpartition(" ")[2].partition("_")[0]
    return first if first in SPECIES else ""


def read_facts(folder: Path) -> dict[str, Any] | None:
    """Return the facts in inference.json; None if the folder has no such file of hpcvdj."""
    return json_facts(folder / FACTS, FORMAT)


def read_selection_facts(folder: Path) -> dict[str, Any] | None:
    """Return the facts in selection.json; None if the folder has no such file of hpcvdj."""
    return json_facts(folder / SELECTION_FACTS, SELECTION_FORMAT)


def json_facts(path: Path, name: str) -> dict[str, Any] | None:
    """Return the facts in a file of this format; None if there is no such file, or if it has another format."""
    try:
        facts = json.loads(path.read_text())
        return dict(facts) if facts["format"] == name else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
