"""What the metadata say of donors."""

import numpy as np
import pyarrow as pa
import pytest

from hpcvdj.association.phenotypes import phenotypes_of, unmatched_in
from hpcvdj.association.settings import Donors
from hpcvdj.errors import InputError

NAMES = [f"d{k:03}" for k in range(24)]


def donors_of(columns, **options):
    """The phenotypes of 24 donors with these columns of metadata."""
    metadata = pa.table({"donor": NAMES, **{name: pa.array(list(map(str, own))) for name, own in columns.items()}})
    return phenotypes_of(Donors(metadata=metadata, **options), {name: name for name in NAMES})


def test_cases_are_those_with_the_value_and_unknown_donors_are_left_out():
    arms = ["ill", "well", ""] * 8
    (found,) = donors_of({"arm": arms}, case={"arm": "ill"})
    assert (found.name, found.family, list(found.strata)) == ("arm=ill", "case", [""])
    assert found.donors.tolist() == [k for k in range(24) if k % 3 < 2]
    assert found.case.tolist() == [k % 3 == 0 for k in range(24) if k % 3 < 2]


def test_the_value_of_cases_written_in_another_way(caplog):
    (found,) = donors_of({"arm": ["MS", "ms", "well"] * 8}, case={"arm": "MS"})
    assert found.case.sum() == 8
    assert [record.getMessage() for record in caplog.records] == [
        "arm=MS: donors with ms are controls; write the value in one way if they are cases"
    ]
    caplog.clear()
    donors_of({"arm": ["MS", "well"] * 12}, case={"arm": "MS"})
    assert not caplog.records


def test_strata_are_of_donors_that_agree_in_all_columns():
    columns = {"arm": ["a", "b"] * 12, "batch": ["1"] * 12 + ["2"] * 12, "sex": ["f", "f", "m", "m"] * 6}
    (found,) = donors_of(columns, case={"arm": "a"}, strata=("batch", "sex"))
    assert list(found.strata) == ["1, f", "1, m", "2, f", "2, m"]
    for k, name in enumerate(found.strata):
        inside = np.flatnonzero(found.stratum == k)
        assert {f"{columns['batch'][own]}, {columns['sex'][own]}" for own in inside} == {name}


def test_alleles_of_ten_donors_or_more():
    texts = [f"HLA-A*02:01;B*{'07:02' if k < 9 else '08:01'}" if k < 14 else "A*01:01, B*08:01" for k in range(24)]
    found = {each.name: each for each in donors_of({"hla": texts}, hla="hla")}
    assert sorted(found) == ["A*01:01", "A*02:01"]
    assert found["A*02:01"].case.sum() == 14
    assert found["A*02:01"].family == "hla"
    with pytest.raises(InputError, match="no allele is in 10 donors or more"):
        donors_of({"hla": ["A*02:01"] * 24}, hla="hla")


def test_alleles_of_other_resolutions_are_not_lacking(caplog):
    """Three fields, the old spelling and small letters are the protein; of A*02 and A2, the protein is not known."""
    spelled = ["A*02:01:01", "A*0201", "a*02:01", "HLA-A*02:01:01:02L", "A*02:01N", "A2", "A*02"]
    texts = [spelled[k] if k < 7 else "A*02:01" if k < 14 else "A*01:01" for k in range(24)]
    found = {each.name: each for each in donors_of({"hla": texts}, hla="hla")}
    assert sorted(found) == ["A*01:01", "A*02:01"]
    own = found["A*02:01"]
    assert own.donors.tolist() == [k for k in range(24) if k not in (5, 6)]
    assert own.donors[own.case].tolist() == [k for k in range(14) if k not in (4, 5, 6)], "one is not expressed"
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "A*02:01: d005 (A2), d006 (A*02) may have it or not, so they are left out of its test; correct hla: a comma "
        "separates alleles of a donor",
        "hla='hla': not tested, as fewer than 10 donors are typed so, or lack it: A*02, A*02:01N",
    ]


