"""hpcvdj.repertoires.junctions: every row counted or excluded by name; grouping and packing."""

import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.calls import CallPolicy
from hpcvdj.recombination.germline import Germline, Segment
from hpcvdj.recombination.symbols import Alphabet
from hpcvdj.repertoires import inputs
from hpcvdj.repertoires.inputs import Inputs, read_table, tables_of
from hpcvdj.repertoires.junctions import read_junctions
from hpcvdj.repertoires.reading import Reading, productive_reading
from hpcvdj.repertoires.sequence_fields import fields_of
from hpcvdj.repertoires.table import Table, table_of
from hpcvdj.repertoires.tally import reason_lines
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from tests.commands import hpcvdj_command
from tests.conftest import SMALL
from tests.problems import repertoire_of_rows

HEADER = "sequence_id\tv_call\tj_call\tjunction\textra\n"

GERMLINE = Germline(
    tuple(
        Segment(*row)
        for row in (
            ("TRB", "V", "TRBV1*01", "F", "GCC"),
            ("TRB", "V", "TRBV1*02", "F", "GCT"),
            ("TRB", "V", "TRBV2*01", "F", "GAA"),
            ("TRB", "D", "TRBD1*01", "F", "GGG"),
            ("TRB", "J", "TRBJ1-1*01", "F", "TTC"),
            ("TRA", "V", "TRAV1*01", "F", "GCA"),
            ("TRA", "J", "TRAJ1*01", "F", "TTA"),
        )
    )
)


def read_file(path, germline=GERMLINE, **options):
    return Inputs.of_file(path, Reading(**options)).read(germline)


def write(path, *rows):
    path.write_text(HEADER + "".join("\t".join(row) + "\tx\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("", "TRBJ1-1", "TGTTTT"), "no V call"),
        (("TRBV1", "", "TGTTTT"), "no J call"),
        (("TRBV9", "TRBJ1-1", "TGTTTT"), "V gene TRBV9 is not in the germline table"),
        (("TRBV1*09", "TRBJ1-1", "TGTTTT"), "V allele TRBV1*09 is not in the germline table, other alleles of TRBV1"),
        (("TRBV1,TRBV2", "TRBJ1-1", "TGTTTT"), "ambiguous V call TRBV1,TRBV2"),
        (("TRBV1", "TRAJ1", "TGTTTT"), "V is of locus TRB, J of TRA"),
        (("TRBV1", "TRBJ1-1", ""), "no junction"),
        (("NA", "TRBJ1-1", "TGTTTT"), "no V call"),
        (("TRBV1", "nan", "TGTTTT"), "no J call"),
        (("TRBV1", "TRBJ1-1", "NA"), "no junction"),
        (("TRBV1", "TRBJ1-1", "NaN"), "no junction"),
        (("TRBV1", "TRBJ1-1", "TGTTT"), "junction of 5 nt is shorter than its two anchor codons"),
        (("TRBV1", "TRBJ1-1", "TGTNTT"), "junction contains 'N', not only A, C, G, T"),
        (("TRBV1", "TRBJ1-1", "TGT.TTT"), "junction contains '.'"),
        (
            ("TRBV1", "TRBJ1-1", "CASSLGQNTEAFF"),
            "junction contains 'S', not only A, C, G, T; these seem to be amino acids",
        ),
        (("TRBV1", "TRBJ1-1", "A" * 500), "CDR3 of 494 nt is longer than 128 nt"),
        # The sequence comes first, then V, then J.
        (("TRBV9", "", "TGTNTT"), "junction contains 'N'"),
        (("TRBV1", "TRAJ1", ""), "no junction"),
        (("", "", "TGTTTT"), "no V call"),
        (("", "TRAJ1", "TGTTTT"), "no V call"),
        (("TRAV1", "TRBJ9", "TGTTTT"), "J gene TRBJ9 is not in the germline table"),
    ],
)
def test_a_row_that_cannot_be_counted_is_excluded_by_name(tmp_path, row, reason):
    path = write(tmp_path / "t.tsv", ("good", "TRBV1", "TRBJ1-1", "TGTGCCTTT"), ("bad", *row))
    junctions = read_file(path)
    assert (len(junctions), junctions.rows_read) == (1, 2)
    assert junctions.excluded.row.tolist() == [1]
    assert junctions.excluded.sequence_id == ["bad"]
    assert junctions.excluded.messages[0].startswith(reason)
    with pytest.raises(InputError, match=r"t.tsv, data row 2 \(bad\): ") as caught:
        read_file(path, strict=True)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("v_call", "allele"),
    [
        ("Musmus TRBV1*02 F", "TRBV1*02"),
        ("Musmus TRBV1*02 (F)", "TRBV1*02"),
        ("Musmus TRBV1*02 [ORF]", "TRBV1*02"),
        (" TRBV2*01 ", "TRBV2*01"),
        ("TRBV2*00", "TRBV2*01"),
        ("TRBV2,TRBV2*00", "TRBV2*01"),
        ("Musmus TRBV1*01 F, or Musmus TRBV2*01 F", None),
        ("Musmus TRBV1*01 F or Musmus TRBV2*01 F", None),
        ("some TRBV", None),
    ],
)
def test_calls_as_other_programs_write_them(tmp_path, v_call, allele):
    junctions = read_file(write(tmp_path / "t.tsv", ("a", v_call, "TRBJ1-1", "TGTTTT")))
    assert [v.allele for v, _ in junctions.repertoire.pairs] == ([allele] if allele else [])
    assert not junctions.substituted, "these are the calls"
    if not allele:
        assert junctions.excluded.messages[0].startswith(("ambiguous V call Musmus", "V gene TRBV is not"))


