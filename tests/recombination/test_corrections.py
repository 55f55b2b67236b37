"""Alleles that published models have wrong: corrected when a model is read, kept with `:published`, or named."""

from __future__ import annotations

import csv
import gzip
import logging
import shutil

import numpy as np
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.anchors import read_anchors
from hpcvdj.recombination.igor import (
    FILES,
    OLGA_FOLDERS,
    folder_texts,
    load_model,
    model_digest,
    read_model,
)
from hpcvdj.recombination.packaged import anchors_paths
from tests.commands import error_line, hpcvdj_command
from tests.recombination.definition import pgen
from tests.recombination.igor_files import Event, vdj_files, vj_files

REVERSED, EARLY, RIGHT = "TRBV31*01", "TRBV4-3*02", "TRBV2*01"
V31, V43 = "TGTGCCTGGAGTCT", "TGCGCCAGCAGCCAAGA"

CORRECTED = {
    "human_trb": {"TRBV4-3*02": "TGCGCCAGCAGCCAAGA"},
    "human_igh": {"IGHV4-4*07": "TGTGCGAGAGA"},
    "human_igl": {"IGLV3-2*03": "TGTCGCTCGGAACAGCACTGCTTCTCATCT"},
    "mouse_trb": {"TRBV10*01": "TGGGCCAGCAGTGAACAAA", "TRBV31*01": "TGTGCCTGGAGTCT"},
    "mouse_igh": {"IGHV0-OSZZ*00": "TGTGCATGA"},
}
"""The segments that the germline tables have, with codon 104."""


def before(bases):
    """What comes before codon 104: no palindrome, and no TGT."""
    return ("ACCAGG" * bases)[:bases]


def faulty(v31=None, v43=None, anchors=(270, 267)):
    """A model with TRBV31*01 on the other strand and TRBV4-3*02 cut one codon too early, as OLGA's have them."""
    files = vdj_files()
    sequences = {
        REVERSED: reverse_complement(before(270) + V31) if v31 is None else v31,
        EARLY: before(270) + V43 if v43 is None else v43,
        RIGHT: "GGTGTGCC",
    }
    files.events["v_choice"] = Event([f"{own};{text}" for own, text in sequences.items()], np.array([0.5, 0.3, 0.2]))
    files.events["v_3_del"].probabilities = np.full((3, 4), 0.25)
    files.anchors["V"] = [f"{REVERSED},{anchors[0]},F", f"{EARLY},{anchors[1]},(F)", f"{RIGHT},2,F"]
    return files


def segments(model):
    return {own.allele: own.segment for own in model.v}


def drawn_with(model, allele, rows=30):
    """Drawn rows of a V allele: (J allele, junction)."""
    table = hpcvdj.generate(model, 60 * rows, seed=1, backend="cpu").to_pylist()
    return [(row["j_call"], row["junction"]) for row in table if row["v_call"] == allele][:rows]


def require_reference(model, allele, rows):
    """Generation probabilities of junctions of an allele are the plain sums over scenarios, and mostly above 0."""
    v = model.find("V", allele)
    table = {"v_call": [allele] * len(rows), "j_call": [j for j, _ in rows], "junction": [text for _, text in rows]}
    values = hpcvdj.pgen(_arrow(table), model, backend="cpu", sequence="nt")["pgen_nt"].to_numpy()
    expected = [pgen(model, text, v, model.find("J", j)) for j, text in rows]
    np.testing.assert_allclose(values, expected, rtol=1e-13, atol=0)
    assert len(values) >= 3
    assert (values > 0).all()


def _arrow(table):
    import pyarrow as pa

    return pa.table(table)


def test_alleles_that_are_known_to_be_wrong_are_corrected(tmp_path):
    model = load_model(faulty().write(tmp_path / "m"))
    assert segments(model) == {REVERSED: V31, EARLY: V43, RIGHT: "TGTGCC"}
    assert {own.allele: own.sequence[:270] for own in model.v[:2]} == {REVERSED: before(270), EARLY: before(270)}
    assert model.corrected == {
        EARLY: "the model's anchor is one codon too early", REVERSED: "reverse-complemented in the model",
    }  # fmt: skip
    assert {own.allele: own.extended for own in model.v}[REVERSED] == V31 + "AG"
    assert [own.function for own in model.v] == ["F", "(F)", "F"]
    assert not model.faults


