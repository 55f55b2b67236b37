"""Correct calls of the public functions: never run, but mypy must accept them (`modules` in pyproject.toml)."""

from pathlib import Path

import pandas as pd
import pyarrow as pa

import hpcvdj

frame = pd.DataFrame()


def calls() -> pa.Table:
    """One call of each function, with the kinds of arguments that its documentation names."""
    table: pa.Table = hpcvdj.generate("human_trb", 100, seed=1, productive=True)
    hpcvdj.generate("human_trb", like=frame, individual="donor")
    hpcvdj.simulate("mouse_trb", 100, seed=1, n_lengths=range(3))
    fit = hpcvdj.infer(frame, "human_trb", rows="all", hold_out=0.1, errors=True, backend="cpu")
    hpcvdj.write_model(fit.model, "own", overwrite=True)
    factor = hpcvdj.infer_selection(["a.tsv", Path("b.tsv")], fit.model, seed=1)
    hpcvdj.write_model(factor.model, Path("own"))
    found = hpcvdj.sharing({"a": frame, "b": "b.tsv"}, "human_trb", unit="aa", draws=1000, metadata=frame, group="arm")
    found.table.to_pandas()
    hpcvdj.contamination(["a.tsv", "b.tsv"], "human_trb", max_pgen=1e-10)
    hpcvdj.enrich(frame, "human_trb", kappa=1.0, min_reads=2, control=frame)
    hpcvdj.count(frame, "mouse_trb", max_n="all", method="direct")
    hpcvdj.count("a.tsv", ["human_tra", Path("t.tsv")])
    hpcvdj.pgen(["TGTTTT"], "human_trb", genes="any", alphabet={"x": ["D", "E"]})
    hpcvdj.explain("TGTTTT", "TRBV1", "TRBJ1-1", "mouse_trb", max_n=4).most_direct(3)
    hpcvdj.likely_scenarios("TGTTTT", "human_trb", v_call="TRBV2", j_call="TRBJ2-1").as_json()
    hpcvdj.model_tables("human_trb")["v_choice"]
    hpcvdj.model_from_sonia(Path("human_T_beta"), backend="cpu").require_selection()
    hpcvdj.compare_models("human_trb", fit.model).to_table()
    hpcvdj.read_germline("human", max_p=4, d_alleles="all")
    hpcvdj.germline("human_trb")
    hpcvdj.load_model(Path("own"), pseudogenes=True)
    hpcvdj.read_table("a.tsv", format="airr", columns={"junction": "x"})
    hpcvdj.convert(["a.tsv", Path("b")], "c.parquet", overwrite=True)
    hpcvdj.translate(["ACG"])
    hpcvdj.report(["a.h5", Path("b.tsv")], "r.html", overwrite=True)
    with hpcvdj.open("a.h5") as result:
        result.select(sequence_id="a").to_pandas()
    with hpcvdj.motifs.compare("a.fasta", k=8, d=1, min_score=0.2) as motifs:
        motifs.to_table()
    hpcvdj.motifs.compare(["ACGT", "GATT"], "o.h5", k=8, d=1, strands="both")
    return table
