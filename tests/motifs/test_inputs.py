"""Several inputs, productive rows, the default score: `hpcvdj motifs` of repertoires against plain loops."""

import gzip
import json
import re
import shutil

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.cli import motifs
from hpcvdj.errors import InputError
from hpcvdj.motifs.comparison import compare_sequences
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.sequences import inputs_of, read_inputs
from hpcvdj.motifs.settings import MotifConfig
from hpcvdj.repertoires.productive import productive_rows
from hpcvdj.runs.run import Run
from tests.commands import error_line, hpcvdj_command
from tests.kernels.kmers.cases import random_text

HEADS = ("sequence_id", "v_call", "junction", "productive")


def write(path, rows, heads=HEADS):
    text = "".join("\t".join(row) + "\n" for row in (heads, *rows))
    path.write_bytes(gzip.compress(text.encode()) if path.name.endswith(".gz") else text.encode())
    return path


def repertoire(rng, n, pool):
    """Rows with shared and own junctions, ids that are the same in every table, and rows to leave out."""
    rows = []
    for k in range(n):
        inner = pool[rng.integers(len(pool))] if k % 2 else random_text(rng, 3 * int(rng.integers(4, 9)))
        text = "TGT" + inner + "TTT"
        rows.append((f"s{k}", f"TRBV{k % 3}", text.lower() if k % 5 == 0 else text, "TFT"[k % 3]))
    return [*rows, ("empty", "", "", "T"), ("no call", "", "TGTTTT", "")]


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(3)
    pool = [random_text(rng, 18) for _ in range(6)]
    return [write(tmp_path / name, repertoire(rng, 20, pool)) for name in ("one.tsv", "two.tsv.gz", "three.tsv")]


def rows_of(path):
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode()
    head, *lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


def expected_set(paths, keep):
    """{junction: (name, tables)} by plain loops."""
    first, members = {}, {}
    for path in paths:
        table = re.sub(r"\.tsv(\.gz)?$", "", path.name)
        for row in rows_of(path):
            text = row["junction"].upper()
            if text and keep(row):
                first.setdefault(text, (table, row["sequence_id"]))
                members.setdefault(text, {})[table] = True
    ids = [own for _, own in first.values()]
    return {
        text: (f"{table}:{own}" if len(paths) > 1 and ids.count(own) > 1 else own, ",".join(members[text]))
        for text, (table, own) in first.items()
    }


def test_words_for_productive():
    """pandas writes 1.0 for a number in a column with missing values."""
    texts = pa.array(["T", "true", "1", "1.0", "Yes", "y", "F", "0", "no", "", None])
    assert productive_rows(texts, "productive").to_pylist() == [True] * 6 + [False] * 4 + [None]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("rows", ["productive", "all"])
def test_the_set_is_that_of_the_definition(tables, number, rows):
    paths = tables[:number]
    found = read_inputs(inputs_of(paths), rows=rows)
    expected = expected_set(paths, lambda row: rows == "all" or row["productive"] == "T")
    assert [found.sequences.text(k) for k in range(len(found.sequences))] == list(expected)
    assert found.sequences.names == [name for name, _ in expected.values()]
    assert found.tables == ([own for _, own in expected.values()] if number > 1 else [])
    for own, path in zip(found.inputs, paths, strict=True):
        read = rows_of(path)
        assert (own.rows, own.without) == (len(read), 1)
        left_out = sum(row["junction"] != "" and row["productive"] != "T" for row in read)
        assert own.not_productive == (left_out if rows == "productive" else 0)
        assert left_out > 5
    if number > 1:
        assert any("," in own for own in found.tables)
        assert any(":" in name for name in found.sequences.names)


