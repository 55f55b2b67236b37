"""`hpcvdj annotate`: exact on small databases, calibrated on what recombination makes, and it finds what is planted."""

import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.annotation import statistics
from hpcvdj.annotation.centres import centres_of
from hpcvdj.annotation.question import AnnotationOutput, _sample_lines
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.annotation.union import PGEN_AA, probabilities, union_of
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.chance.question import Rows
from hpcvdj.errors import InputError
from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
from hpcvdj.recombination.productive import productive_choice
from hpcvdj.recombination.repertoire import PgenProblem
from hpcvdj.recombination.selection import RESIDUES
from hpcvdj.repertoires.databases import database_of
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.writers import write_table
from hpcvdj.reports.outputs import DIFFERS
from tests.annotation.drawn import records_of, sample_of
from tests.commands import error_line, hpcvdj_command
from tests.kernels.pgen.problems import values_of
from tests.report.conftest import Page
from tests.selected import log_factor_of


def ball(text):
    """All sequences within one exchange, ends kept, by a loop."""
    return {text[:k] + residue + text[k + 1 :] for k in range(1, len(text) - 1) for residue in RESIDUES}


def genes(*calls):
    return tuple(call.partition("*")[0] for call in calls)


def expected_by_loops(database, answer, model, rows):
    """The expected number of each epitope at κ = 1, and λ of each record: sums over sets of sequences."""
    (own,) = answer.samples
    chance, factor = productive_choice(model), model.selection
    union, balls = {}, {}
    for row in database.to_pylist():
        pair = genes(row["v_call"], row["j_call"])
        members = {(*pair, text) for text in ball(row["junction_aa"])}
        union.setdefault(row["epitope"], set()).update(members)
        balls[*pair, row["junction_aa"]] = members
    every = sorted(set().union(*union.values()))
    table = pa.table(
        dict(zip(("v_call", "j_call", "junction_aa"), map(pa.array, zip(*every, strict=True)), strict=True))
    )
    pgen = hpcvdj.pgen(table, model, sequence="aa", backend="cpu")["pgen_aa"].to_pylist()
    of_class = {
        (v, j): chance[np.ix_(model.find("V", v), model.find("J", j))].sum() for v, j in {own[:2] for own in every}
    }
    pi = {}
    for member, p in zip(every, pgen, strict=True):
        q = np.exp(log_factor_of(factor, *member)) / factor.means[member[:2]]
        # 1 - (1 - p)^n, whose digits 1 - p would lose.
        pi[member] = -np.expm1(rows[member[:2]] * np.log1p(-p * q / of_class[member[:2]]))
    sums = {name: sum(pi[member] for member in members) for name, members in union.items()}
    return sums, {centre: sum(pi[member] for member in members) for centre, members in balls.items()}, own


@pytest.mark.slow
def test_expected_numbers_are_sums_over_unions_by_a_loop(model, drawn):
    # The recombinations of each class as the program has them; a record, and two that are near to it.
    some = drawn.slice(0, 25).select(["v_call", "j_call", "junction_aa"])
    first = some.slice(0, 1).to_pylist()[0]
    text = first["junction_aa"]
    # Tryptophan makes a record that chance hits less than the first one.
    near = [{**first, "junction_aa": text[:5] + ("W" if text[5] != "W" else "G") + text[6:]}] * 2
    rows = pa.concat_tables([some, pa.Table.from_pylist(near, some.schema)])
    database = rows.append_column("epitope", pa.array([f"E{k % 4}" for k in range(len(rows))]))
    read = pa.concat_tables([drawn.slice(0, 25), drawn.slice(1_000)])
    answer = hpcvdj.annotate(sample_of(read), database, model, kappa=1.0, backend="cpu")
    n = recombinations(read, database, model)
    sums, balls, _ = expected_by_loops(database, answer, model, n)
    found = {row["epitope"]: row["expected"] for row in answer.epitopes.to_pylist()}
    assert found.keys() == sums.keys()
    for name, value in sums.items():
        assert found[name] == pytest.approx(value, rel=1e-12)
    exact = 0
    for row in answer.hits.to_pylist():
        pair = row["v_call"], row["j_call"]
        reached = {text: value for (v, j, text), value in balls.items()
                   if (v, j) == pair and row["junction_aa"] in ball(text)}  # fmt: skip
        assert row["expected"] == pytest.approx(min(reached.values()), rel=1e-12)
        assert row["distance"] == (row["junction_aa"] not in reached)
        assert row["record"] in reached
        assert row["distance"] or row["record"] == row["junction_aa"]
        exact += not row["distance"] and len(reached) > 1 and row["expected"] < reached[row["record"]]
        rows_of = [str(k + 1) for k, own in enumerate(database.to_pylist())
                   if (*genes(own["v_call"], own["j_call"]), own["junction_aa"]) == (*pair, row["record"])]  # fmt: skip
        assert row["database_rows"] == ";".join(rows_of)
    assert exact


