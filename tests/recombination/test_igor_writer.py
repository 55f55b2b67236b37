"""A model that is written in IGoR's format and read again is the same model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.germline_import import import_germline
from hpcvdj.inference.folder import named
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.germline import extended_j, extended_v, read_germline
from hpcvdj.recombination.igor import OLGA_FOLDERS, load_model, olga_folder, read_model
from hpcvdj.recombination.igor_writer import model_texts
from hpcvdj.recombination.models import Model, Template, stationary
from tests.conftest import TABLES
from tests.kernels.pgen.models import mutated, pgens, random_model, sample
from tests.recombination.igor_files import vdj_files

FUNCTIONS = ("F", "(F)", "ORF", "P", "[F]")

PGEN_DIFFERENCE = 1e-14
"""Relative, between probabilities of junctions under the two models of OLGA."""

RANDOM_PGEN_DIFFERENCE = 1e-13
"""The same of random models, whose chains with rare steps make more of a rounding; 1.4e-14 was measured."""


def written(model: Model, folder: Path, *, pseudogenes: bool = True) -> Model:
    """The model, written and read."""
    folder.mkdir(exist_ok=True)
    for name, text in model_texts(model).items():
        (folder / name).write_text(text)
    return read_model(folder, model.name, pseudogenes=pseudogenes)


def d_extended(segment: str, left: int, right: int) -> tuple[str, int]:
    """A D segment with the P-nucleotides that OLGA gives it, and how many are before it."""
    if len(segment) < min(left, right):
        left = right = len(segment)
    extended = reverse_complement(segment[:left]) + segment
    return extended + reverse_complement(extended[max(0, len(extended) - right) :]), min(left, len(segment))


def writable(seed: int, has_d: bool) -> Model:
    """A random model that files can have: alleles without segments, and other P-nucleotides at each end."""
    model, rng = random_model(seed, has_d), np.random.default_rng([seed, 1])
    v_p, j_p, left, right = (int(rng.integers(0, 6)) for _ in range(4))
    v, d, j = [], [], []
    for place, own in enumerate(model.v):
        # An anchor codon is within the sequence, and an anchor of 0 is one that is not known.
        text = own.segment.ljust(3, "T")
        segment = text if place == 0 or rng.random() < 0.8 else ""
        sequence = "GATTACA"[: rng.integers(1, 7)] + text
        v.append(Template(own.allele, sequence, segment, extended_v(segment, v_p), 0, str(rng.choice(FUNCTIONS))))
    for place, own in enumerate(model.j):
        text = own.segment.ljust(4, "T")
        segment = text if place == 0 or rng.random() < 0.8 else ""
        extended = extended_j(segment, j_p)
        p5 = len(extended) - len(segment)
        j.append(Template(own.allele, text + "GGA", segment, extended, p5, str(rng.choice(FUNCTIONS))))
    d_deletions = model.d_deletions.copy()
    for own, chances in zip(model.d, d_deletions, strict=True):
        extended, p5 = d_extended(own.segment, left, right)
        d.append(Template(own.allele, own.segment, own.segment, extended, p5))
        chances[np.add(*np.indices(chances.shape)) > len(extended)] = 0
        chances /= chances.sum()
    insertions = tuple(replace(own, first=stationary(own.transitions)) for own in model.insertions)
    return replace(model, v=tuple(v), d=tuple(d), j=tuple(j), d_deletions=d_deletions, insertions=insertions)


def require_same(found: Model, model: Model) -> None:
    """Alleles and sizes, and probabilities but for one rounding where they are multiplied and divided."""
    assert (found.name, found.v, found.d, found.j) == (model.name, model.v, model.d, model.j)
    assert found.digest == named(model, "").digest
    assert (found.p_vdj is None) == (model.p_vdj is None)
    if found.p_vdj is not None:
        np.testing.assert_allclose(found.p_vdj, model.p_vdj, rtol=2.0**-50)
    for name in ("p_v", "v_deletions", "j_deletions"):
        assert np.array_equal(getattr(found, name), getattr(model, name)), name
    for name in ("p_dj", "p_vj", "d_deletions"):
        # P(D, J) of a model with P(V, D, J) is a sum over V.
        ulp = 1 if model.p_vdj is None else 8
        np.testing.assert_array_max_ulp(getattr(found, name), getattr(model, name), ulp)
    for own, before in zip(found.insertions, model.insertions, strict=True):
        assert np.array_equal(own.lengths, np.trim_zeros(before.lengths, "b"))
        # Columns are divided by their sums, which are 1 but for some roundings.
        np.testing.assert_allclose(own.transitions, before.transitions, rtol=2.0**-51)
        # Of the chain; rare steps make more of a rounding. 1.9e-15 was the largest of 3,000 random models.
        np.testing.assert_allclose(own.first, before.first, rtol=0, atol=2.0**-47)


def require_same_pgen(found: Model, model: Model, rows: int, seed: int, difference: float) -> None:
    """Of drawn junctions, half of them changed, with and without their alleles."""
    rng = np.random.default_rng(seed)
    junctions = []
    for k in range(rows):
        own = sample(model, rng)
        text = mutated(own.junction, rng) if own.junction and k % 2 else own.junction
        v, j = (tuple({place} & set(model.contributing(segment))) for segment, place in (("V", own.v), ("J", own.j)))
        junctions.append((text, v, j) if k % 4 < 2 and v and j else (text, None, None))
    values, expected = pgens(found, junctions, ("pgen_nt",)), pgens(model, junctions, ("pgen_nt",))
    assert (expected > 0).any() or rows < 10
    np.testing.assert_allclose(values, expected, rtol=difference, atol=0)


def test_a_joint_choice_is_read_as_it_was_written(tmp_path):
    """P(V, D, J) in which J and D depend on V, as in OLGA's models of IGH."""
    model, rng = writable(3, True), np.random.default_rng(3)
    p_vdj = rng.random((len(model.v), len(model.d), len(model.j)))
    p_vdj /= p_vdj.sum()
    joint = replace(model, p_vdj=p_vdj, p_v=p_vdj.sum(axis=(1, 2)), p_dj=p_vdj.sum(axis=0))
    found = written(joint, tmp_path / "m")
    np.testing.assert_allclose(found.p_vdj, p_vdj, rtol=2.0**-50)
    np.testing.assert_allclose(found.p_v, joint.p_v, rtol=2.0**-50)
    np.testing.assert_allclose(found.p_dj, joint.p_dj, rtol=2.0**-50)
    require_same_pgen(found.with_joint_choice(), joint.with_joint_choice(), 40, 3, RANDOM_PGEN_DIFFERENCE)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), has_d=st.booleans())