def test_without_the_column_the_junction_tells(tmp_path):
    junctions = ["TGTGCCTTT", "TGTGCCTT", "TGTTAATTT", "GGTGCCTTT", "tgcgcctgg"]
    path = write(tmp_path / "x.tsv", list(zip("abcde", junctions, strict=True)), ("sequence_id", "junction"))
    found = read_inputs(inputs_of([path]))
    assert found.sequences.names == ["a", "e"]
    assert (found.inputs[0].told_by, found.inputs[0].not_productive) == ("junction", 3)
    assert read_inputs(inputs_of([path]), rows="all").sequences.names == list("abcde")
    write(path, list(zip("abcde", junctions, strict=True)), ("sequence_id", "cdr3"))
    cdr3 = read_inputs(inputs_of([path]), "cdr3")
    assert (len(cdr3.sequences), cdr3.inputs[0].told_by) == (5, "")
    words = ("motifs", "compare", path, "--sequence-field", "cdr3", "-k", 4, "-d", 0, "-o", tmp_path / "o.h5")
    assert "5 rows, all used, as no column says which are productive" in hpcvdj_command(*words)[0]
    words = ("motifs", "compare", path, "--sequence-field", "cdr4", "-k", 4, "-d", 0, "-o", tmp_path / "p.h5")
    assert error_line(hpcvdj_command(*words, code=2)[1]).endswith(
        f"{path}: no column cdr4; --sequence-field COLUMN names the column of the sequences (this table has "
        "sequence_id, cdr3)"
    )


def test_fasta_files_are_one_set(tmp_path):
    a, b = tmp_path / "a.fasta", tmp_path / "b.fa"
    a.write_text(">x\nACGTN\n>y\nGGGG\n")
    b.write_text(">x\nTTTTA\n>z\nACGTN\n")
    found = read_inputs(inputs_of([a, b]))
    assert found.sequences.names == ["a:x", "y", "b:x", "z"]
    assert [found.sequences.text(k) for k in range(4)] == ["ACGTN", "GGGG", "TTTTA", "ACGTN"]
    assert found.tables == ["a", "a", "b", "b"]


def test_amino_acids_are_refused(tmp_path):
    table = write(
        tmp_path / "g.tsv",
        [("a", "CASSLGQGNTEAFF", ""), ("b", "cassygrgsyneqff", "")],
        ("sequence_id", "junction_aa", ""),
    )
    fasta = tmp_path / "g.fasta"
    fasta.write_text(">a\nCASSLGQGNTEAFF\n>b\nCASSYGRGSYNEQFF\n")
    output = tmp_path / "o.h5"
    for words in (
        ("compare", table, "--sequence-field", "junction_aa", "-k", 4, "-d", 1, "-o", output),
        ("compare", fasta, "-k", 4, "-d", 1, "-o", output),
        ("show", table, "a", "b", "--sequence-field", "junction_aa", "-k", 4, "-d", 1),
    ):
        line = error_line(hpcvdj_command("motifs", *words, code=2)[1])
        assert f"{words[1]}: the sequences look like amino acids (31 % of the letters are E, F, I, L, P or Q)" in line
    assert not output.exists()
    with pytest.raises(InputError, match="look like amino acids"):
        hpcvdj.motifs.compare(["CASSLGQGNTEAFF", "CASSYGRGSYNEQFF"], k=4, d=1)


def test_ambiguous_nucleotides_are_no_amino_acids(tmp_path):
    path = tmp_path / "a.fasta"
    texts = ["ACGTURYSWKMBDHVN", "NNNNNNNNNNNNNNNN", "WSKMVDHBWSKMVDHB", "ACGTACGTXXXX-*.?"]
    path.write_text("".join(f">{k}\n{text}\n" for k, text in enumerate(texts)))
    assert len(read_inputs(inputs_of([path])).sequences) == len(texts)


@pytest.mark.parametrize(("kind", "score"), [("table", "cosine"), ("fasta", "weights")])
def test_the_default_score(tables, tmp_path, kind, score):
    path = tables[0]
    if kind == "fasta":
        path = tmp_path / "x.fasta"
        path.write_text(">a\nACGTACGT\n>b\nACGTACGA\n")
    words = ("motifs", "compare", path, "-k", 5, "-d", 1, "--min-score", 0.1, "-o")
    assert f"score      {score}" in hpcvdj_command(*words, tmp_path / "o.h5")[0]
    hpcvdj_command(*words, tmp_path / "p.h5", "--score", score)
    with MotifResult(tmp_path / "o.h5") as one, MotifResult(tmp_path / "p.h5") as other:
        assert one.to_table().equals(other.to_table())
        assert len(one.to_table())
    # The score that was settled is what two runs must have in common.
    line = error_line(hpcvdj_command(*words, tmp_path / "o.h5", "--resume", "--score", "background", code=2)[1])
    assert f"score was {score}, is background" in line
    hpcvdj_command(*words, tmp_path / "o.h5", "--resume", "--score", score)


