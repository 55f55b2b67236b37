"""hpcvdj.chance.calls: right calls are hardly ever doubted, wrong ones are."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from hpcvdj.chance import check
from hpcvdj.chance.calls import (
    CONTRADICTED,
    RARE,
    RARE_ALLELE,
    SIDES,
    contradicted,
    rare_alleles,
    suspicious,
    with_other_genes,
)
from hpcvdj.chance.check import limits_of
from hpcvdj.chance.dealing import EXPLAINED, ReadRows
from hpcvdj.chance.draws import Chance
from hpcvdj.chance.model_fit import MOST_EXCLUDED
from hpcvdj.chance.parts import Part
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.igor import OLGA_FOLDERS, load_model, model_folders
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import by_gene, kinds_of, sequences
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.runs.run import Run
from tests.cohorts.drawn import drawn
from tests.loci import exhaustive_but
from tests.selected import few_genes


def judged(table, model, name="pgen_nt", smallest=0.0):
    """The junctions of a table by genes, and which of their calls contradict them."""
    fields = ("junction",) if "junction" in table.column_names else ("junction_aa",)
    own = by_gene(read_table(table, model, productive_reading(fields)).repertoire, model)[0]
    chance, run = Chance(model, 1_000, 0, "cpu", strict_binding=False), Run()
    p = chance.probabilities(own, (name,), run)[:, 0]
    others = with_other_genes(own, model)
    p_others = [chance.probabilities(other, (name,), run)[:, 0] for _, other in others]
    return own, p, (others, p_others), contradicted(own, p, others, p_others, model, smallest)


def called(v, j, junction):
    return pa.table({"v_call": [v], "j_call": [j], "junction": [junction]})


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    exhaustive_but(["human_trb_m15", "human_igk", "mouse_tra", "mouse_trb", "human_igh"], "human_trb_m15", "human_igk"),
)
def test_right_calls(name):
    if name not in model_folders():
        pytest.skip("olga is not installed")
    model = load_model(name)
    _, _, _, wrong = judged(drawn(model, 5_000, 3), model)
    # At most three tests, each of which errs with a probability of CONTRADICTED: 0.15 are expected at most.
    assert ((wrong > 0) & (wrong < RARE_ALLELE)).sum() <= 2
    # Rare alleles are drawn as rarely as the model chooses them.
    assert (wrong >= RARE_ALLELE).mean() < RARE


@pytest.mark.slow
def test_wrong_calls(model):
    """Drawn junctions whose V, J, or both are called otherwise."""
    rows = drawn(model, 3_000, 4)
    rng = np.random.default_rng(1)
    for side, names in ((1, ["v_call"]), (2, ["j_call"]), (3, ["v_call", "j_call"])):
        part = rows
        for name in names:
            shuffled = [rows[name].to_pylist()[k] for k in rng.permutation(len(rows))]
            part = part.set_column(part.column_names.index(name), name, pa.array(shuffled))
        own, p, _, wrong = judged(part, model)
        doubted = (wrong > 0).mean()
        # V genes begin alike, and many junctions keep little of J: not every wrong call contradicts the bases.
        assert doubted > {1: 0.05, 2: 0.6, 3: 0.6}[side], SIDES[side]
        assert (wrong == side).sum() > 0
        assert (p[wrong > 0] < 1e-12).mean() > 0.9
        assert len(own) == len(wrong)


def test_by_hand(model):
    """TRBJ2-1 ends with NEQFF, TRBJ2-7 with YEQYF."""
    junction = "TGTGCCAGCAGCGTAGGGGACAATGAGCAGTTCTTC"
    for j, found in (("TRBJ2-1", ""), ("TRBJ2-7", "J")):
        own, p, others, wrong = judged(called("TRBV9", j, junction), model)
        assert SIDES[wrong[0]] == found
        assert sequences(own, np.array([0])).to_pylist() == [junction]
        v, jj = own.pairs[kinds_of(own)[0]]
        choice = model.p_choice.sum(axis=1)
        of_j = choice[np.ix_(v.places, model.contributing("J"))].sum() / choice[np.ix_(v.places, jj.places)].sum()
        assert (p[0] * of_j < CONTRADICTED * others[1][1][0]) == bool(found)
    *_, wrong = judged(called("TRBV9", "TRBJ2-7", junction), model, "pgen_aa")
    assert SIDES[wrong[0]] == "J", "amino acids tell it as well"
    *_, wrong = judged(called("TRBV9", "TRBJ2-7", junction), model, smallest=1.0)
    assert not wrong[0], "no gene explains it"


def test_a_gene_that_is_never_made(model):
    """Its probability is 0 with any bases: that is no contradiction."""
    junction = "TGTGCCAGCAGCGTAGGGGACAATGAGCAGTTCTTC"
    _, p, _, wrong = judged(called("TRBV23-1", "TRBJ2-1", junction), model)
    assert p[0] == 0
    assert not wrong[0]


@pytest.mark.slow
def test_the_suspicious_are_all_that_contradict():
    if not OLGA_FOLDERS.keys() <= model_folders().keys():
        pytest.skip("olga is not installed")
    for name in ("human_trb", "human_igk"):
        model = load_model(name)
        rows = drawn(model, 4_000, 5)
        shuffled = [rows["j_call"].to_pylist()[k] for k in np.random.default_rng(2).permutation(len(rows))]
        own, p, others, _ = judged(
            rows.set_column(rows.column_names.index("j_call"), "j_call", pa.array(shuffled)), model
        )
        chance, run = Chance(model, 4_000, 1, AUTO, strict_binding=False), Run()
        of_drawn = chance.probabilities(chance.drawn(run), PGEN_COLUMNS[:1], run)[:, 0]
        for epsilon in (CONTRADICTED, MOST_EXCLUDED):
            wrong = np.flatnonzero(contradicted(own, p, *others, model, 0.0, epsilon))
            assert len(wrong) > 0
            assert np.isin(wrong, suspicious(own, p, of_drawn.max(initial=0.0), model, epsilon)).all()


def test_no_rows(model):
    own, p, others, wrong = judged(called("TRBV99", "TRBJ2-1", "TGTGCC"), model)
    assert len(own) == len(p) == len(wrong) == len(others[1][0]) == 0
    assert len(suspicious(own, p, p.max(initial=0.0), model)) == 0


@pytest.mark.parametrize("name", ["pgen_nt", "pgen_aa"])
def test_the_rows_that_are_excluded(model, name):
    """They are those that a comparison of all rows with other genes finds, and the reason names their call."""
    table = drawn(model, 4_000, 5)
    calls = table["v_call"].to_pylist()
    wrong = ["TRBV5-1*01" if k % 5 == 0 else call for k, call in enumerate(calls)]
    table = table.set_column(table.column_names.index("v_call"), "v_call", pa.array(wrong))
    if name == "pgen_aa":
        table = table.drop(["junction"])
    own, p, others, _ = judged(table, model, name)
    smallest = check.likely_of_length(model, (name,), EXPLAINED)[own.lengths]
    sides = contradicted(own, p, *others, model, smallest, 0.003)
    excluded = (sides > 0) & (sides < RARE_ALLELE)
    found = ReadRows()
    left = found.without_miscalled(Part(own, np.zeros(len(own), dtype=np.int32), None, None), ["a"], model, 0.003)
    assert {"pgen_nt": 200, "pgen_aa": 30}[name] < excluded.sum() < 800
    kept = sequences(own, np.flatnonzero(~excluded))
    assert sequences(left.repertoire, np.arange(len(left))).to_pylist() == kept.to_pylist()
    reasons = Counter({str(exclusion): rows for (_, exclusion), rows in found.excluded.items()})
    assert reasons.total() == excluded.sum() == -found.counted
    assert reasons["V call TRBV5-1 contradicts the bases"] == (sides[of_v(own, "TRBV5-1")] == 1).sum() > 20


def of_v(junctions, gene):
    """Whether each junction has a V gene."""
    return np.array([v.allele == gene for v, _ in junctions.pairs])[kinds_of(junctions)]


RARE_OF = {"human_tra": ("V", "TRAV27*03"), "human_trb": ("J", "TRBJ2-7*02")}
"""Alleles that OLGA's models choose for less than 1 % of their gene."""


