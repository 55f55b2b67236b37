"""`hpcvdj sharing` leaves out genes that the model makes wrongly, and calls that contradict the bases."""

from collections import Counter
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hpcvdj
from hpcvdj.chance.fit import GeneFit
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from tests.cohorts.drawn import drawn, with_individuals
from tests.cohorts.test_sharing import shared_in
from tests.selected import few_genes


def miscalled(individual):
    """The number of its rows that are excluded as a call contradicts the bases."""
    return sum(rows for reason, rows in individual.left_out.items() if "contradicts" in reason)


@pytest.mark.slow
def test_genes_that_are_left_out_are_not_expected(table, model):
    """They are a third of all junctions: q is 1 all the same, and the spectrum that of the other genes."""
    most = Counter(call.partition("*")[0] for call in table["v_call"].to_pylist()).most_common(8)
    assert sum(number for _, number in most) > len(table) / 3
    fit = ModelFit(genes=tuple(GeneFit("V", gene, n, 0, 0, 0, 0, 0, "productive", "broken") for gene, n in most))
    whole, found = (shared_in(table, model, fit=own, unit="vj-aa") for own in (UNCHECKED, fit))
    assert found.not_tested["the model makes its V or J gene wrongly"] > 0.5 * whole.observed[2:].sum()
    assert found.q == 1
    for several in (1, 2):
        observed, expected = found.observed[several:].sum(), found.expected[several:].sum()
        spread = np.hypot(np.sqrt(expected), (found.high - found.low)[several:].sum() / 3.92)
        assert abs(observed - expected) < 3 * spread
    assert found.expected_shared == pytest.approx(whole.expected_shared), "all sequences are counted there"
    without, with_any = (shared_in(table, model, fit=own, unit="aa") for own in (fit, UNCHECKED))
    assert without.observed.tolist() == with_any.observed.tolist(), "sequences without genes are tested"
    assert without.expected.tolist() == with_any.expected.tolist()


def test_sequences_that_are_left_out_for_two_reasons_are_subtracted_once():
    """The model makes their V gene wrongly, and does not make them at all."""
    model = few_genes()
    table = with_individuals(drawn(model, 2_000, 47), [1_000, 900])
    gene = "TRBV10-1"
    fit = ModelFit(genes=(GeneFit("V", gene, 900, 0, 0, 0, 0, 0, "productive", "broken"),))
    junctions = ["TGT" + "TGG" * k + "TTT" for k in range(9, 19)]
    extra = pa.table({
        "v_call": [gene] * 20, "j_call": ["TRBJ1-1"] * 20, "junction": junctions * 2,
        "repertoire_id": np.repeat(table["repertoire_id"].unique().to_pylist(), 10),
    })  # fmt: skip
    both = pa.concat_tables([table.select(extra.column_names), extra.cast(table.select(extra.column_names).schema)])
    before, after = (shared_in(rows, model, fit=fit, unit="vj-aa", draws=1_000, q=1) for rows in (table, both))
    assert after.not_tested["the model cannot make it"] == before.not_tested["the model cannot make it"] + 10
    assert after.observed.tolist() == before.observed.tolist()


def test_the_share_of_survivors_is_that_of_the_genes_that_are_tested():
    """Half of all sequences survive, and genes of half of the junctions are left out; q was twice as large."""
    model = few_genes()
    rows = drawn(model, 60_000, 41)
    alive = [blake2b(text.encode(), digest_size=1).digest()[0] < 128 for text in rows["junction_aa"].to_pylist()]
    table = with_individuals(rows.filter(pa.array(alive)), [6_000, 5_000, 4_000, 4_000, 3_000])
    most = Counter(call.partition("*")[0] for call in table["v_call"].to_pylist()).most_common(2)
    fit = ModelFit(genes=tuple(GeneFit("V", gene, n, 0, 0, 0, 0, 0, "productive", "broken") for gene, n in most))
    whole, found = (shared_in(table, model, fit=own, unit="vj-aa", draws=30_000) for own in (UNCHECKED, fit))
    kept = 1 - sum(number for _, number in most) / len(table)
    assert kept < 0.5
    widths = [float(np.log(own.q_interval[1] / own.q_interval[0])) for own in (whole, found)]
    assert all(own.q_interval[0] < np.mean(alive) < own.q_interval[1] for own in (whole, found))
    # Of four seeds, q differs from 0.5 by 0.08 at most.
    assert found.q == pytest.approx(0.5, abs=0.15)
    assert 1 < widths[1] / widths[0] < 2
    for name in ("expected", "expected_q1", "low", "high"):
        share = getattr(found, name)[2:].sum() / getattr(whole, name)[2:].sum()
        assert share == pytest.approx(kept, rel=0.35), name
    assert (found.low[2:] <= found.expected[2:]).all()
    assert (found.expected[2:] <= found.high[2:]).all()