def recombinations(rows, database, model):
    """The recombinations of each class, as the program makes them of distinct junctions."""
    from hpcvdj.annotation import depth
    from hpcvdj.chance.draws import Chance
    from hpcvdj.runs.run import Run

    distinct = set(
        zip(rows["v_call"].to_pylist(), rows["j_call"].to_pylist(), rows["junction"].to_pylist(), strict=True)
    )
    sizes = {}
    for v, j, _ in distinct:
        sizes[genes(v, j)] = sizes.get(genes(v, j), 0) + 1
    chance = Chance(model, depth.DRAWN, 0, "cpu", False)
    drawn = depth.depth_of(model, nucleotides=True, selection=True, genes="call", chance=chance, run=Run())
    pairs = list(sizes)
    return dict(zip(pairs, drawn.recombinations(np.array(list(sizes.values())), pairs), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("match", ["vj", "v", "none"])
@pytest.mark.parametrize("mismatches", [0, 1])
def test_hits_are_those_of_a_loop(model, drawn, match, mismatches):
    rows, database = drawn.slice(2_000, 4_000), records_of(drawn.slice(0, 800), 10)
    answer = hpcvdj.annotate(
        sample_of(rows), database, model, kappa=1.0, match=match, mismatches=mismatches, backend="cpu"
    )
    used = {"vj": 2, "v": 1, "none": 0}[match]
    near = set()
    for row in database.to_pylist():
        texts = ball(row["junction_aa"]) if mismatches else {row["junction_aa"]}
        near |= {(*genes(row["v_call"], row["j_call"])[:used], text) for text in texts}
    expected = {
        (*genes(row["v_call"], row["j_call"])[:used], row["junction_aa"]) for row in rows.to_pylist()
    } & near  # fmt: skip
    names = [*["v_call", "j_call"][:used], "junction_aa"]
    assert {tuple(row[name] for name in names) for row in answer.hits.to_pylist()} == expected
    assert answer.samples[0].found == len(expected) > 0
    mean = answer.samples[0].expected
    assert abs(len(expected) - mean) <= 4 * np.sqrt(mean + 1)


@pytest.mark.slow_others("said")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"match": "v", "kappa": 1.0}, True),
        ({"match": "v"}, False),
        ({"match": "v", "kappa": 1.0, "selection": False}, False),
        ({"match": "vj", "kappa": 1.0}, False),
    ],
)
def test_a_given_kappa_does_not_stand_for_the_factor_that_needs_j(model, drawn, options, said):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        hpcvdj.annotate(drawn.slice(0, 400), records_of(drawn.slice(400, 60), 3), model, **options, backend="cpu")
    text = "selection factor is left out, so kappa must contain its mean"
    assert any(text in str(one.message) for one in told) == said


