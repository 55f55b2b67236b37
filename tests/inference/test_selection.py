"""`hpcvdj infer-selection`: features, planted selection, normalisation, the file, and determinism."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.fit import GeneFit
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.errors import InputError
from hpcvdj.inference import selection as module
from hpcvdj.inference.distinct import of_individuals
from hpcvdj.inference.selection import design, infer_selection
from hpcvdj.inference.selection_question import SelectionQuestion
from hpcvdj.inference.settings import SelectionSettings
from hpcvdj.recombination.igor import load_model, read_model
from hpcvdj.recombination.selection import FILE, RESIDUES, SelectionFactor, features, read_selection
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.writers import write_table
from tests.cli.test_mpiexec import MPIEXEC
from tests.commands import error_line, hpcvdj_command
from tests.dealt import dealt_of, read_together
from tests.selected import distinct, features_of, few_genes

COLUMNS = ["sequence_id", "v_call", "j_call", "junction", "junction_aa"]


@pytest.fixture(scope="module", autouse=True)
def fewer_draws():
    """As many fresh draws as the tests need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FRESH", 40_000)
        yield


@pytest.fixture(scope="module")
def model():
    return few_genes()


def planted(v_call, j_call, text):
    """A selection factor (ln) of genes, lengths and residues, written down as it is meant."""
    value = 0.7 * (v_call == "TRBV9*01" and j_call == "TRBJ2-7*01") - 0.6 * (v_call == "TRBV5-1*01")
    value += 0.15 * (14 - len(text)) * (j_call == "TRBJ1-1*01")
    value += 0.8 * (text[5:6] == "G") - 0.9 * (text[-7:-6] == "P") + 0.5 * (text[6:7] == "R")
    return value


@pytest.fixture(scope="module")
def drawn(model):
    return hpcvdj.generate(model, 60_000, seed=4, productive=True, backend="cpu").select(COLUMNS)


@pytest.fixture(scope="module")
def selected(drawn):
    """Draws that survive with a probability in proportion to the planted factor."""
    logs = np.array([planted(row["v_call"], row["j_call"], row["junction_aa"]) for row in drawn.to_pylist()])
    return drawn.filter(pa.array(np.log(np.random.default_rng(5).random(len(logs))) < logs - logs.max()))


def fitted(table, model, **options):
    junctions = read_table(table, model, productive_reading())
    return infer_selection(dealt_of(junctions, model), model, SelectionSettings(**options), "cpu")


@pytest.fixture(scope="module")
def fit(selected, model):
    return fitted(selected, model)


def as_arrays(rows):
    """(genes, pair, letters, lengths) of (V, J, text) rows, each row a pair of its own."""
    lengths = np.array([len(text) for *_, text in rows], dtype=np.int64)
    letters = np.zeros((len(rows), max(1, lengths.max(initial=1))), dtype=np.uint8)
    for row, (*_, text) in enumerate(rows):
        letters[row, : len(text)] = list(text.encode())
    return [(v, j) for v, j, _ in rows], np.arange(len(rows)), letters, lengths


def test_features_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    texts = ["", "C", "CF", "CAF", "CAAF"] + ["".join(rng.choice(list(RESIDUES), size=k)) for k in range(5, 30)]
    rows = [(f"V{k % 3}", f"J{k % 2}", text) for k, text in enumerate(texts)]
    own = [set() for _ in rows]
    for names, place in features(*as_arrays(rows)):
        for row, at in enumerate(place.tolist()):
            if at >= 0:
                assert names[at] not in own[row]
                own[row].add(names[at])
    assert own == [features_of(*row) for row in rows]


def test_the_matrix_has_the_features(drawn, model):
    parts = [distinct(part, model) for part in (drawn.slice(0, 300), drawn.slice(300, 9))]
    names, matrix = design(parts)
    rows = [
        (*part.genes[pair], text[:length].tobytes().decode())
        for part in parts
        for pair, text, length in zip(part.pair, *part.amino_acids, strict=True)
    ]
    assert matrix.shape == (len(rows), len(names))
    for row, own in enumerate(rows):
        assert {names[k] for k in matrix[row].indices} == features_of(*own)
    assert set(matrix.data) == {1.0}
    assert set(names) == set().union(*(features_of(*own) for own in rows))


