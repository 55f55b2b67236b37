"""hpcvdj.recombination.likely: the most likely scenarios, against all scenarios of the definition."""

import json
from dataclasses import replace

import numpy as np
import pytest

import hpcvdj
from hpcvdj import InputError
from hpcvdj.recombination.likely import LikelyScenarios, most_likely
from tests.commands import error_line, hpcvdj_command
from tests.kernels.pgen.models import joint_model, random_model, sample
from tests.recombination.definition import pgen, scenarios
from tests.recombination.igor_files import mouse_files, mouse_junctions, vdj_files, vj_files
from tests.recombination.test_scenarios import tiny_vdj, tiny_vj

ROUNDING = 1e-14
"""Of a product of the same ten factors in another order, and of sums of such products; 6e-16 was measured."""


def identity(scenario):
    """What tells scenarios apart."""
    return (
        scenario.v, scenario.d or 0, scenario.j, scenario.v_deleted, scenario.d_deleted or (), scenario.j_deleted,
        scenario.inserted,
    )  # fmt: skip


def require_most_likely(model, junction, v, j, number):
    """The first `number` of all scenarios, by probability; of equally likely ones any."""
    found = most_likely(model, junction, v, j, number)
    every = {identity(scenario): scenario.probability for scenario in scenarios(model, junction, v, j)}
    assert len(found) == len({identity(scenario) for scenario in found}) == min(number, len(every))
    for scenario in found:
        assert scenario.probability == pytest.approx(every[identity(scenario)], rel=ROUNDING, abs=0)
    largest = sorted(every.values(), reverse=True)[:number]
    assert [scenario.probability for scenario in found] == pytest.approx(largest, rel=ROUNDING, abs=0)
    return found


MODELS = {
    "VJ": lambda seed: random_model(seed, False),
    "VDJ": lambda seed: random_model(seed, True),
    "joint": joint_model,
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("seeds", "junctions"), [(2, 8), pytest.param(10, 30, marks=pytest.mark.exhaustive)])
def test_they_are_the_first_of_all(kind, seeds, junctions):
    most = 0
    for seed in range(seeds):
        model, rng = MODELS[kind](seed), np.random.default_rng(seed)
        v, j = model.contributing("V"), model.contributing("J")
        for _ in range(junctions):
            drawn = sample(model, rng)
            for number in (0, 1, 7, 10**6):
                found = require_most_likely(model, drawn.junction, v, j, number)
            require_most_likely(model, drawn.junction, v[:1], j[-1:], 5)
            most = max(most, len(found))
            # All of them are the generation probability.
            total = pgen(model, drawn.junction, v, j)
            assert sum(scenario.probability for scenario in found) == pytest.approx(total, rel=ROUNDING, abs=0)
    assert most > (3 if kind == "VJ" else 7)


def test_a_real_junction(tmp_path):
    model = hpcvdj.load_model(mouse_files().write(tmp_path / "model"))
    made = 0
    for v, j, junction in mouse_junctions(model, 15):
        found = hpcvdj.likely_scenarios(junction.lower(), model, v_call=v, j_call=j, number=20)
        require_most_likely(model, junction, model.find("V", v), model.find("J", j), 20)
        assert found.pgen == pytest.approx(pgen(model, junction, model.find("V", v), model.find("J", j)), rel=1e-13)
        if found.pgen:
            posteriors = [found.posterior(scenario) for scenario in found.scenarios]
            assert posteriors == sorted(posteriors, reverse=True)
            assert found.shown == sum(posteriors) <= 1 + 1e-13
            everything = hpcvdj.likely_scenarios(junction, model, v_call=v, j_call=j, number=10**6)
            assert everything.shown == pytest.approx(1, rel=1e-13)
            made += 1
    assert made > 1
    # The best with any genes is at least as likely.
    any_gene = hpcvdj.likely_scenarios(junction, model, number=1)
    assert any_gene.pgen >= found.pgen