@pytest.mark.slow
@pytest.mark.parametrize("mismatches", [0, 1])
@pytest.mark.parametrize("match", ["vj", "v", "none"])
def test_probabilities_of_the_union_are_those_of_its_sequences(model, drawn, match, mismatches):
    """As `hpcvdj pgen` has them, one sequence at a time; with all V or J genes for what may differ."""
    rows = records_of(drawn.slice(0, 40), 3)
    union, pgen = union_of(centres_of(database_of(rows), model, DatabaseSettings(), match, ()), mismatches, model)
    assert len(pgen) == len(union) > (1_000 if mismatches else 30)
    problem = PgenProblem(union.repertoire(), model, PGEN_AA)
    expected = values_of(PgenKernel(problem, 0), problem)
    assert ((pgen == 0) == (expected[:, 0] == 0)).all()
    np.testing.assert_allclose(pgen, expected[:, 0], rtol=2e-14, atol=0)
    made = probabilities(union, pgen, model, None)
    assert (made.given <= 1).all()
    assert made.limits[0] > made.limits[1] > 0


@pytest.mark.slow
def test_the_union_has_every_sequence_once(model, drawn):
    database = database_of(records_of(drawn.slice(0, 60), 3))
    union, _ = union_of(centres_of(database, model, DatabaseSettings(), "vj", ()), 1, model)
    texts = [bytes(row).rstrip(b"\0").decode() for row in union.letters]
    members = list(zip(union.kind.tolist(), texts, strict=True))
    assert len(set(members)) == len(members)
    balls = {(kind, own) for kind, text in zip(union.centres.kind.tolist(), union.centres.texts, strict=True)
             for own in ball(text)}  # fmt: skip
    assert set(members) == balls
    assert (union.find(union.kind, union.letters, union.lengths) == np.arange(len(union))).all()
    other = union.letters.copy()
    other[:, 1] = ord("*")
    assert (union.find(union.kind, other, union.lengths) == -1).all()
    assert (union.find(union.kind + 1, union.letters, union.lengths) != np.arange(len(union))).all()


@pytest.mark.slow
def test_planted_hits_are_called_and_their_false_discovery_rate_is_near_the_true_one(model, drawn):
    database = records_of(drawn.slice(0, 1_500), 20)
    p = hpcvdj.pgen(database.select(["v_call", "j_call", "junction_aa"]), model, sequence="aa", backend="cpu")
    organism = np.array(database["organism"].to_pylist())
    rare = np.flatnonzero((p["pgen_aa"].to_numpy() < 1e-9) & (organism == "other"))
    rare = rare[np.argsort(np.array(database["epitope"].to_pylist())[rare], kind="stable")][:60]
    names = ["v_call", "j_call", "junction_aa"]
    planted = database.take(rare).select(names)
    sample = pa.concat_tables([drawn.slice(1_500).select(names), planted])
    answer = hpcvdj.annotate(sample, database, model, decoys=("decoy",), max_q=0.2, backend="cpu")
    (own,) = answer.samples
    assert own.passed
    assert own.kappa.source == "decoys"
    keys = {(*genes(row["v_call"], row["j_call"]), row["junction_aa"]) for row in planted.to_pylist()}
    called = [row for row in answer.hits.to_pylist() if row["fdr"] <= 0.2]
    true = sum((row["v_call"], row["j_call"], row["junction_aa"]) in keys for row in called)
    assert true >= 0.9 * len(keys)
    estimated = max(row["fdr"] for row in called) * len(called)
    assert abs(estimated - (len(called) - true)) <= 4 * np.sqrt(estimated + 1)
    assert own.called[0] > 0
    assert not any(row["decoy"] for row in answer.epitopes.to_pylist() if row["q_value"] <= 0.05)


