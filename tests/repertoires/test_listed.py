"""Lists of junctions or CDR3s, one a line: what they are is told by their lines, and wrong lines are named."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.repertoires.formats.format import REASON
from hpcvdj.repertoires.formats.listed import Listed
from hpcvdj.repertoires.readers import open_table
from tests.commands import error_line, hpcvdj_command
from tests.repertoires.program_tables import NT

JUNCTIONS = ["CASSLGETQYF", "CASSPGTEAFF", "CASSQDRGNEKLFF", "CAWSVGQETQYF"]
CDR3S = [text[1:-1] for text in JUNCTIONS]
NUCLEOTIDES = [NT, "TGCGCCAGCTCCGGGACTAGCTTC", "TGTGCCAGCAGTGAACAGTACTTCG"]


def rows_of(path, field):
    reader = open_table(path)
    assert reader.columns == ["sequence_id", field, Listed.COLUMN]
    return pa.Table.from_batches(reader.batches([field]))[field].to_pylist()


@pytest.mark.parametrize(
    ("lines", "field"),
    [(JUNCTIONS, "junction_aa"), (CDR3S, "cdr3_aa"), (NUCLEOTIDES, "junction"), (JUNCTIONS[:1], "junction_aa"),
     (CDR3S[2:3], "cdr3_aa"), (NUCLEOTIDES[:1], "junction")],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a", "a.csv.gz"])
def test_what_a_list_is(tmp_path, name, end, lines, field):
    path = tmp_path / name
    text = end.join([*lines[:-1], lines[-1].lower()]).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert rows_of(path, field) == lines


def test_blanks_around_sequences_and_lines_of_blanks(tmp_path):
    (tmp_path / "a.txt").write_text("\ufeff" + "\n".join([f" {JUNCTIONS[0]}", "   ", f"{JUNCTIONS[1]}  ", ""]))
    assert rows_of(tmp_path / "a.txt", "junction_aa") == [JUNCTIONS[0], "", JUNCTIONS[1]]


def test_a_few_lines_may_be_out_of_frame_or_lack_an_end(tmp_path):
    lines = [*JUNCTIONS * 5, "CAS_F", "CAS*SF", "ASSLGETQYF", "CASSLGETQY"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert rows_of(tmp_path / "a.txt", "junction_aa") == lines


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*JUNCTIONS, "", NT], "line 6: nucleotides, and other lines are amino acids; give each kind its own list"),
        ([*NUCLEOTIDES, JUNCTIONS[0]], "line 4: amino acids, and other lines are nucleotides"),
        ([*JUNCTIONS, *CDR3S[:2]], "line 5: 67 % of the first lines begin with C, so it is not clear"),
        ([*CDR3S, JUNCTIONS[0]], "line 5: 20 % of the first lines begin with C, so it is not clear"),
        ([text[:-1] for text in [*JUNCTIONS[::2], JUNCTIONS[3]]], "line 1: begins with C, as most lines, and does not"),
        ([text[3:-3] for text in NUCLEOTIDES], "line 1: does not begin with the codon of Cys 104"),
        (["ACGTACGTACG"], "line 1: neither clearly amino acids nor nucleotides"),
    ],
)
def test_lists_that_are_mixed_or_unclear(tmp_path, lines, message):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"a\.txt, line \d+: ") as error:
        open_table(path).columns  # noqa: B018
    assert str(error.value).startswith(f"{path}, {message}")
    assert "\n" not in str(error.value)


def test_a_wrong_line_far_behind_the_first_ones(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join([*JUNCTIONS * 40_000, "", NT, "", JUNCTIONS[0]]))
    with pytest.raises(InputError, match="line 160002: nucleotides, and other lines are amino acids"):
        list(open_table(path).batches())


@pytest.mark.parametrize("header", ["junction_aa", "cdr3", "CDR3", "JUNCTION", "sequence", "x", "amino_acid", "clone"])
def test_a_column_with_a_name_is_no_list(tmp_path, header):
    path = tmp_path / "a.txt"
    path.write_text("\n".join([header, *JUNCTIONS]))
    assert open_table(path).given_columns == [header]


@pytest.mark.slow
def test_values_are_those_of_a_table(tmp_path):
    """Without the conserved residues, those of any residue at 118."""
    for name, lines in (("a.txt", JUNCTIONS), ("b.txt", CDR3S)):
        (tmp_path / name).write_text("\n".join(lines))

    def pgen(*arguments):
        return hpcvdj_command("pgen", *arguments, "-m", "human_trb_m15", "--genes", "any", "-o", "-")[0]

    out = pgen(tmp_path / "a.txt")

    def values_of(text):
        return [float(line.split("\t")[-2]) for line in text.splitlines()[1:]]

    table = hpcvdj.pgen(pa.table({"junction_aa": JUNCTIONS}), "human_trb_m15", genes="any")
    assert values_of(out) == table["pgen_aa"].to_pylist()
    assert hpcvdj.pgen(JUNCTIONS, "human_trb_m15", genes="any").equals(table)
    without = pgen(tmp_path / "b.txt")
    open_ends = hpcvdj.pgen(pa.table({"junction_aa": [f"C{text}X" for text in CDR3S]}), "human_trb_m15", genes="any")
    assert values_of(without) == open_ends["pgen_aa"].to_pylist()
    assert without.split("\t")[:2] == ["sequence_id", "cdr3_aa"]
    assert hpcvdj.pgen(CDR3S, "human_trb_m15", genes="any")["pgen_aa"].equals(open_ends["pgen_aa"])
    piped = hpcvdj_command(
        "pgen", "-", "-m", "human_trb_m15", "--genes", "any", "-o", "-", stdin="\n".join(JUNCTIONS).encode()
    )[0]
    assert piped == out


def test_stored_results_of_cdr3s(tmp_path):
    (tmp_path / "b.txt").write_text("\n".join([*CDR3S, "AS?F"]))
    target = tmp_path / "o.h5"
    hpcvdj_command("pgen", tmp_path / "b.txt", "-m", "human_trb_m15", "--genes", "any", "-o", target)
    with hpcvdj.Result(target) as result:
        assert result.to_table()["cdr3"].to_pylist()[: len(CDR3S)] == CDR3S
    hpcvdj_command("export", target, "-o", tmp_path / "o.tsv")
    assert "cdr3_aa contains '?'" in (tmp_path / "o.tsv").read_text()


def test_a_list_has_no_calls(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(JUNCTIONS))
    for command in ("pgen", "enrich", "infer-selection"):
        _, err = hpcvdj_command(command, path, "-m", "human_trb_m15", "-o", tmp_path / "o.tsv", code=2)
        assert "a.txt: a list of junction_aa has no v_call, j_call; give a table that has them" in error_line(err)
    _, err = hpcvdj_command("contamination", path, "-m", "human_trb_m15", "-o", tmp_path / "o.tsv", code=2)
    assert "the table has amino acids only (junction_aa), and this needs nucleotides" in error_line(err)
    assert not (tmp_path / "o.tsv").exists()


def test_lists_become_tables(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(JUNCTIONS))
    hpcvdj.convert([tmp_path / "a.txt"], tmp_path / "o.tsv")
    table = hpcvdj.read_table(tmp_path / "o.tsv")
    assert table["junction_aa"].to_pylist() == JUNCTIONS
    assert set(table["junction"].to_pylist()) == {""}
    # The column junction is there, and has no values: amino acids are read.
    values = hpcvdj.pgen(tmp_path / "o.tsv", "human_trb_m15", genes="any")
    assert values["pgen_aa"].equals(hpcvdj.pgen(JUNCTIONS, "human_trb_m15", genes="any")["pgen_aa"])


@pytest.mark.parametrize("sequences", [[*JUNCTIONS, NT], [NT, JUNCTIONS[0]]])
def test_sequences_in_memory_of_two_kinds(sequences):
    with pytest.raises(InputError, match=r"^sequence [25]: .*, and other lines are "):
        hpcvdj.pgen(sequences, "human_trb_m15", genes="any")


@pytest.mark.parametrize("field", ["junction", "junction_aa", "cdr3_aa"])
def test_a_table_without_rows_or_types(field):
    empty = pa.table({name: pa.nulls(0) for name in ("v_call", "j_call", field)})
    for genes in ("call", "any"):
        assert len(hpcvdj.pgen(empty, "human_trb_m15", genes=genes, sequence_field=field)) == 0
    with pytest.raises(InputError, match="no clonotype is left"):
        hpcvdj.enrich(empty, "human_trb_m15")
    with pytest.raises(InputError, match="the table a, the table b: no data rows; leave such tables out"):
        hpcvdj.sharing({"a": empty, "b": empty}, "human_trb_m15")


def test_a_folder_takes_lists(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(JUNCTIONS))
    (tmp_path / "notes.txt").write_text("these are notes\n")
    from hpcvdj.repertoires.folders import tables_in

    assert [table.path for table in tables_in([tmp_path])] == [tmp_path / "a.txt"]
    assert REASON not in open_table(tmp_path / "a.txt").columns