def test_distinct_junctions_of_single_genes_take_part(model):
    one = {"v_call": "TRBV9", "j_call": "TRBJ2-7", "junction": "TGTGCCAGCAGCTACGAGCAGTACTTC"}
    rows = [
        one, one, {**one, "v_call": "TRBV9*01"}, {**one, "v_call": "TRBV9,TRBV5-1"}, {**one, "j_call": "TRBJ1-1"},
        {**one, "v_call": "TRBV28"}, {**one, "junction": one["junction"] + "A"}, {**one, "v_call": "TRBV999"},
    ]  # fmt: skip
    names = ["a", "a", "b", "c", "d", "e", "f", "g"]
    for individuals, times, sizes, repeated in ((names, [1, 2], [1, 1, 0, 1, 0], 1), (["a"] * 8, [1, 1], [2], 2)):
        table = pa.Table.from_pylist(rows).append_column("repertoire_id", pa.array(individuals))
        own, of_individual, left_out = of_individuals(
            dealt_of(read_together(table, model, productive_reading()), model), model
        )
        assert own.genes == [("TRBV9", "TRBJ1-1"), ("TRBV9", "TRBJ2-7")]
        assert own.times.tolist() == times
        assert of_individual.tolist()[: len(sizes)] == sizes
        assert list(left_out.values()) == [1, 1, 0, repeated]
        own, _, left_out = of_individuals(
            dealt_of(read_together(table, model, productive_reading()), model), model, {"TRBJ2-7"}
        )
        assert own.genes == [("TRBV9", "TRBJ1-1")]
        assert list(left_out.values()) == [1, 1, 3, 0]


@pytest.mark.slow
def test_samples_of_one_person_are_one_individual(drawn, model):
    """Junctions of two of its samples counted as shared by two individuals."""
    table = drawn.slice(0, 50)
    both = pa.concat_tables([table, table]).append_column("repertoire_id", pa.array(["a"] * 50 + ["b"] * 50))
    dealt = dealt_of(read_together(both, model, productive_reading()), model)
    apart, one = of_individuals(dealt, model), of_individuals(dealt.of_people({"a": "x", "b": "x"}), model)
    assert set(apart[0].times.tolist()) == {2}
    assert set(one[0].times.tolist()) == {1}
    assert [apart[1].tolist(), one[1].tolist()] == [[len(apart[0])] * 2, [len(apart[0])]]
    assert list(one[2].values())[-1] == 100 - len(one[0])


def test_planted_selection_is_recovered(fit, drawn, selected, model):
    """The error is what the theory of logistic regression allows: p weights from rows with the information Σ π(1 - π).

    The mean square error of a log-odds, weighted by the information of each row, is p over their sum; the mean
    absolute error is at most its root.
    """
    fresh = hpcvdj.generate(model, 8_000, seed=6, productive=True, backend="cpu").to_pylist()
    rows = [(row["v_call"], row["j_call"], row["junction_aa"]) for row in fresh]
    true = np.array([planted(*row) for row in rows])
    true -= np.log(np.exp(true).mean())
    genes, pair, letters, lengths = as_arrays(rows)
    found = fit.selection.log_factor([v for v, _ in genes], [j for _, j in genes], pair, letters, lengths)
    # Rows of both kinds: the generated ones, and in proportion to Q the real ones.
    information = (1 + np.exp(true)) * np.exp(true) / (1 + np.exp(true)) ** 2
    error = np.average(np.abs(found - true), weights=information)
    per_row = information.mean() / 2
    bound = math.sqrt(len(fit.selection.weights) / (2 * fit.rows[0] * per_row))
    assert error < bound
    assert error > bound / 10, "a bound that nothing could fail"
    gain = np.average(true, weights=np.exp(true))
    assert abs(fit.gain - gain) < 5 * fit.error + bound**2
    assert fit.auc > 0.6
    assert not fit.warnings