@pytest.mark.slow
def test_one_epitope_of_decoys_among_several_takes_nothing_from_the_others(model, drawn, monkeypatch):
    # That of so few decoys would be that of the one which is called.
    monkeypatch.setattr(statistics, "dispersion", lambda *numbers, **options: 1.0)
    database = records_of(drawn.slice(0, 1_500), 20)
    names = ["v_call", "j_call", "junction_aa"]
    p = hpcvdj.pgen(database.select(names), model, sequence="aa", backend="cpu")["pgen_aa"].to_numpy()
    epitope = np.array(database["epitope"].to_pylist())
    # E00 is of decoys.
    of_epitopes = [np.flatnonzero(epitope == f"E{k:02}") for k in (0, *range(10, 17))]
    planted = database.take(np.concatenate([rows[np.argsort(p[rows])[:5]] for rows in of_epitopes])).select(names)
    sample = pa.concat_tables([drawn.slice(1_500, 200).select(names), planted])
    answer = hpcvdj.annotate(sample, database, model, decoys=("decoy",), kappa=1.0, backend="cpu")
    (own,) = answer.samples
    called = {row["epitope"] for row in answer.epitopes.to_pylist() if row["q_value"] <= 0.05}
    assert called == {"E00", *(f"E{k}" for k in range(10, 17))}
    assert own.passed
    assert own.called[0] == len(called)
    assert own.decoys["called"] == 1
    of_decoys = f"of them of decoys 1 and {own.decoys['hits_called']}"
    assert dict(_sample_lines(own))[""] == f"called: 8 epitope(s), {own.called[1]} hit(s), {of_decoys}"


@pytest.mark.slow
def test_nothing_is_called_if_decoys_fail(model, drawn):
    database = records_of(drawn.slice(0, 400), 4)
    names = ["v_call", "j_call", "junction_aa"]
    decoys = database.filter(pa.array([text == "decoy" for text in database["organism"].to_pylist()])).select(names)
    sample = pa.concat_tables([drawn.slice(2_000, 3_000).select(names), decoys])
    with pytest.warns(hpcvdj.HpcvdjWarning, match="nothing is"):
        answer = hpcvdj.annotate(sample, database, model, decoys=("decoy",), kappa=1.0, backend="cpu")
    (own,) = answer.samples
    assert own.passed is False
    assert own.called == (0, 0)
    assert answer.hits["fdr"].null_count == len(answer.hits) > 0
    assert answer.epitopes["q_value"].null_count == len(answer.epitopes)


@pytest.mark.slow
def test_randomised_p_values_of_two_samples_are_independent(model, drawn):
    """An epitope without hits in either sample had the same random number in both."""
    rows = sample_of(drawn.slice(2_000, 200))
    answer = hpcvdj.annotate({"a": rows, "b": rows}, records_of(drawn.slice(0, 300), 60), model, kappa=1.0,
                             backend="cpu")  # fmt: skip
    first, second = (sample.uniform for sample in answer.samples)
    assert len(first) == len(second) >= 40
    assert (first != second).mean() > 0.9
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.6


@pytest.mark.slow
def test_a_v_gene_whose_hits_are_too_many_is_told(model, drawn):
    """Records' junctions of one gene are put into the sample again and again, with other codons."""
    database = records_of(drawn.slice(0, 1_500), 20)
    rows = drawn.slice(1_500)
    answer = hpcvdj.annotate(sample_of(rows), database, model, kappa=1.0, backend="cpu")
    assert min(own.p_value for own in answer.samples[0].kappa_by.values()) > DIFFERS
    names = ["v_call", "j_call", "junction_aa"]
    chosen = [k for k, row in enumerate(database.to_pylist()) if row["v_call"].startswith("TRBV9")][:150]
    sample = pa.concat_tables([rows.select(names), database.take(chosen).select(names)])
    with pytest.warns(hpcvdj.HpcvdjWarning, match="kappa differs by v_gene"):
        hpcvdj.annotate(sample, database, model, kappa=1.0, backend="cpu")


def write_files(folder, drawn, junctions, records):
    """Two samples and a database in a folder."""
    samples = folder / "samples"
    samples.mkdir()
    for k in range(2):
        rows = drawn.slice(2_000 + junctions * k, junctions).select(["v_call", "j_call", "junction"])
        write_table(samples / f"s{k}.tsv", rows.to_batches(), overwrite=False)
    write_table(folder / "db.tsv", records_of(drawn.slice(0, records), 6).to_batches(), overwrite=False)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory, drawn):
    return write_files(tmp_path_factory.mktemp("annotate"), drawn, 1_500, 300)