def test_random_models_are_read_as_they_were_written(tmp_path_factory, seed, has_d):
    model = writable(seed, has_d)
    found = written(model, tmp_path_factory.getbasetemp() / "random")
    require_same(found, model)
    require_same_pgen(found, model, 8, seed, RANDOM_PGEN_DIFFERENCE)


@pytest.mark.skipif(olga_folder() is None, reason="olga is not installed")
@pytest.mark.parametrize("pseudogenes", [False, True])
@pytest.mark.parametrize("name", OLGA_FOLDERS)
def test_olgas_models_are_read_as_they_were_written(tmp_path, name, pseudogenes):
    model = load_model(name, pseudogenes=pseudogenes)
    found = written(model, tmp_path / "m", pseudogenes=pseudogenes)
    # An allele that the table of anchors does not have is written as a pseudogene.
    require_same(found, replace(model, v=as_written(model.v), j=as_written(model.j)))
    require_same_pgen(found, model, 40, 1, PGEN_DIFFERENCE)


@pytest.mark.olga
def test_anchors_of_alleles_that_take_no_part_are_written(tmp_path):
    """They were 0, so that `infer` could not learn genes such as TRBV1, and `germline import` cut them at base 3."""
    first = written(load_model("human_trb"), tmp_path / "m")
    assert first.v == as_written(load_model("human_trb", pseudogenes=True).v)
    segments = {own.allele: own for own in import_germline(tmp_path / "m").rows}
    assert segments["TRBV1*01"].sequence == "ACCAGCAGCCAAGA"
    assert max(len(own.sequence) for own in segments.values()) < 60


def as_written(templates: tuple[Template, ...]) -> tuple[Template, ...]:
    return tuple(replace(own, function=own.function or "P") for own in templates)


def test_a_second_round_changes_nothing(tmp_path):
    """Files of a model that was read from such files are the same bytes, but for shares that are divided again."""
    model = writable(12, True)
    first = written(model, tmp_path / "a")
    texts, again = model_texts(model), model_texts(first)
    for name in texts:
        if "marginals" not in name:
            assert texts[name] == again[name]


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_models_of_germline_tables_are_read_as_they_were_written(tmp_path, table):
    from hpcvdj.inference.start import from_germline

    model = from_germline(read_germline(table, d_alleles="all"))
    require_same(written(model, tmp_path / "m"), model)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("0.001", 0.001), ("9.8e-3 ", 0.0098), ("0", 0.0), ("1", 0.0), ("nan", 0.0), ("-0.1", 0.0), ("", 0.0), ("a", 0.0)],
)
def test_the_error_rate(tmp_path, text, rate):
    """A model that was read and written again had none."""
    change = {"model_params.txt": ("#SingleErrorRate\n0.001", f"#SingleErrorRate\n{text}")}
    model = load_model(vdj_files().write(tmp_path / "m", change))
    assert model.error_rate == written(model, tmp_path / "again").error_rate == rate
    # Line ends of Windows.
    (tmp_path / "m" / "model_params.txt").write_bytes(
        (tmp_path / "m" / "model_params.txt").read_bytes().replace(b"\n", b"\r\n")
    )
    assert load_model(tmp_path / "m").error_rate == rate
    other = {"model_params.txt": ("#SingleErrorRate\n0.001", "#Hypermutation_global_errorrate;5\n0.2")}
    assert load_model(vdj_files().write(tmp_path / "n", other)).error_rate == 0.0


def test_anchors_with_semicolons(tmp_path):
    """IGoR writes these, OLGA writes commas."""
    model = load_model(vdj_files().write(tmp_path / "m"))
    for path in tmp_path.glob("m/*.csv"):
        path.write_text(path.read_text().replace(",", ";"))
    again = load_model(tmp_path / "m")
    assert (again.v, again.j) == (model.v, model.j)