def test_without_selection_there_is_nothing_to_find(drawn, model):
    fit = fitted(drawn.slice(0, 20_000), model)
    assert fit.gain < 2 * fit.error
    assert abs(fit.auc - 0.5) < 5 * math.sqrt(1 / (6 * fit.rows[1]))
    assert any("explains no more" in warning for warning in fit.warnings)
    uncertain = math.sqrt(len(fit.selection.weights) / fit.rows[0] * 2)
    held = distinct(drawn.slice(30_000, 5_000), model)
    assert np.abs(held.log_factor(fit.selection)).mean() < uncertain


def test_the_mean_of_q_is_one(fit, model):
    fresh = distinct(hpcvdj.generate(model, 30_000, seed=9, productive=True, backend="cpu"), model)
    q = np.exp(fresh.log_factor(fit.selection))
    mean, spread = np.average(q, weights=fresh.times), q.std() / math.sqrt(len(q))
    assert abs(mean - 1) < 4 * spread * math.sqrt(2)
    v, j = ([own[k] for own in fresh.genes] for k in (0, 1))
    for pair, expected in enumerate(fit.selection.log_mean(v, j)):
        rows = fresh.pair == pair
        mean, spread = np.average(q[rows], weights=fresh.times[rows]), q[rows].std() / math.sqrt(rows.sum())
        assert abs(mean - np.exp(expected)) < 5 * spread * math.sqrt(2), fresh.genes[pair]


def test_genes_that_were_left_out_have_q_of_one(selected, model, tmp_path):
    """Their Q was that of lengths and residues alone, and probabilities after selection added up to less than 1."""
    fits = ModelFit(1, genes=(GeneFit("V", "TRBV5-1", 9, 0.0, 0.0, 0.0, 0.1, 0.1, "productive", "broken"),))
    junctions = read_table(selected, model, productive_reading())
    fit = infer_selection(dealt_of(junctions, model), model, SelectionSettings(), "cpu", fits)
    assert fit.selection.left_out == {"TRBV5-1"}
    assert "Q of TRBV5-1 is 1, as the model makes these genes wrongly" in fit.warnings
    fresh = distinct(hpcvdj.generate(model, 30_000, seed=9, productive=True, backend="cpu"), model)
    q = np.exp(fresh.log_factor(fit.selection))
    v, j = ([own[k] for own in fresh.genes] for k in (0, 1))
    broken = np.array([gene == "TRBV5-1" for gene in v])
    assert 0.05 < fresh.times[broken[fresh.pair]].sum() / fresh.times.sum() < 0.9
    assert set(q[broken[fresh.pair]].tolist()) == {1.0}
    assert np.unique(q[~broken[fresh.pair]]).size > 100
    for part in (broken, ~broken, broken | True):
        rows = part[fresh.pair]
        mean, spread = np.average(q[rows], weights=fresh.times[rows]), q[rows].std() / math.sqrt(rows.sum())
        assert abs(mean - 1) <= 4 * spread * math.sqrt(2)
    assert set(fit.selection.log_mean(v, j)[broken].tolist()) == {0.0}
    assert (fit.selection.relative(fresh.log_factor(fit.selection), v, j, fresh.pair)[broken[fresh.pair]] == 0).all()
    hpcvdj.write_model(fit.model, tmp_path / "model")
    again = load_model(tmp_path / "model").selection
    assert (again.left_out, again.digest) == (fit.selection.left_out, fit.selection.digest)
    # Versions that do not know such genes ask for an update.
    assert (tmp_path / "model" / FILE).read_text().startswith("#hpcvdj-selection 3\n")
    assert (fresh.log_factor(again) == fresh.log_factor(fit.selection)).all()
    assert replace(again, left_out=frozenset()).digest != again.digest