def with_allele(model, segment, allele):
    """The model of somebody who has this allele alone of its gene."""
    own = [template.allele for template in model.templates(segment)]
    of_gene = [k for k, name in enumerate(own) if name.partition("*")[0] == allele.partition("*")[0]]
    place = own.index(allele)
    if model.has_d and segment == "V":
        p_v = model.p_v.copy()
        p_v[place], total = p_v[of_gene].sum(), p_v[of_gene].sum()
        p_v[[k for k in of_gene if k != place]] = 0
        assert p_v[place] == total
        return replace(model, p_v=p_v)
    name = "p_dj" if model.has_d else "p_vj"
    table = getattr(model, name).copy()
    if segment == "V":
        table[place] = table[of_gene].sum(axis=0)
        table[[k for k in of_gene if k != place]] = 0
    else:
        table[:, place] = table[:, of_gene].sum(axis=1)
        table[:, [k for k in of_gene if k != place]] = 0
    return replace(model, **{name: table})


@pytest.mark.parametrize("name", RARE_OF)
def test_an_allele_that_the_model_hardly_chooses(name):
    """Junctions that it alone makes easily are told from the others of its gene, whatever the gene's usage."""
    if name not in model_folders():
        pytest.skip("olga is not installed")
    model, (segment, allele) = load_model(name), RARE_OF[name]
    gene = allele.partition("*")[0]
    assert rare_alleles(model, segment, gene) == [allele]
    column = f"{segment.lower()}_call"
    rows = drawn(with_allele(model, segment, allele), 40_000, 6)
    rows = rows.set_column(
        rows.column_names.index(column), column, pa.array([call.partition("*")[0] for call in rows[column].to_pylist()])
    )
    of_gene = rows.filter(pa.compute.equal(rows[column], gene))
    assert len(of_gene) > 50
    own, *_, wrong = judged(of_gene, model)
    found = (wrong >= RARE_ALLELE).mean()
    assert found > {"human_trb": 0.8}.get(name, 0.02)
    # They are no wrong calls.
    part = Part(own, np.zeros(len(own), dtype=np.int32), None, None)
    assert len(ReadRows().without_miscalled(part, ["a"], model, CONTRADICTED)) == len(own)
    normal = drawn(model, 40_000, 7)
    of_gene = normal.filter(pa.compute.equal(pa.compute.replace_substring_regex(normal[column], r"\*.*", ""), gene))
    *_, wrong = judged(of_gene, model)
    assert (wrong >= RARE_ALLELE).mean() < 0.02


