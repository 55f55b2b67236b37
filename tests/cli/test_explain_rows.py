"""`hpcvdj explain`: rows of a result, and tables that no width cuts."""

import json
import re

import pytest

from hpcvdj.recombination.igor import load_model
from hpcvdj.results.reader import Result
from tests.cli.pgen_tables import frame_of, written
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.recombination.igor_files import mouse_junctions


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A result of pathways with options that are not the default."""
    path = tmp_path_factory.mktemp("explain") / "c.h5"
    hpcvdj_command("count", SMALL, "-g", GERMLINE, "-o", path, "--max-n", 4, "--max-p", 2, "--d-forms", "distinct")
    return path


@pytest.mark.slow
def test_a_row_is_explained_as_it_was_counted(counted):
    with Result(counted) as result:
        rows = result.to_table().select(["sequence_id", "v_call", "j_call"]).slice(0, 500).to_pylist()
        counters = result.counters[:].tolist()
    for place in (0, 7, 499):
        row = rows[place]
        out, _ = hpcvdj_command("explain", counted, "--id", row["sequence_id"], "--output-format", "json")
        found = json.loads(out)
        assert found["pathways_by_n_length"] == counters[place]
        assert row["v_call"] in out
        assert row["j_call"] in out
    out, _ = hpcvdj_command("explain", counted, "--id", row["sequence_id"], "--max-n", "all")
    assert "D forms distinct" in out
    assert "n-lengths 0-4," not in out


def test_an_id_of_several_repertoires(tmp_path, model):
    """One JSON document, which names each repertoire, in the order of the input."""
    # In the result, the row of the second table comes first: its V gene does.
    rows = sorted(mouse_junctions(load_model(model), 40), reverse=True)
    own = {"b[1]": rows[0], "a": rows[-1]}
    assert rows[0][0] > rows[-1][0]
    tables = [tmp_path / f"{name}.tsv" for name in own]
    for path, row in zip(tables, own.values(), strict=True):
        lines = ["sequence_id", "v_call", "j_call", "junction"], ["s0", *row]
        path.write_text("".join("\t".join(line) + "\n" for line in lines))
    hpcvdj_command("count", *tables, "--together", "-g", GERMLINE, "-o", tmp_path / "c.h5", "--max-n", 4)
    hpcvdj_command("pgen", *tables, "--together", "-m", model, "-o", tmp_path / "p.h5")
    for result, key in (("c.h5", "cdr3"), ("p.h5", "junction")):
        words = ("explain", tmp_path / result, "--id", "s0", "--list", 0)
        explained = json.loads(hpcvdj_command(*words, "--output-format", "json")[0])
        assert [part["repertoire_id"] for part in explained] == list(own)
        assert all(part[key] in row[2] for part, row in zip(explained, own.values(), strict=True))
        out, _ = hpcvdj_command(*words)
        assert [line for line in out.splitlines() if line.startswith("repertoire")] == [
            "repertoire b[1]",
            "repertoire a",
        ]
    hpcvdj_command("count", tables[0], "-g", GERMLINE, "-o", tmp_path / "one.h5", "--max-n", 4)
    words = ("explain", tmp_path / "one.h5", "--id", "s0")
    assert json.loads(hpcvdj_command(*words, "--output-format", "json")[0])["repertoire_id"] == "b[1]"
    assert "repertoire" not in hpcvdj_command(*words)[0]


@pytest.mark.olga
def test_a_row_of_probabilities(tmp_path):
    hpcvdj_command("pgen", SMALL, "-m", "mouse_trb", "-o", tmp_path / "p.h5", "--force")
    with Result(tmp_path / "p.h5") as result:
        row = result.to_table().slice(0, 1).to_pylist()[0]
    out, _ = hpcvdj_command("explain", tmp_path / "p.h5", "--id", row["sequence_id"], "--output-format", "json")
    assert json.loads(out)["pgen_nt"] == pytest.approx(row["pgen_nt"], rel=1e-9)
    assert row["cdr3"] in json.loads(out)["junction"]


def test_the_junction_of_a_row_keeps_its_anchors(model, tmp_path):
    """Cys 104 as TGC, where the model's V allele has TGT: only an insertion makes it."""
    v, j, junction = max(mouse_junctions(load_model(model), 40), key=lambda row: len(row[2]))
    other = "TGC" + junction[3:]
    table = written(frame_of([(v, j, junction), (v, j, other)]), tmp_path)
    hpcvdj_command("pgen", table, "-m", model, "-o", tmp_path / "p.h5")
    with Result(tmp_path / "p.h5") as result:
        values = result.counters[:, 0].tolist()
    for place, own in enumerate((junction, other)):
        out, _ = hpcvdj_command("explain", tmp_path / "p.h5", "--id", f"s{place}", "--output-format", "json")
        assert json.loads(out)["junction"] == own
        assert json.loads(out)["pgen_nt"] == pytest.approx(values[place], rel=1e-9)


