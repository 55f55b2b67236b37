"""hpcvdj.repertoires.formats: tables of other programs, each with rows of its own and as in the examples of formats."""

import csv
import json
import zipfile

import pandas as pd
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.errors import InputError, choices, told
from hpcvdj.recombination.exclusions import Exclusion
from hpcvdj.repertoires.formats.format import REASON, Format, Opening, names_of_headerless, readable
from hpcvdj.repertoires.read_counts import read_counts
from hpcvdj.repertoires.readers import open_table
from tests.commands import hpcvdj_command
from tests.conftest import ROOT
from tests.repertoires.program_tables import AA, LISTS, NT, OUT, REFUSED, TABLES, written

EXAMPLES = ROOT.parent / "shared" / "formats" / "examples"

NAMED_ONLY = {"10x_all": "10x"}
"""Formats that no header says, and the format that it says instead."""


def rows_of(path, **opening):
    reader = open_table(path, Opening(**opening))
    names = [*reader.columns, *[REASON] * reader.explains]
    return [
        {name: str(Exclusion.from_text(value)) if name == REASON and value else value for name, value in row.items()}
        for row in pa.Table.from_batches(reader.batches(names)).to_pylist()
    ]


def columns_of(name):
    file, text = (TABLES | LISTS | REFUSED)[name]
    header = text.splitlines()[0].split("," if file.endswith(".csv") else "\t")
    return names_of_headerless(header, Opening()) or header


def test_every_format_has_a_table():
    assert {*TABLES, *LISTS} >= set(readable())
    assert {*TABLES, *LISTS, *REFUSED} == set(choices(Format))


def test_the_page_names_every_format():
    page = (ROOT / "docs" / "formats.md").read_text()
    assert all(f"| `{name}` |" in page for name in readable())


@pytest.mark.parametrize("name", [*TABLES, *LISTS, *REFUSED])
def test_a_header_is_recognised_by_its_format_alone(name):
    recognised = {other for other, kind in choices(Format).items() if kind.recognises(columns_of(name))}
    assert recognised == {NAMED_ONLY.get(name, name)}


@pytest.mark.parametrize("name", TABLES)
def test_the_message_names_the_format_once(name, tmp_path, caplog):
    caplog.set_level("INFO")
    path = written(tmp_path, name)
    for _ in range(3):
        list(open_table(path).batches())
    summary = readable()[NAMED_ONLY.get(name, name)].summary
    assert caplog.messages == ([f"{path}: read as {summary}"] if name != "airr" else [])


CALLS = {
    "adaptive": [("TRBV2*01", "TRBJ2-7*01"), ("TRBV6-2,TRBV6-3", "TRBJ1-1*01")],
    "airr": [("TRBV2*01", "TRBJ2-7*01"), ("TRBV1", "TRBJ1-1")],
    "changeo": [("TRBV2*01", "TRBJ2-7*01"), ("TRBV1*01", "TRBJ1-1")],
    "tcrdist3": [("TRBV2*01", "TRBJ2-7*01"), ("TRBV1*01", "TRBJ1-1*01")],
    "trust4": [("TRBV2*01", "TRBJ2-7*01"), ("TRBV1*01", "TRBJ1-1*01")],
}
FRAMED = {"olga", "tcrdist3", "10x", "10x_all", "10x_consensus"}


@pytest.mark.parametrize("name", TABLES)
def test_the_first_rows_of_every_format(name, tmp_path):
    rows = rows_of(written(tmp_path, name), format=name)
    assert [(row["v_call"], row["j_call"]) for row in rows[:2]] == CALLS.get(
        name, [("TRBV2", "TRBJ2-7"), ("TRBV1", "TRBJ1-1")]
    )
    assert [row["junction"] for row in rows[:2]] == [NT, NT if name in FRAMED else OUT]
    assert rows[0].get("junction_aa", AA) == AA
    if name != "olga":
        assert [row["duplicate_count"] for row in rows[:2]] == ["13" if name == "trust4" else "12", "3"]
    assert not any(row.get(REASON) for row in rows[:2])