def test_what_is_kept_of_a_model_is_of_no_other_one():
    """A model of which genes were left out in memory has the digest of its files."""
    whole, part = load_model("human_trb_m15"), few_genes()
    assert whole.digest == part.digest
    aa = PGEN_COLUMNS[1:2]
    assert limits_of(whole, aa) != limits_of(part, aa)


@pytest.mark.parametrize("name", ["pgen_nt", "pgen_aa"])
def test_what_most_draws_of_a_length_exceed(model, name):
    names, share = (name,), 0.03
    drawn = check._draws_in_frames(model, names)["productive"]
    found = check.likely_of_length(model, names, share)
    assert found.shape == (256,)
    lengths = drawn.repertoire.lengths.astype(int)
    often = [length for length in range(256) if (lengths == length).sum() >= check.FEWEST_OF_LENGTH]
    assert len(often) > 5
    for length in often:
        assert found[length] == np.quantile(drawn.p[lengths == length], share)
    # Rare lengths get draws of the nearest lengths, on both sides.
    order = np.argsort(lengths, kind="stable")
    assert found[0] == np.quantile(drawn.p[order[: check.FEWEST_OF_LENGTH]], share)
    assert found[255] == np.quantile(drawn.p[order[-check.FEWEST_OF_LENGTH :]], share)
    before, rare = (lengths < 24).sum(), (lengths == 24).sum()
    beside = check.FEWEST_OF_LENGTH - rare
    assert 0 < beside < before
    assert found[24] == np.quantile(drawn.p[order[before - beside : before + rare + beside]], share)
