"""hpcvdj.recombination.models and igor: models in IGoR's format, gene names, refusals."""

import shutil
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.errors import InputError
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.igor import FILES, OLGA_FOLDERS, load_model, read_model
from hpcvdj.recombination.models import Alleles, stationary
from hpcvdj.recombination.names import alleles_by_name, normal_name
from tests.recombination.igor_files import DINUCLEOTIDES, Event, Files, gene_files, vdj_files, vj_files

MOST_ROUNDING = 1e-14
"""Of a stationary distribution; the largest that was measured is 7.5e-15, in 30,000 random chains."""

PARAMS, MARGINALS, V_ANCHORS, J_ANCHORS = FILES


def test_a_vj_model(tmp_path):
    model = read_model(vj_files().write(tmp_path))
    assert not model.has_d
    assert [template.allele for template in model.v] == ["TRAV1*01", "TRAV2/DV4*01"]
    # From the anchor on, or up to the anchor's codon.
    assert [template.segment for template in model.v] == ["TGTGCC", "TGTA"]
    assert [template.segment for template in model.j] == ["ATTT", "CCTTC"]
    assert [template.extended for template in model.v] == ["TGTGCCGG", "TGTATA"]
    assert [template.extended for template in model.j] == ["ATATTT", "GGCCTTC"]
    np.testing.assert_allclose(model.p_vj, [[0.375, 0.375], [0.0625, 0.1875]], rtol=1e-15)
    assert model.v_deletions[0].tolist() == [0.1, 0.1, 0.4, 0.2, 0.2]
    np.testing.assert_allclose(model.p_segment("V"), [0.75, 0.25], rtol=1e-15)
    np.testing.assert_allclose(model.p_segment("J"), [0.4375, 0.5625], rtol=1e-15)
    assert (model.d, model.contributing("D"), model.contributing("V")) == ((), (), (0, 1))


def test_the_files_where_igor_writes_them(tmp_path):
    expected = read_model(vdj_files().write(tmp_path / "olga"))
    for folder in ("igor/models", "igor/ref_genome"):
        (tmp_path / folder).mkdir(parents=True)
    for name, place in (
        ("model_params.txt", "models/model_parms.txt"), ("model_marginals.txt", "models/model_marginals.txt"),
        ("V_gene_CDR3_anchors.csv", "ref_genome/V_gene_CDR3_anchors.csv"),
        ("J_gene_CDR3_anchors.csv", "ref_genome/J_gene_CDR3_anchors.csv"),
    ):  # fmt: skip
        (tmp_path / "olga" / name).rename(tmp_path / "igor" / place)
    assert read_model(tmp_path / "igor").digest == expected.digest


def test_a_vdj_model(tmp_path):
    model = read_model(vdj_files().write(tmp_path))
    assert model.has_d
    assert model.p_vdj is None
    # Names lose their blanks.
    assert [template.allele for template in model.d] == ["TRBD1*01", "TRBD2*01"]
    np.testing.assert_allclose(model.p_dj, [[0.75 * 0.4, 0.5 * 0.6], [0.25 * 0.4, 0.5 * 0.6]], rtol=1e-15)
    # d_5_del [D, l] x d_3_del [D, l, r]
    assert model.d_deletions[0].tolist() == [[0.125, 0.125, 0, 0]] * 2 + [[0.25, 0.25, 0, 0], [0, 0, 0, 0]]


def test_the_letters_of_templates(tmp_path):
    """P-nucleotides are 3' of V, 5' of J and at both ends of D."""
    model = read_model(vdj_files().write(tmp_path))
    for kind in ("V", "D", "J"):
        for own in model.templates(kind):
            letters, (at_5, at_3) = own.letters(kind), {"V": "vv", "D": "53", "J": "jj"}[kind]
            assert len(letters) == len(own.extended)
            assert own.extended[own.p5 :].startswith(own.segment)
            assert letters.lstrip(at_5).rstrip(at_3) == kind * len(own.segment)
            assert letters.startswith(at_5 * own.p5 + kind * len(own.segment))
            assert own.p5 == 0 if kind == "V" else own.p5 > 0 or not own.segment
            assert kind == "J" or not own.segment or letters.endswith(at_3)


