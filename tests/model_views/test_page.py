"""hpcvdj.model_views.page: the values on the page of a model."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.recombination.igor import read_model
from tests.kernels.pgen.problems import small_model
from tests.recombination.igor_files import gene_files, mouse_files, vdj_files, vj_files

plt = pytest.importorskip("matplotlib.pyplot")
from hpcvdj.model_views.page import draw, page, usable  # noqa: E402

ROUNDING = {"rtol": 20 * 2**-53, "atol": 0}
"""Products by 100 and sums of at most 6 products of positive numbers: fewer than 20 roundings."""


@pytest.fixture
def panels():
    """The axes of a model's page by title, without colour bars."""
    figures = []

    def of(model):
        figures.append(page(model))
        return {axes.get_title(): axes for axes in figures[-1].axes if axes.get_title()}

    yield of
    for figure in figures:
        plt.close(figure)


def names(ticks):
    return [label.get_text() for label in ticks]


def image(axes):
    """The values of a heatmap; NaN where it is white."""
    return np.ma.filled(axes.images[0].get_array(), np.nan)


def test_panels_of_loci_with_and_without_d(tmp_path, panels):
    with_d = panels(read_model(vdj_files().write(tmp_path / "vdj")))
    assert [title.partition(",")[0] for title in with_d] == [
        "V usage", "J usage", "D usage", "D given J", "V deletions", "J deletions", "D deletions: TRBD1*01",
        "D deletions: TRBD2*01", "Inserted n-nucleotides", "Bases of VD insertions", "Bases of DJ insertions",
    ]  # fmt: skip
    without = panels(read_model(vj_files().write(tmp_path / "vj")))
    assert list(without) == [
        "V usage", "J usage", "V deletions", "J deletions", "Inserted n-nucleotides", "Bases of VJ insertions"
    ]  # fmt: skip
    for axes in (*with_d.values(), *without.values()):
        assert axes.get_xlabel() or axes.get_title() == "D given J"


def test_the_title_names_the_model(tmp_path):
    files = gene_files(["TRAV1*01", "TRAV2*01", "TRAV3*01", "TRAV4*01"], {"TRAV4*01": "P"})
    model = read_model(files.write(tmp_path), "mine")
    figure = page(model)
    assert figure.get_suptitle().splitlines() == [
        "Recombination model mine",
        f"SHA-256 {model.digest}",
        "V alleles: 4, of which 3 can make a junction: 75.00 % of P(V)",
        "J alleles: 2, of which 2 can make a junction: 100.00 % of P(J)",
    ]
    plt.close(figure)


@pytest.mark.parametrize("has_d", [True, False])
def test_alleles_of_which_nothing_is_left_make_no_junction(has_d):
    """An allele that is shorter than its shortest deletion that is possible."""
    model = small_model(4, has_d=has_d)
    every = {segment: usable(model, segment) for segment in "VJ"}
    assert every["V"].startswith(f"{len(model.v)}, of which {len(model.v)} can make a junction: 100.00 %")
    for segment, name in (("V", "v_deletions"), ("J", "j_deletions")):
        deletions = getattr(model, name).copy()
        deletions[0] = 0
        deletions[0, -1] = 1
        length = deletions.shape[1] - 1
        templates = model.templates(segment)
        short = replace(templates[0], segment="A" * length, extended="A" * length)
        less = replace(model, **{name: deletions, segment.lower(): (short, *templates[1:])})
        share = 100 * (1 - model.p_segment(segment)[0])
        number = len(templates)
        assert (
            usable(less, segment)
            == f"{number}, of which {number - 1} can make a junction: {share:.2f} % of P({segment})"
        )
        one_more = replace(short, segment="A" * (length + 1), extended="A" * (length + 1))
        assert usable(replace(less, **{segment.lower(): (one_more, *templates[1:])}), segment) == every[segment]


@pytest.mark.parametrize("has_d", [True, False])
def test_usage(panels, has_d):
    model = small_model(4, has_d=has_d)
    model = replace(model, v=(replace(model.v[0], segment="", extended=""), *model.v[1:]))
    shown = panels(model)
    for segment in "VDJ" if has_d else "VJ":
        axes, chance = shown[f"{segment} usage"], model.p_segment(segment)
        order = np.argsort(-chance)
        np.testing.assert_allclose([bar.get_height() for bar in axes.patches], 100 * chance[order], **ROUNDING)
        assert names(axes.get_xticklabels()) == [model.templates(segment)[place].allele for place in order]
        grey = [place for place, bar in zip(order, axes.patches, strict=True) if len(set(bar.get_facecolor()[:3])) == 1]
        assert grey == ([0] if segment == "V" else [])
        assert bool(axes.get_legend()) == (segment == "V")


