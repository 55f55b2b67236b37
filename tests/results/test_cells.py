"""Counters of each cell's primary chain in an AnnData object as scirpy makes it."""

import numpy as np
import pandas as pd
import pytest

import hpcvdj
from hpcvdj.api.cells import primary_chains
from hpcvdj.counting.config import Config
from hpcvdj.errors import InputError
from hpcvdj.repertoires.readers.cells import AnnDataReader
from tests.conftest import GERMLINE, SMALL
from tests.problems import count_to
from tests.recombination.definition import pgen
from tests.recombination.igor_files import mouse_files, mouse_junctions

ak = pytest.importorskip("awkward")
anndata = pytest.importorskip("anndata")


@pytest.fixture(scope="module")
def frame():
    return pd.read_csv(SMALL, sep="\t").head(6)


def chain(frame, k, **fields):
    record = frame.iloc[k]
    names = ("sequence_id", "v_call", "j_call", "junction")
    return {"locus": "TRB", **{name: record[name] for name in names}, **fields}


ALPHA = {"locus": "TRA", "sequence_id": "a", "v_call": "TRAV1*01", "j_call": "TRAJ1*01", "junction": "TGTTTT"}


@pytest.fixture
def adata(frame):
    """Five cells: one chain; the second of two chains is primary; alpha alone; none; a gene that nobody knows."""
    cells = [
        [chain(frame, 0)],
        [ALPHA, chain(frame, 1), chain(frame, 2)],
        [ALPHA],
        [],
        [chain(frame, 3, v_call="TRBV999", sequence_id="unknown")],
    ]
    first = [(None, 0), (0, 2), (0, None), (None, None), (None, 0)]
    indices = [{"VJ": [vj, None], "VDJ": [vdj, None], "multichain": False} for vj, vdj in first]
    made = anndata.AnnData(np.zeros((5, 1)), obs=pd.DataFrame(index=[f"cell{k}" for k in range(5)]))
    made.obsm["airr"] = ak.Array(cells)
    made.obsm["chain_indices"] = ak.Array(indices)
    return made


def test_the_primary_chain_of_each_cell(adata, frame):
    table = primary_chains(adata)
    assert table.index.tolist() == ["cell0", "cell1", "cell4"]
    assert table.sequence_id.tolist() == [frame.sequence_id[0], frame.sequence_id[2], "unknown"]
    assert primary_chains(adata, chain="VJ").index.tolist() == ["cell1", "cell2"]


def check(adata, frame, unknown):
    counted = hpcvdj.count(frame, GERMLINE, max_n=4)
    total = adata.obs["VDJ_1_pathways_total"]
    assert str(total.dtype) == "UInt64"
    assert total.isna().tolist() == [False, False, True, True, True]
    assert adata.obs["VDJ_1_weight"].isna().tolist() == total.isna().tolist()
    for cell, row in (("cell0", 0), ("cell1", 2)):
        for m in range(5):
            assert adata.obs.loc[cell, f"VDJ_1_pathways_n{m}"] == counted[f"pathways_n{m}"][row]
        assert total[cell] == counted["pathways_total"][row]
        assert adata.obs.loc[cell, "VDJ_1_weight"] == counted["weight"][row] > 0
    assert adata.obs["VDJ_1_pathways_excluded"].tolist() == [
        "", "", "no primary VDJ chain", "no primary VDJ chain", unknown,
    ]  # fmt: skip


def test_cells_counted_with_a_germline_table(adata, frame):
    hpcvdj.annotate_cells(adata, GERMLINE, max_n=4, columns="all")
    check(adata, frame, "V gene TRBV999 is not in the germline table")


def test_cells_of_a_modality(adata, frame):
    """MuData has the cells of several modalities: those without chains have no values."""
    mudata = pytest.importorskip("mudata")
    anndata = pytest.importorskip("anndata")
    others = [*adata.obs_names[::-1], "expressed only"]
    gex = anndata.AnnData(np.zeros((len(others), 1)))
    gex.obs_names = others
    mdata = mudata.MuData({"gex": gex, "airr": adata})
    names = set(mdata.obs)
    hpcvdj.annotate_cells(mdata, GERMLINE, max_n=4, columns="all")
    check(mdata["airr"], frame, "V gene TRBV999 is not in the germline table")
    made = [name for name in mdata["airr"].obs if name.startswith("VDJ_1_")]
    assert set(mdata.obs) - names == {f"airr:{name}" for name in made}
    for name in made:
        of_all = mdata.obs[f"airr:{name}"]
        assert of_all.index.tolist() == mdata.obs_names.tolist()
        assert of_all.loc[adata.obs_names].equals(mdata["airr"].obs[name].rename(f"airr:{name}"))
    of_other = mdata.obs.loc["expressed only"]
    assert of_other.pop("airr:VDJ_1_pathways_excluded") == "not a cell of airr"
    assert of_other.isna().all()
    with pytest.raises(InputError, match=r"no modality 'tcr', but gex, airr; .*airr_mod"):
        hpcvdj.annotate_cells(mdata, GERMLINE, airr_mod="tcr")