def test_j_and_d_that_depend_on_v(tmp_path):
    """The structure of IGH: D and J are summed over V, as OLGA has it; the joint is there too."""
    model = read_model(vdj_files(heavy=True).write(tmp_path))
    p_v, p_j_v = np.array([0.7, 0.3]), np.array([[0.4, 0.6], [0.8, 0.2]])
    p_d_vj = np.array([[[0.75, 0.25], [0.5, 0.5]], [[0.5, 0.5], [0.75, 0.25]]])
    joint = np.einsum("v,vj,vjd->vdj", p_v, p_j_v, p_d_vj)
    np.testing.assert_allclose(model.p_vdj, joint, rtol=1e-15)
    np.testing.assert_allclose(model.p_dj, joint.sum(axis=0), rtol=1e-15)
    assert model.p_v.tolist() == [0.7, 0.3]


def test_j_that_does_not_depend_on_v(tmp_path):
    files = vj_files()
    files.events["j_choice"] = Event(files.events["j_choice"].realisations, np.array([0.25, 0.75]))
    model = read_model(files.write(tmp_path))
    np.testing.assert_allclose(model.p_vj, np.outer([0.75, 0.25], [0.25, 0.75]), rtol=1e-15)


def test_indices_place_the_realisations(tmp_path):
    """Not the order of the lines, which is the reverse in these files."""
    assert vj_files().params().index("%2;4") < vj_files().params().index("%-2;0")
    text = vj_files().params()
    first, second = "%TRAV1*01;GGTGTGCC;0", "%TRAV2/DV4*01;GTGTA;1"
    swapped = text.replace(first, "%TRAV1*01;GGTGTGCC;1").replace(second, "%TRAV2/DV4*01;GTGTA;0")
    model = read_model(vj_files().write(tmp_path, {PARAMS: (text, swapped)}))
    assert [template.allele for template in model.v] == ["TRAV2/DV4*01", "TRAV1*01"]
    np.testing.assert_allclose(model.p_segment("V"), [0.75, 0.25], rtol=1e-15)


@pytest.mark.parametrize("row", ["TRAV1*01,1,F", "TRAV1*01,2,F", " TRAV1*01 ,2,F"])
def test_an_allele_with_two_rows_of_anchors(tmp_path, row):
    files = vj_files()
    files.anchors["V"].append(row)
    with pytest.raises(InputError, match=r"V_gene_CDR3_anchors\.csv, line 4: TRAV1\*01 is listed twice; keep one row"):
        read_model(files.write(tmp_path))


def test_anchors_of_no_gene(tmp_path):
    files = vj_files()
    files.anchors["V"].clear()
    with pytest.raises(InputError, match=r"V_gene_CDR3_anchors\.csv: lists no gene, so no junction could be made"):
        read_model(files.write(tmp_path))


def test_segments_shorter_than_the_p_nucleotides(tmp_path):
    """They have as many P-nucleotides as bases (TRAV20*03: TGT becomes TGTACA)."""
    files = vj_files()
    files.events["v_3_del"] = Event([str(k) for k in range(-4, 1)], np.full((2, 5), 0.2), ["v_choice"])
    files.events["v_choice"].realisations[0] = "TRAV1*01;GGTGT"
    assert read_model(files.write(tmp_path)).v[0].extended == "TGTACA"


def test_d_segments_shorter_than_the_p_nucleotides(tmp_path):
    """G with up to 2 on each side: its single base mirrors itself."""
    model = read_model(vdj_files().write(tmp_path))
    assert [template.extended for template in model.d] == ["CCGGGCC", "CGC"]


def test_zeros_at_the_end_of_insertions(tmp_path):
    model = read_model(vj_files().write(tmp_path))
    assert model.insertions[0].lengths.tolist() == [0.5, 0.3, 0.2]


