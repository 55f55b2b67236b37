"""Several individuals: the junctions that they share, and those that came from one to another by contamination."""

from typing import Literal

Unit = Literal["nt", "vj-aa", "aa"]
"""What counts as one sequence: nucleotides with V and J genes; amino acids with V and J genes; amino acids alone."""
