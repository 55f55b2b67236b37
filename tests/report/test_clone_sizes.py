"""How many reads clonotypes have: in the facts of every question as plain grouping gives it, and on the page."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

import hpcvdj
from hpcvdj.chance.clone_sizes import CloneSizes, added, by_name, counted
from hpcvdj.reports.page import write_report
from tests.commands import hpcvdj_command
from tests.report.conftest import Page

MODEL = "human_trb_m15"
VISITS = ("a", "b", "c")


def grouped(rows):
    """The sizes of clones of rows of (V allele, J allele, junction, reads), as facts have them."""
    reads = Counter()
    for v, j, junction, number in rows:
        reads[v.partition("*")[0], j.partition("*")[0], junction] += number
    sizes = sorted(Counter(reads.values()).items())
    return {"reads": [size for size, _ in sizes], "clonotypes": [often for _, often in sizes]}


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Three visits of a person, the rows of each: some junctions are in several rows, some with another allele, some
    rows are not productive; and the folder."""
    folder, rng = tmp_path_factory.mktemp("cohort"), np.random.default_rng(2)
    (folder / "in").mkdir()
    drawn = hpcvdj.generate(MODEL, 13_000, seed=8, productive=True, backend="cpu").to_pylist()
    # The last allele of the gene of each.
    last = {allele.partition("*")[0]: allele for allele in sorted({row["j_call"] for row in drawn})}
    other = {row["j_call"]: last[row["j_call"].partition("*")[0]] for row in drawn}
    assert any(allele != own for allele, own in other.items())
    rows = {}
    for k, name in enumerate(VISITS):
        own = [[row["v_call"], row["j_call"], row["junction"]] for row in drawn[k * 896 : k * 896 + 900]]
        own += [[v, j, junction] for v, j, junction in own[::7]] + [
            [v, other[j], junction] for v, j, junction in own[::9]
        ]
        rows[name] = [
            (*row, int(number)) for row, number in zip(own, rng.zipf(1.9, len(own)).clip(max=900), strict=True)
        ]
        lines = [[f"{name}{place}", *map(str, row)] for place, row in enumerate(rows[name])]
        lines += [[f"x{place}", *row[:2], row[2][:-1], "50"] for place, row in enumerate(own[:20])]
        header = ["sequence_id", "v_call", "j_call", "junction", "duplicate_count"]
        (folder / "in" / f"{name}.tsv").write_text("".join("\t".join(line) + "\n" for line in [header, *lines]))
    people = "".join(f"{name}\t{'case' if name == 'a' else 'control'}\tp{int(name == 'c')}\t{k}\n"
                     for k, name in enumerate(VISITS))  # fmt: skip
    (folder / "people.tsv").write_text(f"name\tis\twho\twhen\n{people}")
    known = ["v_call\tj_call\tjunction_aa\tepitope\tspecies"]
    known += [f"{row['v_call']}\t{row['j_call']}\t{row['junction_aa']}\tE{k % 4}\tHomoSapiens"
              for k, row in enumerate(drawn[:20])]  # fmt: skip
    (folder / "known.tsv").write_text("\n".join(known) + "\n")
    return rows, folder


def words_of(command, folder, target):
    """A command that asks about the cohort."""
    people = ["--metadata", folder / "people.tsv"]
    further = {
        "contamination": ["--min-low", "10"], "sharing": ["--draws", "2000"], "enrich": [],
        "associate": [*people, "--case", "is=case", "--draws", "2000"],
        "expansion": [*people, "--subject", "who", "--time", "when"],
        "annotate": ["--database", folder / "known.tsv", "--kappa", "1"],
    }[command]  # fmt: skip
    tables = folder / "in" / "b.tsv" if command == "enrich" else folder / "in"
    name = "associate" if command == "expansion" else command
    return [name, tables, "-m", MODEL, "--backend", "cpu", *further, "-o", target]


def facts_of(path):
    """The sizes of clones that the facts beside a table, or the tables of a folder, have."""
    tables = sorted(path.glob("*.json")) if path.is_dir() else [path.with_name(f"{path.name}.json")]
    return [json.loads(table.read_text())["clones"] for table in tables if not table.name.startswith(".")]


