"""Reports of folders, and of unusual files: changed facts, amino acids beside nucleotides, tables of metadata."""

import json
import re
from dataclasses import asdict

import pandas as pd
import pyarrow as pa
import pytest

from hpcvdj.analysis.analyze import DONE, REFUSED
from hpcvdj.analysis.steps import Outcome
from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import translate
from hpcvdj.reports import charts
from hpcvdj.reports.elements import Figure, PageTable
from hpcvdj.reports.files import ANALYSIS
from hpcvdj.reports.settings import ReportSettings
from hpcvdj.results.facts import Targets, facts_path
from tests.commands import error_line, hpcvdj_command
from tests.report import examples

CHANGED = {
    "sharing": [
        {"q": {}, "tested": 0}, {"likely_copies": "x"}, {"individuals": [{"name": "a"}]}, {"standing_out": [[0, 99]]},
        {"auc": [1]},
    ],
    "contamination": [{"carry_over": [1]}, {"of_one_person": [[7, 8]]}, {"rate": [[1]]}],
    "expansion": [
        {"noise": {}}, {"noise": {"linear": "x", "quadratic": 1, "pairs_of_replicates": 1}}, {"pairs": [{}]},
        {"qq": {"expected": [1]}}, {"settings": {"max_q": "x"}}, {"individuals": [{}]}, {"inflation": "x"},
    ],
    "enrichment": [
        {"kappa": "x"}, {"qq": {"expected": [1]}}, {"settings": {"max_q": "x"}}, {"rows_left_out": 3},
        {"rows_excluded": [[]]}, {"tables": [7]}, {"fit": {"rows": 3}}, {"fit": {"rows": 3, "genes": [{}]}},
    ],
    "annotation": [
        {"kappa": "x"}, {"kappa": {}}, {"found": "x"}, {"qq": {"expected": [1]}}, {"settings": {"max_q": "x"}},
        {"tables": 7}, {"rows_excluded": [[]]}, {"decoys": [1]},
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "change"), [(kind, change) for kind, own in CHANGED.items() for change in own])
def test_facts_that_were_changed_are_named(tmp_path, report, findings, kind, change):
    path = getattr(examples, kind)(tmp_path / "changed.tsv", **change)
    with pytest.raises(InputError, match=rf"{re.escape(path.name)}\.json: is damaged"):
        report([findings[0], path])


def test_facts_that_name_no_tables(tmp_path, report):
    """Whatever was made of which table, the page is written."""
    path = examples.enrichment(tmp_path / "changed.tsv", tables=[])
    assert report([path]).text


def test_nucleotides_beside_amino_acids(tmp_path, report):
    """Each file by what it has: they were listed with the columns of the first one."""
    nt = examples.probabilities(tmp_path / "nt.tsv")
    only_nt, aa = tmp_path / "only_nt.tsv", tmp_path / "aa.tsv"
    frame = pd.read_csv(nt, sep="\t")
    frame.drop(columns="pgen_aa").to_csv(only_nt, sep="\t", index=False)
    proteins = frame["junction"].map(lambda text: translate([text])[0])
    frame.assign(junction_aa=proteins).drop(columns=["junction", "pgen_nt"]).to_csv(aa, sep="\t", index=False)
    for files in ([only_nt, aa], [aa, only_nt], [nt, only_nt, aa]):
        page = report(files)
        assert {row["sample"] for row in page.rows("pgen_top_pgen_nt")} == {path.stem for path in files} - {"aa"}
        assert {row["sample"] for row in page.rows("pgen_top_pgen_aa")} == {"aa"}
        assert all(set(row["cdr3"]) <= set("ACGT") for row in page.rows("pgen_top_pgen_nt"))
        assert "cdr3" not in page.rows("pgen_top_pgen_aa")[0]
        assert page.rows("pgen_clonotypes_pgen_aa")


