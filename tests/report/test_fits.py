"""What a report says of whether the models fit the tables."""

import pytest

import hpcvdj
from hpcvdj.errors import InputError
from hpcvdj.repertoires.writers import write_table
from hpcvdj.reports.fits import fit_sections, fit_statements
from hpcvdj.reports.outputs import read_outputs
from hpcvdj.reports.support import support
from tests.commands import hpcvdj_command
from tests.report.examples import contamination, enrichment, sharing

GENE = {
    "segment": "V", "gene": "TRBV31", "rows": 40, "zero": 0.08, "improbable": 0.78, "log10_shift": -8.4, "share": 0.03,
    "model_share": 0.0001, "frame": "productive", "finding": "broken", "twins": [],
}  # fmt: skip

FIT = {
    "rows": 1_000, "impossible": 0.0, "lacking": 0, "genes": [], "lengths": [], "calls": 900, "contradicted": {},
    "miscalled": 0, "alleles": [], "examples": [], "better": None, "compared": True, "keep_misfits": False,
    "broken": [],
}  # fmt: skip


def statements(outputs):
    return [(own.verdict, own.answer) for own in fit_statements(outputs)]


def test_a_model_that_fits(tmp_path):
    outputs = read_outputs([sharing(tmp_path / "s.tsv", fit=FIT), contamination(tmp_path / "c.tsv", fit=FIT)])
    ((verdict, text),) = statements(outputs)  # one: both commands found the same
    assert text.startswith("1,000 rows of 2 files such as s.tsv were compared")
    assert verdict == "yes"
    assert fit_sections(outputs) == []
    assert any(own.question == "Does the model fit the table?" for own in support(outputs).statements)


def test_what_fails(tmp_path):
    habit = {**GENE, "gene": "TRBV12-4", "finding": "habit", "twins": ["TRBV12-3"]}
    length = {"nucleotides": 66, "rows": 3, "share": 0.0, "model_share": 0.01, "frame": "productive"}
    fit = {
        **FIT, "genes": [GENE, habit], "lengths": [length], "contradicted": {"J": 30}, "miscalled": 30,
        "alleles": [["TRBJ2-7*02", 25, 100]],
        "impossible": 0.02, "better": ["human_trb", 1.2],
    }  # fmt: skip
    outputs = read_outputs([sharing(tmp_path / "s.tsv", fit=fit)])
    ((verdict, text),) = statements(outputs)
    assert verdict == "with care"
    assert "human_trb fits better, by 1.2 nats (natural logarithms) per row" in text
    assert "genes that the model makes wrongly: TRBV31." in text
    assert "genes called in place of twins, which --ties auto takes together: TRBV12-4." in text
    assert "lengths whose shares differ, in nucleotides: 66." in text
    assert "alleles that the model hardly ever chooses: TRBJ2-7*02." in text
    assert "at least 30 of 900 rows have a call that contradicts the bases" in text
    (section,) = fit_sections(outputs)
    genes, lengths = section.tables
    assert [row["gene"] for row in genes.records()] == ["TRBV31", "TRBV12-4"]
    assert genes.records()[1]["reads hardly tell it from"] == "TRBV12-3"
    assert lengths.records()[0]["nucleotides"] == 66
    other = read_outputs([sharing(tmp_path / "t.tsv", fit={**FIT, "impossible": 0.6})])
    assert statements(other)[0][0] == "no"


@pytest.mark.parametrize("finding", ["broken", "truncated", "improbable", "unmade", "habit", "usage"])
def test_each_finding_that_needs_care_has_its_cause(tmp_path, finding):
    fit = {**FIT, "genes": [{**GENE, "finding": finding, "share": 0.2}]}
    ((verdict, text),) = statements(read_outputs([sharing(tmp_path / "s.tsv", fit=fit)]))
    assert verdict == "with care"
    assert "TRBV31" in text


def test_rare_genes_without_known_deletions(tmp_path):
    """Two rows of TRAV7 made a page say "with care", of which the command said nothing; they are left out of tests."""
    for share, verdict in ((5.6e-5, "yes"), (0.006, "with care")):
        gene = {**GENE, "finding": "truncated", "share": share}
        outputs = read_outputs([sharing(tmp_path / "s.tsv", fit={**FIT, "genes": [gene]})])
        ((found, text),) = statements(outputs)
        assert (found, "TRBV31" in text) == (verdict, verdict == "with care")
        assert fit_sections(outputs)