def test_what_has_no_cells(adata, frame):
    with pytest.raises(InputError, match="cells are in an AnnData or MuData object, not in a DataFrame"):
        hpcvdj.annotate_cells(frame, GERMLINE)
    with pytest.raises(InputError, match=r"chain must be one of VDJ, VJ \(got .X.\)"):
        hpcvdj.annotate_cells(adata, GERMLINE, chain="X")
    adata.obs_names = ["cell"] * adata.n_obs
    with pytest.raises(InputError, match=r"cells have the same name; adata\.obs_names_make_unique\(\)"):
        hpcvdj.annotate_cells(adata, GERMLINE)


def test_cells_joined_to_a_result(adata, frame, tmp_path, paper_germline):
    count_to(tmp_path / "o.h5", SMALL, paper_germline, Config(max_n=4))
    with hpcvdj.open(tmp_path / "o.h5") as result:
        hpcvdj.annotate_cells(adata, result, columns="all")
        check(adata, frame, "not in the result")
        with pytest.raises(InputError, match="max_n applies only where the chains are computed"):
            hpcvdj.annotate_cells(adata, result, max_n=3)


@pytest.mark.slow
def test_cells_with_a_model(adata, frame, tmp_path):
    """Both, or the probabilities alone; the calls of cell0 and cell1 are of genes that only one model has."""
    model = hpcvdj.load_model(mouse_files().write(tmp_path / "model"))
    v, j, junction = next(row for row in mouse_junctions(model, 99) if pgen(model, row[2]) and len(row[2]) % 3 == 0)
    cells = adata.obsm["airr"].to_list()
    cells[0][0] |= {"v_call": v, "j_call": j, "junction": junction}
    adata.obsm["airr"] = ak.Array(cells)
    hpcvdj.annotate_cells(adata, model=model)
    assert [name for name in adata.obs if "pathways" in name or "weight" in name] == []
    values, reasons = adata.obs["VDJ_1_pgen_nt"], adata.obs["VDJ_1_pgen_excluded"].tolist()
    expected = pgen(model, junction, model.find("V", v), model.find("J", j))
    # At most 20 roundings of sums of positive numbers lie between the two orders of addition.
    assert values["cell0"] == pytest.approx(expected, rel=1e-13, abs=0)
    assert adata.obs.loc["cell0", "VDJ_1_pgen_aa"] >= values["cell0"] > 0
    assert values.isna().tolist() == [False, "not in the model" in reasons[1], True, True, True]
    assert reasons[0] == ""
    assert reasons[2:] == ["no primary VDJ chain"] * 2 + ["V gene TRBV999 is not in the model"]
    both = adata.copy()
    hpcvdj.annotate_cells(both, GERMLINE, model=model, max_n=2)
    for name in ("VDJ_1_pgen_nt", "VDJ_1_pgen_aa", "VDJ_1_pgen_excluded"):
        assert both.obs[name].equals(adata.obs[name])
    assert both.obs["VDJ_1_weight"].notna().tolist() == [True, True, False, False, False]
    with pytest.raises(InputError, match="nothing to add"):
        hpcvdj.annotate_cells(adata)
    with pytest.raises(TypeError, match="max_n"):
        hpcvdj.annotate_cells(adata, model=model, max_n=2)
    hpcvdj.annotate_cells(adata, model=model, genes="any", columns=["pgen_nt"])
    any_genes = hpcvdj.pgen([junction], model, genes="any")["pgen_nt"][0].as_py()
    assert adata.obs["VDJ_1_pgen_nt"]["cell0"] == any_genes > values["cell0"]
    assert adata.obs["VDJ_1_pgen_nt"].notna().tolist() == [True, True, False, False, True]