def test_mixcr_cells_and_regions_that_are_not_covered(tmp_path):
    rows = rows_of(written(tmp_path, "mixcr"))
    assert [row["sequence_id"] for row in rows] == ["0_c1", "0_c2", "1_c2"]
    assert [row["cell_id"] for row in rows] == ["c1", "c2", "c2"]
    assert [row["productive"] for row in rows] == ["T", "F", ""]
    assert (rows[2]["junction"], rows[2]["junction_aa"], rows[2]["v_call"]) == ("", "", "TRAV38-2/DV8")


@pytest.mark.parametrize(
    ("hits", "call"),
    [
        ("TRBV2*00(401.5),TRBV1*00(401.5),TRBV3*00(12)", "TRBV2,TRBV1"),
        ("TRBV2*00(12),TRBV1*00(401.5)", "TRBV1"),
        ("TRBV2*01(9),TRBV2*02(9.0)", "TRBV2*01,TRBV2*02"),
        ("TRBV2*00(1.2E3),TRBV1*00(900)", "TRBV2"),
        ("TRBV2*00(900),TRBV1*00(1e+03)", "TRBV1"),
        ("TRBV2,TRBV1", "TRBV2"),
        ("TRBV2*00", "TRBV2"),
        ("TRAV14DV4*00(5)", "TRAV14/DV4"),
        ("TRAV14D-3DV8*00(5)", "TRAV14D-3/DV8"),
        ("", ""),
        (",", ""),
        ("(", ""),
    ],
)
def test_the_best_hits_of_mixcr_are_the_call(hits, call, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(f"allVHitsWithScore\tbestJGene\tnSeqCDR3\n{hits}\tTRBJ1-1\t{NT}\n")
    assert rows_of(path)[0]["v_call"] == call


def test_10x_contigs_that_are_no_cells_have_a_reason_unless_all_are_read(tmp_path):
    path = written(tmp_path, "10x")
    rows, everything = rows_of(path), rows_of(path, format="10x_all")
    reasons = ["", "", "contig is not of a cell", "contig of low confidence", "contig of several chains", ""]
    assert [row[REASON] for row in rows] == reasons
    assert [row["junction"] for row in rows] == [NT, NT, "", "", "", ""]
    assert [row["junction"] for row in everything] == [*[NT] * 5, ""]
    assert [row["productive"] for row in rows] == ["T", "F", "", "F", "F", ""]
    assert [row["locus"] for row in rows] == ["TRB", "TRB", "TRB", "TRA", "", ""]
    assert [row["v_call"] for row in rows[3:]] == ["TRAV29/DV5", "TRAV29/DV5", ""]
    first = {"cdr3": NT[3:-3], "cdr3_aa": AA[1:-1], "fwr1": "GAT", "fwr1_aa": "D", "cell_id": "A-1"}
    assert {name: rows[0][name] for name in first} == first
    assert not any(rows[2][name] for name in ("junction_aa", "cdr3", "cdr3_aa"))


@pytest.mark.parametrize(
    ("column", "word", "kind"),
    [
        *(("is_cell", word, "contig is not of a cell") for word in ("0.0", "no", "N", " False", "F")),
        *(("is_cell", word, "") for word in ("1.0", "Yes", "TRUE ", "unknown")),
        *(("chain", word, "contig of several chains") for word in ("multi", "MULTI")),
    ],
)
def test_spellings_of_10x_columns(column, word, kind, tmp_path):
    path = written(tmp_path, "10x")
    header, first, *_ = (line.split(",") for line in path.read_text().splitlines())
    first[header.index(column)] = word
    path.write_text("\n".join([",".join(header), ",".join(first), ""]))
    (row,) = rows_of(path)
    assert (row[REASON], row["junction"], row["junction_aa"]) == (kind, "" if kind else NT, "" if kind else AA)


def test_10x_tables_of_several_samples_have_their_ids(tmp_path):
    file, text = TABLES["10x"]
    path = tmp_path / file
    header, *rows = text.splitlines()
    path.write_text("\n".join([f"sample,{header}", *(f"s{k % 2},{row}" for k, row in enumerate(rows))]) + "\n")
    assert [(row["sequence_id"], row["repertoire_id"]) for row in rows_of(path)[:2]] == [
        ("s0_A-1_1", "s0"), ("s1_A-1_2", "s1"),
    ]  # fmt: skip


def test_trust4_words_in_place_of_amino_acids(tmp_path):
    rows = rows_of(written(tmp_path, "trust4"))
    assert [(row["junction_aa"], row["productive"], row[REASON]) for row in rows] == [
        (AA, "T", ""), ("", "F", ""), ("", "", "partial junction"),
    ]  # fmt: skip
    assert rows[2]["junction"] == ""


def test_tcrdist_reads_are_cut_to_the_junction(tmp_path):
    rows = rows_of(written(tmp_path, "tcrdist3"))
    assert [row["junction"] for row in rows] == [NT, NT, ""]
    assert rows[2][REASON].startswith("the junction cannot be cut out of the read")
    assert [bool(row["junction_aa"]) for row in rows] == [True, True, False]
    assert [row["repertoire_id"] for row in rows] == ["d1", "d2", "d2"]


def test_change_o_spellings(tmp_path):
    rows = rows_of(written(tmp_path, "changeo"))
    assert [(row["productive"], row["stop_codon"], row["locus"], row["cell_id"]) for row in rows] == [
        ("T", "F", "TRB", "c1"), ("F", "", "TRB", ""),
    ]  # fmt: skip


def test_airr_names_in_capitals(tmp_path):
    path = tmp_path / "export.tsv"
    names = ("sequence_id", "v_call", "j_call", "junction", "junction_aa", "duplicate_count", "productive")
    values = ("s1", "TRBV2*01", "TRBJ2-7*01", NT, AA, "12", "true")
    path.write_text("\t".join(names).upper() + "\n" + "\t".join(values) + "\n")
    (row,) = rows_of(path)
    assert [row[name] for name in names] == [*values[:-1], "T"]


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_the_oldest_vdjtools_tables(tmp_path, end):
    path = tmp_path / "a.txt"
    header = "#Seq. Count\tPercent\tN Sequence\tAA Sequence\tV segments\tD segment\tJ segments"
    path.write_bytes(end.join([header, f"12\t8.0E-01\t{NT}\t{AA}\tTRBV1, TRBV2\t\tTRBJ1-1", ""]).encode())
    row = rows_of(path)[0]
    assert (row["v_call"], row["junction"], row["duplicate_count"]) == ("TRBV1,TRBV2", NT, "12")
    path.write_text(f"#count\tfreq\tcdr3nt\tcdr3aa\tv\td\tj\n12\t0.1\t{NT}\t.\tTRBV1\t.\tTRBJ1-1\n")
    row = rows_of(path)[0]
    assert (row["junction_aa"], row["d_call"], row["productive"]) == ("", "", "")


@pytest.mark.parametrize(
    ("values", "fields"),
    [((NT, "TRBV2", "TRBJ2-7"), ("junction",)), ((AA, "TRBV2", "TRBJ2-7"), ("junction_aa",))],
)
def test_olga_tables_with_one_kind_of_sequence(tmp_path, values, fields):
    path = tmp_path / "a.csv"
    path.write_text(",".join(values) + "\n" + ",".join(values) + "\n")
    rows = rows_of(path)
    assert [row["sequence_id"] for row in rows] == ["1", "2"]
    assert {"junction", "junction_aa"} & set(rows[0]) == set(fields)


def test_counts_are_whole_numbers(tmp_path):
    path = tmp_path / "a.txt"
    counts = {
        "12": "12",
        "12.0": "12",
        "1.5e1": "15",
        "0.5": "1",
        "": "",
        ".": "",
        "NA": "",
        "None": "",
        " 5 ": "5",
        # Messages name the texts that are no counts.
        "1,000": "1,000",
        "1e99": "1e99",
        "-1": "-1",
        "1" * 30: "1" * 30,
    }
    lines = [f"{count}\t{NT}\t{AA}\tTRBV2\tTRBJ2-7\n" for count in counts]
    path.write_text("".join(["count\tcdr3nt\tcdr3aa\tv\tj\n", *lines]))
    assert [row["duplicate_count"] for row in rows_of(path)] == list(counts.values())
    _, reasons = read_counts(pa.array([row["duplicate_count"] for row in rows_of(path)]))
    assert str(reasons[9]) == "duplicate_count '1,000' is no whole number from 1 to 10^15"


@pytest.mark.parametrize(
    ("name", "column"), [("10x", "umis"), ("10x", "cdr3_nt"), ("mixcr", "uniqueMoleculeCount"), ("vdjtools", "cdr3nt")]
)
def test_a_column_that_is_used_must_be_there_once(tmp_path, name, column):
    """The first of several was taken."""
    path = written(tmp_path, name)
    head, *rows = path.read_text().splitlines()
    delimiter = "," if path.suffix == ".csv" else "\t"
    for further in ("other", column):
        path.write_text(
            "\n".join([head + f"{delimiter}{further}" * 2, *(f"{row}{delimiter}1{delimiter}2" for row in rows)])
        )
        if further == column:
            with pytest.raises(InputError, match=f"line 1: duplicate column {column}; rename one"):
                list(open_table(path).batches(["junction", "duplicate_count"]))
        else:
            assert list(open_table(path).batches(["junction", "duplicate_count"]))


IGBLAST = "sequence_id\tlocus\tstop_codon\tvj_in_frame\tv_call\tj_call\tjunction\tjunction_aa\tcdr3"
FULL = f"s1\tTRB\tF\tT\tTRBV2\tTRBJ2-7\t{NT}\t{AA}\t{NT[3:-3]}"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_igblast_rows_without_a_junction_may_be_short(tmp_path, monkeypatch, end):
    monkeypatch.setattr("hpcvdj.repertoires.readers.reader.READ_BYTES", 100)
    path = tmp_path / "a.tsv"
    short = ["s2", "s3\tTRB", "s4\tTRB\t\t\tTRBV2", "s5\tTRB\t\t\tTRBV2\tTRBJ2-7\t"]
    lines = [IGBLAST, FULL, *short, "", *[FULL] * 20, "s6", FULL]
    path.write_bytes("".join(line + end for line in lines).encode())
    rows = rows_of(path)
    assert [row["junction"] for row in rows] == [NT, *[""] * 4, *[NT] * 20, "", NT]
    assert [row["v_call"] for row in rows[1:5]] == ["", "", "TRBV2", "TRBV2"]
    assert [tuple(row)[-1] for row in rows] == ["cdr3"] * len(rows)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([IGBLAST, FULL, f"s2\tTRB\tF\tT\tTRBV2\tTRBJ2-7\t{NT}"], "line 3: 7 values for 9 columns"),
        ([IGBLAST, FULL, FULL + "\tx"], "line 3: 10 values for 9 columns"),
        ([IGBLAST.replace("stop_codon", "x"), FULL, "s2"], "line 3: 1 values for 9 columns"),
    ],
)
def test_other_short_rows_are_errors(tmp_path, lines, fault):
    path = tmp_path / "a.tsv"
    path.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(InputError, match=fault):
        rows_of(path)


