"""hpcvdj.report.survey: its numbers are those of the result, read whole and summed independently."""

import numpy as np
import pytest

from hpcvdj.counting.config import Config, Inputs
from hpcvdj.counting.whole import count_file
from hpcvdj.errors import InputError
from hpcvdj.runs.ranks import World
from hpcvdj.recombination.germline import read_germline
from hpcvdj.report import survey as module
from hpcvdj.report.survey import EDGES, FINE_EDGES, PerJunction, coarse, kind_of, survey
from hpcvdj.report.translation import CODE, translate
from hpcvdj.results.reader import Result
from tests.conftest import GERMLINE, SMALL


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
    count_file(Inputs(table), read_germline(GERMLINE), folder / "t.h5", Config(6), World())
    return folder / "t.h5"


@pytest.mark.parametrize("block_bytes", [1 << 25, 3000])
def test_every_number_is_the_results(counted, monkeypatch, block_bytes):
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    found = survey(counted, "t")
    with Result(counted) as result:
        frame = result.to_table().to_pandas()
        counters = result.counters[:].astype(object)
        assert found.excluded == len(result.excluded) == 5
        assert sum(rows for _, rows, _ in found.reasons) == 5
    totals = counters.sum(axis=1)
    assert found.counted == len(frame)
    assert found.by_n == counters.sum(axis=0).tolist()
    assert found.pathways == totals.sum()
    assert found.with_pathway == (totals > 0).sum() < found.counted
    assert found.most == totals.max()
    first = [next(m for m, ways in enumerate(row) if ways) for row in counters.tolist() if any(row)]
    assert found.reached.tolist() == [first.count(m) for m in range(7)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert found.per_junction.quantile(share) == (np.quantile(totals.astype(float), share), True)
    sizes = frame["cdr3"].str.len()
    assert found.in_frame == (sizes % 3 == 0).sum() < found.counted
    genes = frame.assign(v=frame["v_call"].str.split("*").str[0], j=frame["j_call"].str.split("*").str[0])
    pairs = genes.groupby(["v", "j"])["pathways_total"].agg(["size", "sum"])
    assert {key: tuple(cell) for key, cell in found.pairs.items()} == {
        key: (int(size), int(total)) for key, size, total in pairs.itertuples()
    }
    edges = [0, *EDGES.astype(float), np.inf]
    assert coarse(found.totals).tolist() == np.histogram(totals.astype(float), edges)[0].tolist()
    for m in range(7):
        expected = np.histogram(counters[:, m].astype(float), edges)[0]
        assert coarse(found.totals_by_n)[m].tolist() == expected.tolist()
    for size in range(129):
        chosen = totals[(sizes == size).to_numpy()].astype(float)
        assert coarse(found.totals_by_size)[size].tolist() == np.histogram(chosen, edges)[0].tolist()


@pytest.mark.parametrize("block_bytes", [1 << 25, 3000])
def test_the_most_convergent(counted, monkeypatch, block_bytes):
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    found = survey(counted, "t")
    with Result(counted) as result:
        frame = result.to_table().to_pandas()
    frame["place"] = range(len(frame))
    groups = frame.groupby(["v_call", "j_call", "cdr3"]).agg(
        total=("pathways_total", "first"), rows=("row", "size"), place=("place", "min"), name=("sequence_id", "first")
    )
    best = groups.sort_values(["total", "place"], ascending=[False, True]).head(module.MOST_CONVERGENT)
    assert [(one.v_call, one.j_call, one.cdr3) for one in found.convergent] == best.index.tolist()
    assert [one.rows for one in found.convergent] == best["rows"].tolist()
    assert [one.pathways for one in found.convergent] == best["total"].tolist()
    assert [one.sequence_id for one in found.convergent] == best["name"].tolist()
    (_, first), (_, typical) = found.shown
    assert first == found.convergent[0]
    with_pathway = frame["pathways_total"][frame["pathways_total"] > 0]
    assert typical.pathways == int(np.sort(with_pathway)[(len(with_pathway) - 1) // 2])


def test_repeats_are_one_junction(counted, monkeypatch):
    monkeypatch.setattr(module, "MOST_CONVERGENT", 1000)
    found = survey(counted, "t")
    assert max(one.rows for one in found.convergent) >= 6
    assert all(one.pathways for one in found.convergent)


def test_a_junction_by_its_name(counted):
    found = survey(counted, "t", "again3")
    assert [junction.sequence_id for _, junction in found.shown] == ["again3"]
    assert survey(counted, "t", "nobody").shown == []


def test_reasons_are_grouped(counted):
    reasons = {kind: (rows, words) for kind, rows, words in survey(counted, "t").reasons}
    assert reasons["V gene not in the germline table"] == (2, [("V gene TRBV999 is not in the germline table", 2)])
    assert reasons["no V call"] == (1, [])
    assert reasons["sequence_id repeats that of an earlier row"] == (1, [])
    assert reasons["ambiguous V call: several genes or alleles"][0] == 1
    assert kind_of("CDR3 of 130 nt is longer than 128 nt") == "CDR3 longer than 128 nt"
    assert kind_of("junction of 4 nt is shorter than its two anchor codons").startswith("junction shorter")
    assert kind_of("junction holds 'N', not only A, C, G, T") == "junction holds another letter than A, C, G, T"
    assert kind_of("something new") == "something new"


def test_quantiles_beyond_the_exact_values():
    rng = np.random.default_rng(3)
    totals = np.floor(10 ** rng.uniform(0, 15, 5000)).astype(np.uint64)
    found = PerJunction()
    for part in np.array_split(totals, 7):
        found.add(part)
    for share in (0.1, 0.5, 0.99, 1.0):
        value, exact = found.quantile(share)
        true = np.quantile(totals.astype(float), share)
        assert exact == (true < module.EXACT)
        assert value == true if exact else abs(value / true - 1) < 1 / 128
    assert PerJunction().quantile(0.5) == (0.0, True)


def test_bins_start_at_whole_numbers():
    assert EDGES[:6].tolist() == [1, 2, 4, 6, 10, 18]
    assert (np.diff(FINE_EDGES.astype(float)) >= 0).all()
    assert module.binned(np.array([0, 1, 2**63], np.uint64)).tolist()[0] == 0
    assert module.binned(np.array([2**63], np.uint64))[0] == len(FINE_EDGES)


def test_translation():
    assert translate("TGTGCCAGCAGTTTTTGGTAA") == "CASSFW*"
    assert translate("") == ""
    assert translate("ACGT") is None
    assert len(CODE) == 64
    counts = {letter: list(CODE.values()).count(letter) for letter in "LSRMW*"}
    assert counts == {"L": 6, "S": 6, "R": 6, "M": 1, "W": 1, "*": 3}


def test_damage_is_named(counted, tmp_path):
    import h5py

    broken = tmp_path / "broken.h5"
    broken.write_bytes(counted.read_bytes())
    with h5py.File(broken, "a") as file:
        del file["sequences/cdr3"]
    with pytest.raises(InputError, match=r"broken\.h5: damaged"):
        survey(broken, "t")
