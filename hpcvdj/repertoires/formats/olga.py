"""OLGA (github.com/statbiophys/OLGA): the sequences that `olga-generate_sequences` writes, without a header."""

import re
from collections.abc import Mapping, Sequence

from hpcvdj.repertoires.formats.format import Field, Format
from hpcvdj.repertoires.formats.steps import constant, locus, present


class Olga(Format):
    """Sequences of OLGA: nucleotides, amino acids or both, then the genes."""

    name = "olga"
    summary = "OLGA's sequences, without a header"

    COLUMNS = (
        ("olga_nucleotides", "olga_amino_acids", "olga_v", "olga_j"),
        ("olga_nucleotides", "olga_v", "olga_j"),
        ("olga_amino_acids", "olga_v", "olga_j"),
    )
    signatures = tuple(map(frozenset, COLUMNS))
    _VALUES: Mapping[str, str] = {
        "olga_nucleotides": "[ACGT]+",
        "olga_amino_acids": "[ACDEFGHIKLMNPQRSTVWY]+",
        "olga_v": r"(TR|IG)[A-Z]*V\S*",
        "olga_j": r"(TR|IG)[A-Z]*J\S*",
    }

    @staticmethod
    def named(values: Sequence[str]) -> list[str] | None:
        """By the values of the first row: sequences, then a V gene and a J gene."""
        for names in Olga.COLUMNS:
            if len(names) == len(values) and all(map(re.fullmatch, (Olga._VALUES[name] for name in names), values)):
                return list(names)
        return None

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """Sequences are junctions.  All are productive."""
        return {
            "v_call": Field(("olga_v",)),
            "j_call": Field(("olga_j",)),
            "locus": Field(("olga_j",), locus),
            "productive": Field(("olga_j",), constant("T")),
            **present(columns, {
                "junction": Field(("olga_nucleotides",)),
                "junction_aa": Field(("olga_amino_acids",)),
            }),
        }  # fmt: skip
