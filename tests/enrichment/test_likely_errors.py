"""`hpcvdj enrich`: likely sequencing errors are no neighbours, and what is said of junctions that were read once."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.api.tables import model_of
from hpcvdj.chance.clonotypes import distinct_junctions
from hpcvdj.chance.settings import ClonotypeChoice
from hpcvdj.enrichment.enrich import ReadOnce
from hpcvdj.enrichment.question import read_once_lines
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.writers import write_table
from tests.asked import enrich_table
from tests.cli.test_mpiexec import MPIEXEC
from tests.commands import hpcvdj_command
from tests.dealt import dealt_of

SETTINGS = EnrichmentSettings(backend="cpu")
NAMES = ("sequence_id", "v_call", "j_call", "junction", "duplicate_count")


@pytest.fixture(scope="module")
def model():
    return load_model(model_paths()["human_trb_m15"])


def with_reads(table, reads):
    return table.select(list(NAMES[:-1])).append_column("duplicate_count", pa.array(reads))


@pytest.fixture(scope="module")
def drawn(model):
    """A repertoire that recombination alone makes; one in three junctions has one read, one in 400 has 400 or more."""
    table = hpcvdj.generate(model, 20_000, seed=11, productive=True)
    return with_reads(table, np.round(np.random.default_rng(5).pareto(1, len(table)) + 1).astype(np.int64))


def misread(text, exchanges, rng):
    """The junction with some bases exchanged, productive."""
    while True:
        letters = list(text)
        for place in rng.choice(np.arange(6, len(text) - 6), exchanges, replace=False):
            letters[place] = rng.choice([base for base in "ACGT" if base != letters[place]])
        if "*" not in translate(["".join(letters)])[0]:
            return "".join(letters)


LARGE = "TGTGCCAGCAGTTACTCGGTACGAACGGATTACGAGCAGTACTTC"


def left_out(model, rows, **options):
    """The likely sequencing errors among rows of V, J, junction and reads."""
    ids = [str(k) for k in range(len(rows))]
    table = pa.table(dict(zip(NAMES, ([*ids], *map(list, zip(*rows, strict=True))), strict=True)))
    read = read_table(table, model, productive_reading(reads=True))
    return (
        distinct_junctions(dealt_of(read, model).whole, **options).clonotypes().left_out.get("likely sequencing errors")
    )


@pytest.mark.slow
@pytest.mark.parametrize("genes", [("TRBV6-5", "TRBJ2-7"), ("TRBV6-5", "TRBJ2-1"), ("TRBV9", "TRBJ2-7")])
def test_likely_errors_take_no_part(model, genes):
    one = LARGE.replace("TACGAGC", "TACGACC")
    two = one.replace("TACGACC", "TACGACG")
    three = two.replace("TCGGTAC", "TCGGTAG")
    four = three.replace("TCGGTAG", "TCGGTGG")
    for copy, times in ((one, 20), (two, 400), (three, 8_000), (four, None)):
        for reads in (1, 3):
            enough = [("TRBV6-5", "TRBJ2-7", LARGE, (times or 10**9) * reads), (*genes, copy, reads)]
            assert left_out(model, enough) == (times is not None)
            assert left_out(model, enough, errors=True) is None
            if times is not None:
                assert left_out(model, [("TRBV6-5", "TRBJ2-7", LARGE, times * reads - 1), enough[1]]) == 0


def test_reads_of_the_same_genes_are_added_up(model):
    other = LARGE.replace("TACGAGC", "TACGACC")
    rows = [
        ("TRBV6-5", "TRBJ2-7", LARGE, 200),
        ("TRBV6-5*01", "TRBJ2-7*01", LARGE, 200),
        ("TRBV9", "TRBJ1-1", other, 20),
    ]
    assert left_out(model, rows) == 1
    assert left_out(model, [*rows, ("TRBV9", "TRBJ1-1*01", other, 1)]) == 0
    assert left_out(model, [*rows, ("TRBV9", "TRBJ1-2", other, 1)]) == 2, "those of other genes are not"


@pytest.fixture(scope="module")
def with_copies(model, drawn):
    """The drawn rows, a clone of 60,000 reads of a low probability, and its misread copies, called with other genes."""
    rng = np.random.default_rng(1)
    text = misread(LARGE, 3, rng)
    copies = {misread(text, 1 + k % 3, rng): k % 5 + 1 for k in range(30)}
    rows = [("clone", "TRBV6-5*01", "TRBJ2-7*01", text, 60_000)]
    for genes in (("TRBV6-6*01", "TRBJ2-7*01"), ("TRBV6-5*01", "TRBJ2-5*01"), ("TRBV6-5*01", "TRBJ2-7*01")):
        rows += [(f"copy{len(rows) + k}", *genes, copy, reads) for k, (copy, reads) in enumerate(copies.items())]
    copied = pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))).cast(drawn.schema)
    return pa.concat_tables([drawn, copied]), len(rows) - 1


@pytest.mark.exhaustive
def test_misread_copies_with_other_genes_are_no_hits(model, drawn, with_copies, tmp_path):
    table, copies = with_copies
    found = enrich_table(table, model, SETTINGS, ClonotypeChoice())
    assert found.hits == 0
    kept = enrich_table(table, model, SETTINGS, ClonotypeChoice(likely_errors=True))
    hits = kept.table.slice(0, kept.hits)
    assert set(zip(hits["v_call"].to_pylist(), hits["j_call"].to_pylist(), strict=True)) == {
        ("TRBV6-6", "TRBJ2-7"), ("TRBV6-5", "TRBJ2-5"), ("TRBV6-5", "TRBJ2-7"),
    }  # fmt: skip
    write_table(tmp_path / "t.tsv", table.to_batches(), overwrite=False)
    hpcvdj_command("enrich", tmp_path / "t.tsv", "-m", model.name, "-o", tmp_path / "o.tsv", "--backend", "cpu")
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    honest = distinct_junctions(dealt_of(read_table(drawn, model, productive_reading(reads=True)), model).whole)
    assert honest.errors.sum() < 0.002 * len(drawn)
    assert facts["rows_left_out"]["likely sequencing errors"] == copies + honest.errors.sum()
    assert facts["hits"] == 0


@pytest.mark.olga
@pytest.mark.parametrize(("name", "most"), [("human_trb", 0.0005), ("mouse_tra", 0.02), ("human_igk", 0.06)])
def test_few_junctions_without_errors_are_taken_for_errors(name, most):
    """Three in four junctions have one read, 1 % have 20 or more, as of a donor; results/likely_errors has more."""
    model = model_of(name)
    read = read_table(hpcvdj.generate(model, 20_000, seed=1, productive=True), model, productive_reading())
    uniform = np.random.default_rng(7).random(20_000)
    reads = np.floor(np.exp(np.interp(-np.log(uniform), [0, 1.4, 4.6, 9.3], np.log([1, 2, 20, 8_000])))).astype(
        np.int64
    )
    assert (reads == 1).mean() == pytest.approx(0.75, abs=0.02)
    assert (reads >= 20).mean() == pytest.approx(0.01, abs=0.002)
    errors = distinct_junctions(dealt_of(replace(read, reads=reads[read.row]), model).whole).errors
    assert errors is not None
    assert errors.mean() < most


@pytest.fixture(scope="module")
def read_once(model, drawn):
    """Two planted groups of junctions beside drawn ones: of three reads each, and of one; most others have one read."""
    rng = np.random.default_rng(3)
    rows = []
    for reads, genes in ((3, ("TRBV6-5*01", "TRBJ2-7*01")), (1, ("TRBV9*01", "TRBJ2-7*01"))):
        text = misread(LARGE, 3, rng)
        rows += [(f"p{reads}_{k}", *genes, misread(text, 1, rng), reads) for k in range(12)]
    table = pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))).cast(drawn.schema)
    reads = np.where(np.arange(len(drawn)) % 4 < 3, 1, 2)
    return pa.concat_tables([with_reads(drawn, reads), table])


def hits_of(found):
    return set(found.table["v_call"].to_pylist()[: found.hits])


@pytest.mark.exhaustive
def test_most_junctions_have_one_read(model, read_once, tmp_path):
    found = enrich_table(read_once, model, SETTINGS, ClonotypeChoice())
    assert hits_of(found) == {"TRBV6-5", "TRBV9"}
    twice = enrich_table(read_once, model, SETTINGS, ClonotypeChoice(min_reads=2))
    assert hits_of(twice) == {"TRBV6-5"}
    assert twice.read_once is None
    once = distinct_junctions(dealt_of(read_table(read_once, model, productive_reading(reads=True)), model).whole)
    number = int((once.reads[~once.errors] == 1).sum())
    assert found.read_once == ReadOnce(number, twice.hits)
    assert 0 < twice.hits < found.hits
    said = f"most junctions ({number:,} of {int((~once.errors).sum()):,}) have one read, as many sequencing errors do"
    hits = f"with which there are {twice.hits} hits"
    with pytest.warns(hpcvdj.HpcvdjWarning) as warned:
        again = hpcvdj.enrich(read_once, model, backend="cpu")
    messages = [str(own.message) for own in warned]
    assert f"{said}; consider min_reads=2, with which there are {twice.hits} hits" in messages
    assert again.read_once == found.read_once
    assert again.table.equals(found.table)
    write_table(tmp_path / "a.tsv", read_once.to_batches(), overwrite=False)
    words = ("-m", model.name, "--backend", "cpu")
    out, _ = hpcvdj_command("enrich", tmp_path / "a.tsv", *words, "-o", tmp_path / "o.tsv")
    assert out.splitlines()[-2].strip() == f"{said}; consider --min-reads 2, {hits}"
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert facts["read_once"] == {"junctions": number, "hits_without": twice.hits}
    assert facts["hits"] == found.hits
    write_table(tmp_path / "b.tsv", read_once.slice(0, 3000).to_batches(), overwrite=False)
    both = (tmp_path / "a.tsv", tmp_path / "b.tsv")
    out, _ = hpcvdj_command("enrich", *both, *words, "--kappa", 1, "-o", tmp_path / "out")
    lines = sorted(out.splitlines()[:-1])
    assert ["most junctions (" in line for line in lines] == [True, False], "the second table has no hit"


@pytest.mark.exhaustive
def test_nothing_is_said_if_half_of_the_junctions_have_more_reads(model, drawn):
    settings = EnrichmentSettings(backend="cpu", kappa=1.0)
    for once, expected in ((1000, None), (1001, ReadOnce(1001, 0))):
        table = with_reads(drawn.slice(0, 2000), np.where(np.arange(2000) < once, 1, 2))
        assert enrich_table(table, model, settings, ClonotypeChoice()).read_once == expected
        assert enrich_table(table, model, settings, ClonotypeChoice(likely_errors=True)).read_once == expected
    without = table.drop_columns("duplicate_count")
    assert enrich_table(without, model, settings, ClonotypeChoice()).read_once is None


def test_no_row_at_all(model, drawn):
    with pytest.raises(InputError, match=r"no clonotype is left \(no row could be read\)"):
        enrich_table(drawn.slice(0, 0), model, SETTINGS, ClonotypeChoice())


@pytest.mark.slow
@pytest.mark.parametrize("twice", [pytest.param(0, marks=pytest.mark.exhaustive), 100])
def test_too_few_junctions_with_two_reads(model, drawn, twice):
    """None is left, or too few to estimate kappa."""
    table = with_reads(drawn.slice(0, 2000), np.where(np.arange(2000) < twice, 2, 1))
    with pytest.warns(hpcvdj.HpcvdjWarning) as warned:
        found = hpcvdj.enrich(table, model, backend="cpu")
    assert found.read_once == ReadOnce(2000 - twice, None)
    assert found.hits == 0
    assert not any("one read" in str(own.message) for own in warned)
    line = read_once_lines(replace(found, hits=1))[0]
    assert line.endswith("the others alone (min_reads=2) cannot be tested")
    with pytest.raises(
        InputError,
        match=r"no clonotype is left \(2,000 fewer than 2 reads\)" if not twice else "too few to estimate selection",
    ):
        hpcvdj.enrich(table, model, backend="cpu", min_reads=2)


@pytest.mark.slow
def test_with_a_control_both_are_tested_again(model, drawn, read_once):
    control = with_reads(drawn.slice(10_000), np.where(np.arange(10_000) % 2, 1, 2))
    own = read_once.take(np.r_[np.arange(10_000), np.arange(20_000, len(read_once))])
    found = enrich_table(own, model, SETTINGS, ClonotypeChoice(), control)
    twice = enrich_table(own, model, SETTINGS, ClonotypeChoice(min_reads=2), control)
    assert found.read_once is not None
    assert found.read_once.hits_without == twice.hits
    without = enrich_table(own, model, SETTINGS, ClonotypeChoice(), control.drop_columns("duplicate_count"))
    assert without.read_once is None, "a control without reads cannot be cut"


@pytest.mark.exhaustive
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
@pytest.mark.parametrize("twice", [100, 5_000])
def test_ranks_agree_on_the_second_test(model, read_once, tmp_path, twice):
    """The others are too few, which only root finds out; or they are tested."""
    reads = np.where(np.arange(20_000) < twice, 2, 1)
    write_table(tmp_path / "t.tsv", with_reads(read_once.slice(0, 20_000), reads).to_batches(), overwrite=False)
    words = ["enrich", tmp_path / "t.tsv", "-m", model.name, "--backend", "cpu"]
    hpcvdj_command(*words, "-o", tmp_path / "one.tsv")
    command = [MPIEXEC, "-n", 3, sys.executable, "-m", "hpcvdj", *words, "-o", tmp_path / "many.tsv"]
    subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=200)
    assert (tmp_path / "many.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
    one, many = (json.loads((tmp_path / f"{name}.tsv.json").read_text())["read_once"] for name in ("one", "many"))
    assert one == many
    assert (one["hits_without"] is not None) == (twice == 5_000)
