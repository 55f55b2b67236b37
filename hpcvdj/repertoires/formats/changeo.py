"""Change-O (changeo.readthedocs.io) before version 1.0.  Later versions write AIRR tables."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.repertoires.formats.format import Field, Format
from hpcvdj.repertoires.formats.steps import after, counts, first_of, present, truth, without

stated = without("None", "NA")


def _locus(column: pa.Array) -> pa.Array:
    """The locus.  BraCeR writes its last letter only."""
    named = pc.replace_substring_regex(stated(column), "^([HKL])$", r"IG\1")
    return pc.replace_substring_regex(named, "^([ABDG])$", r"TR\1")


class ChangeO(Format):
    name = "changeo"
    summary = "Change-O before version 1.0"
    signatures = (frozenset({"V_CALL", "J_CALL", "JUNCTION"}),)

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """Fields have their AIRR names in capitals, as databases export them, too, or older names."""
        older = {"sequence": "SEQUENCE_INPUT", "cell_id": "CELL", "clone_id": "CLONE"}
        booleans = {
            "productive": first_of(columns, "FUNCTIONAL", "PRODUCTIVE") or "", "rev_comp": "REV_COMP",
            "vj_in_frame": "IN_FRAME", "stop_codon": "STOP",
        }  # fmt: skip
        numbers = {
            "duplicate_count": first_of(columns, "DUPCOUNT", "DUPLICATE_COUNT", "UMICOUNT", "CONSCOUNT") or "",
            "consensus_count": "CONSCOUNT",
            "umi_count": "UMICOUNT",
        }
        return {
            "v_call": Field(("V_CALL",), stated),
            "j_call": Field(("J_CALL",), stated),
            "junction": Field(("JUNCTION",), stated),
            **present(columns, {
                "sequence_id": Field(("SEQUENCE_ID",)),
                "d_call": Field(("D_CALL",), stated),
                "c_call": Field(("C_CALL",), stated),
                "locus": Field(("LOCUS",), _locus),
                "junction_aa": Field(("JUNCTION_AA",), stated),
                **{field: Field((name,), stated) for field, name in older.items()},
                **{field: Field((name,), truth) for field, name in booleans.items()},
                **{field: Field((name,), after(stated, counts)) for field, name in numbers.items()},
            }),
        }  # fmt: skip
