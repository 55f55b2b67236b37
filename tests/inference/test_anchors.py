"""The anchor codons of a model that is inferred from a germline table alone are those of the junctions."""

import pytest

from hpcvdj.recombination.igor import load_model
from tests.commands import hpcvdj_command

V, J, OTHER_J = "GCCAGCAGTTT", "CTCCTACGAGCAGTAC", "TGAACACTGAAGCTTTC"
GERMLINE = {"V1*01": V, "J1*01": J, "J1*02": J, "J2*01": OTHER_J}


def anchors(folder, rows):
    """The last codon of each J allele in a model of junctions: {(call, codon): number}."""
    segments = [f"TRA\t{allele[0]}\t{allele}\tF\t{sequence}\n" for allele, sequence in GERMLINE.items()]
    (folder / "g.tsv").write_text("locus\tsegment_type\tallele\tfunctional\tsequence\n" + "".join(segments))
    lines = ["sequence_id\tv_call\tj_call\tjunction\n"]
    for (call, codon), number in rows.items():
        j = GERMLINE.get(call, J)
        between = "A" * (1 if (len(V + j) + 1) % 3 else 2)
        lines += [f"{k}{call}{codon}\tV1\t{call}\tTGT{V}{between}{j}{codon}\n" for k in range(number)]
    (folder / "rows.tsv").write_text("".join(lines))
    words = ["infer", folder / "rows.tsv", "-g", folder / "g.tsv", "-o", folder / "model", "--duplicates"]
    hpcvdj_command(*words, "--iterations", "1", "--hold-out", "0")
    return {own.allele: own.segment[-3:] for own in load_model(folder / "model").j}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({("J1", "TTC"): 8, ("J2*01", "TTT"): 8}, ("TTC", "TTC", "TTT")),
        # Not called by allele, most of the less usual one: the conserved residue is that of the first allele.
        ({("J1", "TTC"): 8, ("J1", "GTC"): 12, ("J2*01", "TTT"): 8}, ("TTC", "GTC", "TTT")),
        # What is rare is an error.
        ({("J1", "TTC"): 30, ("J1", "GTC"): 2, ("J2*01", "TTT"): 8}, ("TTC", "TTC", "TTT")),
        # One allele has one codon, even if another one is that of the conserved residue.
        ({("J1", "TTC"): 8, ("J2*01", "GTT"): 8, ("J2*01", "TTT"): 7}, ("TTC", "TTC", "GTT")),
        # Calls of alleles say which is which.
        ({("J1*01", "GTC"): 8, ("J1*02", "TTC"): 8}, ("GTC", "TTC", "TTT")),
    ],
)
def test_alleles_have_the_anchor_codons_of_their_junctions(tmp_path, rows, expected):
    assert anchors(tmp_path, rows) == dict(zip(list(GERMLINE)[1:], expected, strict=True))