def test_the_first_inserted_base_is_stationary(tmp_path):
    insertion = read_model(vj_files().write(tmp_path)).insertions[0]
    # Each column is divided by its sum.
    np.testing.assert_allclose(insertion.transitions, np.array(DINUCLEOTIDES).T, rtol=2**-52)
    np.testing.assert_allclose(insertion.transitions @ insertion.first, insertion.first, rtol=0, atol=MOST_ROUNDING)
    assert abs(insertion.first.sum() - 1) < MOST_ROUNDING


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_stationary_of_chains_with_zeros(seed):
    """Not negative by rounding, which would make the model one to refuse, and zero for bases that are never seen."""
    rng = np.random.default_rng(seed)
    transitions = rng.random((4, 4)) * (rng.random((4, 4)) > 0.4)
    transitions[rng.integers(4), transitions.sum(axis=0) == 0] = 1
    transitions /= transitions.sum(axis=0)
    first = stationary(transitions)
    assert (first >= 0).all()
    np.testing.assert_allclose(transitions @ first, first, rtol=0, atol=MOST_ROUNDING)
    assert abs(first.sum() - 1) < MOST_ROUNDING
    later = np.linalg.matrix_power((transitions + np.eye(4)) / 2, 4096)
    assert not first[(later < 1e-12).all(axis=1)].any()


def test_alleles_that_cannot_contribute(tmp_path):
    """No function, no anchor or no line of anchors; only F and (F) take part."""
    files = gene_files(["TRAV1*01", "TRAV2*01", "TRAV3*01", "TRAV4*01", "TRAV5*01", "TRAV6*01"])
    files.anchors["V"] = ["TRAV1*01,1,F", "TRAV2*01,1,P", "TRAV3*01,0,F", "TRAV4*01,-1,F", "TRAV6*01,1,(F)"]
    model = read_model(files.write(tmp_path))
    assert model.contributing("V") == (0, 5)
    assert [template.segment for template in model.v] == ["TGTGCC", "", "", "", "", "TGTGCC"]
    assert model.resolve("V", "TRAV2*01") == Alleles("TRAV2*01", ())
    assert model.resolve("V", "TRAV1,TRAV5") == Alleles("TRAV1*01,TRAV5*01", (0,))
    assert model.alleles("V") == Alleles("any", (0, 5))


def test_alleles_without_probability(tmp_path):
    files = vj_files()
    files.events["v_choice"].probabilities = np.array([1.0, 0.0])
    model = read_model(files.write(tmp_path))
    assert model.contributing("V") == (0,)
    assert model.resolve("V", "TRAV2/DV4*01") == Alleles("TRAV2/DV4*01", ())


def test_deletions_that_were_never_seen(tmp_path):
    """Only zeros: IGoR writes them for an allele that its data did not have."""
    files = vj_files()
    files.events["v_3_del"].probabilities[1] = 0.0
    assert read_model(files.write(tmp_path)).v_deletions[1].sum() == 0


NAMES = ["TRBV1*01", "TRBV1*02", "TRBV2*01", "TRBV6-1*01", "TRBV6-2*01", "TRBV6-2*02", "TRBV29/OR9-2*01", "TRBV10-3*01"]


@pytest.mark.parametrize(
    ("call", "places"),
    [
        ("TRBV1*01", (0,)),
        ("TRBV1", (0, 1)),
        ("trbv1*1", (0,)),
        ("TRBV01*002", (1,)),
        ("TCRBV06-01*01", (3,)),
        ("TRBV6", (3, 4, 5)),
        ("TRBV6-2", (4, 5)),
        ("TRBV6-2*00", (4, 5)),
        ("TRBV06-02*02", (5,)),
        ("TRBV1-1", (0, 1)),
        ("TRBV1-1*02", (1,)),
        ("TRBV2-1*01", (2,)),
        ("TRBV29/OR9-2*01", (6,)),
        ("TRBV29OR9-2", (6,)),
        ("TRBV10-3", (7,)),
        ("TRBV2, TRBV1*02", (1, 2)),
        ("TRBV6-1,TRBV6-1*01,TRBV6", (3, 4, 5)),
        ("Homsap TRBV6-2*01 F, or Homsap TRBV6-1*01 (F)", (3, 4)),
    ],
)
def test_names(tmp_path, call, places):
    model = read_model(gene_files(NAMES).write(tmp_path))
    alleles = model.resolve("V", call)
    assert alleles == Alleles(",".join(NAMES[place] for place in places), places)