def test_what_was_never_seen_and_what_is_beyond_the_range():
    own = SelectionFactor({"V_J:V1:J1": 2.0, "left:1:A": -5.0, "V_length:V1:4": 0.25}, 0.5, -1.0, 2.0)
    rows = [("V9", "J9", "CWWF"), ("V1", "J1", "CWWWF"), ("V1", "J1", "CAWWF"), ("V9", "J9", "CAWWF"), ("V1", "J1", "")]
    genes, pair, letters, lengths = as_arrays(rows)
    values = own.log_factor([v for v, _ in genes], [j for _, j in genes], pair, letters, lengths)
    assert values.tolist() == [0.5, 2.0, -1.0, -1.0, 2.0]
    assert own.log_factor([], [], pair[:0], letters[:0], lengths[:0]).tolist() == []
    several = own.log_factor(["V1*01,V2*01"], ["J1"], np.zeros(1, np.int64), letters[1:2], lengths[1:2])
    # The mean is that of Q of each gene, which is within the range.
    assert several[0] == pytest.approx(np.log((np.exp(2.0) + np.exp(0.5)) / 2), rel=1e-14)


@pytest.mark.slow
def test_order_and_repeated_rows_change_no_byte(fit, selected, model):
    rng = np.random.default_rng(8)
    shuffled = pa.concat_tables([selected, selected.slice(5, 70)]).take(rng.permutation(len(selected) + 70))
    assert fitted(shuffled, model).selection.text("m") == fit.selection.text("m")
    assert fitted(shuffled, model, seed=1).selection.text("m") != fit.selection.text("m")


def test_rows_are_drawn(selected, model):
    fit = fitted(selected, model, max_junctions=2_000)
    assert sum(fit.rows) == 2_000
    assert fit.rows[1] == pytest.approx(200, abs=60)
    assert any("too few rows" in warning for warning in SelectionQuestion(SelectionSettings()).warnings(fit))


@pytest.fixture(scope="module")
def folder(fit, tmp_path_factory):
    target = tmp_path_factory.mktemp("selection") / "model"
    hpcvdj.write_model(fit.model, target)
    return target


def test_written_and_read_to_the_bit(folder, fit, selected, model):
    own = load_model(folder)
    assert own.selection.text(own.digest) == (folder / FILE).read_text()
    assert own.selection.weights == dict(fit.selection.weights)
    held = distinct(selected.slice(0, 500), model)
    assert (held.log_factor(own.selection) == held.log_factor(fit.selection)).all()
    again = folder.parent / "again"
    hpcvdj.write_model(own, again)
    numbers = [(place / FILE).read_text().split("\n")[2:] for place in (again, folder)]
    assert numbers[0] == numbers[1]
    assert load_model(again).selection.digest == own.selection.digest


def line_changed(number, text):
    def change(lines):
        lines[number - 1] = text(lines[number - 1]) if callable(text) else text

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (line_changed(1, "feature\tvalue"), "line 1: not '#hpcvdj-selection 1'"),
        (line_changed(1, "#hpcvdj-selection 4"), "update hpcvdj"),
        (line_changed(2, "#{}"), "line 2: not a JSON object"),
        (line_changed(2, "#{"), "line 2: not a JSON object"),
        (
            line_changed(2, lambda line: line.replace('"model_sha256": "', '"model_sha256": "0')),
            "line 2: is the factor",
        ),
        (line_changed(3, "feature"), "line 3: not the columns"),
        (line_changed(4, "intercept\tnan"), "line 4: not a feature and a number"),
        (line_changed(9, "left:10:A\t0.5"), "line 9: not a feature and a number: 'left:10:A"),
        (line_changed(9, "left:1:AA\t0.5"), "line 9: not a feature"),
        (line_changed(9, ""), "line 9: not a feature"),
        (line_changed(9, "intercept\t0.5"), "line 9: intercept is there twice"),
        (line_changed(-1, lambda line: line[:-1]), "not those that were written"),
        (lambda lines: lines.pop(-3), "not those that were written"),
        (lambda lines: lines.pop(4), "not those that were written"),
        (lambda lines: lines.__delitem__(slice(40, None)), "not those that were written"),
        (lambda lines: lines.__delitem__(slice(1, None)), "line 2: not a JSON"),
        (lambda lines: lines.clear(), "line 1: not"),
    ],
)
def test_damaged_files_are_refused(folder, tmp_path, change, message):
    own = load_model(folder)
    lines = (folder / FILE).read_text().split("\n")
    if message == "not those that were written" and len(lines) > 5 and not lines[-1]:
        lines.pop()
    change(lines)
    (tmp_path / FILE).write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"selection\.tsv, line") as error:
        read_selection(tmp_path / FILE, own.digest)
    assert message in str(error.value)


