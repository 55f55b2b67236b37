"""`hpcvdj germline import`: what it writes and prints, and where refused alleles go."""

import os

import pytest

from hpcvdj.germline_import.table import refused_path
from tests.commands import error_line, hpcvdj_command
from tests.germline_import.conftest import fasta
from tests.germline_import.test_hostile import D1, J1, V1, V2, record


def test_the_command(tmp_path):
    (tmp_path / "s.fasta").write_text(fasta([V1, D1, J1]) + record(V2))
    out, err = hpcvdj_command("germline", "import", tmp_path / "s.fasta", "-o", tmp_path / "g.tsv", "--species",
                              "Homo sapiens")  # fmt: skip
    assert err == ""
    assert "TRB        V 1 / 0 / 0, D 1 / 0 / 0, J 1 / 0 / 0  (F / ORF / P)\nrefused    1\n" in out
    assert "of another species: Mus musculus" in out
    listed = (tmp_path / "g.refused.tsv").read_text().splitlines()
    assert listed[0].split("\t") == ["table", "locus", "allele", "reason"]
    assert listed[1:] == ["g.tsv\tTRB\tTRBV2*01\tof another species: Mus musculus"]
    line = error_line(hpcvdj_command("germline", "import", tmp_path / "s.fasta", "-o", tmp_path / "g.tsv", code=2)[1])
    assert "g.tsv: exists already" in line
    assert sorted(os.listdir(tmp_path)) == ["g.refused.tsv", "g.tsv", "s.fasta"]


def test_names_of_other_kinds_are_refused(tmp_path):
    (tmp_path / "s.fasta").write_text(fasta([V1, D1, J1]))
    line = error_line(hpcvdj_command("germline", "import", tmp_path / "s.fasta", "-o", tmp_path / "g.csv", code=2)[1])
    assert line.rstrip().endswith("g.csv: a germline table is TSV, so its name must end in .tsv or .tsv.gz")
    assert os.listdir(tmp_path) == ["s.fasta"]


def test_the_command_leaves_no_table_that_cannot_be_counted_with(tmp_path):
    (tmp_path / "v.fasta").write_text(fasta([V1]))
    line = error_line(hpcvdj_command("germline", "import", tmp_path / "v.fasta", "-o", tmp_path / "g.tsv", code=2)[1])
    assert "g.tsv: no J allele of locus TRB could be used; name the file with its J genes" in line
    assert sorted(os.listdir(tmp_path)) == ["g.refused.tsv", "v.fasta"]
    ungapped = fasta([V1, J1]).replace(".", "")
    (tmp_path / "u.fasta").write_text(ungapped)
    line = error_line(hpcvdj_command("germline", "import", tmp_path / "u.fasta", "-o", tmp_path / "h.tsv", code=2)[1])
    assert "no V allele of locus TRB could be used (1 refused, most with: no anchor: the sequence is not gapped" in line
    assert "; correct the source, or take another, or give only the other loci" in line
    assert line.rstrip().endswith(f"; {tmp_path / 'h.refused.tsv'} has the reasons of all refused alleles")


OF_ANOTHER = "table\tlocus\tallele\treason\nother.tsv\tTRB\tTRBV1*01\tno anchor\n"


@pytest.mark.parametrize(("own", "code"), [("", 0), ("table\tlocus\n", 2), ("my notes\n", 2), (OF_ANOTHER, 2)])
def test_the_list_of_a_run_without_a_table_is_replaced(tmp_path, own, code):
    source, command = tmp_path / "s.fasta", ("germline", "import", tmp_path / "s.fasta", "-o", tmp_path / "g.tsv")
    source.write_text(fasta([V1, J1]).replace(".", ""))
    hpcvdj_command(*command, code=2)
    if own:
        (tmp_path / "g.refused.tsv").write_text(own)
    source.write_text(fasta([V1, J1]))
    _, err = hpcvdj_command(*command, code=code)
    if code:
        assert "g.refused.tsv: exists already" in err
        assert sorted(os.listdir(tmp_path)) == ["g.refused.tsv", "s.fasta"]
    else:
        # A list beside a table belongs to the table.
        assert "exists already" in hpcvdj_command(*command, code=2)[1]


def test_the_commands_explain_themselves():
    assert "import" in hpcvdj_command("germline", "--help")[0]
    assert "IMGT-gapped FASTA" in hpcvdj_command("germline", "import", "--help")[0]


def test_where_refusals_go(tmp_path):
    names = {"a.b.txt": "a.b.txt", "macaque_trb.tsv": "macaque_trb", "macaque_trb.tsv.gz": "macaque_trb"}
    for name, stem in names.items():
        assert refused_path(tmp_path / name) == tmp_path / f"{stem}.refused.tsv"
