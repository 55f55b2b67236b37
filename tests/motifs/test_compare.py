"""A comparison from file to result: every layout, ranks, selections, bad input."""

import numpy as np
import pytest

import hpcvdj.motifs
from hpcvdj.errors import InputError, StoppedError
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.scores import Scoring, base_frequencies, make_score, markdown, terms_of
from hpcvdj.motifs.tiles import plan, tiles_of_rank
from tests.cli.test_mpiexec import launch
from tests.commands import LITTLE, error_line, hpcvdj_command, run, succeeded
from tests.conftest import ROOT
from tests.kernels.kmers.cases import random_text
from tests.kernels.kmers.reference import exact_counters
from tests.motifs.comparing import TEXTS, D, K, StopWhen, compare, content, exact

EDGES = ["--top", "3", "--score", "background", "--strands", "both"]


@pytest.mark.parametrize(
    "layout", [(512, 512), (7, 3), (5, 5), pytest.param((1, 1), marks=pytest.mark.exhaustive), (100, 4)]
)
def test_all_pairs_whatever_the_tiles(fasta, tmp_path, monkeypatch, layout):
    summary = compare(fasta, tmp_path / "o.h5", layout=layout, monkeypatch=monkeypatch, strands="both")
    assert np.array_equal(content(tmp_path / "o.h5"), exact())
    upper = np.triu(np.ones(exact().shape[2:], dtype=bool), 1)
    assert summary.pairs == [[int(((plane != 0) & upper).sum()) for plane in strand] for strand in exact()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.h5", "some.fasta"], "no debris"
    with MotifResult(tmp_path / "o.h5") as result:
        assert result.names == [f"s{i}" for i in range(len(TEXTS))]
        assert (result.k, result.d, result.strands) == (K, D, 2)


def test_a_weight_below_zero_has_no_cosine():
    """Cosines far above 1 were written."""
    assert make_score("weights", [-1, 1, 1], 6, 2).weights == (-1, 1, 1)
    assert make_score("cosine", [0, 1, 1], 6, 2).weights == (0, 1, 1)
    with pytest.raises(InputError, match=r"weights: with -1, a sequence may be unlike itself, .*or score='weights'"):
        make_score("cosine", [-1, 1, 1], 6, 2)


def expected_edges(kind, weights, strands, minimum, top):
    """By the definition of a selection, pair by pair."""
    forward = profile(sequence_set(TEXTS), K, D)
    frequencies = base_frequencies(forward, both_strands=strands == 2)
    scoring = Scoring(make_score(kind, weights, K, D), [terms_of(forward, D, frequencies)] * 2)
    n, found = len(TEXTS), []
    for s in range(strands):
        scores = scoring.rectangle(exact()[s].astype(np.uint32), s, 0, 0)
        for i in range(n):
            for j in range(i + 1, n):
                if exact()[s, :, i, j].any() and (minimum is None or scores[i, j] >= minimum):
                    found.append((s, i, j, tuple(exact()[s, :, i, j].tolist()), float(scores[i, j])))
    found = [edge for edge in found if not np.isnan(edge[4])]
    if top is None:
        return sorted(found)
    kept = set()
    for i in range(n):
        mine = [edge for edge in found if i in edge[1:3]]
        mine.sort(key=lambda edge: (-edge[4], edge[1] + edge[2] - i, edge[0]))
        kept.update(mine[:top])
    return sorted(kept)


KINDS = ("weights", 1), ("cosine", 2), ("background", 2)
LAYOUTS = (512, 512), (7, 3), (4, 4)


@pytest.mark.slow_others("minimum")
@pytest.mark.parametrize(("minimum", "top"), [(0.2, None), (None, 2), (0.05, 3), (None, 100), (9.0, 1)])
@pytest.mark.parametrize(
    ("kind", "strands", "layout"),
    [
        pytest.param(*kind, layout, marks=[] if kind == KINDS[2] or layout == LAYOUTS[0] else pytest.mark.exhaustive)
        for kind in KINDS
        for layout in LAYOUTS
    ],
)
def test_edges_are_those_of_the_definition(fasta, tmp_path, monkeypatch, kind, strands, minimum, top, layout):
    edges = EdgeFilter(min_score=minimum, top=top)
    summary = compare(
        fasta, tmp_path / "o.h5", layout=layout, monkeypatch=monkeypatch, edges=edges, score=kind,
        strands="one" if strands == 1 else "both", method="pigeonhole",
    )  # fmt: skip
    expected = expected_edges(kind, None, strands, minimum, top)
    found = sorted(content(tmp_path / "o.h5"))
    assert [edge[:4] for edge in found] == [edge[:4] for edge in expected]
    assert [edge[4] for edge in found] == [edge[4] for edge in expected], "to the bit"
    assert summary.edges == len(expected)


def test_background_is_the_product_of_centred_counts():
    """C_h(i, j) = sum over x, y at distance h of (f_i(x) - N_i p(x)) (f_j(y) - N_j p(y))."""
    k, d = 4, 2
    texts = ["ACGTTACGAAC", "AAAAAAAA", "GATTACAGATT"]
    some = profile(sequence_set(texts), k, d)
    q = base_frequencies(some, both_strands=False)
    words = np.array([[x >> 2 * (k - 1 - p) & 3 for p in range(k)] for x in range(4**k)])
    chance = q[words].prod(axis=1)
    distance = (words[:, None, :] != words[None, :, :]).sum(axis=2)
    f = np.zeros((len(texts), 4**k))
    for i in range(len(texts)):
        for p in range(some.kmers.offsets[i], some.kmers.offsets[i + 1]):
            f[i, int(some.kmers.key[p])] = some.kmers.count[p]
    centred = f - f.sum(axis=1, keepdims=True) * chance
    weights = [1.0, 0.5, 0.25]
    total = sum(w * centred @ (distance == h) @ centred.T for h, w in enumerate(weights))
    expected = total / np.sqrt(np.outer(total.diagonal(), total.diagonal()))
    terms = terms_of(some, d, q)
    scoring = Scoring(make_score("background", weights, k, d), [terms])
    found = scoring.rectangle(exact_counters(texts, k, d).astype(np.uint32), 0, 0, 0)
    # Sums of some hundred products in another order: 10 times the largest difference seen.
    assert np.allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", ["weights", "cosine", "background"])
def test_the_order_of_two_sequences_changes_no_score(kind, tmp_path):
    """A cosine of 0.5 was an edge, or none, by the order of the sequences; that of equal ones was not always 1."""
    rng = np.random.default_rng(8)
    texts = ["".join(rng.choice(list("ACGT"), size, p=[0.4, 0.3, 0.2, 0.1])) for size in rng.integers(20, 60, 30)]
    named = [(f"s{k}", text) for k, text in enumerate([*texts, *texts])]
    found = []
    for order in (1, -1):
        path = tmp_path / f"{order}.fasta"
        path.write_text("".join(f">{name}\n{text}\n" for name, text in named[::order]))
        compare(path, tmp_path / f"{order}.h5", k=4, d=1, strands="both", score=kind, edges=EdgeFilter(min_score=-1e9))
        names = [name for name, _ in named[::order]]
        edges = content(tmp_path / f"{order}.h5")
        found.append({(strand, frozenset((names[i], names[j]))): score for strand, i, j, _, score in edges})
    assert found[0] == found[1]
    if kind == "cosine":
        assert {found[0][0, frozenset((f"s{k}", f"s{k + 30}"))] for k in range(30)} == {1.0}


def test_a_reverse_complement_has_the_terms_of_its_sequence():
    forward = profile(sequence_set(TEXTS), K, D)
    frequencies = base_frequencies(forward, both_strands=True)
    of_both = [terms_of(side, D, frequencies) for side in (forward, forward.reverse_complement())]
    for one, other in zip(*(vars(terms).values() for terms in of_both), strict=True):
        # Sums of the same numbers in another order.
        assert np.allclose(one, other, rtol=1e-13, atol=0)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_tiles_of_the_ranks_are_all_tiles_once(ranks):
    for n, load, height in ((100, 20, 10), (7, 100, 3), (1, 1, 1), (33, 8, 8), (33, 4, 33)):
        every = plan(n, 2, load, height)
        assert sum(tile.pairs for tile in every) == 2 * n * (n + 1) // 2
        for few_loads in (False, True):
            shares = [tiles_of_rank(every, rank, ranks, few_loads=few_loads) for rank in range(ranks)]
            assert sorted(tile for share in shares for tile in share) == sorted(every)


def test_a_rank_may_have_few_loads():
    """Of 100,000 columns in 11 loads: as many pairs on each of 4 ranks, and a load begun is shared by two at most."""
    every = plan(100_000, 1, 9216, 6144)
    shares = [tiles_of_rank(every, rank, 4, few_loads=True) for rank in range(4)]
    pairs = [sum(tile.pairs for tile in share) for share in shares]
    assert max(pairs) / min(pairs) < 1.05
    loads = [{tile.column for tile in share} for share in shares]
    assert sum(map(len, loads)) <= 11 + 3
    assert max(map(len, loads)) < 8, "else as many as if each rank had a part of each"


def test_the_ranks_have_about_as_much_each():
    every = plan(51_200, 1, 51_200, 512)
    work = [sum(tile.pairs for tile in tiles_of_rank(every, rank, 4)) for rank in range(4)]
    # Of the 25 tiles of a rank one is without its counterpart: twice the mean at most, against none.
    assert max(work) / min(work) < 26 / 24


def test_loads_of_one_tile_are_shared():
    every = plan(10_240, 1, 512, 10_240)
    work = [sum(tile.pairs for tile in tiles_of_rank(every, rank, 4)) for rank in range(4)]
    assert max(work) / min(work) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (3, []),
        (3, EDGES),
        *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in ((2, []), (2, EDGES), (4, []), (4, EDGES))),
    ],
)
def test_results_do_not_depend_on_ranks(fasta, tmp_path, ranks, options, on_ranks):
    many = tmp_path / "many.fasta"
    rng = np.random.default_rng(1)
    many.write_text("".join(f">{i}\n{random_text(rng, 40, 'AACG')}\n" for i in range(1100)))
    one, other = tmp_path / "one.h5", tmp_path / "other.h5"
    words = ["motifs", "compare", many, "-k", "7", "-d", "1", *options, "-o"]
    hpcvdj_command(*words, one)
    out, _ = on_ranks(ranks, *words, other)
    assert out.count("1,100 of 44,000 bases") == 1, "root alone speaks"
    found = content(one), content(other)
    assert np.array_equal(*found) if not options else sorted(found[0]) == sorted(found[1])