def test_the_other_policies_take_the_first_and_say_so(tmp_path):
    rows = [("a", "TRBV2,TRBV1", "TRBJ1-1", "TGTTTT"), ("b", "TRBV1*09", "TRBJ1-1", "TGTTTT")]
    rows.append(("c", "TRBV1*02,TRBV1*02", "TRBJ1-1*01", "TGTTTT"))
    junctions = read_file(write(tmp_path / "t.tsv", *rows), calls=CallPolicy("first", "first"))
    assert [v.allele for v, _ in junctions.repertoire.pairs] == ["TRBV1*01", "TRBV1*02", "TRBV2*01"]
    assert sorted(junctions.substituted) == [("TRBV1*09", "TRBV1*01", 1), ("TRBV2,TRBV1", "TRBV2*01", 1)]


def test_repeated_calls_of_one_allele_are_not_ambiguous(tmp_path):
    path = write(tmp_path / "t.tsv", ("c", "TRBV1*02, TRBV1*02", "TRBJ1-1", "TGTTTT"))
    assert len(read_file(path)) == 1


def test_missing_amino_acids(tmp_path):
    """NA is no junction of asparagine and alanine."""
    table = pa.table({"v_call": ["TRBV1"] * 3, "j_call": ["TRBJ1-1"] * 3, "junction_aa": ["NA", "null", "CNAF"]})
    junctions = read_table(table, GERMLINE, Reading("junction_aa", alphabet=Alphabet.of()))
    assert junctions.excluded.messages == ["no junction_aa"] * 2
    columns = table.append_column("junction", pa.array(["NA"] * 3))
    assert fields_of(table_of(columns)) == ["junction_aa"]


def test_a_missing_repertoire_has_the_name_of_the_table(tmp_path):
    for name in "ab":
        rows = "".join(f"s{k}\tTRBV1\tTRBJ1-1\tTGTTTT\tNA\n" for k in range(2))
        (tmp_path / f"{name}.tsv").write_text("sequence_id\tv_call\tj_call\tjunction\trepertoire_id\n" + rows)
    several = surveyed(tables_of([tmp_path], Reading()), Run())
    assert several.repertoires == ["a", "b"]
    assert several.read(GERMLINE).repertoire_ids == ["a", "b"]


def test_duplicate_ids_keep_the_first_row(tmp_path):
    rows = [(f"s{k % 4}", "TRBV1", "TRBJ1-1", "TGTTTT") for k in range(6)]
    junctions = read_file(write(tmp_path / "t.tsv", *rows))
    assert junctions.row.tolist() == [0, 1, 2, 3]
    assert junctions.excluded.row.tolist() == [4, 5]
    assert junctions.excluded.messages[0] == "sequence_id repeats that of data row 1"


def test_the_rows_of_a_table_in_memory_are_told_apart_by_their_places(tmp_path):
    """Tables of two samples, one after another, have ids twice."""
    path = write(tmp_path / "t.tsv", *[(f"s{k % 2}", "TRBV1", "TRBJ1-1", "TGTTTT") for k in range(4)])
    table = hpcvdj.read_table(path)
    assert read_table(table, GERMLINE, Reading()).row.tolist() == [0, 1, 2, 3]
    assert len(read_file(path)) == 2


