"""Junctions and the individuals that share them: against plain loops over the rows."""

import re
from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hpcvdj
from hpcvdj import InputError
from hpcvdj.recombination.scenarios import pgen as defined
from hpcvdj.sharing.convergence import _encoded, amino_acid_level, nucleotide_level, read
from hpcvdj.sharing.plot import bins, wilson
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, ROOT, SMALL
from tests.recombination.igor_files import mouse_files, mouse_junctions
from tests.recombination.test_translation import amino

MAX_N = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of five individuals who share junctions, counted; and one table, counted, of each."""
    folder = tmp_path_factory.mktemp("convergence")
    header, *lines = SMALL.read_text().splitlines()
    names = header.split("\t")
    rng = np.random.default_rng(5)
    rows = []
    for k in range(700):
        facts = dict(zip(names, lines[min(rng.geometric(0.02), 500) - 1].split("\t"), strict=True))
        junction = facts["junction"]
        kind = rng.integers(0, 8)
        if kind == 0:  # the same amino acids in other letters
            junction = junction[:3] + ("GCT" if junction[3:6] == "GCC" else junction[3:6]) + junction[6:]
        elif kind == 1:
            junction = junction[:12] + "A" + junction[12:]  # out of frame
        elif kind == 2:
            facts["v_call"] = "TRBV1*01"  # the same letters of another V
        productive = ["F", "", "T", "True", "true", "T"][rng.integers(0, 6)]
        mouse = "" if rng.integers(0, 40) == 0 else f"mouse {rng.integers(0, 5)}"
        rows.append((f"r{k}", facts["v_call"], facts["j_call"], junction, productive, mouse))
    head = "sequence_id\tv_call\tj_call\tjunction\tproductive\tmouse\n"
    (folder / "all.tsv").write_text(head + "".join("\t".join(row) + "\n" for row in rows))
    for mouse in range(5):
        part = "".join("\t".join(row) + "\n" for row in rows if row[5] == f"mouse {mouse}")
        (folder / f"mouse {mouse}.tsv").write_text(head + part)
    for path in sorted(folder.glob("*.tsv")):
        hpcvdj_command("-q", "count", path, "-g", GERMLINE, "-o", path.with_suffix(".h5"), "--max-n", MAX_N)
    return folder


def by_hand(folder, key, only_productive=True):
    """Of each junction: individuals, rows, and the counters of each of its nucleotide junctions."""
    counted = hpcvdj.count(
        csv.read_csv(
            folder / "all.tsv",
            parse_options=csv.ParseOptions(delimiter="\t"),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(("productive", "mouse"), pa.string())),
        ),
        GERMLINE,
        max_n=MAX_N,
    )
    mice, rows, counters = defaultdict(set), defaultdict(int), defaultdict(dict)
    for row in counted.to_pylist():
        if not row["mouse"] or (only_productive and row["productive"] not in ("T", "True", "true")):
            continue
        letters = row["junction"][3:-3]
        name = key(row["v_call"], row["j_call"], letters)
        if name is None:
            continue
        mice[name].add(row["mouse"])
        rows[name] += 1
        counters[name][row["v_call"], row["j_call"], letters] = [row[f"pathways_n{m}"] for m in range(MAX_N + 1)]
    return mice, rows, counters


def exact_weight(counters):
    return float(sum(Fraction(count, 4**m) for m, count in enumerate(counters)))


@pytest.mark.parametrize("rows", ["productive", "all"])
def test_nucleotide_junctions(folder, rows):
    level = nucleotide_level(read([folder / "all.h5"], individual="mouse", rows=rows))
    mice, times, counters = by_hand(folder, lambda *key: key, rows == "productive")
    columns = level.table.to_pydict()
    keys = list(zip(columns["v_call"], columns["j_call"], columns["cdr3"], strict=True))
    assert len(keys) == len(set(keys)) == len(mice)
    assert max(len(names) for names in mice.values()) > 2
    for k, key in enumerate(keys):
        assert columns["individuals"][k] == len(mice[key])
        assert columns["rows"][k] == times[key]
        assert columns["pathways_total"][k] == sum(counters[key][key])
        assert columns["weight"][k] == pytest.approx(exact_weight(counters[key][key]), rel=1e-14)
        assert columns["cdr3_aa"][k] == amino(key[2])
    order = [(-n, -w) for n, w in zip(columns["individuals"], columns["weight"], strict=True)]
    assert list(zip(order, keys, strict=True)) == sorted(zip(order, keys, strict=True))


@pytest.mark.parametrize("with_genes", [False, True])
def test_amino_acid_junctions(folder, with_genes):
    def key(v, j, letters):
        genes = (v.partition("*")[0], j.partition("*")[0]) if with_genes else ()
        return (*genes, amino(letters)) if amino(letters) else None

    level = amino_acid_level(read([folder / "all.h5"], individual="mouse"), with_genes=with_genes)
    mice, times, counters = by_hand(folder, key)
    columns = level.table.to_pydict()
    names = ["v_gene", "j_gene", "cdr3_aa"] if with_genes else ["cdr3_aa"]
    keys = list(zip(*(columns[name] for name in names), strict=True))
    assert len(keys) == len(set(keys)) == len(mice)
    assert max(len(one) for one in counters.values()) > 1
    for k, one in enumerate(keys):
        parts = list(counters[one].values())
        assert columns["individuals"][k] == len(mice[one])
        assert columns["rows"][k] == times[one]
        assert columns["nucleotide_junctions"][k] == len(parts)
        assert columns["pathways_total"][k] == sum(map(sum, parts))
        assert columns["weight"][k] == pytest.approx(sum(map(exact_weight, parts)), rel=1e-13)
        assert columns["pathways_mean"][k] == pytest.approx(sum(map(sum, parts)) / len(parts))
        assert columns["weight_mean"][k] == pytest.approx(sum(map(exact_weight, parts)) / len(parts))
    order = [(-n, -w) for n, w in zip(columns["individuals"], columns["weight_mean"], strict=True)]
    assert list(zip(order, keys, strict=True)) == sorted(zip(order, keys, strict=True))


def test_a_result_of_each_individual_is_the_same_as_a_column(folder):
    whole = read([folder / "all.h5"], individual="mouse")
    files = [folder / f"mouse {mouse}.h5" for mouse in (3, 1, 0, 2, 4)]
    parts = read(files)
    assert parts.individuals == whole.individuals == [f"mouse {mouse}" for mouse in range(5)]
    assert whole.without_individual > 0
    for level in (nucleotide_level, amino_acid_level):
        one, other = level(whole), level(parts)
        for name in one.table.column_names:
            assert one.table[name].to_pylist() == pytest.approx(other.table[name].to_pylist()), name
        assert one.aucs().keys() == other.aucs().keys()


def test_the_auc_is_that_of_all_pairs(folder):
    level = nucleotide_level(read([folder / "all.h5"], individual="mouse"))
    for public in (2, 3):
        shared = level.column("individuals") >= public
        for name, area in level.aucs(public).items():
            score = level.scores[name]
            pairs = [(a > b) + 0.5 * (a == b) for a in score[shared] for b in score[~shared]]
            assert area.area == pytest.approx(np.mean(pairs), abs=1e-12)
    assert level.aucs(99) == {}
    cdr3, length = level.column("cdr3"), level.scores["length"]
    assert len(cdr3[np.argmax(length)]) < len(cdr3[np.argmin(length)])


def test_tables_that_have_no_column_productive(tmp_path):
    table = tmp_path / "t.tsv"
    head, *rows = SMALL.read_text().splitlines(keepends=True)
    table.write_text(head.replace("productive", "other") + "".join(rows[:50]))
    hpcvdj_command("-q", "count", table, "-g", GERMLINE, "-o", tmp_path / "t.h5")
    seen = read([tmp_path / "t.h5"])
    assert (len(seen), seen.productive_column, seen.individuals) == (50, False, ["t"])
    out, err = hpcvdj_command("convergence", tmp_path / "t.h5", "-o", tmp_path / "o.tsv")
    assert "no AUC" in out
    assert "of 1 individual(s), by table\n           if a column of the counted table names them" in out
    assert "t.tsv: no column productive; every counted row is used" in err


def test_the_individual_may_be_any_column(folder):
    seen = read([folder / "all.h5"], individual="productive")
    assert seen.individuals == ["T", "True", "true"]
    assert set(read([folder / "all.h5"], individual="productive", rows="all").individuals) > {"F", "T"}


def test_no_row_that_can_be_used(folder, tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text(
        (folder / "mouse 1.tsv").read_text().replace("True", "F").replace("true", "F").replace("\tT\t", "\tF\t")
    )
    hpcvdj_command("-q", "count", table, "-g", GERMLINE, "-o", tmp_path / "t.h5")
    _, err = hpcvdj_command("convergence", tmp_path / "t.h5", "-o", tmp_path / "o.tsv", code=2)
    assert "t.h5: no row can be used: " in error_line(err)
    assert "--rows all uses all counted rows" in error_line(err)
    empty = read([tmp_path / "t.h5"])
    assert [len(level(empty)) for level in (nucleotide_level, amino_acid_level)] == [0, 0]
    nucleotide_level(empty).write(tmp_path / "e.tsv")
    assert (tmp_path / "e.tsv").read_text().startswith("v_call\tj_call\tcdr3\tcdr3_aa\tindividuals\t")


def test_counted_to_the_end_tables_of_different_length_go_together(folder, tmp_path):
    for mouse, rows in ((0, 30), (1, 3)):
        head, *lines = (folder / f"mouse {mouse}.tsv").read_text().splitlines(keepends=True)
        table = tmp_path / f"{mouse}.tsv"
        table.write_text(head + "".join(lines[:rows]))
        hpcvdj_command("-q", "count", table, "-g", GERMLINE, "-o", table.with_suffix(".h5"), "--max-n", "all")
    seen = read([tmp_path / "0.h5", tmp_path / "1.h5"], rows="all")
    assert len(seen) == 33
    with pytest.raises(InputError, match=re.escape("different n-lengths (0-6) than")):
        read([tmp_path / "0.h5", folder / "all.h5"])


def test_what_is_refused(folder, tmp_path):
    everything = folder / "all.h5"
    with pytest.raises(InputError, match="no column subject"):
        read([everything], individual="subject")
    hpcvdj_command("-q", "count", folder / "all.tsv", "-g", GERMLINE, "-o", tmp_path / "d.h5", "--max-n", MAX_N,
                   "--d-forms", "distinct")  # fmt: skip
    with pytest.raises(InputError, match=r"d\.h5: .* different D forms \(distinct\) than .*all\.h5 \(paper\)"):
        read([everything, tmp_path / "d.h5"])
    table = tmp_path / "another.tsv"
    table.write_text(GERMLINE.read_text().replace("TRBD2", "TRBD9"))
    hpcvdj_command("-q", "count", folder / "all.tsv", "-g", table, "-o", tmp_path / "g.h5", "--max-n", MAX_N)
    with pytest.raises(
        InputError, match=r"germline segments \(.*another\.tsv \(SHA-256 .*…\)\) than .*paper\.tsv \(SHA"
    ):
        read([everything, tmp_path / "g.h5"])
    with pytest.raises(InputError, match="name the folder that has their tables"):
        read([everything, folder / "mouse 1.h5"], junctions=folder / "all.tsv")
    with pytest.raises(InputError, match="its SHA-256 differs"):
        read([everything], junctions=folder / "mouse 1.tsv")
    moved = read([everything, folder / "mouse 1.h5"], junctions=folder, individual="mouse")
    assert len(moved.individuals) == 5


def test_namesakes_are_one_individual_and_are_named(folder, tmp_path, caplog):
    (tmp_path / "mouse 1.h5").write_bytes((folder / "mouse 1.h5").read_bytes())
    seen = read([folder / "mouse 1.h5", tmp_path / "mouse 1.h5"])
    assert seen.individuals == ["mouse 1"]
    assert "both have repertoire_id mouse 1" in caplog.text


def test_the_command(folder, tmp_path):
    outputs = tmp_path / "nt.tsv", tmp_path / "aa.parquet"
    out, _ = hpcvdj_command(
        "convergence", folder / "all.h5", "--individual", "mouse", "-o", outputs[0], "--aa", outputs[1]
    )  # fmt: skip
    level = nucleotide_level(read([folder / "all.h5"], individual="mouse"))
    shared = int((level.column("individuals") >= 2).sum())
    assert f"nucleotide junctions: {len(level):,}, of which {shared:,} (" in out
    area = level.aucs()["weight"]
    assert f"weight                 {area.area:.3f}   {area.interval[0]:.3f} to {area.interval[1]:.3f}" in out
    table = csv.read_csv(outputs[0], parse_options=csv.ParseOptions(delimiter="\t"))
    assert table["weight"].to_pylist() == level.table["weight"].to_pylist()
    amino_table = parquet.read_table(outputs[1])
    assert amino_table.schema.field("pathways_total").type == pa.uint64()
    assert amino_table["weight"].type == pa.float64()
    assert sum(amino_table["nucleotide_junctions"].to_pylist()) == sum(
        text != "" for text in level.table["cdr3_aa"].to_pylist()
    )


@pytest.mark.parametrize(("name", "magic"), [("f.png", b"\x89PNG"), ("f.svg", b"<?xml")])
def test_the_figure(folder, tmp_path, name, magic):
    pytest.importorskip("matplotlib")
    hpcvdj_command("convergence", folder / "all.h5", "--individual", "mouse", "-o", tmp_path / "o.tsv", "--plot",
                   tmp_path / name)  # fmt: skip
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_bins_have_every_junction_once():
    pathways = np.array([0] * 40 + list(range(1, 61)), dtype=np.uint64)
    medians, shares, counts = bins(pathways, pathways > 30)
    # 0 with 1-9, 10-31, 32-60: quarter decades of fewer than 20 junctions are joined to the one below.
    assert counts.tolist() == [49, 22, 29]
    assert shares.tolist() == [0, 1 / 22, 1]
    assert medians.tolist() == [0, 20.5, 46]
    # The same of scores below 1.
    assert bins(pathways * 1e-20, pathways > 30)[2].tolist() == [49, 22, 29]
    assert [part.tolist() for part in bins(np.array([7, 7], np.uint64), np.array([True, False]))] == [[7], [0.5], [2]]
    assert all(len(part) == 0 for part in bins(np.array([], np.uint64), np.array([], bool)))
    # Wilson's interval of 3 of 20, by its formula with z = 1.96.
    assert wilson(np.array([0.15]), np.array([20])) == pytest.approx(np.array([[0.0524], [0.3604]]), abs=2e-4)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("-o", "o.csv"), "the name must end in .tsv, .tsv.gz or .parquet"),
        (("-o", "o.tsv", "--plot", "p.pdf"), "the name must end in .png or .svg"),
        (("-o", "o.tsv", "--aa", "o.tsv"), "is named for two outputs"),
        (("-o", "o.tsv", "--individual", "subject"), "no column subject"),
        (("-o", "there.tsv"), "exists already"),
    ],
)
def test_bad_input_is_one_line(folder, tmp_path, extra, message):
    (tmp_path / "there.tsv").touch()
    _, err = hpcvdj_command("convergence", folder / "all.h5", *extra, code=2, cwd=tmp_path)
    assert message in error_line(err)
    assert [path.name for path in tmp_path.iterdir()] == ["there.tsv"]


def test_the_counted_table_stays(folder, tmp_path):
    table = folder / "all.tsv"
    before = table.read_text()
    _, err = hpcvdj_command("convergence", folder / "all.h5", "-o", table, "--overwrite", code=2)
    assert "all.tsv: is an input of this run" in error_line(err)
    assert table.read_text() == before


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of five of the V genes and three of the J genes of the table."""
    return mouse_files().write(tmp_path_factory.mktemp("model") / "mouse")