def test_spellings_without_the_star_are_not_lacking():
    spelled = [
        "A0201",
        "A02:01",
        "HLA-A02:01",
        "A*2:01",
        "a*0201:01",
        "A*02:01/A*02:01:02",
        "A*02:XX",
        "A*02:01/A*02:09",
    ]
    texts = [spelled[k] if k < 8 else "A*02:01" if k < 14 else "A0301" for k in range(24)]
    found = {each.name: each for each in donors_of({"hla": texts}, hla="hla")}
    assert sorted(found) == ["A*02:01", "A*03:01"]
    own = found["A*02:01"]
    assert own.donors[own.case].tolist() == [k for k in range(14) if k not in (6, 7)]
    assert own.donors.tolist() == [k for k in range(24) if k not in (6, 7)]


def test_what_is_no_name_of_an_allele_is_said(caplog):
    """A wrong column, such as sex, had tested alleles called f and m."""
    assert [each.name for each in donors_of({"sex": ["f", "m"] * 12}, hla="sex")] == ["f", "m"]
    assert [record.getMessage() for record in caplog.records] == [
        "hla='sex': f, m are no names of HLA alleles that hpcvdj knows; they are compared as they are written"
    ]


OPEN = ["A*02:01/A*03:01", "A*03:01/A*24:02/A*02:01", "A*02:010", "A*02:01-A*03:01"]


def test_a_typing_that_leaves_an_allele_open_is_no_control_of_it(caplog):
    """Donors with A*02:01/A*03:01, with A*02:010, or with A*02:01+A*01:01 were controls of A*02:01."""
    sure = ["A*02:01+A*01:01", "A*02:01^B*07:02", "A*02:01:XX", "A*020101"]
    texts = [*OPEN, *sure, *["A*02:01"] * 6, *["A*24:02"] * 10]
    found = {each.name: each for each in donors_of({"hla": texts}, hla="hla")}
    assert sorted(found) == ["A*02:01", "A*24:02"]
    own, other = found["A*02:01"], found["A*24:02"]
    assert own.donors.tolist() == list(range(4, 24))
    assert own.donors[own.case].tolist() == list(range(4, 14))
    # Of an unreadable text, only the gene is known.
    assert other.donors.tolist() == [0, *range(4, 24)]
    assert other.donors[other.case].tolist() == list(range(14, 24))
    told = ", ".join(f"d{k:03} ({text})" for k, text in enumerate(OPEN))
    assert caplog.records[0].getMessage().startswith(f"A*02:01: {told} may have it or not")
    with pytest.raises(InputError, match=r"several genotypes, with \| between them: d003; give the alleles"):
        donors_of({"hla": [*texts[:3], "A*01:01+A*02:01|A*01:02+A*02:02", *texts[4:]]}, hla="hla")


def of_alleles(value_of):
    """Whether each donor has each allele that is tested: {allele: {donor: 0 or 1}}."""
    metadata = pa.table({"donor": list(value_of), "hla": list(value_of.values())})
    asked = phenotypes_of(Donors(metadata=metadata, hla="hla"), {name: name for name in value_of})
    names = list(value_of)
    return {each.name: dict(zip([names[k] for k in each.donors], each.value.tolist(), strict=True)) for each in asked}


def test_several_groups_leave_their_alleles_open():
    """A*01/03 was A*01 or A*01:03, so its donor lacked A*03:01."""
    of = {f"x{k}": "A*03:01,A*24:02" for k in range(12)} | {f"y{k}": "A*01:01,A*02:01" for k in range(12)}
    tested = of_alleles(of | {"p": "A*01/03", "q": "A2/24"})
    assert {"p", "q"} & {*tested["A*03:01"]} == {"q"}
    assert {"p", "q"} & {*tested["A*24:02"]} == {"p"}


@pytest.mark.parametrize("mark", ["-", "A*-", "blank", "X", "NA", "?", "Bw4", "HLA-Bw6", "Bw4(80I)", "Bw4/Bw6", "-/-"])
def test_what_is_no_allele(caplog, mark):
    """The mark of a homozygote, and the epitopes Bw4 and Bw6, are no alleles, and their donor may be typed nowhere."""
    of = {f"x{k}": f"A*03:01,{mark}" for k in range(12)} | {f"y{k}": f"A*01:01 {mark}" for k in range(12)}
    tested = of_alleles(of | {f"z{k}": "B*07:02" for k in range(5)})
    assert set(tested) == {"A*01:01", "A*03:01"}
    assert set(tested["A*01:01"]) == {*of}
    assert "Bw" not in caplog.text
    assert "are no names" not in caplog.text