def test_scenarios_need_the_nucleotides_of_a_junction(counted, model, tmp_path):
    (tmp_path / "t.tsv").write_text("sequence_id\tv_call\tj_call\tjunction_aa\ns0\tTRBV1\tTRBJ1-1\tCASSQETQYF\n")
    hpcvdj_command("pgen", tmp_path / "t.tsv", "-m", model, "--genes", "any", "-o", tmp_path / "aa.h5")
    refusal = error_line(hpcvdj_command("explain", tmp_path / "aa.h5", "--id", "s0", code=2)[1])
    assert "aa.h5: has amino acids" in refusal
    refusal = error_line(hpcvdj_command("explain", counted, "--id", "insilico_0", "-m", model, code=2)[1])
    assert "without anchors" in refusal


def test_rows_that_cannot_be_explained(counted, tmp_path):
    def refused(*words):
        return error_line(hpcvdj_command("explain", counted, *words, code=2)[1])

    assert "no sequence_id nobody" in refused("--id", "nobody")
    assert "--v, --max-p: the result records it" in refused("--id", "insilico_0", "--v", "TRBV1", "--max-p", "2")
    (tmp_path / "g.tsv").write_text(GERMLINE.read_text().replace("TRBD1*01", "TRBD1*02"))
    assert "is not the germline table" in refused("--id", "insilico_0", "-g", tmp_path / "g.tsv")
    assert "--id for a row of a result" in refused()


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_width_cuts_data(counted, columns):
    out, _ = hpcvdj_command("explain", counted, "--id", "insilico_7", "--max-n", 8, columns=columns)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= columns
    assert re.search(r"TRBD[12]\*01", out[out.index("The most direct") :])
    # Every number of every pathway is there, whatever the width.
    wide, _ = hpcvdj_command("explain", counted, "--id", "insilico_7", "--max-n", 8, columns=200)
    values = lambda text: sorted(word for word in text.split() if re.fullmatch(r"[ACGT]+|[\d,.]+|TRB.*", word))  # noqa: E731
    missing = set(values(wide)) - set(values(out))
    assert not {word for word in missing if len(word) < 20}


def test_a_long_junction_is_drawn_in_blocks(counted):
    junction = "TGTGCCAGCAGT" + "ACGT" * 12 + "AACCAAGACACCCAGTACTTT"
    words = ("--v", "TRBV26", "--j", "TRBJ2-5", "-g", GERMLINE, "--max-n", "all", "--list", 1)
    out, _ = hpcvdj_command("explain", junction, *words, columns=60)
    tracks = [line[3:].strip() for line in out.splitlines() if re.match(r"1  [·VvnDdJj]+", line)]
    assert sum(map(len, tracks)) == len(junction)
    assert len(tracks) == 2


def test_an_unfinished_result_names_the_commands_that_write_it(tmp_path):
    (tmp_path / "p.h5.parts").mkdir()
    refusal = error_line(hpcvdj_command("export", tmp_path / "p.h5", "-o", tmp_path / "o.tsv", code=2)[1])
    assert "is not complete; `hpcvdj count` or `hpcvdj pgen` with --resume continues it" in refusal
