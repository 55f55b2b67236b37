"""`hpcvdj sharing` and `hpcvdj.sharing`: files in, files out, the same on any number of ranks."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.repertoires.writers import write_table
from tests.commands import error_line, hpcvdj_command
from tests.rows import read_batches


@pytest.fixture
def folder(tmp_path, table):
    """Three tables of one individual each."""
    (tmp_path / "in").mkdir()
    for name, suffix in zip("abc", ("tsv", "tsv.gz", "parquet"), strict=True):
        own = table.filter(pc.equal(table["repertoire_id"], name)).slice(0, 3_000).drop_columns("repertoire_id")
        write_table(tmp_path / "in" / f"{name}.{suffix}", own.combine_chunks().to_batches(), overwrite=False)
    (tmp_path / "meta.tsv").write_text("age\tfile\tbatch\n1\ta.tsv\tx\n2\tb.tsv.gz\ty\n3\tc.parquet\tx\n4\tz\tw\n")
    return tmp_path / "in"


WORDS = ["-m", "human_trb_m15", "--backend", "cpu", "--draws", 1_000]


@pytest.mark.slow
def test_the_command(folder, tmp_path, model):
    words = ["sharing", folder, *WORDS, "--unit", "aa", "--metadata", tmp_path / "meta.tsv", "--group", "batch"]
    outputs = ["-o", tmp_path / "o.tsv", "--overlap", tmp_path / "p.tsv", "--plot", tmp_path / "f.png"]
    out, _ = hpcvdj_command(*words, *outputs, "--q", 0.5)
    assert "overlap     x with y" in out
    assert "AUC         pgen" in out
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert facts["command"] == "sharing"
    assert [own["name"] for own in facts["individuals"]] == ["a", "b", "c"]
    assert [own["group"] for own in facts["individuals"]] == ["x", "y", "x"]
    assert [own["rows_read"] for own in facts["individuals"]] == [3_000] * 3
    assert facts["q"] == 0.5
    assert facts["q_interval"] is None
    assert facts["q_at_bound"] is False
    assert [own["individuals"] for own in facts["spectrum"]] == [1, 2, 3]
    assert {"observed", "expected", "low", "high", "expected_q1"} < {*facts["spectrum"][0]}
    table = pa.Table.from_batches(read_batches(tmp_path / "o.tsv"))
    assert len(table) == sum(own["observed"] for own in facts["spectrum"][1:])
    for row in table.to_pylist():
        assert int(row["n_x"]) + int(row["n_y"]) == int(row["n_individuals"]) == len(row["individuals"].split(","))
    pairs = pa.Table.from_batches(read_batches(tmp_path / "p.tsv")).to_pylist()
    assert [int(row["shared"]) for row in pairs] == [
        facts["overlap"]["shared"][i][j] for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "meta.tsv", "o.tsv", "o.tsv.json", "p.tsv", "f.png"}
    _, err = hpcvdj_command(*words, "-o", tmp_path / "o.tsv", code=2)
    assert "exists already" in error_line(err)


@pytest.mark.exhaustive
def test_from_python(folder, tmp_path, model):
    options = {"draws": 1_000, "backend": "cpu", "unit": "nt"}
    with pytest.warns(hpcvdj.HpcvdjWarning, match="q is 1, its largest"):
        found = hpcvdj.sharing(folder, model, **options)
    paths = sorted(folder.iterdir())
    tables = {path.name[0]: hpcvdj.read_table(path) for path in paths}
    # A table of another program, a data frame and a file, each read as what it is.
    other = pa.table({
        "count": [1] * len(tables["b"]), "cdr3nt": tables["b"]["junction"],
        "cdr3aa": hpcvdj.translate(tables["b"]["junction"].to_pylist()), "v": tables["b"]["v_call"],
        "j": tables["b"]["j_call"],
    })  # fmt: skip
    mixed = {"a": tables["a"].to_pandas(), "b": other, "c": paths[2]}
    with pytest.raises(InputError, match="give tables in memory as a dict, by individual"):
        hpcvdj.sharing([tables["a"], tables["b"]], model)
    for given in (paths, tables, {name: own.to_pandas() for name, own in tables.items()}, mixed):
        with pytest.warns(hpcvdj.HpcvdjWarning):
            own = hpcvdj.sharing(given, model, **options)
        assert own.table.equals(found.table)
        assert own.cohort.individuals == found.cohort.individuals
    assert "max_duplicate_count" not in hpcvdj.sharing(mixed, model, q=1, **options).table.column_names
    together = pa.concat_tables(
        [own.append_column("who", pa.array([name] * len(own))) for name, own in tables.items()],
        promote_options="permissive",
    )
    frame = pa.table({"name": ["a", "b", "c"], "group": ["1", "2", "2"]})
    named = hpcvdj.sharing(together, model, individual="who", metadata=frame, group="group", q=1, **options)
    assert named.table.drop_columns(["n_1", "n_2"]).equals(found.table)
    assert repr(named).startswith("<Sharing of 3 individuals: ")
    for wrong, message in (
        ({"q": 2}, "q=2: give"), ({"draws": 3}, "draws=3: give"), ({"unit": "x"}, "must be one of nt, vj-aa, aa"),
        ({"min_individuals": 0}, "min_individuals=0"),
        ({"min_individuals": 4}, "^min_individuals=4: there are 3 individuals; give at most 3$"),
        ({"individual": "who"}, "individual='who': the keys of a dict"), ({"group": "x"}, "needs metadata"),
        ({"metadata": frame}, "needs group"), ({"metadata": frame, "group": "z"}, "no column z"),
        ({"metadata": frame.slice(1), "group": "group"}, "no group for a"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            hpcvdj.sharing(tables, model, **wrong)
    with pytest.raises(InputError, match="does not name the individuals"):
        hpcvdj.sharing(tables["a"], model)


def test_wrong_usage(folder, tmp_path):
    (tmp_path / "two.tsv").write_text("name\tbatch\na\tx\na\ty\nb\tx\nc\tx\n")
    (tmp_path / "excel.csv").write_text("name;batch\na;x\nb;x\nc;y\n")
    target, excel = tmp_path / "o.tsv", tmp_path / "excel.csv"
    for words, message in (
        ([folder, "-o", target, "--metadata", excel, "--group", "batch"], "columns are separated by semicolons"),
        ([folder / "a.tsv", "-o", target], "only a has productive junctions"),
        ([folder, "-o", tmp_path / "o.h5"], "must end in .tsv"),
        ([folder, "-o", target, "--q", "0"], "give a number from 0.001 to 1"),
        (
            [folder, "-o", target, "--min-individuals", 4],
            "--min-individuals 4: there are 3 individuals; give at most 3",
        ),
        ([folder, "-o", target, "--group", "batch"], "needs --metadata"),
        ([folder, "-o", target, "--individual", "nosuch"], "no column nosuch"),
        ([folder, "-o", target, "--metadata", tmp_path / "two.tsv", "--group", "batch"], "a has the groups x and y"),
        ([folder, "-o", folder / "a.tsv", "--overwrite"], "is an input of this run"),
        ([folder, "-o", target, "--overlap", folder / "a.tsv", "--overwrite"], "is an input of this run"),
        ([folder, "-o", target, "--plot", tmp_path / "f.pdf"], "must end in .png or .svg"),
    ):
        _, err = hpcvdj_command("sharing", *words, *WORDS, code=2)
        assert message in error_line(err), words
    assert {path.name for path in tmp_path.iterdir()} == {"in", "meta.tsv", "two.tsv", "excel.csv"}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_ranks(folder, tmp_path, ranks, on_ranks):
    words = ["sharing", folder, *WORDS, "--seed", 3]
    hpcvdj_command(*words, "-o", tmp_path / "one.tsv")
    on_ranks(ranks, *words, "-o", tmp_path / "many.tsv")
    assert (tmp_path / "many.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
    one, many = (json.loads((tmp_path / f"{name}.tsv.json").read_text()) for name in ("one", "many"))
    for name in ("spectrum", "overlap", "auc", "q", "individuals", "hits"):
        assert one[name] == many[name]


@pytest.mark.exhaustive
def test_standard_output_and_another_species(folder, tmp_path):
    given = ("sharing", folder, "--draws", "2000", "--backend", "cpu", "-o", "-")
    out, err = hpcvdj_command(*given, "-m", "human_trb_m15")
    assert out.startswith("v_call\tj_call\tjunction_aa\t")
    assert "json" not in err
    mouse = tmp_path / "mouse"
    mouse.mkdir()
    for path in sorted(folder.iterdir()):
        rows = hpcvdj.read_table(path).to_pandas().assign(v_call="TRBV13-2")
        rows.to_csv(mouse / f"{path.name.partition('.')[0]}.tsv", sep="\t", index=False)
    _, err = hpcvdj_command(*given[:1], mouse, *given[2:], "-m", "human_trb_m15", code=2)
    assert "species" in err