def test_every_command_says_the_tables(tables, run, tmp_path):
    pytest.importorskip("matplotlib")
    nx = pytest.importorskip("networkx")
    result = tmp_path / "o.h5"
    expected = dict(expected_set(tables, lambda row: row["productive"] == "T").values())
    out, _ = hpcvdj_command("motifs", "compare", *tables, "-k", 5, "-d", 1, "--min-score", 0.2, "-o", result)
    assert out.count("not productive by the column productive left out, 1 without a sequence") == 3
    run(motifs.export, result, "-o", tmp_path / "e.parquet")
    edges = pq.read_table(tmp_path / "e.parquet").to_pylist()
    assert edges
    assert all(edge[f"tables_{k}"] == expected[edge[f"name_{k}"]] for edge in edges for k in (1, 2))
    run(motifs.export, result, "-o", tmp_path / "e.graphml")
    assert dict(nx.read_graphml(tmp_path / "e.graphml").nodes(data="tables")) == expected
    run(motifs.export, result, "-o", tmp_path / "e.npz")
    assert np.load(tmp_path / "e.npz")["tables"].tolist() == list(expected.values())
    run(motifs.plot, result, "-o", tmp_path / "n.svg")
    a, b = edges[0]["name_1"], edges[0]["name_2"]
    options = (*tables, a, b, "-k", 5, "-d", 1, "--output-format")
    assert f"of {expected[b]}\n" in run(motifs.show, *options, "table")
    facts = json.loads(run(motifs.show, *options, "json"))
    assert [own["tables"] for own in facts["sequences"]] == [expected[a], expected[b]]
    assert run(motifs.show, *options, "tsv").splitlines()[1].split("\t")[-2:] == [expected[a], expected[b]]
    # Tables that were moved: their folder.
    (tmp_path / "moved").mkdir()
    for path in tables:
        path.rename(tmp_path / "moved" / path.name)
    words = ("motifs", "cluster", result, "-o", tmp_path / "c.tsv", "--overwrite", "--algorithm", "components")
    assert "--sequences says where it is" in hpcvdj_command(*words)[1]
    assert [row["tables"] for row in rows_of(tmp_path / "c.tsv")] == list(expected.values())
    hpcvdj_command(*words, "--sequences", tmp_path / "moved")
    rows = rows_of(tmp_path / "c.tsv")
    assert list(rows[0])[5:] == ["tables", "v_call", "junction", "consensus"]
    assert [row["name"] for row in rows] == list(expected)
    line = error_line(hpcvdj_command(*words, "--sequences", tmp_path / "moved" / "one.tsv", code=2)[1])
    assert "is one file, but several were compared" in line
    line = error_line(hpcvdj_command(*words, "--sequences", tmp_path / "nowhere", code=2)[1])
    assert line.endswith(f"{tmp_path / 'nowhere'}: not there; name with --sequences where it is")
    (tmp_path / "half").mkdir()
    shutil.copy(tmp_path / "moved" / tables[0].name, tmp_path / "half")
    line = error_line(hpcvdj_command(*words, "--sequences", tmp_path / "half", code=2)[1])
    assert line.endswith(f"{tmp_path / 'half' / tables[1].name}: not there; name with --sequences where it is")
    write(tmp_path / "moved" / "one.tsv", [("a", "V", "TGTTTT", "T")])
    line = error_line(hpcvdj_command(*words, "--sequences", tmp_path / "moved", code=2)[1])
    assert "one.tsv: is not what was compared" in line


def test_bad_inputs_are_one_line(tables, tmp_path):
    fasta, again = tmp_path / "x.fasta", tmp_path / "sub" / "one.tsv"
    fasta.write_text(">a\nACGT\n")
    again.parent.mkdir()
    write(again, [("a", "V", "TGTTTT", "T")])
    twice = write(tmp_path / "twice.tsv", [("a", "V", "TGTTTT", "T"), ("a", "V", "TGTTTC", "T")])
    comma = write(tmp_path / "a,b.tsv", [("a", "V", "TGTTTT", "T")])
    false = write(tmp_path / "false.tsv", [("a", "V", "TGTTTT", "F")])
    for paths, message in (
        ((tables[0], fasta), "x.fasta: is a FASTA file, but"),
        ((tables[0], tables[0]), "is named twice; name each table once"),
        ((tables[0], again), "would be called one, like"),
        ((tables[0], twice), "twice.tsv: two sequences are called 'a'"),
        ((tables[0], comma), "a comma separates the names of tables"),
        ((tables[0], tmp_path / "none.tsv"), "none.tsv: no such file"),
        ((false,), "1 rows are not productive; --rows all takes them"),
    ):
        err = hpcvdj_command("motifs", "compare", *paths, "-k", 4, "-d", 0, "-o", tmp_path / "o.h5", code=2)[1]
        assert message in error_line(err)
        assert not list(tmp_path.glob("o.h5*"))