@pytest.mark.parametrize("junction", [None, "absent"])
def test_cells_with_amino_acids_only(adata, tmp_path, junction):
    model = hpcvdj.load_model(mouse_files().write(tmp_path / "model"))
    v, j, text = next(row for row in mouse_junctions(model, 99) if pgen(model, row[2]) and len(row[2]) % 3 == 0)
    own = {"v_call": v, "j_call": j, "junction_aa": hpcvdj.translate([text])[0]}
    cells = [[own | ({} if junction else {"junction": None}) for _ in cell] for cell in adata.obsm["airr"].to_list()]
    adata.obsm["airr"] = ak.Array(cells)
    hpcvdj.annotate_cells(adata, model=model)
    expected = hpcvdj.pgen(pd.DataFrame([own]), model)["pgen_aa"][0]
    assert adata.obs["VDJ_1_pgen_aa"].fillna(0).tolist() == [expected, expected, 0, 0, expected]
    assert expected > 0
    assert adata.obs["VDJ_1_pgen_excluded"].tolist()[:2] == ["", ""]


def test_cells_of_which_some_have_amino_acids_only(adata, tmp_path):
    """Chains without nucleotides have probabilities if amino acids are read of all, as the warning says."""
    model = hpcvdj.load_model(mouse_files().write(tmp_path / "model"))
    v, j, text = next(row for row in mouse_junctions(model, 99) if pgen(model, row[2]) and len(row[2]) % 3 == 0)
    own = {"v_call": v, "j_call": j, "junction_aa": hpcvdj.translate([text])[0]}
    cells = [[own | {"junction": None} for _ in cell] for cell in adata.obsm["airr"].to_list()]
    cells[0][0]["junction"] = text
    adata.obsm["airr"] = ak.Array(cells)
    remedy = "sequence_field='junction_aa'"
    with pytest.warns(hpcvdj.HpcvdjWarning, match=f"2 of the first 3 rows .* but no nucleotides .*; {remedy} reads"):
        hpcvdj.annotate_cells(adata, model=model)
    assert adata.obs["VDJ_1_pgen_excluded"].tolist()[:2] == ["", "no junction"]
    hpcvdj.annotate_cells(adata, model=model, sequence_field="junction_aa")
    assert adata.obs["VDJ_1_pgen_aa"].notna().tolist() == [True, True, False, False, True]


def test_the_columns_survive_a_file(adata, tmp_path):
    hpcvdj.annotate_cells(adata, GERMLINE, max_n=1, columns="all")
    # Written without the receptors: the columns of obs are what is looked at here.
    del adata.obsm["airr"], adata.obsm["chain_indices"]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert back.obs["VDJ_1_pathways_total"].isna().tolist() == [False, False, True, True, True]
    assert back.obs["VDJ_1_pathways_n1"].dropna().tolist() == adata.obs["VDJ_1_pathways_n1"].dropna().tolist()


def test_the_columns_that_are_asked_for(adata, tmp_path):
    before = list(adata.obs)
    hpcvdj.annotate_cells(adata, GERMLINE)
    assert [name for name in adata.obs if name not in before] == [
        "VDJ_1_pathways_total", "VDJ_1_weight", "VDJ_1_pathways_excluded",
    ]  # fmt: skip
    hpcvdj.annotate_cells(adata, GERMLINE, columns=["pathways_n0"])
    assert "VDJ_1_pathways_n0" in adata.obs
    assert "VDJ_1_pathways_n1" not in adata.obs
    for columns in (["pgen_nt"], "pathways_n99"):
        with pytest.raises(InputError, match=r"columns: no (pgen_nt|pathways_n99); there are pathways_n0"):
            hpcvdj.annotate_cells(adata, GERMLINE, columns=columns)


def test_columns_of_an_earlier_call_do_not_stay(adata, tmp_path):
    mudata = pytest.importorskip("mudata")
    adata.obs["VDJ_1_mine"] = adata.obs["VJ_1_weight"] = "kept"
    mdata = mudata.MuData({"airr": adata})
    hpcvdj.annotate_cells(mdata, GERMLINE, max_n=1, columns="all")
    assert "airr:VDJ_1_pathways_n1" in mdata.obs
    with pytest.raises(InputError, match="no pathways_n99"):
        hpcvdj.annotate_cells(mdata, GERMLINE, columns="pathways_n99")
    assert "VDJ_1_pathways_n1" in mdata["airr"].obs, "a call that fails changes nothing"
    hpcvdj.annotate_cells(mdata, GERMLINE)
    assert [name for name in mdata["airr"].obs if name.startswith("V")] == [
        "VDJ_1_mine", "VJ_1_weight", "VDJ_1_pathways_total", "VDJ_1_weight", "VDJ_1_pathways_excluded",
    ]  # fmt: skip
    assert "airr:VDJ_1_pathways_n1" not in mdata.obs
    del mdata.obs["airr:VDJ_1_weight"]
    hpcvdj.annotate_cells(mdata, GERMLINE)
    assert "airr:VDJ_1_weight" in mdata.obs, "values that the modality had before"


