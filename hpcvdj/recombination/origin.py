"""Where a model comes from and what it is good for, as its folder says."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FACTS = "inference.json"
"""The file in a model's folder that says what the model was inferred from."""

FORMAT = "hpcvdj-inference"

FEW_ROWS = 10_000
"""With fewer rows, what is rare is not known well."""


@dataclass(frozen=True)
class Origin:
    """Where a model comes from.

    purpose  what it is good for, in one line; empty if that is not known
    rows     junctions that it was inferred from, if known
    """

    purpose: str = ""
    rows: int | None = None

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
    """What inference.json in a model's folder says."""
    facts = read_facts(folder) or {}
    rows = facts.get("rows_counted")
    return Origin(str(facts.get("purpose", "")), rows if isinstance(rows, int) else None)


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