def test_each_table_of_enrich_has_its_largest_q(tmp_path, report):
    files = [
        examples.enrichment(
            tmp_path / f"{q}.tsv", sample=f"donor{q}", settings={"kappa": 1 if q == 0.05 else None, "max_q": q}
        )
        for q in (0.001, 0.05)
    ]
    text = report(files).text
    assert "hits with a q-value of at most 0.001 or 0.05 in 2 of 2 sample(s)" in text
    assert "κ was set to 1" in text


def test_samples_of_annotate_by_any_of_their_tables(tmp_path, report):
    """A folder, the table of epitopes, and that of hits are the same sample, which is on the page once."""
    folder = tmp_path / "annotated"
    folder.mkdir()
    first = examples.annotation(folder / "donor1")
    failed = examples.annotation(folder / "donor2", sample="donor2", epitopes_called=0, hits_called=0,
                                 decoys_passed=False)  # fmt: skip
    pages = [report([folder]), report([folder / "donor1.hits.tsv", failed, first])]
    for page in pages:
        assert "6.2 of 9 hits are expected by chance" in page.text
        assert "2 samples have 18 hits, where 12.4 are expected by chance." in page.text
        assert "donor2: The decoys come out more often than chance allows, so nothing is called." in page.text
        assert "called: 2 hits and 1 epitopes, in donor1 (2, 1). κ = 1.31." in page.text
        assert "At a false discovery rate of at most 0.05, called" in page.text
        assert [row["sample"] for row in page.rows("annotate_samples")] == ["donor1", "donor2"]
        assert len(page.rows("annotate_epitopes")) == 8
        hits = page.rows("annotate_hits")
        assert len(hits) == 18
        assert [row["expected"] for row in hits] == sorted(row["expected"] for row in hits)
        assert {(row["epitope"], row["record"], row["reference"]) for row in hits} == {
            ("EPI1;EPI2", "CASSIRSSYEQYF", "PMID:1")
        }
    (folder / "donor1.epitopes.tsv").unlink()
    with pytest.raises(InputError, match=r"donor1\.hits\.tsv: .*NAME\.epitopes\.tsv"):
        report([folder / "donor1.hits.tsv"])


def with_further(path, name):
    """The table at `path` and a further table of the same run, as hpcvdj writes both with their facts."""
    facts = json.loads(facts_path(path).read_text())
    further = path.with_name(name)
    tables = {path: [pa.Table.from_pandas(pd.read_csv(path, sep="\t")).to_batches()[0]],
              further: [pa.RecordBatch.from_pylist([{"individual": "donor1", "score": 0.5}])]}  # fmt: skip
    Targets(path, (further,)).write(facts, tables, overwrite=True)
    return further


