"""Germline tables and models by name, and several germline tables at once."""

import json
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pyarrow.parquet as pq
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import Germline
from hpcvdj.recombination.igor import OLGA_FOLDERS, olga_folder
from hpcvdj.recombination.names import imgt_spelling
from hpcvdj.recombination.packaged import germline_names, germline_paths, model_paths
from tests.commands import error_line as whole_line
from tests.commands import hpcvdj_command
from tests.conftest import ROOT, SMALL, TABLES

HUMAN = ("human_igh", "human_igk", "human_igl", "human_tra", "human_trb")


def table_of(path, *rows):
    """A table of rows (v_call, j_call, junction)."""
    lines = ["sequence_id\tv_call\tj_call\tjunction", *(f"s{k}\t" + "\t".join(row) for k, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


TRA = ("TRAV29DV5", "TRAJ23", "TGTGCAGCAAGCGGGGGAAAGCTTATCTTC")
TRB = ("TRBV12-3/12-4", "TRBJ1-1", "TGTGCCAGCAGTTTAGGACAGAACACTGAAGCTTTCTTT")
IGK = ("IGKV1-5", "IGKJ1", "TGCCAACAGTATAATAGTTATTCTTGGACGTTC")


@pytest.fixture
def two_chains(tmp_path):
    return table_of(tmp_path / "cells.tsv", TRA, TRB, (TRA[0], TRB[1], TRB[2]), IGK)


def error_line(err):
    return whole_line(err).removeprefix("hpcvdj: error: ")


def counted(folder, table, *germlines, code=0):
    words = [word for germline in germlines for word in ("-g", germline)]
    out = hpcvdj_command("count", table, *words, "-o", folder / "o.parquet", "--overwrite", code=code)
    return out if code else pq.read_table(folder / "o.parquet").to_pandas()


def test_every_table_has_a_name():
    assert {path.stem for path in TABLES} == set(germline_paths())
    assert germline_names()["human"] == HUMAN
    assert "mouse_trb_paper" not in germline_names()["mouse"]
    for path in TABLES:
        named = hpcvdj.read_germline(path.stem)
        assert (named.segments, named.digest()) == (
            hpcvdj.read_germline(path).segments,
            hpcvdj.read_germline(path).digest(),
        )
        assert named.facts()["germline_path"] == path.stem


def test_a_file_goes_before_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "human_trb").mkdir()
    assert len(hpcvdj.read_germline("human_trb").segments) == 107
    shutil.rmtree(tmp_path / "human_trb")
    shutil.copy(ROOT / "inputs/germline/mouse_igl.tsv", tmp_path / "human_trb")
    assert hpcvdj.read_germline("human_trb").loci == ("IGL",)
    assert "TRB" in hpcvdj.read_germline("human").loci


@pytest.mark.parametrize("command", ["count", "verify", "simulate", "study forms", "explain", "infer"])
def test_an_unknown_name_gets_the_names(tmp_path, command):
    table = {"count": [SMALL], "verify": [SMALL], "infer": [SMALL], "explain": ["TGT", "--v", "TRBV1", "--j", "TRBJ1"]}
    writes = command not in ("verify", "study forms", "explain")
    output = ["-o", tmp_path / ("o.tsv" if command != "infer" else "o")] if writes else []
    given = ["human_xyz"] if command == "study forms" else ["-g", "human_xyz"]
    _, err = hpcvdj_command(*command.split(), *table.get(command, []), *given, *output, code=2)
    line = error_line(err)
    assert line.startswith(
        "human_xyz: no such germline table; give a path, or one of the names human, mouse, human_igh, "
    )
    assert "mouse_trb_paper" in line


def test_the_commands_take_names(tmp_path):
    for name in ("mouse_trb_paper", ROOT / "inputs/germline/mouse_trb_paper.tsv"):
        hpcvdj_command("-q", "count", SMALL, "-g", name, "-o", tmp_path / "o.tsv", "--overwrite")
        shutil.copy(tmp_path / "o.tsv", tmp_path / f"{len(str(name))}.tsv")
    first, second = (path.read_bytes() for path in tmp_path.glob("[0-9]*.tsv"))
    assert first == second
    hpcvdj_command("-q", "simulate", "-g", "mouse_trb", "-n", "10", "-o", tmp_path / "s.tsv")
    assert "362" in hpcvdj_command("study", "forms", "mouse_trb_paper")[0]
    out, _ = hpcvdj_command("explain", TRB[2], "--v", TRB[0], "--j", TRB[1], "-g", "human_trb")
    assert "TRBV12-3*01, TRBJ1-1*01" in out
    out, _ = hpcvdj_command("verify", SMALL, "-g", "mouse_trb", "--sample", "2", "--max-n", "1")
    assert out.count(" 0 differences") == 4


def test_the_tables_are_listed():
    out, _ = hpcvdj_command("germline", "list")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ") and "_" in line}
    assert rows["human_trb"] == ["TRB", "89", "3", "15"]
    assert rows["mouse_trb_paper"] == ["TRB", "20", "2", "12"]
    assert f"human: {', '.join(HUMAN)}" in out
    for name, path in germline_paths().items():
        lines = path.read_text().splitlines()[1:]
        numbers = [str(sum(line.split("\t")[1] == kind for line in lines)) for kind in "VDJ"]
        assert rows[name] == [lines[0].split("\t")[0], *numbers]


@pytest.mark.parametrize("germlines", [["human"], ["human_tra", "human_trb"], ["human_trb", "human_tra"]])
def test_each_row_by_its_locus(tmp_path, two_chains, germlines):
    """As with the table of its locus alone; V and J of two loci are excluded."""
    table = counted(tmp_path, two_chains, *germlines)
    alone = [counted(tmp_path, two_chains, name) for name in ("human_tra", "human_trb", "human_igk")]
    columns = [name for name in table.columns if name.startswith("pathways_n") or name == "weight"]
    for row, one in ((0, alone[0]), (1, alone[1]), (3, alone[2])):
        if row == 3 and germlines != ["human"]:
            assert table["pathways_excluded"][3] == (
                "V gene IGKV1-5 is of locus IGK (the germline table is of TRA, TRB)"
            )
            continue
        assert table["pathways_excluded"][row] == one["pathways_excluded"][row] == ""
        assert table.loc[row, columns].tolist() == one.loc[row, columns].tolist()
        assert table["pathways_total"][row] > 0
    assert table["pathways_excluded"][2] == "V is of locus TRA, J of TRB"
    assert alone[0]["pathways_excluded"][2] == ("J gene TRBJ1-1 is of locus TRB (the germline table is of TRA)")


def test_d_genes_are_those_of_the_locus(tmp_path):
    """TRB has D genes and TRA has none, also where both are given."""
    germline = hpcvdj.read_germline(["human_tra", "human_trb"])
    assert [d.allele for d in germline.d_segments("TRB")] == ["TRBD1*01", "TRBD2*01"]
    assert germline.d_segments("TRA") == ()


def test_what_several_tables_record(tmp_path, two_chains):
    digests = set()
    for germlines in (["human_tra", "human_trb"], ["human_trb", "human_tra", "human_trb"]):
        words = [word for germline in germlines for word in ("-g", germline)]
        hpcvdj_command("-q", "count", two_chains, *words, "-o", tmp_path / "o.h5", "--overwrite")
        with hpcvdj.open(tmp_path / "o.h5") as result:
            facts = result.provenance
            digests.add(facts["germline_sha256"])
            assert facts["germline_path"] == ", ".join(dict.fromkeys(germlines))
    assert len(digests) == 1
    joined = Germline((*hpcvdj.read_germline("human_tra").segments, *hpcvdj.read_germline("human_trb").segments))
    assert digests == {joined.digest()}
    assert digests.isdisjoint({hpcvdj.read_germline(name).digest() for name in HUMAN})


def test_tables_that_disagree(tmp_path, two_chains):
    text = (ROOT / "inputs/germline/human_trb.tsv").read_text()
    own = tmp_path / "own.tsv"
    for old, new in (("TRBV2*01\tF\tGCC", "TRBV2*01\tF\tGCA"), ("TRBV2*01\tF\t", "TRBV2*01\tORF\t")):
        assert old in text
        own.write_text(text.replace(old, new))
        _, err = counted(tmp_path, two_chains, "human_trb", own, code=2)
        line = error_line(err)
        assert line.startswith(f"human_trb and {own}: different segments of TRBV2*01 (TRB F GCC")
        assert "leave out one" in line
    # Tables may share alleles, spelled as they like.
    tra = (ROOT / "inputs/germline/human_tra.tsv").read_text()
    own.write_text(tra.replace("TRAV29/DV5", "TRAV29DV5"))
    assert hpcvdj.read_germline(["human_tra", own]).segments == hpcvdj.read_germline("human_tra").segments
    assert hpcvdj.read_germline(["mouse_trb_paper", "mouse_trb"]).loci == ("TRB",)
    own.write_text(tra + tra.splitlines()[-1] + "\n")
    with pytest.raises(InputError, match=r"own\.tsv: .* is listed twice"):
        hpcvdj.read_germline(own)
    with pytest.raises(InputError, match="no germline table is named"):
        hpcvdj.read_germline([])


def test_no_packaged_table_lists_a_name_in_two_spellings():
    for name in germline_names():
        alleles = [(s.segment_type, imgt_spelling(s.allele)) for s in hpcvdj.read_germline(name).segments]
        assert len(set(alleles)) == len(alleles)


def test_an_output_is_not_an_input(tmp_path, two_chains):
    shutil.copy(ROOT / "inputs/germline/human_trb.tsv", tmp_path / "g.tsv")
    words = ("count", two_chains, "-g", "human_tra", "-g", tmp_path / "g.tsv", "-o", tmp_path / "g.tsv", "--overwrite")
    assert "is an input of this run" in error_line(hpcvdj_command(*words, code=2)[1])


def test_from_python(two_chains):
    table = pd.read_csv(two_chains, sep="\t")
    one, both = hpcvdj.count(table, "human_trb"), hpcvdj.count(table, ["human_tra", "human_trb"])
    assert (one["pathways_excluded"] == "").tolist() == [False, True, False, False]
    assert (both["pathways_excluded"] == "").tolist() == [True, True, False, False]
    assert hpcvdj.explain(TRA[2], *TRA[:2], "human").counters == hpcvdj.explain(TRA[2], *TRA[:2], "human_tra").counters


def test_a_species_warning_names_packaged_tables(tmp_path):
    _, err = hpcvdj_command("-q", "count", SMALL, "-g", "human_trb", "-o", tmp_path / "o.h5")
    assert "human_trb does not list, but mouse_trb lists those of" in err
    shutil.copy(ROOT / "inputs/germline/human_trb.tsv", tmp_path / "own.tsv")
    _, err = hpcvdj_command("-q", "count", SMALL, "-g", tmp_path / "own.tsv", "-o", tmp_path / "p.h5")
    assert f"{tmp_path / 'own.tsv'} does not list, but mouse_trb lists those of" in err


def test_a_species_warning_names_a_species(tmp_path, two_chains):
    table = table_of(tmp_path / "t.tsv", *[("TRBV7-9", "TRBJ1-1", TRB[2])] * 5, *[("TRAV23/DV6", "TRAJ61", TRA[2])] * 5)
    _, err = hpcvdj_command("-q", "count", table, "-g", "mouse_igl", "-o", tmp_path / "o.h5", code=2)
    assert "but human lists those of 10: are the rows" in err


def test_the_models_that_can_be_named():
    out, _ = hpcvdj_command("models", "list")
    heads, rule, *rows = [line.strip() for line in out.splitlines() if line.strip()]
    assert heads.split() == ["model", "species", "locus", "selection", "rows", "what", "it", "is"]
    assert set(rule) == {"─"}
    names = [row.split()[0] for row in rows]
    assert "human_trb_m15" in model_paths()
    if olga_folder() is None:
        assert names == [*model_paths(), "not"]
        assert "hpcvdj[models]" in out
    else:
        assert names == [*OLGA_FOLDERS, *model_paths()]
        olga = r"no +published with OLGA [\d.]+: "
        assert re.search(rf"human_trb +human +TRB +{olga}human TRB, for most purposes *\n", out)
        assert re.search(rf"mouse_igk +mouse +IGK +{olga}mouse IGK, for junctions without somatic hyperm", out)
    example = "an example of hpcvdj infer, from 2,036 junctions of one donor: do not trust "
    assert re.search(rf"human_trb_m15 +human +TRB +no +2,036 +{example}", out)


def test_a_packaged_model(tmp_path, two_chains, monkeypatch):
    named, path = (hpcvdj.load_model(name) for name in ("human_trb_m15", model_paths()["human_trb_m15"]))
    assert (named.name, named.digest) == ("human_trb_m15", path.digest)
    hpcvdj_command("pgen", two_chains, "-m", "human_trb_m15", "-o", tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet").to_pandas()
    assert table["pgen_nt"][1] > 0
    assert table["pgen_excluded"].tolist()[0] == "V gene TRAV29DV5 is of locus TRA (the model is of TRB)"
    monkeypatch.setattr("hpcvdj.recombination.igor.find_spec", lambda name: None)
    assert hpcvdj.load_model("human_trb_m15").digest == named.digest
    out, _ = hpcvdj_command("models", "list")
    assert "not installed: human_tra, human_trb, " in out
    _, err = hpcvdj_command("pgen", two_chains, "-m", "nosuch", "-o", tmp_path / "q.tsv", code=2)
    assert error_line(err).endswith("mouse_igl, human_trb_m15")
    _, err = hpcvdj_command("pgen", two_chains, "-m", "human", "-o", tmp_path / "q.tsv", code=2)
    assert "human: a model is of one locus; of human there are human_tra, human_trb" in error_line(err)
    _, err = hpcvdj_command("pgen", two_chains, "-m", "human_trb_m15", "-o", tmp_path / "r.tsv")
    assert re.search(r"2  V gene TRAV29DV5 is of locus TRA \(the model is of TRB\)\n", err)


@pytest.mark.parametrize("again", [("-m", "human_tra"), ("--model=human_tra",), ("-mhuman_tra",)])
def test_several_models_are_refused(tmp_path, two_chains, again):
    words = ("pgen", two_chains, "-m", "human_trb_m15", *again, "-o", tmp_path / "p.tsv")
    line = error_line(hpcvdj_command(*words, code=2)[1])
    assert line == "--model is given several times, and a model is of one locus; run once for each locus"
    assert not (tmp_path / "p.tsv").exists()


def test_a_tie_with_an_orphon(tmp_path):
    """The same values as without it, and it is said."""
    other = "TRBJ1-1", "TGCAGTGCTAGAGATAGGGGACAGAACACTGAAGCTTTCTTT"
    rows = [("TRBV20-1", *other), ("TRBV20-1,TRBV20/OR9-2", *other)]
    rows += [("TRBV12-3", *TRB[1:]), ("TRBV12-3,TRBV12-4", *TRB[1:])]
    table = table_of(tmp_path / "t.tsv", *rows)
    for command, flag, name, value in (
        ("count", "-g", "human_trb", "weight"),
        ("pgen", "-m", "human_trb_m15", "pgen_nt"),
    ):
        _, err = hpcvdj_command(command, table, flag, name, "-o", tmp_path / f"{command}.h5")
        assert "call TRBV20-1,TRBV20/OR9-2 is counted as TRBV20-1*" in err
        assert "TRBV12" not in err
        with hpcvdj.open(tmp_path / f"{command}.h5") as result:
            ((call, _, number),) = json.loads(result.provenance["substituted_calls"])
            values = result.to_pandas().set_index("row")[value].sort_index()
        assert (call, number) == ("TRBV20-1,TRBV20/OR9-2", 1)
        assert values[0] == values[1] > 0
        # A sum over both genes, or the value of one of two that are equal.
        assert values[3] > values[2] if command == "pgen" else values[3] == values[2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hpcvdj pgen -m human_trb_", {"human_trb_m15"}),
        ("hpcvdj pgen -m mo", {"models/"}),
        ("hpcvdj pgen -m models/", {"models/mine/", "models/a.txt"}),
        ("hpcvdj pgen -m models/m", {"models/mine/"}),
        ("hpcvdj count -g mouse_tr", {"mouse_trb_paper"}),
        ("hpcvdj count -g nothing", set()),
    ],
)
def test_names_and_paths_are_completed(words, expected, tmp_path):
    """What bash asks when the tabulator key is pressed."""
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "a.txt").write_text("")
    environment = {**os.environ, "_HPCVDJ_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", "from hpcvdj.__main__ import main; main()"], env=environment, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # Models of olga, where it is installed, are not those that this test expects.
    assert set(done.stdout.split()) - {*OLGA_FOLDERS} == expected - {*OLGA_FOLDERS}
