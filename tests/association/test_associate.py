"""`hpcvdj associate`: tests of a small cohort by loops, copies, units, ranks, and what it writes."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import hpcvdj
from hpcvdj.association.law import Laws, laws_of_cases, rates
from hpcvdj.association.multiplicity import q_values
from hpcvdj.association.question import AssociationQuestion
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.errors import HpcvdjWarning, InputError
from hpcvdj.repertoires.writers import write_table
from tests.association.cohort import BATCH, CASE, DONORS, asked, carriers_by_loops, rows_of
from tests.association.drawn import GENES, metadata
from tests.commands import error_line, hpcvdj_command
from tests.report.conftest import Page

pytestmark = pytest.mark.olga


@pytest.mark.slow
def test_rows_are_those_of_loops_over_donors(answer, tables):
    has = {key: own for key, own in carriers_by_loops(tables).items() if len(own) >= 3}
    rows = {(row["v_call"], row["j_call"], row["junction_aa"]): row for row in answer.table.to_pylist()}
    assert rows.keys() == has.keys()
    # Nobody shares copies, so no sequence is doubted.
    assert (answer.carriers.group == -1).all()
    assert not answer.carriers.has.reads.any()
    assert answer.table["likely_copy"].null_count == 0
    least = {}
    for key, own in has.items():
        row, law = rows[key], {0: 1.0}
        for name in ("x", "y"):
            inside = np.flatnonzero(name == BATCH)
            m = sum(k in own for k in inside)
            first, mass = laws_of_cases(answer.sizes[inside], CASE[inside], np.array([m]))[0]
            law = {a + first + b: sum(law.get(a + first + b - first - c, 0) * p for c, p in enumerate(mass.tolist()))
                   for a in law for b in range(len(mass))}  # fmt: skip
        cases = sum(CASE[k] for k in own)
        assert (row["carriers"], row["case_carriers"]) == (len(own), cases)
        assert row["control_carriers"] == len(own) - cases
        assert row["p_value"] == pytest.approx(sum(p for a, p in law.items() if a >= cases), rel=1e-9)
        assert row["expected"] == pytest.approx(sum(a * p for a, p in law.items()), rel=1e-9)
        expected = stats.hypergeom.sf(cases - 1, DONORS, 20, len(own))
        assert row["p_fisher"] == pytest.approx(expected, rel=1e-9)
        assert row["individuals"] == ",".join(f"d{k:03}" for k in sorted(own))
        least[key] = law[max(law)]
    number = 1
    while sum(own <= 0.05 / number for own in least.values()) > number:
        number += 1
    reaching = [key for key, own in least.items() if own <= 0.05 / number]
    assert sorted(reaching) == sorted(key for key, row in rows.items() if row["q_value"] is not None)
    q = q_values(np.array([rows[key]["p_value"] for key in reaching]))
    assert [rows[key]["q_value"] for key in reaching] == pytest.approx(q.tolist())


@pytest.mark.slow
def test_what_a_hit_needs(tables, model):
    """A sequence of so many carriers and cases is a hit if no other one is, and with one case fewer it is none."""
    answer = asked(tables, model)
    question = AssociationQuestion(Donors(metadata=metadata(CASE), case={"disease": "ill"}), AssociationSettings())
    (facts,) = question.facts(answer, rows_of(answer))["phenotypes"]
    needs, tested = facts["a_hit_needs"], facts["tested"]
    assert tested == int(answer.tested[0].kept.sum()) > 10
    assert [need["carriers"] for need in needs] == sorted(need["carriers"] for need in needs)
    assert all(b["carriers"] >= 2 * a["carriers"] for a, b in pairwise(needs))
    rows = [row for row in answer.table.to_pylist() if row["q_value"] is not None]
    assert needs[0]["carriers"] == min(row["carriers"] for row in rows)
    for need in needs:
        first, mass = laws_of_cases(answer.sizes, CASE, np.array([need["carriers"]]))[0]
        enough, fewer = (mass[need["cases"] - first - k :].sum() for k in (0, 1))
        assert enough <= 0.05 / tested < fewer
        assert need["expected"] == pytest.approx(((first + np.arange(len(mass))) * mass).sum())
    summary = [text for _, text in AssociationQuestion(None, AssociationSettings()).summary(answer)]
    first = needs[0]
    assert any(text.startswith(f"a single hit needs {first['cases']} cases among {first['carriers']} carriers (")
               for text in summary)  # fmt: skip


def hits_of(answer, max_q=0.05):
    return {"|".join((row["v_call"], row["j_call"], row["junction_aa"]))
            for row in answer.table.to_pylist() if row["q_value"] is not None and row["q_value"] <= max_q}  # fmt: skip


@pytest.mark.slow
def test_planted_sequences_are_hits_and_tell_cases_from_controls(answer, pool, planted):
    names = set(pool.names[list(planted)])
    hits = hits_of(answer)
    assert len(hits & names) >= 4
    assert len(hits - names) <= 1
    assert answer.hits == len(hits)
    assert answer.auc.area > 0.9


@pytest.mark.slow
def test_scores_are_those_of_hits_found_without_the_donor(answer):
    (own,) = answer.tested
    donors = answer.donors.to_pylist()
    rows = [row for row in answer.table.to_pylist() if row["q_value"] is not None]
    holders = [{int(name[1:]) for name in row["individuals"].split(",")} for row in rows]
    for donor in (0, 1, 13):
        carried, expected, variance = 0, 0.0, 0.0
        others = np.array([k for k in range(DONORS) if k != donor])
        p, chances = np.empty((2, len(holders)))
        for k, held in enumerate(holders):
            numbers = np.array([[sum(k in held for k in others if BATCH[k] == name) for name in ("x", "y")]])

            def of(k, own, others=others):
                inside = others[BATCH[others] == ("x", "y")[k]]
                return laws_of_cases(answer.sizes[inside], CASE[inside], own)

            p[k] = Laws.given(numbers, of).tails(np.array([sum(CASE[k] for k in held if k != donor)]))[0][0]
            place = int(BATCH[donor] == "y")
            inside = others[BATCH[others] == BATCH[donor]]
            chances[k] = -np.expm1(-rates(answer.sizes[inside], numbers[0, place : place + 1])[0] * answer.sizes[donor])
        ranked = np.sort(p)
        below = np.flatnonzero(ranked * own.kept.sum() / np.arange(1, len(p) + 1) <= 0.05)
        for k, held in enumerate(holders):
            if len(below) and p[k] <= ranked[below[-1]] and 0 < chances[k] < 1:
                carried += donor in held
                expected, variance = expected + chances[k], variance + chances[k] * (1 - chances[k])
        assert donors[donor]["carried"] == carried
        assert donors[donor]["expected"] == pytest.approx(expected)
        assert donors[donor]["score"] == pytest.approx((carried - expected) / np.sqrt(variance))
        assert donors[donor]["stratum"] == BATCH[donor]


@pytest.mark.slow
def test_without_depth_it_is_fishers_test(tables, model):
    found = asked(tables, model, depth="none").table
    np.testing.assert_allclose(found["p_value"].to_numpy(), found["p_fisher"].to_numpy(), rtol=1e-9)


@pytest.mark.slow
def test_a_trend_finds_what_older_donors_have(pool, model):
    names = np.flatnonzero((pool.numbers >= 12) & (pool.numbers <= 20))[:6]
    old = np.arange(DONORS) >= DONORS // 2
    tables = pool.donors(np.full(DONORS, 300), old, {int(own): 80.0 for own in names})
    found = asked(tables, model, case=None, trend="age")
    best = found.table.slice(0, 6).to_pylist()
    assert {"|".join((row["v_call"], row["j_call"], row["junction_aa"])) for row in best[:4]} <= set(pool.names[names])
    assert all(row["z"] > 2 and row["p_value"] < 0.05 and row["odds_ratio"] is None for row in best)
    (own,) = found.tested
    assert stats.kstest(own.uniform, "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_units_without_genes_have_more_carriers(answer, tables, model):
    of_v = asked(tables, model, unit="v-aa", strata=("lane",)).table
    of_none = asked(tables, model, unit="aa", strata=("lane",)).table
    assert "j_call" not in of_v.column_names
    assert "v_call" not in of_none.column_names
    has = carriers_by_loops(tables)
    for table, key in ((of_v, lambda v, j, text: (v, text)), (of_none, lambda v, j, text: text)):
        held = {}
        for own, donors in has.items():
            held.setdefault(key(*own), set()).update(donors)
        rows = table.to_pylist()
        assert len(rows) == sum(len(donors) >= 3 for donors in held.values())
        for row in rows:
            known = len(held[key(row.get("v_call"), None, row["junction_aa"])])
            assert row["carriers"] <= known if row["likely_copy"] else row["carriers"] == known
    # Without J genes a sequence is as probable as with all of them together.
    some = of_v.slice(0, 5).to_pylist()
    every_j = [{"v_call": row["v_call"], "j_call": j, "junction_aa": row["junction_aa"]}
               for row in some for j in sorted({key[1] for key in has})]  # fmt: skip
    with_j = hpcvdj.pgen(pa.Table.from_pylist(every_j), model, sequence="aa", backend="cpu")["pgen_aa"].to_pylist()
    for row in some:
        parts = [p for own, p in zip(every_j, with_j, strict=True)
                 if (own["v_call"], own["junction_aa"]) == (row["v_call"], row["junction_aa"])]  # fmt: skip
        assert row["pgen"] == pytest.approx(sum(parts), rel=1e-9)


@pytest.mark.slow
def test_amino_acids_alone_have_the_same_carriers(answer, tables, model):
    short = {name: table.select(GENES[:2]).append_column(
        "junction_aa", pa.array(hpcvdj.translate(table["junction"].to_pylist()))
    ) for name, table in tables.items()}  # fmt: skip
    short_answer = asked(short, model, strata=("lane",))
    question = AssociationQuestion(None, AssociationSettings())
    of_both = [dict(question.summary(each)).get("not known") for each in (short_answer, answer)]
    assert of_both == ["for want of nucleotides: likely copies, and samples of one person", None]
    found = short_answer.table
    keys = ["v_call", "j_call", "junction_aa"]
    both = [table.select([*keys, "carriers", "case_carriers"]).sort_by([(key, "ascending") for key in keys])
            for table in (found, answer.table)]  # fmt: skip
    assert both[0].to_pylist() == both[1].to_pylist()
    assert found["likely_copy"].null_count == len(found)


def written(tables, folder):
    folder.mkdir()
    for name, table in tables.items():
        write_table(folder / f"{name}.tsv", table.to_batches(), overwrite=False)
    about = metadata(CASE, lane=BATCH).to_pylist()
    path = folder.parent / "donors.tsv"
    path.write_text("\n".join("\t".join(row) for row in [list(about[0]), *(list(row.values()) for row in about)]))
    return path


@pytest.fixture(scope="module")
def words(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    about = written(tables, folder / "tables")
    return ["associate", folder / "tables", "-m", "human_igk", "--metadata", about, "--case", "disease=ill", "--strata",
            "lane", "--draws", "2000"]  # fmt: skip


@pytest.fixture(scope="module")
def hits(words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hits")
    hpcvdj_command(*words, "-o", folder / "hits.tsv", "--donors", folder / "donors.tsv")
    return folder / "hits.tsv"


@pytest.mark.slow
def test_any_number_of_ranks_writes_the_same(words, hits, tmp_path, on_ranks):
    balls = [*words, "--unit", "ball"]
    names = ["hits.tsv", "donors.tsv", "balls.tsv", "donors_by_balls.tsv"]
    here, there = ([folder / name for name in names] for folder in (tmp_path, hits.parent))
    for own, k in ((words, 0), (balls, 2)):
        on_ranks(3, *own, "-o", here[k], "--donors", here[k + 1])
    out, _ = hpcvdj_command(*balls, "-o", there[2], "--donors", there[3])
    assert "that 3 donors or more have, by their balls" in out
    for path, other in zip(here, there, strict=True):
        assert path.read_bytes() == other.read_bytes()
    assert "AUC" in out
    hpcvdj_command("report", there[2], "-o", tmp_path / "page.html")
    rows = Page((tmp_path / "page.html").read_text()).rows("associate_1_tests")
    members = there[2].read_text().splitlines()[0].split("\t").index("members")
    assert [str(row["members"]) for row in rows] == [
        line.split("\t")[members] for line in there[2].read_text().splitlines()[1 : len(rows) + 1]
    ]


@pytest.mark.slow
def test_the_command_writes_what_the_function_returns(hits, answer):
    facts = json.loads(hits.with_name("hits.tsv.json").read_text())
    assert facts["asked"] == {
        "case": {"disease": "ill"},
        "hla": None,
        "trend": None,
        "strata": ["lane"],
        "subject": None,
        "names": "donor",
    }
    (told,) = facts["phenotypes"]
    assert (told["cases"], told["strata"], told["hits"]) == (20, 2, answer.hits)
    assert facts["hits"] == answer.hits
    assert facts["auc"][0] == pytest.approx(answer.auc.area)
    lines = hits.read_text().splitlines()
    assert lines[0].split("\t") == answer.table.column_names
    assert len(lines) - 1 == sum(p <= 0.05 for p in answer.table["p_value"].to_pylist())


@pytest.mark.slow
def test_a_report_has_a_section(hits, tmp_path):
    hpcvdj_command("report", hits, "-o", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    assert len(page.rows("associate_1_tests")) == len(hits.read_text().splitlines()) - 1
    assert [row["phenotype"] for row in page.rows("associate_1_phenotypes")] == ["disease=ill"]
    assert {row["sample"] for row in page.rows("associate_1_qq_table")} == {"disease=ill", "disease=ill, Fisher"}
    assert "Do sequences go with the phenotype?" in page.text


@pytest.mark.slow
def test_annotate_reads_hits(hits, answer, tmp_path):
    first = answer.table.slice(0, 1).to_pylist()[0]
    record = "\t".join((first["v_call"], first["j_call"], first["junction_aa"], "E"))
    database = tmp_path / "database.tsv"
    database.write_text(f"v_call\tj_call\tjunction_aa\tepitope\n{record}\n")
    hpcvdj_command("annotate", hits, "--database", database, "-m", "human_igk", "-o", tmp_path / "annotated", "--kappa",
                   "1")  # fmt: skip
    assert first["junction_aa"] in (tmp_path / "annotated" / "hits.hits.tsv").read_text()


@pytest.mark.slow
def test_cases_of_one_batch_are_refused_in_one_line(tables, tmp_path):
    about = written({name: table.slice(0, 5) for name, table in tables.items()}, tmp_path / "cohort")
    text = about.read_text().replace("lane", "batch")
    lines = [line if line.startswith("donor") or "ill" not in line.split("\t")[1] or "healthy" in line
             else "\t".join([*line.split("\t")[:2], "x"]) for line in text.splitlines()]  # fmt: skip
    about.write_text("\n".join(lines))
    _, err = hpcvdj_command("associate", tmp_path / "cohort", "-m", "human_igk", "--metadata", about, "--case",
                            "disease=ill", "-o", tmp_path / "hits.tsv", code=2)  # fmt: skip
    assert "all 20 cases are of one batch (x)" in error_line(err)
    assert "--strata batch" in error_line(err)
    assert not (tmp_path / "hits.tsv").exists()


@pytest.mark.slow
def test_two_samples_of_one_person_are_refused(tables, model):
    with pytest.raises(InputError, match=r"d000 and d001 .*samples of one person"):
        asked({**tables, "d001": tables["d000"]}, model)


@pytest.mark.slow
def test_donors_that_share_nothing_have_no_tests(pool, model, tmp_path):
    tables = pool.donors(np.full(DONORS, 2), seed=3)
    found = asked(tables, model, min_individuals=DONORS)
    assert (found.hits, len(found.table), found.auc) == (0, 0, None)
    about = written(tables, tmp_path / "cohort")
    out, _ = hpcvdj_command("associate", tmp_path / "cohort", "-m", "human_igk", "--metadata", about, "--case",
                            "disease=ill", "-o", tmp_path / "hits.tsv", "--draws", "1000", "--min-individuals",
                            DONORS)  # fmt: skip
    assert "0 of 0 sequences can be hits" in out
    assert len((tmp_path / "hits.tsv").read_text().splitlines()) == 1
    hpcvdj_command("report", tmp_path / "hits.tsv", "-o", tmp_path / "page.html")
    assert "Nothing could be tested" in Page((tmp_path / "page.html").read_text()).text


def without_calls(table):
    return table.set_column(table.column_names.index("v_call"), "v_call", pa.array([""] * len(table)))


@pytest.mark.slow
def test_donors_without_a_junction_are_left_out(tables, model):
    """They were controls without any sequence: the AUC was of single donors, and Fisher's p-values were too small."""
    empty = {"d001", "d003", "d005", "d006"}
    asked_for = {"draws": 2_000, "backend": "cpu", "max_p": 1.0, "case": {"disease": "ill"},
                 "metadata": metadata(CASE)}  # fmt: skip
    there = hpcvdj.associate({name: table for name, table in tables.items() if name not in empty}, model, **asked_for)
    with pytest.warns(HpcvdjWarning, match="without a junction that takes part: d001, d003, d005"):
        found = hpcvdj.associate(
            {name: without_calls(table) if name in empty else table for name, table in tables.items()}, model,
            **asked_for,
        )  # fmt: skip
    assert found.table.equals(there.table)
    assert (found.hits, found.unmatched) == (there.hits, "")
    assert (found.auc.area, found.auc.interval) == (there.auc.area, there.auc.interval)
    summary = dict(AssociationQuestion(None, AssociationSettings()).summary(found))
    assert summary["disease=ill"].startswith(
        "19 cases among 36 donors (d001, d003, d005 and 1 more left out, without a junction); "
    )


