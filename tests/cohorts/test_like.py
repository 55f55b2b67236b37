"""`hpcvdj generate --like`: a cohort of the same sizes, in which nothing is found."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hpcvdj
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.writers import write_table
from tests.cohorts.drawn import cohort_in, drawn, with_individuals
from tests.commands import error_line, hpcvdj_command
from tests.rows import read_batches


@pytest.fixture(scope="module")
def model():
    return load_model("human_trb_m15")


@pytest.fixture(scope="module")
def cohort(model):
    """Two thousand and five thousand junctions; a fifth of the second's rows are there twice."""
    rows = with_individuals(drawn(model, 7_000, 3), [2_000, 5_000])
    rows = pa.concat_tables(
        [rows, rows.slice(6_000).set_column(0, "sequence_id", pa.array([f"x{k}" for k in range(1_000)]))]
    )
    return rows.append_column("duplicate_count", pa.array(np.random.default_rng(1).integers(2, 50, len(rows))))


@pytest.mark.exhaustive
def test_sizes_and_reads(model, cohort):
    made = hpcvdj.generate(model, like=cohort, seed=5, backend="cpu")
    assert set(made["repertoire_id"].to_pylist()) == {"a", "b"}
    sizes = cohort_in(made, model).has.sizes
    assert sizes.tolist() == pytest.approx([2_000, 5_000], rel=0.01)
    assert min(made["duplicate_count"].to_pylist()) >= 2
    assert pc.all(made["productive"]).as_py()
    assert made.equals(hpcvdj.generate(model, like=cohort, seed=5, backend="cpu"))
    assert not made.equals(hpcvdj.generate(model, like=cohort, seed=6, backend="cpu"))
    found = hpcvdj.sharing(made, model, backend="cpu", draws=4_000)
    assert found.hits == 0
    assert found.pairs.standing_out == []


@pytest.mark.slow
@pytest.mark.olga
def test_recombinations_that_are_made_again():
    """Of kappa, more recombinations are drawn than distinct junctions, so that there are as many of these."""
    model = load_model("human_igk")
    rows = with_individuals(drawn(model, 30_000, 3), [10_000, 20_000])
    made = hpcvdj.generate(model, like=rows, seed=1, backend="cpu")
    wanted, found = (cohort_in(table, model).has.sizes for table in (rows, made))
    assert found.tolist() == pytest.approx(wanted.tolist(), rel=0.02)
    assert len(made) > 1.1 * wanted.sum()
    assert "duplicate_count" not in made.column_names


@pytest.mark.slow
def test_the_command(cohort, tmp_path):
    for name in "ab":
        own = cohort.filter(pc.equal(cohort["repertoire_id"], name)).drop_columns("repertoire_id").combine_chunks()
        (tmp_path / "in").mkdir(exist_ok=True)
        write_table(tmp_path / "in" / f"{name}.tsv", own.to_batches(), overwrite=False)
    words = ["generate", "-m", "human_trb_m15", "--like", tmp_path / "in", "--seed", 5, "--backend", "cpu"]
    out, _ = hpcvdj_command(*words, "-o", tmp_path / "o.tsv")
    assert "junctions  7,0" in out
    table = pa.Table.from_batches(read_batches(tmp_path / "o.tsv"))
    made = hpcvdj.generate(
        "human_trb_m15", like=[tmp_path / "in" / f"{name}.tsv" for name in "ab"], seed=5, backend="cpu"
    )
    assert table["junction"].to_pylist() == made["junction"].to_pylist()
    assert table["repertoire_id"].to_pylist() == made["repertoire_id"].to_pylist()


@pytest.mark.parametrize("convert", [lambda table: table.to_pandas(), lambda table: table])
def test_individuals_of_a_table_in_memory(cohort, convert):
    """That the option needs a cohort was asked of each cell of a data frame."""
    table = cohort.rename_columns(["who" if name == "repertoire_id" else name for name in cohort.column_names])
    made = hpcvdj.generate("human_trb_m15", like=convert(table), individual="who", backend="cpu")
    assert set(made["repertoire_id"].to_pylist()) <= {*table["who"].to_pylist()}


def test_one_individual(cohort, tmp_path):
    """It was refused because nobody could be compared."""
    write_table(tmp_path / "d.tsv", cohort.slice(0, 2_000).drop_columns("repertoire_id").to_batches(), overwrite=False)
    out, _ = hpcvdj_command("generate", "-m", "human_trb_m15", "--like", tmp_path / "d.tsv", "-o", tmp_path / "o.tsv")
    assert re.search(r"^junctions  (2,00|1,99)", out)
    made = hpcvdj.generate("human_trb_m15", like=tmp_path / "d.tsv", backend="cpu")
    assert set(made["repertoire_id"].to_pylist()) == {"d"}
    with pytest.raises(hpcvdj.InputError, match=r"only d has productive junctions .* two individuals or more are comp"):
        hpcvdj.sharing(made, "human_trb_m15", backend="cpu")


def test_individuals_of_no_cohort(tmp_path):
    """The option was ignored."""
    words = ["generate", "-m", "human_trb_m15", "-n", 2, "-o", tmp_path / "o.tsv", "--individual", "who"]
    message = "names individuals of --like; give this, too"
    assert error_line(hpcvdj_command(*words, code=2)[1]).endswith(f"--individual who: {message}")
    with pytest.raises(hpcvdj.InputError, match="individual='who': names individuals of like; give this, too"):
        hpcvdj.generate("human_trb_m15", 2, individual="who")