@pytest.mark.slow
def test_genes_that_are_chosen_together(tmp_path):
    """With `joint`, posterior probabilities by P(V, D, J); a model without it is refused."""
    folder = vdj_files(heavy=True).write(tmp_path / "heavy")
    model = hpcvdj.load_model(folder)
    joint = model.with_joint_choice()
    differ = 0
    for row in hpcvdj.generate(folder, 12, seed=1, joint=True).to_pylist():
        junction, calls = row["junction"], {"v_call": row["v_call"], "j_call": row["j_call"]}
        v, j = model.find("V", row["v_call"]), model.find("J", row["j_call"])
        every = {identity(own): own.probability for own in scenarios(joint, junction, v, j)}
        total = sum(every.values())
        found = hpcvdj.likely_scenarios(junction, folder, number=10**6, joint=True, **calls)
        assert len(found.scenarios) == len(every)
        assert found.pgen == pytest.approx(total, rel=1e-13, abs=0)
        for scenario in found.scenarios:
            assert found.posterior(scenario) == pytest.approx(every[identity(scenario)] / total, rel=1e-13, abs=0)
        apart = hpcvdj.likely_scenarios(junction, folder, number=10**6, **calls)
        differ += abs(apart.pgen / found.pgen - 1) > 0.01
        words = "explain", junction, "--v", row["v_call"], "--j", row["j_call"], "-m", folder, "--output-format", "json"
        assert json.loads(hpcvdj_command(*words, "--joint", "--list", 10**5)[0]) == found.as_json()
        assert json.loads(hpcvdj_command(*words, "--list", 10**5)[0]) == apart.as_json()
    assert differ > 6
    _, err = hpcvdj_command("explain", junction, "-m", mouse_files().write(tmp_path / "mouse"), "--joint", code=2)
    assert "has no P(V, D, J), only P(V) and P(D, J); leave out --joint" in error_line(err)
    _, err = hpcvdj_command("explain", junction, "-m", vj_files().write(tmp_path / "vj"), "--joint", code=2)
    assert "has no P(V, D, J), only P(V, J), as there is no D gene; leave out --joint" in error_line(err)


def test_the_letters_and_words_of_a_scenario(tmp_path):
    model = hpcvdj.load_model(mouse_files().write(tmp_path / "model"))
    seen = set()
    for v, j, junction in mouse_junctions(model, 40):
        found = hpcvdj.likely_scenarios(junction, model, v_call=v, j_call=j, number=30)
        for scenario in found.scenarios:
            track, facts = found.track(scenario), found.describe(scenario)
            d = model.d[scenario.d]
            left, right = scenario.d_deleted
            form = d.extended[left : len(d.extended) - right]
            parts = [model.v[scenario.v].extended, scenario.inserted[0], form, scenario.inserted[1]]
            parts[0] = parts[0][: len(parts[0]) - scenario.v_deleted]
            parts.append(model.j[scenario.j].extended[scenario.j_deleted :])
            assert "".join(parts) == junction
            assert len(track) == len(junction)
            assert (facts["d_form"], facts["n1"], facts["n2"]) == (form, *scenario.inserted)
            # Four P-nucleotides at each end: a deletion of k bases leaves 4 - k of them, or loses k - 4 of the gene.
            assert (facts["v_trim"], facts["p3v_length"]) == (
                max(0, scenario.v_deleted - 4), max(0, 4 - scenario.v_deleted)
            )  # fmt: skip
            assert (facts["j_trim"], facts["p5j_length"]) == (
                max(0, scenario.j_deleted - 4), max(0, 4 - scenario.j_deleted)
            )  # fmt: skip
            if form:
                genes = len(d.segment) - facts["d_trim_5"] - facts["d_trim_3"]
                assert len(form) == facts["p5d_length"] + genes + facts["p3d_length"]
                assert facts["d_trim_5"] == min(max(0, left - 4), len(d.segment))
                assert facts["d_trim_3"] == min(max(0, right - 4), len(d.segment))
            counts = [track.count(letter) for letter in "vdj"]
            assert counts == [facts["p3v_length"], facts["p5d_length"] + facts["p3d_length"], facts["p5j_length"]]
            assert track.count("n") == len(facts["n1"] + facts["n2"])
            seen |= set(track)
    assert seen >= set("VDJn")