def test_further_tables_in_a_folder_are_passed_over(tmp_path, report):
    """A folder with the tables of --junctions-out and --donors was refused: "is not an output"."""
    folder = tmp_path / "out"
    folder.mkdir()
    junctions = with_further(examples.contamination(folder / "contamination.tsv"), "contamination.junctions.tsv")
    donors = with_further(examples.association(folder / "associated.tsv"), "donors.tsv")
    page = report([folder])
    assert [row["file"] for row in page.rows("files_table")] == ["associated.tsv", "contamination.tsv"]
    for further in (junctions, donors):
        with pytest.raises(InputError, match=f"{further.name}: is not an output .* contamination, associate, enrich"):
            report([folder, further])
    (folder / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(InputError, match=r"other\.tsv: is not an output"):
        report([folder])
    (folder / "other.tsv").unlink()
    # Another run may have written its own table there since.
    examples.sharing(donors)
    page = report([folder])
    assert [row["command"] for row in page.rows("files_table")] == ["associate", "contamination", "sharing"]


def analysed(folder, *refused):
    """A folder as of `analyze`; the files that its report shows."""
    for name in ("", "enriched", "annotated", "pgen", "model"):
        (folder / name).mkdir()
    further = with_further(examples.contamination(folder / "contamination.tsv"), "contamination.junctions.tsv")
    shown = {
        "contamination": [further.with_name("contamination.tsv")],
        "pgen": [examples.probabilities(folder / "pgen" / "donor1.tsv.gz")],
        "enrich": [examples.enrichment(folder / "enriched" / "donor1.tsv")],
        "annotate": [examples.annotation(folder / "annotated" / "donor1")],
        "infer": [],
    }  # fmt: skip
    (folder / "model" / "V_gene_CDR3_anchors.csv").write_text("gene,anchor_index\n")
    outcomes = [Outcome(step, DONE, shown=[str(path.relative_to(folder)) for path in own])
                for step, own in shown.items()]  # fmt: skip
    outcomes += [Outcome(step, REFUSED, f"{step} is not for these tables") for step in refused]
    record = {"command": "analyze", "steps": [asdict(outcome) for outcome in outcomes]}
    (folder / ANALYSIS).write_text(json.dumps(record))
    return [path for own in shown.values() for path in own]


def test_the_folder_of_an_analysis_is_shown_as_by_its_own_report(tmp_path, report):
    files = analysed(tmp_path / "an", "sharing")
    undone = "sharing: sharing is not for these tables."
    page = report([tmp_path / "an"])
    assert page.data == report(files).data
    assert page.data["tables"].keys() >= {"contamination_1_pairs", "pgen_nt_values", "enrich_samples", "annotate_hits"}
    assert f"Was everything done that was asked for? no {undone}" in page.text
    analysed(tmp_path / "another", "sharing")
    text = report([tmp_path / "an", tmp_path / "another"]).text
    assert "an, sharing: sharing is not for these tables. another, sharing: sharing is not" in text


def test_records_of_analyses_that_are_damaged_empty_or_of_another_program(tmp_path, report):
    folder = tmp_path / "an"
    files = analysed(folder)
    record = folder / ANALYSIS
    for damaged in ("{", '{"command": "analyze", "steps": [{}]}', '{"command": "analyze", "steps": 3}'):
        record.write_text(damaged)
        with pytest.raises(InputError, match=r"analysis\.json: is damaged"):
            report([folder])
    record.write_text('{"command": "analyze", "steps": []}')
    with pytest.raises(InputError, match="an: no step of this analysis has an output"):
        report([folder])
    for other in ("[]", '{"command": "align"}'):
        record.write_text(other)
        assert [row["file"] for row in report([folder]).rows("files_table")] == [files[0].name]


@pytest.mark.parametrize("kind", ["annotation", "enrichment"])
def test_two_runs_of_a_sample_have_two_names(tmp_path, report, kind):
    """Both rows of the table of samples were called the same."""
    metadata = tmp_path / "donors.tsv"
    metadata.write_text("sample\till\ndonor1\tyes\n")
    paths = []
    for run in ("vdjdb", "mcpas"):
        (tmp_path / run).mkdir()
        facts = {} if kind == "annotation" else {"tables": [["cohort/donor1.tsv", "0", 3000]]}
        name = "donor1" if kind == "annotation" else "donor1.tsv"
        paths.append(getattr(examples, kind)(tmp_path / run / name, **facts))
    page = report(paths, settings=ReportSettings(metadata=metadata, group="ill"))
    table = {"annotation": "annotate_samples", "enrichment": "enrich_samples"}[kind]
    rows = page.rows(table)
    assert [row["sample"] for row in rows] == ["donor1 (vdjdb)", "donor1 (mcpas)"]
    assert {row["group"] for row in rows} == {"yes"}


def test_many_samples_of_annotate_are_one_statement(tmp_path, report):
    folder = tmp_path / "annotated"
    folder.mkdir()
    for k in range(12):
        facts = {"decoys_passed": k != 3, "hits_called": 0 if k > 2 else k, "epitopes_called": 0}
        if k > 8:
            facts["kappa"] = {"value": 1.0, "low": None, "high": None, "source": "none"}
        examples.annotation(folder / f"donor{k:02}", sample=f"donor{k:02}", **facts)
    text = report([folder]).text
    assert "12 samples have 108 hits, where 74.4 are expected by chance." in text
    assert "called: 3 hits and 0 epitopes, in donor02 (2, 0), donor01 (1, 0)." in text
    assert "donor03: The decoys come out more often than chance allows, so nothing is called." in text
    assert "κ = 1 to 1.31." in text
    assert "donor09, donor10, donor11: Too few hits to estimate κ, so nothing is called." in text


def test_metadata_without_rows_with_comments_and_with_numbers(tmp_path, report):
    path, table = (
        examples.sharing(tmp_path / "s.tsv", names=["1", "2", "3", "4"], groups=[None] * 4),
        tmp_path / "m.tsv",
    )
    table.write_text("arm\tsample\n")
    with pytest.raises(InputError, match=r"m\.tsv: no column names the samples"):
        report([path], settings=ReportSettings(metadata=table, group="arm"))
    table.write_text("#made by hand\n# twice\narm\tsample\n2\t1\n2\t2\n1\t3\n1\t4\n")
    page = report([path], settings=ReportSettings(metadata=table, group="arm"))
    assert [row["group"] for row in page.rows("sharing_1_individuals")] == ["2", "2", "1", "1"]


def test_figures_fit_on_the_page(tmp_path, report):
    rows = [{"v": f"V{v}", "j": f"J{j}", "share": 1.0} for v in range(3) for j in range(200)]
    table = PageTable.of("t", "t", "v j share", rows)
    chart = charts.heatmap(table, "j", "v", "share", ([f"J{j}" for j in range(200)], ["V0", "V1", "V2"]))
    drawn = charts.svg(Figure("f", "Heat map", "c", chart, (table,)))
    assert float(re.search(rb'width="([0-9.]+)"', drawn)[1]) < 1300


def test_figures_are_not_read_from_standard_input(tmp_path, small):
    _, err = hpcvdj_command("report", small, "-o", tmp_path / "r.html", "--figures", "-", code=2)
    assert "--figures -: only a table can be written to standard output" in error_line(err)


@pytest.mark.parametrize("samples", [1, 2])
def test_lists_of_cdr3s_have_no_genes(tmp_path, report, samples):
    """Their probabilities were "damaged: 'v'"."""
    for k in range(samples):
        (tmp_path / f"{k}.txt").write_text("CASSLGQAYEQYF\nCASSPGTEAFF\nCASSLDRNTEAFF\n")
        hpcvdj_command("pgen", tmp_path / f"{k}.txt", "-m", "human_trb_m15", "--genes", "any", "--backend", "cpu", "-o",
                       tmp_path / f"{k}.tsv")  # fmt: skip
    page = report([tmp_path / f"{k}.tsv" for k in range(samples)])
    assert "The genes of no row are known." in page.text
    assert [row["counted"] for row in page.rows("samples_table")] == [3] * samples


def test_the_largest_share_is_of_a_known_gene(tmp_path, report):
    """It was that of the missing gene, "– in l"."""
    (tmp_path / "list.txt").write_text("CASSLGQAYEQYF\nCASSPGTEAFF\n")
    table = "v_call\tj_call\tjunction_aa\nTRBV9\tTRBJ2-7\tCASSLGQAYEQYF\n"
    (tmp_path / "genes.tsv").write_text(table)
    for name, *words in (("list.txt", "--genes", "any"), ("genes.tsv",)):
        hpcvdj_command("pgen", tmp_path / name, *words, "-m", "human_trb_m15", "--backend", "cpu", "-o",
                       tmp_path / f"{name}.parquet")  # fmt: skip
    page = report([tmp_path / "list.txt.parquet", tmp_path / "genes.tsv.parquet"])
    for gene in ("TRBV9", "TRBJ2-7"):
        assert f"Largest share: {gene} in genes" in page.text


def test_hidden_files_of_a_folder_are_no_outputs(tmp_path):
    """macOS puts such files beside others."""
    examples.sharing(tmp_path / "s.tsv")
    (tmp_path / "._s.tsv").write_bytes(b"\0\5\x16\7")
    hpcvdj_command("report", tmp_path, "-o", tmp_path / "r.html")