def test_filters_that_keep_nothing():
    with pytest.raises(InputError, match="min_score=nan: give a number"):
        EdgeFilter(min_score=float("nan"))
    with pytest.raises(InputError, match="top=0: give at least 1"):
        EdgeFilter(top=0)


def test_sequences_without_a_kmer_are_said(tmp_path):
    short = tmp_path / "short.fasta"
    short.write_text(">a\nACGTACG\n>b\nACGTNACGTN\n")
    _, err = hpcvdj_command("motifs", "compare", short, "-k", "8", "-o", tmp_path / "o.h5")
    assert "short.fasta: no sequence has 8 bases A, C, G, T in a row" in err


def test_bad_input_is_one_line(tmp_path, fasta):
    empty, twice, text = tmp_path / "e.fasta", tmp_path / "t.fasta", tmp_path / "x.fasta"
    empty.write_text("")
    twice.write_text(">a\nACGT\n>a other\nACGT\n")
    text.write_text(">a\nACGT\n\n;\x00\xff>>\n")
    out = tmp_path / "o.h5"
    for arguments, message in (
        ((tmp_path / "none.fasta",), "no such file"),
        ((empty,), "has no sequences"),
        ((twice,), "two sequences are called 'a'"),
        ((fasta, "--weights", "1,2"), "2 given; give a finite number"),
        ((fasta, "--weights", "1,x,2"), "give numbers such as"),
        ((fasta, "-k", "20", "--method", "matrix", "--backend", "cpu"), "takes k up to 11, not 20"),
        ((fasta, "--method", "pigeonhole", "--blocks", "2"), "--blocks 2"),
        ((fasta, "--sequence-field", "cdr3", "-o", tmp_path), "is a folder"),
    ):
        target = () if "-o" in arguments else ("-o", out)
        assert message in error_line(hpcvdj_command("motifs", "compare", *arguments, *target, code=2)[1])
        assert not out.exists()
        assert not (tmp_path / "o.h5.checkpoint").exists()


