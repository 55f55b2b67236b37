"""`hpcvdj enrich`: calibrated on what recombination makes, and it finds what was planted."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.chance.check import IMPOSSIBLE
from hpcvdj.chance.clonotypes import distinct_junctions
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.enrichment.enrich import _tested, enrich
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.enrichment.statistics import clusters
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.recombination.productive import productive_of, productive_probability
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.writers import write_table
from hpcvdj.runs.run import Run
from tests.asked import enrich_table
from tests.commands import error_line, hpcvdj_command
from tests.dealt import dealt_of
from tests.rows import read_batches

DRAWS = 100_000

SAID = ("kappa", "kappa_by_length", "qq", "clonotypes", "junctions", "tested", "hits", "clusters", "rows_left_out")
"""What the file of facts says of a table."""


@pytest.fixture(scope="module")
def model():
    return load_model(model_paths()["human_trb_m15"])


@pytest.fixture(scope="module")
def drawn(model):
    """A repertoire that recombination alone makes."""
    rows = hpcvdj.generate(model, DRAWS, seed=11, productive=True)
    return rows.select(["sequence_id", "v_call", "j_call", "junction"])


@pytest.fixture(scope="module")
def own(drawn, model):
    return distinct_junctions(dealt_of(read_table(drawn, model, productive_reading()), model).whole).clonotypes()


def randomised(neighbours, expected, seed=1):
    """P-values that are uniform if the numbers are Poisson, though they are discrete."""
    above, at = stats.poisson.sf(neighbours, expected), stats.poisson.pmf(neighbours, expected)
    return above + np.random.default_rng(seed).random(len(at)) * at


@pytest.fixture(scope="module")
def everything(own, model):
    """Neighbours and expected numbers of all clonotypes of a sample, tested or not."""
    rng = np.random.default_rng(2)
    rows = np.sort(rng.choice(len(own), 5_000, replace=False))
    from hpcvdj.enrichment import enrich as module
    from hpcvdj.probabilities.settings import PgenConfig
    from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem
    from hpcvdj.values.compute import count_in_memory

    places = module.Places.of(own, Run())
    neighbours, *_ = module._counted(own, places, EnrichmentSettings(kappa=1.0), open_backend("cpu"))
    problem = PgenProblem(own.repertoire.subset(rows), model, PGEN_COLUMNS)
    itself, _, ball = count_in_memory(problem, PgenConfig(PGEN_COLUMNS, backend="cpu"), Run()).T
    productive = productive_of(model, own.classes)[own.kind[rows]]
    return neighbours[rows], places.size[rows], ball - itself, productive


def test_calibrated_on_what_recombination_makes(everything):
    neighbours, size, ball, productive = everything
    p = randomised(neighbours, (size - 1) * ball / productive)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_the_forms_that_are_not_calibrated_fail_this_test(everything):
    neighbours, size, ball, productive = everything
    counted_itself = randomised(neighbours + 1, size * ball / productive)
    joint = randomised(neighbours, (size - 1) * ball)
    for p in (counted_itself, joint):
        assert stats.kstest(p, "uniform").pvalue < 1e-6


@pytest.mark.exhaustive
def test_no_hit_without_selection(own, model):
    found = enrich(own, model, EnrichmentSettings(max_q=0.05), Run(), open_backend("cpu"))
    assert found.hits <= 2
    assert found.clonotypes == len(own)
    assert found.kappa == pytest.approx(1, abs=0.1)
    assert found.table["neighbours"].to_numpy().min() == 2
    qq = {name: np.array(values) for name, values in found.qq.items()}
    inside = (qq["low"] <= qq["observed"]) & (qq["observed"] <= qq["high"])
    # Ranks depend on each other; a wrong null (see below) leaves the band at most of them.
    assert inside.mean() > 0.8
    wrong = enrich(own, model, EnrichmentSettings(kappa=0.5), Run(), open_backend("cpu")).qq
    assert np.mean(np.array(wrong["observed"]) < qq["low"]) > 0.5


def planted(model, drawn, clusters=10, members=8):
    """The drawn rows, and groups of junctions one base away from a junction of a low probability."""
    table = drawn.slice(0, 20_000)
    rng = np.random.default_rng(3)
    rows, centres = [], []
    others = hpcvdj.pgen(drawn.slice(20_000, 2_000), model, sequence="aa", backend="cpu")
    rare = others.filter(pc.less(others["pgen_aa"], 1e-11)).select(drawn.column_names)
    for row in rare.slice(0, clusters).to_pylist():
        text = row["junction"]
        found = {text}
        while len(found) < members:
            place = int(rng.integers(6, len(text) - 6))
            other = text[:place] + "ACGT"[rng.integers(4)] + text[place + 1 :]
            if "*" not in translate([other])[0]:
                found.add(other)
        centres.append(translate([text])[0])
        rows += [
            {**row, "sequence_id": f"p{len(rows) + k}", "junction": member} for k, member in enumerate(sorted(found))
        ]
    return pa.concat_tables([table, pa.Table.from_pylist(rows, table.schema)]), centres


@pytest.fixture(scope="module")
def with_planted(model, drawn):
    return planted(model, drawn)


@pytest.mark.slow
def test_what_is_planted_is_found(model, with_planted):
    table, centres = with_planted
    found = enrich_table(table, model, EnrichmentSettings(backend="cpu"), ClonotypeChoice())
    hits = found.table.filter(pc.less_equal(found.table["q_value"], 0.001))
    assert set(centres) <= set(hits["junction_aa"].to_pylist())
    assert len(hits) == found.hits
    assert found.clusters == len(set(hits["cluster"].to_pylist())) == len(centres)
    rest = found.table["cluster"].to_pylist()[len(hits) :]
    assert set(rest) == {None}, "only hits form clusters"


@pytest.mark.exhaustive
def test_a_control_in_place_of_the_model(model, drawn, with_planted):
    table, centres = with_planted
    control = drawn.slice(24_000)
    found = enrich_table(table, model, EnrichmentSettings(), ClonotypeChoice(), control)
    # Seven neighbours, where four times as many other junctions have none, are less certain than with a model, but they
    # are among the smallest p-values.
    first = found.table.slice(0, 3 * len(centres))
    assert set(centres) <= set(first["junction_aa"].to_pylist())
    row = first.to_pylist()[0]
    both = row["neighbours"] + row["control_neighbours"]
    share = (row["class_size"] - 1) / (row["class_size"] - 1 + row["control_size"])
    exact = stats.binomtest(row["neighbours"], both, share, alternative="greater").pvalue
    assert row["p_value"] == pytest.approx(exact, rel=1e-10)
    assert found.kappa is None
    assert len(found.qq["observed"]) > 100
    own = enrich_table(drawn.slice(0, 20_000), model, EnrichmentSettings(max_q=0.05), ClonotypeChoice(), control)
    assert own.hits == 0
    inside = np.array(own.qq["low"]) <= own.qq["observed"]
    assert inside.mean() > 0.8
    with pytest.raises(InputError, match="so it has the individual itself"):
        enrich_table(table, model, EnrichmentSettings(), ClonotypeChoice(), pa.concat_tables([control, table]))


def clonotypes_of(rows, model):
    """Of (V, J, junction)."""
    table = pa.table(dict(zip(("v_call", "j_call", "junction"), map(list, zip(*rows, strict=True)), strict=True)))
    table = table.append_column("sequence_id", pa.array([str(k) for k in range(len(rows))]))
    return distinct_junctions(dealt_of(read_table(table, model, productive_reading()), model).whole).clonotypes()


def small_junctions(rng, v, j, number):
    """Distinct ones of a few amino acids, each of which has several codons."""
    codons = ["AGC", "AGT", "GGA", "GGC", "CTA"]
    made = {"TGTGCC" + "".join(rng.choice(codons, 4)) + "TTC" for _ in range(number)}
    return [(v, j, junction) for junction in sorted(made)]


def test_tested_clonotypes_come_by_their_p_values(model):
    """Equal p-values in the order of the clonotypes, and clusters of equal size, too."""
    rng = np.random.default_rng(10)
    genes = "TRBJ1-1", "TRBJ1-2", "TRBJ1-3", "TRBJ2-1", "TRBJ2-3", "TRBJ2-7"
    own = clonotypes_of([row for j in genes for row in small_junctions(rng, "TRBV9", j, 12)], model)
    tested = np.sort(rng.choice(len(own), len(own) - 10, replace=False))
    p_values = rng.choice([1e-9, 1e-8, 0.3], len(tested))
    found = _tested(
        own, tested, len(own), EnrichmentSettings(), Run(), {"neighbours": 10 * tested, "p_value": p_values}
    )
    order = tested[np.argsort(p_values, kind="stable")]
    assert found.table["neighbours"].to_pylist() == (10 * order).tolist()
    assert found.table["p_value"].to_pylist() == np.sort(p_values).tolist()
    assert found.table["junction_aa"].to_pylist() == own.texts(order)["junction_aa"].to_pylist()
    every = np.append(np.sort(p_values), np.ones(len(own) - len(tested)))
    assert found.table["q_value"].to_pylist() == pytest.approx(stats.false_discovery_control(every)[: len(tested)])
    hits = tested[p_values < 0.1]
    numbers = dict(zip(hits.tolist(), clusters(own.letters[hits], own.lengths[hits], own.kind[hits]), strict=True))
    assert found.table["cluster"].to_pylist() == [numbers.get(row) for row in order.tolist()]
    assert 1 < found.clusters == max(numbers.values()) < found.hits == len(hits)


@pytest.mark.slow
def test_numbers_by_hand(model, drawn):
    """One class, with counts by comparison of all pairs."""
    table = drawn.filter(pc.equal(drawn["v_call"], drawn["v_call"][0])).slice(0, 3000)
    found = enrich_table(
        table, model, EnrichmentSettings(kappa=2.0, min_neighbours=1, backend="cpu"), ClonotypeChoice()
    )
    rows = [(r["v_call"].split("*")[0], r["j_call"].split("*")[0], r["junction"]) for r in table.to_pylist()]
    rows = sorted(set(rows))
    texts = dict(zip(rows, translate([row[2] for row in rows]), strict=True))
    for row in found.table.slice(0, 40).to_pylist():
        same = [own for own in rows if own[:2] == (row["v_call"], row["j_call"])]
        text = row["junction_aa"]
        near = [
            own for own in same
            if len(texts[own]) == len(text) and sum(a != b for a, b in zip(texts[own], text, strict=True)) <= 1
        ]  # fmt: skip
        assert row["neighbours"] == len(near) - 1
        assert row["class_size"] == len(same)
        assert row["nt_variants"] == sum(texts[own] == text for own in same)
        given = pa.table({"v_call": [row["v_call"]], "j_call": [row["j_call"]], "junction_aa": [text]})
        values = hpcvdj.pgen(given, model, mismatches=1).to_pylist()[0]
        assert row["pgen_ball"] == pytest.approx(values["pgen_aa_1mm"], rel=1e-12)
        of_itself = [own[2] for own in same if texts[own] == text]
        calls = {name: [row[name]] * len(of_itself) for name in ("v_call", "j_call")}
        of_nt = hpcvdj.pgen(pa.table({**calls, "junction": of_itself}), model)["pgen_nt"].to_pylist()
        assert any(row["pgen_itself"] == pytest.approx(p, rel=1e-12) for p in of_nt), "of one of its junctions"
        rate = (row["pgen_ball"] - row["pgen_itself"]) / row["p_productive_vj"]
        assert row["expected"] == pytest.approx(2 * (len(same) - 1) * rate, rel=1e-12)
        assert row["p_value"] == pytest.approx(stats.poisson.sf(len(near) - 2, row["expected"]), rel=1e-9)


def test_productive_probabilities_of_classes_add_up(model):
    from hpcvdj.recombination.productive import productive_choice

    assert productive_choice(model).sum() == pytest.approx(productive_probability(model), rel=1e-14)


@pytest.mark.slow
def test_what_the_model_cannot_make_is_not_tested(model, with_planted):
    """Probability 0, of genes or of a neighbourhood, is a fault of the model and no evidence."""
    table, centres = with_planted
    names = [own.allele.partition("*")[0] for own in model.v]
    planted_v = pc.replace_substring_regex(table["v_call"], r"\*.*", "")[-1].as_py()
    p_v = np.where(np.array(names) == planted_v, 0, model.p_v)
    never = replace(model, p_v=p_v / p_v.sum())
    found = enrich_table(table, never, EnrichmentSettings(backend="cpu"), ClonotypeChoice())
    assert planted_v not in found.table["v_call"].to_pylist()
    assert found.not_tested[IMPOSSIBLE] > 0
    assert found.not_tested[IMPOSSIBLE] + len(found.table) == len(
        enrich_table(table, model, EnrichmentSettings(backend="cpu"), ClonotypeChoice()).table
    )
    assert np.isfinite(found.table["p_value"].to_numpy()).all()
    assert (found.table["expected"].to_numpy() > 0).all()
    assert np.isfinite(found.qq["observed"]).all()
    assert set(centres) & set(found.table["junction_aa"].to_pylist()), "the others are"


@pytest.mark.exhaustive
def test_repeated_rows_order_and_ranks_change_nothing(model, drawn):
    table = drawn.slice(0, 5_000)
    shuffled = pa.concat_tables([table, table.slice(0, 50)]).take(np.random.default_rng(4).permutation(5_050))
    shuffled = shuffled.set_column(0, "sequence_id", pa.array([str(k) for k in range(5_050)]))
    settings = EnrichmentSettings(min_neighbours=1, backend="cpu")
    one, two = (enrich_table(own, model, settings, ClonotypeChoice()) for own in (table, shuffled))
    columns = ["v_call", "j_call", "junction_aa", "neighbours", "class_size", "expected", "p_value", "q_value"]
    key = [("p_value", "ascending"), ("v_call", "ascending"), ("j_call", "ascending"), ("junction_aa", "ascending")]
    assert one.table.select(columns).sort_by(key).equals(two.table.select(columns).sort_by(key))


@pytest.fixture
def table_file(tmp_path, with_planted):
    write_table(tmp_path / "t.parquet", with_planted[0].to_batches(), overwrite=False)
    return tmp_path / "t.parquet"


@pytest.mark.slow
def test_the_command(table_file, tmp_path, model, with_planted):
    words = ["enrich", table_file, "-m", model.name, "--backend", "cpu"]
    pytest.importorskip("vl_convert")
    out, err = hpcvdj_command(*words, "-o", tmp_path / "o.tsv", "--plot", tmp_path / "f.svg")
    assert "10 cluster(s)" in out
    assert ElementTree.parse(tmp_path / "f.svg").getroot().tag.endswith("svg")
    assert "no column duplicate_count" in err
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    table = pa.Table.from_batches(read_batches(tmp_path / "o.tsv"))
    assert facts["tested"] == len(table)
    assert facts["model_sha256"] == model.digest
    assert facts["rows_read"] == len(with_planted[0])
    found = enrich_table(with_planted[0], model, EnrichmentSettings(backend="cpu"), ClonotypeChoice())
    expected = found.table
    assert table["junction_aa"].to_pylist() == expected["junction_aa"].to_pylist()
    assert facts["qq"] == found.qq
    np.testing.assert_array_equal(table["p_value"].to_pandas().astype(float), expected["p_value"])
    _, err = hpcvdj_command(*words, "-o", tmp_path / "o.tsv", code=2)
    assert "exists already" in error_line(err)


@pytest.mark.exhaustive
def test_several_tables(table_file, tmp_path, model):
    folder = tmp_path / "samples"
    folder.mkdir()
    table_file.rename(folder / "a.parquet")
    (folder / "bad.tsv").write_text("sequence_id\tv_call\tj_call\njust\tthree\tcolumns\n")
    rows = pa.Table.from_batches(read_batches(folder / "a.parquet")).slice(0, 700)
    write_table(folder / "c.tsv", rows.to_batches(), overwrite=False)
    words = ["enrich", folder, "-m", model.name, "--backend", "cpu", "--kappa", "1"]
    out, err = hpcvdj_command(*words, "-o", tmp_path / "out", code=2)
    assert "bad.tsv, line 1: no column junction" in err
    assert err.splitlines()[-1].endswith("1 of 3 repertoires were not tested: bad.tsv")
    *of_tables, total = out.splitlines()
    assert [line.split(":")[0] for line in of_tables] == ["a.parquet", "c.tsv"]
    numbers = [int(line.split(" hits in ")[0].split()[-1].replace(",", "")) for line in of_tables]
    assert total == f"{sum(numbers):,} hits in {sum(map(bool, numbers))} of 2 table(s) tested"
    assert sum(numbers) > 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.tsv", "a.tsv.json", "c.tsv", "c.tsv.json"]
    hpcvdj_command("enrich", folder / "a.parquet", *words[2:], "-o", tmp_path / "alone.tsv")
    assert (tmp_path / "alone.tsv").read_bytes() == (tmp_path / "out" / "a.tsv").read_bytes()
    assert f"a.parquet: {len(pa.Table.from_batches(read_batches(folder / 'a.parquet'))):,} rows" in out
    # The others are left as they are; a table that was mended is tested now.
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    write_table(folder / "bad.tsv", rows.slice(0, 600).to_batches(), overwrite=True)
    out, err = hpcvdj_command(*words, "-o", tmp_path / "out", "--resume")
    assert err.count("is complete already; there is nothing to resume") == 2
    assert [line.split(":")[0] for line in out.splitlines()[:-1]] == ["bad.tsv"]
    assert out.endswith(" of 1 table(s) tested; 2 more complete already\n")
    assert before.items() <= {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}.items()
    _, err = hpcvdj_command(*words, "--max-q", "0.01", "-o", tmp_path / "out", "--resume", code=2)
    assert err.count("is of another run (max_q was 0.001, is 0.01)") == 3
    for further, message in (
        (["-o", tmp_path / "o.tsv"], "go to a folder, which should not be named like a file"),
        (["-o", tmp_path / "other", "--plot", tmp_path / "f.svg"], "draws one table, and 3 are given"),
    ):
        _, err = hpcvdj_command(*words, *further, code=2)
        assert message in error_line(err)
    assert not (tmp_path / "other").exists()
    _, err = hpcvdj_command(*words, "-o", folder, "--overwrite", code=2)
    assert "c.tsv: is an input of this run" in err


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.exhaustive) for ranks in (2, 4, 7))])
def test_ranks(table_file, tmp_path, model, ranks, on_ranks):
    words = ["enrich", table_file, "-m", model.name, "--backend", "cpu", "--seed", "1"]
    hpcvdj_command(*words, "-o", tmp_path / "one.tsv")
    on_ranks(ranks, *words, "-o", tmp_path / "many.tsv")
    assert (tmp_path / "many.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
    one, many = (json.loads((tmp_path / f"{name}.tsv.json").read_text()) for name in ("one", "many"))
    assert [one[name] for name in SAID] == [many[name] for name in SAID]


@pytest.mark.exhaustive
def test_from_python(table_file, model, with_planted):
    expected = enrich_table(with_planted[0], model, EnrichmentSettings(backend="cpu"), ClonotypeChoice()).table
    with pytest.warns(hpcvdj.HpcvdjWarning, match="no column duplicate_count"):
        found = hpcvdj.enrich(table_file, model, backend="cpu")
    assert found.table.equals(expected)
    frame = with_planted[0].to_pandas().assign(duplicate_count=1)
    assert hpcvdj.enrich(frame, model, backend="cpu").table.drop_columns("duplicate_count").equals(expected)
    for wrong, message in (
        ({"kappa": 0}, "kappa=0: give"),
        ({"kappa": float("inf")}, "kappa=inf: give a finite number"),
        ({"max_q": 2}, "max_q=2: give"),
        ({"min_reads": 0}, "min_reads=0"),
    ):
        with pytest.raises(InputError, match=message):
            hpcvdj.enrich(frame, model, **wrong)
    with pytest.raises(InputError, match=r"the table: has 2 repertoires \(a, b\)"):
        hpcvdj.enrich(frame.assign(repertoire_id=["a", "b"] * (len(frame) // 2)), model)


HOSTILE = {
    "out of frame": ("TRBV6-5", "TRBJ2-7", "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTCA"),
    "a stop": ("TRBV6-5", "TRBJ2-7", "TGTGCCAGCAGTTAATCGGTACGAACGGATTACGAGCAGTACTTC"),
    "no anchor": ("TRBV6-5", "TRBJ2-7", "ACTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"),
    "another letter": ("TRBV6-5", "TRBJ2-7", "TGTGCCAGCAGTNACTCGGTACGAACGGATTACGAGCAGTACTTC"),
    "amino acids": ("TRBV6-5", "TRBJ2-7", "CASSYSVRTDYEQYF"),
    "nothing": ("TRBV6-5", "TRBJ2-7", ""),
    "too long": ("TRBV6-5", "TRBJ2-7", "TGT" + "GCC" * 300 + "TTC"),
    "unknown V": ("TRBV999", "TRBJ2-7", "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"),
    "no V": ("", "TRBJ2-7", "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"),
    "no J": ("TRBV6-5", "", "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"),
    "two loci": ("TRBV6-5", "TRAJ9", "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"),
}


def test_every_row_is_accounted_for(tmp_path, model, drawn):
    rows = [(f"h{k}", *row, 1) for k, row in enumerate(HOSTILE.values())]
    good = [(r["sequence_id"], r["v_call"], r["j_call"], r["junction"], 3) for r in drawn.slice(0, 50).to_pylist()]
    rows += [*good, good[0], *[(f"again{k}", *row[1:]) for k, row in enumerate(good[:7])]]
    rows += [(f"few{k}", *row[1:4], 1) for k, row in enumerate(_as_rows(drawn.slice(100, 9)))]
    names = ("sequence_id", "v_call", "j_call", "junction", "duplicate_count")
    text = "\n".join("\t".join(map(str, row)) for row in (names, *rows))
    (tmp_path / "t.tsv").write_text(text + "\n")
    words = ("enrich", tmp_path / "t.tsv", "-m", model.name, "-o", tmp_path / "o.tsv", "--backend", "cpu")
    hpcvdj_command(*words, "--kappa", "1", "--min-reads", "2")
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    excluded = [rows for _, _, rows in facts["rows_excluded"]]
    assert sum(excluded) == len(HOSTILE) + 1, "and a repeated id"
    assert facts["rows_left_out"]["junctions that another row has"] == 7
    assert facts["rows_left_out"]["fewer than 2 reads"] == 9
    assert facts["junctions"] == 50
    assert facts["rows_read"] == len(rows) == facts["junctions"] + sum([*excluded, *facts["rows_left_out"].values()])
    _, err = hpcvdj_command(*words, "--overwrite", code=2)
    assert "too few to estimate selection" in error_line(err)
    assert facts == json.loads((tmp_path / "o.tsv.json").read_text()), "what was there stays"


@pytest.mark.slow
@pytest.mark.parametrize("output", ["o.tsv", "o.parquet", "-"])
def test_without_neighbours_the_answer_is_none(tmp_path, drawn, model, output):
    alone = drawn.slice(0, 300)
    write_table(tmp_path / "t.tsv", alone.combine_chunks().to_batches(), overwrite=False)
    target = output if output == "-" else tmp_path / output
    words = ("enrich", tmp_path / "t.tsv", "-m", model.name, "-o", target, "--backend", "cpu")
    out, err = hpcvdj_command(*words)
    assert "0 have enough neighbours" in out + err
    assert "at most; too few clonotypes have neighbours" in out + err
    if output == "-":
        assert out.splitlines()[0].startswith("v_call\tj_call\tjunction_aa\tnt_variants")
        assert "json" not in err
        return
    empty = hpcvdj.read_table(target)
    assert empty.num_rows == 0
    assert "q_value" in empty.column_names
    facts = json.loads((tmp_path / f"{output}.json").read_text())
    assert facts["kappa_interval"] == [0, facts["kappa"]]


def test_another_species_is_named(tmp_path, drawn, model):
    mouse = drawn.set_column(1, "v_call", pa.array(["TRBV13-2*01"] * len(drawn))).slice(0, 300)
    write_table(tmp_path / "t.tsv", mouse.combine_chunks().to_batches(), overwrite=False)
    _, err = hpcvdj_command("enrich", tmp_path / "t.tsv", "-m", model.name, "-o", tmp_path / "o.tsv", code=2)
    assert "species" in err


def _as_rows(table):
    return [(r["sequence_id"], r["v_call"], r["j_call"], r["junction"]) for r in table.to_pylist()]


@pytest.mark.slow
def test_wrong_usage(table_file, tmp_path, model):
    two = tmp_path / "two.tsv"
    two.write_text("sequence_id\tv_call\tj_call\tjunction\trepertoire_id\na\tTRBV6-5\tTRBJ2-7\tTGT\tx\nb\ta\tb\tc\ty\n")
    for words, message in (
        ([two, "-o", tmp_path / "o.tsv"], "has 2 repertoires (x, y)"),
        ([table_file, "-o", tmp_path / "o.h5"], "must end in .tsv"),
        ([table_file, "-o", tmp_path / "o.tsv", "--kappa", "0"], "give a finite number above 0"),
        ([table_file, "-o", tmp_path / "o.tsv", "--plot", tmp_path / "f.pdf"], "must end in .png or .svg"),
        ([table_file, "-o", tmp_path / "o.tsv", "--max-q", "1"], "between 0 and 1"),
        ([table_file, "-o", tmp_path / "o.tsv", "--control", table_file], "give a control of other people"),
        ([table_file, "-o", tmp_path / "o.tsv", "--min-reads", "2"], "no column duplicate_count"),
    ):
        _, err = hpcvdj_command("enrich", *words, "-m", model.name, "--backend", "cpu", code=2)
        assert message in error_line(err), words
    assert not (tmp_path / "o.tsv").exists()
