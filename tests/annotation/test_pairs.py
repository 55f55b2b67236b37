"""Cells with both chains: exact beside a loop over pairs of sequences, calibrated, and planted pairs are found."""

from dataclasses import replace
from itertools import product
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.annotation import cache
from hpcvdj.annotation.cache import prepared
from hpcvdj.annotation.judged import Judged
from hpcvdj.annotation.pairs import annotate_pairs, chains_of
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.api.known_cells import annotated_cells
from hpcvdj.chance.fit import GeneFit
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.errors import InputError
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.databases import database_of
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.runs.run import Run
from tests.annotation.test_annotate import ball, genes
from tests.selected import few_genes

pytestmark = pytest.mark.olga

CALLS = ["v_call", "j_call", "junction"]


@pytest.fixture(scope="module")
def beta():
    return few_genes()


@pytest.fixture(scope="module")
def alpha():
    """Mouse alpha: a locus with little diversity, so that there are hits by chance."""
    return load_model("mouse_tra")


@pytest.fixture(scope="module")
def drawn(beta, alpha):
    return [hpcvdj.generate(model, 12_000, seed=seed, productive=True, backend="cpu")
            for seed, model in ((5, beta), (6, alpha))]  # fmt: skip


def records_of(parts, epitopes, seed=0):
    """Receptors of drawn chains, one a row, as a table in memory; half of the epitopes are decoys."""
    epitope = np.random.default_rng(seed).integers(0, epitopes, len(parts[0]))
    tables = [
        pa.table({
            "v_call": part["v_call"], "j_call": part["j_call"], "junction_aa": part["junction_aa"],
            "epitope": pa.array([f"E{k:02}" for k in epitope]),
            "organism": pa.array(np.where(epitope < epitopes // 2, "decoy", "other")),
            "receptor_id": pa.array([f"r{k}" for k in range(len(part))]),
        })
        for part in parts
    ]  # fmt: skip
    return pa.concat_tables([table.cast(tables[0].schema) for table in tables])


def answered(parts, database, models, fit=UNCHECKED, **options):
    """The annotation of cells that are the rows of two tables."""
    records, settings, run = database_of(database), AnnotationSettings(backend="cpu", **options), Run()
    unions = [prepared(records, DatabaseSettings(), settings, model, run) for model in models]
    chains = [
        chains_of(read_table(part.select(CALLS), model, productive_reading()), len(part), model, own, ClonotypeChoice())
        for part, model, (own, _) in zip(parts, models, unions, strict=True)
    ]
    judged = [Judged.by(fit, *own, model, settings) for own, model in zip(unions, models, strict=True)]
    return annotate_pairs(tuple(chains), tuple(judged), records, settings), unions


def crowded(part, rows):
    """Records that are near to one another: some junctions with one residue exchanged, with the same genes."""
    texts, residues = part["junction_aa"].to_pylist()[:rows], "ACDEFGHIKLMNPQRSTVWY"
    texts = [text[:4] + residues[k % 20] + text[5:] if k % 3 else text for k, text in enumerate(np.repeat(texts, 6))]
    at = np.repeat(np.arange(rows), 6)
    return part.take(at).set_column(part.column_names.index("junction_aa"), "junction_aa", pa.array(texts))


@pytest.mark.slow
def test_expected_pairs_are_those_of_a_loop(beta, alpha, drawn):
    """Unions of A × B by sets of pairs: near records share sequences of either chain, and of both."""
    parts = [crowded(part, 5) for part in drawn]
    # The other chain of near betas: the same, near or another alpha.
    parts[1] = parts[1].take(np.roll(np.arange(30), 2))
    database = records_of(parts, 2)
    cells = [part.slice(100, 4_000) for part in drawn]
    answer, unions = answered(cells, database, [beta, alpha], kappa=1.0)
    given = [
        {(*(own.allele for own in union.centres.classes[kind]), bytes(text).rstrip(b"\0").decode()): value
         for kind, text, value in zip(union.kind.tolist(), union.letters, p.given.tolist(), strict=True)}
        for union, p in unions
    ]  # fmt: skip
    n, seen = {}, {}
    for one, other in zip(*(part.to_pylist() for part in cells), strict=True):
        keys = [genes(row["v_call"], row["j_call"]) for row in (one, other)]
        n.setdefault(tuple(keys), set()).add((one["junction"], other["junction"]))
        found = tuple((*key, row["junction_aa"]) for key, row in zip(keys, (one, other), strict=True))
        seen.setdefault(found, set()).add((one["junction"], other["junction"]))
    rows, several = database.to_pylist(), 0
    for name in ("E00", "E01"):
        members, times = set(), 0
        for one, other in zip(rows[:30], rows[30:], strict=True):
            if one["epitope"] == name:
                balls = [[(*genes(row["v_call"], row["j_call"]), text) for text in ball(row["junction_aa"])]
                         for row in (one, other)]  # fmt: skip
                members |= set(product(*balls))
                times += len(balls[0]) * len(balls[1])
        several += times > len(members)
        of_class = {}
        for a, b in members:
            of_class.setdefault((a[:2], b[:2]), []).append(given[0][a] * given[1][b])
        expected = sum(len(n.get(pair, ())) * float(np.sum(values)) for pair, values in of_class.items())
        row = next(row for row in answer.epitopes.to_pylist() if row["epitope"] == name)
        assert row["expected"] == pytest.approx(expected, rel=1e-10)
        assert row["found"] == sum(len(junctions) for pair, junctions in seen.items() if pair in members)
    assert several == 2


@pytest.mark.slow
def test_drawn_pairs_have_no_hits_and_planted_ones_are_found(beta, alpha, drawn):
    known = 3_000
    database = records_of([part.slice(0, known) for part in drawn], 30)
    answer, _ = answered([part.slice(known) for part in drawn], database, [beta, alpha], kappa=1.0)
    found, expected = (sum(row[name] for row in answer.epitopes.to_pylist()) for name in ("found", "expected"))
    assert answer.trials == 9_000
    assert found <= stats.poisson.isf(1e-6, expected) < 12
    others = np.flatnonzero(np.array(database["organism"].to_pylist()[:known]) == "other")[:40]
    planted = [pa.concat_tables([part.slice(known, 3_000), part.take(others)]) for part in drawn]
    answer, _ = answered(planted, database, [beta, alpha], decoys=("decoy",))
    assert answer.kappa.source == "none"
    assert answer.hit_of[-40:].min() >= 0
    assert (answer.hit_of[:-40] >= 0).sum() <= 2
    hits = answer.hits.to_pylist()
    assert all(hits[row]["fdr"] < 0.05 for row in answer.hit_of[-40:])
    rows = answer.epitopes.to_pylist()
    assert {row["decoy"] for row in rows if row["q_value"] < 0.05} == {False}
    # Decoys that cells do have say that the model is wrong.
    decoys = np.flatnonzero(np.array(database["organism"].to_pylist()[:known]) == "decoy")[:40]
    wrong, _ = answered([part.take(decoys) for part in drawn], database, [beta, alpha], decoys=("decoy",))
    assert wrong.kappa.source == "decoys"
    assert wrong.kappa.low > 10


@pytest.mark.slow
def test_nothing_is_called_of_pairs_if_decoys_fail(beta, alpha, drawn, caplog):
    known = 3_000
    database = records_of([part.slice(0, known) for part in drawn], 30)
    decoys = np.flatnonzero(np.array(database["organism"].to_pylist()[:known]) == "decoy")[:40]
    cells = [pa.concat_tables([part.slice(known, 1_000), part.take(decoys)]) for part in drawn]
    answer, _ = answered(cells, database, [beta, alpha], decoys=("decoy",), kappa=1.0)
    assert answer.passed is False
    assert "epitopes and 40 hits of decoys would be called, so nothing is" in caplog.text
    assert len(answer.hits) == answer.hits["fdr"].null_count >= 40
    assert answer.epitopes["q_value"].null_count == len(answer.epitopes)
    assert (answer.hit_of[-40:] >= 0).all()
    alone, _ = answered(cells, database, [beta, alpha], kappa=1.0)
    assert alone.passed is None
    assert alone.hits["fdr"].null_count == 0


@pytest.mark.slow
def test_members_that_are_not_tested_make_no_hits(beta, alpha, drawn):
    """As of single chains: their genes are made wrongly, or the model cannot make them."""
    database = records_of([part.slice(0, 30) for part in drawn], 30)
    cells = [part.slice(0, 300) for part in drawn]
    whole, _ = answered(cells, database, [beta, alpha], kappa=1.0)
    genes_of_records = {call.partition("*")[0] for call in database["v_call"].to_pylist()[:30]}
    gene = sorted(genes_of_records)[0]
    fit = ModelFit(genes=(GeneFit("V", gene, 30, 0, 0, 0, 0, 0, "productive", "broken"),))
    found, _ = answered(cells, database, [beta, alpha], fit=fit, kappa=1.0)
    names, calls = database["epitope"].to_pylist()[:30], database["v_call"].to_pylist()[:30]
    kept = [(name, not call.startswith(gene)) for name, call in zip(names, calls, strict=True)]
    lost = {name for name, _ in kept} - {name for name, is_kept in kept if is_kept}
    assert len(lost) >= 1
    assert lost <= {*whole.hits["epitope"].to_pylist()}
    assert lost.isdisjoint(found.hits["epitope"].to_pylist())
    assert lost.isdisjoint(found.epitopes["epitope"].to_pylist()), "chance cannot hit them"
    assert found.hits["expected"].to_numpy().min() > 0
    assert found.trials == whole.trials


@pytest.mark.slow
def test_options_of_single_chains_are_those_of_pairs(beta, alpha, drawn):
    """Ties of genes, and reads: records of TRBV12-3 and TRBV12-4 found nothing with ties."""
    part = [rows.slice(0, 400) for rows in drawn]
    calls = [call if k % 2 else "TRBV12-3" for k, call in enumerate(part[0]["v_call"].to_pylist())]
    part[0] = part[0].set_column(part[0].column_names.index("v_call"), "v_call", pa.array(calls))
    database = records_of([rows.slice(0, 40) for rows in part], 40)
    obs, found = pd.DataFrame(index=[f"c{k}" for k in range(400)]), {}
    tables = {
        kind: rows.select(CALLS).to_pandas().assign(duplicate_count=np.arange(400) // 10 + 1).set_index(obs.index)
        for kind, rows in zip(("VDJ", "VJ"), part, strict=True)
    }
    options = {"kappa": 1.0, "force": True, "backend": "cpu"}
    tied = replace(beta, ties=(("TRBV12-3", "TRBV12-4"),)), alpha.with_ties()
    for ties, models in {"none": (beta, alpha), "auto": tied}.items():
        answer = annotated_cells(obs, tables, dict(zip(("VDJ", "VJ"), models, strict=True)), database, options)
        found[ties] = [*(sample.found for sample in answer.samples), len(answer.pairs.hits)]
        # The cells are those of the hits, also where genes are tied.
        assert obs["VDJ_1_epitope"].notna().sum() == found[ties][0] == 20
    # Of the records, half have a call that cannot make their junctions.
    assert [found["auto"][k] for k in (0, 2)] == [found["none"][k] for k in (0, 2)] == [20, 20]
    answer = annotated_cells(obs, tables, {"VDJ": beta, "VJ": alpha}, database, options | {"min_reads": 3})
    assert len(answer.pairs.hits) == 10
    assert obs["pair_epitope_excluded"].tolist()[:20] == ["not both chains with a value"] * 20
    assert obs["VDJ_1_epitope_excluded"].tolist()[:20] == ["fewer reads than min_reads, or a likely error"] * 20
    annotated_cells(obs, tables, {"VDJ": beta}, database, options)
    assert "VJ_1_epitope" in obs, "of the chain that was annotated before"


@pytest.mark.exhaustive
def test_drawn_pairs_are_calibrated():
    """Two chains of IGK, which has so little diversity that there are enough hits by chance.

    All is one epitope: epitopes with sequences in common have numbers that depend on one another.
    """
    model = load_model("human_igk")
    wide = hpcvdj.generate(model, 66_000, seed=9, productive=True, backend="cpu")
    database = records_of([wide.slice(0, 3_000), wide.slice(3_000, 3_000)], 1)
    cells = [wide.slice(6_000, 30_000), wide.slice(36_000)]
    answer, _ = answered(cells, database, [model, model], kappa=1.0)
    (row,) = answer.epitopes.to_pylist()
    assert len(answer.hits) == row["found"]
    assert row["expected"] > 100
    assert abs(row["found"] - row["expected"]) < 4 * np.sqrt(row["expected"])
    assert row["p_value"] > 1e-3


@pytest.mark.slow
def test_cells_with_a_database(beta, alpha, drawn, monkeypatch):
    ak, anndata = pytest.importorskip("awkward"), pytest.importorskip("anndata")
    loci, parts = ("TRB", "TRA"), [part.slice(0, 6).to_pylist() for part in drawn]
    chains = [{"locus": locus} | {name: row[name] for name in CALLS} for locus, rows in zip(loci, parts, strict=True)
              for row in rows]  # fmt: skip
    cells = [[chains[k], chains[6 + k]] for k in range(3)] + [[chains[3], chains[10]], [chains[4]], [chains[11]], []]
    first = [(1, 0)] * 4 + [(None, 0), (0, None), (None, None)]
    adata = anndata.AnnData(np.zeros((7, 1)), obs=pd.DataFrame(index=[f"cell{k}" for k in range(7)]))
    adata.obsm["airr"] = ak.Array(cells)
    adata.obsm["chain_indices"] = ak.Array([{"VJ": [vj, None], "VDJ": [vdj, None]} for vj, vdj in first])
    database = records_of([part.slice(0, 6) for part in drawn], 6)
    made = mock.Mock(wraps=cache.union_of)
    monkeypatch.setattr(cache, "union_of", made)
    answer = hpcvdj.annotate_cells(adata, database=database, model=beta, vj_model=alpha, force=True, kappa=1.0)
    # That of each chain, for its hits and for pairs.
    assert made.call_count == 2
    with pytest.raises(TypeError, match="no_option"):
        hpcvdj.annotate_cells(adata, database=database, model=beta, no_option=1)
    obs, names = adata.obs, database["epitope"].to_pylist()
    assert obs["pair_epitope"].tolist()[:3] == names[:3]
    assert (
        obs["pair_epitope_excluded"].tolist() == [""] * 3 + ["not like a record"] + ["not both chains with a value"] * 3
    )
    assert obs["VDJ_1_epitope"].tolist()[:5] == names[:5]
    assert obs["VJ_1_epitope_excluded"].tolist() == [""] * 4 + ["no primary VJ chain", "", "no primary VJ chain"]
    assert obs["pair_expected"].isna().tolist() == [False] * 3 + [True] * 4
    assert (obs["pair_expected"][:3] < obs["VDJ_1_expected"][:3]).all()
    assert answer.pairs.trials == 4
    assert len(answer.pairs.hits) == 3
    assert [(own.name, own.kappa.value, own.found) for own in answer.samples] == [("VDJ", 1.0, 5), ("VJ", 1.0, 5)]
    assert answer.hits["sample"].to_pylist() == ["VDJ"] * 5 + ["VJ"] * 5
    assert set(answer.epitopes["sample"].to_pylist()) == {"VDJ", "VJ"}
    assert "VJ " in repr(answer)
    assert "3 hits among 4 pairs" in answer._repr_html_()
    before = obs.copy()
    adata.obsm["airr"] = ak.Array([[own | {"duplicate_count": 1 + own["junction"].count("A") % 2} for own in cell]
                                   for cell in cells])  # fmt: skip
    of_two = hpcvdj.annotate_cells(
        adata, database=database, model=beta, vj_model=alpha, force=True, kappa=1.0, min_reads=2
    )
    kept = [[part[k]["junction"].count("A") % 2 for k in range(6)] for part in parts]
    assert [sum(own.left_out.values()) for own in of_two.samples] == [5 - sum(kept[0][:5]), 5 - sum(
        [*kept[1][:3], kept[1][4], kept[1][5]])]  # fmt: skip
    assert obs["pair_epitope"].notna().tolist()[:3] == [bool(a and b) for a, b in zip(*kept, strict=True)][:3]
    texts = [[{name: own[name] for name in CALLS[:2]} | {"junction_aa": hpcvdj.translate([own["junction"]])[0]}
              for own in cell] for cell in cells]  # fmt: skip
    adata.obsm["airr"] = ak.Array(texts)
    hpcvdj.annotate_cells(adata, database=database, model=beta, vj_model=alpha, force=True, kappa=1.0)
    for name in ("VDJ_1_epitope", "VJ_1_record", "pair_epitope", "pair_epitope_excluded"):
        assert adata.obs[name].equals(before[name])
    with pytest.warns(hpcvdj.HpcvdjWarning, match="^VDJ"):
        single = hpcvdj.annotate_cells(adata, database=database, model=beta, force=True)
    assert single.pairs is None
    assert not [name for name in adata.obs if name.startswith("pair_")]
    with pytest.raises(InputError, match="no column duplicate_count, which min_reads=2 needs"):
        hpcvdj.annotate_cells(adata, database=database, model=beta, force=True, min_reads=2)
    assert [name for name in adata.obs if name.startswith("VDJ")] == [
        f"VDJ_1_{name}" for name in ("epitope", "record", "expected", "fdr", "epitope_excluded")
    ]
    for options, message in (({}, "no model"), ({"model": beta, "counted": "human_trb"}, "leave out counted")):
        with pytest.raises(InputError, match=message):
            hpcvdj.annotate_cells(adata, database=database, **options)
    # No call is read, so one that nobody knows is no matter.
    unknown = [[own | {"v_call": "unknown"} for own in cell] for cell in cells]
    adata.obsm["airr"] = ak.Array(unknown)
    answer = hpcvdj.annotate_cells(adata, database=database, model=beta, vj_model=alpha, force=True, kappa=1.0,
                                   match="none")  # fmt: skip
    assert adata.obs["VDJ_1_epitope"].tolist()[:5] == names[:5]
    assert adata.obs["pair_epitope"].tolist()[:3] == names[:3]
    assert answer.pairs.trials == 4
    with pytest.raises(InputError, match="vj_model applies only with a database"):
        hpcvdj.annotate_cells(adata, vj_model=alpha)


def vdjdb(parts, ids, epitope="E"):
    """A table as vdjdb.slim.txt: the chains of one part after the other, with the `complex.id` of each."""
    rows = [row for part in parts for row in part.to_pylist()]
    return pd.DataFrame({
        "gene": [row["v_call"][:3] for row in rows], "cdr3": [row["junction_aa"] for row in rows],
        "v.segm": [row["v_call"] for row in rows], "j.segm": [row["j_call"] for row in rows],
        "antigen.epitope": epitope, "antigen.species": "virus", "complex.id": ids,
    })  # fmt: skip


@pytest.fixture
def six(drawn):
    return [part.slice(0, 6) for part in drawn]


@pytest.mark.slow
def test_a_chain_of_several_complexes_of_vdjdb_pairs_in_each(beta, alpha, six):
    """VDJdb joins the complexes of a chain by commas: such chains, the public ones, had no pair."""
    ids = ["1,7", "2", "0", "4.0", "5", "9", "1", "2;3", "0", "4", "8;5,0", "10"]
    answer, _ = answered(six, vdjdb(six, ids), [beta, alpha], kappa=1.0)
    assert [row["pairs"] for row in answer.epitopes.to_pylist()] == [4]
    assert np.flatnonzero(answer.hit_of >= 0).tolist() == [0, 1, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("zero", [0, 0.0, "0", None])
def test_chains_without_a_complex_make_no_pairs(beta, alpha, six, zero, caplog):
    """pandas makes 0.0 of 0 beside missing ids, which paired each alpha with each beta of an epitope: 36 pairs."""
    answer, _ = answered(six, vdjdb(six, [zero] * 12), [beta, alpha], kappa=1.0)
    assert len(answer.epitopes) == 0
    assert (answer.hit_of == -1).all()
    assert "no receptor of the database has both chains" in caplog.text


@pytest.mark.slow
def test_receptors_of_other_databases_may_be_numbered_from_0(beta, alpha, six):
    own = records_of(six, 1)
    numbered = own.set_column(own.column_names.index("receptor_id"), "receptor_id", pa.array([*range(6), *range(6)]))
    answer, _ = answered(six, numbered, [beta, alpha], kappa=1.0)
    assert [row["pairs"] for row in answer.epitopes.to_pylist()] == [6]


@pytest.mark.slow
def test_several_peptides_of_a_cell_have_its_pairs(beta, alpha, six):
    """Only the last peptide had them."""
    both = "CCCCCCCCL;DDDDDDDDL"
    answer, _ = answered(six, vdjdb(six, [*range(1, 7), *range(1, 7)], both), [beta, alpha], kappa=1.0)
    assert [(row["epitope"], row["pairs"]) for row in answer.epitopes.to_pylist()] == [(both, 6)]


@pytest.mark.slow
def test_records_that_take_no_part_do_not_say_what_decoys_are(beta, alpha, six):
    """A record of another organism, whose gene no model has, made an epitope of decoys one of none."""
    database = vdjdb(six, [*range(1, 7), *range(1, 7)])
    other = database.iloc[:1].assign(**{"antigen.species": "synthetic", "v.segm": "TRBV999"})
    answer, _ = answered(six, pd.concat([database, other]), [beta, alpha], kappa=1.0, decoys=("virus",))
    assert [row["decoy"] for row in answer.epitopes.to_pylist()] == [True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kept"), [({}, True), ({"likely_errors": True}, True), ({"likely_errors": False}, False)]
)
def test_likely_errors_of_cells_are_kept_unless_asked_for(beta, drawn, options, kept):
    """Errors are made within a cell: one with few molecules is no error of the many molecules of another cell."""
    first = drawn[0].slice(0, 1).to_pylist()[0]
    base = "A" if first["junction"][9] != "A" else "C"
    other = {**first, "junction": first["junction"][:9] + base + first["junction"][10:]}
    table = pd.DataFrame([{**first, "duplicate_count": 900}, {**other, "duplicate_count": 2}], index=["many", "few"])
    database = records_of([drawn[0].slice(0, 1)] * 2, 1)
    obs = pd.DataFrame(index=table.index)
    annotated_cells(
        obs, {"VDJ": table}, {"VDJ": beta}, database, {"kappa": 1.0, "force": True, "backend": "cpu", **options}
    )
    assert obs["VDJ_1_epitope"].notna().tolist() == [True, kept]