@pytest.fixture(scope="module")
def of_model(tmp_path_factory, model):
    """A counted table of three mice: junctions of the model's genes, some of them shared, and of another gene."""
    rows = mouse_junctions(hpcvdj.load_model(model), 600)
    rows += [(v, j, f"{junction[:3]}GCC{junction[6:]}") for v, j, junction in rows[:5]]
    rows += [("TRBV31", j, junction) for _, j, junction in rows[:4]]
    mice = [(f"s{k}", f"m{k % 3}", *row) for k, row in enumerate([*rows, *rows[100:300]])]
    path = tmp_path_factory.mktemp("of_model") / "t.tsv"
    pd.DataFrame(mice, columns=["sequence_id", "repertoire_id", "v_call", "j_call", "junction"]).to_csv(
        path, sep="\t", index=False
    )
    hpcvdj_command("-q", "count", path, "-g", GERMLINE, "-o", path.with_suffix(".h5"))
    return path.with_suffix(".h5")


def test_nucleotide_junctions_ranked_by_a_model(of_model, model):
    loaded = hpcvdj.load_model(model)
    level = nucleotide_level(read([of_model], individual="repertoire_id"))
    found = level.with_pgen(hpcvdj.pgen(level.junctions(loaded), loaded, sequence="nt"))
    assert found.score == "pgen_nt"
    assert list(found.scores) == ["pgen_nt", "weight", "pathways", "length"]
    rows = found.table.to_pylist()
    values = []
    for row in rows:
        v, j = loaded.find("V", row["v_call"]), loaded.find("J", row["j_call"])
        if v and j:
            value = defined(loaded, f"TGT{row['cdr3']}TTT", v, j)
            # At most 20 roundings of sums of positive numbers lie between the two orders of addition.
            assert row["pgen_nt"] == pytest.approx(value, rel=1e-13, abs=0)
            assert row["pgen_excluded"] == ""
            values.append(row["pgen_nt"])
        else:
            assert row["pgen_nt"] is None
            assert "not in the model" in row["pgen_excluded"]
    assert len(set(values)) > 10
    order = [(-row["individuals"], row["pgen_nt"] is None, -(row["pgen_nt"] or 0)) for row in rows]
    assert order == sorted(order)
    # The others are in the table, but not compared.
    names = ["v_call", "j_call", "cdr3", "individuals", "weight"]
    key = dict.fromkeys(names, "ascending").items()
    assert found.table.select(names).sort_by(list(key)).equals(level.table.select(names).sort_by(list(key)))
    assert len(found.scored) == len(values) == len(rows) - sum(found.excluded.values())
    assert found.scored.column("pgen_nt").tolist() == values
    assert found.scored.members["cdr3"].to_pylist() == found.scored.table["cdr3"].to_pylist()