COMMANDS = ["contamination", "sharing", "associate", "expansion", "enrich", "annotate"]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_question_records_them(cohort, tmp_path, command):
    rows, folder = cohort
    expected = {name: grouped(own) for name, own in rows.items()}
    assert all(len(own["reads"]) > 10 for own in expected.values())
    several = {"enrich": [{"b": expected["b"]}], "annotate": [{name: expected[name]} for name in VISITS]}
    target = tmp_path / "annotated" if command == "annotate" else tmp_path / "o.tsv"
    words = words_of(command, folder, target)
    hpcvdj_command(*words)
    assert facts_of(target) == several.get(command, [expected])


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["sharing", *(pytest.param(own, marks=pytest.mark.exhaustive) for own in COMMANDS if own != "sharing")]
)
def test_ranks_find_the_same(cohort, tmp_path, command, on_ranks):
    rows, folder = cohort
    target = tmp_path / "annotated" if command == "annotate" else tmp_path / "o.tsv"
    on_ranks(3, *words_of(command, folder, target))
    found = {name: own for facts in facts_of(target) for name, own in facts.items()}
    assert found == {name: grouped(rows[name]) for name in ("b" if command == "enrich" else VISITS)}


@pytest.mark.slow
def test_the_page_has_them(cohort, tmp_path):
    """Whatever the command, each sample has its reads, at the depth of the smallest on the page."""
    rows, folder = cohort
    hpcvdj_command(*words_of("enrich", folder, tmp_path / "e.tsv"))
    hpcvdj_command(*words_of("sharing", folder, tmp_path / "s.tsv"))
    for files, names in ((["e.tsv"], "b"), (["s.tsv"], "abc"), (["e.tsv", "s.tsv"], "bac")):
        write_report([tmp_path / name for name in files], tmp_path / "page.html", overwrite=True)
        page = Page((tmp_path / "page.html").read_text())
        table = page.rows("samples_table")
        assert {row["sample"]: row["reads"] for row in table} == {
            name: sum(row[-1] for row in rows[name]) for name in names
        }
        assert len(table) == len(names)
        assert f"among {min(row['reads'] for row in table):,} reads of each sample" in page.text


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_accounts_for_each_row(cohort, tmp_path, command):
    """Rows read are used or left out, with the reason: each junction counts once, and some rows are not productive."""
    rows, folder = cohort
    hpcvdj_command(*words_of(command, folder, tmp_path / "o.tsv" if command != "annotate" else tmp_path / "o"))
    files = sorted((tmp_path / "o").glob("*.epitopes.tsv")) if command == "annotate" else [tmp_path / "o.tsv"]
    write_report(files, tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    told = re.search(r"([0-9,]+) rows read, ([0-9,]+) used, ([0-9,]+) left out: (.*?)\. The reasons", page.text)
    read, used, left_out = (int(number.replace(",", "")) for number in told.groups()[:3])
    reasons = {words: int(number.replace(",", "")) for number, words in
               re.findall(r"([0-9,]*[0-9]) ([a-z ]+)", re.sub(r"\(.*?\)", "", told[4]))}  # fmt: skip
    names = "b" if command == "enrich" else VISITS
    assert read == used + left_out == sum(len(rows[name]) + 20 for name in names)
    assert left_out == sum(reasons.values())
    assert reasons["not productive"] == 20 * len(names)
    distinct = sum(len({(v.partition("*")[0], j.partition("*")[0], junction) for v, j, junction, _ in rows[name]})
                   for name in names)  # fmt: skip
    assert reasons["with a junction that another row has"] == sum(len(rows[name]) for name in names) - distinct
    assert used == distinct - reasons.get("for other reasons ", 0)


@pytest.mark.slow
def test_tables_without_reads_have_none(cohort, tmp_path):
    _, folder = cohort
    (tmp_path / "in").mkdir()
    for name in VISITS:
        lines = (folder / "in" / f"{name}.tsv").read_text().splitlines()
        (tmp_path / "in" / f"{name}.tsv").write_text("".join(line.rpartition("\t")[0] + "\n" for line in lines))
    for command in ("sharing", "enrich"):
        hpcvdj_command(*words_of(command, tmp_path, tmp_path / f"{command}.tsv"))
        assert facts_of(tmp_path / f"{command}.tsv") == [{}]


def test_sizes_are_added_whatever_the_parts():
    rng = np.random.default_rng(5)
    sample, reads = rng.integers(0, 4, 300), rng.zipf(1.7, 300)
    cuts = np.array_split(np.arange(300), [20, 20, 150])
    parts = [counted(sample[own], reads[own]) for own in cuts]
    sizes = by_name(added(parts), list("abcde"))
    for k, name in enumerate("abcde"):
        own = CloneSizes.of(reads[sample == k])
        assert sizes[name].recorded() == own.recorded() == CloneSizes.from_recorded(own.recorded()).recorded()
        assert sizes[name].total == reads[sample == k].sum()
        for least in range(1, 95):
            assert sizes[name].at_least(least) == (reads[sample == k] >= least).sum()