@pytest.fixture(scope="module")
def few(tmp_path_factory, drawn):
    """For a test of many runs."""
    return write_files(tmp_path_factory.mktemp("few"), drawn, 300, 60)


def words(files, target, *further):
    return ["annotate", files / "samples", "--database", files / "db.tsv", "-m", "human_trb_m15", "-o", target,
            "--backend", "cpu", "--kappa", "1", *further]  # fmt: skip


@pytest.mark.slow
def test_a_folder_appears_with_all_its_files_and_is_resumed(files, tmp_path):
    target = tmp_path / "out"
    out, _ = hpcvdj_command(*words(files, target))
    assert "hits are expected by chance" in out
    names = [f"s{k}{ending}" for k in range(2) for ending in (".epitopes.tsv", ".epitopes.tsv.json", ".hits.tsv")]
    assert sorted(path.name for path in target.iterdir() if path.name != ".hpcvdj.json") == names
    hpcvdj_command("report", target, "-o", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    assert [row["sample"] for row in page.rows("annotate_samples")] == ["s0", "s1"]
    said = [line.split(";")[0] for line in out.splitlines() if "hits are expected by chance" in line]
    assert all(f"{' '.join(line.split()[1:])}." in page.text for line in said)
    assert len(said) == 2
    _, err = hpcvdj_command(*words(files, target, "--resume"))
    assert "is complete already" in err
    _, err = hpcvdj_command(*words(files, target, "--resume", "--mismatches", "0"), code=2)
    assert "is of another run (mismatches was 1, is 0)" in error_line(err)
    _, err = hpcvdj_command(*words(files, target), code=2)
    assert "exists already" in error_line(err)
    before = {name: (target / name).read_bytes() for name in names if name.endswith(".tsv")}
    hpcvdj_command(*words(files, target, "--overwrite"))
    assert before == {name: (target / name).read_bytes() for name in before}
    hits = target / "s1.hits.tsv"
    hits.write_bytes(hits.read_bytes().replace(b"TRBV", b"TRBW", 1))
    _, err = hpcvdj_command("report", target, "-o", tmp_path / "other.html", code=2)
    assert "s1.hits.tsv: is not the table that s1.epitopes.tsv.json describes" in error_line(err)
    hits.unlink()
    _, err = hpcvdj_command("report", target, "-o", tmp_path / "other.html", code=2)
    assert "s1.hits.tsv: no such table" in error_line(err)
    assert not (tmp_path / "other.html").exists()


@pytest.mark.slow
def test_any_number_of_ranks_writes_the_same_bytes(files, tmp_path, on_ranks):
    contents = []
    for name, command in (("one", hpcvdj_command), ("three", partial(on_ranks, 3))):
        target = tmp_path / name
        command(*words(files, target))
        contents.append({path.name: path.read_bytes() for path in target.glob("*.tsv")})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 4


def test_decoys_without_a_record_are_refused(model, drawn):
    with pytest.raises(InputError, match=r"decoys='Marburg': no record is of it; there are records of"):
        hpcvdj.annotate(sample_of(drawn.slice(0, 50)), records_of(drawn, 4), model, decoys=("Marburg",))
    assert AnnotationSettings(decoys=("a",)).decoys == ("a",)


@pytest.mark.parametrize("cached", [True, False])
def test_the_database_is_looked_at_before_the_tables(model, drawn, tmp_path, cached):
    """A mistyped decoy was named only after the tables had been read and compared with the model."""
    options = {"decoys": ("Marburg",), "cache": tmp_path if cached else None}
    with pytest.raises(InputError, match="no record is of it"):
        hpcvdj.annotate(pa.table({"junction": ["TGTTTT"]}), records_of(drawn, 4), model, **options)


@pytest.mark.slow
def test_probabilities_of_a_database_are_kept_and_change_nothing(few, tmp_path, monkeypatch):
    # Each of many runs draws; how deep the samples are does not matter here.
    monkeypatch.setattr("hpcvdj.annotation.question.DRAWN", 5_000)
    files, cache = few, tmp_path / "cache"
    cache.mkdir()
    written = []
    for name in ("kept", "read"):
        hpcvdj_command(*words(files, tmp_path / name, "--cache", cache))
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).glob("*.tsv")})
        (kept,) = cache.iterdir()
    hpcvdj_command(*words(files, tmp_path / "without"))
    written.append({path.name: path.read_bytes() for path in (tmp_path / "without").glob("*.tsv")})
    assert written[0] == written[1] == written[2]
    whole = kept.read_bytes()
    at = len(whole) // 2
    for number, damaged in enumerate(
        [b"", whole[:-1], whole[:at], b"x" + whole[1:], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]]
    ):
        kept.write_bytes(damaged)
        target = tmp_path / f"damaged{number}"
        _, err = hpcvdj_command(*words(files, target, "--cache", cache))
        assert "a damaged file of the cache" in err
        assert {path.name: path.read_bytes() for path in target.glob("*.tsv")} == written[0]
        assert kept.read_bytes() == whole
    hpcvdj_command(*words(files, tmp_path / "decoys", "--cache", cache, "--decoys", "decoy"))
    hpcvdj_command(*words(files, tmp_path / "exact", "--cache", cache, "--mismatches", "0"))
    assert len(list(cache.iterdir())) == 3
    _, err = hpcvdj_command(*words(files, tmp_path / "none", "--cache", tmp_path / "absent"), code=2)
    assert "no such folder; create it first" in error_line(err)
    _, err = hpcvdj_command(*words(files, cache, "--cache", cache, "--overwrite"), code=2)
    assert str(cache) in error_line(err)