def test_a_table_that_changed_is_not_resumed(tables, tmp_path):
    words = ("motifs", "compare", *tables, "-k", 4, "-d", 0, "-o", tmp_path / "o.h5")
    hpcvdj_command(*words)
    hpcvdj_command(*words, "--resume")
    assert "rows was productive, is all" in hpcvdj_command(*words, "--resume", "--rows", "all", code=2)[1]
    write(tables[1], [("a", "V", "TGTTTT", "T")])
    assert "(two changed)" in error_line(hpcvdj_command(*words, "--resume", code=2)[1])


def test_results_of_version_1_are_refused(tables, tmp_path):
    compare_sequences(
        inputs_of(tables[:1]), MotifConfig(k=5, d=0, rows="all", backend="cpu"), Run().to(tmp_path / "o.h5")
    )
    with h5py.File(tmp_path / "o.h5", "r+") as file:
        file.attrs["format_version"] = 1
    with pytest.raises(InputError, match=r"o\.h5: an earlier version of hpcvdj wrote it; compare again"):
        MotifResult(tmp_path / "o.h5")


@pytest.mark.parametrize("name", ["sequences/inputs", "inputs/path"])
def test_a_result_with_wrong_inputs_is_refused(tables, tmp_path, name):
    compare_sequences(inputs_of(tables), MotifConfig(k=5, d=0, backend="cpu"), Run().to(tmp_path / "o.h5"))
    with h5py.File(tmp_path / "o.h5", "r+") as file:
        values = file[name][:-1]
        del file[name]
        file[name] = values
    with pytest.raises(InputError, match=r"o\.h5"):
        MotifResult(tmp_path / "o.h5")


def test_rows_without_an_id_have_the_names_of_their_numbers(tmp_path):
    junctions = ["TGTGCCTTT", "TGTTGCTTT", "TGTGGATTT", "TGTAAATTT"]
    path = write(
        tmp_path / "x.tsv", list(zip(["", "b", "NA", ""], junctions, strict=True)), ("sequence_id", "junction")
    )
    assert read_inputs(inputs_of([path])).sequences.names == ["1", "b", "3", "4"]


def test_python_takes_lists_and_dicts(tables):
    options = {"k": 5, "d": 1, "min_score": 0.2}
    frames = [hpcvdj.read_table(path, kind="pyarrow") for path in tables[:2]]
    with (
        hpcvdj.motifs.compare([str(path) for path in tables[:2]], **options) as files,
        hpcvdj.motifs.compare(dict(zip(("one", "two"), frames, strict=True)), **options) as named,
        hpcvdj.motifs.compare([tables[0], frames[1]], **options) as mixed,
    ):
        assert files.to_table().equals(named.to_table())
        assert {re.sub("^2:", "two:", name) for name in mixed.names} == set(files.names)
        assert set(mixed.tables) == {"one", "2", "one,2"}
        assert hpcvdj.motifs.cluster(named, algorithm="components")["tables"].to_pylist() == files.tables
    for wrong, message in (
        (["ACGT", pa.table({})], "item 2 of the list is a Table, others are sequences"),
        (["ACGTACGT", str(tables[0])], "item 2 of the list is the file"),
        ([None, frames[0]], "cannot read junctions from a NoneType"),
        ([], "no sequences to compare; give at least one"),
    ):
        with pytest.raises(InputError, match=message):
            hpcvdj.motifs.compare(wrong, **options)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_several_inputs_on_ranks(tables, tmp_path, ranks, on_ranks):
    words = ["motifs", "compare", *tables, "-k", 5, "-d", 1, "--min-score", 0.2, "-o"]
    hpcvdj_command(*words, tmp_path / "one.h5")
    on_ranks(ranks, *words, tmp_path / "other.h5")
    with MotifResult(tmp_path / "one.h5") as one, MotifResult(tmp_path / "other.h5") as other:
        assert one.to_table().equals(other.to_table())
        assert len(one.to_table())
        assert one.tables == other.tables