@pytest.mark.slow
@pytest.mark.parametrize("side", [True, False])
def test_no_case_or_no_control_with_a_junction_is_one_line(tables, model, side):
    """A division by zero."""
    sides = zip(tables.items(), CASE, strict=True)
    few = {name: table if of == side else without_calls(table) for (name, table), of in sides}
    message = "all donors have one value" if side else "no donor with a junction has ill in disease; there are healthy"
    with pytest.raises(InputError, match=message):
        asked(few, model)


@pytest.mark.slow
def test_samples_of_one_subject_are_one_donor(tables, answer, model):
    samples = {f"{name}_{k}": table.slice(k * 100, None if k else 100)
               for name, table in tables.items() for k in range(2)}  # fmt: skip
    about = pa.table({
        "sample": list(samples), "who": [name.partition("_")[0] for name in samples],
        "disease": np.repeat(np.where(CASE, "ill", "healthy"), 2), "lane": np.repeat(BATCH, 2),
    })  # fmt: skip
    # In the order of the metadata, donors had the values of others.
    about = about.take(pa.array(np.random.default_rng(1).permutation(len(about))))
    found = hpcvdj.associate(samples, model, metadata=about, subject="who", case={"disease": "ill"}, strata=("lane",),
                             draws=2_000, backend="cpu", max_p=1.0)  # fmt: skip
    assert found.table.equals(answer.table)


def test_individuals_are_those_that_take_part(tables, model):
    """Donors without a value were among the `individuals` of sequences, but not among their `carriers`."""
    without = [k for k in range(DONORS) if k % 7 == 0]
    years = ["" if k in without else k for k in range(DONORS)]
    for unit in ("vj-aa", "ball"):
        found = asked(tables, model, columns={"years": years}, case=None, trend="years", unit=unit).table
        names = [text.split(",") for text in found["individuals"].to_pylist()]
        assert list(map(len, names)) == found["carriers"].to_pylist()
        assert not {f"d{k:03}" for k in without} & set().union(*names)
