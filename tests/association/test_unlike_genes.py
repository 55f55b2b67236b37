"""hpcvdj.association.unlike_genes: genes that cases or controls lack are named, chance names none."""

import json

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.association.phenotypes import Phenotype
from hpcvdj.association.unlike_genes import unlike_genes, unlike_text
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
    return [text.partition(" (")[0] for text in unlike_genes(usage, np.array(sizes), phenotype)]


def test_by_hand():
    sizes = np.full(10, 1_000)
    numbers = {
        "none": np.full(10, 50), "absent in controls": 50 * CASE, "absent in cases": 50 * (1 - CASE),
        "ten times": 20 + 180 * CASE, "three times": 20 + 40 * CASE, "too rare": 4 * CASE,
        # One donor of five has no say.
        "one donor": np.where(np.arange(10) == 1, 500, 20),
        # Nor has chance: 6 of 5,000 and none.
        "few": np.where(np.arange(10) == 3, 0, 6) * CASE,
    }  # fmt: skip
    assert named(numbers, sizes) == ["absent in controls", "absent in cases", "ten times"]
    assert 4 / 1_000 < COMMON < 6 / 1_000
    # Shares count, not numbers: the cases are ten times as deep.
    assert named({"deep": 50 + 450 * CASE}, sizes * (1 + 9 * CASE)) == []
    assert named({"one arm": np.full(4, 30)}, np.full(4, 100), np.array([1, 1, 1, 0])) == []
    (text,) = unlike_genes({"V": 50 * CASE}, sizes, Phenotype("x", "case", np.arange(10), CASE, CASE, []))
    assert text == "V (5 % of the junctions of cases, 0 % of controls)"
    assert unlike_text([]) == ""
    assert unlike_text([text]).startswith(f"cases and controls have other genes, by medians of donors: {text}; were")


def donors_of(model, number, rows, seed=5):
    drawn = hpcvdj.generate(model, number * rows, seed=seed, productive=True, backend="cpu")
    return {f"d{k}": drawn.slice(rows * k, rows) for k in range(number)}


def said_of(tables, model, **options):
    about = pa.table({"name": list(tables), "ill": ["yes" if case else "no" for case in CASE[: len(tables)]]})
    with warnings_said() as said:
        answer = hpcvdj.associate(tables, model, metadata=about, case={"ill": "yes"}, draws=1_000, backend="cpu",
                                  **options)  # fmt: skip
    assert ([answer.unlike] if answer.unlike else []) == [line for line in said if "have other genes" in line]
    return answer.unlike


def without(tables, gene, case):
    """The tables, in which one side lacks a V gene."""
    return {
        name: table.filter(pa.array([not call.startswith(f"{gene}*") for call in table["v_call"].to_pylist()]))
        if CASE[k] == case else table
        for k, (name, table) in enumerate(tables.items())
    }  # fmt: skip


def test_a_gene_that_one_side_lacks(tmp_path):
    model = few_genes()
    tables = donors_of(model, 6, 600)
    assert said_of(tables, model) == ""
    for case in (0, 1):
        said = said_of(without(tables, "TRBV20-1", case), model)
        assert said.count(" % of the junctions of cases") == 1
        assert "donors: TRBV20-1 (" in said
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
    assert "TRBV20-1 (" in json.loads((tmp_path / "o.tsv.json").read_text())["unlike_genes"]


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
