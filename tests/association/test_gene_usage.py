"""hpcvdj.association.gene_usage: genes that cases or controls lack are named, chance names none."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.association.gene_usage import differing_genes, usage_text
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.chance.fit import COMMON
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.writers import write_table
from tests.asked import warnings_said
from tests.commands import hpcvdj_command
from tests.loci import exhaustive_but
from tests.selected import few_genes

LOCI = ["human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb"]
CASE = np.arange(10) % 2


def named(numbers, sizes, case=CASE):
    """The names of genes whose junctions in each donor are given."""
    donors = np.arange(len(case))
    phenotype = Phenotype("ill", "case", donors, case, np.zeros(len(case), int), ["all"])
    usage = {name: np.array(of_donors) for name, of_donors in numbers.items()}
    return [text.partition(" (")[0] for text in differing_genes(usage, np.array(sizes), phenotype)]


def test_by_hand():
    sizes = np.full(10, 100_000)
    numbers = {
        "none": np.full(10, 5_000), "absent in controls": 5_000 * CASE, "absent in cases": 5_000 * (1 - CASE),
        "ten times": 2_000 + 18_000 * CASE, "three times": 2_000 + 4_000 * CASE, "too rare": 400 * CASE,
        # One donor of five has no say.
        "one donor": np.where(np.arange(10) == 1, 50_000, 2_000 + 100 * CASE),
    }  # fmt: skip
    assert named(numbers, sizes) == ["absent in controls", "absent in cases", "ten times"]
    assert 0.004 < COMMON < 0.01
    # Shares count, not numbers.
    deep = sizes * (1 + 9 * CASE)
    assert named({"deep": 5_000 + 45_000 * CASE, "same": np.full(10, 10_000)}, deep) == ["same"]
    # Chance may make 6 of 4,000, and none of 5,000.
    assert named({"few": np.where(np.arange(10) == 3, 0, 6) * CASE}, np.full(10, 1_000)) == []
    assert named({"one control": np.full(4, 30)}, np.full(4, 100), np.array([1, 1, 1, 0])) == []
    sizes = np.full(10, 1_000)
    ill = Phenotype("x", "case", np.arange(10), CASE, CASE, [])
    (text,) = differing_genes({"V": 50 * CASE}, sizes, ill)
    assert text == "V (5 % of the junctions of cases, 0 % of controls)"
    assert usage_text({"V": 50 * CASE}, sizes, [ill]).startswith(
        f"cases and controls have other genes, by medians of donors: {text}; if they"
    )
    assert usage_text({"V": sizes}, sizes, [ill]) == ""
    # Of HLA alleles there are too many, and a gene may go with one.
    assert usage_text({"V": 50 * CASE}, sizes, [replace(ill, family="hla")]) == ""


def donors_of(model, number, rows, seed=5):
    drawn = hpcvdj.generate(model, number * rows, seed=seed, productive=True, backend="cpu")
    return {f"d{k}": drawn.slice(rows * k, rows) for k in range(number)}


def said_of(tables, model, **options):
    about = pa.table({"name": list(tables), "ill": ["yes" if case else "no" for case in CASE[: len(tables)]]})
    with warnings_said() as said:
        answer = hpcvdj.associate(tables, model, metadata=about, case={"ill": "yes"}, draws=1_000, backend="cpu",
                                  **options)  # fmt: skip
    assert ([answer.gene_usage] if answer.gene_usage else []) == [line for line in said if "have other genes" in line]
    return answer.gene_usage


def without(tables, gene, case):
    """The tables, in which one side lacks a gene."""
    column = f"{gene[3].lower()}_call"
    return {
        name: table.filter(pa.array([not call.startswith(f"{gene}*") for call in table[column].to_pylist()]))
        if CASE[k] == case else table
        for k, (name, table) in enumerate(tables.items())
    }  # fmt: skip


@pytest.mark.slow
def test_a_gene_that_one_side_lacks(tmp_path):
    model = few_genes()
    tables = donors_of(model, 6, 600)
    assert said_of(tables, model) == ""
    for gene, case in (("TRBV20-1", 0), ("TRBV20-1", 1), ("TRBJ2-7", 1)):
        said = said_of(without(tables, gene, case), model)
        assert said.count(" % of the junctions of cases") == 1
        assert f"donors: {gene} (" in said
    folder = tmp_path / "donors"
    folder.mkdir()
    for name, table in without(tables, "TRBV20-1", 0).items():
        write_table(folder / f"{name}.tsv", table.to_batches(), overwrite=False)
    (tmp_path / "about.tsv").write_text(
        "name\till\n" + "".join(f"d{k}\t{'yes' if CASE[k] else 'no'}\n" for k in range(6))
    )
    _, err = hpcvdj_command("associate", folder, "-m", "human_trb_m15", "--metadata", tmp_path / "about.tsv", "--case",
                            "ill=yes", "-o", tmp_path / "o.tsv", "--draws", "1000")  # fmt: skip
    assert "cases and controls have other genes" in err
    assert "TRBV20-1 (" in json.loads((tmp_path / "o.tsv.json").read_text())["gene_usage"]


@pytest.mark.exhaustive
@pytest.mark.olga
@pytest.mark.parametrize("name", exhaustive_but(LOCI, "human_igk"))
def test_of_every_locus(name):
    """Drawn donors differ by chance alone; then one side lacks the commonest gene."""
    model = load_model(name)
    tables = donors_of(model, 6, 1_000, seed=8)
    assert said_of(tables, model) == ""
    calls = pa.concat_tables(tables.values())["v_call"].to_pylist()
    genes = [call.partition("*")[0] for call in calls]
    commonest = max(set(genes), key=genes.count)
    assert f"donors: {commonest} (" in said_of(without(tables, commonest, 1), model)
