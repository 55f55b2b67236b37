"""`hpcvdj motifs export`: what pandas, networkx and scipy read back is what was counted."""

import numpy as np
import pytest
from scipy import sparse

from hpcvdj.cli import motifs
from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.motifs import graph
from hpcvdj.motifs.edges import EdgeFilter, edges_of
from hpcvdj.motifs.export import export
from hpcvdj.motifs.graph import score_matrix, selected_edges
from hpcvdj.motifs.results import MotifResult
from tests.motifs.conftest import D, K, families, write_result

KINDS = [(dense, strands) for dense in (True, False) for strands in (1, 2)]
LEAST = 0.05


def expected_pairs(written, least):
    """{(name, name, strand): (counters, score)} by a plain loop."""
    names, found = written.sequences.names, {}
    for s, sign in enumerate("+-"[: len(written.scores)]):
        for i in range(len(names)):
            for j in range(i + 1, len(names)):
                score = written.scores[s, i, j]
                if score >= least and written.counters[s, :, i, j].any():
                    found[names[i], names[j], sign] = written.counters[s, :, i, j].tolist(), score
    return found


def read_table(path):
    pd = pytest.importorskip("pandas")
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, sep="\t", quoting=3, converters={"score": float})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "parquet"])
def test_a_table_has_every_pair_once(results, run, tmp_path, kind, ending):
    written = results[kind]
    out = tmp_path / f"edges.{ending}"
    text = run(motifs.export, written.path, "-o", out, "--min-score", LEAST)
    table = read_table(out)
    assert list(table.columns) == ["name_1", "name_2", "strand", "d0", "d1", "d2", "score"]
    rows = {
        (a, b, s): ([d0, d1, d2], score)
        for a, b, s, d0, d1, d2, score in table.itertuples(index=False, name=None)
    }  # fmt: skip
    expected = expected_pairs(written, LEAST)
    assert len(rows) == len(table)
    assert rows == expected
    assert len(rows) > 50
    assert f"edges      {len(rows):,}" in text


def test_raw_counters_are_those_of_the_sub_tables(results, tmp_path):
    from tests.kernels.kmers.reference import raw_counters

    written = results[False, 1]
    with MotifResult(written.path) as result:
        export(result, tmp_path / "raw.parquet", raw=True)
    table = read_table(tmp_path / "raw.parquet")
    texts = [written.sequences.text(i) for i in range(len(written.sequences))]
    some = table.sample(12, random_state=1)
    for row in some.itertuples():
        pair = [texts[written.sequences.names.index(name)] for name in (row.name_1, row.name_2)]
        assert [row.r0, row.r1, row.r2] == raw_counters(pair, K, D)[:, 0, 1].tolist()


@pytest.mark.parametrize("strands", [1, 2])
def test_networkx_reads_the_graph(results, run, tmp_path, strands):
    nx = pytest.importorskip("networkx")
    written = results[False, strands]
    run(motifs.export, written.path, "-o", tmp_path / "g.graphml", "--raw")
    read = nx.read_graphml(tmp_path / "g.graphml")
    assert sorted(read.nodes) == sorted(written.sequences.names)
    assert [read.nodes[name]["length"] for name in written.sequences.names] == written.sequences.lengths.tolist()
    found = {}
    for a, b, facts in read.edges(data=True):
        key = (a, b) if written.sequences.names.index(a) < written.sequences.names.index(b) else (b, a)
        found[(*key, facts["strand"])] = [facts["d0"], facts["d1"], facts["d2"]], facts["score"]
        assert facts["weight"] == facts["score"]
        assert facts["r0"] == facts["d0"]
        assert facts["r1"] == facts["d1"] + K * facts["d0"]
    assert found == expected_pairs(written, LEAST)