def test_what_was_published_can_be_kept(tmp_path):
    folder = faulty().write(tmp_path / "m")
    kept, model = load_model(f"{folder}:published"), load_model(folder)
    assert segments(kept) == {REVERSED: reverse_complement(before(14)), EARLY: "AGG" + V43, RIGHT: "TGTGCC"}
    assert kept.name == f"{folder}:published"
    assert not kept.corrected
    assert kept.faults == model.corrected
    assert kept.digest == model_digest(folder_texts(folder).values())
    assert kept.digest != model.digest
    assert kept.v[2] == model.v[2]


def test_a_folder_of_that_name_goes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faulty().write(tmp_path / "m:published")
    assert load_model("m:published").corrected
    assert not load_model("m:published:published").corrected
    with pytest.raises(InputError, match="m: no folder of a model"):
        load_model("m")
    faulty().write(tmp_path / "m")
    assert load_model("m").corrected


def test_a_model_without_the_faults_is_the_same_with_the_suffix(tmp_path):
    folder = vdj_files().write(tmp_path / "m")
    kept, model = load_model(f"{folder}:published"), load_model(folder)
    assert (kept.digest, kept.v, kept.faults) == (model.digest, model.v, model.faults)
    assert not model.corrected


@pytest.mark.parametrize("allele", [REVERSED, EARLY])
def test_probabilities_of_corrected_alleles_are_plain_sums(tmp_path, allele):
    model = load_model(faulty().write(tmp_path / "m"))
    require_reference(model, allele, drawn_with(model, allele))


def test_a_written_model_is_not_corrected_again(tmp_path):
    model = load_model(faulty().write(tmp_path / "m"), pseudogenes=True)
    hpcvdj.write_model(model, tmp_path / "own")
    own = load_model(tmp_path / "own")
    assert not own.corrected
    assert own.v == model.v
    assert load_model(f"{tmp_path / 'own'}:published").v == own.v


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"v31": before(270) + V31}, {EARLY}),
        ({"v31": reverse_complement(before(270) + V31)[1:]}, {EARLY}),
        ({"v31": reverse_complement("A" + before(270) + V31)}, {EARLY}),
        ({"v31": reverse_complement(before(270) + "TGTGCCTGGAGTAT")}, {EARLY}),
        ({"anchors": (0, 267)}, {EARLY}),
        ({"anchors": (9, 267)}, {EARLY}),
        ({"anchors": (270, 0)}, {REVERSED}),
        ({"anchors": (270, 270)}, {REVERSED}),
        ({"anchors": (270, 273)}, {REVERSED}),
        ({"anchors": (270, 268)}, {REVERSED}),
        ({"v43": before(269) + V43}, {REVERSED}),
    ],
    ids=[
        "right strand",
        "shorter",
        "longer",
        "another base",
        "no anchor",
        "another anchor",
        "none",
        "right",
        "too far",
        "one base",
        "moved",
    ],
)
def test_only_what_is_meant_is_corrected(tmp_path, change, wrong):
    folder = faulty(**change).write(tmp_path / "m")
    model, kept = load_model(folder), load_model(f"{folder}:published")
    assert set(model.corrected) == wrong
    for own, published in zip(model.v, kept.v, strict=True):
        assert (own == published) == (own.allele not in wrong)


def test_an_allele_without_a_row_of_anchors_stays(tmp_path):
    files = faulty()
    del files.anchors["V"][0]
    assert set(load_model(files.write(tmp_path / "m")).corrected) == {EARLY}


def test_spaces_case_and_headers_around_names(tmp_path):
    """As IGoR writes them: whole IMGT headers; sequences in lower case."""
    files = faulty(v31=reverse_complement(before(270) + V31).lower())
    header = f"M1|{EARLY}|Homo sapiens|(F)|V-REGION|"
    files.events["v_choice"].realisations[1] = files.events["v_choice"].realisations[1].replace(EARLY, header)
    files.anchors["V"][:2] = [f" {REVERSED} , 270 , F ", f"{header},267,(F)"]
    model = load_model(files.write(tmp_path / "m"))
    assert segments(model) == {REVERSED: V31, header: V43, RIGHT: "TGTGCC"}
    assert set(model.corrected) == {REVERSED, header}