def test_what_keeps_rows_with_repeated_ids_is_said(tmp_path):
    path = tmp_path / "t.tsv"
    rows = "".join(f"s1\tTRBV1\tTRBJ1-1\tTGTTTT\tr{k}\n" for k in range(2))
    path.write_text("sequence_id\tv_call\tj_call\tjunction\trepertoire_id\n" + rows)
    _, err = hpcvdj_command("count", path, "-g", "mouse_trb", "-o", tmp_path / "o.tsv")
    assert "--together keeps those that have another repertoire_id" in err
    out, _ = hpcvdj_command("count", path, "-g", "mouse_trb", "-o", tmp_path / "p.tsv", "--together")
    assert "2 read = 2 counted" in out


def test_rows_are_grouped_by_pair_and_keep_their_order(tmp_path):
    calls = [
        ("TRBV2", "TRBJ1-1"),
        ("TRBV1", "TRBJ1-1"),
        ("TRAV1", "TRAJ1"),
        ("TRBV1*02", "TRBJ1-1"),
        ("TRBV1", "TRBJ1-1"),
    ]
    rows = [(f"s{k}", v, j, f"TGT{'ACGT'[k % 4] * k}TTT") for k, (v, j) in enumerate(calls)]
    junctions = read_file(write(tmp_path / "t.tsv", *rows))
    assert [v.allele for v, _ in junctions.repertoire.pairs] == ["TRBV1*01", "TRBV1*02", "TRBV2*01", "TRAV1*01"]
    assert junctions.repertoire.offsets.tolist() == [0, 2, 3, 4, 5]
    assert junctions.row.tolist() == [1, 4, 3, 0, 2]
    assert [junctions.repertoire.cdr3(k) for k in range(5)] == [rows[r][3][3:-3] for r in junctions.row]
    ids = [name.decode() for name in junctions.id_bytes(slice(0, 5))]
    assert ids == [rows[r][0] for r in junctions.row]
    assert [text.decode() for text in junctions.cdr3_bytes(slice(1, 4))] == [
        junctions.repertoire.cdr3(k) for k in (1, 2, 3)
    ]


def test_lower_case_blank_lines_quotes_and_carriage_returns(tmp_path):
    path = tmp_path / "t.tsv"
    text = HEADER + 's"1\tTRBV1\tTRBJ1-1\ttgtgccttt\t"\n\n' + "s2\tTRBV1\tTRBJ1-1\tTGTGCCTTT\tx\n"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    junctions = read_file(path)
    assert [junctions.repertoire.cdr3(k) for k in range(2)] == ["GCC", "GCC"]
    assert junctions.ids.to_pylist() == ['s"1', "s2"]