def test_alleles_that_the_model_lacks(tmp_path):
    model = read_model(gene_files(NAMES).write(tmp_path))
    for call, gene in (("TRBV1*03", "TRBV1"), ("TRBV6-1*02", "TRBV6-1")):
        own = Exclusion.of(ExclusionKind.ALLELE_NOT_IN_MODEL, segment="V", allele=call, gene=gene)
        assert model.resolve("V", call) == own
        assert str(own) == f"V allele {call} is not in the model, other alleles of {gene} are"
        assert replace(model, by_gene=True).resolve("V", call) == model.resolve("V", gene)
    # No gene, or several.
    for call in ("TRBV100-3*01", "TRBV6*07"):
        assert replace(model, by_gene=True).resolve("V", call) == model.resolve("V", call)
    assert replace(model, by_gene=True).resolve("V", "TRBV1*01") == Alleles("TRBV1*01", (0,))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("TRBV3", "TRBV3"),
        ("TRBV10", None),
        ("TRBV100-3", "TRBV100-3"),
        ("TRBV2-2", "TRBV2-2"),
        ("J1", "J1"),
        ("?", "?"),
    ],
)
def test_names_that_the_model_lacks(tmp_path, call, name):
    """A row is listed with the name; OLGA would take all genes instead."""
    model = read_model(gene_files(NAMES).write(tmp_path))
    found = model.resolve("V", call)
    if name is None:
        assert found == Alleles("TRBV10-3*01", (7,))
    else:
        assert found == Exclusion.of(ExclusionKind.NOT_IN_MODEL, segment="V", name=name)
        assert str(found) == f"V gene {name} is not in the model"


def test_a_tie_that_the_model_lacks_is_named_as_a_whole(tmp_path):
    model, call = read_model(gene_files(NAMES).write(tmp_path)), "TRBV1,TRBV3,TRBV4"
    found = model.resolve("V", call)
    assert found == Exclusion.of(ExclusionKind.TIE_NOT_IN_MODEL, segment="V", name="TRBV3", call=call)
    assert str(found) == f"V gene TRBV3 of the call {call} is not in the model"
    assert (found.summary, found.particulars) == ("V gene that is not in the model", f"TRBV3 ({call})")


@pytest.mark.parametrize("call", ["TRAV13-1", "TRAV13-1,TRAV13-2", "Homsap TRAV13-1*01 F"])
def test_genes_of_another_locus(tmp_path, call):
    found = read_model(gene_files(NAMES).write(tmp_path)).resolve("V", call)
    assert found.kind is ExclusionKind.OTHER_LOCUS
    assert found.summary == "of locus TRA (the model is of TRB)"


@pytest.mark.parametrize("call", ["", " ", ","])
def test_calls_without_a_name(tmp_path, call):
    model = read_model(gene_files(NAMES).write(tmp_path))
    assert model.resolve("J", call) == Exclusion.of(ExclusionKind.NO_CALL, segment="J")


def test_the_first_member_is_no_synonym_where_the_model_has_one(tmp_path):
    model = read_model(gene_files(["TRBV7*01", "TRBV7-1*01"]).write(tmp_path))
    assert model.find("V", "TRBV7-1") == model.find("V", "TRBV7-1*01") == (1,)
    assert model.find("V", "TRBV7*01") == (0,)
    assert model.find("V", "TRBV7") == (0,)


def test_normal_names():
    assert [normal_name(name) for name in ("TRBV20-1*01", " TRBV007*00 ", "IGHD1/OR15-1a*01", "TRBV0")] == [
        "trbv20-1*1", "trbv7*0", "ighd1or15-1a*1", "trbv0",
    ]  # fmt: skip