def test_a_group_leaves_an_allele_open_that_is_not_expressed():
    """As of all other alleles of the group."""
    texts = ["DRB4*01:03N"] * 12 + ["DRB4*01"] * 2 + ["DRB1*15:01"] * 10
    found = {each.name: each for each in donors_of({"hla": texts}, hla="hla")}
    assert found["DRB4*01:03N"].donors.tolist() == [*range(12), *range(14, 24)]
    # A donor of whom one typing cannot be read has no allele called A.
    texts = ["A*02:010/A*02:01"] * 12 + ["A*24:02"] * 12
    assert "A*24:02" in {each.name for each in donors_of({"hla": ["A*24:02"] * 12 + ["A*01:01"] * 12}, hla="hla")}
    with pytest.raises(InputError, match="no allele is in 10 donors or more"):
        donors_of({"hla": texts}, hla="hla")


def test_donors_with_an_allele_have_its_group():
    """They were controls of the group."""
    texts = ["A*02"] * 10 + ["A*02:01"] * 2 + ["A*02:05/A*02:06"] * 2 + ["A*24:02"] * 10
    (group, other) = donors_of({"hla": texts}, hla="hla")
    assert (group.name, group.donors.tolist(), group.case.tolist()) == (
        "A*02",
        [*range(24)],
        [True] * 14 + [False] * 10,
    )
    assert (other.name, other.case.sum(), len(other.donors)) == ("A*24:02", 10, 24)


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.large_string())])
def test_alleles_in_lists(kind):
    """As a column of a data frame has them, of pandas or polars."""
    of = [["A*02:01", "B*07:02"] if k < 12 else [None, "A*01:01", "B*08:01"] if k < 23 else [] for k in range(24)]
    metadata = pa.table({"donor": NAMES, "hla": pa.array(of, kind)})
    found = phenotypes_of(Donors(metadata=metadata, hla="hla"), {name: name for name in NAMES})
    assert [(each.name, int(each.case.sum()), len(each.donors)) for each in found] == [
        ("A*01:01", 11, 23), ("A*02:01", 12, 23), ("B*07:02", 12, 23), ("B*08:01", 11, 23)
    ]  # fmt: skip


def test_a_donor_without_an_allele_of_a_gene_was_not_typed_there(caplog):
    """All other donors lacked A*02:01, also those of whom only B is known.  Many people do not have DRB4."""
    of = [f"A*0{1 + k % 2}:01,B*07:0{2 + k % 2},DRB4*01:01" if k < 20 else "B*07:02" for k in range(24)]
    found = {each.name: each for each in donors_of({"hla": of}, hla="hla")}
    assert {name: (int(each.case.sum()), len(each.donors)) for name, each in found.items()} == {
        "A*01:01": (10, 20), "A*02:01": (10, 20), "B*07:02": (14, 24), "B*07:03": (10, 24),
    }  # fmt: skip
    assert [record.getMessage() for record in caplog.records] == [
        "hla='hla': d020, d021, d022, d023 have no allele of A, so they are left out of the tests of its alleles; "
        "correct the metadata if they were typed",
        "hla='hla': not tested, as fewer than 10 donors are typed so, or lack it: DRB4*01:01",
    ]
    of = [f"B*07:02{',DRB4*01:01' if k < 12 else ''}" for k in range(24)]
    (found,) = donors_of({"hla": of}, hla="hla")
    assert (found.name, int(found.case.sum()), len(found.donors)) == ("DRB4*01:01", 12, 24)