def test_fasta_as_people_have_it(tmp_path):
    import gzip

    from hpcvdj.motifs.sequences import read_sequences

    path = tmp_path / "x.fa.gz"
    path.write_bytes(gzip.compress(b">one first\r\nacgt\r\nACGT\r\n>two\tsecond\nNNRY\n\n>three\n"))
    some = read_sequences(path)
    assert some.names == ["one", "two", "three"]
    assert [some.text(i) for i in range(3)] == ["ACGTACGT", "NNNN", ""]
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(InputError, match=r"x\.fa\.gz: cannot be read|not a readable"):
        read_sequences(path)


def test_junctions_of_a_table_are_taken_once(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sequence_id\tjunction\nb\tTGTGCC\na\ttgtgcc\nc\t\nd\tTGTTTT\n")
    compare(path, tmp_path / "o.h5", k=4, d=1, rows="all")
    with MotifResult(tmp_path / "o.h5") as result:
        assert result.names == ["b", "d"]


def test_run_json_that_cannot_be_read(fasta, tmp_path, monkeypatch):
    target, folder = tmp_path / "o.h5", tmp_path / "o.h5.checkpoint"
    options = {"layout": (6, 4), "monkeypatch": monkeypatch}
    with pytest.raises(StoppedError):
        compare(fasta, target, request=StopWhen(folder, "tile-*.state", 3), **options)
    (folder / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json"):
        compare(fasta, target, resume=True, **options)


def test_a_name_that_a_result_cannot_hold(tmp_path):
    (tmp_path / "nul.fasta").write_text(">a\0b\nACGTACGT\n>b\nACGTACGA\n")
    with pytest.raises(InputError, match=r"nul\.fasta: the name 'a\\x00b' has a NUL"):
        compare(tmp_path / "nul.fasta", tmp_path / "o.h5")


def test_more_edges_asked_for_than_there_can_be(fasta, tmp_path):
    edges = []
    for name, top in (("all.h5", None), ("o.h5", 10**12)):
        compare(fasta, tmp_path / name, strands="both", edges=EdgeFilter(min_score=0.0, top=top))
        with MotifResult(tmp_path / name) as result:
            edges.append([tuple(map(int, cells)) for some in result.edges()
                          for cells in some[["strand", "row", "column"]].tolist()])  # fmt: skip
    assert edges[0]
    assert sorted(edges[0]) == sorted(edges[1])


@pytest.mark.slow
def test_ranks_of_different_backends_share_the_tiles_alike(fasta, tmp_path):
    pytest.importorskip("mpi4py")
    program = tmp_path / "program.py"
    program.write_text(
        LITTLE + "import sys\nimport hpcvdj.motifs.comparison as compare\n"
        "from hpcvdj.__main__ import main\nfrom hpcvdj.kernels.kmers.methods import KmerMethod\n"
        "from hpcvdj.runs.ranks import world\n"
        "import hpcvdj.motifs.results as results\n"
        "results.CHUNK = 1\n"
        "compare.layout_of = lambda *ignored: {'load': 3, 'height': 2}\n"
        "KmerMethod.rows_need_tables = not world().is_root\n"
        "sys.argv = ['hpcvdj', 'motifs', 'compare', *sys.argv[1:]]\nmain()\n"
    )
    done = launch(2, program, fasta, "-k", K, "-d", D, "--strands", "both", "-o", tmp_path / "o.h5", "--backend", "cpu",
                  "--method", "matrix")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert np.array_equal(content(tmp_path / "o.h5"), exact())


TOY = """
from hpcvdj.motifs.scores import Score, markdown

class Toy(Score):
    name = "toy"
    formula = "the largest D_h"
    use = "never"
    normalised = False

    def of(self, counters, rows, columns, chance):
        return counters.max(axis=0).astype(float)

with open(PAGE, "w") as page:
    page.write(markdown())
"""


@pytest.mark.slow
def test_a_score_is_one_class(fasta, tmp_path):
    """A toy score is in the help and the documentation, and works."""
    page = tmp_path / "page.md"
    options = "-k", K, "--backend", "cpu", "--score", "toy", "--min-score", 2, "-o", tmp_path / "o.h5"
    shown, compared = run(
        TOY.replace("PAGE", repr(str(page))),
        ("motifs", "compare", "--help-all"),
        ("motifs", "compare", fasta, *options),
    )
    assert "| `toy` | the largest D_h | never |" in page.read_text()
    assert "|toy" in succeeded(*shown)
    succeeded(*compared)
    expected = np.triu(exact()[0].max(axis=0), 1)
    edges = content_of_toy(tmp_path / "o.h5")
    assert edges == {(int(i), int(j)): float(expected[i, j]) for i, j in zip(*np.nonzero(expected >= 2), strict=True)}


def content_of_toy(path):
    """Edges and scores, read without the toy class."""
    import h5py

    with h5py.File(path) as file:
        columns = [file[f"edges/{name}"][:].tolist() for name in ("row", "column", "score")]
    return {(i, j): score for i, j, score in zip(*columns, strict=True)}


def test_the_documentation_lists_the_scores():
    assert markdown() in (ROOT / "docs" / "motifs.md").read_text()


def test_another_ending_is_refused_at_once(fasta, tmp_path):
    """A result named like a table was HDF5 nevertheless."""
    _, err = hpcvdj_command("motifs", "compare", fasta, "-k", "8", "-o", tmp_path / "o.tsv", code=2)
    assert error_line(err) == f"hpcvdj: error: {tmp_path}/o.tsv: the name must end in .h5"
    assert [path.name for path in tmp_path.iterdir()] == ["some.fasta"]


def test_blocks_are_of_pigeonhole():
    for method in ("matrix", "index"):
        with pytest.raises(InputError, match="blocks=3: applies only to the method pigeonhole; leave it out"):
            hpcvdj.motifs.compare(["ACGTACGTACGTACGT"] * 2, k=12, d=1, method=method, blocks=3, backend="cpu")