def changed(file: str, old: str, new: str) -> dict[str, tuple[str, str]]:
    return {file: (old, new)}


REFUSALS = [
    (changed(PARAMS, "vj_ins", "xx_ins"), rf"{PARAMS}, line \d+: event 'xx_ins' is not known; give a model as IGoR"),
    (changed(PARAMS, "%TRAV1*01;GGTGTGCC;0", "%TRAV1*01;GGTGTGCC;x"), "a realisation without an event or an index"),
    (changed(PARAMS, "%TRAV1*01;GGTGTGCC;0", "%TRAV1*01;GGTGTGCC;²"), "a realisation without an event or an index"),
    (changed(PARAMS, "%TRAV1*01;GGTGTGCC;0", "%TRAV1*01;0"), r"line \d+: not a realisation of v_choice"),
    (changed(PARAMS, "%TRAV1*01;GGTGTGCC;0", "%TRAV1*01;GGTGTGCC;1"), "the indices of v_choice are not 0 … 1"),
    (changed(PARAMS, "%TRAV1*01;GGTGTGCC;0", "%TRAV1*01;GGTGTGCC;2"), "the indices of v_choice are not 0 … 1"),
    (changed(PARAMS, "GGTGTGCC", "GGTGTNCC"), r"TRAV1\*01 has letters other than A, C, G, T in the junction"),
    (changed(PARAMS, "%-2;0", "%-3;0"), "deletions of v_3_del are not consecutive numbers; correct the file"),
    (changed(PARAMS, "%-2;0", "%few;0"), "deletions of v_3_del are not consecutive numbers; correct the file"),
    (changed(PARAMS, "%3;3", "%4;3"), "vj_ins has realisations 0, 1, 2, 4, not 0, 1, 2, 3"),
    (changed(PARAMS, "%A;0", "%C;0"), "vj_dinucl has realisations C, C, G, T, not A, C, G, T"),
    (changed(MARGINALS, "@v_choice", "@v_chance"), rf"{MARGINALS}, line 1: event 'v_chance' is not in {PARAMS}"),
    (changed(MARGINALS, "[v_choice,0]", "[d_gene,0]"), r"line \d+: j_choice has other parents than above"),
    (changed(MARGINALS, "[v_choice,", "[d_gene,"), "j_choice depends on d_gene, which is not supported; infer another"),
    (changed(MARGINALS, "%0.75,0.25", "%0.75,0.35"), r"P\(V, J\) adds up to 1.1, not 1; correct the file"),
    (changed(MARGINALS, "%0.75,0.25", "%1.75,-0.75"), "line 4: values that are no probabilities"),
    (changed(MARGINALS, "%0.75,0.25", "%nan,0.25"), "line 4: values that are no probabilities"),
    (changed(MARGINALS, "%0.75,0.25", "%inf,0.25"), "line 4: values that are no probabilities"),
    (changed(MARGINALS, "%0.75,0.25", "%0.75,x"), "line 4: could not convert string to float"),
    (changed(MARGINALS, "%0.75,0.25", "%0.5"), r"line 4: 1 values where there is place for \(2,\)"),
    (changed(MARGINALS, "%0.75,0.25\n", ""), "lacks probabilities of v_choice; copy the model again"),
    (changed(MARGINALS, "#[v_choice,1]\n%0.25,0.75\n", ""), "lacks probabilities of j_choice"),
    (changed(MARGINALS, "$Dim[4]\n#\n%0.5,0.3,0.2,0", "$Dim[3]\n#\n%0.5,0.3,0.2"), r"vj_ins has \(3,\) values"),
    (changed(MARGINALS, "$Dim[4]", "$Dim[400000000000]"), "more than 16,777,216 values"),
    (changed(MARGINALS, "$Dim[4]", "$Dim[-4]"), "line .*: negative dimensions"),
    (changed(MARGINALS, "$Dim[4]", "$Dim[]"), "line .*: invalid literal"),
    (changed(MARGINALS, "[v_choice,1]", "[v_choice,7]"), r"line \d+: index 7 is out of bounds"),
    (changed(MARGINALS, "0.1,0.1,0.4,0.2,0.2", "0.1,0.1,0.4,0.2,0.3"), r"the deletions of TRAV1\*01 adds? up to 1.1"),
    (changed(MARGINALS, "%0.5,0.3,0.2,0", "%0.5,0.3,0.1,0"), "the lengths of VJ insertions adds? up to 0.9"),
    (changed(MARGINALS, "%0.5,0.3,0.2,0", "%0,0,0,0"), "the lengths of VJ insertions adds? up to 0,"),
    (changed(MARGINALS, "%0.1,0.2,0.3,0.4,", "%0.2,0.2,0.3,0.4,"), "vj_dinucl after A adds up to 1.1, not 1"),
    (changed(V_ANCHORS, "TRAV1*01,2,F", "TRAV1*01,two,F"), rf"{V_ANCHORS}, line 2: not a gene, its anchor and its"),
    (changed(V_ANCHORS, "TRAV1*01,2,F", "TRAV1*01,2"), rf"{V_ANCHORS}, line 2: not a gene, its anchor and its"),
    (changed(V_ANCHORS, "TRAV1*01,2,F", "TRAV1*01,6,F"), r"the anchor 6 of TRAV1\*01 is not within its 8 bases"),
    (changed(J_ANCHORS, "TRAJ1*01,1,F", "TRAJ1*01,99,F"), r"the anchor 99 of TRAJ1\*01 is not within its 6 bases"),
    (changed(J_ANCHORS, "TRAJ1*01,1,F", f"TRAJ1*01,1,{'F' * 200_000}"), rf"{J_ANCHORS}, line \d+: not a gene"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS)
def test_refusals(tmp_path, changes, message):
    with pytest.raises(InputError, match=message) as caught:
        read_model(vj_files().write(tmp_path, changes))
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value) or "says" in str(caught.value)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_missing(tmp_path, file):
    vj_files().write(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(InputError, match=rf"{file}: no such model file; a model's folder has {FILES[0]}, "):
        read_model(tmp_path)


def without(files: Files, event: str) -> Files:
    del files.events[event]
    return files


@pytest.mark.parametrize("event", ["v_3_del", "vj_ins", "j_choice"])
def test_a_vj_model_without_an_event(tmp_path, event):
    with pytest.raises(InputError, match=rf"{PARAMS}: has not the events of a VDJ or a VJ model \({event}\)"):
        read_model(without(vj_files(), event).write(tmp_path))


def test_an_event_without_realisations(tmp_path):
    files = vj_files()
    files.events["vj_ins"] = Event([], np.zeros(0))
    with pytest.raises(InputError, match="vj_ins has no realisations; copy the model again"):
        read_model(files.write(tmp_path))


def test_d_that_depends_on_v_alone(tmp_path):
    files = vdj_files()
    files.events["d_gene"] = vdj_files(heavy=True).events["d_gene"]
    with pytest.raises(InputError, match="of j_choice and d_gene, only one depends on V; infer another model"):
        read_model(files.write(tmp_path))


def test_d_without_j(tmp_path):
    files = vdj_files()
    files.events["d_gene"].parents, files.events["d_gene"].probabilities = [], np.array([0.5, 0.5])
    with pytest.raises(InputError, match="d_gene depends on nothing, which is not supported; infer another model"):
        read_model(files.write(tmp_path))


def test_more_deleted_than_there_is(tmp_path):
    """CGC has three bases; all deletions of 3 and 3 are in the arrays."""
    files = vdj_files()
    files.events["d_3_del"].probabilities[1, 2] = [0.5, 0.0, 0.25, 0.25]
    with pytest.raises(InputError, match=r"deletes more of TRBD2\*01 than it has, with probability 0.25; correct"):
        read_model(files.write(tmp_path))


def test_a_d_gene_that_is_never_taken_may_have_any_deletions(tmp_path):
    files = vdj_files()
    files.events["d_3_del"].probabilities[1] = 0.0
    files.events["d_gene"].probabilities = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert read_model(files.write(tmp_path)).contributing("D") == (0,)


def test_the_digest_is_of_all_files(tmp_path):
    digests = {read_model(vj_files().write(tmp_path)).digest}
    for file, text in ((V_ANCHORS, "TRAV1*01,2,F"), (J_ANCHORS, "TRAJ1*01,1,F")):
        digests.add(read_model(vj_files().write(tmp_path, changed(file, text, text[:-1] + "P"))).digest)
    assert len(digests) == 3


def test_models_by_name_and_folder(tmp_path):
    vj_files().write(tmp_path / "own")
    assert load_model(tmp_path / "own").name == str(tmp_path / "own")
    for name in ("human_xyz", tmp_path / "none"):
        with pytest.raises(InputError, match="no folder of a model, and no model of that name; there are human_tra, "):
            load_model(name)


def test_a_folder_goes_before_a_name(tmp_path, monkeypatch):
    vj_files().write(tmp_path / "human_tra")
    monkeypatch.chdir(tmp_path)
    assert len(load_model("human_tra").v) == 2
    shutil.rmtree(tmp_path / "human_tra")


def test_a_name_without_olga(monkeypatch):
    monkeypatch.setattr("hpcvdj.recombination.igor.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"model human_trb is one of olga's; pip install 'hpcvdj\[models\]' .*, or give the"
    ):
        load_model("human_trb")


@pytest.mark.skipif(find_spec("olga") is None, reason="no olga")
@pytest.mark.parametrize("name", OLGA_FOLDERS)
def test_the_models_of_olga(name):
    """Alleles, longest insertions and whether they have D, as they are in olga 1.3.0."""
    model = load_model(name)
    assert (len(model.v), len(model.d), len(model.j)) == SIZES[name][:3]
    assert tuple(len(insertion.lengths) for insertion in model.insertions) == SIZES[name][3:]
    assert (model.p_vdj is not None) == name.endswith("igh")
    assert all(model.contributing(segment) for segment in "VJ")
    for insertion in model.insertions:
        np.testing.assert_allclose(insertion.transitions @ insertion.first, insertion.first, rtol=2e-15)


SIZES = {
    "human_tra": (103, 0, 68, 33), "human_trb": (89, 3, 15, 31, 31), "human_igh": (89, 40, 7, 61, 61),
    "human_igk": (64, 0, 7, 41), "human_igl": (79, 0, 9, 35), "mouse_tra": (107, 0, 51, 23),
    "mouse_trb": (35, 2, 14, 13, 12), "mouse_igh": (102, 8, 4, 53, 61), "mouse_igk": (91, 0, 11, 41),
    "mouse_igl": (3, 0, 6, 41),
}  # fmt: skip


@pytest.mark.skipif(find_spec("olga") is None, reason="no olga")
def test_the_short_v_segments_of_olga():
    """Their V part is the codon of Cys alone."""
    for name, allele in (("human_tra", "TRAV20*03"), ("mouse_tra", "TRAV9-2*01"), ("mouse_tra", "TRAV9N-2*01")):
        model = load_model(name)
        template = next(template for template in model.v if template.allele == allele)
        assert (template.segment, template.extended) == ("TGT", "TGTACA")


def test_a_gene_is_not_the_family_of_others():
    """The probability of TRBV6 was that of TRBV6-1, too."""
    found = alleles_by_name(["TRBV6*01", "TRBV6-1*01", "TRBV7-1*01", "TRBV7-2*01", "TRBV2*01", "TRAV29/DV5*01"])
    assert {name: found[name] for name in ("trbv6", "trbv6-1", "trbv7", "trbv2", "trbv2-1", "trav29")} == {
        "trbv6": (0,), "trbv6-1": (1,), "trbv7": (2, 3), "trbv2": (4,), "trbv2-1": (4,), "trav29": (5,),
    }  # fmt: skip