def test_a_row_that_is_cut_short_is_an_error(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(f"{IGBLAST}\n{FULL}\ns2\tTRB")
    with pytest.raises(InputError, match="line 3: 2 values for 9 columns"):
        rows_of(path)


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_cannot_be_read_say_what_to_give(name, tmp_path):
    path = written(tmp_path, name)
    kind = choices(Format)[name]
    with pytest.raises(InputError) as raised:
        rows_of(path)
    assert str(raised.value) == f"{path}, line 1: {kind.summary}; {told(kind.refusal)}"
    assert not open_table(path).recognised


@pytest.mark.parametrize("name", ["migec", "tcr", "rtcr", "tcrdist3_pairs"])
def test_the_columns_that_a_refusal_names_can_be_read(name, tmp_path):
    path = written(tmp_path, name)
    named = choices(Format)[name].refusal.partition("{columns=")[2].partition("}")[0]
    columns = tuple(tuple(pair.split("=")) for pair in named.split(","))
    assert rows_of(path, columns=columns)[0]["junction"] == NT


def test_other_files_are_refused_in_one_line(tmp_path):
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.tsv", "v_call\n")
    files = {
        archive: "zip archive or a workbook",
        tmp_path / "a.vidjil": "JSON, as Vidjil",
        tmp_path / "b.json": "JSON and no table",
        tmp_path / "a.csv": "separated by semicolons",
    }
    (tmp_path / "a.vidjil").write_text(json.dumps({"clones": []}))
    (tmp_path / "b.json").write_text(json.dumps([{"clones": []}]))
    (tmp_path / "a.csv").write_text("v_call;j_call;junction\na;b;c\n")
    for path, message in files.items():
        with pytest.raises(InputError, match=f"{path.name}.*{message}") as raised:
            list(open_table(path).batches(["v_call", "j_call", "junction"]))
        assert "\n" not in str(raised.value)


SAID_OF_EXCLUDED_ROWS = {
    ("adaptive_reduced_mouse.tsv", "2"): {"v_call": "TRBV12", "j_call": "TRBJ2", "productive": "T"},
    ("adaptive_short60.tsv", "2"): {"productive": "F"},
}
"""What the tables say of rows without a junction, where the list of expected values is empty: it is read, too."""


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples of formats are not here")
def test_the_examples_are_read_as_expected():
    with (EXAMPLES / "expected.tsv").open() as stream:
        expected = list(csv.DictReader(stream, delimiter="\t"))
    compared = 0
    for wanted in expected:
        path = EXAMPLES / wanted["file"]
        compared += 1
        if wanted["note"].startswith("refused"):
            with pytest.raises(InputError):
                rows_of(path)
            continue
        # The example of MiXCR's AIRR export has only some of its columns, so that no header says what it is.
        row = rows_of(path, format="mixcr_airr" if path.name == "airr_mixcr.tsv" else None)[int(wanted["row"]) - 1]
        also = SAID_OF_EXCLUDED_ROWS.get((path.name, wanted["row"]), {})
        assert not also or wanted["note"].startswith("excluded")
        values = wanted | also
        for name in ("v_call", "j_call"):
            values[name] = values[name].removesuffix(",...").removesuffix("*00")
        compared_fields = ("v_call", "j_call", "junction", "duplicate_count", "productive")
        assert {name: row.get(name, "") for name in compared_fields} == {name: values[name] for name in compared_fields}
        excluded = wanted["note"].startswith("excluded")
        assert bool(wanted["junction"]) != excluded
    assert compared >= 9
    files = {path.name for path in EXAMPLES.iterdir()}
    for name in files - {row["file"] for row in expected} - {"expected.tsv", "make_examples.py"}:
        if not name.startswith(("adaptive", "immunarch", "anndata", "trust4_barcode")):
            first = rows_of(EXAMPLES / name)[0]
            assert first["junction"].endswith("TACGAGCAGTACTTC"), name
            assert first["v_call"].startswith("TRBV6-5"), name


LACKING = {
    "adaptive": ("nucleotide", "looks like Adaptive immunoSEQ rearrangements, but has no column nucleotide"),
    "vdjtools": ("j", "looks like vdjtools clonotypes, but has no column j"),
    "mixcr": ("nSeqCDR3", "looks like MiXCR clones, but has no column nSeqCDR3"),
    "10x": ("cdr3_nt", "looks like 10x contig annotations"),
}


def lacking(name, column):
    """A table of a format without a column."""
    text = TABLES[name][1] if name != "adaptive" else OLD_ADAPTIVE
    delimiter = "," if "," in text.splitlines()[0] else "\t"
    rows = [line.split(delimiter) for line in text.splitlines()]
    kept = [k for k, head in enumerate(rows[0]) if head != column]
    return "".join(delimiter.join(row[k] for k in kept) + "\n" for row in rows)


OLD_ADAPTIVE = f"nucleotide\taminoAcid\tvGeneName\tjGeneName\tcount\tvIndex\tcdr3Length\n{'A' * 60}\t\t\t\t1\t1\t9\n"


@pytest.mark.parametrize("name", LACKING)
def test_a_table_that_lacks_a_column_of_its_format(name, tmp_path):
    column, said = LACKING[name]
    path = tmp_path / "t.tsv"
    path.write_text(lacking(name, column))
    with pytest.raises(InputError, match=said) as caught:
        open_table(path).require(["sequence_id", "v_call", "j_call", "junction"])
    assert "sequence_id" not in str(caught.value)
    sep = "," if name == "10x" else "\t"
    with pytest.raises(hpcvdj.InputError, match=said):
        hpcvdj.count(pd.read_csv(path, sep=sep, dtype=str, keep_default_na=False), "human_trb")


def test_a_table_of_a_folder_that_lacks_a_column_is_left_out_with_the_reason(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "noj.txt").write_text(lacking("vdjtools", "j"))
    (tmp_path / "t" / "a.txt").write_text(TABLES["vdjtools"][1])
    _, err = hpcvdj_command("convert", tmp_path / "t", "-o", tmp_path / "o.tsv")
    assert "noj.txt: looks like vdjtools clonotypes, but has no column j, left out" in err


def test_a_table_with_capitals_says_which_columns_are_meant(tmp_path):
    """They were left out of a folder without a word about their columns."""
    folder, header = tmp_path / "t", "v_call,J_Call,Junction,junction_aa"
    folder.mkdir()
    (folder / "a.csv").write_text(f"{header}\nTRBV9*01,TRBJ2-1*01,TGTGCCTTC,CAF\n")
    remedy = "--columns j_call=J_Call,junction=Junction"
    said = f"a.csv: looks like AIRR Rearrangement, but with capitals ({remedy} reads it), left out"
    assert said in hpcvdj_command("convert", folder, "-o", tmp_path / "o.tsv", code=2)[1]
    _, err = hpcvdj_command("count", folder / "a.csv", "-g", "human_trb", "-o", tmp_path / "o.tsv", code=2)
    assert f"line 1: no column j_call, junction, but J_Call, Junction; {remedy} reads this table" in err
    out, _ = hpcvdj_command("count", folder, "-g", "human_trb", "-o", tmp_path / "o", *remedy.split())
    assert "1 read = 1 counted" in out
    in_memory = "the table looks like AIRR Rearrangement, but with capitals .*'j_call': 'J_Call'"
    with pytest.raises(hpcvdj.InputError, match=in_memory):
        hpcvdj.count(pd.read_csv(folder / "a.csv"), "human_trb")


def test_a_long_list_of_columns_says_how_many_more(tmp_path):
    (tmp_path / "t.tsv").write_text("\t".join(f"c{k}" for k in range(15)) + "\n")
    with pytest.raises(InputError, match=r"no column v_call, j_call, junction; .*c11 and 3 more\)"):
        open_table(tmp_path / "t.tsv").require(["sequence_id", "v_call", "j_call", "junction"])


def test_reads_without_places_are_said_once(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text(lacking("adaptive", "vIndex"))
    _, err = hpcvdj_command("convert", path, "-o", tmp_path / "o.tsv")
    assert err.count("t.tsv: no column vIndex: junctions are found by their amino acids") == 1


@pytest.mark.parametrize("name", ["vdjtools", "10x", "mixcr"])
@pytest.mark.filterwarnings("ignore::hpcvdj.HpcvdjWarning")
def test_tables_in_memory_get_their_airr_fields(name, tmp_path):
    path = written(tmp_path, name)
    frame = pd.read_csv(path, sep="," if name == "10x" else "\t", dtype=str, keep_default_na=False)
    counted, read = hpcvdj.count(frame.set_index(frame.index + 7), "human_trb"), hpcvdj.count(path, "human_trb")
    for field in ("sequence_id", "v_call", "j_call", "junction", "pathways_total"):
        assert [None if value is pd.NA else value for value in counted[field]] == read[field].to_pylist(), field
    assert counted.index[0] == 7
    assert set(frame) - {"cdr3"} <= set(counted)


def test_utf_16_is_said(tmp_path):
    (tmp_path / "t.tsv").write_bytes("v_call\tj_call\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"UTF-16.*save the table as UTF-8"):
        _ = open_table(tmp_path / "t.tsv").columns