def test_chains_that_were_chosen_of_others(adata):
    adata.obsm["chain_indices"] = ak.Array([{"VJ": [None, None], "VDJ": [3, None]}] * 5)
    with pytest.raises(InputError, match=r"obsm\['chain_indices'\] is not of these chains; choose them again"):
        hpcvdj.annotate_cells(adata, GERMLINE)


def test_what_is_missing_is_named(adata):
    without = adata.copy()
    cells = adata.obsm["airr"].to_list()
    fields = [[{name: own[name] for name in ("sequence_id", "v_call", "j_call")} for own in cell] for cell in cells]
    without.obsm["airr"] = ak.Array(fields)
    with pytest.raises(InputError, match=r"obsm\['airr'\] has no field junction; read"):
        hpcvdj.annotate_cells(without, GERMLINE)
    without.obsm["airr"] = ak.Array([[own | {"junction_aa": "CASSF"} for own in cell] for cell in fields])
    with pytest.raises(InputError, match=r"no column junction; the table has amino acids only \(junction_aa\)"):
        hpcvdj.annotate_cells(without, GERMLINE)
    del adata.obsm["chain_indices"]
    with pytest.raises(InputError, match=r"no 'chain_indices'; choose the chains with scirpy\.pp\.index_chains"):
        hpcvdj.annotate_cells(adata, GERMLINE)
    with pytest.raises(InputError, match=r"no 'receptors'; read the receptors with scirpy.io"):
        hpcvdj.annotate_cells(adata, GERMLINE, airr_key="receptors")


def test_what_scirpy_makes(frame, tmp_path):
    scirpy = pytest.importorskip("scirpy")
    rows = frame.assign(cell_id=["x", "x", "y", "z", "z", "z"], locus="TRB", productive="T", duplicate_count=range(6))
    rows.to_csv(tmp_path / "airr.tsv", sep="\t", index=False)
    adata = scirpy.io.read_airr(tmp_path / "airr.tsv")
    scirpy.pp.index_chains(adata, filter=["productive"])
    hpcvdj.annotate_cells(adata, GERMLINE, max_n=4)
    counted = hpcvdj.count(frame, GERMLINE, max_n=4)["pathways_total"]
    # The chain with the most counts is the primary one.
    assert adata.obs["VDJ_1_pathways_total"][["x", "y", "z"]].tolist() == [counted[k] for k in (1, 2, 5)]


@pytest.mark.parametrize("name", ["umi_count", "duplicate_count"])
def test_counts_of_chains(adata, name, tmp_path):
    """scirpy calls the counts of cells umi_count, which no command read."""
    cells = [[own | {name: 3 + k} for k, own in enumerate(cell)] for cell in ak.to_list(adata.obsm["airr"])]
    adata.obsm["airr"] = ak.Array(cells)
    assert primary_chains(adata)["duplicate_count"].tolist() == [3, 5, 3]
    adata.write(tmp_path / "a.h5ad")
    read = AnnDataReader(tmp_path / "a.h5ad")
    (batch,) = read.batches(["duplicate_count"])
    assert batch.column(0).to_pylist() == [str(3 + k) for cell in cells for k in range(len(cell))]


def test_muon_that_was_saved_is_annotated_again(adata, tmp_path):
    """Saved texts are categories, to which no value could be added: a TypeError of pandas."""
    mudata = pytest.importorskip("mudata")
    others = anndata.AnnData(np.zeros((2, 1)), obs=pd.DataFrame(index=["cell0", "other"]))
    both = mudata.MuData({"airr": adata, "gex": others})
    hpcvdj.annotate_cells(both, GERMLINE)
    both.write(tmp_path / "m.h5mu")
    both = mudata.read(tmp_path / "m.h5mu")
    hpcvdj.annotate_cells(both, GERMLINE, chain="VJ")
    for name in ("VDJ_1", "VJ_1"):
        assert both.obs.loc["other", f"airr:{name}_pathways_excluded"] == "not a cell of airr"
