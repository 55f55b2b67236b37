"""Which κ a sample with few hits gets from the others, and which sample stands out among them."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.annotation.annotate import _by_luck, _common_kappa, _of_the_others
from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.annotation.statistics import FEWEST_HITS, HitKappa, kappa_of_ratio
from tests.annotation.drawn import records_of, sample_of


def of_a_sample(source, value, records, decoys=(0, 0.0)):
    """What a sample says of κ: its source and value, hits of records and of decoys, found and expected."""
    none = np.zeros(2)
    return SimpleNamespace(
        kappa=HitKappa(value, source=source), of_records=records, of_decoys=decoys, k=none, alone=none
    )


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([("none", 1.0, (5, 2.5)), ("none", 1.0, (5, 2.5)), ("records", 99.0, (99, 1.0))], (2.0, "records")),
        ([("none", 1.0, (4, 2.5)), ("none", 1.0, (5, 2.5)), *[("records", 9.0, (99, 1.0))] * 2], None),
        ([("none", 1.0, (4, 2.5)), *[("records", k, (99, 1.0)) for k in (7.0, 2.0, 3.0)]], (3.0, "records")),
        ([("none", 1.0, (0, 2.5), (9, 3.0)), ("none", 1.0, (0, 2.5), (1, 2.0))], (2.0, "samples")),
        ([("none", 1.0, (9, 2.5), (9, 3.0)), ("none", 1.0, (0, 2.5), (0, 2.0))], None),
        ([("none", 1.0, (0, 0.0), (10, 0.0)), ("none", 1.0, (10, 0.0))], None),
        ([("none", 1.0, (50, 2.5)), ("epitopes", 1.5, (9, 2.0)), ("decoys", 2.5, (9, 2.0))], (2.0, "samples")),
        ([("epitopes", 1.5, (9, 2.0)), ("decoys", 2.5, (9, 2.0))], None), ([("none", 1.0, (50, 2.5))], None),
    ],
)  # fmt: skip
def test_kappa_of_samples_with_too_few_hits(samples, expected):
    union = SimpleNamespace(decoy=np.zeros(2, dtype=bool))
    tests = [of_a_sample(*sample) for sample in samples]
    found = _common_kappa(tests, union, AnnotationSettings())
    assert (found and (found.value, found.source)) == expected
    assert _common_kappa(tests, union, AnnotationSettings(kappa=2.0)) is None


def used(tests, common):
    """κ of each sample in the end."""
    return [
        test.kappa.value if test.kappa.source == "decoys" and not (common and _by_luck(test, common)) else common.value
        for test in tests
    ]


def of_decoys(found, expected):
    """A sample as its decoys tell it."""
    if found < FEWEST_HITS:
        return of_a_sample("none", 1.0, (0, 0.0), (found, expected))
    return of_a_sample("decoys", found / expected, (0, 0.0), (found, expected))


@pytest.mark.parametrize("expected", [9.0, 14.0, 30.0])
def test_samples_with_ten_hits_by_luck_do_not_decide(expected):
    """Of twelve drawn samples, those with ten hits gave κ to all: it was 1.3 where nine were expected."""
    rng, union = np.random.default_rng(1), SimpleNamespace(decoy=np.zeros(2, dtype=bool))
    kappas = []
    for _ in range(200):
        tests = [of_decoys(int(found), expected) for found in rng.poisson(expected, 12)]
        kappas += used(tests, _common_kappa(tests, union, AnnotationSettings()))
    # Four standard errors of the mean of 2,400 Poisson numbers.
    assert np.mean(kappas) == pytest.approx(1.0, abs=4 / np.sqrt(2_400 * expected))


def test_a_sample_whose_decoys_differ_has_its_own_kappa():
    """And does not decide for the others."""
    union, settings = SimpleNamespace(decoy=np.zeros(2, dtype=bool)), AnnotationSettings()
    tests = [of_decoys(40, 4.0), *[of_decoys(found, 9.0) for found in (8, 10, 9, 11)]]
    common = _common_kappa(tests, union, settings)
    assert common == kappa_of_ratio(38, 36.0, "samples")
    assert used(tests, common) == [10.0, *[38 / 36] * 4]
    assert used([of_decoys(25, 21.0), *tests[1:]], common)[0] == 25 / 21, "chance makes twenty"


@pytest.mark.parametrize(
    ("found", "source", "told"),
    [(40, "records", True), (40, "bound", True), (40, "decoys", False), (24, "records", False), (0, "records", False)],
)
def test_a_sample_is_compared_with_the_records_of_the_others(found, source, told):
    """Of 10 expected hits with κ = 1; the others have twice as many as expected."""
    tests = [
        of_a_sample(source, 4.0, (found, 10.0)),
        of_a_sample("none", 1.0, (40, 20.0)),
        of_a_sample("none", 1.0, (80, 40.0)),
    ]
    others = _of_the_others(tests, tests[0])
    assert (others is not None) == told
    if told:
        assert others.kappa == 2.0
        # Of all hits, the sample has a share as of those that are expected.
        assert others.p_value == pytest.approx(stats.binom.sf(found - 1, found + 120, 10 / 70), rel=1e-9)
    tests[1:] = [of_a_sample("none", 1.0, numbers) for numbers in ((1, 0.5), (8, 4.0))]
    assert _of_the_others(tests, tests[0]) is None, "nine hits of the others say nothing"


@pytest.mark.slow
def test_samples_with_few_hits_have_kappa_from_the_others(model, drawn, tmp_path):
    """Twelve small samples of one model, each with too few hits."""
    database = records_of(drawn.slice(0, 1_000), 20)
    size = 150
    tables = {f"s{k:02}": sample_of(drawn.slice(2_000 + size * k, size)) for k in range(12)}
    alone = hpcvdj.annotate({"s00": tables["s00"]}, database, model, cache=tmp_path, backend="cpu").samples[0]
    assert alone.kappa.source in ("none", "records")
    together = hpcvdj.annotate(tables, database, model, cache=tmp_path, backend="cpu")
    assert {own.kappa.source for own in together.samples} == {"samples"}
    (kappa,) = {own.kappa.value for own in together.samples}
    found, expected = (sum(getattr(own, name) for own in together.samples) for name in ("found", "expected"))
    # Nothing is selected beyond the model's factor.
    assert abs(kappa - 1) < 0.3
    assert abs(found - expected) <= 5 * np.sqrt(expected)
    large = {**tables, "large": sample_of(drawn.slice(6_000, 6_000))}
    with_one = hpcvdj.annotate(large, database, model, decoys=("decoy",), cache=tmp_path, backend="cpu")
    by = {own.name: own.kappa for own in with_one.samples}
    assert by["large"].source == "decoys"
    (of_all,) = {own.value for own in by.values() if own.source == "samples"}
    assert {name for name, own in by.items() if own.source == "decoys"} == {"large"}
    low, high = by["large"].low, by["large"].high
    assert low < of_all < high


@pytest.mark.slow
def test_without_kappa_nothing_is_called(model, drawn):
    """Neither of one sample with a few planted hits, nor of several; those with ten hits in all have κ of these."""
    database = records_of(drawn.slice(0, 60), 3)
    parts = [(drawn.slice(2_000 + 90 * k, 60), drawn.slice(3 * k, 3)) for k in range(6)]
    planted = {f"s{k}": pa.concat_tables(list(map(sample_of, own))) for k, own in enumerate(parts)}
    with pytest.warns(hpcvdj.HpcvdjWarning, match="too few hits to estimate kappa, so nothing is called"):
        alone = hpcvdj.annotate(planted["s0"], database, model, backend="cpu")
    (sample,) = alone.samples
    assert (sample.kappa.source, sample.called, sample.found) == ("none", (0, 0), 3)
    assert alone.hits["fdr"].null_count == len(alone.hits) == 3
    assert alone.epitopes["q_value"].null_count == len(alone.epitopes)
    assert hpcvdj.annotate(planted["s0"], database, model, kappa=1.0, backend="cpu").samples[0].called[1] == 3
    with pytest.warns(hpcvdj.HpcvdjWarning, match="s0, s1, s2 and 3 more: kappa is that of all records") as said:
        together = hpcvdj.annotate(planted, database, model, backend="cpu").samples
    assert sum("kappa is that of all records" in str(own.message) for own in said) == 1, "once for all samples"
    of_one = hpcvdj.annotate(planted, database, model, kappa=1.0, backend="cpu").samples
    ((source, kappa),) = {(own.kappa.source, own.kappa.value) for own in together}
    assert source == "records"
    found, expected = sum(own.found for own in together), sum(own.expected for own in of_one)
    assert kappa == pytest.approx(found / expected, rel=1e-12)


def test_a_sample_that_is_the_database_decides_for_itself_only(model, drawn):
    """Four drawn samples with two planted hits each, and the records themselves as the fifth."""
    database = records_of(drawn.slice(0, 60), 3)
    tables = {f"s{k}": sample_of(pa.concat_tables([drawn.slice(2_000 + 90 * k, 60), drawn.slice(2 * k, 2)]))
              for k in range(4)}  # fmt: skip
    tables["of the database"] = sample_of(drawn.slice(0, 60))
    with pytest.warns(hpcvdj.HpcvdjWarning, match=r"^of the database: hits are 1,000 times as common as chance makes"):
        answer = hpcvdj.annotate(tables, database, model, mismatches=0, backend="cpu")
    by = {sample.name: sample for sample in answer.samples}
    assert [by[f"s{k}"].kappa.source for k in range(4)] == ["none"] * 4, "eight hits in all"
    assert (by["of the database"].kappa.source, by["of the database"].kappa.value) == ("bound", 1000)
    assert {sample.called for sample in answer.samples} == {(0, 0)}
    assert answer.hits["fdr"].null_count == len(answer.hits)
    itself = tables["of the database"]
    alone = hpcvdj.annotate(itself, database, model, mismatches=0, kappa=1000.0, backend="cpu").samples[0]
    assert alone.kappa.source == "given", "people may set it"


@pytest.mark.slow
def test_a_sample_that_stands_out_among_the_others_is_told(model, drawn):
    """κ of a sample with twelve planted hits was fitted to these, and nothing said that they are there."""
    database = records_of(drawn.slice(0, 200), 4)
    tables = {f"s{k}": sample_of(drawn.slice(2_000 + 1_500 * k, 1_500)) for k in range(4)}
    tables["planted"] = pa.concat_tables([sample_of(drawn.slice(9_000, 1_500)), sample_of(drawn.slice(0, 30))])
    with pytest.warns(hpcvdj.HpcvdjWarning, match="^planted: hits are far more common than in the other samples"):
        answer = hpcvdj.annotate(tables, database, model, backend="cpu")
    by = {sample.name: sample for sample in answer.samples}
    assert by["planted"].kappa.source in ("records", "bound")
    assert [by[f"s{k}"].of_the_others for k in range(4)] == [None] * 4
    others = by["planted"].of_the_others
    found, expected = (sum(getattr(by[f"s{k}"], name) for k in range(4)) for name in ("found", "expected"))
    assert others.p_value < 1e-3
    given = hpcvdj.annotate(tables["planted"], database, model, kappa=others.kappa, backend="cpu")
    assert given.samples[0].called[1] > 10
    assert found >= 10
    assert expected > 0