def test_the_cdr3_field_is_taken_whole(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("sequence_id\tv_call\tj_call\tcdr3\ns1\tTRBV1\tTRBJ1-1\tGCCTTC\ns2\tTRBV1\tTRBJ1-1\t\n")
    junctions = read_file(path, sequence_field="cdr3")
    assert junctions.repertoire.cdr3(0) == "GCCTTC"
    assert junctions.excluded.messages == ["no cdr3"]


def assert_same(a, b):
    for name in ("words", "lengths", "offsets"):
        assert np.array_equal(getattr(a.repertoire, name), getattr(b.repertoire, name))
    assert np.array_equal(a.row, b.row)
    assert [v.allele + j.allele for v, j in a.repertoire.pairs] == [v.allele + j.allele for v, j in b.repertoire.pairs]


def test_every_kind_of_table_gives_the_same(tmp_path, paper_germline):
    from pyarrow import csv

    plain = read_file(SMALL, paper_germline)
    packed = tmp_path / "named_wrongly.tsv"
    packed.write_bytes(gzip.compress(SMALL.read_bytes()))
    assert_same(plain, read_file(packed, paper_germline))
    table = csv.read_csv(SMALL, parse_options=csv.ParseOptions(delimiter="\t"))
    # Parquet as other tools write it: dictionaries, booleans and nulls.
    coded = table.set_column(1, "v_call", table["v_call"].dictionary_encode())
    pq.write_table(coded, tmp_path / "t.parquet", row_group_size=77)
    assert_same(plain, read_file(tmp_path / "t.parquet", paper_germline))
    assert_same(plain, read_table(table, paper_germline, Reading()))
    assert_same(plain, read_table(table.to_pandas(), paper_germline, Reading()))
    assert_same(plain, read_table(table.drop_columns(["sequence_id"]), paper_germline, Reading()))


def test_batches_of_any_size_give_the_same(paper_germline, monkeypatch):
    plain = read_file(SMALL, paper_germline)
    monkeypatch.setattr("hpcvdj.repertoires.readers.text.BLOCK_BYTES", 1 << 12)
    small = read_file(SMALL, paper_germline)
    assert_same(plain, small)
    assert small.ids.to_pylist() == plain.ids.to_pylist()


def test_words_follow_the_longest_sequence(paper_germline):
    rows = [("TRBV1", "TRBJ1-1", "G" * 64)]
    assert repertoire_of_rows(paper_germline, rows).words.shape == (1, 2)
    rows.append(("TRBV1", "TRBJ1-1", "G" * 65))
    mixed = repertoire_of_rows(paper_germline, rows)
    assert mixed.words.shape == (2, 4)
    assert [len(mixed.cdr3(k)) for k in range(2)] == [64, 65]


def test_nulls_in_a_data_frame_are_missing_values(paper_germline):
    frame = pd.DataFrame({"v_call": ["TRBV1", None], "j_call": ["TRBJ1-1", "TRBJ1-1"], "junction": [None, "TGTTTT"]})
    assert read_table(frame, paper_germline, Reading()).excluded.messages == ["no junction", "no V call"]


def test_other_objects_are_refused(paper_germline):
    with pytest.raises(InputError, match="from a list"):
        read_table([1, 2], paper_germline, Reading())
    with pytest.raises(InputError, match="no column v_call"):
        read_table(pa.table({"junction": ["A"]}), paper_germline, Reading())


def test_no_batches(paper_germline):
    empty = read_junctions([], paper_germline, Reading(), [Table(SMALL)])
    assert (len(empty), empty.repertoire.longest, len(empty.repertoire.pairs), empty.rows_read) == (0, 0, 0, 0)


def test_a_table_without_rows_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"t\.tsv: no data rows; the table has names of columns only"):
        read_file(write(tmp_path / "t.tsv"))


def test_a_parquet_file_without_rows_is_refused(tmp_path):
    """It has no header line."""
    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in HEADER.split()}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: no data rows; the table has names of columns only"):
        read_file(tmp_path / "t.parquet")


def test_real_rows_are_all_accounted_for(shared_data):
    from hpcvdj.recombination.germline import read_germline
    from tests.conftest import ROOT

    germline = read_germline(ROOT / "inputs/germline/mouse_trb.tsv")
    junctions = read_file(shared_data / "mouse_TRB_dash2017.tsv.gz", germline)
    rows = np.concatenate([junctions.row, junctions.excluded.row])
    assert np.array_equal(np.sort(rows), np.arange(1924))


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path = write(tmp_path / "growing.tsv", ("a", "TRBV1", "TRBJ1-1", "TGTGCCTTT"))
    right = inputs.read_junctions

    def read_and_grow(*arguments):
        junctions = right(*arguments)
        with open(path, "a") as stream:
            stream.write("b\tTRBV1\tTRBJ1-1\tTGTGCCTTT\tx\n")
        return junctions

    monkeypatch.setattr(inputs, "read_junctions", read_and_grow)
    with pytest.raises(InputError, match=r"growing\.tsv: changed while it was read"):
        read_file(path)


@pytest.mark.filterwarnings("ignore::hpcvdj.HpcvdjWarning")
def test_a_table_of_another_locus_than_the_model():
    """No call of it is known, neither of V nor of J."""
    table = pa.table({"v_call": ["TRAV1-1", "TRAV1-2"], "j_call": ["TRAJ1", "TRAJ2"], "junction": ["TGTGCCTTT"] * 2})
    found = hpcvdj.pgen(table, "human_trb_m15", backend="cpu")
    assert found["pgen_excluded"].to_pylist() == [
        f"V gene {gene} is of locus TRA (the model is of TRB)" for gene in ("TRAV1-1", "TRAV1-2")
    ]
    assert found["pgen_nt"].null_count == 2