@pytest.mark.parametrize("unit", ["vj-aa", "nt"])
@pytest.mark.slow
def test_rows_with_calls_that_contradict_the_bases_are_excluded(unit):
    """Of three tenths of the rows of a gene, another gene is called; it makes their amino acids, but by other bases."""
    model = few_genes()
    table = with_individuals(drawn(model, 40_000, 43), [12_000, 10_000, 8_000, 6_000])
    turned = [call.startswith("TRBV20-1") and k % 10 < 3 for k, call in enumerate(table["v_call"].to_pylist())]
    calls = pc.if_else(pa.array(turned), "TRBV5-1*01", table["v_call"])
    wrong = table.set_column(table.column_names.index("v_call"), "v_call", calls)
    options = {"unit": unit, "draws": 30_000, "q": 1, "backend": "cpu"}
    with pytest.warns(hpcvdj.HpcvdjWarning, match="contradicts the bases"):
        found, kept = (hpcvdj.sharing(wrong, model, keep_misfits=keep, **options) for keep in (False, True))
    right = hpcvdj.sharing(table, model, **options)
    excluded, of_right, of_kept = (sum(map(miscalled, answer.cohort.individuals)) for answer in (found, right, kept))
    # 2,067 of 2,170: the other gene may make the bases of some nearly as often, and no gene makes those of some easily.
    # At most 1 % of right calls go with them.
    assert 0.9 * sum(turned) < excluded < sum(turned) + 0.01 * len(table)
    assert of_right == of_kept == 0
    assert found.hits == 0
    rows = sum(own.rows + sum(own.left_out.values()) for own in found.cohort.individuals)
    assert rows == len(table), "each row is counted once"
    if unit == "nt":
        # Where no row is excluded, what two individuals have is judged all the same.
        judged = [shared_in(rows, model, unit=unit, draws=30_000).not_tested for rows in (wrong, table)]
        assert [reasons["a call contradicts the bases"] for reasons in judged] == [1, 0]


def test_amino_acids_that_are_spelled_by_random_codons_are_no_wrong_calls():
    """Planted sequences may be spelled so: nearly all stay, though wrong calls of other rows exclude these."""
    model = few_genes()
    table = with_individuals(drawn(model, 24_000, 45), [12_000, 8_000]).to_pandas()
    # The second individual has wrong calls, and the first the random codons.
    first = (table["repertoire_id"] == table["repertoire_id"].iloc[0]).to_numpy()
    spelled = first & (np.arange(len(table)) % 10 == 0)
    codons = np.array([a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"])
    letters = np.array(list(hpcvdj.translate(codons.tolist())))
    rng = np.random.default_rng(3)
    table.loc[spelled, "junction"] = [
        "".join(rng.choice(codons[letters == letter]) for letter in text) for text in table["junction_aa"][spelled]
    ]
    wrong = ~first & table["v_call"].str.startswith("TRBV20-1").to_numpy() & (np.arange(len(table)) % 3 == 0)
    table.loc[wrong, "v_call"] = "TRBV5-1*01"
    with pytest.warns(hpcvdj.HpcvdjWarning, match="contradicts the bases"):
        answer = hpcvdj.sharing(table, model, draws=30_000, q=1, backend="cpu")
    spelling, calling = map(miscalled, answer.cohort.individuals)
    # 7 of 1,200, and 532 of 560.
    assert spelling < 0.02 * spelled.sum()
    assert calling > 0.9 * wrong.sum()
