"""Several individuals: the junctions that they share, and those that came from one to another by contamination."""

from typing import Literal

Unit = Literal["nt", "vj-aa", "aa"]
"""What counts as one sequence: nucleotides with V and J genes; amino acids with V and J genes; amino acids alone."""

DRAWS = 300_000
"""Productive sequences that are drawn to find out what chance makes."""