def test_a_model_changed_by_hand_loses_its_factor(folder, tmp_path):
    for path in folder.iterdir():
        text = path.read_text()
        (tmp_path / path.name).write_text(text.replace("0.25,", "0.250,") if "marginals" in path.name else text)
    (tmp_path / "model_params.txt").write_text((folder / "model_params.txt").read_text() + "\n")
    with pytest.raises(InputError, match="is the factor of another model"):
        read_model(tmp_path)


def test_too_few_rows(drawn, model):
    with pytest.raises(InputError, match=r"900 distinct productive junctions.*too few"):
        fitted(drawn.slice(0, 900), model)
    with pytest.raises(InputError, match="max_junctions=999: give at least"):
        SelectionSettings(max_junctions=999)
    with pytest.raises(InputError, match="seed=-1"):
        SelectionSettings(seed=-1)


@pytest.fixture(scope="module")
def tables(selected, model, tmp_path_factory):
    """Two tables of a cohort, and the model without a factor."""
    place = tmp_path_factory.mktemp("tables")
    hpcvdj.write_model(model, place / "plain")
    for name, part in (("a.tsv", selected.slice(0, 3_000)), ("b.tsv", selected.slice(2_900, 3_000))):
        write_table(place / name, part.to_batches(), overwrite=False)
    return place


@pytest.mark.slow
def test_the_command_and_the_function(tables, tmp_path, selected):
    words = ["infer-selection", tables / "a.tsv", tables / "b.tsv", "-m", tables / "plain", "--backend", "cpu"]
    out, _ = hpcvdj_command(*words, "-o", tmp_path / "own")
    repeated = re.search(r"(\d+) that another row of the individual repeats", out)
    assert int(repeated[1]) < 100
    assert "of 2 individual(s)" in out
    own = load_model(tmp_path / "own")
    assert own.digest == load_model(tables / "plain").digest
    # A junction that both individuals have counts for both, whatever their order.
    given = {"b": selected.slice(2_900, 3_000), "a": tables / "a.tsv"}
    for individuals in (given, [tables / "b.tsv", tables / "a.tsv"]):
        fit = hpcvdj.infer_selection(individuals, tables / "plain", backend="cpu")
        assert fit.selection.text(own.digest) == (tmp_path / "own" / FILE).read_text()
    together = pa.concat_tables([selected.slice(2_900, 3_000), selected.slice(0, 2_900)])
    one = hpcvdj.infer_selection(together, tables / "plain", backend="cpu")
    assert one.individuals == 1
    assert one.selection.text(own.digest) != fit.selection.text(own.digest)
    shown, _ = hpcvdj_command("models", "show", tmp_path / "own")
    assert f"{len(own.selection.weights):,} weights from {fit.rows[0]:,} junctions of" in shown
    assert f"gain {fit.gain:.4f}" in shown
    hpcvdj_command("models", "compare", tmp_path / "own", tables / "plain")
    _, err = hpcvdj_command(*words, "-o", tmp_path / "own", code=2)
    assert "exists already" in error_line(err)
    before = (tmp_path / "own" / FILE).read_bytes()
    hpcvdj_command(*words, "-o", tmp_path / "own", "--overwrite")
    assert (tmp_path / "own" / FILE).read_bytes() == before
    (tmp_path / "own" / "other.txt").write_text("")
    _, err = hpcvdj_command(*words, "-o", tmp_path / "own", "--overwrite", code=2)
    assert "has files that hpcvdj did not write there (other.txt)" in error_line(err)


@pytest.mark.exhaustive
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
def test_ranks_and_threads(tables, tmp_path):
    words = ["infer-selection", tables / "a.tsv", "-m", tables / "plain", "--backend", "cpu", "-o"]
    written = []
    for ranks, threads in ((1, 2), (3, 1)):
        target = tmp_path / f"{ranks}_{threads}"
        command = [MPIEXEC, "-n", ranks, sys.executable, "-m", "hpcvdj", *words, target, "--threads", threads]
        subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=200)
        written.append((target / FILE).read_bytes())
    assert len(set(written)) == 1
