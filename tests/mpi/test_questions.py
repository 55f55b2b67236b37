"""What questions about tables answer does not depend on the number of ranks: see test_ranks.py."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hpcvdj.association.question import AssociationQuestion
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.chance.dealing import OwnTables, deal
from hpcvdj.chance.question import read_rows
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.cohorts.contamination_question import ContaminationQuestion
from hpcvdj.cohorts.settings import ContaminationSettings, Naming, SharingSettings
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.enrichment.question import EnrichmentQuestion
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.generation.generate import generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.inference.parameters import parameters
from hpcvdj.inference.selection_question import SelectionQuestion
from hpcvdj.inference.settings import InferenceSettings, SelectionSettings
from hpcvdj.inference.tables import infer_tables, reading_for
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.repertoires.formats.format import BY_HEADER
from hpcvdj.repertoires.inputs import together_of
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.table import table_at, table_of
from hpcvdj.runs import inputs as run_inputs
from hpcvdj.runs.run import Run
from tests.mpi.ranks import ON_RANKS

pytestmark = ON_RANKS


@cache
def individuals():
    """Tables of six individuals, of which two have copies of others' improbable junctions, and two share samples."""
    model = load_model(model_paths()["human_trb_m15"])
    drawn = pa.Table.from_batches(
        list(generate(model, GenerationSettings(5_000, seed=3, productive=True), open_backend("cpu"), Run()))
    )
    rng, size = np.random.default_rng(4), len(drawn) // 6
    tables = {}
    for k in range(6):
        own = drawn.slice(k * size, size).select(["v_call", "j_call", "junction"])
        own = own.append_column("duplicate_count", pa.array(2 + rng.geometric(0.02, len(own))))
        copied = drawn.slice((k + 1) % 6 * size, 30 * (k in (1, 3))).select(["v_call", "j_call", "junction"])
        copied = copied.append_column("duplicate_count", pa.array(np.ones(len(copied), dtype=np.int64)))
        own = pa.concat_tables([own, copied])
        tables[f"i{k}"] = own.append_column("sequence_id", pa.array([f"r{row}" for row in range(len(own))]))
    return model, tables


METADATA = pa.table({"name": [f"i{k}" for k in range(6)], "ill": list("nnnyyy"), "age": [3, 1, 4, 1, 5, 9]})

QUESTIONS = {
    "sharing": SharingQuestion(Naming(), SharingSettings(draws=1_000, q=0.5, backend="cpu")),
    "sharing-nt": SharingQuestion(
        Naming(), SharingSettings(unit="nt", min_individuals=1, draws=1_000, q=0.5, backend="cpu")
    ),
    "sharing-aa": SharingQuestion(Naming(), SharingSettings(unit="aa", draws=1_000, backend="cpu")),
    "contamination": ContaminationQuestion(Naming(), ContaminationSettings(draws=1_000, min_low=10, backend="cpu")),
    "associate-ball": AssociationQuestion(
        Donors(metadata=METADATA, case={"ill": "y"}),
        AssociationSettings(unit="ball", min_individuals=2, max_p=1.0, draws=1_000, backend="cpu"),
    ),
    "associate": AssociationQuestion(
        Donors(metadata=METADATA, case={"ill": "y"}, trend="age"),
        AssociationSettings(unit="v-aa", min_individuals=2, max_p=1.0, draws=1_000, backend="cpu"),
    ),
}


def compared(name, run):
    """Root's answer to a question about the individuals, and its facts."""
    question, (model, tables) = QUESTIONS[name], individuals()
    given = [table_of(table, question.opening(), individual) for individual, table in tables.items()]
    rows = read_rows(question, given, model, Checks(), run)
    answer, blocks = question.answer_in_blocks(rows, model, run)
    table = None if blocks is None else blocks.on_root()
    if answer is None:
        return None
    return answer if table is None else replace(answer, table=table), question.facts(answer, rows)


@cache
def compared_alone(name):
    """What root computes without the others."""
    return compared(name, Run())