def test_donors_without_a_junction_are_left_out():
    """Indices of the others are those of all individuals."""
    metadata = pa.table({"donor": NAMES, "arm": ["ill", "well"] * 12, "lane": ["x"] * 12 + ["y"] * 12})
    given = Donors(metadata=metadata, case={"arm": "ill"}, strata=("lane",))
    subject, empty = {name: name for name in NAMES}, {"d000", "d013"}
    (found,) = phenotypes_of(given, subject, empty=empty)
    assert found.donors.tolist() == [k for k in range(24) if k not in (0, 13)]
    assert found.case.tolist() == [k % 2 == 0 for k in range(24) if k not in (0, 13)]
    assert found.stratum.tolist() == [k // 12 for k in range(24) if k not in (0, 13)]
    assert found.controls == {"well": 11}
    assert unmatched_in(given, subject, [found], empty) == ""
    with pytest.raises(InputError, match="no donor with a junction has ill in arm; there are well"):
        phenotypes_of(given, subject, empty=set(NAMES[::2]))


@pytest.mark.parametrize("alone", [6, 7])
def test_strata_of_one_value_are_told(caplog, alone):
    """A quarter of the donors is no news; with a stratum each, 26 of 30 said nothing, and there were 0 hits."""
    columns = {"arm": ["ill", "well"] * 12, "age": [*range(30, 30 + alone), *[60] * (24 - alone)]}
    (found,) = donors_of(columns, case={"arm": "ill"}, strata=("age",))
    assert found.alike == alone
    line = (
        "arm=ill: 7 of 24 donors say nothing, as all of their stratum have one value; give strata columns of fewer "
        "values, such as classes of ages"
    )
    assert (line in caplog.text) == (alone == 7)


def test_strata_that_differ_in_capitals_are_told(caplog):
    columns = {"arm": ["ill", "well"] * 12, "lane": ["Run2", "run2", "run1"] * 8}
    donors_of(columns, case={"arm": "ill"}, strata=("lane",))
    assert "lane: Run2 and run2 are different strata; write a value in one way if they are one" in caplog.text


def test_missing_values_of_r_are_no_values():
    """They were controls, lacked all alleles, and were one subject."""
    arms = ["ill", "well", "NA", "ill", "well", "NaN"] * 4
    (found,) = donors_of({"arm": arms}, case={"arm": "ill"})
    assert found.donors.tolist() == [k for k in range(24) if k % 3 < 2]
    (found,) = donors_of({"arm": ["none", "some"] * 12}, case={"arm": "none"})
    assert found.case.sum() == 12


@pytest.mark.parametrize(("values", "case"), [([0, 1], 1), ([False, True], True), ([0.0, 1.0], 1), (["0", "1"], "1")])
def test_cases_by_numbers_and_truth_values(values, case):
    metadata = pa.table({"donor": NAMES, "arm": values * 12})
    (found,) = phenotypes_of(Donors(metadata=metadata, case={"arm": case}), {name: name for name in NAMES})
    assert found.case.tolist() == [False, True] * 12


def test_a_trend_is_of_ranks():
    ages = [str(80 - k) if k else "" for k in range(24)]
    (found,) = donors_of({"age": ages}, trend="age")
    assert found.donors.tolist() == list(range(1, 24))
    assert (np.diff(found.value) <= 0).all()
    assert found.value[0] > found.value[-1]
    with pytest.raises(InputError, match="d003 has 'old'; give a number"):
        donors_of({"age": ["old" if k == 3 else "7" for k in range(24)]}, trend="age")


def test_cases_of_one_batch_need_strata():
    arms, batches = ["ill"] * 12 + ["well"] * 12, ["x"] * 12 + ["x", "y"] * 6
    with pytest.raises(InputError, match=r"all 12 cases are of one Batch \(x\).*strata='Batch'"):
        donors_of({"arm": arms, "Batch": batches}, case={"arm": "ill"})
    assert donors_of({"arm": arms, "Batch": batches}, case={"arm": "ill"}, strata=("Batch",))
    assert donors_of({"arm": arms, "Batch": ["x"] * 24}, case={"arm": "ill"})
    assert donors_of({"arm": arms, "Batch": [""] * 12 + ["x"] * 12}, case={"arm": "ill"}), "no case has a batch"
    with pytest.raises(InputError, match="all 12 cases are of one sequencing run"):
        donors_of({"arm": arms, "sequencing run": batches}, case={"arm": "ill"})
    # Whether the batch itself matters may be asked.
    assert donors_of({"batch": ["x"] * 12 + ["y"] * 12}, case={"batch": "x"})
    assert donors_of({"arm": arms, "Batch": ["x", "y"] * 12}, case={"arm": "ill"})
    with pytest.raises(InputError, match="all donors have one value; give donors with other values, too"):
        donors_of({"arm": ["ill"] * 24, "Batch": ["x"] * 24}, case={"arm": "ill"})
    with pytest.raises(InputError, match="no stratum has donors of different values; leave out columns of strata"):
        donors_of({"arm": arms, "Batch": ["x"] * 12 + ["y"] * 12}, case={"arm": "ill"}, strata=("Batch",))


def test_donors_and_rows_of_the_metadata_that_do_not_match_are_said():
    metadata = pa.table({"file": ["a.tsv", "b", "c.tsv.gz", "", "d"], "arm": ["ill", "well", "ill", "ill", "well"]})
    given = Donors(metadata=metadata, case={"arm": "ill"})
    for samples, expected in (
        ("abe", "the metadata have no value for 1 of the donors, which are left out: e; 2 row(s) of the metadata name "
                "no table, in the column file: c, d"),
        ("abcd", ""), ("abcde", "the metadata have no value for 1 of the donors, which are left out: e"),
        ("abc", "1 row(s) of the metadata name no table, in the column file: d"),
    ):  # fmt: skip
        subject = {name: name for name in samples}
        assert unmatched_in(given, subject, phenotypes_of(given, subject)) == expected


@pytest.mark.parametrize("batches", [["x"] * 12 + ["y"] * 12, ["x", "y"] * 6 + ["z"] * 12, ["x"] * 12 + ["y", "z"] * 6])
def test_cases_and_controls_of_different_batches_cannot_be_told_apart(batches):
    """Whichever of them are of several batches; donors without a batch change nothing."""
    arms = ["ill"] * 12 + ["well"] * 12
    named = [", ".join(sorted({*half})) for half in (batches[:12], batches[12:])]
    expected = rf"no batch has a case and a control \(cases: {named[0]}; controls: {named[1]}\).*cannot tell them apart"
    with pytest.raises(InputError, match=expected):
        donors_of({"arm": arms, "batch": batches}, case={"arm": "ill"})
    with pytest.raises(InputError, match=expected):
        donors_of({"arm": arms, "batch": ["", *batches[1:12], "", *batches[13:]]}, case={"arm": "ill"})
    # Of 13 small runs, none need have a case and a control; of 12, they are two donors each.
    assert donors_of({"arm": arms, "run": [*[f"r{k // 2}" for k in range(22)], "x", "y"]}, case={"arm": "ill"})
    with pytest.raises(InputError, match="no run has a case and a control"):
        donors_of({"arm": arms, "run": [f"r{k // 2}" for k in range(24)]}, case={"arm": "ill"})
    # But all of one side are of one run.
    one, each = ["x"] * 12, [f"r{k}" for k in range(12)]
    for runs in (one + each, each + one):
        with pytest.raises(InputError, match="no run has a case and a control"):
            donors_of({"arm": arms, "run": runs}, case={"arm": "ill"})
    with pytest.raises(InputError, match=r"no run has a case and a control \(cases: x; controls: not known\)"):
        donors_of({"arm": arms, "run": ["x"] * 12 + [""] * 12}, case={"arm": "ill"})
    # Runs of one sample each are no batches.
    assert donors_of({"arm": arms, "run": range(24)}, case={"arm": "ill"})


def test_columns_in_which_cases_and_controls_differ_are_said(caplog):
    arms = ["ill"] * 12 + ["well"] * 12
    columns = {
        "arm": arms, "batch": ["x"] * 11 + ["y"] * 7 + ["z"] * 6, "site": ["a", "b", "c"] * 8, "age": range(24),
        "treated": ["yes"] * 12 + ["unknown"] * 12, "sex": ["f"] * 9 + ["m"] * 3 + ["f"] * 3 + ["m"] * 9,
    }  # fmt: skip
    (found,) = donors_of(columns, case={"arm": "ill"})
    assert [record.getMessage() for record in caplog.records] == [
        "arm=ill: cases and controls differ in batch (11 of 12 cases and 0 of 12 controls are x), treated (12 of 12 "
        "cases and 0 of 12 controls are yes); what goes with that may look like the phenotype, so unless it is another "
        "name of it, give strata the column"
    ]
    assert found.controls == {"well": 12}
    caplog.clear()
    donors_of({**columns, "treated": arms}, case={"arm": "ill"}, strata=("sex", "batch"))
    assert "differ in treated (12 of 12" in caplog.text
    caplog.clear()
    donors_of(columns, case={"arm": "ill"}, strata=("sex", "batch"))
    assert "differ in treated" in caplog.text
    caplog.clear()
    donors_of({name: columns[name] for name in ("arm", "site", "age", "sex")}, case={"arm": "ill"})
    assert not caplog.records


def test_samples_of_a_donor_may_be_of_different_batches(caplog):
    """Cases and controls are compared all the same; a donor of two batches has both as its value."""
    subject = {f"{name}{visit}": name for name in NAMES for visit in "12"}

    def asked(batches, **options):
        metadata = pa.table({"sample": [*subject], "batch": batches, "arm": ["ill"] * 24 + ["well"] * 24})
        return phenotypes_of(Donors(metadata=metadata, case={"arm": "ill"}, **options), subject)

    (found,) = asked(["x", "y"] * 24)
    assert found.case.sum() == 12
    assert not caplog.records
    with pytest.raises(InputError, match=r"all 12 cases are of one batch \(x\)"):
        asked(["x"] * 24 + ["x"] * 12 + ["y", "z"] * 6)
    with pytest.raises(InputError, match=r"no batch has a case and a control \(cases: x, x and y; controls: z\)"):
        asked(["x", "y"] + ["x"] * 22 + ["z"] * 24)
    asked(["x", "y"] + ["x"] * 22 + ["x"] * 2 + ["z"] * 22)
    assert "cases and controls differ in batch (0 of 12 cases and 11 of 12 controls are z)" in caplog.text
    with pytest.raises(InputError, match="d000: its samples have x and y in batch, and a donor has one value; correct"):
        asked(["x", "y"] * 24, strata=("batch",))


def test_words_for_a_missing_value_are_no_controls():
    words = ["Unknown", "#N/A", "n.a.", "."]
    arms = ["ill"] * 8 + words * 2 + ["well"] * 5 + ["none"] * 2 + ["-"]
    (found,) = donors_of({"arm": arms}, case={"arm": "ill"})
    assert found.donors.tolist() == [*range(8), *range(16, 24)]
    assert found.controls == {"well": 5, "none": 2, "-": 1}


@pytest.mark.parametrize(("options", "message"), [
    ({"case": {"arm": "sick"}}, "no donor has sick in arm; there are ill, well"),
    ({"case": {"disease": "ill"}}, "no column disease"),
    ({"case": {"arm": "ill"}, "strata": ("batch",)}, "no column batch"),
    ({"case": {"empty": "ill"}}, "the metadata: the column empty has no value in the rows of d000, .*; fill it in"),
    ({"case": {"same": "ill"}}, "all donors have one value; give donors with other values, too"),
    ({}, "say what sequences may go with"),
    ({"case": {"arm": "ill", "sex": "f"}}, "give one column and its value"),
])  # fmt: skip
def test_what_the_metadata_lack_is_one_line(options, message):
    with pytest.raises(InputError, match=message):
        donors_of({"arm": ["ill", "well"] * 12, "empty": [""] * 24, "same": ["ill"] * 24}, **options)


def test_samples_of_one_donor_agree():
    metadata = pa.table({"sample": ["s1", "s2", "s3"], "who": ["p", "p", "q"], "arm": ["ill", "well", "well"]})
    given = Donors(metadata=metadata, case={"arm": "ill"}, subject="who")
    subject = given.people(["s1", "s2", "s3"]).subject
    with pytest.raises(InputError, match="p: its samples have ill and well in arm"):
        phenotypes_of(given, subject)
    with pytest.raises(InputError, match="metadata"):
        Donors(case={"arm": "ill"})


def test_a_text_is_the_strata_that_the_command_line_takes():
    """It was taken for a list of its letters: no column s."""
    about = {"metadata": pa.table({"donor": NAMES}), "case": {"arm": "ill"}}
    for given, strata in (("sex", ("sex",)), ("batch,sex", ("batch", "sex")), (["batch,sex"], ("batch,sex",))):
        assert Donors.of({**about, "strata": given}).strata == strata