def dictionary_table(v_calls, dictionary):
    """A table whose V calls are stored as a dictionary, which may have calls of no row."""
    indices = pa.array([None if call is None else dictionary.index(call) for call in v_calls], pa.int32())
    rows = len(v_calls)
    return pa.table({
        "sequence_id": [f"s{k}" for k in range(rows)],
        "v_call": pa.DictionaryArray.from_arrays(indices, pa.array(dictionary)),
        "j_call": ["TRBJ1-1", "TRBJ2-7"] * (rows // 2),
        "junction": ["TGTGCCAGCAGTTTAGGACAGAACACTGAAGCTTTCTTT"] * rows,
    })  # fmt: skip


@pytest.mark.parametrize(
    "calls",
    [
        ["TRBV9", "TRBV5-1", "TRBV9", "TRBV5-1"],
        ["TRBV9", None, "TRBV5-1", "TRBV9"],
        ["TRBV9*01", "TRBV99", "", "TRBV5-1"],
        ["TRBV5-1", "TRBV9", "TRBV5-1,TRBV9", "NA"],
    ],
)
def test_dictionaries_of_calls_are_what_their_texts_are(tmp_path, calls):
    """The pairs of a model are in the order of the rows, whatever the order of a dictionary is."""
    model = hpcvdj.load_model("human_trb_m15")
    dictionary = ["TRBV30", "TRBV5-1", "TRBV99", "", "NA", "TRBV9", "TRBV9*01", "TRBV5-1,TRBV9", "a\0b"]
    table = dictionary_table(calls, dictionary)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=3)
    pq.write_table(table.cast(pa.schema([(name, pa.string()) for name in table.column_names])), tmp_path / "u.parquet")
    inputs = Inputs.of_file(tmp_path / "t.parquet", Reading())
    batches = list(inputs.rows_of(inputs.tables[0]))
    assert {str(batch["v_call"].type)[:10] for batch in batches} == {"dictionary"}
    stored, plain = (read_file(tmp_path / name, model) for name in ("t.parquet", "u.parquet"))
    assert_same(stored, plain)
    assert stored.substituted == plain.substituted
    assert stored.excluded.messages == plain.excluded.messages


def test_texts_of_a_dictionary_that_cannot_be_stored(tmp_path):
    table = dictionary_table(["TRBV9", "TRBV9", "TRBV9\0", "TRBV9"], ["TRBV9", "TRBV9\0"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet, data row 3: v_call has a NUL byte; remove it"):
        read_file(tmp_path / "t.parquet")


def test_calls_of_other_types_in_parquet(tmp_path):
    table = dictionary_table(["TRBV9", "TRBV5-1"], ["TRBV9", "TRBV5-1"])
    lists = table.set_column(1, "v_call", pa.array([["TRBV9"], ["TRBV5-1", "TRBV9"]]))
    pq.write_table(lists, tmp_path / "t.parquet")
    model = hpcvdj.load_model("human_trb_m15")
    pairs = read_file(tmp_path / "t.parquet", model).repertoire.pairs
    assert [v.allele for v, _ in pairs] == ["TRBV9*01", "TRBV5-1*01,TRBV9*01"]


@pytest.mark.parametrize("values", [["T", "F", " false", "", "n/a", "F"], [True, False, False, None, None, False]])
@pytest.mark.parametrize("field", ["junction", "cdr3_aa"])
def test_rows_that_the_table_marks_as_not_productive(values, field):
    """A stop or a shift of the frame in V, before the junction, cannot be seen in the junction."""
    productive, other = {"junction": ("TGTGCCTTC", "TGTTAATTC"), "cdr3_aa": ("A", "*")}[field]
    columns = {"v_call": ["TRBV1*01"] * 6, "j_call": ["TRBJ1-1*01"] * 6, field: [productive] * 5 + [other]}
    table = pd.DataFrame(columns | {"productive": pd.Series(values, dtype=object)})
    excluded = read_table(table, GERMLINE, productive_reading([field])).excluded
    fault = "UNPRODUCTIVE" if field == "junction" else "STOP_CODON"
    kinds = [excluded.exclusion(k).kind.name for k in range(len(excluded))]
    assert (excluded.row.tolist(), kinds) == ([1, 2, 5], ["MARKED_UNPRODUCTIVE", "MARKED_UNPRODUCTIVE", fault])
    every = read_table(table, GERMLINE, replace(productive_reading([field]), productive=None))
    assert {0, 1, 2, 3, 4} <= {*every.row.tolist()}


def test_blanks_within_junctions_can_be_seen_in_the_summary():
    junctions = ["TGT GCC", "TGTGCC\u00a0", "TGT'", "TGTGCCTTC"]
    table = pa.table({"v_call": ["TRBV1"] * 4, "j_call": ["TRBJ1-1"] * 4, "junction": junctions})
    lines = reason_lines(read_table(table, GERMLINE, Reading()).excluded.counts())
    assert {line.split(maxsplit=1)[1] for line in lines[1:]} == {"'", "' '", "'\\xa0'"}
