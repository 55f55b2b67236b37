"""hpcvdj.reports.survey: its numbers are those of the file, read whole and summed independently."""

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.exclusions import by_summary
from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.selection import genes_of
from hpcvdj.repertoires.genes import translated
from hpcvdj.reports import survey as module
from hpcvdj.reports.survey import bin_start, decoded, log_bins, survey
from hpcvdj.results.reader import Result
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.report import examples


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The small example with repeated, out-of-frame and unreachable junctions, and rows that cannot be counted."""
    folder = tmp_path_factory.mktemp("report")
    header, *rows = SMALL.read_text().splitlines()
    names = header.split("\t")
    place = {name: names.index(name) for name in ("sequence_id", "v_call", "junction")}
    cells = [row.split("\t") for row in rows]
    for k in range(40):
        extra = list(cells[k % 7])
        extra[place["sequence_id"]] = f"again{k}"
        cells.append(extra)
    for k in range(30):
        cells[100 + k][place["junction"]] = "TGT" + "ACGTACCA" * 5 + "TTT"
    for k, call in enumerate(("TRBV999", "TRBV999", "", "TRBV1,TRBV2")):
        cells[200 + k][place["v_call"]] = call
    table = folder / "t.tsv"
    table.write_text("\n".join([header, *("\t".join(row) for row in cells)]) + "\n")
    count_to(folder / "t.h5", table, read_germline(GERMLINE), Config(max_n=6))
    return folder / "t.h5"


def tally(table, key):
    return dict(zip(table[key].to_pylist(), table["rows"].to_pylist(), strict=True))


def check_clonotypes(seen, frame):
    """The distinct junctions in frame with their amino acids, of a data frame with v, j, cdr3."""
    in_frame = frame[frame["cdr3"].str.len() % 3 == 0]
    expected = in_frame.assign(aa=translate(in_frame["cdr3"])).groupby(["v", "j", "cdr3", "aa"]).size()
    found = decoded(seen.clonotypes).to_pandas().groupby(["v", "j", "cdr3", "aa"])["rows"].sum()
    assert found.sort_index().to_dict() == expected.sort_index().to_dict()


@pytest.mark.parametrize("block_rows", [1 << 18, 37])
def test_every_number_is_the_results(counted, monkeypatch, block_rows):
    monkeypatch.setattr(module, "BLOCK_ROWS", block_rows)
    seen = survey(counted)
    with Result(counted) as result:
        frame = result.to_table().to_pandas()
        counters = result.counters[:]
        excluded = result.excluded_counts
    assert (seen.command, seen.samples, seen.score, seen.measures) == ("count", ["t"], "weight", ("pathways_total",))
    assert (seen.counted.tolist(), seen.rows_read.tolist()) == ([len(frame)], [len(frame) + 4])
    assert [each[:2] for each in seen.excluded] == [(reason, rows) for reason, rows, _ in by_summary(excluded)]
    first = [next((m for m, ways in enumerate(row) if ways), -1) for row in counters.tolist()]
    assert tally(seen.reached, "needs") == {m: first.count(m) for m in set(first)}
    assert -1 in first
    assert tally(seen.lengths, "length") == frame["cdr3"].str.len().value_counts().to_dict()
    genes = frame.assign(v=frame["v_call"].str.split("*").str[0], j=frame["j_call"].str.split("*").str[0])
    found = {(row["v"], row["j"]): row["rows"] for row in seen.usage.to_pylist()}
    assert found == genes.groupby(["v", "j"]).size().to_dict()
    bins, often = seen.histogram("pathways_total", 0)
    values, numbers = np.unique(log_bins(frame["pathways_total"].to_numpy(float)), return_counts=True)
    assert (bins.tolist(), often.tolist()) == (values.tolist(), numbers.tolist())
    middle = np.sort(frame["pathways_total"])[(len(frame) - 1) // 2]
    assert middle / 1.01 <= seen.median("pathways_total", 0) <= middle
    check_clonotypes(seen, genes)
    grouped = frame.assign(n=1).groupby(["v_call", "j_call", "cdr3"]).agg({"weight": "first", "n": "sum"}).reset_index()
    best = grouped[grouped["weight"] > 0].sort_values(
        ["weight", "v_call", "j_call", "cdr3"], ascending=[False, True, True, True]
    )
    best = best.head(module.TOP)
    top = seen.top.to_pandas()
    assert len(top) == module.TOP
    assert (
        top[["v_call", "j_call", "cdr3", "weight", "rows"]].to_numpy().tolist()
        == best[["v_call", "j_call", "cdr3", "weight", "n"]].to_numpy().tolist()
    )
    assert top["rows"].max() >= 6


def test_bins():
    values = np.concatenate([np.arange(300.0), 10 ** np.random.default_rng(1).uniform(-40, 19, 2000)])
    starts = bin_start(log_bins(values))
    assert (starts[:256] == values[:256]).all()
    assert (starts <= values).all()
    assert (values <= starts * 1.01).all()
    ordered = np.sort(values)
    assert (np.diff(log_bins(ordered)) >= 0).all()
    assert log_bins(np.array([np.nan, 0.0, 5e-324])).tolist() == [-1, 0, 0]
    # Bins lie within doublings: their numbers, shifted, are those of powers of two.
    assert (2.0 ** ((log_bins(values[1:]) >> 7) - 1023.0) == 2.0 ** np.floor(np.log2(values[1:]))).all()


def test_a_gene_is_named_once():
    calls = ["TRBJ2-7*01,TRBJ2-7*02", "TRBV6-2*01,TRBV6-3*01,TRBV6-2*02", "TRBV9*01", "TRBV9", ""]
    assert [*map(genes_of, calls)] == ["TRBJ2-7", "TRBV6-2,TRBV6-3", "TRBV9", "TRBV9", ""]


def test_amino_acids():
    texts = pa.array(["GCCAGCAGT", "GCCTGA", "GCCA", "", "GCN", "TTTTTTTTTTTTTTT"])
    assert translated(texts).to_pylist() == ["ASS", "A*", None, "", None, "FFFFF"]


def test_a_table_is_read_as_its_result(counted, tmp_path):
    with Result(counted) as result:
        frame = result.to_table().to_pandas()
    junction = "TGT" + frame["cdr3"] + "TTT"
    frame.assign(junction=junction, pathways_excluded="")[
        ["sequence_id", "v_call", "j_call", "junction", "pathways_total", "weight", "pathways_excluded"]
    ].to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    of_table, of_result = survey(tmp_path / "t.tsv"), survey(counted)
    for name, keys in (
        ("usage", ["v", "j"]),
        ("lengths", ["length"]),
        ("values", ["bin"]),
        ("clonotypes", ["v", "j", "cdr3"]),
    ):
        order = [(key, "ascending") for key in keys]
        left, right = (
            decoded(getattr(each, name)).sort_by(order).select([*keys, "rows"]) for each in (of_table, of_result)
        )
        assert left.equals(right), name
    assert of_table.top.select(["cdr3", "rows"]).equals(of_result.top.select(["cdr3", "rows"]))


@pytest.mark.parametrize("samples", [(), ("a", "b", "")])
def test_a_table_of_probabilities(tmp_path, samples):
    path = examples.probabilities(tmp_path / "donor.tsv", samples=samples)
    frame = pd.read_csv(path, sep="\t", keep_default_na=False)
    seen = survey(path)
    names = frame["repertoire_id"].replace("", "donor") if samples else pd.Series(["donor"] * len(frame))
    assert (seen.command, seen.score, seen.measures) == ("pgen", "pgen_nt", ("pgen_nt", "pgen_aa"))
    assert seen.samples == list(dict.fromkeys(names))
    left = frame["pgen_excluded"] != ""
    assert dict(zip(seen.samples, seen.rows_read, strict=True)) == names.value_counts().to_dict()
    assert dict(zip(seen.samples, seen.counted, strict=True)) == names[~left].value_counts().to_dict()
    assert seen.excluded == [("no V call", 2, "", "")]
    kept = frame[~left].assign(cdr3=frame["junction"].str[3:-3], v=frame["v_call"].str.split("*").str[0], j="TRBJ2-7")
    check_clonotypes(seen, kept)
    assert seen.top["pgen_nt"].to_numpy().min() > 0
    for k, name in enumerate(seen.samples):
        own = kept[names[~left] == name]["pgen_aa"].astype(float).sort_values()
        assert seen.median("pgen_aa", k) == pytest.approx(own.iloc[(len(own) - 1) // 2], rel=0.01)


@pytest.mark.parametrize(("field", "amino"), [("junction", False), ("junction_aa", True), ("cdr3", False)])
def test_probabilities_of_amino_acids(tmp_path, field, amino):
    (tmp_path / "t.tsv").write_text(f"{field}\tpgen_aa\n" + ("CASF" if amino else "TGTGCTAGCTTC") + "\t1e-7\n")
    seen = survey(tmp_path / "t.tsv")
    assert (seen.amino, seen.score) == (amino, "pgen_aa")
    assert seen.clonotypes["aa"].to_pylist() == ["CASF" if field == "cdr3" else "AS"]


def test_a_result_of_probabilities(tmp_path):
    from hpcvdj.recombination.igor import read_model
    from tests.recombination.igor_files import mouse_files, mouse_junctions

    model = read_model(mouse_files().write(tmp_path / "model"))
    rows = [*mouse_junctions(model, 40), ("TRBV31", "TRBJ1-1", "TGTGCCTTT")]
    text = "".join("\t".join((f"s{k}", *row)) + "\n" for k, row in enumerate(rows))
    (tmp_path / "t.tsv").write_text(f"sequence_id\tv_call\tj_call\tjunction\n{text}")
    count_to(tmp_path / "t.h5", tmp_path / "t.tsv", model, PgenConfig(("pgen_nt", "pgen_aa")))
    seen = survey(tmp_path / "t.h5")
    with Result(tmp_path / "t.h5") as result:
        frame = result.to_table().to_pandas()
    assert (seen.command, seen.score, seen.samples) == ("pgen", "pgen_nt", ["t"])
    assert (seen.rows_read.tolist(), seen.counted.tolist()) == ([41], [40])
    positive = frame.loc[frame["pgen_nt"] > 0].drop_duplicates(["v_call", "j_call", "cdr3"])
    assert sorted(seen.top["pgen_nt"].to_pylist()) == sorted(positive["pgen_nt"])


def test_large_files_have_no_amino_acid_clonotypes(counted, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    monkeypatch.setattr(module, "BLOCK_ROWS", 90)
    seen = survey(counted)
    assert seen.clonotypes is None
    assert seen.top.num_rows == module.TOP


def test_repertoires_of_a_result_of_several_tables(tmp_path):
    lines = SMALL.read_text().splitlines(keepends=True)
    for name, rows in (("a", lines[1:201]), ("b", lines[1:101])):
        (tmp_path / f"{name}.tsv").write_text("".join(lines[:1] + rows))
    count_to(tmp_path / "all.h5", [tmp_path / "a.tsv", tmp_path / "b.tsv"], read_germline(GERMLINE), Config(max_n=4))
    seen = survey(tmp_path / "all.h5")
    assert (seen.samples, seen.counted.tolist(), seen.rows_read.tolist()) == (["a", "b"], [200, 100], [200, 100])
    by_sample = seen.usage.group_by("sample").aggregate([("rows", "sum")])
    assert tally(by_sample.rename_columns(["sample", "rows"]), "sample") == {0: 200, 1: 100}
    assert {seen.samples[k] for k in seen.top["sample"].to_pylist()} == {"a", "b"}


def test_damage_is_named(counted, tmp_path):
    broken = tmp_path / "broken.h5"
    broken.write_bytes(counted.read_bytes())
    with h5py.File(broken, "a") as file:
        del file["sequences/cdr3"]
    with pytest.raises(InputError, match=r"broken\.h5: is damaged: /sequences lacks cdr3"):
        survey(broken)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sequence_id\tv_call\n", "not an output of hpcvdj that a report shows"),
        ("pgen_nt\tv_call\n1\tx\n", "no column junction or junction_aa"),
        ("junction\tpgen_nt\n", "has no rows"),
        ("junction\tpgen_nt\nTGT\tmuch\n", "column pgen_nt has a value that is not a number"),
    ],
)
def test_other_tables_are_refused(tmp_path, text, says):
    (tmp_path / "t.tsv").write_text(text)
    with pytest.raises(InputError, match=says):
        survey(tmp_path / "t.tsv")