def test_truncated_alleles_are_named(tmp_path):
    files = vj_files()
    truncated, v = "TGCCAGTTTGGGGAAACTGCAGTTTGGAACAGG", "GAATCTCTGTGCAGTGAG"
    files.events["j_choice"].realisations = [f"TRAJ24*01;{truncated}", "TRAJ2*01;CCTTCGG"]
    files.events["v_choice"].realisations = [f"TRAV7D-3*02;{v}", "TRAV2/DV4*01;GTGTA"]
    files.anchors = {"V": ["TRAV7D-3*02,8,F", "TRAV2/DV4*01,1,(F)"], "J": ["TRAJ24*01,22,F", "TRAJ2*01,2,F"]}
    folder = files.write(tmp_path / "m")
    model = load_model(folder)
    assert set(model.faults) == {"TRAJ24*01", "TRAV7D-3*02"}
    assert model.faults["TRAJ24*01"].startswith("truncated: ")
    assert model.faults["TRAV7D-3*02"].startswith("perhaps 2 bases short at the 3' end")
    assert not model.corrected
    assert model.digest == load_model(f"{folder}:published").digest
    assert load_model(f"{folder}:published").faults == model.faults
    # Whole genes under the same names.
    change = {"model_params.txt": (f"{truncated}", f"TGACAAC{truncated}")}
    whole = files.write(tmp_path / "whole", change)
    assert set(load_model(whole).faults) == {"TRAV7D-3*02"}
    files.write(tmp_path / "longer", {"model_params.txt": (v, v + "CA")})
    assert set(load_model(tmp_path / "longer").faults) == {"TRAJ24*01"}


def test_alleles_that_deletions_leave_nothing_of_are_named(tmp_path):
    files = vj_files()
    files.events["v_3_del"].probabilities = np.array([[0.1, 0.1, 0.4, 0.2, 0.2], [0.0, 0.0, 0.0, 0.0, 1.0]])
    files.events["v_choice"].realisations[1] = "TRAV2/DV4*01;AT"
    files.anchors["V"][1] = "TRAV2/DV4*01,1,F"
    with pytest.raises(InputError, match="the anchor 1 of TRAV2/DV4"):
        load_model(files.write(tmp_path / "m"))
    files.events["v_choice"].realisations[1] = "TRAV2/DV4*01;ATGT"
    # Index 4 is 2 bases deleted of the 3, and 2 P-nucleotides: one is left.
    assert not load_model(files.write(tmp_path / "m")).faults
    files.events["v_3_del"].realisations.append("3")
    for kept, faults in ((0.5, set()), (0.49, {"TRAV2/DV4*01"})):
        shares = [[0.1, 0.1, 0.4, 0.2, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0, kept, 1 - kept]]
        files.events["v_3_del"].probabilities = np.array(shares)
        assert set(load_model(files.write(tmp_path / "m")).faults) == faults
    why = load_model(tmp_path / "m").faults["TRAV2/DV4*01"]
    assert why == "by its deletions, 51 % of the gene's recombinations make no junction"
    # Another allele of the gene, three times as frequent.
    for allele, faults in (("TRAV2/DV4*02", set()), ("TRAV2*02", {"TRAV2/DV4*01"})):
        files.events["v_choice"].realisations[0] = f"{allele};GGTGTGCC"
        files.anchors["V"][0] = f"{allele},2,F"
        assert set(load_model(files.write(tmp_path / "m")).faults) == faults


def test_the_log_says_once_what_was_corrected(tmp_path, caplog):
    folder = faulty().write(tmp_path / "m")
    with caplog.at_level(logging.INFO):
        load_model(f"{folder}:published")
        load_model(vdj_files().write(tmp_path / "right"))
        read_model(folder)
    assert not caplog.records
    with caplog.at_level(logging.INFO):
        load_model(folder)
    (line,) = (record.getMessage() for record in caplog.records)
    assert line == (
        f"{folder}: corrected {EARLY} (the model's anchor is one codon too early), {REVERSED} (reverse-complemented in "
        f"the model); {folder}:published keeps what was published"
    )


def test_results_record_it(tmp_path):
    folder = faulty().write(tmp_path / "m")
    facts, kept = load_model(folder).facts(), load_model(f"{folder}:published").facts()
    assert facts["model_corrected"] == (
        f"{EARLY} (the model's anchor is one codon too early), {REVERSED} (reverse-complemented in the model)"
    )
    assert "model_corrected" not in kept
    assert facts["model_sha256"] != kept["model_sha256"]


@pytest.fixture
def table(tmp_path):
    model = load_model(faulty().write(tmp_path / "m"))
    path = tmp_path / "rows.tsv"
    rows = [f"{k}\t{REVERSED}\t{j}\t{text}" for k, (j, text) in enumerate(drawn_with(model, REVERSED, 6))]
    path.write_text("\n".join(["sequence_id\tv_call\tj_call\tjunction", *rows, ""]))
    return path