@pytest.mark.parametrize("name", QUESTIONS)
def test_comparisons_of_individuals_do_not_depend_on_ranks(run, name, monkeypatch):
    """Each rank reads some tables, and has the rows of some amino acids."""
    monkeypatch.setattr("hpcvdj.cohorts.sharing.PRIVATE", 2_000)
    monkeypatch.setattr("hpcvdj.cohorts.sharing.MOST_PUBLIC", 100)
    if name != "associate":
        # Root compares rows with the model, the same for each question: once with so many that draws are compared, too.
        monkeypatch.setattr("hpcvdj.chance.check.SAMPLE", 100)
    with monkeypatch.context() as few:
        few.setattr("hpcvdj.chance.dealing.ROWS_AT_ONCE", 300)
        few.setattr("hpcvdj.chance.dealing.ROWS_TOGETHER", 250)
        few.setattr("hpcvdj.results.blocks.BLOCK_ROWS", 50)
        found = compared(name, run)
    assert (found is not None) == run.is_root
    if found is not None:
        alone = compared_alone(name)
        assert found[0].table.num_rows > 10
        assert found[0].table.equals(alone[0].table)
        assert json.dumps(found[1], default=np.ndarray.tolist) == json.dumps(alone[1], default=np.ndarray.tolist)
        for further in ("junctions", "donors", "copies"):
            if hasattr(alone[0], further):
                assert getattr(found[0], further) == getattr(alone[0], further)


def dealt_rows(inputs, model, run):
    """The rows of all ranks, sorted, and what became of the others, on root."""
    dealt = deal(inputs, model, run)
    whole = dealt.whole
    own = zip(
        whole.row.tolist(), whole.sample.tolist(), whole.reads.tolist(), whole.repertoire.words.tolist(), strict=True
    )
    every = run.gather(list(own))
    return every and (sorted(row for part in every for row in part), dealt.left_out, dealt.tally)


@pytest.mark.parametrize("change", ["", "an id twice", "a missing count"])
def test_ranks_read_pieces_of_a_table(run, tmp_path, change, monkeypatch):
    """Of a Parquet file; together again if rows of two pieces must be compared."""
    monkeypatch.setattr("hpcvdj.chance.dealing.ROWS_TOGETHER", 100)
    model, tables = individuals()

    def written():
        rows = pa.concat_tables(tables.values()).to_pandas()
        rows["sequence_id"] = [f"r{row}" for row in range(len(rows))]
        rows["repertoire_id"] = ["abc"[row % 3] for row in range(len(rows))]
        rows["duplicate_count"] = rows["duplicate_count"].astype("Int64")
        rows.loc[[0, 3_000], "v_call"] = "TRBV99"
        if change == "an id twice":
            rows.loc[4_200, "sequence_id"] = "r6"
        elif change:
            rows.loc[4_200, "duplicate_count"] = pd.NA
        rows.to_parquet(tmp_path / "t.parquet", row_group_size=170)
        return tmp_path / "t.parquet"

    reading = productive_reading(reads=True)
    inputs = run_inputs.surveyed(together_of([table_at(run.from_root(written))], reading), run)
    own = OwnTables(inputs, model, run, apart=True)
    assert own.apart == (run.ranks > 1)
    rows = run.gather(sum(unit.rows for unit in own.units))
    found = dealt_rows(inputs, model, run)
    if run.is_root:
        assert max(rows) - min(rows) <= 1
        assert found == dealt_rows(inputs, model, Run())
        assert sum(found[1].values()) == 2 + bool(change)


@cache
def misread():
    """Junctions of an individual, and copies with another base: some as large, some of another V with few reads."""
    model, tables = individuals()
    rows = tables["i0"].to_pandas()
    copies = rows[rows["duplicate_count"] >= 20].copy()
    copies["junction"] = [text[:12] + "ACGT"["GTCA".index(text[12])] + text[13:] for text in copies["junction"]]
    copies["sequence_id"] += "m"
    near = copies.iloc[:60]
    copies["v_call"] = np.roll(copies["v_call"], 1)
    copies["duplicate_count"] = 1
    return model, pa.Table.from_pandas(pd.concat([rows, copies.iloc[60:], near, rows.iloc[:50]]), preserve_index=False)


def neighbours(run, field, genes, with_control):
    """Root's answer about the neighbours of misread junctions, and its facts."""
    (model, table), (_, tables) = misread(), individuals()
    if field:
        table = table.append_column(field, pa.array(translate(table["junction"].to_pylist()))).drop_columns("junction")
    control = [table_of(tables[name], BY_HEADER, name) for name in ("i1", "i2")] if with_control else []
    kappa = 1.0 if field else None
    settings = EnrichmentSettings(kappa=kappa, min_neighbours=1, genes=genes, seed=1, max_q=0.9, backend="cpu")
    question = EnrichmentQuestion(settings, ClonotypeChoice(), control)
    rows = read_rows(question, [table_of(table, BY_HEADER)], model, Checks(keep_misfits=True), run)
    answer = question.answer(rows, model, run)
    if answer is None:
        return None
    clones = {name: sizes.recorded() for name, sizes in question.clones(answer, rows, model).items()}
    return answer, question.facts(answer, rows), clones