def test_rows_that_the_model_lacks_and_tables_that_are_not_compared(tmp_path):
    """The verdict was yes: 85 % of the rows had alleles that the model lacks, and small tables were "compared"."""

    def verdict_of(**fit):
        return statements(read_outputs([sharing(tmp_path / "s.tsv", fit={**FIT, **fit})]))

    for rows, lacking, verdict in ((600, 3_400, "no"), (600, 400, "with care"), (960, 40, "yes")):
        ((found, text),) = verdict_of(rows=rows, lacking=lacking)
        assert found == verdict
        assert f"{100 * lacking / (rows + lacking):g} % of all rows have genes or alleles that the model lacks" in text
    assert verdict_of(rows=900, impossible=0.05, lacking=30)[0][0] == "yes"
    assert verdict_of(rows=900, impossible=0.08, lacking=100)[0][0] == "with care"
    ((found, text),) = verdict_of(rows=150, compared=False)
    assert (found, text) == (
        "not checked", "150 rows of s.tsv have too few productive ones to be compared with what the model makes."
    )  # fmt: skip
    ((found, text),) = verdict_of(rows=150, compared=False, impossible=0.2)
    assert (found, text.partition(" rows of s.tsv have too few")[0]) == ("with care", "150")
    assert verdict_of(rows=0, lacking=4_000)[0][0] == "no"


def test_models_of_a_page_are_told_apart(tmp_path):
    """Tables of both chains have the same names."""
    files = [
        sharing(tmp_path / f"{model}.tsv", model=model, tables=[["m1.tsv", "digest", 9]], fit={**FIT, "genes": genes})
        for model, genes in (("mouse_tra", []), ("mouse_trb", [GENE]))
    ]
    (care, _), (fits, _) = found = statements(read_outputs(files))
    assert (care, fits) == ("with care", "yes")
    assert [text.partition(" were")[0] for _, text in found] == [
        "1,000 rows of m1.tsv (mouse_trb)", "1,000 rows of m1.tsv (mouse_tra)",
    ]  # fmt: skip


def test_a_cause_and_a_verdict_are_said_once(tmp_path):
    """Each command compares the tables that it reads: the same gene was reported for each of them."""
    fits = [{**FIT, "rows": rows, "genes": [GENE]} for rows in (1_000, 2_000, 3_000)]
    files = [
        sharing(tmp_path / "s.tsv", fit=fits[0]), contamination(tmp_path / "c.tsv", fit=fits[1]),
        sharing(tmp_path / "t.tsv", fit={**fits[2], "miscalled": 40}, standing_out=[[0, 1]]),
    ]  # fmt: skip
    outputs = read_outputs(files)
    ((verdict, text),) = statements(outputs)
    assert verdict == "with care"
    assert "1,000 rows of s.tsv and 2,000 rows of c.tsv and 3,000 rows of t.tsv were compared" in text
    assert text.count("TRBV31") == 1
    assert "t.tsv: at least 40 of 900 rows have a call that contradicts the bases" in text
    asked = [(each.question, each.verdict) for each in support(outputs).statements]
    assert len(asked) == len(set(asked))
    (shared,) = (
        each.answer for each in support(outputs).statements if each.question.startswith("Are sequences shared")
    )
    assert shared.startswith("s.tsv: q = 0.603; 12 of 4,100 sequences")
    assert " t.tsv: q = 0.603; 12 of 4,100 sequences" in shared
    # The statement about contamination names the pairs.
    assert "Copies look like sharing" in shared
    assert "donor1 and donor2" not in shared
    alone = support(read_outputs([files[2]])).statements
    assert "donor1 and donor2. Copies look like sharing" in " ".join(each.answer for each in alone)


def test_tables_that_were_read_are_counted_once(tmp_path):
    """Output files were counted, and tables that several commands compared had opposite verdicts."""
    tables = [[f"in/D{k}.tsv", str(k), 9] for k in range(5)]
    care = {**FIT, "rows": 9_000, "genes": [GENE]}
    files = [
        sharing(tmp_path / "s.tsv", fit=care, tables=tables),
        contamination(tmp_path / "c.tsv", fit={**care, "rows": 8_000}, tables=tables[:4]),
    ]
    # Each table alone has too few rows to find anything.
    files += [
        enrichment(tmp_path / f"D{k}.tsv", f"D{k}", fit={**FIT, "rows": 100 + k}, tables=tables[k : k + 1])
        for k in range(5)
    ]
    ((verdict, text),) = statements(read_outputs(files))
    assert verdict == "with care"
    assert text.startswith("Up to 9,000 rows at a time, of 5 files such as D0.tsv, were compared")
    alone = statements(read_outputs([files[2], sharing(tmp_path / "t.tsv", fit=care, tables=tables[1:])]))
    assert [(verdict, text.partition(" were")[0]) for verdict, text in alone] == [
        ("with care", "9,000 rows of 4 files such as D1.tsv"), ("yes", "100 rows of D0.tsv"),
    ]  # fmt: skip
    (section,) = fit_sections(read_outputs(files[:1]))
    assert section.tables[0].records()[0]["file"] == "5 files such as D0.tsv"


def test_outputs_without_a_comparison(tmp_path):
    outputs = read_outputs([sharing(tmp_path / "s.tsv")])
    assert statements(outputs) == []
    assert fit_sections(outputs) == []