def test_small_models_by_hand():
    (best, *others) = most_likely(tiny_vj(), "ACTT", [0], [0], 10)
    assert best.inserted == ("",)
    assert len(others) == 3
    found = LikelyScenarios(tiny_vj(), "ACTT", pgen(tiny_vj(), "ACTT"), [best])
    assert found.describe(best)["d_call"] is None
    assert most_likely(tiny_vdj(), "CCC", [0], [0], 3) == []


def test_more_deleted_than_a_d_gene_has():
    """Such choices make nothing, and those after them are not left out."""
    p = np.array([[[0.25, 0.25, 0.25], [0.25, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    for junction in ("AGT", "AT", "AGGT"):
        assert require_most_likely(replace(tiny_vdj(), d_deletions=p), junction, [0], [0], 10)


def test_what_is_refused(tmp_path):
    folder = mouse_files().write(tmp_path / "model")
    v, j, junction = mouse_junctions(hpcvdj.load_model(folder), 1)[0]
    with pytest.raises(InputError, match="a V call without a J call"):
        hpcvdj.likely_scenarios(junction, folder, v_call=v)
    with pytest.raises(InputError, match=r"V gene TRBV99 is not in the model"):
        hpcvdj.likely_scenarios(junction, folder, v_call="TRBV99", j_call=j)
    with pytest.raises(InputError, match="give a junction"):
        hpcvdj.likely_scenarios("TGTNNN", folder)
    for wrong in ({"number": -1}, {"number": 1.5}, {"junction": float("nan")}, {"v_call": float("nan"), "j_call": j}):
        (name, value), *_ = wrong.items()
        with pytest.raises(InputError, match=rf"^{name}={value!r}: give a"):
            hpcvdj.likely_scenarios(**{"junction": junction, "model": folder} | wrong)
    for extra, message in (
        ((), "give --germline to list pathways, or --model to list scenarios"),
        (("-m", folder, "-g", "t.tsv"), "give --germline to list pathways, or --model to list scenarios"),
        (("-m", folder, "--v", v), "a V call without a J call"),
        (("-m", folder, "--sequence-field", "cdr3"), "--sequence-field: for --germline only"),
        (("-m", folder, "--max-n", "10", "--d-forms", "paper"), "--max-n, --d-forms: for --germline only"),
        (("-g", "t.tsv"), "give --v and --j"),
        (("-g", "t.tsv", "--v", v, "--j", j, "--joint"), "--joint: for -m only"),
    ):
        _, err = hpcvdj_command("explain", junction, *extra, code=2)
        assert message in error_line(err)


def test_the_command(tmp_path):
    folder = mouse_files().write(tmp_path / "model")
    model = hpcvdj.load_model(folder)
    rows = mouse_junctions(model, 15)
    found = [hpcvdj.likely_scenarios(text, folder, v_call=v, j_call=j, number=3) for v, j, text in rows]
    best = max(range(len(rows)), key=lambda k: found[k].pgen)
    (v, j, junction), expected = rows[best], found[best]
    arguments = "explain", junction, "--v", v, "--j", j, "-m", folder, "--list", 3
    out, _ = hpcvdj_command(*arguments)
    assert f"pgen_nt    {expected.pgen:.6g}" in out
    assert f"3 scenario(s) with {100 * expected.shown:.2f} % of the posterior probability" in out
    for number, scenario in enumerate(expected.scenarios, start=1):
        assert f"\n{number}  {expected.track(scenario)}\n" in out
    assert json.loads(hpcvdj_command(*arguments, "--output-format", "json")[0]) == expected.as_json()
    never = hpcvdj_command("explain", "TGTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT", "-m", folder)[0]
    assert "No scenario makes this junction." in never