def test_a_run_does_not_mix_corrected_and_published_numbers(table, tmp_path):
    words = ["pgen", table, "-o", tmp_path / "o.h5", "--backend", "cpu"]
    _, err = hpcvdj_command(*words, "-m", tmp_path / "m")
    assert err.count(f"corrected {EARLY}") == 1
    with hpcvdj.Result(tmp_path / "o.h5") as result:
        assert REVERSED in result.provenance["model_corrected"]
    _, err = hpcvdj_command(*words, "-m", f"{tmp_path / 'm'}:published", "--resume", code=2)
    assert "model_sha256" in error_line(err)
    _, err = hpcvdj_command(*words, "-m", f"{tmp_path / 'm'}:published", "--overwrite")
    assert "corrected" not in err
    with hpcvdj.Result(tmp_path / "o.h5") as result:
        assert (result.to_table()["pgen_nt"].to_numpy() == 0).any()


def test_a_row_of_a_result_of_another_version_of_the_model(table, tmp_path):
    right = faulty(before(270) + V31, before(270) + V43, (270, 270)).write(tmp_path / "m")
    hpcvdj_command("pgen", table, "-o", tmp_path / "o.h5", "--backend", "cpu", "-m", tmp_path / "m")
    digest = load_model(right).digest
    # The corrected model is the right one.
    assert load_model(faulty().write(tmp_path / "m")).digest == digest
    assert "model      " in hpcvdj_command("explain", tmp_path / "o.h5", "--id", "0")[0]
    faulty().write(tmp_path / "m", {"model_params.txt": ("0.001", "0.002")})
    _, err = hpcvdj_command("explain", tmp_path / "o.h5", "--id", "0", code=2)
    assert error_line(err).endswith(f"has changed since; name one with -m, such as {tmp_path / 'm'}:published")
    vdj_files().write(tmp_path / "m")
    _, err = hpcvdj_command("explain", tmp_path / "o.h5", "--id", "0", code=2)
    assert error_line(err).endswith("has changed since; name one with -m")


def test_models_show_names_corrections_and_faults(tmp_path):
    folder = faulty().write(tmp_path / "m")
    out, _ = hpcvdj_command("models", "show", folder)
    assert f"corrected  {REVERSED}: reverse-complemented in the model\n" in out
    assert "wrong" not in out
    out, _ = hpcvdj_command("models", "show", f"{folder}:published")
    assert f"wrong      {REVERSED}: reverse-complemented in the model\n" in out
    assert "corrected" not in out


def test_every_entry_says_what_is_wrong():
    """Entries that move an anchor say how the sequence reads; the others may be notes for the germline table alone."""
    entries = [entry for path in anchors_paths() for entry in read_anchors(path).values()]
    assert len(entries) > 50
    for entry in entries:
        assert entry.note or entry.refuse
        assert entry.reads or not entry.anchor_index
        assert bool(entry.wrong_anchor) == bool(entry.anchor_index)
    assert [entry.allele for entry in entries if not entry.reads] == ["TRBV24*01"]


# --- OLGA's models


@pytest.mark.olga
@pytest.mark.parametrize("name", OLGA_FOLDERS)
def test_the_models_of_olga(name):
    model, kept = load_model(name, pseudogenes=True), load_model(f"{name}:published", pseudogenes=True)
    expected = CORRECTED.get(name, {})
    assert {own.allele: own.segment for own in model.v if own.allele in model.corrected} == expected
    assert (model.digest != kept.digest) == bool(expected)
    for own, published in zip((*model.v, *model.d, *model.j), (*kept.v, *kept.d, *kept.j), strict=True):
        assert (own == published) == (own.allele not in expected)
    for array in ("v_deletions", "j_deletions", "d_deletions", "p_v", "p_dj", "p_vj"):
        assert np.array_equal(getattr(model, array), getattr(kept, array))


@pytest.mark.olga
def test_what_stays_wrong_in_olgas_models():
    assert "TRAJ24*01" in load_model("mouse_tra").faults
    assert {"TRAJ32*02", "TRAV13-2*02"} <= load_model("human_tra").faults.keys()
    # Human TRAJ24*01 is another gene than mouse TRAJ24*01.
    assert "TRAJ24*01" not in load_model("human_tra").faults
    assert {"IGLJ5*01", "IGLJ5*02"} <= load_model("human_igl").faults.keys()
    assert not load_model("mouse_trb").faults
    assert not load_model("human_trb").faults
    assert not load_model("human_trb_m15").faults


@pytest.mark.exhaustive
@pytest.mark.olga
def test_junctions_of_mouse_trbv31_are_plain_sums():
    model = load_model("mouse_trb")
    shortest = sorted(drawn_with(model, REVERSED), key=lambda row: len(row[1]))[:3]
    require_reference(model, REVERSED, shortest)


