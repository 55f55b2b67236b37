"""hpcvdj.repertoires.junctions: every row counted or excluded by name; grouping and packing."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import Germline, Segment
from hpcvdj.repertoires import repertoire
from hpcvdj.repertoires.junctions import CallPolicy, build, read_repertoire, repertoire_of
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
        (("TRBV1", "TRBJ1-1", "TGTTT"), "junction of 5 nt is shorter than its two anchor codons"),
        (("TRBV1", "TRBJ1-1", "TGTNTT"), "junction holds 'N', not only A, C, G, T"),
        (("TRBV1", "TRBJ1-1", "TGT.TTT"), "junction holds '.'"),
        (
            ("TRBV1", "TRBJ1-1", "CASSLGQNTEAFF"),
            "junction holds 'S', not only A, C, G, T; these seem to be amino acids",
        ),
        (("TRBV1", "TRBJ1-1", "A" * 500), "CDR3 of 494 nt is longer than 128 nt"),
    ],
)
def test_a_row_that_cannot_be_counted_is_excluded_by_name(tmp_path, row, reason):
    path = write(tmp_path / "t.tsv", ("good", "TRBV1", "TRBJ1-1", "TGTGCCTTT"), ("bad", *row))
    repertoire = read_repertoire(path, GERMLINE)
    assert (len(repertoire), repertoire.rows_read) == (1, 2)
    assert repertoire.excluded.row.tolist() == [1]
    assert repertoire.excluded.sequence_id == ["bad"]
    assert repertoire.excluded.reason[0].startswith(reason)
    with pytest.raises(InputError, match=r"t.tsv, data row 2 \(bad\): ") as caught:
        read_repertoire(path, GERMLINE, strict=True)
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
    repertoire = read_repertoire(write(tmp_path / "t.tsv", ("a", v_call, "TRBJ1-1", "TGTTTT")), GERMLINE)
    assert [v.allele for v, _ in repertoire.pairs] == ([allele] if allele else [])
    assert not repertoire.substituted, "these are the calls"
    if not allele:
        assert repertoire.excluded.reason[0].startswith(("ambiguous V call Musmus", "V gene TRBV is not"))


def test_the_other_policies_take_the_first_and_say_so(tmp_path):
    rows = [("a", "TRBV2,TRBV1", "TRBJ1-1", "TGTTTT"), ("b", "TRBV1*09", "TRBJ1-1", "TGTTTT")]
    rows.append(("c", "TRBV1*02,TRBV1*02", "TRBJ1-1*01", "TGTTTT"))
    repertoire = read_repertoire(write(tmp_path / "t.tsv", *rows), GERMLINE, calls=CallPolicy("first", "first"))
    assert [v.allele for v, _ in repertoire.pairs] == ["TRBV1*01", "TRBV1*02", "TRBV2*01"]
    assert sorted(repertoire.substituted) == [("TRBV1*09", "TRBV1*01", 1), ("TRBV2,TRBV1", "TRBV2*01", 1)]


def test_repeated_calls_of_one_allele_are_not_ambiguous(tmp_path):
    path = write(tmp_path / "t.tsv", ("c", "TRBV1*02, TRBV1*02", "TRBJ1-1", "TGTTTT"))
    assert len(read_repertoire(path, GERMLINE)) == 1


def test_duplicate_ids_keep_the_first_row(tmp_path):
    rows = [(f"s{k % 4}", "TRBV1", "TRBJ1-1", "TGTTTT") for k in range(6)]
    repertoire = read_repertoire(write(tmp_path / "t.tsv", *rows), GERMLINE)
    assert repertoire.row.tolist() == [0, 1, 2, 3]
    assert repertoire.excluded.row.tolist() == [4, 5]
    assert repertoire.excluded.reason[0] == "sequence_id repeats that of data row 1"


def test_rows_are_grouped_by_pair_and_keep_their_order(tmp_path):
    calls = [
        ("TRBV2", "TRBJ1-1"),
        ("TRBV1", "TRBJ1-1"),
        ("TRAV1", "TRAJ1"),
        ("TRBV1*02", "TRBJ1-1"),
        ("TRBV1", "TRBJ1-1"),
    ]
    rows = [(f"s{k}", v, j, f"TGT{'ACGT'[k % 4] * k}TTT") for k, (v, j) in enumerate(calls)]
    repertoire = read_repertoire(write(tmp_path / "t.tsv", *rows), GERMLINE)
    assert [v.allele for v, _ in repertoire.pairs] == ["TRBV1*01", "TRBV1*02", "TRBV2*01", "TRAV1*01"]
    assert repertoire.offsets.tolist() == [0, 2, 3, 4, 5]
    assert repertoire.row.tolist() == [1, 4, 3, 0, 2]
    assert [repertoire.cdr3(k) for k in range(5)] == [rows[r][3][3:-3] for r in repertoire.row]
    ids = [name.decode() for name in repertoire.id_bytes(slice(0, 5), 4)]
    assert ids == [rows[r][0] for r in repertoire.row]
    assert [text.decode() for text in repertoire.cdr3_bytes(slice(1, 4))] == [repertoire.cdr3(k) for k in (1, 2, 3)]


def test_lower_case_blank_lines_quotes_and_carriage_returns(tmp_path):
    path = tmp_path / "t.tsv"
    text = HEADER + 's"1\tTRBV1\tTRBJ1-1\ttgtgccttt\t"\n\n' + "s2\tTRBV1\tTRBJ1-1\tTGTGCCTTT\tx\n"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    repertoire = read_repertoire(path, GERMLINE)
    assert [repertoire.cdr3(k) for k in range(2)] == ["GCC", "GCC"]
    assert repertoire.sequence_id.to_pylist() == ['s"1', "s2"]


def test_the_cdr3_field_is_taken_whole(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("sequence_id\tv_call\tj_call\tcdr3\ns1\tTRBV1\tTRBJ1-1\tGCCTTC\ns2\tTRBV1\tTRBJ1-1\t\n")
    repertoire = read_repertoire(path, GERMLINE, sequence_field="cdr3")
    assert repertoire.cdr3(0) == "GCCTTC"
    assert repertoire.excluded.reason == ["no cdr3"]


def same(a, b):
    assert np.array_equal(a.words, b.words)
    assert np.array_equal(a.lengths, b.lengths)
    assert np.array_equal(a.offsets, b.offsets)
    assert np.array_equal(a.row, b.row)
    assert [v.allele + j.allele for v, j in a.pairs] == [v.allele + j.allele for v, j in b.pairs]


def test_every_kind_of_table_gives_the_same(tmp_path, paper_germline):
    from pyarrow import csv

    plain = read_repertoire(SMALL, paper_germline)
    packed = tmp_path / "named_wrongly.tsv"
    packed.write_bytes(gzip.compress(SMALL.read_bytes()))
    same(plain, read_repertoire(packed, paper_germline))
    table = csv.read_csv(SMALL, parse_options=csv.ParseOptions(delimiter="\t"))
    # Parquet as other tools write it: dictionaries, booleans and nulls.
    coded = table.set_column(1, "v_call", table["v_call"].dictionary_encode())
    pq.write_table(coded, tmp_path / "t.parquet", row_group_size=77)
    same(plain, read_repertoire(tmp_path / "t.parquet", paper_germline))
    same(plain, repertoire_of(table, paper_germline))
    same(plain, repertoire_of(table.to_pandas(), paper_germline))
    same(plain, repertoire_of(table.drop_columns(["sequence_id"]), paper_germline))


def test_batches_of_any_size_give_the_same(paper_germline, monkeypatch):
    plain = read_repertoire(SMALL, paper_germline)
    monkeypatch.setattr("hpcvdj.repertoires.tables.BLOCK_BYTES", 1 << 12)
    small = read_repertoire(SMALL, paper_germline)
    same(plain, small)
    assert small.sequence_id.to_pylist() == plain.sequence_id.to_pylist()


def test_words_follow_the_longest_sequence(paper_germline):
    rows = [("TRBV1", "TRBJ1-1", "G" * 64)]
    assert repertoire_of_rows(paper_germline, rows).words.shape == (1, 2)
    rows.append(("TRBV1", "TRBJ1-1", "G" * 65))
    mixed = repertoire_of_rows(paper_germline, rows)
    assert mixed.words.shape == (2, 4)
    assert [len(mixed.cdr3(k)) for k in range(2)] == [64, 65]


def test_nulls_in_a_data_frame_are_missing_values(paper_germline):
    frame = pd.DataFrame({"v_call": ["TRBV1", None], "j_call": ["TRBJ1-1", "TRBJ1-1"], "junction": [None, "TGTTTT"]})
    assert repertoire_of(frame, paper_germline).excluded.reason == ["no junction", "no V call"]


def test_other_objects_are_refused(paper_germline):
    with pytest.raises(InputError, match="from a list"):
        repertoire_of([1, 2], paper_germline)
    with pytest.raises(InputError, match="no column v_call"):
        repertoire_of(pa.table({"junction": ["A"]}), paper_germline)


def test_no_batches(paper_germline):
    empty = build([], paper_germline)
    assert (len(empty), empty.longest, len(empty.pairs), empty.rows_read) == (0, 0, 0, 0)


def test_real_rows_are_all_accounted_for(shared_data):
    from hpcvdj.recombination.germline import read_germline
    from tests.conftest import ROOT

    germline = read_germline(ROOT / "inputs/germline/mouse_trb.tsv")
    repertoire = read_repertoire(shared_data / "mouse_TRB_dash2017.tsv.gz", germline)
    rows = np.concatenate([repertoire.row, repertoire.excluded.row])
    assert np.array_equal(np.sort(rows), np.arange(1924))


def test_a_file_that_changes_while_it_is_read(tmp_path, paper_germline, monkeypatch):
    path = tmp_path / "growing.tsv"
    path.write_text("sequence_id\tv_call\tj_call\tjunction\na\tTRBV1\tTRBJ1-1\tTGTGCCTTT\n")
    right = repertoire.file_digest

    def digest(path):
        with open(path, "a") as stream:
            stream.write("b\tTRBV1\tTRBJ1-1\tTGTGCCTTT\n")
        return right(path)

    monkeypatch.setattr(repertoire, "file_digest", digest)
    with pytest.raises(InputError, match=r"growing\.tsv: changed while it was read"):
        repertoire.read_repertoire(path, paper_germline)
