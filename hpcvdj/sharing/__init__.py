"""Which junctions individuals share."""

from typing import Literal

Rows = Literal["productive", "all"]
"""Which counted rows are used."""