@pytest.mark.slow
@pytest.mark.olga
def test_other_rows_keep_every_bit(shared_data):
    """Mouse beta chains of Dash et al. 2017: TRBV31 was 10^7 times too improbable, all other rows are as they were."""
    rows = dash(shared_data)
    before_, after = (
        hpcvdj.pgen(_arrow(rows), name, backend="cpu", sequence="nt")["pgen_nt"].to_numpy()
        for name in ("mouse_trb:published", "mouse_trb")
    )
    reversed_ = np.array([call.startswith("TRBV31") for call in rows["v_call"]])
    assert reversed_.sum() == 47
    assert np.array_equal(before_[~reversed_], after[~reversed_], equal_nan=True)
    with np.errstate(divide="ignore"):
        medians = [np.median(np.log10(own[reversed_])) for own in (before_, after)]
    others = np.nanmedian(np.log10(np.maximum(after[~reversed_], 1e-30)))
    assert medians[1] - medians[0] > 4
    assert abs(medians[1] - others) < 1


def dash(shared_data):
    with gzip.open(shared_data / "mouse_TRB_dash2017.tsv.gz", "rt") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return {name: [row[name] for row in rows] for name in ("v_call", "j_call", "junction")}


@pytest.mark.olga
@pytest.mark.slow
def test_inference_starts_from_the_corrected_alleles_and_writes_them(tmp_path):
    drawn = hpcvdj.generate("mouse_trb", 600, seed=2, backend="cpu")
    fit = hpcvdj.infer(drawn, "mouse_trb", rows="all", iterations=1, backend="cpu")
    assert {own.allele: own.segment for own in fit.model.v}[REVERSED] == V31
    assert not fit.model.corrected
    hpcvdj.write_model(fit.model, tmp_path / "own")
    own = load_model(tmp_path / "own")
    assert segments(own)[REVERSED] == V31
    assert not own.corrected
    assert own.digest == fit.model.digest


def test_infer_records_what_was_corrected_in_its_start(tmp_path, table):
    words = ["infer", table, "--rows", "all", "--duplicates", "--iterations", 1, "--hold-out", 0, "--backend", "cpu"]
    hpcvdj_command(*words, "-m", tmp_path / "m", "-o", tmp_path / "own")
    from hpcvdj.recombination.origin import read_facts

    assert set(read_facts(tmp_path / "own")["start"]["corrected"]) == {EARLY, REVERSED}
    assert not load_model(tmp_path / "own").corrected
    hpcvdj_command(*words, "-m", f"{tmp_path / 'm'}:published", "-o", tmp_path / "kept", code=2)


@pytest.fixture
def with_factor(tmp_path):
    """A folder with the faults and a selection factor that was inferred without corrections."""
    from hpcvdj.recombination.selection import FILE, SelectionFactor

    folder = faulty().write(tmp_path / "m")
    digest = load_model(f"{folder}:published").digest
    (folder / FILE).write_text(SelectionFactor({"left:1:A": 0.5}, 0.1, -1.0, 1.0).text(digest))
    return folder


def test_factors_of_published_models_keep_working(with_factor, caplog):
    model = load_model(with_factor)
    assert model.selection.weights == {"left:1:A": 0.5}
    assert model.corrected
    (line,) = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert line == (
        f"{with_factor / 'selection.tsv'}: was inferred without the corrections of this model; infer it again with "
        f"`hpcvdj infer-selection`, or name the model {with_factor}:published"
    )
    caplog.clear()
    kept = load_model(f"{with_factor}:published")
    assert kept.selection.digest == model.selection.digest
    assert not caplog.records


def test_a_factor_is_written_with_the_files_that_it_belongs_to(with_factor, tmp_path, caplog):
    from hpcvdj.inference.folder import write_with_selection

    for name, corrected in ((str(with_factor), True), (f"{with_factor}:published", False)):
        model, target = load_model(name), tmp_path / f"out{corrected}"
        write_with_selection(with_factor, target, model, {}, overwrite=False)
        caplog.clear()
        own = load_model(target)
        assert (folder_texts(target) == folder_texts(with_factor)) != corrected
        assert bool(own.corrected) != corrected
        assert own.selection.weights == model.selection.weights
        assert ("without the corrections" in caplog.text) != corrected
        assert segments(own)[REVERSED] == V31
    shutil.copy(tmp_path / "outTrue" / FILES[0], with_factor / FILES[0])
    with pytest.raises(InputError, match="changed while it was read"):
        write_with_selection(with_factor, tmp_path / "other", model, {}, overwrite=False)
