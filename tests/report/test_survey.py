"""hpcvdj.reports.survey: its numbers are those of the result, read whole and summed independently."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.recombination.exclusions import ExclusionKind, by_summary
from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.igor import read_model
from hpcvdj.recombination.scenarios import pgen as defined
from hpcvdj.reports import survey as module
from hpcvdj.reports.bins import FINE_BINS, Scores, doublings
from hpcvdj.reports.survey import survey
from hpcvdj.results.reader import Result
from hpcvdj.storage.hdf5 import write_attributes
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.recombination.igor_files import mouse_files, mouse_junctions

VERSION_1 = Path(__file__).parent.parent / "results" / "version_1"


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
    cells[300][place["sequence_id"]] = cells[299][place["sequence_id"]]
    table = folder / "t.tsv"
    table.write_text("\n".join([header, *("\t".join(row) for row in cells)]) + "\n")
    count_to(folder / "t.h5", table, read_germline(GERMLINE), Config(6))
    return folder / "t.h5"


def histogram(values):
    """Junctions with no pathway, and in each doubling."""
    edges = [0, *(2.0 ** np.arange(64)), np.inf]
    return np.histogram(np.asarray(values, float), edges)[0].tolist()


@pytest.mark.parametrize("block_bytes", [1 << 25, 3000])
def test_every_number_is_the_results(counted, monkeypatch, block_bytes):
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    seen = survey(counted, "t")
    with Result(counted) as result:
        frame = result.to_table().to_pandas()
        counters = result.counters[:].astype(object)
        assert seen.rows_read - seen.counted == len(result.excluded) == 5
        assert seen.excluded == result.excluded.counts()
    totals = counters.sum(axis=1)
    assert seen.counted == len(frame)
    assert seen.by_n == counters.sum(axis=0).tolist()
    assert seen.pathways == totals.sum()
    assert seen.with_pathway == (totals > 0).sum() < seen.counted
    assert seen.most == totals.max()
    first = [next(m for m, ways in enumerate(row) if ways) for row in counters.tolist() if any(row)]
    assert seen.reached.tolist() == [first.count(m) for m in range(7)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert seen.quantiles.quantile(share) == (np.quantile(totals.astype(float), share), True)
    sizes = frame["cdr3"].str.len()
    assert seen.sizes.tolist() == np.bincount(sizes, minlength=129).tolist()
    genes = frame.assign(v=frame["v_call"].str.split("*").str[0], j=frame["j_call"].str.split("*").str[0])
    pairs = genes.groupby(["v", "j"])["pathways_total"].agg(["size", "sum"])
    assert {key: tuple(cell) for key, cell in seen.pairs.items()} == {
        key: (int(size), int(total)) for key, size, total in pairs.itertuples()
    }
    assert seen.allele_pairs == len(frame.groupby(["v_call", "j_call"]))
    assert seen.bins_by_n.shape == (7, FINE_BINS)
    for m in range(7):
        assert doublings(seen.bins_by_n[m])[:65].tolist() == histogram(counters[:, m])
    for size in range(129):
        assert doublings(seen.bins_by_size[size])[:65].tolist() == histogram(totals[(sizes == size).to_numpy()])


@pytest.mark.parametrize("block_bytes", [1 << 25, 3000])
def test_the_largest_weights(counted, monkeypatch, block_bytes):
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    seen = survey(counted, "t")
    with Result(counted) as result:
        frame = result.to_table().to_pandas()
    frame["weight"] = sum(frame[f"pathways_n{m}"].astype(float) / 4**m for m in range(7))
    frame["place"] = range(len(frame))
    groups = frame.groupby(["v_call", "j_call", "cdr3"]).agg(
        weight=("weight", "first"), total=("pathways_total", "first"), rows=("row", "size"), place=("place", "min"),
        name=("sequence_id", "first"),
    )  # fmt: skip
    best = groups.sort_values(["weight", "place"], ascending=[False, True]).head(module.TOP)
    assert len(best) == module.TOP
    assert [(each.v_call, each.j_call, each.cdr3) for each in seen.top] == best.index.tolist()
    assert [each.weight for each in seen.top] == best["weight"].tolist()
    assert [each.rows for each in seen.top] == best["rows"].tolist()
    assert max(each.rows for each in seen.top) >= 6
    assert [each.pathways for each in seen.top] == best["total"].tolist()
    assert [each.sequence_id for each in seen.top] == best["name"].tolist()
    (_, first), (_, typical) = seen.shown
    assert first is seen.top[0]
    some = np.sort(frame["weight"][frame["weight"] > 0])
    middle = Scores.bins(some[(len(some) - 1) // 2 :][:1])[0]
    row = frame[Scores.bins(frame["weight"].to_numpy()) == middle].iloc[0]
    assert (typical.sequence_id, typical.cdr3, typical.v_call) == (row["sequence_id"], row["cdr3"], row["v_call"])


@pytest.mark.parametrize("block_bytes", [1 << 25, 3000])
def test_ranked_by_a_model(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    model = read_model(mouse_files().write(tmp_path / "model"))
    rows = mouse_junctions(model, 300)
    rows += [*rows[:50], ("TRBV31", *rows[0][1:]), ("TRBV31", *rows[1][1:])]
    text = "".join("\t".join((f"s{k}", *row)) + "\n" for k, row in enumerate(rows))
    (tmp_path / "t.tsv").write_text(f"sequence_id\tv_call\tj_call\tjunction\n{text}")
    count_to(tmp_path / "t.h5", tmp_path / "t.tsv", read_germline(GERMLINE), Config(4))
    seen = survey(tmp_path / "t.h5", "t", model=model)
    values = {
        (v, j, junction[3:-3]): defined(model, f"TGT{junction[3:-3]}TTT", model.find("V", v), model.find("J", j))
        for v, j, junction in rows[:-2]
    }
    expected = sorted(filter(None, values.values()), reverse=True)
    assert 20 < len(expected) < module.TOP
    # At most 20 roundings of sums of positive numbers lie between the two orders of addition.
    assert [each.score for each in seen.top] == pytest.approx(expected, rel=1e-13, abs=0)
    for each in seen.top:
        key = each.v_call, each.j_call.partition("*")[0], each.cdr3
        assert values[key] == pytest.approx(each.score, rel=1e-13, abs=0)
        assert each.rows == sum((v, j, junction[3:-3]) == key for v, j, junction in rows)
    assert seen.unscored == {"V gene TRBV31*01 is not in the model": 2}
    assert [which for which, _ in seen.shown] == ["the most probable junction", "a typical junction"]
    assert seen.shown[0][1] is seen.top[0]
    with Result(tmp_path / "t.h5") as result:
        frame = result.to_table().to_pandas()
    names = zip(frame["v_call"], frame["j_call"].str.partition("*")[0], frame["cdr3"], strict=True)
    scores = np.array([values.get(key, np.nan) for key in names])
    some = np.sort(scores[scores > 0])
    middle = Scores.bins(some[(len(some) - 1) // 2 :][:1])[0]
    assert seen.shown[1][1].sequence_id == frame["sequence_id"][np.argmax(Scores.bins(scores) == middle)]


def test_the_order_is_not_that_of_pathways(tmp_path):
    """With all n-lengths the longest junctions have the most pathways, though few of them without n-nucleotides."""
    header = "sequence_id\tv_call\tj_call\tjunction\n"
    reached = "TGTACCTGCAGTGCAGACACAGAAGTCTTCTTT"
    far = reached.replace("GACACAG", "GA" + "GGATTTTA" * 4 + "CACAG")
    table = tmp_path / "t.tsv"
    table.write_text(f"{header}far\tTRBV1\tTRBJ1-1\t{far}\nnear\tTRBV1\tTRBJ1-1\t{reached}\n")
    count_to(tmp_path / "t.h5", table, read_germline(GERMLINE), Config("all"))
    near, far = survey(tmp_path / "t.h5", "t").top
    assert (near.sequence_id, far.sequence_id) == ("near", "far")
    assert near.pathways < far.pathways
    assert near.weight > 1 > far.weight


def test_a_junction_by_its_name(counted):
    assert [junction.sequence_id for _, junction in survey(counted, "t", "again3").shown] == ["again3"]
    assert survey(counted, "t", "nobody").shown == []


def test_amino_acids(counted):
    letters = {junction.amino_acids for junction in survey(counted, "t").top}
    assert "ASS" in {text[:3] for text in letters}
    junction = survey(counted, "t").top[0]
    junction.cdr3 = "GCCAGCAGTTG"
    assert junction.amino_acids == "out of frame"
    junction.cdr3 = "GCCAGCAGTTGA"
    assert junction.amino_acids == "ASS*"
    junction.cdr3 = ""
    assert junction.amino_acids == "(empty)"


def test_reasons_are_counted(counted, tmp_path):
    seen = {reason: rows for reason, rows, _ in by_summary(survey(counted, "t").excluded)}
    assert seen == {
        "V gene that is not in the germline table": 2,
        "no V call": 1,
        "ambiguous V call": 1,
        "sequence_id that repeats that of an earlier row": 1,
    }
    # A result with more reasons than its attributes sum up.
    cut = tmp_path / "cut.h5"
    cut.write_bytes(counted.read_bytes())
    with h5py.File(cut, "a") as file:
        write_attributes(file, {"excluded_counts": []})
    assert survey(cut, "t").excluded == survey(counted, "t").excluded


@pytest.mark.parametrize("name", ["whole", "parts", "together"])
def test_version_1_is_read(name):
    seen = survey(VERSION_1 / f"{name}.h5", name)
    with Result(seen.path) as result:
        assert seen.counted == len(result)
        assert seen.by_n == result.counters[:].sum(axis=0).tolist()
        assert seen.rows_read == int(result.provenance["rows_read"]) > seen.counted
    assert {exclusion.kind for exclusion, _ in seen.excluded} == {ExclusionKind.OTHER}


def test_sums_above_64_bits_are_exact(counted, tmp_path):
    large = tmp_path / "large.h5"
    large.write_bytes(counted.read_bytes())
    with h5py.File(large, "a") as file:
        shape = file["counters"].shape
        del file["counters"]
        file["counters"] = np.full(shape, 2**61 - 1, np.uint64)
    assert survey(large, "t").by_n == [shape[0] * (2**61 - 1)] * shape[1]


def test_damage_is_named(counted, tmp_path):
    broken = tmp_path / "broken.h5"
    broken.write_bytes(counted.read_bytes())
    with h5py.File(broken, "a") as file:
        del file["sequences/cdr3"]
    with pytest.raises(InputError, match=r"broken\.h5: is damaged: /sequences lacks cdr3"):
        survey(broken, "t")
