"""P(productive) against the sum over every junction that a small model makes."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.likely import insertion_probability
from hpcvdj.recombination.models import BASES, Insertion, Model
from hpcvdj.recombination.productive import PRODUCTIVE, given_productive, productive_probability
from hpcvdj.repertoires.formats.steps import productive
from hpcvdj.repertoires.productive import productive_rows
from tests.kernels.pgen.models import distribution, random_model
from tests.kernels.pgen.problems import olga_model
from tests.recombination.definition import pgen

PUBLISHED = {"human_trb": 0.244285, "mouse_trb": 0.272715, "mouse_tra": 0.313315}
CORRECTED = {"human_trb": 0.245358, "mouse_trb": 0.286163, "mouse_tra": 0.313315}
"""Of another implementation, by the amino-acid sum over all lengths, with six digits."""


def small(seed: int, has_d: bool) -> Model:
    """A random model of which a good part is productive."""
    model = random_model(seed, has_d, longest_insertion=2, longest=4)
    rng = np.random.default_rng(seed)

    def lengthened(templates, first, last):
        out = []
        for own in templates:
            text = rng.choice(first) + own.extended + rng.choice(last)
            out.append(replace(own, segment=text, extended=text))
        return tuple(out)

    return replace(
        model,
        v=lengthened(model.v, ["TGT", "TGC", "TGTTA"], [""]),
        j=lengthened(model.j, [""], ["TTT", "GTA", "TTGG"]),
    )


def insertions(own: Insertion, reverse: bool) -> Counter[str]:
    texts = ("".join(bases) for size in range(len(own.lengths)) for bases in product(BASES, repeat=size))
    return Counter({text[::-1] if reverse else text: insertion_probability(text, own) for text in texts})


def joined(*parts: Counter[str]) -> Counter[str]:
    out = Counter({"": 1.0})
    for part in parts:
        following: Counter[str] = Counter()
        for (before, p), (after, q) in product(out.items(), part.items()):
            if p * q > 0:
                following[before + after] += p * q
        out = following
    return out


def every_junction(model: Model) -> Counter[str]:
    """Every junction with its probability, from the events one by one."""

    def forms(segment, place):
        template = model.templates(segment)[place]
        text, out = template.extended, Counter()
        if segment == "D":
            for left, right in np.ndindex(model.d_deletions[place].shape):
                if left + right <= len(text):
                    out[text[left : len(text) - right]] += model.d_deletions[place, left, right]
            return out
        deletions = (model.v_deletions if segment == "V" else model.j_deletions)[place]
        for deleted in range(min(len(text), len(deletions))):
            out[text[: len(text) - deleted] if segment == "V" else text[deleted:]] += deletions[deleted]
        return out

    total: Counter[str] = Counter()
    inserted = [insertions(own, k == 1) for k, own in enumerate(model.insertions)]
    for v, j in product(model.contributing("V"), model.contributing("J")):
        for d in range(len(model.d)) if model.has_d else (None,):
            if d is None:
                chance = model.p_vj[v, j]
            else:
                chance = model.p_vdj[v, d, j] if model.joint else model.p_v[v] * model.p_dj[d, j]
            middle = inserted if d is None else [inserted[0], forms("D", d), inserted[1]]
            for text, p in joined(forms("V", v), *middle, forms("J", j)).items():
                total[text] += chance * p
    return total


def is_productive(junction: str) -> bool:
    (residues,) = translate([junction]) if len(junction) % 3 == 0 else ("",)
    return len(residues) >= 2 and residues[0] == "C" and residues[-1] in "FVW" and "*" not in residues


@pytest.mark.slow
@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_sum_over_every_junction(has_d):
    seen = []
    for seed in range(12):
        model = small(seed, has_d)
        junctions = every_junction(model)
        expected = sum(p for junction, p in junctions.items() if is_productive(junction))
        # Another order of summation: the largest difference seen is 3.6e-15.
        assert productive_probability(model) == pytest.approx(expected, rel=1e-14, abs=0)
        seen.append(expected)
    assert sum(p > 0.05 for p in seen) == 11


def test_every_junction_has_the_probability_of_the_definition():
    model = small(1, True)
    some = list(every_junction(model).items())[::997]
    assert [pgen(model, junction) for junction, _ in some] == pytest.approx([p for _, p in some], rel=1e-13, abs=0)


def test_genes_that_are_chosen_together():
    for seed in range(4):
        model = small(seed, True)
        p_vdj = distribution(np.random.default_rng(seed), (len(model.v), len(model.d), len(model.j)))
        joint = replace(model, p_vdj=p_vdj).with_joint_choice()
        expected = sum(p for junction, p in every_junction(joint).items() if is_productive(junction))
        assert expected > 0
        assert productive_probability(joint) == pytest.approx(expected, rel=1e-14, abs=0)
        assert productive_probability(given_productive(joint)) == pytest.approx(1)


def test_junctions_that_are_productive():
    rng = np.random.default_rng(1)
    texts = ["", "TGT", "TGTTTT", "TGTTTTA", "tgcGTGtgg", "TGTTAATTT", "TGTATAATT", "TATTTT", "TGTTGTTGA", "TGTTTTNNN"]
    texts += ["TGT" + "".join(rng.choice(list(BASES), size)) + "TTC" for size in range(30) for _ in range(20)]
    column = pa.array([f" {text} " for text in texts])
    found = pc.match_substring_regex(column, PRODUCTIVE["junction"], ignore_case=True).to_pylist()
    assert found == [set(text.upper()) <= set(BASES) and is_productive(text.upper()) for text in texts]
    assert 100 < sum(found) < 300
    residues = translate([text if len(text) % 3 == 0 else "" for text in texts[10:]])
    found_aa = pc.match_substring_regex(pa.array(residues), PRODUCTIVE["junction_aa"]).to_pylist()
    assert found_aa == found[10:]


@pytest.mark.parametrize("name", PUBLISHED)
def test_models_of_olga(name):
    """As they are published; and with corrected alleles, of which all but those of mouse TRA have some."""
    for suffix, expected in ((":published", PUBLISHED), ("", CORRECTED)):
        model = olga_model(f"{name}{suffix}")
        if model is None:
            pytest.skip("olga is not installed")
        assert productive_probability(model) == pytest.approx(expected[name], abs=5e-7)


@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_probability_among_productive_ones(has_d):
    model = small(2, has_d)
    chance, divided = productive_probability(model), given_productive(model)
    junctions = [junction for junction in every_junction(model) if is_productive(junction)]
    for junction in junctions[::101]:
        assert pgen(divided, junction) == pytest.approx(pgen(model, junction) / chance, rel=1e-13)
    assert sum(p for junction, p in every_junction(divided).items() if is_productive(junction)) == pytest.approx(1)


def test_a_model_without_productive_junctions():
    model = small(2, True)
    model = replace(model, v=tuple(replace(own, extended="AAA", segment="AAA") for own in model.v))
    with pytest.raises(InputError, match="makes no productive junction"):
        given_productive(model)


def test_one_definition_for_tables_of_programs_and_simulated_junctions():
    texts = ["CASSF", "cassv", "CASS*F", "CAS_SF", "CAS~SF", "CA?SF", "ASSF", "CASS", "", "CF"]
    expected = ["T", "T", "F", "F", "F", "F", "F", "F", "", "T"]
    column = pa.array(texts, pa.large_string())
    assert productive(column).to_pylist() == expected
    assert productive_rows(column, "junction_aa").to_pylist() == [text == "T" for text in expected]
    made = hpcvdj.simulate("mouse_trb", 2_000)
    assert made["productive"].to_pylist() == productive_rows(made["junction"], "junction").to_pylist()
