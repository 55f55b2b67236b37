"""What the commands log as warnings, Python functions warn of: once, in words of Python, at the caller's line."""

import subprocess
import sys
import warnings

import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj import public
from tests.conftest import GERMLINE


def warned(function, *args, **options):
    """The warnings of a call, which must name this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args, **options)
    own = [each for each in found if issubclass(each.category, hpcvdj.HpcvdjWarning)]
    assert {each.filename for each in own} <= {__file__}
    return [str(each.message) for each in own]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Two tables of which one has rows that are left out."""
    folder = tmp_path_factory.mktemp("cohort")
    for name in "ab":
        table = hpcvdj.generate("human_trb_m15", 300, seed=ord(name), productive=True).to_pandas()
        table.loc[3, "v_call"], table.loc[5, "junction"] = "TRBV99", "TGTNNN"
        table.to_csv(folder / f"{name}.tsv", sep="\t", index=False)
    return [folder / "a.tsv", folder / "b.tsv"]


@pytest.mark.slow
def test_sharing_of_paths(cohort, capfd):
    said = warned(hpcvdj.sharing, cohort, "human_trb_m15", draws=1_000, backend="cpu")
    of_a = [line for line in said if "2 of 600 rows excluded" in line or "of 600 rows excluded:" in line]
    assert len(of_a) == 1, said
    assert "V gene TRBV99 is not in the model" in of_a[0]
    assert "\n" not in of_a[0]
    assert len(said) == len(set(said))
    assert "excluded" not in capfd.readouterr().err


def test_pgen_of_amino_acids():
    table = pa.table({"v_call": ["TRBV6-5"], "j_call": ["TRBJ2-7"], "junction_aa": ["CASSYSYEQYF"]})
    said = warned(hpcvdj.pgen, table, "human_trb_m15", backend="cpu")
    assert "amino acids are read, from junction_aa: for nucleotides, all tables need a filled column junction" in said


@pytest.mark.slow
def test_rows_without_nucleotides(tmp_path):
    """Of probabilities, an option reads them; of tests, a table without the column."""
    table = hpcvdj.generate("human_trb_m15", 300, seed=1, productive=True, backend="cpu").to_pandas()
    table.loc[200:, "junction"] = ""
    line = (
        ": 100 of the first 300 rows that were compared have amino acids (junction_aa) but no nucleotides (junction), "
    )
    (of_pgen,) = (text for text in warned(hpcvdj.pgen, table, "human_trb_m15", backend="cpu") if line in text)
    assert of_pgen.endswith("; sequence_field='junction_aa' reads the amino acids of all rows")
    assert not any(line in text for text in warned(hpcvdj.pgen, table, "human_trb_m15", sequence_field="junction_aa"))
    (of_test,) = (text for text in warned(hpcvdj.enrich, table, "human_trb_m15", backend="cpu") if line in text)
    assert "; leave out the column junction" in of_test
    parts = {"a": table[:150], "b": table[150:]}
    # It reads nucleotides only, so that there is no remedy.
    assert not any(line in text for text in warned(hpcvdj.contamination, parts, "human_trb_m15", min_low=1))


@pytest.mark.slow
def test_infer_where_one_table_has_no_read_counts(tmp_path):
    for name, reads in (("a", {"duplicate_count": 2}), ("b", {})):
        table = hpcvdj.generate("human_trb_m15", 300, seed=ord(name), backend="cpu").to_pandas()
        table.assign(**reads).to_csv(tmp_path / f"{name}.tsv", sep="\t", index=False)
    paths = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    said = warned(hpcvdj.infer, paths, "human_trb_m15", rows="all", hold_out=0, backend="cpu")
    assert said[0] == (
        "b.tsv: no column duplicate_count, so that the counts of the other tables are not used; likely sequencing "
        "errors cannot be told, and take part"
    )


def test_motifs(tmp_path):
    (tmp_path / "s.fasta").write_text(">a\nACGTAC\n>b\nACG\n")
    (tmp_path / "n.fasta").write_text(">a\nACG\n>b\nAC\n")
    files = [tmp_path / "s.fasta", tmp_path / "n.fasta"]
    said = warned(hpcvdj.motifs.compare, files, k=8, d=1)
    assert any("so none has a k-mer" in line for line in said), said


def test_a_warning_is_given_once_and_nothing_stays():
    table = pa.table({"v_call": ["TRBV99"], "j_call": ["TRBJ2-7"], "junction": ["TGTTTT"]})
    said = warned(hpcvdj.count, table, GERMLINE)
    assert len(said) == len(set(said)) > 0
    with pytest.raises(hpcvdj.InputError):
        hpcvdj.count(table, GERMLINE, strict=True)
    assert public._collectors == []
    assert not [own for own in public.log.handlers if isinstance(own, public._Collector)]


SCRIPT = """import warnings
import pyarrow as pa
import hpcvdj
table = pa.table({"v_call": ["TRBV6-5"], "j_call": ["TRBJ2-7"], "junction_aa": ["CASSYSYEQYF"]})
hpcvdj.pgen(table, hpcvdj.load_model("human_trb_m15"), backend="cpu")
warnings.warn("of another program")
"""


def test_a_warning_is_one_line(tmp_path):
    """With its place in a script; others keep theirs, with the line of code."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    read, example, *other = done.stderr.splitlines()
    place = f"{tmp_path}/script.py"
    said = "amino acids are read, from junction_aa: for nucleotides, all tables need a filled column junction"
    assert read == f"{place}:5: HpcvdjWarning: {said}"
    assert example.startswith(f"{place}:5: HpcvdjWarning: human_trb_m15 is an example")
    assert other == [f"{place}:6: UserWarning: of another program", '  warnings.warn("of another program")']


def test_a_warning_in_a_notebook_has_no_place(monkeypatch):
    monkeypatch.setattr(public, "in_notebook", lambda: True)
    message = hpcvdj.HpcvdjWarning("2 of 600 rows excluded")
    line = warnings.formatwarning(message, hpcvdj.HpcvdjWarning, "/tmp/ipykernel_1/2.py", 3)
    assert line == "HpcvdjWarning: 2 of 600 rows excluded\n"