def test_hits_of_decoys_are_marked_and_counted(model, drawn):
    database = records_of(drawn.slice(0, 400), 40)
    answer = hpcvdj.annotate(
        sample_of(drawn.slice(2_000, 2_000)), database, model, decoys=("decoy",), kappa=1.0, backend="cpu"
    )
    organism = {}
    for row in database.to_pylist():
        organism.setdefault((row["junction_aa"], *genes(row["v_call"], row["j_call"])), set()).add(row["organism"])
    for row in answer.hits.to_pylist():
        assert row["decoy"] == (organism[row["record"], *genes(row["v_call"], row["j_call"])] == {"decoy"})
    assert 0 < sum(answer.hits["decoy"].to_pylist()) < len(answer.hits)


def test_dispersed_numbers_of_hits_make_no_p_value_smaller(model, drawn, monkeypatch):
    """Also of epitopes whose sequences are so probable that the indicators are summed one by one."""
    genes = ["v_call", "j_call", "junction_aa"]
    counts = drawn.slice(0, 8_000).group_by(genes).aggregate([([], "count_all")])
    # The most frequent sequences.  Grouping has no order of its own, so that ties need one.
    order = [("count_all", "descending"), *((name, "ascending") for name in genes)]
    database = records_of(counts.sort_by(order).slice(0, 60), 5)
    p_values = {}
    for phi in (1.0, 1.9):
        monkeypatch.setattr(statistics, "dispersion", lambda *_, phi=phi, **__: phi)
        answer = hpcvdj.annotate(
            sample_of(drawn.slice(8_000, 4_000)), database, model, kappa=1.0, mismatches=0, backend="cpu"
        )
        rows = answer.epitopes.to_pylist()
        p_values[phi] = {row["epitope"]: (row["p_value"], row["found"], row["expected"]) for row in rows}
    assert all(p_values[1.9][epitope][0] >= p for epitope, (p, _, _) in p_values[1.0].items())
    assert max(found for _, found, _ in p_values[1.0].values()) > 0, "without a hit, p is 1 for any dispersion"
    exact = [p - stats.poisson.sf(found - 1, expected) for p, found, expected in p_values[1.0].values()]
    assert max(exact) > 1e-4, "Poisson's is smaller"


