"""Where a model comes from and what it is good for, as its folder says."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FACTS = "inference.json"
"""The file in a model's folder that says what the model was inferred from."""

FORMAT = "hpcvdj-inference"

SELECTION_FACTS, SELECTION_FORMAT = "selection.json", "hpcvdj-selection"
"""The file that says what the selection factor was inferred from, and what is its `format`."""

SPECIES = ("human", "mouse")
"""Those whose names begin names of models and germline tables."""

FEW_ROWS = 10_000
"""With fewer rows, what is rare is not known well."""


@dataclass(frozen=True)
class Origin:
    """Where a model comes from.

    purpose  what it is good for, in one line; empty if that is not known
    rows     junctions that it was inferred from, if known
    species  of `SPECIES`; empty if it is not known
    """

    purpose: str = ""
    rows: int | None = None
    species: str = ""

    def facts(self) -> dict[str, str | int]:
        """What results record of it."""
        purpose = {"model_purpose": self.purpose} if self.purpose else {}
        return purpose | ({} if self.rows is None else {"model_rows": self.rows})

    def caution(self, name: str) -> str | None:
        """Why not to trust tests that rest on the model of this name, or None."""
        if self.rows is None or self.rows >= FEW_ROWS:
            return None
        if self.purpose:
            return f"{name} is {self.purpose}"
        return (
            f"model {name}: inferred from {self.rows:,} rows, fewer than {FEW_ROWS:,}; what is rare is not known well, "
            "and tests that rest on it may be wrong"
        )


def read_origin(folder: Path) -> Origin:
    """What inference.json in a model's folder says, and of its species selection.json."""
    facts = read_facts(folder) or {}
    rows, start = facts.get("rows_counted"), facts.get("start")
    selected = json_facts(folder / SELECTION_FACTS, SELECTION_FORMAT) or {}
    told = (
        *(known.get("species") for known in (facts, selected)),
        # Older versions name the model or germline table alone.
        start.get("name") if isinstance(start, dict) else "", selected.get("model"),
    )  # fmt: skip
    species = next((species for text in told if (species := species_in(str(text or "")))), "")
    return Origin(str(facts.get("purpose", "")), rows if isinstance(rows, int) else None, species)


def species_in(name: str) -> str:
    """The species that the name of a model or of a germline table begins with; empty for others.

    >>> species_in("models/human_trb_selected"), species_in("the germline table mouse_tra"), species_in("my_model")
    ('human', 'mouse', '')
    """
    first = name.rpartition("/")[2].rpartition(" ")[2].partition("_")[0]
    return first if first in SPECIES else ""


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What inference.json says; None if the folder has none that hpcvdj wrote."""
    return json_facts(folder / FACTS, FORMAT)


def json_facts(path: Path, name: str) -> dict[str, Any] | None:
    """A file of facts of the format with this name; None if it is not there, or something else."""
    try:
        facts = json.loads(path.read_text())
        return dict(facts) if facts["format"] == name else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