@cache
def neighbours_alone(field, genes, with_control):
    """What root finds without the others."""
    return neighbours(Run(), field, genes, with_control)


@pytest.mark.parametrize(
    ("field", "genes", "with_control"),
    [("", "call", False), ("", "any", False), ("junction_aa", "call", False), ("", "call", True)],
)
def test_neighbours_do_not_depend_on_ranks(run, field, genes, with_control, monkeypatch):
    """Each rank has the junctions of some V, J and length; of errors, any rank may have the original."""
    monkeypatch.setattr("hpcvdj.enrichment.enrich.SAMPLE", 300)
    monkeypatch.setattr("hpcvdj.chance.check.SAMPLE", 100)
    found = neighbours(run, field, genes, with_control)
    assert (found is not None) == run.is_root
    if found is not None:
        alone = neighbours_alone(field, genes, with_control)
        assert found[0].table.equals(alone[0].table)
        assert found[0].table.num_rows > 10
        assert found[1:] == alone[1:]
        assert found[1]["rows_left_out"]["junctions that another row has"] >= 50
        assert field or found[1]["rows_left_out"]["likely sequencing errors"] > 100


def selected(run):
    """What root says of the selection of the individuals' junctions."""
    question, (model, tables) = SelectionQuestion(SelectionSettings(max_junctions=1_000), "cpu"), individuals()
    given = [table_of(table, question.opening(), individual) for individual, table in tables.items()]
    rows = read_rows(question, given, model, Checks(), run)
    answer = question.answer(rows, model, run)
    if answer is None:
        return None
    factor = answer.selection
    return factor.text(""), factor.facts, answer.left_out, question.facts(answer, rows)


@cache
def selected_alone():
    """What root computes without the others."""
    return selected(Run())


def test_a_selection_factor_does_not_depend_on_ranks(run, monkeypatch):
    """Each rank has some of the junctions; which of them take part is drawn."""
    for name, value in {"FRESH": 2_000, "FEWEST_JUNCTIONS": 500, "FEWEST_OF_CLASS": 5}.items():
        monkeypatch.setattr(f"hpcvdj.inference.selection.{name}", value)
    with monkeypatch.context() as few:
        few.setattr("hpcvdj.chance.dealing.ROWS_TOGETHER", 250)
        found = selected(run)
    assert (found is not None) == run.is_root
    if found is not None:
        assert found == selected_alone()
        assert found[1]["rows"] + found[1]["held_out"] == 1_000


@cache
def to_infer_from():
    """A model, how it is inferred, and tables, of which one has no read counts."""
    model = load_model(model_paths()["human_trb_m15"])
    drawn = pa.Table.from_batches(list(generate(model, GenerationSettings(4_000, seed=5), open_backend("cpu"), Run())))
    drawn = drawn.select(["sequence_id", "v_call", "j_call", "junction"])
    plan, tables = InferenceSettings(iterations=2, bootstrap=2, only=("v_choice", "j_choice")), {}
    for k in range(5):
        own = pa.concat_tables([drawn.slice(600 * k, 600), drawn.slice(600 * k, 30)])
        reads = pa.array([None if k == 4 else 2 + row % 7 for row in range(len(own))], pa.int64())
        named = own.set_column(0, "sequence_id", pa.array([f"{k}.{row}" for row in range(len(own))]))
        tables[f"i{k}"] = named.append_column("duplicate_count", reads)
    return model, plan, tables


def inferred(run):
    """The model that root infers."""
    model, plan, tables = to_infer_from()
    reading = reading_for(plan)
    given = [table_of(table, reading.opening, name) for name, table in tables.items()]
    return infer_tables(together_of(given, reading), model, plan, run, "cpu")


@cache
def inferred_alone():
    """What root infers without the others."""
    return inferred(Run())


def test_an_inferred_model_does_not_depend_on_ranks(run):
    """Each rank reads some tables, and chooses rows of these."""
    found = inferred(run)
    assert (found is not None) == run.is_root
    if found is not None:
        alone = inferred_alone()
        for name in ("rows_read", "excluded", "left_out"):
            assert getattr(found, name) == getattr(alone, name)
        assert (found.rows_read, found.excluded) == (5 * 630, 630)
        assert found.left_out["junctions that the repertoire has in another row"] > 50
        for own, other in ((found.fit.model, alone.fit.model), (found.fit.errors, alone.fit.errors)):
            for values, others in zip(parameters(own), parameters(other), strict=True):
                assert np.array_equal(values, others)