@pytest.mark.parametrize("strand", ["+", "-", "both"])
@pytest.mark.parametrize("dense", [True, False])
def test_scipy_reads_the_matrix(results, run, tmp_path, strand, dense):
    written = results[dense, 2]
    run(motifs.export, written.path, "-o", tmp_path / "m.npz", "--strand", strand, "--min-score", LEAST)
    matrix = sparse.load_npz(tmp_path / "m.npz")
    names = written.sequences.names
    assert np.load(tmp_path / "m.npz")["names"].tolist() == names
    expected = np.zeros((len(names), len(names)))
    for (a, b, sign), (_, score) in expected_pairs(written, LEAST).items():
        if strand in ("both", sign):
            i, j = names.index(a), names.index(b)
            expected[i, j] = expected[j, i] = max(expected[i, j], score)
    assert matrix.format == "csr"
    np.testing.assert_array_equal(matrix.toarray(), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("top", [1, 3])
def test_the_best_of_each_sequence(results, kind, top, monkeypatch):
    written = results[kind]
    pairs = expected_pairs(written, LEAST)
    names, best = written.sequences.names, set()
    for name in names:
        ranked = sorted(
            (-score, names.index(b if a == name else a), "+-".index(sign), (a, b, sign))
            for (a, b, sign), (_, score) in pairs.items()
            if name in (a, b)
        )
        best |= {key for *_, key in ranked[:top]}
    with MotifResult(written.path) as result:
        whole = [
            edge
            for piece in selected_edges(result, EdgeFilter(min_score=LEAST, top=top))
            for edge in keys(written, piece)
        ]
        monkeypatch.setattr(graph, "PIECE", 256)  # Columns one by one; the best are chosen again and again.
        cut = [
            edge
            for piece in selected_edges(result, EdgeFilter(min_score=LEAST, top=top))
            for edge in keys(written, piece)
        ]
    assert whole == cut
    assert len(whole) == len(best)
    assert set(whole) == best


def keys(written, piece):
    names = written.sequences.names
    return [(names[i], names[j], "+-"[s]) for i, j, s in piece[["row", "column", "strand"]].tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_higher_score_takes_fewer(results, kind):
    written = results[kind]
    with MotifResult(written.path) as result:
        found = [edge for piece in selected_edges(result, EdgeFilter(min_score=0.3)) for edge in keys(written, piece)]
    assert set(found) == set(expected_pairs(written, 0.3))
    assert 20 < len(found) < len(expected_pairs(written, LEAST))


def test_several_tiles_give_what_one_gives(tmp_path, monkeypatch):
    some = families(n=560, length=40)
    dense = write_result(tmp_path / "d.h5", some, k=8, d=1, strands=2, dense=True)
    edges = write_result(
        tmp_path / "e.h5", some, k=8, d=1, strands=2, dense=False, edge_filter=EdgeFilter(min_score=0.1)
    )
    monkeypatch.setattr(graph, "PIECE", 256 * 256)
    with MotifResult(dense.path) as a, MotifResult(edges.path) as b:
        pieces = list(selected_edges(a, EdgeFilter(min_score=0.1)))
        assert len(pieces) > 6
        one = {key for piece in pieces for key in keys(dense, piece)}
        two = {key for piece in selected_edges(b) for key in keys(edges, piece)}
    assert one == two
    assert len(one) > 500


def test_nothing_to_write_gives_empty_files(tmp_path):
    nx = pytest.importorskip("networkx")
    lonely = sequence_set(["ACG", "TTT"], ["a", "b"])
    written = write_result(tmp_path / "r.h5", lonely, dense=False)
    with MotifResult(written.path) as result:
        for ending in ("tsv", "parquet", "graphml", "npz"):
            assert export(result, tmp_path / f"none.{ending}") == 0
    assert list(read_table(tmp_path / "none.tsv").columns)[:3] == ["name_1", "name_2", "strand"]
    assert len(read_table(tmp_path / "none.parquet")) == 0
    assert sorted(nx.read_graphml(tmp_path / "none.graphml")) == ["a", "b"]
    assert sparse.load_npz(tmp_path / "none.npz").shape == (2, 2)


def test_a_score_of_zero_keeps_its_place():
    edges = edges_of({"row": [0], "column": [2], "strand": 0, "counters": np.ones((1, 1)), "score": 0.0})
    assert score_matrix([edges], 3).nnz == 2


@pytest.mark.parametrize(
    ("kind", "name", "options", "message"),
    [
        ((True, 1), "x.tsv", {}, "min_score or top"),
        ((False, 1), "x.csv", {}, "must end in .tsv"),
        ((False, 1), "x.tsv", {"strand": "-"}, "strands='both'"),
        ((False, 1), "x.npz", {"raw": True}, "leave out raw"),
        ((False, 1), "none/x.tsv", {}, "no such folder"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(results, tmp_path, kind, name, options, message):
    with MotifResult(results[kind].path) as result, pytest.raises(InputError, match=message) as caught:
        export(result, tmp_path / name, **options)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_unasked(results, tmp_path):
    (tmp_path / "x.tsv").write_text("mine")
    with MotifResult(results[False, 1].path) as result:
        with pytest.raises(InputError, match="exists already"):
            export(result, tmp_path / "x.tsv")
        assert (tmp_path / "x.tsv").read_text() == "mine"
        export(result, tmp_path / "x.tsv", overwrite=True)
    assert (tmp_path / "x.tsv").read_text().startswith("name_1\t")


def test_a_name_that_breaks_lines_is_refused(tmp_path):
    some = sequence_set(["ACGTACGTAC"] * 2, ["a\tb", "c"])
    written = write_result(tmp_path / "r.h5", some, dense=False)
    with MotifResult(written.path) as result:
        with pytest.raises(InputError, match="control character"):
            export(result, tmp_path / "x.tsv")
        export(result, tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet").name_1.tolist() == ["a\tb"]


@pytest.mark.parametrize("command", [motifs.export, motifs.cluster, motifs.show, motifs.plot])
def test_each_subcommand_explains_itself(run, command):
    text = run(command, "--help")
    assert f"hpcvdj motifs {command.__name__} " in " ".join(text.split())
    assert len(text.splitlines()) > 20


def test_without_networkx_the_extra_is_named(results, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "networkx", None)
    with MotifResult(results[False, 1].path) as result:
        with pytest.raises(InputError, match=r"pip install 'hpcvdj\[graphs\]'"):
            export(result, tmp_path / "x.graphml")
        export(result, tmp_path / "x.tsv")