def test_people_and_common_sources(tmp_path):
    given = contamination(tmp_path / "c.tsv", of_one_person=[[0, 2]], common_source={"junctions": 54})
    outputs = read_outputs([given, sharing(tmp_path / "s.tsv", likely_copies=7)])
    texts = " ".join(own.answer for own in support(outputs).statements)
    assert "Samples of one person: donor1 and donor3." in texts
    assert "54 improbable junctions are of a common source." in texts
    assert "7 of the hits are likely copies." in texts


def test_a_table_that_does_not_say_its_model(tmp_path):
    """Probabilities as text have no facts: the page must not say that all are of one model."""
    text = tmp_path / "p.tsv"
    text.write_text("sequence_id\tv_call\tj_call\tjunction\tpgen_nt\na\tTRBV9\tTRBJ2-7\tTGTGCCTTC\t1e-9\n")
    for files, verdict, words in (
        ([sharing(tmp_path / "s.tsv", fit=FIT)], "yes", "A model of the same cohort is best, if it"),
        ([tmp_path / "s.tsv", text], "with care", "1 file(s) do not say of which model"),
    ):
        found = {own.question: own for own in support(read_outputs(files)).statements}
        own = found["Do all probabilities come from one model?"]
        assert own.verdict == verdict
        assert words in own.answer


def one_model(*files):
    """The verdict and the answer about the models of files."""
    found = {own.question: own for own in support(read_outputs(files)).statements}
    own = found["Do all probabilities come from one model?"]
    return own.verdict, own.answer


def test_models_that_differ_are_named(tmp_path):
    """Contamination with another model than the rest did not count: "yes"."""
    shared, enriched = sharing(tmp_path / "s.tsv", locus="TRB"), enrichment(tmp_path / "e.tsv", locus="TRB")
    pairs = contamination(tmp_path / "c.tsv", locus="TRB", model="human_trb")
    only = "Contamination uses a model only to tell which junctions are improbable."
    verdict, text = one_model(pairs, shared, enriched)
    assert verdict == "with care"
    assert text == (
        "Probabilities are those of human_trb_m15 (s.tsv, e.tsv); human_trb (c.tsv). Files with different models "
        f"cannot be compared. {only}"
    )
    other = sharing(tmp_path / "t.tsv", locus="TRB", model="human_trb")
    verdict, text = one_model(pairs, shared, other)
    assert verdict == "with care"
    assert "human_trb (c.tsv, t.tsv); human_trb_m15 (s.tsv)" in text
    assert only not in text
    # A copy of a model in a folder is the same model.
    copy = contamination(tmp_path / "d.tsv", locus="TRB", model="own/m15", model_sha256="b712")
    assert one_model(enriched, copy)[0] == one_model(enriched, shared, copy)[0] == "yes"
    # Models that were inferred in two folders may have one name.
    first, second = (sharing(tmp_path / f"{k}.tsv", model="model", model_sha256=f"{k}" * 64) for k in (1, 2))
    verdict, text = one_model(first, second)
    assert verdict == "with care"
    assert "those of model 111111111111 (1.tsv); model 222222222222 (2.tsv)." in text
    selected = sharing(tmp_path / "3.tsv", model="model", model_sha256="1" * 64, selection_sha256="5" * 64)
    assert "model 111111111111 555555555555 (3.tsv)" in one_model(first, selected)[1]


def test_each_locus_has_its_model(tmp_path):
    shared = [sharing(tmp_path / f"{locus}.tsv", model=locus, locus=locus) for locus in ("TRA", "TRB")]
    assert one_model(*shared) == (
        "with care",
        "Probabilities are those of TRA (TRA.tsv); TRB (TRB.tsv). Each locus has one model: compare files of the same "
        "locus only.",
    )
    for locus in ("TRB", None):
        other = contamination(tmp_path / "c.tsv", model="other", locus=locus)
        assert "Files with different models cannot be compared." in one_model(*shared, other)[1]


def test_the_facts_beside_a_table_of_probabilities(tmp_path):
    rows = hpcvdj.generate("human_trb_m15", 400, seed=1, productive=True)
    write_table(tmp_path / "r.tsv", rows.to_batches(), overwrite=False)
    hpcvdj_command("pgen", tmp_path / "r.tsv", "-m", "human_trb_m15", "-o", tmp_path / "p.tsv")
    outputs = read_outputs([tmp_path / "p.tsv"])
    ((verdict, text),) = statements(outputs)
    assert verdict == "yes"
    assert "400 rows of r.tsv were compared" in text
    found = {own.question: own for own in support(outputs).statements}
    assert "human_trb_m15" in found["Do all probabilities come from one model?"].answer
    with open(tmp_path / "p.tsv", "a") as stream:
        stream.write("x\n")
    with pytest.raises(InputError, match="SHA-256 differs"):
        read_outputs([tmp_path / "p.tsv"])
