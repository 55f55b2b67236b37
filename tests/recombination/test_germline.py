"""hpcvdj.recombination.germline: forms, tables, calls."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.germline import (
    Germline,
    Segment,
    d_forms,
    extended_d,
    extended_j,
    extended_v,
    j_forms,
    read_germline,
    v_forms,
)

HEADER = "locus\tsegment_type\tallele\tfunctional\tsequence\tsource\n"
V = "TRB\tV\tTRBV1*01\tF\tACCT\tx\n"
J = "TRB\tJ\tTRBJ1-1*01\tF\tGGA\tx\n"
D = "TRB\tD\tTRBD1*01\tF\tGG\tx\n"

segments = st.text("ACGT", min_size=4, max_size=20)


def test_extended_segments():
    assert extended_v("AACCGT") == "AACCGT" + "ACGG"
    assert extended_j("AACCGT") == "GGTT" + "AACCGT"
    assert extended_d("AACCGT") == "GGTT" + "AACCGT" + "ACGG"
    assert extended_v("AACCGT", 0) == "AACCGT"


def test_a_short_segment_mirrors_only_itself():
    assert extended_v("AC") == "AC" + "GT"
    assert extended_j("AC") == "GT" + "AC"
    assert extended_v("") == ""


@given(segments, st.integers(0, 4))
def test_forms_by_chewing_and_adding(text, max_p):
    """The definition step by step: chew l bases, or none and add up to max_p P-nucleotides."""
    p = reverse_complement(text[len(text) - max_p :]) if max_p else ""
    expected = {text[:keep] for keep in range(len(text) + 1)} | {text + p[:k] for k in range(max_p + 1)}
    assert set(v_forms(text, max_p)) == expected
    assert len(v_forms(text, max_p)) == len(text) + max_p + 1
    mirrored = [reverse_complement(form) for form in v_forms(reverse_complement(text), max_p)]
    assert j_forms(text, max_p) == mirrored


@given(st.text("ACGT", min_size=1, max_size=12), st.integers(0, 4))
def test_d_forms(text, max_p):
    extended = extended_d(text, max_p)
    n = len(extended)
    forms = d_forms(text, "paper", max_p)
    assert len(forms) == (n + 1) * (n + 2) // 2 - 1
    assert forms.count("") == n
    assert set(forms) == {extended[i:j] for i in range(n) for j in range(i, n + 1)}
    distinct = d_forms(text, "distinct", max_p)
    assert sorted(distinct) == sorted(set(forms))


def test_the_papers_figures(paper_germline):
    """362, 283 and 505 forms; 3107 and 3210 bytes (section II-C, Table III)."""
    v = [form for s in paper_germline.of("V") for form in v_forms(s.sequence)]
    j = [form for s in paper_germline.of("J") for form in j_forms(s.sequence)]
    d = [form for s in paper_germline.d_segments("TRB") for form in d_forms(s.sequence)]
    assert (len(v), len(j), len(d)) == (362, 283, 505)
    assert (sum(map(len, v)), sum(map(len, j))) == (3107, 3210)


def germline(*rows):
    return Germline(tuple(Segment("TRB", *row) for row in rows))


def test_a_gene_is_its_first_listed_allele():
    table = germline(("V", "TRBV1*02", "F", "A"), ("V", "TRBV1*01", "F", "C"), ("J", "TRBJ1*01", "F", "G"))
    assert table.find("V", "TRBV1").allele == "TRBV1*02"
    assert table.find("V", "TRBV1*01").sequence == "C"
    assert table.find("V", "TRBV1*03") is None
    assert table.find("J", "TRBV1") is None


def test_d_segments_are_functional_and_one_per_gene():
    rows = (("V", "V1*01", "F", "A"), ("J", "J1*01", "F", "G"), ("D", "D1*01", "P", "C"))
    rows += (("D", "D2*01", "F", "CC"), ("D", "D2*02", "F", "GG"))
    segments = tuple(Segment("TRB", *row) for row in rows)
    assert [s.allele for s in Germline(segments).d_segments("TRB")] == ["D2*01"]
    assert [s.allele for s in Germline(segments, d_alleles="all").d_segments("TRB")] == ["D2*01", "D2*02"]


def test_the_digest_follows_all_that_counting_depends_on():
    rows = [("V", "V1*01", "F", "A"), ("J", "J1*01", "F", "G"), ("D", "D1*01", "F", "C")]
    segments = tuple(Segment("TRB", *row) for row in rows)
    changed = (*segments[:2], Segment("TRB", "D", "D1*01", "F", "CC"))
    digests = {
        Germline(segments).digest(),
        Germline(changed).digest(),
        Germline(segments, max_p=3).digest(),
        Germline(segments, d_alleles="all").digest(),
    }
    assert len(digests) == 4
    assert Germline(segments, name="elsewhere").digest() == Germline(segments).digest()


def test_read_plain_and_gzip(tmp_path):
    plain, packed = tmp_path / "g.tsv", tmp_path / "packed.tsv"
    plain.write_text("\ufeff" + HEADER + V + J.lower().replace("trb\tj\ttrbj1-1*01\tf", "TRB\tJ\tTRBJ1-1*01\tF") + D)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_germline(plain).segments == read_germline(packed).segments
    assert read_germline(plain).of("J")[0].sequence == "GGA"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no segments"),
        (HEADER, "no segments"),
        ("locus,segment_type\nTRB,V\n", "line 1: no column"),
        (HEADER + V + J.replace("\tJ\t", "\tX\t"), "line 3: segment_type is 'X'"),
        (HEADER + V + J.replace("\tF\t", "\tyes\t"), "line 3: functional is 'yes'"),
        (HEADER + V + J.replace("GGA", "GNA"), "line 3: .*'N'"),
        (HEADER + V + V + J, "listed twice"),
        (HEADER + J, "no V segment"),
        (HEADER + V, "no J segment"),
        (HEADER + V + J + D.replace("GG", ""), "line 4: the D segment"),
        (HEADER + V + "TRB\tJ\tTRBJ1-1*01\tF\n", "line 3: the row is cut short"),
        (HEADER + V + J + D.replace("TRBD1*01", ""), "line 4: allele or locus is empty"),
    ],
)
def test_bad_tables_are_refused_by_place(tmp_path, text, message):
    path = tmp_path / "g.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_germline(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_binary_tables(tmp_path):
    with pytest.raises(InputError, match="no such germline table"):
        read_germline(tmp_path / "none.tsv")
    (tmp_path / "b.tsv").write_bytes(b"\xff\xfe\x00\x01" * 100)
    with pytest.raises(InputError, match="not a readable germline table"):
        read_germline(tmp_path / "b.tsv")
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(HEADER.encode() * 50)[:40])
    with pytest.raises(InputError, match="not a readable germline table"):
        read_germline(tmp_path / "b.tsv.gz")