def test_calls_of_several_genes_are_told(model, drawn):
    """A record has one V and one J gene, so such clonotypes are no hits, though a record has the same words."""
    rows = sample_of(drawn.slice(0, 60))
    calls = ["TRBV6-2,TRBV6-3" if k < 15 else call for k, call in enumerate(rows["v_call"].to_pylist())]
    table = rows.set_column(rows.column_names.index("v_call"), "v_call", pa.array(calls))
    database = records_of(drawn.slice(0, 60), 4)
    database = database.set_column(0, "v_call", pa.array(calls))
    options = {"kappa": 1.0, "backend": "cpu", "force": True, "keep_misfits": True}
    with pytest.warns(hpcvdj.HpcvdjWarning, match="^15 of 60 clonotypes name several V or several J genes"):
        (alone,) = hpcvdj.annotate(table, database, model, **options).samples
    assert (alone.several, alone.others, alone.found) == (15, 15, 45)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*name several V")
        tied = replace(model, ties=(("TRBV6-2", "TRBV6-3", "TRBV6-5", "TRBV6-6", "TRBV6-8"),))
        (together,) = hpcvdj.annotate(table, database, tied, **options).samples
    assert (together.several, together.found) == (0, 60)


def test_a_sample_without_a_clonotype_does_not_keep_the_others_from_being_annotated(model, drawn):
    database = records_of(drawn.slice(0, 200), 10)
    empty = sample_of(drawn.slice(0, 3)).set_column(3, "junction", pa.array(["TGTTAATTT"] * 3))
    tables = {"empty": empty, "b": sample_of(drawn.slice(2_000, 500))}
    with pytest.warns(hpcvdj.HpcvdjWarning, match="empty: no clonotype is left .*; it is left out"):
        answer = hpcvdj.annotate(tables, database, model, kappa=1.0, backend="cpu")
    assert [own.name for own in answer.samples] == ["b"]
    with pytest.raises(InputError, match="no clonotype is left"):
        hpcvdj.annotate({"empty": empty}, database, model, kappa=1.0, backend="cpu")


def test_one_reference_may_be_given_as_text(model, drawn):
    database = records_of(drawn.slice(0, 200), 10)
    database = database.append_column("reference", pa.array(["PMID:1" if k % 2 else "PMID:2" for k in range(200)]))
    sample = sample_of(drawn.slice(2_000, 500))
    options = {"kappa": 1.0, "backend": "cpu"}
    one = hpcvdj.annotate(sample, database, model, exclude_reference="PMID:1", **options)
    assert one.database.left_out["of an excluded reference"] == 100
    assert one.hits == hpcvdj.annotate(sample, database, model, exclude_reference=("PMID:1",), **options).hits
    with pytest.raises(InputError, match=r"exclude_reference='PMID:3'.*no record is of it.* PMID:1"):
        hpcvdj.annotate(sample, database, model, exclude_reference="PMID:3", **options)


def test_samples_that_would_have_the_same_file_are_refused(tmp_path):
    """This was an error after everything was computed."""
    for names, clash in ((("P/1", "Q_1"), False), (("P/1", "P_1"), True)):
        table = Table(tmp_path / "t.tsv", repertoires=dict.fromkeys(names, 9))
        rows = Rows(Inputs((table,), together=True), None, ModelFit())
        with pytest.raises(InputError, match=r"samples P/1 and P_1: .* P_1\.epitopes\.tsv") if clash else nullcontext():
            AnnotationOutput(tmp_path / "out").require(rows)


@pytest.mark.slow
def test_reads_that_are_not_known_cannot_be_asked_for(model, drawn):
    """Every junction took part, without a word."""
    sample, database = drawn.slice(0, 400), records_of(drawn.slice(400, 60), 3)
    empty = sample.append_column("duplicate_count", pa.array([""] * len(sample)))
    for table, said in ((sample, "no column duplicate_count"), (empty, "no row has a duplicate_count")):
        with pytest.raises(InputError, match=f"{said}, which min_reads=2 needs"):
            hpcvdj.annotate(table, database, model, kappa=1.0, min_reads=2, backend="cpu")