@pytest.mark.parametrize("with_genes", [False, True])
def test_amino_acid_junctions_ranked_by_a_model(of_model, model, with_genes):
    loaded = hpcvdj.load_model(model)
    level = amino_acid_level(read([of_model], individual="repertoire_id"), with_genes=with_genes)
    found = level.with_pgen(hpcvdj.pgen(level.junctions(loaded), loaded, sequence="aa", genes=level.genes))
    rows = found.table.to_pylist()
    assert found.score == "pgen_aa"
    assert (found.table["pgen_aa"].null_count > 0) == with_genes
    assert sum(bool(row["pgen_aa"]) for row in rows) > 10
    # The same of other letters for these amino acids.
    codon = {amino(bases): bases for bases in map("".join, product("TGCA", repeat=3))}
    letters = [f"TGC{''.join(codon[residue] for residue in row['cdr3_aa'])}TTC" for row in rows]
    calls = {f"{kind}_call": [row.get(f"{kind}_gene", "") for row in rows] for kind in "vj"}
    again = hpcvdj.pgen(
        pa.table({**calls, "junction": letters}), loaded, sequence="aa", genes="call" if with_genes else "any"
    )
    assert again["pgen_aa"].to_pylist() == found.table["pgen_aa"].to_pylist()


def test_the_command_with_a_model(of_model, model, tmp_path):
    pytest.importorskip("matplotlib")
    out, _ = hpcvdj_command(
        "convergence", of_model, "--individual", "repertoire_id", "-o", tmp_path / "nt.tsv", "--aa",
        tmp_path / "aa.tsv", "-m", model, "--plot", tmp_path / "f.png",
    )  # fmt: skip
    assert "  individuals  junctions  median pgen_nt\n" in out
    assert "  individuals  junctions  median pgen_aa\n" in out
    assert re.search(r"  pgen_nt +\d\.\d{3} ", out)
    table = csv.read_csv(tmp_path / "nt.tsv", parse_options=csv.ParseOptions(delimiter="\t"))
    lacking = [reason for reason in table["pgen_excluded"].to_pylist() if reason]
    for reason in set(lacking):
        assert f"  {lacking.count(reason):,} without a probability, left out below: {reason}\n" in out
    _, err = hpcvdj_command("convergence", of_model, "-o", tmp_path / "x.tsv", "-m", "mouse_trx", code=2)
    assert "no folder of a model, and no model of that name" in error_line(err)


def test_mice(tmp_path, shared_data):
    """Real repertoires: junctions that mice share have more pathways."""
    germline = ROOT / "inputs" / "germline" / "mouse_trb.tsv"
    path = shared_data / "mouse_TRB_dash2017.tsv.gz"
    hpcvdj_command("-q", "count", path, "-g", germline, "-o", tmp_path / "o.h5", "--unlisted-alleles", "first")
    seen = read([tmp_path / "o.h5"], individual="repertoire_id")
    assert len(seen.individuals) == 78
    areas = nucleotide_level(seen).aucs()
    assert [round(areas[name].area, 3) for name in ("pathways", "weight", "length")] == [0.700, 0.749, 0.496]


def test_a_column_of_more_than_2_gib_comes_in_chunks():
    codes, texts = _encoded(pa.chunked_array([["b"], [], ["a"], ["c", "a"]], pa.large_string()))
    assert (texts.to_pylist(), codes.tolist()) == (["a", "b", "c"], [1, 0, 2, 0])