def test_alleles_that_are_never_chosen_have_no_bar(tmp_path, panels):
    files = vdj_files()
    files.events["v_choice"].probabilities = np.array([0.0, 1.0])
    axes = panels(read_model(files.write(tmp_path)))["V usage"]
    assert names(axes.get_xticklabels()) == ["TRBV2*01"]


def test_d_given_j(panels):
    model = small_model(5)
    model = replace(model, p_dj=model.p_dj * [1, 1, 0])
    axes = panels(model)["D given J"]
    expected = 100 * model.p_dj[:, :2] / model.p_dj[:, :2].sum(axis=0)
    np.testing.assert_allclose(image(axes)[:2], expected.T, **ROUNDING)
    assert np.isnan(image(axes)[2]).all()
    assert names(axes.get_xticklabels()) == [template.allele for template in model.d]
    assert names(axes.get_yticklabels()) == [template.allele for template in model.j]


def test_deletions_of_v_and_j(tmp_path, panels):
    model = read_model(mouse_files().write(tmp_path))
    shown = panels(model)
    for segment, deletions in (("V", model.v_deletions), ("J", model.j_deletions)):
        *alleles, _, mean, zero = shown[f"{segment} deletions"].lines
        assert len(alleles) == len(deletions)
        for line, own in zip(alleles, deletions, strict=True):
            assert list(line.get_xdata()) == list(range(-4, 7))
            np.testing.assert_allclose(line.get_ydata(), 100 * own, **ROUNDING)
        chance = model.p_segment(segment)
        np.testing.assert_allclose(mean.get_ydata(), 100 * chance @ deletions / chance.sum(), **ROUNDING)
        assert list(mean.get_xdata()) == list(range(-4, 7))
        assert list(zero.get_xdata()) == [0, 0]
        assert shown[f"{segment} deletions"].get_ylim() == (0, 3 * max(mean.get_ydata()))


def test_joint_deletions_of_d(tmp_path, panels):
    model = read_model(mouse_files().write(tmp_path))
    shown = panels(model)
    for place, template in enumerate(model.d):
        axes = shown[f"D deletions: {template.allele}, {100 * model.p_segment('D')[place]:.1f} % of P(D)"]
        values = np.nan_to_num(image(axes), nan=0.0)
        # Across: deletions from the 5' end; upwards: from the 3' end.
        np.testing.assert_allclose(values, 100 * model.d_deletions[place].T, **ROUNDING)
        assert list(axes.images[0].get_extent()) == [-4.5, 6.5, -4.5, 6.5]
        assert axes.images[0].origin == "lower"


@pytest.mark.slow
def test_insertions(panels):
    model = small_model(6)
    shown = panels(model)
    lines = shown["Inserted n-nucleotides"].lines
    for line, name, own in zip(lines, ("VD", "DJ"), model.insertions, strict=True):
        np.testing.assert_allclose(line.get_ydata(), 100 * own.lengths, **ROUNDING)
        mean = sum(length * chance for length, chance in enumerate(own.lengths))
        assert line.get_label() == f"{name}, mean {mean:.2f}"
        axes = shown[f"Bases of {name} insertions"]
        np.testing.assert_allclose(image(axes), 100 * np.vstack([own.first, own.transitions.T]), **ROUNDING)
        assert names(axes.get_yticklabels()) == ["first base", "after A", "after C", "after G", "after T"]
        assert [text.get_text() for text in axes.texts[4:8]] == [
            f"{100 * own.transitions[to, 0]:.1f}" for to in range(4)
        ]


@pytest.mark.exhaustive
def test_models_that_are_hard_to_draw(tmp_path):
    """No allele with a segment, one without deletions, formulas and long names: no error, no warning."""
    files = gene_files(["TRAV$1_{*01", "TRAV$2*01", "TRAV3*01"], {f"TRAV{k}*01": "P" for k in ("$1_{", "$2", "3")})
    files.events["j_5_del"].probabilities[0] = 0
    models = [read_model(files.write(tmp_path / "vj"), "a $b_{ name" * 20)]
    files = vdj_files()
    files.events["d_5_del"].probabilities[0] = 0
    files.events["d_gene"].probabilities = np.array([[0.0, 1.0], [0.0, 1.0]])
    models.append(read_model(files.write(tmp_path / "vdj")))
    # Other tests of this process may have left figures.
    before = plt.get_fignums()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, model in enumerate(models):
            draw(model, tmp_path / f"{number}.svg")
    assert plt.get_fignums() == before
